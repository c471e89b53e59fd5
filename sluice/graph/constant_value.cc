// What is known of a tensor's value before any run.
#include "sluice/graph/shape_inference.h"

namespace sluice {
namespace {

// Values beyond this are not worth computing while a graph is built.
constexpr int64_t kMaxFoldedElements = 1000;
// A chain longer than this is left to the run; it also bounds the recursion.
constexpr int kMaxDepth = 64;
// Nodes looked at for one value. A node may be reached on many paths (x + x, of
// that again, …), so the depth alone bounds nothing.
constexpr int kMaxVisits = 256;

// How far a search may still go.
struct Search {
  int depth;
  int* visits;
  Search Deeper() const { return {depth + 1, visits}; }
  bool Enter() const { return depth <= kMaxDepth && --*visits >= 0; }
};

ConstantEvaluator& Evaluator() {
  static ConstantEvaluator* evaluator = new ConstantEvaluator;
  return *evaluator;
}

Tensor SizesTensor(DType dtype, std::span<const int64_t> values,
                   const Shape& shape) {
  Tensor tensor(dtype, shape);
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::kInt64) {
      tensor.mutable_data<int64_t>()[i] = values[i];
    } else {
      tensor.mutable_data<int32_t>()[i] = static_cast<int32_t>(values[i]);
    }
  }
  return tensor;
}

// Shape, Rank and Size need only the shape of their input, not its value.
std::optional<Tensor> FromShape(const Node& node, int output) {
  if (node.num_inputs() == 0 || !node.input(output)) return std::nullopt;
  const PartialShape& shape = ShapeOf(node.input(output));
  if (!shape.known_rank()) return std::nullopt;
  const DType type = node.output_type(output);
  if (node.type() == "Rank") {
    const int64_t rank = shape.rank();
    return SizesTensor(type, {&rank, 1}, Shape());
  }
  if (!shape.FullyDefined()) return std::nullopt;
  if (node.type() == "Size") {
    const int64_t size = shape.NumElements();
    return SizesTensor(type, {&size, 1}, Shape());
  }
  return SizesTensor(type, shape.dims(), Shape({shape.rank()}));
}

bool MayFold(const Node& node) {
  if (node.op().def.stateful || node.IsControlFlow()) return false;
  if (node.num_inputs() == 0 && node.type() != "Const") return false;
  const std::string& type = node.type();
  if (type.starts_with("Placeholder") || type.starts_with("_")) return false;
  for (int i = 0; i < node.num_outputs(); ++i) {
    if (IsRef(node.output_type(i)) || node.output_type(i) == DType::kResource) {
      return false;
    }
    const int64_t size = node.output_shape(i).NumElements();
    if (size > kMaxFoldedElements) return false;
  }
  return true;
}

std::optional<Tensor> Value(Output output, Search search) {
  if (!output || !search.Enter()) return std::nullopt;
  const Node& node = *output.node;
  if (node.type() == "Const") {
    const Tensor* value = node.attrs().Find<Tensor>("value");
    // Shape functions trust the declared type.
    if (value == nullptr || value->dtype() != node.output_type(0)) {
      return std::nullopt;
    }
    return *value;
  }
  if (node.type() == "Shape" || node.type() == "ShapeN" ||
      node.type() == "Size" || node.type() == "Rank") {
    return FromShape(node, output.index);
  }
  if (!Evaluator() || !MayFold(node)) return std::nullopt;
  std::vector<Tensor> inputs;
  for (const Output& input : node.inputs()) {
    std::optional<Tensor> value = Value(input, search.Deeper());
    if (!value || value->size() > kMaxFoldedElements) return std::nullopt;
    inputs.push_back(*std::move(value));
  }
  return Evaluator()(node, output.index, inputs);
}

std::optional<int64_t> ScalarValue(Output output, Search search) {
  std::optional<Tensor> value = Value(output, search);
  if (!value || value->size() != 1) return std::nullopt;
  if (value->dtype() == DType::kInt32) return value->data<int32_t>()[0];
  if (value->dtype() == DType::kInt64) return value->data<int64_t>()[0];
  return std::nullopt;
}

std::optional<PartialShape> AsShape(Output output, Search search);

// One element of a vector of sizes: -1 if unknown.
int64_t SizeValue(Output output, Search search) {
  if (!output) return -1;
  if (std::optional<int64_t> value = ScalarValue(output, search)) return *value;
  const Node& node = *output.node;
  // x_shape[i], as graphs compute batch sizes.
  if (node.type() == "StridedSlice" &&
      node.attr<int64_t>("shrink_axis_mask") == 1 &&
      node.attr<int64_t>("ellipsis_mask") == 0 &&
      node.attr<int64_t>("new_axis_mask") == 0) {
    std::optional<PartialShape> shape = AsShape(node.input(0), search.Deeper());
    std::optional<int64_t> at = ScalarValue(node.input(1), search.Deeper());
    if (shape && shape->known_rank() && at) {
      if (*at < 0) *at += shape->rank();
      if (*at >= 0 && *at < shape->rank()) {
        return shape->dim(static_cast<int>(*at));
      }
    }
  }
  return -1;
}

std::optional<PartialShape> ConcatShapes(const Node& node, Search search) {
  PartialShape all = PartialShape::Scalar();
  for (int i = 0; i + 1 < node.num_inputs(); ++i) {
    std::optional<PartialShape> part = AsShape(node.input(i), search.Deeper());
    if (!part || !part->known_rank()) return std::nullopt;
    for (int64_t dim : part->dims()) all.AddDim(dim);
  }
  return all;
}

std::optional<PartialShape> SliceShape(const Node& node, Search search) {
  if (node.attr<int64_t>("shrink_axis_mask") != 0 ||
      node.attr<int64_t>("ellipsis_mask") != 0 ||
      node.attr<int64_t>("new_axis_mask") != 0) {
    return std::nullopt;
  }
  std::optional<PartialShape> shape = AsShape(node.input(0), search.Deeper());
  std::optional<int64_t> begin = ScalarValue(node.input(1), search.Deeper());
  std::optional<int64_t> end = ScalarValue(node.input(2), search.Deeper());
  std::optional<int64_t> stride = ScalarValue(node.input(3), search.Deeper());
  if (!shape || !shape->known_rank() || !begin || !end || stride != 1) {
    return std::nullopt;
  }
  const int64_t rank = shape->rank();
  const auto clamp = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const int64_t from = node.attr<int64_t>("begin_mask") & 1 ? 0 : clamp(*begin);
  const int64_t to = node.attr<int64_t>("end_mask") & 1 ? rank : clamp(*end);
  PartialShape part = PartialShape::Scalar();
  for (int64_t i = from; i < to; ++i)
    part.AddDim(shape->dim(static_cast<int>(i)));
  return part;
}

std::optional<PartialShape> AsShape(Output output, Search search) {
  if (!output || !search.Enter()) return std::nullopt;
  const Node& node = *output.node;
  if (node.type() == "Shape" && node.input(0)) return ShapeOf(node.input(0));
  if (node.type() == "ShapeN" && node.input(output.index)) {
    return ShapeOf(node.input(output.index));
  }
  if (std::optional<Tensor> value = Value(output, search)) {
    if (value->rank() != 1 || value->size() > kMaxRank) return std::nullopt;
    PartialShape shape = PartialShape::Scalar();
    for (int64_t i = 0; i < value->size(); ++i) {
      const int64_t dim =
          value->dtype() == DType::kInt64   ? value->data<int64_t>()[i]
          : value->dtype() == DType::kInt32 ? value->data<int32_t>()[i]
                                            : -2;
      if (dim < -1) return std::nullopt;
      shape.AddDim(dim);
    }
    return shape;
  }
  if (node.type() == "Cast") return AsShape(node.input(0), search.Deeper());
  if (node.type() == "Pack" && node.attr<int64_t>("axis") == 0) {
    PartialShape shape = PartialShape::Scalar();
    for (const Output& input : node.inputs()) {
      const int64_t size = SizeValue(input, search.Deeper());
      shape.AddDim(size < -1 ? -1 : size);
    }
    return shape;
  }
  if (node.type() == "ConcatV2") return ConcatShapes(node, search);
  if (node.type() == "StridedSlice") return SliceShape(node, search);
  // Without any value there is still the number of sizes.
  const PartialShape& sizes = ShapeOf(output);
  if (!sizes.known_rank() || sizes.rank() != 1 || sizes.dim(0) < 0 ||
      sizes.dim(0) > kMaxRank) {
    return std::nullopt;
  }
  return PartialShape::UnknownOfRank(static_cast<int>(sizes.dim(0)));
}

}  // namespace

void SetConstantEvaluator(ConstantEvaluator evaluator) {
  Evaluator() = std::move(evaluator);
}

std::optional<Tensor> ConstantValue(Output output) {
  int visits = kMaxVisits;
  return Value(output, {0, &visits});
}

std::optional<PartialShape> ConstantValueAsShape(Output output) {
  int visits = kMaxVisits;
  std::optional<PartialShape> shape = AsShape(output, {0, &visits});
  if (!shape || !shape->known_rank()) return shape;
  // Sizes came from anywhere; too large a shape is none.
  if (!PartialShape::Create(shape->dims()).ok()) return std::nullopt;
  return shape;
}

}  // namespace sluice
