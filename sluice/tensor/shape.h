// Shape: the sizes of a tensor that exists. PartialShape: what is known of a
// shape while a graph is built; the rank or any size may be unknown.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace sluice {

// The wire's limit.
inline constexpr int kMaxRank = 254;

// A value. Create checks what comes from outside, the other makers trust the
// program, as far as the product of the sizes fits: if it does not, be it
// hidden by a zero, size() is kTooMany, and no tensor can be made.
class Shape {
 public:
  static constexpr int64_t kTooMany = std::numeric_limits<int64_t>::max();

  Shape() = default;  // A scalar.
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) { Count(); }
  explicit Shape(std::span<const int64_t> dims)
      : dims_(dims.begin(), dims.end()) {
    Count();
  }
  // Refuses negative sizes, too many dimensions and products that overflow.
  static absl::StatusOr<Shape> Create(std::span<const int64_t> dims);

  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t dim(int i) const { return dims_[i]; }
  std::span<const int64_t> dims() const { return {dims_.data(), dims_.size()}; }
  int64_t size() const { return size_; }

  // Makes it that of a scalar.
  void Reset() {
    dims_.clear();
    size_ = 1;
  }
  void AddDim(int64_t size) {
    dims_.push_back(size);
    Count();
  }
  void SetDim(int i, int64_t size) {
    dims_[i] = size;
    Count();
  }
  void RemoveDim(int i) {
    dims_.erase(dims_.begin() + i);
    Count();
  }
  void InsertDim(int i, int64_t size) {
    dims_.insert(dims_.begin() + i, size);
    Count();
  }

  bool operator==(const Shape& other) const { return dims_ == other.dims_; }
  // "[2,3]", "[]".
  std::string DebugString() const;

 private:
  void Count() {
    int64_t product = 1;
    bool empty = false;
    for (const int64_t d : dims_) {
      if (d == 0) {
        empty = true;
      } else if (d < 0 || __builtin_mul_overflow(product, d, &product)) {
        size_ = kTooMany;
        return;
      }
    }
    size_ = empty ? 0 : product;
  }

  absl::InlinedVector<int64_t, 4> dims_;
  int64_t size_ = 1;
};

// A value. kUnknownDim marks an unknown size.
class PartialShape {
 public:
  static constexpr int64_t kUnknownDim = -1;

  PartialShape() = default;  // Unknown rank.
  PartialShape(std::initializer_list<int64_t> dims)
      : known_rank_(true), dims_(dims) {}
  explicit PartialShape(std::span<const int64_t> dims)
      : known_rank_(true), dims_(dims.begin(), dims.end()) {}
  PartialShape(const Shape& shape)  // NOLINT: every Shape is one.
      : PartialShape(shape.dims()) {}
  static PartialShape Scalar() {
    return PartialShape(std::initializer_list<int64_t>{});
  }
  static PartialShape UnknownOfRank(int rank);
  // As Shape::Create, but -1 is allowed.
  static absl::StatusOr<PartialShape> Create(std::span<const int64_t> dims);

  bool known_rank() const { return known_rank_; }
  // Only with a known rank.
  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t dim(int i) const { return dims_[i]; }
  std::span<const int64_t> dims() const { return {dims_.data(), dims_.size()}; }
  void set_dim(int i, int64_t size) { dims_[i] = size; }
  void AddDim(int64_t size) { dims_.push_back(size); }

  bool FullyDefined() const;
  // Only when fully defined.
  Shape AsShape() const { return Shape(dims()); }
  // Elements, or -1 if not fully defined.
  int64_t NumElements() const;
  // Whether some shape fits both.
  bool CompatibleWith(const PartialShape& other) const;
  // What both together say; an error if they contradict each other.
  absl::StatusOr<PartialShape> MergeWith(const PartialShape& other) const;

  bool operator==(const PartialShape& other) const {
    return known_rank_ == other.known_rank_ && dims_ == other.dims_;
  }
  // "[2,?]", "<unknown>".
  std::string DebugString() const;

 private:
  bool known_rank_ = false;
  absl::InlinedVector<int64_t, 4> dims_;
};

}  // namespace sluice
