// FTRL-proximal, without and with shrinkage.

#include "sluice/graph/op_registry.h"
#include "sluice/numeric/update_rules.h"
#include "sluice/ops/training/update.h"

namespace sluice {
namespace {
namespace ftrl_op {

struct FtrlUpdate {
  static constexpr std::array<std::string_view, 4> kScalars = {"lr", "l1", "l2",
                                                               "lr_power"};
  template <typename T>
  using Rule = numeric::FtrlRule<T>;
  explicit FtrlUpdate(const KernelConstruction&) {}
  template <typename T>
  Rule<T> Make(const T* s) const {
    return {s[0], s[1], s[2], T(0), s[3]};
  }
};
template <typename T>
using FtrlKernel = UpdateKernel<T, FtrlUpdate>;

struct FtrlV2Update {
  static constexpr std::array<std::string_view, 5> kScalars = {
      "lr", "l1", "l2", "l2_shrinkage", "lr_power"};
  template <typename T>
  using Rule = numeric::FtrlRule<T>;
  explicit FtrlV2Update(const KernelConstruction&) {}
  template <typename T>
  Rule<T> Make(const T* s) const {
    return {s[0], s[1], s[2], s[3], s[4]};
  }
};
template <typename T>
using FtrlV2Kernel = UpdateKernel<T, FtrlV2Update>;

}  // namespace ftrl_op
}  // namespace

#define SLUICE_FTRL_OP(NAME, VAR)        \
  SLUICE_OP(NAME)                        \
      .Input("var: " VAR)                \
      .Input("accum: " VAR)              \
      .Input("linear: " VAR)             \
      .Input("grad: T")                  \
      .Input("lr: T")                    \
      .Input("l1: T")                    \
      .Input("l2: T")                    \
      .Input("lr_power: T")              \
      .Attr("T: numbertype")             \
      .Attr("use_locking: bool = false") \
      .Shape(UpdateShape)
SLUICE_FTRL_OP(ApplyFtrl, "Ref(T)").Output("out: Ref(T)");
SLUICE_FTRL_OP(ResourceApplyFtrl, "resource").Stateful();
#undef SLUICE_FTRL_OP

#define SLUICE_SPARSE_FTRL_OP(NAME, VAR) \
  SLUICE_OP(NAME)                        \
      .Input("var: " VAR)                \
      .Input("accum: " VAR)              \
      .Input("linear: " VAR)             \
      .Input("grad: T")                  \
      .Input("indices: Tindices")        \
      .Input("lr: T")                    \
      .Input("l1: T")                    \
      .Input("l2: T")                    \
      .Input("lr_power: T")              \
      .Attr("T: numbertype")             \
      .Attr("Tindices: {int32, int64}")  \
      .Attr("use_locking: bool = false") \
      .Shape(UpdateShape)
SLUICE_SPARSE_FTRL_OP(SparseApplyFtrl, "Ref(T)").Output("out: Ref(T)");
SLUICE_SPARSE_FTRL_OP(ResourceSparseApplyFtrl, "resource").Stateful();
#undef SLUICE_SPARSE_FTRL_OP

#define SLUICE_FTRL_V2_OP(NAME, VAR)     \
  SLUICE_OP(NAME)                        \
      .Input("var: " VAR)                \
      .Input("accum: " VAR)              \
      .Input("linear: " VAR)             \
      .Input("grad: T")                  \
      .Input("lr: T")                    \
      .Input("l1: T")                    \
      .Input("l2: T")                    \
      .Input("l2_shrinkage: T")          \
      .Input("lr_power: T")              \
      .Attr("T: numbertype")             \
      .Attr("use_locking: bool = false") \
      .Shape(UpdateShape)
SLUICE_FTRL_V2_OP(ApplyFtrlV2, "Ref(T)").Output("out: Ref(T)");
SLUICE_FTRL_V2_OP(ResourceApplyFtrlV2, "resource").Stateful();
#undef SLUICE_FTRL_V2_OP

#define SLUICE_SPARSE_FTRL_V2_OP(NAME, VAR) \
  SLUICE_OP(NAME)                           \
      .Input("var: " VAR)                   \
      .Input("accum: " VAR)                 \
      .Input("linear: " VAR)                \
      .Input("grad: T")                     \
      .Input("indices: Tindices")           \
      .Input("lr: T")                       \
      .Input("l1: T")                       \
      .Input("l2: T")                       \
      .Input("l2_shrinkage: T")             \
      .Input("lr_power: T")                 \
      .Attr("T: numbertype")                \
      .Attr("Tindices: {int32, int64}")     \
      .Attr("use_locking: bool = false")    \
      .Shape(UpdateShape)
SLUICE_SPARSE_FTRL_V2_OP(SparseApplyFtrlV2, "Ref(T)").Output("out: Ref(T)");
SLUICE_SPARSE_FTRL_V2_OP(ResourceSparseApplyFtrlV2, "resource").Stateful();
#undef SLUICE_SPARSE_FTRL_V2_OP

SLUICE_UPDATE_KERNELS(Ftrl, ftrl_op::FtrlKernel);
SLUICE_UPDATE_KERNELS(FtrlV2, ftrl_op::FtrlV2Kernel);

}  // namespace sluice
