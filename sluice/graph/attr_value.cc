#include "sluice/graph/attr_value.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "sluice/base/strings.h"

namespace sluice {
namespace {

std::string DTypeEnumName(DType type) {
  if (!IsKnown(type)) return StrCat(static_cast<int>(type));
  std::string name = "DT_";
  for (char c : DTypeName(type)) name += static_cast<char>(toupper(c));
  return name;
}

// What messages show of a string and of a list.
constexpr size_t kShownBytes = 80;
constexpr size_t kShownElements = 50;

std::string StringText(const std::string& value) {
  if (value.size() <= kShownBytes)
    return StrCat("\"", absl::CEscape(value), "\"");
  return StrCat("\"", absl::CEscape(value.substr(0, kShownBytes)), "...\"");
}

template <typename T, typename F>
void AppendAll(std::string* out, const std::vector<T>& values, F text) {
  for (size_t i = 0; i < values.size() && i < kShownElements; ++i) {
    if (!out->empty()) *out += ", ";
    *out += text(values[i]);
  }
  if (values.size() > kShownElements) *out += ", ...";
}

std::string ListText(const AttrList& list) {
  std::string out;
  AppendAll(&out, list.strings, StringText);
  AppendAll(&out, list.ints, [](int64_t v) { return StrCat(v); });
  AppendAll(&out, list.floats, [](float v) { return StrCat(v); });
  AppendAll(&out, list.bools, [](bool v) { return StrCat(v); });
  AppendAll(&out, list.types, DTypeEnumName);
  AppendAll(&out, list.shapes, [](const auto& v) { return v.DebugString(); });
  AppendAll(&out, list.tensors, [](const auto& v) { return v.DebugString(); });
  AppendAll(&out, list.functions, [](const auto& v) { return v.name; });
  return StrCat("[", out, "]");
}

bool AllEqual(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::ranges::equal(a, b, TensorsEqual);
}

}  // namespace

bool FunctionName::operator==(const FunctionName& other) const {
  if (name != other.name) return false;
  const bool none = attrs == nullptr || attrs->size() == 0;
  const bool other_none = other.attrs == nullptr || other.attrs->size() == 0;
  if (none || other_none) return none == other_none;
  return *attrs == *other.attrs;
}

size_t AttrList::size() const {
  return strings.size() + ints.size() + floats.size() + bools.size() +
         types.size() + shapes.size() + tensors.size() + functions.size();
}

bool AttrList::operator==(const AttrList& other) const {
  return strings == other.strings && ints == other.ints &&
         floats == other.floats && bools == other.bools &&
         types == other.types && shapes == other.shapes &&
         AllEqual(tensors, other.tensors) && functions == other.functions;
}

bool AttrValue::operator==(const AttrValue& other) const {
  if (value_.index() != other.value_.index()) return false;
  if (const Tensor* tensor = get<Tensor>()) {
    return TensorsEqual(*tensor, *other.get<Tensor>());
  }
  return std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, Tensor>) {
          return true;
        } else {
          return value == std::get<T>(other.value_);
        }
      },
      value_);
}

std::string AttrValue::DebugString() const {
  struct Text {
    std::string operator()(std::monostate) const { return "<none>"; }
    std::string operator()(const std::string& v) const { return StringText(v); }
    std::string operator()(int64_t v) const { return StrCat(v); }
    std::string operator()(float v) const { return StrCat(v); }
    std::string operator()(bool v) const { return StrCat(v); }
    std::string operator()(DType v) const { return DTypeEnumName(v); }
    std::string operator()(const PartialShape& v) const {
      return v.DebugString();
    }
    std::string operator()(const Tensor& v) const { return v.DebugString(); }
    std::string operator()(const FunctionName& v) const { return v.name; }
    std::string operator()(const AttrList& v) const { return ListText(v); }
    std::string operator()(const AttrPlaceholder& v) const {
      return StrCat("$", v.name);
    }
  };
  return std::visit(Text(), value_);
}

namespace {
auto LowerBound(auto& entries, std::string_view name) {
  return std::lower_bound(
      entries.begin(), entries.end(), name,
      [](const AttrMap::Entry& e, std::string_view n) { return e.first < n; });
}
}  // namespace

void AttrMap::Set(std::string_view name, AttrValue value) {
  auto it = LowerBound(entries_, name);
  if (it != entries_.end() && it->first == name) {
    it->second = std::move(value);
  } else {
    entries_.emplace(it, std::string(name), std::move(value));
  }
}

void AttrMap::Erase(std::string_view name) {
  auto it = LowerBound(entries_, name);
  if (it != entries_.end() && it->first == name) entries_.erase(it);
}

const AttrValue* AttrMap::Find(std::string_view name) const {
  auto it = LowerBound(entries_, name);
  return it != entries_.end() && it->first == name ? &it->second : nullptr;
}

}  // namespace sluice
