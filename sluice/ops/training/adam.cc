// Adam, AMSGrad and AdaMax. The sparse form of Adam is made of other ops.

#include <cmath>

#include "sluice/graph/op_registry.h"
#include "sluice/numeric/update_rules.h"
#include "sluice/ops/training/update.h"

namespace sluice {
namespace {
namespace adam_op {

// The rate, corrected for averages that started at zero.
template <typename T>
T CorrectedRate(T rate, T beta1_power, T beta2_power) {
  return rate * std::sqrt(T(1) - beta2_power) / (T(1) - beta1_power);
}

struct AdamUpdate {
  static constexpr std::array<std::string_view, 6> kScalars = {
      "beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon"};
  template <typename T>
  using Rule = numeric::AdamRule<T>;
  explicit AdamUpdate(const KernelConstruction& node)
      : nesterov(node.attr<bool>("use_nesterov")) {}
  template <typename T>
  Rule<T> Make(const T* s) const {
    return {CorrectedRate(s[2], s[0], s[1]), s[3], s[4], s[5], nesterov};
  }
  const bool nesterov;
};
template <typename T>
using AdamKernel = UpdateKernel<T, AdamUpdate>;

struct AmsgradUpdate {
  static constexpr std::array<std::string_view, 6> kScalars =
      AdamUpdate::kScalars;
  template <typename T>
  using Rule = numeric::AmsgradRule<T>;
  explicit AmsgradUpdate(const KernelConstruction&) {}
  template <typename T>
  Rule<T> Make(const T* s) const {
    return {CorrectedRate(s[2], s[0], s[1]), s[3], s[4], s[5]};
  }
};
template <typename T>
using AmsgradKernel = UpdateKernel<T, AmsgradUpdate>;

struct AdaMaxUpdate {
  static constexpr std::array<std::string_view, 5> kScalars = {
      "beta1_power", "lr", "beta1", "beta2", "epsilon"};
  template <typename T>
  using Rule = numeric::AdaMaxRule<T>;
  explicit AdaMaxUpdate(const KernelConstruction&) {}
  template <typename T>
  Rule<T> Make(const T* s) const {
    return {s[1] / (T(1) - s[0]), s[2], s[3], s[4]};
  }
};
template <typename T>
using AdaMaxKernel = UpdateKernel<T, AdaMaxUpdate>;

}  // namespace adam_op
}  // namespace

#define SLUICE_ADAM_OP(NAME, VAR)         \
  SLUICE_OP(NAME)                         \
      .Input("var: " VAR)                 \
      .Input("m: " VAR)                   \
      .Input("v: " VAR)                   \
      .Input("beta1_power: T")            \
      .Input("beta2_power: T")            \
      .Input("lr: T")                     \
      .Input("beta1: T")                  \
      .Input("beta2: T")                  \
      .Input("epsilon: T")                \
      .Input("grad: T")                   \
      .Attr("T: numbertype")              \
      .Attr("use_locking: bool = false")  \
      .Attr("use_nesterov: bool = false") \
      .Shape(UpdateShape)
SLUICE_ADAM_OP(ApplyAdam, "Ref(T)").Output("out: Ref(T)");
SLUICE_ADAM_OP(ResourceApplyAdam, "resource").Stateful();
#undef SLUICE_ADAM_OP

SLUICE_OP(ResourceApplyAdamWithAmsgrad)
    .Input("var: resource")
    .Input("m: resource")
    .Input("v: resource")
    .Input("vhat: resource")
    .Input("beta1_power: T")
    .Input("beta2_power: T")
    .Input("lr: T")
    .Input("beta1: T")
    .Input("beta2: T")
    .Input("epsilon: T")
    .Input("grad: T")
    .Attr("T: numbertype")
    .Attr("use_locking: bool = false")
    .Stateful()
    .Shape(UpdateShape);

#define SLUICE_ADA_MAX_OP(NAME, VAR)     \
  SLUICE_OP(NAME)                        \
      .Input("var: " VAR)                \
      .Input("m: " VAR)                  \
      .Input("v: " VAR)                  \
      .Input("beta1_power: T")           \
      .Input("lr: T")                    \
      .Input("beta1: T")                 \
      .Input("beta2: T")                 \
      .Input("epsilon: T")               \
      .Input("grad: T")                  \
      .Attr("T: numbertype")             \
      .Attr("use_locking: bool = false") \
      .Shape(UpdateShape)
SLUICE_ADA_MAX_OP(ApplyAdaMax, "Ref(T)").Output("out: Ref(T)");
SLUICE_ADA_MAX_OP(ResourceApplyAdaMax, "resource").Stateful();
#undef SLUICE_ADA_MAX_OP

SLUICE_DENSE_UPDATE_KERNELS(Adam, adam_op::AdamKernel);
SLUICE_DENSE_UPDATE_KERNELS(AdaMax, adam_op::AdaMaxKernel);
SLUICE_KERNEL(ResourceApplyAdamWithAmsgrad, kCpu)
    .ClassForTypes<TrainedTypes, adam_op::AmsgradKernel>("T");

}  // namespace sluice
