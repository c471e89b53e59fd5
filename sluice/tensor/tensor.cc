#include "sluice/tensor/tensor.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <sstream>

#include "absl/strings/escaping.h"
#include "sluice/base/status.h"

namespace sluice {
namespace {

template <typename T>
void DestroyElements(Buffer* buffer) {
  T* elements = static_cast<T*>(buffer->data());
  std::destroy_n(elements, buffer->size() / sizeof(T));
}

template <typename T>
Buffer* AllocateObjects(int64_t count) {
  size_t bytes;
  if (__builtin_mul_overflow(sizeof(T), size_t(count), &bytes)) return nullptr;
  Buffer* buffer = Buffer::Allocate(bytes);
  if (buffer == nullptr) return nullptr;
  std::uninitialized_value_construct_n(static_cast<T*>(buffer->data()), count);
  buffer->set_destroy(DestroyElements<T>);
  return buffer;
}

Buffer* AllocateFor(DType dtype, int64_t count) {
  if (count == Shape::kTooMany) return nullptr;
  if (dtype == DType::kString) return AllocateObjects<std::string>(count);
  if (dtype == DType::kResource) return AllocateObjects<ResourceHandle>(count);
  const size_t element = ElementSize(dtype);
  size_t bytes;
  if (element == 0 || __builtin_mul_overflow(element, size_t(count), &bytes)) {
    return nullptr;
  }
  return Buffer::Allocate(bytes);
}

size_t StoredSize(DType dtype) {
  if (dtype == DType::kString) return sizeof(std::string);
  if (dtype == DType::kResource) return sizeof(ResourceHandle);
  return ElementSize(dtype);
}

}  // namespace

Tensor::Tensor(DType dtype, const Shape& shape)
    : shape_(shape), buffer_(AllocateFor(dtype, shape.size())) {
  if (buffer_ != nullptr) dtype_ = dtype;
}

absl::StatusOr<Tensor> Tensor::Create(DType dtype, const Shape& shape) {
  Tensor tensor(dtype, shape);
  if (tensor.initialized()) return tensor;
  if (StoredSize(dtype) == 0) {
    return Unimplemented("Tensors of type ", DTypeName(dtype),
                         " cannot be stored");
  }
  return ResourceExhausted("OOM when allocating tensor with shape",
                           shape.DebugString(), " and type ", DTypeName(dtype));
}

absl::StatusOr<Tensor> Tensor::Zeros(DType dtype, const Shape& shape) {
  SLUICE_ASSIGN_OR_RETURN(Tensor tensor, Create(dtype, shape));
  if (tensor.bytes() > 0) std::memset(tensor.mutable_raw(), 0, tensor.bytes());
  return tensor;
}

Tensor Tensor::FromBuffer(DType dtype, const Shape& shape, Buffer* buffer) {
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.shape_ = shape;
  tensor.buffer_ = buffer;
  return tensor;
}

Tensor Tensor::Reshaped(const Shape& shape) const {
  if (buffer_ != nullptr) buffer_->Ref();
  return FromBuffer(dtype_, shape, buffer_);
}

Tensor Tensor::Bitcast(DType dtype) const {
  Tensor tensor = *this;
  tensor.dtype_ = dtype;
  return tensor;
}

Tensor Tensor::Rows(int64_t begin, int64_t end) const {
  Shape shape = shape_;
  shape.SetDim(0, end - begin);
  const int64_t row = dim(0) == 0 ? 0 : size() / dim(0);
  const size_t element = StoredSize(dtype_);
  return FromBuffer(dtype_, shape,
                    Buffer::View(buffer_, begin * row * element,
                                 (end - begin) * row * element));
}

Tensor Tensor::Clone() const {
  Tensor copy(dtype_, shape_);
  if (!copy.initialized()) return copy;
  if (dtype_ == DType::kString) {
    std::ranges::copy(data<std::string>(),
                      copy.mutable_data<std::string>().begin());
  } else if (dtype_ == DType::kResource) {
    std::ranges::copy(data<ResourceHandle>(),
                      copy.mutable_data<ResourceHandle>().begin());
  } else if (bytes() > 0) {
    std::memcpy(copy.mutable_raw(), raw(), bytes());
  }
  return copy;
}

namespace {

// Of a string element; a message should stay readable.
constexpr size_t kShownBytes = 80;

template <typename T>
void Print(std::ostream& out, const T& value) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    out << float(value);
  } else if constexpr (sizeof(T) == 1) {
    out << int(value);
  } else if constexpr (std::is_same_v<T, ResourceHandle>) {
    out << value.container << '/' << value.name;
  } else if constexpr (std::is_same_v<T, std::string>) {
    out << absl::CEscape(value.substr(0, kShownBytes));
  } else {
    out << value;
  }
}

}  // namespace

std::string Tensor::DebugString(int max_values) const {
  if (!initialized()) return "Tensor<uninitialized>";
  std::ostringstream out;
  out << "Tensor<type: " << DTypeName(dtype_)
      << " shape: " << shape_.DebugString() << " values:";
  const int64_t shown = std::min<int64_t>(size(), max_values);
  switch (dtype_) {
#define SLUICE_PRINT(name, cpp)           \
  case DType::name:                       \
    for (int64_t i = 0; i < shown; ++i) { \
      out << ' ';                         \
      Print(out, data<cpp>()[i]);         \
    }                                     \
    break;
    SLUICE_FOR_EACH_STORED_TYPE(SLUICE_PRINT)
#undef SLUICE_PRINT
    default:
      break;
  }
  if (shown < size()) out << "...";
  out << '>';
  return out.str();
}

bool TensorsEqual(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.initialized() != b.initialized()) return false;
  if (a.dtype() == DType::kString) {
    return std::ranges::equal(a.data<std::string>(), b.data<std::string>());
  }
  if (a.dtype() == DType::kResource) {
    return std::ranges::equal(a.data<ResourceHandle>(),
                              b.data<ResourceHandle>());
  }
  return a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

}  // namespace sluice
