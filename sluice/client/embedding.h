// Tables that lie in several parts, and their rows.
//
//   const std::vector<Variable> table = PartitionedVariable(
//       scope.Named("table"), {1000000, 64}, 2,
//       [](const Shape& part) { return ZerosInitializer(part); });
//   Output rows = nn::EmbeddingLookup(scope, table, ids,
//                                     {.strategy = PartitionStrategy::kDiv});
#pragma once

#include <functional>
#include <vector>

#include "sluice/client/variable.h"

namespace sluice {

// `parts` variables `<name>/part_0`, …, which together are a variable of
// `shape`, cut along its first dimension; the first ones have a row more if the
// rows do not come out even. `initializer` makes the first value of a part of
// that shape. Under a replica device setter each part gets its own ps; a
// checkpoint has the whole under its name, so that it can be restored into
// another number of parts. VariableScope (variable_scope.h) cuts along other
// dimensions, too.
std::vector<Variable> PartitionedVariable(
    const Scope& scope, const Shape& shape, int parts,
    const std::function<Initializer(const Shape& part)>& initializer,
    const VariableOptions& options = {});

enum class PartitionStrategy {
  kMod,  // Row i is in part i % parts.
  kDiv,  // As PartitionedVariable cuts: neighbours are together.
};

namespace nn {

struct EmbeddingLookupOptions {
  PartitionStrategy strategy = PartitionStrategy::kMod;
};
// The rows of `ids`, of any shape and integer type: [shape of ids, a row]. Each
// row is read on the task that has it, and its gradient goes there as slices.
Output EmbeddingLookup(const Scope& scope, const std::vector<Variable>& table,
                       const Input& ids, EmbeddingLookupOptions options = {});
Output EmbeddingLookup(const Scope& scope, const Variable& table,
                       const Input& ids);

}  // namespace nn
}  // namespace sluice
