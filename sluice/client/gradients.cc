#include "sluice/client/gradients.h"

#include "sluice/autodiff/gradients.h"
#include "sluice/autodiff/slices.h"

namespace sluice {

std::vector<Output> Gradients(const Scope& scope, const std::vector<Output>& ys,
                              const std::vector<Output>& xs) {
  std::vector<Output> dense(xs.size());
  if (!scope.ok()) return dense;
  const absl::StatusOr<std::vector<Grad>> grads = AddGradients(scope, ys, xs);
  if (!grads.ok()) {
    scope.Fail(grads.status());
    return dense;
  }
  for (size_t i = 0; i < xs.size(); ++i) {
    dense[i] = Densify(scope, (*grads)[i]);
  }
  return dense;
}

}  // namespace sluice
