#include "sluice/ops/control_flow/tensor_array.h"

#include <algorithm>

#include "sluice/base/status.h"
#include "sluice/numeric/add_n.h"

namespace sluice {

namespace {

template <typename T>
void AddInto(const Tensor& a, const Tensor& b, Tensor* sum) {
  const T* terms[] = {a.data<T>().data(), b.data<T>().data()};
  numeric::AddN<T>(sum->mutable_data<T>().data(), terms, a.size());
}

absl::StatusOr<Tensor> SumOf(const Tensor& a, const Tensor& b) {
  SLUICE_ASSIGN_OR_RETURN(Tensor sum, Tensor::Zeros(a.dtype(), a.shape()));
  switch (a.dtype()) {
    case DType::kFloat:
      AddInto<float>(a, b, &sum);
      return sum;
    case DType::kDouble:
      AddInto<double>(a, b, &sum);
      return sum;
    case DType::kInt32:
      AddInto<int32_t>(a, b, &sum);
      return sum;
    case DType::kInt64:
      AddInto<int64_t>(a, b, &sum);
      return sum;
    default:
      return Unimplemented("TensorArray gradients of ", DTypeName(a.dtype()),
                           " cannot be summed");
  }
}

}  // namespace

TensorArray::TensorArray(std::string name, int64_t size, Options options)
    : name_(std::move(name)),
      options_(std::move(options)),
      grows_(options_.dynamic_size),
      element_shape_(options_.element_shape),
      elements_(size) {}

std::string TensorArray::DebugString() const {
  MutexLock lock(mu_);
  return StrCat("TensorArray[", elements_.size(), "]");
}

PartialShape TensorArray::element_shape() const {
  MutexLock lock(mu_);
  return element_shape_;
}

absl::Status TensorArray::CheckOpen() const {
  if (!closed_) return absl::OkStatus();
  return InvalidArgument("TensorArray ", name_, " has already been closed.");
}

absl::StatusOr<int64_t> TensorArray::size() const {
  MutexLock lock(mu_);
  SLUICE_RETURN_IF_ERROR(CheckOpen());
  return static_cast<int64_t>(elements_.size());
}

void TensorArray::Close() {
  MutexLock lock(mu_);
  closed_ = true;
  elements_.clear();
}

void TensorArray::StopGrowing() {
  MutexLock lock(mu_);
  grows_ = false;
}

absl::Status TensorArray::CheckShape(int64_t index, const Tensor& value) {
  const PartialShape shape = PartialShape(value.shape());
  absl::StatusOr<PartialShape> merged = element_shape_.MergeWith(shape);
  if (!merged.ok()) {
    return InvalidArgument(
        "TensorArray ", name_, ": Could not write to TensorArray index ", index,
        " because the value shape is ", value.shape().DebugString(),
        " which is incompatible with the TensorArray's inferred element "
        "shape: ",
        element_shape_.DebugString(), " (consider setting infer_shape=False).");
  }
  if (options_.identical_shapes) element_shape_ = *std::move(merged);
  return absl::OkStatus();
}

absl::Status TensorArray::Sum(Element* element, int64_t index,
                              const Tensor& value) {
  if (!options_.sums_writes) {
    return InvalidArgument("TensorArray ", name_,
                           ": Could not write to TensorArray index ", index,
                           " because it has already been written to.");
  }
  if (element->value.shape() != value.shape()) {
    return InvalidArgument(
        "TensorArray ", name_, ": Could not aggregate to TensorArray index ",
        index, " because the existing shape is ",
        element->value.shape().DebugString(), " but the new input shape is ",
        value.shape().DebugString(), ".");
  }
  SLUICE_ASSIGN_OR_RETURN(element->value, SumOf(element->value, value));
  return absl::OkStatus();
}

absl::Status TensorArray::Write(int64_t index, const Tensor& value) {
  MutexLock lock(mu_);
  SLUICE_RETURN_IF_ERROR(CheckOpen());
  const auto size = static_cast<int64_t>(elements_.size());
  if (index < 0 || (index >= size && !grows_)) {
    return InvalidArgument("TensorArray ", name_, ": Tried to write to index ",
                           index,
                           " but array is not resizeable and size is: ", size);
  }
  if (value.dtype() != options_.type) {
    return InvalidArgument(
        "TensorArray ", name_, ": Could not write to TensorArray index ", index,
        " because the value dtype is ", DTypeName(value.dtype()),
        " but TensorArray dtype is ", DTypeName(options_.type), ".");
  }
  SLUICE_RETURN_IF_ERROR(CheckShape(index, value));
  if (index >= size) {
    // One at a time would copy all elements every time.
    if (index >= static_cast<int64_t>(elements_.capacity())) {
      elements_.reserve(2 * (index + 1));
    }
    elements_.resize(index + 1);
  }
  Element& element = elements_[index];
  if (element.read) {
    return InvalidArgument("TensorArray ", name_,
                           ": Could not write to TensorArray index ", index,
                           " because it has already been read.");
  }
  if (element.written) return Sum(&element, index, value);
  element.value = value;
  element.shape = PartialShape(value.shape());
  element.written = true;
  return absl::OkStatus();
}

absl::StatusOr<Tensor> TensorArray::Read(int64_t index) {
  MutexLock lock(mu_);
  SLUICE_RETURN_IF_ERROR(CheckOpen());
  if (index < 0 || index >= static_cast<int64_t>(elements_.size())) {
    return InvalidArgument("Tried to read from index ", index,
                           " but array size is: ", elements_.size());
  }
  Element& element = elements_[index];
  if (element.cleared) {
    return InvalidArgument("TensorArray ", name_, ": Could not read index ",
                           index,
                           " twice because it was cleared after a previous "
                           "read (perhaps try setting clear_after_read = "
                           "false?)");
  }
  if (!element.written) {
    const PartialShape& shape =
        element.shape.FullyDefined() ? element.shape : element_shape_;
    if (!shape.FullyDefined()) {
      return InvalidArgument(
          "TensorArray ", name_, ": Could not read from TensorArray index ",
          index, ".  Furthermore, the element shape is not fully defined: ",
          element_shape_.DebugString(),
          ".  It is possible you are working with a resizeable TensorArray and "
          "stop_gradients is not allowing the gradients to be written.  If you "
          "set the full element_shape property on the forward TensorArray, the "
          "proper all-zeros tensor will be returned instead of incurring this "
          "error.");
    }
    SLUICE_ASSIGN_OR_RETURN(element.value,
                            Tensor::Zeros(options_.type, shape.AsShape()));
  }
  Tensor value = element.value;
  element.read = true;
  if (options_.clear_after_read) {
    element.value = Tensor();
    element.cleared = true;
  }
  return value;
}

absl::StatusOr<RefPtr<TensorArray>> TensorArray::Gradient(
    const std::string& name) const {
  MutexLock lock(mu_);
  SLUICE_RETURN_IF_ERROR(CheckOpen());
  Options options;
  options.type = options_.type;
  options.element_shape = element_shape_;
  options.clear_after_read = false;
  options.identical_shapes = options_.identical_shapes;
  options.sums_writes = true;
  auto gradient = MakeRef<TensorArray>(
      name, static_cast<int64_t>(elements_.size()), std::move(options));
  MutexLock other(gradient->mu_);
  for (size_t i = 0; i < elements_.size(); ++i) {
    gradient->elements_[i].shape = elements_[i].shape;
  }
  return gradient;
}

}  // namespace sluice
