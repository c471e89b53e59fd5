// UpdateKernel: one optimizer step on a variable and its slots, dense or by
// rows, for ref and resource variables. An optimizer gives its rule
// (numeric/update_rules.h) and names the scalars it takes; where these stand
// among the op's inputs is read from the op's definition.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/numeric/narrow.h"
#include "sluice/ops/state/elements.h"
#include "sluice/ops/state/row_walk.h"
#include "sluice/ops/state/variable_access.h"

namespace sluice {

// The shape function of all update ops. The gradient is the input "grad" or
// "delta", rows are chosen by "indices", every other value is a scalar.
absl::Status UpdateShape(ShapeContext& c);

// Which input is what.
struct UpdateLayout {
  UpdateLayout(const OpDef& op, int variables,
               std::span<const std::string_view> scalar_names);

  int variables = 0;
  int grad = -1;
  int indices = -1;  // -1: a dense update.
  absl::InlinedVector<int, 6> scalars;

  // Both report what does not fit together, with the inputs' names.
  absl::Status CheckScalars(const KernelContext& ctx) const;
  absl::Status CheckDense(const KernelContext& ctx,
                          const LockedVariables& locked) const;
  absl::Status CheckSparse(const KernelContext& ctx,
                           const LockedVariables& locked) const;
};

// Update is a class made from a KernelConstruction, with `kScalars` (names),
// `Rule<T>` and `Rule<T> Make<T>(const T* scalars)`.
template <typename T, typename Update>
class UpdateKernel : public Kernel {
 public:
  // Halves are widened, updated and rounded.
  using A = numeric::ArithmeticType<T>;
  using Rule = typename Update::template Rule<A>;

  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& node) {
    return std::make_unique<UpdateKernel>(node);
  }
  explicit UpdateKernel(const KernelConstruction& node)
      : layout_(node.node().op().def, Rule::kVariables, Update::kScalars),
        update_(node) {}

  absl::Status Run(KernelContext& ctx) override {
    SLUICE_RETURN_IF_ERROR(layout_.CheckScalars(ctx));
    std::array<A, Update::kScalars.size()> scalars;
    for (size_t i = 0; i < scalars.size(); ++i) {
      const Tensor& value = ctx.input(layout_.scalars[i]);
      scalars[i] = value.dtype() == DType::kInt64
                       ? static_cast<A>(value.scalar<int64_t>())
                       : static_cast<A>(value.scalar<T>());
    }
    const Rule rule = update_.template Make<A>(scalars.data());
    LockedVariables locked;
    SLUICE_RETURN_IF_ERROR(
        locked.Lock(ctx, Rule::kVariables, DTypeOf<T>::value, caches_));
    SLUICE_RETURN_IF_ERROR(layout_.indices < 0 ? Dense(ctx, rule, locked)
                                               : Sparse(ctx, rule, locked));
    ForwardUpdatedRef(ctx);
    return absl::OkStatus();
  }

 private:
  using Pointers = std::array<T*, Rule::kVariables>;

  static absl::StatusOr<Pointers> Writable(LockedVariables& locked) {
    Pointers at;
    for (int i = 0; i < Rule::kVariables; ++i) {
      SLUICE_ASSIGN_OR_RETURN(Tensor * tensor, locked.mutable_value(i));
      at[i] = tensor->mutable_data<T>().data();
    }
    return at;
  }

  static Pointers Moved(Pointers at, int64_t by) {
    for (T*& pointer : at) pointer += by;
    return at;
  }

  static void Apply(const Rule& rule, const Pointers& at, const T* grad,
                    int64_t n) {
    if constexpr (!numeric::kIsNarrow<T>) {
      rule.Apply(at.data(), grad, n);
    } else {
      float wide[Rule::kVariables + 1][numeric::kNarrowBlock];
      std::array<float*, Rule::kVariables> wide_at;
      for (int v = 0; v < Rule::kVariables; ++v) wide_at[v] = wide[v];
      float* wide_grad = wide[Rule::kVariables];
      numeric::ForEachNarrowBlock(n, [&](int64_t begin, int64_t end) {
        const int64_t m = end - begin;
        for (int v = 0; v < Rule::kVariables; ++v) {
          numeric::Widen(at[v] + begin, 1, m, wide[v]);
        }
        numeric::Widen(grad + begin, 1, m, wide_grad);
        rule.Apply(wide_at.data(), wide_grad, m);
        for (int v = 0; v < Rule::kVariables; ++v) {
          numeric::Round(wide[v], m, at[v] + begin);
        }
      });
    }
  }

  absl::Status Dense(KernelContext& ctx, const Rule& rule,
                     LockedVariables& locked) {
    SLUICE_RETURN_IF_ERROR(layout_.CheckDense(ctx, locked));
    SLUICE_ASSIGN_OR_RETURN(const Pointers at, Writable(locked));
    const Tensor& grad = ctx.input(layout_.grad);
    const T* g = grad.template data<T>().data();
    ctx.ParallelFor(grad.size(), [&](int64_t begin, int64_t end) {
      Apply(rule, Moved(at, begin), g + begin, end - begin);
    });
    return absl::OkStatus();
  }

  absl::Status Sparse(KernelContext& ctx, const Rule& rule,
                      LockedVariables& locked) {
    SLUICE_RETURN_IF_ERROR(layout_.CheckSparse(ctx, locked));
    const IndexInput index(ctx.input(layout_.indices));
    if (index.size() == 0) return absl::OkStatus();
    SLUICE_ASSIGN_OR_RETURN(const Pointers at, Writable(locked));
    const Tensor& grad = ctx.input(layout_.grad);
    const T* g = grad.template data<T>().data();
    const int64_t row = grad.size() / index.size();
    const int64_t bytes = row * static_cast<int64_t>(sizeof(T));
    ForEachRow(
        index,
        [&](int64_t to) {
          for (T* table : at) PrefetchRow<true>(table + to * row, bytes);
        },
        [&](int64_t i, int64_t to) {
          Apply(rule, Moved(at, to * row), g + i * row, row);
        });
    return absl::OkStatus();
  }

  const UpdateLayout layout_;
  const Update update_;
  LockedVariables::Caches caches_;
};

// The four kernels of an optimizer: dense and by rows, ref and resource.
#define SLUICE_DENSE_UPDATE_KERNELS(NAME, KERNEL)                            \
  SLUICE_KERNEL(Apply##NAME, kCpu).ClassForTypes<TrainedTypes, KERNEL>("T"); \
  SLUICE_KERNEL(ResourceApply##NAME, kCpu)                                   \
      .ClassForTypes<TrainedTypes, KERNEL>("T")
#define SLUICE_SPARSE_UPDATE_KERNELS(NAME, KERNEL) \
  SLUICE_KERNEL(SparseApply##NAME, kCpu)           \
      .ClassForTypes<TrainedTypes, KERNEL>("T");   \
  SLUICE_KERNEL(ResourceSparseApply##NAME, kCpu)   \
      .ClassForTypes<TrainedTypes, KERNEL>("T")
#define SLUICE_UPDATE_KERNELS(NAME, KERNEL)  \
  SLUICE_DENSE_UPDATE_KERNELS(NAME, KERNEL); \
  SLUICE_SPARSE_UPDATE_KERNELS(NAME, KERNEL)

}  // namespace sluice
