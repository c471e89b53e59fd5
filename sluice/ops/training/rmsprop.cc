// RMSProp, its centred form, and Adadelta.

#include "sluice/graph/op_registry.h"
#include "sluice/numeric/update_rules.h"
#include "sluice/ops/training/update.h"

namespace sluice {
namespace {
namespace rmsprop_op {

template <template <typename> class R>
struct RmsPropUpdate {
  static constexpr std::array<std::string_view, 4> kScalars = {
      "lr", "rho", "momentum", "epsilon"};
  template <typename T>
  using Rule = R<T>;
  explicit RmsPropUpdate(const KernelConstruction& node)
      : sparse(node.node().attrs().Contains("Tindices")) {}
  template <typename T>
  Rule<T> Make(const T* s) const {
    return {s[0], s[1], s[2], s[3], sparse};
  }
  const bool sparse;
};
template <typename T>
using RmsPropKernel = UpdateKernel<T, RmsPropUpdate<numeric::RmsPropRule>>;
template <typename T>
using CenteredKernel =
    UpdateKernel<T, RmsPropUpdate<numeric::CenteredRmsPropRule>>;

struct AdadeltaUpdate {
  static constexpr std::array<std::string_view, 3> kScalars = {"lr", "rho",
                                                               "epsilon"};
  template <typename T>
  using Rule = numeric::AdadeltaRule<T>;
  explicit AdadeltaUpdate(const KernelConstruction&) {}
  template <typename T>
  Rule<T> Make(const T* s) const {
    return {s[0], s[1], s[2]};
  }
};
template <typename T>
using AdadeltaKernel = UpdateKernel<T, AdadeltaUpdate>;

}  // namespace rmsprop_op
}  // namespace

#define SLUICE_RMS_PROP_OP(NAME, VAR)    \
  SLUICE_OP(NAME)                        \
      .Input("var: " VAR)                \
      .Input("ms: " VAR)                 \
      .Input("mom: " VAR)                \
      .Input("lr: T")                    \
      .Input("rho: T")                   \
      .Input("momentum: T")              \
      .Input("epsilon: T")               \
      .Input("grad: T")                  \
      .Attr("T: numbertype")             \
      .Attr("use_locking: bool = false") \
      .Shape(UpdateShape)
SLUICE_RMS_PROP_OP(ApplyRMSProp, "Ref(T)").Output("out: Ref(T)");
SLUICE_RMS_PROP_OP(ResourceApplyRMSProp, "resource").Stateful();
#undef SLUICE_RMS_PROP_OP

#define SLUICE_SPARSE_RMS_PROP_OP(NAME, VAR) \
  SLUICE_OP(NAME)                            \
      .Input("var: " VAR)                    \
      .Input("ms: " VAR)                     \
      .Input("mom: " VAR)                    \
      .Input("lr: T")                        \
      .Input("rho: T")                       \
      .Input("momentum: T")                  \
      .Input("epsilon: T")                   \
      .Input("grad: T")                      \
      .Input("indices: Tindices")            \
      .Attr("T: numbertype")                 \
      .Attr("Tindices: {int32, int64}")      \
      .Attr("use_locking: bool = false")     \
      .Shape(UpdateShape)
SLUICE_SPARSE_RMS_PROP_OP(SparseApplyRMSProp, "Ref(T)").Output("out: Ref(T)");
SLUICE_SPARSE_RMS_PROP_OP(ResourceSparseApplyRMSProp, "resource").Stateful();
#undef SLUICE_SPARSE_RMS_PROP_OP

#define SLUICE_CENTERED_OP(NAME, VAR)    \
  SLUICE_OP(NAME)                        \
      .Input("var: " VAR)                \
      .Input("mg: " VAR)                 \
      .Input("ms: " VAR)                 \
      .Input("mom: " VAR)                \
      .Input("lr: T")                    \
      .Input("rho: T")                   \
      .Input("momentum: T")              \
      .Input("epsilon: T")               \
      .Input("grad: T")                  \
      .Attr("T: numbertype")             \
      .Attr("use_locking: bool = false") \
      .Shape(UpdateShape)
SLUICE_CENTERED_OP(ApplyCenteredRMSProp, "Ref(T)").Output("out: Ref(T)");
SLUICE_CENTERED_OP(ResourceApplyCenteredRMSProp, "resource").Stateful();
#undef SLUICE_CENTERED_OP

#define SLUICE_SPARSE_CENTERED_OP(NAME, VAR) \
  SLUICE_OP(NAME)                            \
      .Input("var: " VAR)                    \
      .Input("mg: " VAR)                     \
      .Input("ms: " VAR)                     \
      .Input("mom: " VAR)                    \
      .Input("lr: T")                        \
      .Input("rho: T")                       \
      .Input("momentum: T")                  \
      .Input("epsilon: T")                   \
      .Input("grad: T")                      \
      .Input("indices: Tindices")            \
      .Attr("T: numbertype")                 \
      .Attr("Tindices: {int32, int64}")      \
      .Attr("use_locking: bool = false")     \
      .Shape(UpdateShape)
SLUICE_SPARSE_CENTERED_OP(SparseApplyCenteredRMSProp, "Ref(T)")
    .Output("out: Ref(T)");
SLUICE_SPARSE_CENTERED_OP(ResourceSparseApplyCenteredRMSProp, "resource")
    .Stateful();
#undef SLUICE_SPARSE_CENTERED_OP

#define SLUICE_ADADELTA_OP(NAME, VAR)    \
  SLUICE_OP(NAME)                        \
      .Input("var: " VAR)                \
      .Input("accum: " VAR)              \
      .Input("accum_update: " VAR)       \
      .Input("lr: T")                    \
      .Input("rho: T")                   \
      .Input("epsilon: T")               \
      .Input("grad: T")                  \
      .Attr("T: numbertype")             \
      .Attr("use_locking: bool = false") \
      .Shape(UpdateShape)
SLUICE_ADADELTA_OP(ApplyAdadelta, "Ref(T)").Output("out: Ref(T)");
SLUICE_ADADELTA_OP(ResourceApplyAdadelta, "resource").Stateful();
#undef SLUICE_ADADELTA_OP

#define SLUICE_SPARSE_ADADELTA_OP(NAME, VAR) \
  SLUICE_OP(NAME)                            \
      .Input("var: " VAR)                    \
      .Input("accum: " VAR)                  \
      .Input("accum_update: " VAR)           \
      .Input("lr: T")                        \
      .Input("rho: T")                       \
      .Input("epsilon: T")                   \
      .Input("grad: T")                      \
      .Input("indices: Tindices")            \
      .Attr("T: numbertype")                 \
      .Attr("Tindices: {int32, int64}")      \
      .Attr("use_locking: bool = false")     \
      .Shape(UpdateShape)
SLUICE_SPARSE_ADADELTA_OP(SparseApplyAdadelta, "Ref(T)").Output("out: Ref(T)");
SLUICE_SPARSE_ADADELTA_OP(ResourceSparseApplyAdadelta, "resource").Stateful();
#undef SLUICE_SPARSE_ADADELTA_OP

SLUICE_UPDATE_KERNELS(RMSProp, rmsprop_op::RmsPropKernel);
SLUICE_UPDATE_KERNELS(CenteredRMSProp, rmsprop_op::CenteredKernel);
SLUICE_UPDATE_KERNELS(Adadelta, rmsprop_op::AdadeltaKernel);

}  // namespace sluice
