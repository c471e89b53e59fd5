#include "sluice/graph/newer_attrs.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace sluice {
namespace {

// Defaults that are neither zero, false nor empty.
const std::vector<std::pair<std::string_view, AttrValue>>& Defaults() {
  static const auto* defaults =
      new std::vector<std::pair<std::string_view, AttrValue>>{
          {"Tcomplex", DType::kComplex64},
          {"Tk", DType::kInt32},
          {"Treal", DType::kFloat},
          {"Tsegmentids", DType::kInt32},
          {"axis", -1},
          {"batch_padding_policy", "PAD_UP"},
          {"blank_index", -1},
          {"dtype", DType::kFloat},
          {"ensure_minimum_range", 0.01f},
          {"exponential_avg_factor", 1.0f},
          {"incompatible_shape_error", true},
          {"index_type", DType::kInt32},
          {"mixed_priority_policy", "low_priority_padding_with_max_batch_size"},
          {"reshuffle_each_iteration", true},
          {"shape_type", DType::kInt32},
          {"use_default_device", true},
      };
  return *defaults;
}

bool IsZero(const AttrValue& value) {
  struct Visitor {
    bool operator()(std::monostate) const { return true; }
    bool operator()(const std::string& v) const { return v.empty(); }
    bool operator()(int64_t v) const { return v == 0; }
    bool operator()(float v) const { return v == 0; }
    bool operator()(bool v) const { return !v; }
    bool operator()(DType v) const { return v == DType::kInvalid; }
    bool operator()(const PartialShape& v) const { return !v.known_rank(); }
    bool operator()(const Tensor&) const { return false; }
    bool operator()(const FunctionName& v) const { return v.name.empty(); }
    bool operator()(const AttrList& v) const { return v.size() == 0; }
    bool operator()(const AttrPlaceholder&) const { return false; }
  };
  return std::visit(Visitor(), value.variant());
}

}  // namespace

bool IsHarmlessNewerAttr(std::string_view name, const AttrValue& value) {
  // Names for profiles and listings, and a check that the sender's own shape
  // inference has made; any value will do.
  if (name == "metadata" || name == "debug_name" || name == "validate_shape") {
    return true;
  }
  return IsZero(value) || std::ranges::any_of(Defaults(), [&](const auto& d) {
           return d.first == name && d.second == value;
         });
}

}  // namespace sluice
