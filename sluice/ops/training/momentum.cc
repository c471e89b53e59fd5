// Gradient descent, with and without momentum.

#include "sluice/graph/op_registry.h"
#include "sluice/numeric/update_rules.h"
#include "sluice/ops/training/update.h"

namespace sluice {
namespace {
namespace momentum_op {

struct DescentUpdate {
  static constexpr std::array<std::string_view, 1> kScalars = {"alpha"};
  template <typename T>
  using Rule = numeric::GradientDescentRule<T>;
  explicit DescentUpdate(const KernelConstruction&) {}
  template <typename T>
  Rule<T> Make(const T* s) const {
    return {s[0]};
  }
};
template <typename T>
using DescentKernel = UpdateKernel<T, DescentUpdate>;

template <template <typename> class R>
struct MomentumUpdate {
  static constexpr std::array<std::string_view, 2> kScalars = {"lr",
                                                               "momentum"};
  template <typename T>
  using Rule = R<T>;
  explicit MomentumUpdate(const KernelConstruction& node)
      : nesterov(node.attr<bool>("use_nesterov")) {}
  template <typename T>
  Rule<T> Make(const T* s) const {
    return {s[0], s[1], nesterov};
  }
  const bool nesterov;
};
template <typename T>
using MomentumKernel = UpdateKernel<T, MomentumUpdate<numeric::MomentumRule>>;
template <typename T>
using KerasKernel = UpdateKernel<T, MomentumUpdate<numeric::KerasMomentumRule>>;

}  // namespace momentum_op
}  // namespace

#define SLUICE_DESCENT_OP(NAME, VAR)     \
  SLUICE_OP(NAME)                        \
      .Input("var: " VAR)                \
      .Input("alpha: T")                 \
      .Input("delta: T")                 \
      .Attr("T: numbertype")             \
      .Attr("use_locking: bool = false") \
      .Shape(UpdateShape)
SLUICE_DESCENT_OP(ApplyGradientDescent, "Ref(T)").Output("out: Ref(T)");
SLUICE_DESCENT_OP(ResourceApplyGradientDescent, "resource").Stateful();
#undef SLUICE_DESCENT_OP

#define SLUICE_MOMENTUM_OP(NAME, VAR)     \
  SLUICE_OP(NAME)                         \
      .Input("var: " VAR)                 \
      .Input("accum: " VAR)               \
      .Input("lr: T")                     \
      .Input("grad: T")                   \
      .Input("momentum: T")               \
      .Attr("T: numbertype")              \
      .Attr("use_locking: bool = false")  \
      .Attr("use_nesterov: bool = false") \
      .Shape(UpdateShape)
SLUICE_MOMENTUM_OP(ApplyMomentum, "Ref(T)").Output("out: Ref(T)");
SLUICE_MOMENTUM_OP(ResourceApplyMomentum, "resource").Stateful();
SLUICE_MOMENTUM_OP(ResourceApplyKerasMomentum, "resource").Stateful();
#undef SLUICE_MOMENTUM_OP

#define SLUICE_SPARSE_MOMENTUM_OP(NAME, VAR) \
  SLUICE_OP(NAME)                            \
      .Input("var: " VAR)                    \
      .Input("accum: " VAR)                  \
      .Input("lr: T")                        \
      .Input("grad: T")                      \
      .Input("indices: Tindices")            \
      .Input("momentum: T")                  \
      .Attr("T: numbertype")                 \
      .Attr("Tindices: {int32, int64}")      \
      .Attr("use_locking: bool = false")     \
      .Attr("use_nesterov: bool = false")    \
      .Shape(UpdateShape)
SLUICE_SPARSE_MOMENTUM_OP(SparseApplyMomentum, "Ref(T)").Output("out: Ref(T)");
SLUICE_SPARSE_MOMENTUM_OP(ResourceSparseApplyMomentum, "resource").Stateful();
SLUICE_SPARSE_MOMENTUM_OP(ResourceSparseApplyKerasMomentum, "resource")
    .Stateful();
#undef SLUICE_SPARSE_MOMENTUM_OP

SLUICE_DENSE_UPDATE_KERNELS(GradientDescent, momentum_op::DescentKernel);
SLUICE_UPDATE_KERNELS(Momentum, momentum_op::MomentumKernel);
SLUICE_KERNEL(ResourceApplyKerasMomentum, kCpu)
    .ClassForTypes<TrainedTypes, momentum_op::KerasKernel>("T");
SLUICE_KERNEL(ResourceSparseApplyKerasMomentum, kCpu)
    .ClassForTypes<TrainedTypes, momentum_op::KerasKernel>("T");

}  // namespace sluice
