// AddSign and PowerSign: larger steps while gradient and average agree.

#include "sluice/graph/op_registry.h"
#include "sluice/numeric/update_rules.h"
#include "sluice/ops/training/update.h"

namespace sluice {
namespace {
namespace sign_op {

struct AddSignUpdate {
  static constexpr std::array<std::string_view, 4> kScalars = {
      "lr", "alpha", "sign_decay", "beta"};
  template <typename T>
  using Rule = numeric::AddSignRule<T>;
  explicit AddSignUpdate(const KernelConstruction&) {}
  template <typename T>
  Rule<T> Make(const T* s) const {
    return {s[0], s[1], s[2], s[3]};
  }
};
template <typename T>
using AddSignKernel = UpdateKernel<T, AddSignUpdate>;

struct PowerSignUpdate {
  static constexpr std::array<std::string_view, 4> kScalars = {
      "lr", "logbase", "sign_decay", "beta"};
  template <typename T>
  using Rule = numeric::PowerSignRule<T>;
  explicit PowerSignUpdate(const KernelConstruction&) {}
  template <typename T>
  Rule<T> Make(const T* s) const {
    return {s[0], s[1], s[2], s[3]};
  }
};
template <typename T>
using PowerSignKernel = UpdateKernel<T, PowerSignUpdate>;

}  // namespace sign_op
}  // namespace

#define SLUICE_SIGN_OP(NAME, VAR, FACTOR) \
  SLUICE_OP(NAME)                         \
      .Input("var: " VAR)                 \
      .Input("m: " VAR)                   \
      .Input("lr: T")                     \
      .Input(FACTOR ": T")                \
      .Input("sign_decay: T")             \
      .Input("beta: T")                   \
      .Input("grad: T")                   \
      .Attr("T: numbertype")              \
      .Attr("use_locking: bool = false")  \
      .Shape(UpdateShape)
SLUICE_SIGN_OP(ApplyAddSign, "Ref(T)", "alpha").Output("out: Ref(T)");
SLUICE_SIGN_OP(ResourceApplyAddSign, "resource", "alpha").Stateful();
SLUICE_SIGN_OP(ApplyPowerSign, "Ref(T)", "logbase").Output("out: Ref(T)");
SLUICE_SIGN_OP(ResourceApplyPowerSign, "resource", "logbase").Stateful();
#undef SLUICE_SIGN_OP

SLUICE_DENSE_UPDATE_KERNELS(AddSign, sign_op::AddSignKernel);
SLUICE_DENSE_UPDATE_KERNELS(PowerSign, sign_op::PowerSignKernel);

}  // namespace sluice
