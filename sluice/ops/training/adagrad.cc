// Adagrad, its form with epsilon, and Adagrad with dual averaging.

#include "sluice/graph/op_registry.h"
#include "sluice/numeric/update_rules.h"
#include "sluice/ops/training/update.h"

namespace sluice {
namespace {
namespace adagrad_op {

struct AdagradUpdate {
  static constexpr std::array<std::string_view, 1> kScalars = {"lr"};
  template <typename T>
  using Rule = numeric::AdagradRule<T>;
  explicit AdagradUpdate(const KernelConstruction& node)
      : update_slots(node.attr<bool>("update_slots")) {}
  template <typename T>
  Rule<T> Make(const T* s) const {
    return {s[0], update_slots};
  }
  const bool update_slots;
};
template <typename T>
using AdagradKernel = UpdateKernel<T, AdagradUpdate>;

struct AdagradV2Update {
  static constexpr std::array<std::string_view, 2> kScalars = {"lr", "epsilon"};
  template <typename T>
  using Rule = numeric::AdagradV2Rule<T>;
  explicit AdagradV2Update(const KernelConstruction& node)
      : update_slots(node.attr<bool>("update_slots")) {}
  template <typename T>
  Rule<T> Make(const T* s) const {
    return {s[0], s[1], update_slots};
  }
  const bool update_slots;
};
template <typename T>
using AdagradV2Kernel = UpdateKernel<T, AdagradV2Update>;

struct AdagradDaUpdate {
  static constexpr std::array<std::string_view, 4> kScalars = {"lr", "l1", "l2",
                                                               "global_step"};
  template <typename T>
  using Rule = numeric::AdagradDaRule<T>;
  explicit AdagradDaUpdate(const KernelConstruction&) {}
  template <typename T>
  Rule<T> Make(const T* s) const {
    return {s[0], s[1], s[2], s[3]};
  }
};
template <typename T>
using AdagradDaKernel = UpdateKernel<T, AdagradDaUpdate>;

}  // namespace adagrad_op
}  // namespace

#define SLUICE_ADAGRAD_OP(NAME, VAR)     \
  SLUICE_OP(NAME)                        \
      .Input("var: " VAR)                \
      .Input("accum: " VAR)              \
      .Input("lr: T")                    \
      .Input("grad: T")                  \
      .Attr("T: numbertype")             \
      .Attr("use_locking: bool = false") \
      .Attr("update_slots: bool = true") \
      .Shape(UpdateShape)
SLUICE_ADAGRAD_OP(ApplyAdagrad, "Ref(T)").Output("out: Ref(T)");
SLUICE_ADAGRAD_OP(ResourceApplyAdagrad, "resource").Stateful();
#undef SLUICE_ADAGRAD_OP

#define SLUICE_SPARSE_ADAGRAD_OP(NAME, VAR) \
  SLUICE_OP(NAME)                           \
      .Input("var: " VAR)                   \
      .Input("accum: " VAR)                 \
      .Input("lr: T")                       \
      .Input("grad: T")                     \
      .Input("indices: Tindices")           \
      .Attr("T: numbertype")                \
      .Attr("Tindices: {int32, int64}")     \
      .Attr("use_locking: bool = false")    \
      .Attr("update_slots: bool = true")    \
      .Shape(UpdateShape)
SLUICE_SPARSE_ADAGRAD_OP(SparseApplyAdagrad, "Ref(T)").Output("out: Ref(T)");
SLUICE_SPARSE_ADAGRAD_OP(ResourceSparseApplyAdagrad, "resource").Stateful();
#undef SLUICE_SPARSE_ADAGRAD_OP

#define SLUICE_ADAGRAD_V2_OP(NAME, VAR)  \
  SLUICE_OP(NAME)                        \
      .Input("var: " VAR)                \
      .Input("accum: " VAR)              \
      .Input("lr: T")                    \
      .Input("epsilon: T")               \
      .Input("grad: T")                  \
      .Attr("T: numbertype")             \
      .Attr("use_locking: bool = false") \
      .Attr("update_slots: bool = true") \
      .Shape(UpdateShape)
SLUICE_ADAGRAD_V2_OP(ApplyAdagradV2, "Ref(T)").Output("out: Ref(T)");
SLUICE_ADAGRAD_V2_OP(ResourceApplyAdagradV2, "resource").Stateful();
#undef SLUICE_ADAGRAD_V2_OP

#define SLUICE_SPARSE_ADAGRAD_V2_OP(NAME, VAR) \
  SLUICE_OP(NAME)                              \
      .Input("var: " VAR)                      \
      .Input("accum: " VAR)                    \
      .Input("lr: T")                          \
      .Input("epsilon: T")                     \
      .Input("grad: T")                        \
      .Input("indices: Tindices")              \
      .Attr("T: numbertype")                   \
      .Attr("Tindices: {int32, int64}")        \
      .Attr("use_locking: bool = false")       \
      .Attr("update_slots: bool = true")       \
      .Shape(UpdateShape)
SLUICE_SPARSE_ADAGRAD_V2_OP(SparseApplyAdagradV2, "Ref(T)")
    .Output("out: Ref(T)");
SLUICE_SPARSE_ADAGRAD_V2_OP(ResourceSparseApplyAdagradV2, "resource")
    .Stateful();
#undef SLUICE_SPARSE_ADAGRAD_V2_OP

#define SLUICE_ADAGRAD_DA_OP(NAME, VAR)            \
  SLUICE_OP(NAME)                                  \
      .Input("var: " VAR)                          \
      .Input("gradient_accumulator: " VAR)         \
      .Input("gradient_squared_accumulator: " VAR) \
      .Input("grad: T")                            \
      .Input("lr: T")                              \
      .Input("l1: T")                              \
      .Input("l2: T")                              \
      .Input("global_step: int64")                 \
      .Attr("T: numbertype")                       \
      .Attr("use_locking: bool = false")           \
      .Shape(UpdateShape)
SLUICE_ADAGRAD_DA_OP(ApplyAdagradDA, "Ref(T)").Output("out: Ref(T)");
SLUICE_ADAGRAD_DA_OP(ResourceApplyAdagradDA, "resource").Stateful();
#undef SLUICE_ADAGRAD_DA_OP

#define SLUICE_SPARSE_ADAGRAD_DA_OP(NAME, VAR)     \
  SLUICE_OP(NAME)                                  \
      .Input("var: " VAR)                          \
      .Input("gradient_accumulator: " VAR)         \
      .Input("gradient_squared_accumulator: " VAR) \
      .Input("grad: T")                            \
      .Input("indices: Tindices")                  \
      .Input("lr: T")                              \
      .Input("l1: T")                              \
      .Input("l2: T")                              \
      .Input("global_step: int64")                 \
      .Attr("T: numbertype")                       \
      .Attr("Tindices: {int32, int64}")            \
      .Attr("use_locking: bool = false")           \
      .Shape(UpdateShape)
SLUICE_SPARSE_ADAGRAD_DA_OP(SparseApplyAdagradDA, "Ref(T)")
    .Output("out: Ref(T)");
SLUICE_SPARSE_ADAGRAD_DA_OP(ResourceSparseApplyAdagradDA, "resource")
    .Stateful();
#undef SLUICE_SPARSE_ADAGRAD_DA_OP

SLUICE_UPDATE_KERNELS(Adagrad, adagrad_op::AdagradKernel);
SLUICE_UPDATE_KERNELS(AdagradV2, adagrad_op::AdagradV2Kernel);
SLUICE_UPDATE_KERNELS(AdagradDA, adagrad_op::AdagradDaKernel);

}  // namespace sluice
