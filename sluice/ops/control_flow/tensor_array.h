// TensorArray: tensors by index, each written once, that live as long as the
// step. Loops read and write one element an iteration.
#pragma once

#include <string>
#include <vector>

#include "sluice/kernel/kernel.h"
#include "sluice/kernel/resource.h"

namespace sluice {

inline constexpr char kTensorArrayType[] = "N10tensorflow11TensorArrayE";

// Thread-safe.
class TensorArray : public Resource {
 public:
  struct Options {
    DType type = DType::kInvalid;
    PartialShape element_shape;
    bool dynamic_size = false;
    bool clear_after_read = true;
    bool identical_shapes = false;
    // Of gradients: what is written to an index twice is summed.
    bool sums_writes = false;
  };
  TensorArray(std::string name, int64_t size, Options options);

  std::string DebugString() const override;
  const std::string& name() const { return name_; }
  DType type() const { return options_.type; }
  bool clears_after_read() const { return options_.clear_after_read; }
  PartialShape element_shape() const;

  absl::StatusOr<int64_t> size() const;
  absl::Status Write(int64_t index, const Tensor& value);
  // Zeros for what was not written but has a known shape.
  absl::StatusOr<Tensor> Read(int64_t index);
  void Close();

  // The array of gradients that `source` names: as large as this one, which
  // stops growing. It may have been made before.
  absl::StatusOr<RefPtr<TensorArray>> Gradient(const std::string& name) const;
  void StopGrowing();

 private:
  struct Element {
    Tensor value;
    PartialShape shape;  // As written, or as known from the forward array.
    bool written = false;
    bool read = false;
    bool cleared = false;
  };
  absl::Status CheckOpen() const SLUICE_REQUIRES(mu_);
  absl::Status CheckShape(int64_t index, const Tensor& value)
      SLUICE_REQUIRES(mu_);
  absl::Status Sum(Element* element, int64_t index, const Tensor& value)
      SLUICE_REQUIRES(mu_);

  const std::string name_;
  const Options options_;
  mutable Mutex mu_;
  bool closed_ SLUICE_GUARDED_BY(mu_) = false;
  bool grows_ SLUICE_GUARDED_BY(mu_);
  PartialShape element_shape_ SLUICE_GUARDED_BY(mu_);
  std::vector<Element> elements_ SLUICE_GUARDED_BY(mu_);
};

}  // namespace sluice
