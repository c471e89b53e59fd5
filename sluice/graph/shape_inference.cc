#include "sluice/graph/shape_inference.h"

namespace sluice {

const PartialShape& ShapeContext::input(int i) const {
  static const PartialShape* unknown = new PartialShape;
  const Output input = node_.input(i);
  return input ? ShapeOf(input) : *unknown;
}

const HandleShape& ShapeContext::input_handle(int i) const {
  static const HandleShape* none = new HandleShape;
  const Output input = node_.input(i);
  return input ? input.node->output_handle(input.index) : *none;
}

std::optional<Tensor> ShapeContext::input_value(int i) const {
  const Output input = node_.input(i);
  return input ? ConstantValue(input) : std::nullopt;
}

absl::StatusOr<PartialShape> ShapeContext::input_as_shape(int i) const {
  const PartialShape& shape = input(i);
  if (shape.known_rank() && shape.rank() > 1) {
    return InvalidArgument("Shape must be rank 1 but is rank ", shape.rank());
  }
  if (std::optional<Tensor> value = input_value(i)) {
    if (value->dtype() != DType::kInt32 && value->dtype() != DType::kInt64) {
      return InvalidArgument("A shape must be int32 or int64, not ",
                             DTypeName(value->dtype()));
    }
    const auto size_at = [&](int64_t j) -> int64_t {
      return value->dtype() == DType::kInt64 ? value->data<int64_t>()[j]
                                             : value->data<int32_t>()[j];
    };
    if (value->rank() == 0) {
      if (size_at(0) == -1) return PartialShape();
      return InvalidArgument(
          "Input tensor must be rank 1, or if its rank 0 it "
          "must have value -1 (representing an unknown "
          "shape).  Saw value: ",
          size_at(0));
    }
    PartialShape result = PartialShape::Scalar();
    for (int64_t j = 0; j < value->size(); ++j) {
      const int64_t dim = size_at(j);
      if (dim < -1) {
        return InvalidArgument("Dimension ", j, " of the shape is ", dim,
                               "; it must be >= -1");
      }
      result.AddDim(dim);
    }
    return PartialShape::Create(result.dims());
  }
  if (const Output in = node_.input(i)) {
    if (std::optional<PartialShape> partial = ConstantValueAsShape(in)) {
      return *partial;
    }
  }
  if (shape.known_rank() && shape.rank() == 1 && shape.dim(0) >= 0 &&
      shape.dim(0) <= kMaxRank) {
    return PartialShape::UnknownOfRank(static_cast<int>(shape.dim(0)));
  }
  return PartialShape();
}

void ShapeContext::set_output(int i, PartialShape shape) {
  node_.output_shapes_[i] = std::move(shape);
}

void ShapeContext::set_output_handle(int i, HandleShape handle) {
  node_.output_handles_.resize(node_.num_outputs());
  node_.output_handles_[i] = std::move(handle);
}

absl::StatusOr<PartialShape> ShapeContext::WithRank(int i, int rank) const {
  const PartialShape& shape = input(i);
  if (!shape.known_rank()) return PartialShape::UnknownOfRank(rank);
  if (shape.rank() != rank) {
    return InvalidArgument("Shape must be rank ", rank, " but is rank ",
                           shape.rank());
  }
  return shape;
}

absl::StatusOr<PartialShape> ShapeContext::WithRankAtLeast(int i,
                                                           int rank) const {
  const PartialShape& shape = input(i);
  if (shape.known_rank() && shape.rank() < rank) {
    return InvalidArgument("Shape must be at least rank ", rank,
                           " but is rank ", shape.rank());
  }
  return shape;
}

absl::StatusOr<PartialShape> ShapeContext::Merge(int i, int j) const {
  const PartialShape& a = input(i);
  const PartialShape& b = input(j);
  if (a.known_rank() && b.known_rank()) {
    if (a.rank() != b.rank()) {
      return InvalidArgument("Shapes must be equal rank, but are ", a.rank(),
                             " and ", b.rank());
    }
    for (int d = 0; d < a.rank(); ++d) {
      if (a.dim(d) >= 0 && b.dim(d) >= 0 && a.dim(d) != b.dim(d)) {
        return InvalidArgument("Dimension ", d,
                               " in both shapes must be equal, but are ",
                               a.dim(d), " and ", b.dim(d), ". Shapes are ",
                               a.DebugString(), " and ", b.DebugString(), ".");
      }
    }
  }
  return a.MergeWith(b);
}

absl::StatusOr<PartialShape> BroadcastShapes(const PartialShape& a,
                                             const PartialShape& b) {
  if (!a.known_rank() || !b.known_rank()) return PartialShape();
  const int rank = std::max(a.rank(), b.rank());
  PartialShape result = PartialShape::UnknownOfRank(rank);
  for (int i = 0; i < rank; ++i) {
    const int ai = i - (rank - a.rank());
    const int bi = i - (rank - b.rank());
    const int64_t x = ai < 0 ? 1 : a.dim(ai);
    const int64_t y = bi < 0 ? 1 : b.dim(bi);
    if (x == 1) {
      result.set_dim(i, y);
    } else if (y == 1) {
      result.set_dim(i, x);
    } else if (x < 0 || y < 0) {
      // One side is unknown: it is 1 or the other side's size.
      result.set_dim(i, std::max(x, y) > 1 ? std::max(x, y) : -1);
    } else if (x == y) {
      result.set_dim(i, x);
    } else {
      return InvalidArgument("Dimensions must be equal, but are ", x, " and ",
                             y);
    }
  }
  return result;
}

namespace shapes {

absl::Status Unknown(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, PartialShape());
  return absl::OkStatus();
}

absl::Status NoOutputs(ShapeContext&) { return absl::OkStatus(); }

absl::Status Scalar(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) {
    c.set_output(i, PartialShape::Scalar());
  }
  return absl::OkStatus();
}

absl::Status SameAsInput(ShapeContext& c) {
  c.set_output(0, c.input(0));
  if (c.input_handle(0).dtype != DType::kInvalid) {
    c.set_output_handle(0, c.input_handle(0));
  }
  return absl::OkStatus();
}

absl::Status MergeAllInputs(ShapeContext& c) {
  PartialShape merged = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) {
    SLUICE_ASSIGN_OR_RETURN(PartialShape pair, c.Merge(0, i));
    SLUICE_ASSIGN_OR_RETURN(merged, merged.MergeWith(pair));
  }
  c.set_output(0, std::move(merged));
  return absl::OkStatus();
}

absl::Status Broadcast(ShapeContext& c) {
  SLUICE_ASSIGN_OR_RETURN(PartialShape shape,
                          BroadcastShapes(c.input(0), c.input(1)));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status FromShapeAttr(ShapeContext& c) {
  c.set_output(0, c.attr<PartialShape>("shape"));
  return absl::OkStatus();
}

}  // namespace shapes
}  // namespace sluice
