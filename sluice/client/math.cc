#include "sluice/client/math.h"

#include <numeric>

#include "sluice/client/op_call.h"
#include "sluice/client/operators.h"
#include "sluice/client/ops/array.h"
#include "sluice/client/ops/math.h"
#include "sluice/client/ops/random.h"

namespace sluice::ops {
namespace {

// As Python has it: a Const if the rank is known.
Input AxesOf(const Scope& scope, Output x, const ReduceOptions& options) {
  if (options.axis.has_value()) return Literal(*options.axis);
  if (!x) return Output();
  const PartialShape& shape = ShapeOf(x);
  if (!shape.known_rank()) return Range(scope, 0, Rank(scope, x), 1);
  std::vector<int32_t> all(shape.rank());
  std::iota(all.begin(), all.end(), 0);
  return scope.Named("Const").Const(
      Tensor::Of<int32_t>({shape.rank()}, std::span<const int32_t>(all)));
}

Output Reduce(const Scope& scope, const char* op, const Input& x,
              const ReduceOptions& options) {
  const Output input = AsOutput(scope, x, "input_tensor");
  const Input axes = AxesOf(scope.Named(""), input, options);
  return OpCall(scope, op)
      .In(input)
      .In(axes)
      .Attr("keep_dims", options.keepdims)
      .One();
}

Output Filled(const Scope& scope, const char* name, const Input& shape,
              DType dtype, double value) {
  const Scope named = scope.next_name().empty() ? scope.Named(name) : scope;
  return Fill(named, shape, ScalarOfType(dtype, value));
}

}  // namespace

Output Const(const Scope& scope, const Literal& value) {
  absl::StatusOr<Tensor> tensor = value.As(DType::kInvalid);
  if (tensor.ok()) return scope.Const(*std::move(tensor));
  scope.Fail(tensor.status());
  return Output();
}

Output Zeros(const Scope& scope, const Input& shape, DType dtype) {
  return Filled(scope, "zeros", shape, dtype, 0);
}

Output Ones(const Scope& scope, const Input& shape, DType dtype) {
  return Filled(scope, "ones", shape, dtype, 1);
}

Output RandomNormal(const Scope& scope, const Input& shape,
                    const RandomNormalOptions& options) {
  const std::string& given = scope.next_name();
  const Scope inner = scope.NameScope(given.empty() ? "random_normal" : given);
  const Output dims = AsOutput(inner, shape, "shape", DType::kInt32);
  const Output mean =
      inner.Named("mean").Const(ScalarOfType(options.dtype, options.mean));
  const Output stddev =
      inner.Named("stddev").Const(ScalarOfType(options.dtype, options.stddev));
  const Output standard =
      RandomStandardNormal(inner, dims, options.dtype,
                           {.seed = options.seed, .seed2 = options.seed2});
  const Output scaled = Mul(inner.Named("mul"), standard, stddev);
  return Add(scope.Named(inner.context().name_scope), scaled, mean);
}

Output ReduceSum(const Scope& scope, const Input& x,
                 const ReduceOptions& options) {
  return Reduce(scope, "Sum", x, options);
}
Output ReduceMean(const Scope& scope, const Input& x,
                  const ReduceOptions& options) {
  return Reduce(scope, "Mean", x, options);
}
Output ReduceProd(const Scope& scope, const Input& x,
                  const ReduceOptions& options) {
  return Reduce(scope, "Prod", x, options);
}
Output ReduceMax(const Scope& scope, const Input& x,
                 const ReduceOptions& options) {
  return Reduce(scope, "Max", x, options);
}
Output ReduceMin(const Scope& scope, const Input& x,
                 const ReduceOptions& options) {
  return Reduce(scope, "Min", x, options);
}
Output ReduceAll(const Scope& scope, const Input& x,
                 const ReduceOptions& options) {
  return Reduce(scope, "All", x, options);
}
Output ReduceAny(const Scope& scope, const Input& x,
                 const ReduceOptions& options) {
  return Reduce(scope, "Any", x, options);
}

}  // namespace sluice::ops
