// Tensor: an n-dimensional array. A value: copies share one counted buffer.
// Whoever writes must know that nobody else reads (a kernel writes only to the
// outputs it made).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "sluice/tensor/buffer.h"
#include "sluice/tensor/dtype.h"
#include "sluice/tensor/shape.h"

namespace sluice {

// Names a resource of one device; the element type of resource tensors.
struct ResourceHandle {
  std::string device;
  std::string container;
  std::string name;
  uint64_t type_hash = 0;
  std::string type_name;
  // What a variable's handle says of its value, for shape inference.
  DType value_dtype = DType::kInvalid;
  PartialShape value_shape;
  bool operator==(const ResourceHandle&) const = default;
};

// Thread-compatible.
class Tensor {
 public:
  Tensor() = default;  // Holds nothing; dtype kInvalid.
  // Allocates. Numbers are undefined, strings and handles empty. When there is
  // no memory, or the type cannot be stored, the tensor holds nothing
  // (`initialized()` is false); Create says so with an error instead.
  Tensor(DType dtype, const Shape& shape);
  static absl::StatusOr<Tensor> Create(DType dtype, const Shape& shape);
  // As Create, with all elements zero, false or empty.
  static absl::StatusOr<Tensor> Zeros(DType dtype, const Shape& shape);
  // Takes a reference to `buffer` over. It must hold shape.size() elements.
  static Tensor FromBuffer(DType dtype, const Shape& shape, Buffer* buffer);

  template <typename T>
  static Tensor Of(const Shape& shape, std::initializer_list<T> values) {
    return Of<T>(shape, std::span<const T>(values.begin(), values.size()));
  }
  template <typename T>
  static Tensor Of(const Shape& shape, std::span<const T> values);
  template <typename T>
  static Tensor Scalar(T value) {
    Tensor tensor(DTypeOf<T>::value, Shape());
    tensor.mutable_data<T>()[0] = std::move(value);
    return tensor;
  }
  template <typename T>
  static Tensor Vector(std::initializer_list<T> values) {
    return Of<T>({static_cast<int64_t>(values.size())}, values);
  }

  Tensor(const Tensor& other)
      : shape_(other.shape_), buffer_(other.buffer_), dtype_(other.dtype_) {
    if (buffer_ != nullptr) buffer_->Ref();
  }
  Tensor(Tensor&& other) noexcept
      : shape_(std::move(other.shape_)),
        buffer_(std::exchange(other.buffer_, nullptr)),
        dtype_(std::exchange(other.dtype_, DType::kInvalid)) {}
  Tensor& operator=(const Tensor& other) {
    if (this != &other) *this = Tensor(other);
    return *this;
  }
  Tensor& operator=(Tensor&& other) noexcept {
    if (this != &other) {
      if (buffer_ != nullptr) buffer_->Unref();
      shape_ = std::move(other.shape_);
      buffer_ = std::exchange(other.buffer_, nullptr);
      dtype_ = std::exchange(other.dtype_, DType::kInvalid);
    }
    return *this;
  }
  ~Tensor() {
    if (buffer_ != nullptr) buffer_->Unref();
  }

  // As `= Tensor()`, without moving a shape.
  void Reset() {
    if (buffer_ != nullptr) std::exchange(buffer_, nullptr)->Unref();
    shape_.Reset();
    dtype_ = DType::kInvalid;
  }

  bool initialized() const { return buffer_ != nullptr; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t dim(int i) const { return shape_.dim(i); }
  int64_t size() const { return shape_.size(); }
  // 0 for types whose elements are objects.
  size_t bytes() const { return size() * ElementSize(dtype_); }

  // The elements in row-major order. T must be the C++ type of dtype(), or for
  // quantised types the integer of their size.
  template <typename T>
  std::span<const T> data() const {
    return {static_cast<const T*>(raw()), static_cast<size_t>(size())};
  }
  template <typename T>
  std::span<T> mutable_data() {
    return {static_cast<T*>(mutable_raw()), static_cast<size_t>(size())};
  }
  template <typename T>
  const T& scalar() const {
    return data<T>()[0];
  }
  const void* raw() const {
    return buffer_ == nullptr ? nullptr : buffer_->data();
  }
  void* mutable_raw() { return buffer_ == nullptr ? nullptr : buffer_->data(); }
  Buffer* buffer() const { return buffer_; }

  // Whether this is the only tensor over its buffer, so that it may be written.
  bool unique() const { return buffer_ != nullptr && buffer_->unique(); }
  bool SharesBufferWith(const Tensor& other) const {
    return buffer_ != nullptr && buffer_ == other.buffer_;
  }

  // The same elements under another shape of the same size.
  Tensor Reshaped(const Shape& shape) const;
  // The same bytes as another type of the same element size.
  Tensor Bitcast(DType dtype) const;
  // Rows [begin, end) of the first dimension, sharing the buffer.
  Tensor Rows(int64_t begin, int64_t end) const;
  // A copy with a buffer of its own from the pool.
  Tensor Clone() const;
  // This tensor, or a clone if it is over memory that is only borrowed. What
  // outlives a step keeps only this.
  Tensor Owned() const {
    return buffer_ && buffer_->borrowed() ? Clone() : *this;
  }

  // "Tensor<type: float shape: [2,2] values: 1 2 3...>", for messages.
  std::string DebugString(int max_values = 3) const;

 private:
  Shape shape_;
  Buffer* buffer_ = nullptr;
  DType dtype_ = DType::kInvalid;
};

template <typename T>
Tensor Tensor::Of(const Shape& shape, std::span<const T> values) {
  Tensor tensor(DTypeOf<T>::value, shape);
  std::copy(values.begin(), values.end(), tensor.mutable_data<T>().begin());
  return tensor;
}

// Same type, shape and elements (floats by bits). For tests and pass folding.
bool TensorsEqual(const Tensor& a, const Tensor& b);

}  // namespace sluice
