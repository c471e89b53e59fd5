// OpDef: what an op takes and gives. Parsed from the text pieces that stand
// beside the op's kernels (`.Input("x: T")`, `.Attr("T: {float, double}")`),
// in TensorFlow's notation.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/graph/attr_value.h"

namespace sluice {

// An input or output. Exactly one of `type`, `type_attr` and `type_list_attr`
// says what it holds; with `number_attr` it stands for that many tensors.
struct ArgDef {
  std::string name;
  DType type = DType::kInvalid;
  std::string type_attr;
  std::string number_attr;
  std::string type_list_attr;
  bool is_ref = false;
  bool is_list() const {
    return !number_attr.empty() || !type_list_attr.empty();
  }
  bool operator==(const ArgDef&) const = default;
};

struct AttrDef {
  std::string name;
  std::string type;  // "int", "list(type)", …
  std::optional<AttrValue> default_value;
  std::optional<int64_t> minimum;
  // Empty: anything. Holds types or strings.
  AttrList allowed;
  bool operator==(const AttrDef&) const = default;
};

struct OpDef {
  std::string name;
  std::vector<ArgDef> inputs;
  std::vector<ArgDef> outputs;
  std::vector<AttrDef> attrs;
  bool stateful = false;
  bool aggregate = false;
  bool commutative = false;
  bool allows_uninitialized_input = false;

  const AttrDef* FindAttr(std::string_view name) const;
  bool operator==(const OpDef&) const = default;
};

// "name: Ref(T)", "name: N * T", "name: list_attr" -> ArgDef. Whether a bare
// word is a type, a type attr or a list attr depends on the attrs, so these
// come first.
absl::StatusOr<ArgDef> ParseArg(std::string_view text,
                                std::span<const AttrDef> attrs);
// "T: {float, double} = DT_FLOAT", "N: int >= 1", "s: list(string) = []".
absl::StatusOr<AttrDef> ParseAttr(std::string_view text);

// The value of `text` as an attribute of type `type`, in the notation of attr
// defaults.
absl::StatusOr<AttrValue> ParseAttrValue(std::string_view type,
                                         std::string_view text);

// Whether `type` is one of the attr types: "int", "list(shape)", …
bool IsAttrType(std::string_view type);

// Fills missing attrs with their defaults and checks every value against its
// definition (kind, minimum, allowed values). Attrs the op does not have are
// refused unless their name starts with '_'. Errors name `node`.
absl::Status CheckAttrs(const OpDef& op, std::string_view node, AttrMap* attrs);

// "Op<name=Neg; signature=x:T -> y:T; attr=T:type,allowed=[DT_FLOAT]>", as
// messages show an op.
std::string OpSummary(const OpDef& op);

// The types of all inputs (or outputs) of a node with these attrs, lists
// spread out. Ref types for ref arguments.
absl::StatusOr<std::vector<DType>> ArgTypes(std::span<const ArgDef> args,
                                            const AttrMap& attrs);

// How many tensors `arg` stands for under `attrs`.
absl::StatusOr<int> ArgCount(const ArgDef& arg, const AttrMap& attrs);

}  // namespace sluice
