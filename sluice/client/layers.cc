#include "sluice/client/layers.h"

#include "sluice/base/status.h"
#include "sluice/client/initializers.h"
#include "sluice/client/op_call.h"
#include "sluice/client/ops/math.h"
#include "sluice/client/ops/nn.h"

namespace sluice::layers {

Output Dense(const Scope& scope, const Input& x, int64_t units,
             const DenseOptions& options) {
  const std::string& given = scope.next_name();
  const Scope inner = scope.NameScope(given.empty() ? "dense" : given);
  const Output rows = AsOutput(inner, x, "inputs");
  if (!inner.ok()) return Output();
  const PartialShape& shape = ShapeOf(rows);
  if (!shape.known_rank() || shape.rank() != 2 || shape.dim(1) < 0) {
    inner.Fail(InvalidArgument("Dense '", inner.context().name_scope,
                               "' needs rows with a known ",
                               "number of columns, got ", TensorName(rows),
                               " of shape ", shape.DebugString()));
    return Output();
  }
  const DType dtype = BaseType(TypeOf(rows));
  const Variable kernel(
      inner.Named("kernel"),
      options.kernel_initializer
          ? options.kernel_initializer
          : GlorotUniformInitializer({shape.dim(1), units}, {.dtype = dtype}));
  Output y = ops::MatMul(inner, rows, kernel);
  if (options.use_bias) {
    const Variable bias(inner.Named("bias"),
                        options.bias_initializer
                            ? options.bias_initializer
                            : ZerosInitializer({units}, dtype));
    y = ops::BiasAdd(inner, y, bias);
  }
  return options.activation == nullptr ? y : options.activation(inner, y);
}

}  // namespace sluice::layers
