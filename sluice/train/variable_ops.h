// Reads and updates of variables, ref and resource alike, with the nodes that
// Python's functions of these names add.
#pragma once

#include "sluice/client/variable.h"

namespace sluice {

// Its value. A resource variable is read anew, where it lives.
Output ReadValue(const Scope& scope, const Variable& var);

// Its value if it has one, else its initial value.
Output InitializedValue(const Scope& scope, const Variable& var);

// Its value after `update`: the ref that a ref op passes on, or a read.
Output ReadAfter(const Scope& scope, const Variable& var, Node* update);

// Rows of it: tf.gather.
Output GatherRows(const Scope& scope, const Variable& var, Output indices);

// "Assign", "AssignAdd", "AssignSub".
struct Updated {
  Node* node = nullptr;
  Output value;  // After the update.
};
Updated UpdateVariable(const Scope& scope, std::string_view op,
                       const Variable& var, Output value, bool use_locking);

// "ScatterAdd", "ScatterSub", "ScatterUpdate".
Node* ScatterRows(const Scope& scope, std::string_view op, const Variable& var,
                  Output indices, Output rows, bool use_locking);

// The part that a variable called `slot`, kept beside `var`, is of the one kept
// beside the whole of which `var` is a part; none if it is no part.
std::optional<SaveSlice> SliceOfSlot(const Variable& var,
                                     std::string_view slot);

}  // namespace sluice
