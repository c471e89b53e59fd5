// AttrValue: the value of an attribute of a node, in C++ terms. Conversion from
// and to the wire is in graph_def.h.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sluice/tensor/dtype.h"
#include "sluice/tensor/shape.h"
#include "sluice/tensor/tensor.h"

namespace sluice {

class AttrMap;

// A function's name and the attrs it is instantiated with.
struct FunctionName {
  std::string name;
  std::shared_ptr<const AttrMap> attrs;  // May be null: none.
  bool operator==(const FunctionName& other) const;
};

// A list attribute. On the wire an empty list has no type, so one struct holds
// all kinds and at most one member is filled.
struct AttrList {
  std::vector<std::string> strings;
  std::vector<int64_t> ints;
  std::vector<float> floats;
  std::vector<bool> bools;
  std::vector<DType> types;
  std::vector<PartialShape> shapes;
  std::vector<Tensor> tensors;
  std::vector<FunctionName> functions;
  size_t size() const;
  bool operator==(const AttrList& other) const;
};

// Stands for an attribute of the function the node is in.
struct AttrPlaceholder {
  std::string name;
  bool operator==(const AttrPlaceholder&) const = default;
};

// A value.
class AttrValue {
 public:
  using Variant = std::variant<std::monostate, std::string, int64_t, float,
                               bool, DType, PartialShape, Tensor, FunctionName,
                               AttrList, AttrPlaceholder>;

  AttrValue() = default;
  AttrValue(std::string v) : value_(std::move(v)) {}         // NOLINT
  AttrValue(std::string_view v) : value_(std::string(v)) {}  // NOLINT
  AttrValue(const char* v) : value_(std::string(v)) {}       // NOLINT
  AttrValue(int64_t v) : value_(v) {}                        // NOLINT
  AttrValue(int v) : value_(int64_t{v}) {}                   // NOLINT
  AttrValue(float v) : value_(v) {}                          // NOLINT
  AttrValue(double v) : value_(static_cast<float>(v)) {}     // NOLINT
  AttrValue(bool v) : value_(v) {}                           // NOLINT
  AttrValue(DType v) : value_(v) {}                          // NOLINT
  AttrValue(PartialShape v) : value_(std::move(v)) {}        // NOLINT
  AttrValue(const Shape& v) : value_(PartialShape(v)) {}     // NOLINT
  AttrValue(Tensor v) : value_(std::move(v)) {}              // NOLINT
  AttrValue(FunctionName v) : value_(std::move(v)) {}        // NOLINT
  AttrValue(AttrList v) : value_(std::move(v)) {}            // NOLINT
  AttrValue(AttrPlaceholder v) : value_(std::move(v)) {}     // NOLINT
  // NOLINTNEXTLINE: implicit as the others.
  AttrValue(std::vector<std::string> v) { list().strings = std::move(v); }
  AttrValue(std::vector<int64_t> v) { list().ints = std::move(v); }  // NOLINT
  AttrValue(std::vector<float> v) { list().floats = std::move(v); }  // NOLINT
  AttrValue(std::vector<DType> v) { list().types = std::move(v); }   // NOLINT
  // NOLINTNEXTLINE: implicit as the others.
  AttrValue(std::vector<PartialShape> v) { list().shapes = std::move(v); }

  bool empty() const { return std::holds_alternative<std::monostate>(value_); }
  // nullptr if the value is of another kind.
  template <typename T>
  const T* get() const {
    return std::get_if<T>(&value_);
  }
  const Variant& variant() const { return value_; }
  // Of a tensor: how many of its first elements the writer gave as single
  // values; the last of them stands for the rest (`constant(7, shape=[2, 3])`
  // gives one). 0: no matter. Kept only so that a graph goes out as it came in;
  // == ignores it.
  int64_t given_values() const { return given_values_; }
  void set_given_values(int64_t count) { given_values_ = count; }
  bool operator==(const AttrValue& other) const;
  // The form that error messages and op listings use: DT_FLOAT, [2,3], "x".
  std::string DebugString() const;

 private:
  AttrList& list() {
    value_ = AttrList();
    return std::get<AttrList>(value_);
  }
  Variant value_;
  int64_t given_values_ = 0;
};

// The attributes of a node, sorted by name. Small, so a flat vector.
class AttrMap {
 public:
  using Entry = std::pair<std::string, AttrValue>;

  AttrMap() = default;
  AttrMap(std::initializer_list<Entry> entries) {
    for (const Entry& entry : entries) Set(entry.first, entry.second);
  }
  void Set(std::string_view name, AttrValue value);
  void Erase(std::string_view name);
  // nullptr if there is none.
  const AttrValue* Find(std::string_view name) const;
  template <typename T>
  const T* Find(std::string_view name) const {
    const AttrValue* value = Find(name);
    return value == nullptr ? nullptr : value->get<T>();
  }
  bool Contains(std::string_view name) const { return Find(name) != nullptr; }
  size_t size() const { return entries_.size(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  bool operator==(const AttrMap& other) const {
    return entries_ == other.entries_;
  }

 private:
  std::vector<Entry> entries_;
};

}  // namespace sluice
