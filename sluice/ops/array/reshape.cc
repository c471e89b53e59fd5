// The same elements under another shape: Reshape, ExpandDims, Squeeze, Bitcast.
// None of them copies.
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/array/gradient_pieces.h"
#include "sluice/ops/array/index_values.h"
#include "sluice/ops/array/shape_rules.h"

namespace sluice {
namespace {
namespace reshape_ops {

// A product of sizes of which at most one is unknown.
struct Sizes {
  int64_t known = 1;  // The product of the others; -1 if it is too large.
  int unknown_at = -1;
  bool too_many_unknown = false;
};

Sizes Multiply(const PartialShape& shape) {
  Sizes sizes;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape.dim(i) >= 0) {
      sizes.known = MultiplyDims(sizes.known, shape.dim(i));
    } else if (sizes.unknown_at >= 0) {
      sizes.too_many_unknown = true;
    } else {
      sizes.unknown_at = i;
    }
  }
  return sizes;
}

absl::Status ReshapeShape(ShapeContext& c) {
  SLUICE_ASSIGN_OR_RETURN(PartialShape out, ShapeFromInput(c, 1));
  const PartialShape& in = c.input(0);
  if (!out.known_rank() || !in.known_rank()) {
    c.set_output(0, std::move(out));
    return absl::OkStatus();
  }
  const Sizes from = Multiply(in);
  const Sizes to = Multiply(out);
  if (!from.too_many_unknown && !to.too_many_unknown && from.known >= 0 &&
      to.known >= 0) {
    if (from.unknown_at < 0 && to.unknown_at < 0) {
      if (from.known != to.known) {
        return InvalidArgument("Cannot reshape a tensor with ", from.known,
                               " elements to shape ", out.DebugString(), " (",
                               to.known, " elements)");
      }
    } else if (from.unknown_at < 0 && to.known > 0) {
      SLUICE_ASSIGN_OR_RETURN(int64_t rest, DivideEvenly(from.known, to.known));
      out.set_dim(to.unknown_at, rest);
    } else if (to.unknown_at < 0 && from.known > 0) {
      SLUICE_RETURN_IF_ERROR(DivideEvenly(to.known, from.known).status());
    }
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

// The size that -1 stands for. Zeros are left out on both sides, so that an
// empty tensor can be given a shape as well: [0, 3] as [0, -1] is [0, 3].
absl::StatusOr<int64_t> MissingSize(const Shape& from, const IndexVector& dims,
                                    int at) {
  int64_t product = 1;
  bool zero_asked = false;
  for (int i = 0; i < static_cast<int>(dims.size()); ++i) {
    if (i == at) continue;
    if (dims[i] == 0) {
      zero_asked = true;
    } else if (__builtin_mul_overflow(product, dims[i], &product)) {
      return InvalidArgument("The requested shape is too large");
    }
  }
  int64_t size = 1;
  bool zero_dropped = false;
  for (int64_t dim : from.dims()) {
    if (dim == 0 && zero_asked) {
      zero_dropped = true;
    } else {
      size *= dim;
    }
  }
  if (size % product != 0 && !zero_dropped) {
    return InvalidArgument("Input to reshape is a tensor with ", from.size(),
                           " values, but the requested shape requires a "
                           "multiple of ",
                           product);
  }
  return size / product;
}

absl::Status ReshapeKernel(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& sizes = ctx.input(1);
  if (sizes.rank() != 1) {
    return InvalidArgument("sizes input must be 1-D, not ",
                           sizes.shape().DebugString());
  }
  IndexVector dims = IndexValues(sizes);
  int missing = -1;
  for (int i = 0; i < static_cast<int>(dims.size()); ++i) {
    if (dims[i] == -1) {
      if (missing >= 0) {
        return InvalidArgument("Only one input size may be -1, not both ",
                               missing, " and ", i);
      }
      missing = i;
    } else if (dims[i] < 0) {
      return InvalidArgument("Size ", i, " must be non-negative, not ",
                             dims[i]);
    }
  }
  if (missing >= 0) {
    SLUICE_ASSIGN_OR_RETURN(dims[missing],
                            MissingSize(x.shape(), dims, missing));
  }
  SLUICE_ASSIGN_OR_RETURN(Shape shape, Shape::Create(std::span<const int64_t>(
                                           dims.data(), dims.size())));
  if (shape.size() != x.size()) {
    return InvalidArgument("Input to reshape is a tensor with ", x.size(),
                           " values, but the requested shape has ",
                           shape.size());
  }
  ctx.set_output(0, x.Reshaped(shape));
  return absl::OkStatus();
}

Output ReshapeToInput(Scope& scope, const Node& op, Output dy) {
  return scope.Add("Reshape", {dy, ShapeTensor(scope, op.input(0))});
}

Grads WithAxisGradient(Scope& scope, const Node& op,
                       std::span<const Output> dy) {
  return std::vector<Grad>{ReshapeToInput(scope, op, dy[0]), Grad()};
}

absl::Status ExpandDimsShape(ShapeContext& c) {
  const std::optional<Tensor> value = c.input_value(1);
  if (value && value->size() != 1) {
    return InvalidArgument("'dim' input must be a tensor with a single value");
  }
  const PartialShape& in = c.input(0);
  if (!value || !in.known_rank()) return shapes::Unknown(c);
  const int64_t dim = IndexAt(*value, 0);
  const int at = AxisFromFront(dim, in.rank() + 1);
  if (at < 0) {
    return InvalidArgument("dim ", dim, " not in the interval [",
                           -1 - in.rank(), ", ", in.rank(), "].");
  }
  PartialShape out = SubShape(in, 0, at);
  out.AddDim(1);
  c.set_output(0, JoinShapes(out, SubShape(in, at, in.rank())));
  return absl::OkStatus();
}

absl::Status ExpandDimsKernel(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  if (ctx.input(1).size() != 1) {
    return InvalidArgument("'dim' must be a tensor with a single value");
  }
  const int64_t dim = IndexAt(ctx.input(1), 0);
  const int at = AxisFromFront(dim, x.rank() + 1);
  if (at < 0) {
    return InvalidArgument("Tried to expand dim index ", dim,
                           " for tensor with ", x.rank(), " dimensions.");
  }
  if (x.rank() == kMaxRank) {
    return InvalidArgument("A tensor with ", x.rank(),
                           " dimensions cannot have one more");
  }
  Shape shape = x.shape();
  shape.InsertDim(at, 1);
  ctx.set_output(0, x.Reshaped(shape));
  return absl::OkStatus();
}

// Which of `rank` dimensions the attribute names.
absl::StatusOr<absl::InlinedVector<bool, 8>> Named(const AttrList& dims,
                                                   int rank) {
  absl::InlinedVector<bool, 8> named(rank);
  for (int64_t dim : dims.ints) {
    const int at = AxisFromFront(dim, rank);
    if (at < 0) {
      return InvalidArgument("Tried to squeeze dim index ", dim,
                             " for tensor with ", rank, " dimensions.");
    }
    named[at] = true;
  }
  return named;
}

absl::Status SqueezeShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  const AttrList dims = c.attr<AttrList>("squeeze_dims");
  if (!in.known_rank()) return shapes::Unknown(c);
  for (size_t i = 0; i < dims.ints.size(); ++i) {
    if (AxisFromFront(dims.ints[i], in.rank()) < 0) {
      return InvalidArgument("squeeze_dims[", i, "] not in [", -in.rank(), ",",
                             in.rank(), ").");
    }
  }
  SLUICE_ASSIGN_OR_RETURN(const auto named, Named(dims, in.rank()));
  PartialShape out = PartialShape::Scalar();
  for (int i = 0; i < in.rank(); ++i) {
    if (dims.ints.empty()) {
      // Nobody can say whether an unknown size is 1.
      if (in.dim(i) < 0) return shapes::Unknown(c);
      if (in.dim(i) != 1) out.AddDim(in.dim(i));
    } else if (!named[i]) {
      out.AddDim(in.dim(i));
    } else if (in.dim(i) >= 0 && in.dim(i) != 1) {
      return InvalidArgument("Can not squeeze dim[", i,
                             "], expected a dimension of 1, got ", in.dim(i));
    }
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

class SqueezeKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& construction) {
    return std::make_unique<SqueezeKernel>(
        construction.attr<AttrList>("squeeze_dims"));
  }
  explicit SqueezeKernel(AttrList dims) : dims_(std::move(dims)) {}

  absl::Status Run(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    SLUICE_ASSIGN_OR_RETURN(const auto named, Named(dims_, x.rank()));
    Shape shape;
    for (int i = 0; i < x.rank(); ++i) {
      const bool drop = dims_.ints.empty() ? x.dim(i) == 1 : named[i];
      if (drop && x.dim(i) != 1) {
        return InvalidArgument("Can not squeeze dim[", i,
                               "], expected a dimension of 1, got ", x.dim(i));
      }
      if (!drop) shape.AddDim(x.dim(i));
    }
    ctx.set_output(0, x.Reshaped(shape));
    return absl::OkStatus();
  }

 private:
  const AttrList dims_;
};

absl::Status BitcastShape(ShapeContext& c) {
  const int64_t from = ElementSize(c.attr<DType>("T"));
  const int64_t to = ElementSize(c.attr<DType>("type"));
  PartialShape shape = c.input(0);
  if (!shape.known_rank() || from == 0 || to == 0) return shapes::Unknown(c);
  if (from > to) {
    shape.AddDim(from / to);
  } else if (from < to) {
    SLUICE_RETURN_IF_ERROR(CheckRankAtLeast(shape, 1));
    const int64_t last = shape.dim(shape.rank() - 1);
    if (last >= 0 && last != to / from) {
      return InvalidArgument("Cannot bitcast due to shape. ", last,
                             " does not match ", to / from);
    }
    shape = SubShape(shape, 0, shape.rank() - 1);
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status BitcastKernel(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  const DType type = ctx.node().output_type(0);
  const int64_t from = ElementSize(x.dtype());
  const int64_t to = ElementSize(type);
  Shape shape = x.shape();
  if (from > to) {
    if (shape.rank() == kMaxRank) {
      return InvalidArgument("A tensor with ", shape.rank(),
                             " dimensions cannot have one more");
    }
    shape.AddDim(from / to);
    if (shape.size() == Shape::kTooMany) {
      return InvalidArgument("Shape ", shape.DebugString(), " is too large");
    }
  } else if (from < to) {
    const int last = shape.rank() - 1;
    if (last < 0 || shape.dim(last) != to / from) {
      return InvalidArgument("Cannot bitcast from ", DTypeName(x.dtype()),
                             " to ", DTypeName(type), ": shape ",
                             shape.DebugString());
    }
    shape.RemoveDim(last);
  }
  x.buffer()->Ref();
  ctx.set_output(0, Tensor::FromBuffer(type, shape, x.buffer()));
  return absl::OkStatus();
}

}  // namespace reshape_ops
}  // namespace

SLUICE_OP(Reshape)
    .Input("tensor: T")
    .Input("shape: Tshape")
    .Output("output: T")
    .Attr("T: type")
    .Attr("Tshape: {int32, int64} = DT_INT32")
    .Shape(reshape_ops::ReshapeShape)
    .Gradient(reshape_ops::WithAxisGradient);

SLUICE_OP(ExpandDims)
    .Input("input: T")
    .Input("dim: Tdim")
    .Output("output: T")
    .Attr("T: type")
    .Attr("Tdim: {int32, int64} = DT_INT32")
    .Shape(reshape_ops::ExpandDimsShape)
    .Gradient(reshape_ops::WithAxisGradient);

SLUICE_OP(Squeeze)
    .Input("input: T")
    .Output("output: T")
    .Attr("T: type")
    .Attr("squeeze_dims: list(int) >= 0 = []")
    .Shape(reshape_ops::SqueezeShape)
    .Gradient([](Scope& scope, const Node& op,
                 std::span<const Output> dy) -> Grads {
      return std::vector<Grad>{reshape_ops::ReshapeToInput(scope, op, dy[0])};
    });

#define SLUICE_BITCAST_TYPES                                              \
  "{bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, " \
  "uint64, int8, int16, complex64, complex128, qint8, quint8, qint16, "   \
  "quint16, qint32}"
SLUICE_OP(Bitcast)
    .Input("input: T")
    .Output("output: type")
    .Attr("T: " SLUICE_BITCAST_TYPES)
    .Attr("type: " SLUICE_BITCAST_TYPES)
    .Shape(reshape_ops::BitcastShape);
#undef SLUICE_BITCAST_TYPES

SLUICE_KERNEL(Reshape, kCpu).Function(reshape_ops::ReshapeKernel);
SLUICE_KERNEL(ExpandDims, kCpu).Function(reshape_ops::ExpandDimsKernel);
SLUICE_KERNEL(Squeeze, kCpu).Class<reshape_ops::SqueezeKernel>();
SLUICE_KERNEL(Bitcast, kCpu).Function(reshape_ops::BitcastKernel);

}  // namespace sluice
