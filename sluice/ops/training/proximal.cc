// Proximal gradient descent and proximal Adagrad.

#include "sluice/graph/op_registry.h"
#include "sluice/numeric/update_rules.h"
#include "sluice/ops/training/update.h"

namespace sluice {
namespace {
namespace proximal_op {

struct DescentUpdate {
  static constexpr std::array<std::string_view, 3> kScalars = {"alpha", "l1",
                                                               "l2"};
  template <typename T>
  using Rule = numeric::ProximalGradientDescentRule<T>;
  explicit DescentUpdate(const KernelConstruction&) {}
  template <typename T>
  Rule<T> Make(const T* s) const {
    return {s[0], s[1], s[2]};
  }
};
template <typename T>
using DescentKernel = UpdateKernel<T, DescentUpdate>;

struct AdagradUpdate {
  static constexpr std::array<std::string_view, 3> kScalars = {"lr", "l1",
                                                               "l2"};
  template <typename T>
  using Rule = numeric::ProximalAdagradRule<T>;
  explicit AdagradUpdate(const KernelConstruction&) {}
  template <typename T>
  Rule<T> Make(const T* s) const {
    return {s[0], s[1], s[2]};
  }
};
template <typename T>
using AdagradKernel = UpdateKernel<T, AdagradUpdate>;

}  // namespace proximal_op
}  // namespace

#define SLUICE_PROXIMAL_DESCENT_OP(NAME, VAR) \
  SLUICE_OP(NAME)                             \
      .Input("var: " VAR)                     \
      .Input("alpha: T")                      \
      .Input("l1: T")                         \
      .Input("l2: T")                         \
      .Input("delta: T")                      \
      .Attr("T: numbertype")                  \
      .Attr("use_locking: bool = false")      \
      .Shape(UpdateShape)
SLUICE_PROXIMAL_DESCENT_OP(ApplyProximalGradientDescent, "Ref(T)")
    .Output("out: Ref(T)");
SLUICE_PROXIMAL_DESCENT_OP(ResourceApplyProximalGradientDescent, "resource")
    .Stateful();
#undef SLUICE_PROXIMAL_DESCENT_OP

#define SLUICE_SPARSE_PROXIMAL_DESCENT_OP(NAME, VAR) \
  SLUICE_OP(NAME)                                    \
      .Input("var: " VAR)                            \
      .Input("alpha: T")                             \
      .Input("l1: T")                                \
      .Input("l2: T")                                \
      .Input("grad: T")                              \
      .Input("indices: Tindices")                    \
      .Attr("T: numbertype")                         \
      .Attr("Tindices: {int32, int64}")              \
      .Attr("use_locking: bool = false")             \
      .Shape(UpdateShape)
SLUICE_SPARSE_PROXIMAL_DESCENT_OP(SparseApplyProximalGradientDescent, "Ref(T)")
    .Output("out: Ref(T)");
SLUICE_SPARSE_PROXIMAL_DESCENT_OP(ResourceSparseApplyProximalGradientDescent,
                                  "resource")
    .Stateful();
#undef SLUICE_SPARSE_PROXIMAL_DESCENT_OP

#define SLUICE_PROXIMAL_ADAGRAD_OP(NAME, VAR) \
  SLUICE_OP(NAME)                             \
      .Input("var: " VAR)                     \
      .Input("accum: " VAR)                   \
      .Input("lr: T")                         \
      .Input("l1: T")                         \
      .Input("l2: T")                         \
      .Input("grad: T")                       \
      .Attr("T: numbertype")                  \
      .Attr("use_locking: bool = false")      \
      .Shape(UpdateShape)
SLUICE_PROXIMAL_ADAGRAD_OP(ApplyProximalAdagrad, "Ref(T)")
    .Output("out: Ref(T)");
SLUICE_PROXIMAL_ADAGRAD_OP(ResourceApplyProximalAdagrad, "resource").Stateful();
#undef SLUICE_PROXIMAL_ADAGRAD_OP

#define SLUICE_SPARSE_PROXIMAL_ADAGRAD_OP(NAME, VAR) \
  SLUICE_OP(NAME)                                    \
      .Input("var: " VAR)                            \
      .Input("accum: " VAR)                          \
      .Input("lr: T")                                \
      .Input("l1: T")                                \
      .Input("l2: T")                                \
      .Input("grad: T")                              \
      .Input("indices: Tindices")                    \
      .Attr("T: numbertype")                         \
      .Attr("Tindices: {int32, int64}")              \
      .Attr("use_locking: bool = false")             \
      .Shape(UpdateShape)
SLUICE_SPARSE_PROXIMAL_ADAGRAD_OP(SparseApplyProximalAdagrad, "Ref(T)")
    .Output("out: Ref(T)");
SLUICE_SPARSE_PROXIMAL_ADAGRAD_OP(ResourceSparseApplyProximalAdagrad,
                                  "resource")
    .Stateful();
#undef SLUICE_SPARSE_PROXIMAL_ADAGRAD_OP

SLUICE_UPDATE_KERNELS(ProximalGradientDescent, proximal_op::DescentKernel);
SLUICE_UPDATE_KERNELS(ProximalAdagrad, proximal_op::AdagradKernel);

}  // namespace sluice
