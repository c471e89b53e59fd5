// StringJoin: strings of several tensors, element by element. ReduceJoin:
// strings of one tensor, along dimensions.

#include <vector>

#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"

namespace sluice {
namespace {

// Scalars go with any shape; the others must be alike.
absl::Status StringJoinShape(ShapeContext& c) {
  PartialShape shape = PartialShape::Scalar();
  for (int i = 0; i < c.num_inputs(); ++i) {
    const PartialShape& input = c.input(i);
    if (!input.known_rank()) {
      // It may be a scalar, so it says nothing.
      shape = PartialShape();
      break;
    }
    if (input.rank() == 0) continue;
    if (shape.known_rank() && shape.rank() == 0) {
      shape = input;
    } else {
      SLUICE_ASSIGN_OR_RETURN(shape, shape.MergeWith(input));
    }
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status StringJoin(KernelContext& ctx) {
  Shape shape;
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    const Shape& input = ctx.input(i).shape();
    if (input.rank() == 0) continue;
    if (shape.rank() != 0 && input != shape) {
      return InvalidArgument("Input shapes do not match: ", shape.DebugString(),
                             " vs. ", input.DebugString());
    }
    shape = input;
  }
  const std::string separator = ctx.attr<std::string>("separator");
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, shape));
  std::string* text = out.mutable_data<std::string>().data();
  for (int64_t e = 0; e < out.size(); ++e, ++text) {
    text->clear();
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      const Tensor& input = ctx.input(i);
      if (i > 0) text->append(separator);
      text->append(input.data<std::string>()[input.rank() == 0 ? 0 : e]);
    }
  }
  return absl::OkStatus();
}

// The dimensions to join, made positive and in the order asked for.
absl::StatusOr<std::vector<int>> JoinedDimensions(const Tensor& indices,
                                                  int rank) {
  std::vector<int> dims;
  std::vector<bool> seen(rank);
  for (const int32_t index : indices.data<int32_t>()) {
    const int dim = index < 0 ? index + rank : index;
    if (dim < 0 || dim >= rank) {
      return InvalidArgument("Invalid reduction dimension ", index,
                             " for input with ", rank, " dimension(s)");
    }
    if (seen[dim]) {
      return InvalidArgument("Duplicate reduction dimension ", dim);
    }
    seen[dim] = true;
    dims.push_back(dim);
  }
  return dims;
}

absl::Status ReduceJoinShape(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  const std::optional<Tensor> indices = c.input_value(1);
  if (!input.known_rank() || !indices.has_value()) {
    c.set_output(0, input.known_rank() && c.attr<bool>("keep_dims")
                        ? PartialShape::UnknownOfRank(input.rank())
                        : PartialShape());
    return absl::OkStatus();
  }
  SLUICE_ASSIGN_OR_RETURN(const std::vector<int> dims,
                          JoinedDimensions(*indices, input.rank()));
  std::vector<bool> joined(input.rank());
  for (const int dim : dims) joined[dim] = true;
  PartialShape shape = PartialShape::Scalar();
  for (int i = 0; i < input.rank(); ++i) {
    if (!joined[i]) {
      shape.AddDim(input.dim(i));
    } else if (c.attr<bool>("keep_dims")) {
      shape.AddDim(1);
    }
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// Counts through the elements of some dimensions of a tensor, the last of them
// fastest, and says how far each is from the first.
std::vector<int64_t> JoinOffsets(const Shape& shape,
                                 const std::vector<int>& dims) {
  std::vector<int64_t> strides(shape.rank(), 1);
  for (int i = shape.rank() - 2; i >= 0; --i) {
    strides[i] = strides[i + 1] * shape.dim(i + 1);
  }
  std::vector<int64_t> offsets = {0};
  for (const int dim : dims) {
    std::vector<int64_t> finer;
    finer.reserve(offsets.size() * shape.dim(dim));
    for (const int64_t offset : offsets) {
      for (int64_t i = 0; i < shape.dim(dim); ++i) {
        finer.push_back(offset + i * strides[dim]);
      }
    }
    offsets = std::move(finer);
  }
  return offsets;
}

absl::Status ReduceJoin(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  const Shape& shape = in.shape();
  SLUICE_ASSIGN_OR_RETURN(std::vector<int> joined,
                          JoinedDimensions(ctx.input(1), shape.rank()));
  const bool keep_dims = ctx.attr<bool>("keep_dims");
  std::vector<int> kept;
  Shape out_shape;
  for (int i = 0; i < shape.rank(); ++i) {
    if (std::find(joined.begin(), joined.end(), i) == joined.end()) {
      kept.push_back(i);
      out_shape.AddDim(shape.dim(i));
    } else if (keep_dims) {
      out_shape.AddDim(1);
    }
  }
  // The dimension named first changes fastest.
  std::reverse(joined.begin(), joined.end());
  const std::vector<int64_t> parts = JoinOffsets(shape, joined);
  const std::vector<int64_t> places = JoinOffsets(shape, kept);
  const std::string separator = ctx.attr<std::string>("separator");
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, out_shape));
  const std::string* from = in.data<std::string>().data();
  std::string* text = out.mutable_data<std::string>().data();
  for (const int64_t place : places) {
    text->clear();
    for (size_t i = 0; i < parts.size(); ++i) {
      if (i > 0) text->append(separator);
      text->append(from[place + parts[i]]);
    }
    ++text;
  }
  return absl::OkStatus();
}

}  // namespace

SLUICE_OP(StringJoin)
    .Input("inputs: N * string")
    .Output("output: string")
    .Attr("N: int >= 1")
    .Attr("separator: string = ''")
    .Shape(StringJoinShape)
    .NotDifferentiable();

SLUICE_OP(ReduceJoin)
    .Input("inputs: string")
    .Input("reduction_indices: int32")
    .Output("output: string")
    .Attr("keep_dims: bool = false")
    .Attr("separator: string = ''")
    .Shape(ReduceJoinShape)
    .NotDifferentiable();

SLUICE_KERNEL(StringJoin, kCpu).Function(StringJoin);
SLUICE_KERNEL(ReduceJoin, kCpu).Function(ReduceJoin);

}  // namespace sluice
