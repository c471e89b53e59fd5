// The ops on TensorArrays. `flow` carries no value: it orders the ops on one
// array, and gradients go back along it.

#include <atomic>
#include <vector>

#include "absl/strings/str_split.h"
#include "sluice/base/status.h"
#include "sluice/graph/scope.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/array/move.h"
#include "sluice/ops/control_flow/tensor_array.h"
#include "sluice/ops/state/resource_handle.h"

namespace sluice {
namespace {
namespace tensor_array_ops {

absl::StatusOr<RefPtr<TensorArray>> Find(const KernelContext& ctx) {
  return LookupResource<TensorArray>(ctx, 0, kTensorArrayType);
}

absl::StatusOr<int64_t> ScalarAt(const KernelContext& ctx, int i,
                                 std::string_view what) {
  const Tensor& value = ctx.input(i);
  if (value.rank() != 0) {
    return InvalidArgument(
        "TensorArray ", what,
        " must be scalar, but had shape: ", value.shape().DebugString());
  }
  return value.data<int32_t>()[0];
}

absl::Status Make(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(const int64_t size, ScalarAt(ctx, 0, "size"));
  if (size < 0) return InvalidArgument("Size should be >= 0.");
  static std::atomic<int64_t> next{0};
  std::string name = ctx.attr<std::string>("tensor_array_name");
  if (name.empty()) name = ctx.node().name();
  const ResourceName where{ctx.step().container(),
                           StrCat(name, "_", next.fetch_add(1))};
  TensorArray::Options options;
  options.type = ctx.attr<DType>("dtype");
  options.element_shape = ctx.attr<PartialShape>("element_shape");
  options.dynamic_size = ctx.attr<bool>("dynamic_size");
  options.clear_after_read = ctx.attr<bool>("clear_after_read");
  options.identical_shapes = ctx.attr<bool>("identical_element_shapes");
  ctx.step().container_used = true;
  SLUICE_RETURN_IF_ERROR(ctx.resources().Create<TensorArray>(
      where.container, where.name,
      MakeRef<TensorArray>(where.name, size, std::move(options))));
  ctx.set_output(0, MakeHandle(ctx.device(), where, kTensorArrayType));
  ctx.set_output(1, Tensor::Scalar<float>(0));
  return absl::OkStatus();
}

absl::Status MakeGradient(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(const ResourceName forward,
                          ReadHandle(ctx, 0, kTensorArrayType));
  SLUICE_ASSIGN_OR_RETURN(RefPtr<TensorArray> array, Find(ctx));
  array->StopGrowing();
  const ResourceName where{
      forward.container,
      StrCat(forward.name, "@", ctx.attr<std::string>("source"))};
  SLUICE_RETURN_IF_ERROR(ctx.resources()
                             .LookupOrCreate<TensorArray>(
                                 where.container, where.name,
                                 [&] { return array->Gradient(where.name); })
                             .status());
  ctx.set_output(0, MakeHandle(ctx.device(), where, kTensorArrayType));
  ctx.set_output(1, Tensor::Scalar<float>(0));
  return absl::OkStatus();
}

absl::Status Write(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(RefPtr<TensorArray> array, Find(ctx));
  SLUICE_ASSIGN_OR_RETURN(const int64_t index, ScalarAt(ctx, 1, "index"));
  SLUICE_RETURN_IF_ERROR(array->Write(index, ctx.input(2)));
  ctx.set_output(0, ctx.input(3));
  return absl::OkStatus();
}

absl::Status CheckType(const KernelContext& ctx, const TensorArray& array) {
  const DType type = ctx.node().output_type(0);
  if (type == array.type()) return absl::OkStatus();
  return InvalidArgument("TensorArray dtype is ", DTypeName(array.type()),
                         " but Op requested dtype ", DTypeName(type), ".");
}

absl::Status Read(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(RefPtr<TensorArray> array, Find(ctx));
  SLUICE_RETURN_IF_ERROR(CheckType(ctx, *array));
  SLUICE_ASSIGN_OR_RETURN(const int64_t index, ScalarAt(ctx, 1, "index"));
  SLUICE_ASSIGN_OR_RETURN(Tensor value, array->Read(index));
  ctx.set_output(0, std::move(value));
  return absl::OkStatus();
}

absl::Status Size(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(RefPtr<TensorArray> array, Find(ctx));
  SLUICE_ASSIGN_OR_RETURN(const int64_t size, array->size());
  ctx.set_output(0, Tensor::Scalar<int32_t>(static_cast<int32_t>(size)));
  return absl::OkStatus();
}

absl::Status Close(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(RefPtr<TensorArray> array, Find(ctx));
  array->Close();
  return absl::OkStatus();
}

// Puts `parts`, which have one shape after the first dimension, one after the
// other into output 0.
absl::Status Join(KernelContext& ctx, const std::vector<Tensor>& parts,
                  const Shape& shape) {
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, shape));
  const Mover mover = MoverOf(out.dtype());
  int64_t at = 0;
  for (const Tensor& part : parts) {
    if (part.size() == 0) continue;
    mover.run(ElementAt(out, mover, at), mover.size, ElementAt(part, mover, 0),
              mover.size, part.size());
    at += part.size();
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> ReadMany(TensorArray& array,
                                             std::span<const int32_t> indices) {
  std::vector<Tensor> parts;
  for (int32_t index : indices) {
    SLUICE_ASSIGN_OR_RETURN(Tensor part, array.Read(index));
    parts.push_back(std::move(part));
  }
  return parts;
}

absl::Status Gather(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(RefPtr<TensorArray> array, Find(ctx));
  SLUICE_RETURN_IF_ERROR(CheckType(ctx, *array));
  if (ctx.input(1).rank() != 1) {
    return InvalidArgument(
        "Expected indices to be a vector, but received "
        "shape: ",
        ctx.input(1).shape().DebugString());
  }
  SLUICE_ASSIGN_OR_RETURN(const std::vector<Tensor> parts,
                          ReadMany(*array, ctx.input(1).data<int32_t>()));
  std::vector<int64_t> dims = {static_cast<int64_t>(parts.size())};
  if (parts.empty()) {
    SLUICE_ASSIGN_OR_RETURN(const PartialShape shape,
                            array->element_shape().MergeWith(
                                ctx.attr<PartialShape>("element_shape")));
    if (!shape.FullyDefined()) {
      return Unimplemented("TensorArray has size zero, but element shape ",
                           shape.DebugString(),
                           " is not fully defined. Currently only static "
                           "shapes are supported when packing zero-size "
                           "TensorArrays.");
    }
    dims.insert(dims.end(), shape.dims().begin(), shape.dims().end());
    return Join(ctx, parts, Shape(dims));
  }
  for (size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].shape() == parts[0].shape()) continue;
    return InvalidArgument(
        "TensorArray has inconsistent shapes.  Index 0 has "
        "shape: ",
        parts[0].shape().DebugString(), " but index ", i,
        " has shape: ", parts[i].shape().DebugString());
  }
  const auto rest = parts[0].shape().dims();
  dims.insert(dims.end(), rest.begin(), rest.end());
  return Join(ctx, parts, Shape(dims));
}

absl::Status Scatter(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(RefPtr<TensorArray> array, Find(ctx));
  const Tensor& indices = ctx.input(1);
  const Tensor& value = ctx.input(2);
  if (indices.rank() != 1 || value.rank() < 1 ||
      value.shape().dim(0) != indices.size()) {
    return InvalidArgument(
        "Expected len(indices) == values.shape[0], but "
        "saw: ",
        indices.size(), " vs. ", value.rank() < 1 ? 0 : value.shape().dim(0));
  }
  const Shape row(value.shape().dims().subspan(1));
  for (int64_t i = 0; i < indices.size(); ++i) {
    SLUICE_RETURN_IF_ERROR(array->Write(indices.data<int32_t>()[i],
                                        value.Rows(i, i + 1).Reshaped(row)));
  }
  ctx.set_output(0, ctx.input(3));
  return absl::OkStatus();
}

absl::Status Concat(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(RefPtr<TensorArray> array, Find(ctx));
  SLUICE_RETURN_IF_ERROR(CheckType(ctx, *array));
  SLUICE_ASSIGN_OR_RETURN(const int64_t size, array->size());
  std::vector<int32_t> all(size);
  for (int64_t i = 0; i < size; ++i) all[i] = static_cast<int32_t>(i);
  SLUICE_ASSIGN_OR_RETURN(const std::vector<Tensor> parts,
                          ReadMany(*array, all));
  Tensor lengths(DType::kInt64, Shape({size}));
  std::vector<int64_t> dims = {0};
  for (size_t i = 0; i < parts.size(); ++i) {
    const Shape& shape = parts[i].shape();
    if (shape.rank() == 0) {
      return InvalidArgument("Concat saw a scalar shape at index ", i,
                             " but requires at least vectors.  Did you mean to "
                             "call pack?");
    }
    const auto rest = shape.dims().subspan(1);
    if (i == 0) dims.insert(dims.end(), rest.begin(), rest.end());
    if (!std::equal(rest.begin(), rest.end(), dims.begin() + 1, dims.end())) {
      return InvalidArgument(
          "TensorArray has inconsistent shapes.  Index 0 "
          "has (excepting dimension 0) shape: ",
          parts[0].shape().DebugString(), " but index ", i,
          " has (excepting dimension 0) shape: ", shape.DebugString());
    }
    lengths.mutable_data<int64_t>()[i] = shape.dim(0);
    dims[0] += shape.dim(0);
  }
  if (parts.empty()) {
    const auto rest = ctx.attr<PartialShape>("element_shape_except0");
    if (!rest.FullyDefined()) {
      return Unimplemented("TensorArray has size zero, but element shape ",
                           "is not fully defined.");
    }
    dims.insert(dims.end(), rest.dims().begin(), rest.dims().end());
  }
  SLUICE_RETURN_IF_ERROR(Join(ctx, parts, Shape(dims)));
  ctx.set_output(1, std::move(lengths));
  return absl::OkStatus();
}

absl::Status Split(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(RefPtr<TensorArray> array, Find(ctx));
  const Tensor& value = ctx.input(1);
  const Tensor& lengths = ctx.input(2);
  if (value.rank() < 1 || lengths.rank() != 1) {
    return InvalidArgument(
        "Expected value to be at least a vector and lengths "
        "to be a vector, but received shapes: ",
        value.shape().DebugString(), " and ", lengths.shape().DebugString());
  }
  int64_t begin = 0;
  for (int64_t i = 0; i < lengths.size(); ++i) {
    const int64_t length = lengths.data<int64_t>()[i];
    if (length < 0 || length > value.shape().dim(0) - begin) {
      return InvalidArgument(
          "Expected sum of lengths to be equal to "
          "values.shape[0], but sum of lengths is more");
    }
    SLUICE_RETURN_IF_ERROR(array->Write(i, value.Rows(begin, begin + length)));
    begin += length;
  }
  if (begin != value.shape().dim(0)) {
    return InvalidArgument(
        "Expected sum of lengths to be equal to "
        "values.shape[0], but sum of lengths is ",
        begin, " and value's shape is: ", value.shape().DebugString());
  }
  ctx.set_output(0, ctx.input(3));
  return absl::OkStatus();
}

absl::Status ArrayShape(ShapeContext& c) {
  c.set_output(0, PartialShape({2}));
  c.set_output(1, PartialShape::Scalar());
  return absl::OkStatus();
}

absl::Status GatherShape(ShapeContext& c) {
  const PartialShape element = c.attr<PartialShape>("element_shape");
  if (!element.known_rank()) return shapes::Unknown(c);
  PartialShape shape({-1});
  for (int64_t dim : element.dims()) shape.AddDim(dim);
  c.set_output(0, shape);
  return absl::OkStatus();
}

absl::Status ConcatShape(ShapeContext& c) {
  c.set_output(0, PartialShape());
  c.set_output(1, PartialShape({-1}));
  return absl::OkStatus();
}

// An array of gradients, and the flow that comes after it was made.
struct GradientArray {
  Output handle;
  Output flow;
};

// Calls of `gradients` have arrays of their own, told apart by the scope that
// the incoming gradient's name begins with.
absl::StatusOr<std::string> SourceOf(Output grad) {
  std::vector<std::string> parts = absl::StrSplit(grad.node->name(), '/');
  for (size_t i = parts.size(); i > 0; --i) {
    if (!parts[i - 1].starts_with("gradients")) continue;
    std::string source = parts[0];
    for (size_t j = 1; j < i; ++j) source += "/" + parts[j];
    return source;
  }
  return InvalidArgument(
      "Expected op/tensor name to start with gradients (excluding scope), "
      "got: ",
      grad.node->name(),
      ". This means that a tf.gradients op with this op in its dependency path "
      "has a custom name that does not start with 'gradients'. Please make "
      "sure "
      "all calls to tf.gradients that have non-empty `name` arguments use "
      "names "
      "that start with 'gradients'.");
}

absl::StatusOr<GradientArray> GradientOf(const Scope& scope, Output handle,
                                         Output flow, Output grad) {
  SLUICE_ASSIGN_OR_RETURN(std::string source, SourceOf(grad));
  const Scope inner = scope.NameScope("TensorArrayGrad").Colocate(handle.node);
  Node* made = inner.AddNode("TensorArrayGradV3", {handle, flow},
                             {{"source", std::move(source)}});
  SLUICE_RETURN_IF_ERROR(inner.status());
  GradientArray array;
  array.handle = made->output(0);
  array.flow = inner.Control(std::vector<Node*>{made})
                   .Named("gradient_flow")
                   .Add("Identity", {flow});
  SLUICE_RETURN_IF_ERROR(inner.status());
  return array;
}

// Of what was taken from an array at an index or at several: `op_type` puts
// the gradient there.
Grads TakenGradient(Scope& scope, const Node& op, const Output& dy,
                    const char* name, const char* op_type) {
  SLUICE_ASSIGN_OR_RETURN(const GradientArray array,
                          GradientOf(scope, op.input(0), op.input(2), dy));
  const Scope inner = scope.NameScope(name);
  return std::vector<Grad>{
      {}, {}, inner.Add(op_type, {array.handle, op.input(1), dy, array.flow})};
}

// Of what was put there: `op_type` takes the gradient.
Grads PutGradient(Scope& scope, const Node& op, const Output& dy,
                  const char* op_type) {
  SLUICE_ASSIGN_OR_RETURN(const GradientArray array,
                          GradientOf(scope, op.input(0), dy, dy));
  const Output grad =
      scope.Add(op_type, {array.handle, op.input(1), array.flow},
                {{"dtype", op.attr<DType>("T")}});
  return std::vector<Grad>{{}, {}, grad, dy};
}

Grads ReadGradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  return TakenGradient(scope, op, dy[0], "TensorArrayWrite",
                       "TensorArrayWriteV3");
}

Grads WriteGradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  return PutGradient(scope, op, dy[0], "TensorArrayReadV3");
}

Grads GatherGradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  return TakenGradient(scope, op, dy[0], "TensorArrayScatter",
                       "TensorArrayScatterV3");
}

Grads ScatterGradient(Scope& scope, const Node& op,
                      std::span<const Output> dy) {
  return PutGradient(scope, op, dy[0], "TensorArrayGatherV3");
}

Grads ConcatGradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  SLUICE_ASSIGN_OR_RETURN(const GradientArray array,
                          GradientOf(scope, op.input(0), op.input(1), dy[0]));
  const Scope inner = scope.NameScope("TensorArraySplit");
  return std::vector<Grad>{
      {},
      inner.Add("TensorArraySplitV3",
                {array.handle, dy[0], op.output(1), array.flow})};
}

Grads SplitGradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  SLUICE_ASSIGN_OR_RETURN(const GradientArray array,
                          GradientOf(scope, op.input(0), dy[0], dy[0]));
  const Output grad =
      scope.Add("TensorArrayConcatV3", {array.handle, array.flow},
                {{"dtype", op.attr<DType>("T")}});
  return std::vector<Grad>{{}, grad, {}, dy[0]};
}

}  // namespace tensor_array_ops
}  // namespace

SLUICE_OP(TensorArrayV3)
    .Input("size: int32")
    .Output("handle: resource")
    .Output("flow: float")
    .Attr("dtype: type")
    .Attr("element_shape: shape = ?")
    .Attr("dynamic_size: bool = false")
    .Attr("clear_after_read: bool = true")
    .Attr("identical_element_shapes: bool = false")
    .Attr("tensor_array_name: string = ''")
    .Stateful()
    .Shape(tensor_array_ops::ArrayShape)
    .NotDifferentiable();

SLUICE_OP(TensorArrayGradV3)
    .Input("handle: resource")
    .Input("flow_in: float")
    .Output("grad_handle: resource")
    .Output("flow_out: float")
    .Attr("source: string")
    .Stateful()
    .Shape(tensor_array_ops::ArrayShape)
    .NotDifferentiable();

SLUICE_OP(TensorArrayWriteV3)
    .Input("handle: resource")
    .Input("index: int32")
    .Input("value: T")
    .Input("flow_in: float")
    .Output("flow_out: float")
    .Attr("T: type")
    .Stateful()
    .Shape(shapes::Scalar)
    .Gradient(tensor_array_ops::WriteGradient);

SLUICE_OP(TensorArrayReadV3)
    .Input("handle: resource")
    .Input("index: int32")
    .Input("flow_in: float")
    .Output("value: dtype")
    .Attr("dtype: type")
    .Stateful()
    .Shape(shapes::Unknown)
    .Gradient(tensor_array_ops::ReadGradient);

SLUICE_OP(TensorArrayGatherV3)
    .Input("handle: resource")
    .Input("indices: int32")
    .Input("flow_in: float")
    .Output("value: dtype")
    .Attr("dtype: type")
    .Attr("element_shape: shape = ?")
    .Stateful()
    .Shape(tensor_array_ops::GatherShape)
    .Gradient(tensor_array_ops::GatherGradient);

SLUICE_OP(TensorArrayScatterV3)
    .Input("handle: resource")
    .Input("indices: int32")
    .Input("value: T")
    .Input("flow_in: float")
    .Output("flow_out: float")
    .Attr("T: type")
    .Stateful()
    .Shape(shapes::Scalar)
    .Gradient(tensor_array_ops::ScatterGradient);

SLUICE_OP(TensorArrayConcatV3)
    .Input("handle: resource")
    .Input("flow_in: float")
    .Output("value: dtype")
    .Output("lengths: int64")
    .Attr("dtype: type")
    .Attr("element_shape_except0: shape = ?")
    .Stateful()
    .Shape(tensor_array_ops::ConcatShape)
    .Gradient(tensor_array_ops::ConcatGradient);

SLUICE_OP(TensorArraySplitV3)
    .Input("handle: resource")
    .Input("value: T")
    .Input("lengths: int64")
    .Input("flow_in: float")
    .Output("flow_out: float")
    .Attr("T: type")
    .Stateful()
    .Shape(shapes::Scalar)
    .Gradient(tensor_array_ops::SplitGradient);

SLUICE_OP(TensorArraySizeV3)
    .Input("handle: resource")
    .Input("flow_in: float")
    .Output("size: int32")
    .Stateful()
    .Shape(shapes::Scalar)
    .NotDifferentiable();

SLUICE_OP(TensorArrayCloseV3)
    .Input("handle: resource")
    .Stateful()
    .Shape(shapes::NoOutputs)
    .NotDifferentiable();

SLUICE_KERNEL(TensorArrayV3, kCpu).Function(tensor_array_ops::Make);
SLUICE_KERNEL(TensorArrayGradV3, kCpu).Function(tensor_array_ops::MakeGradient);
SLUICE_KERNEL(TensorArrayWriteV3, kCpu).Function(tensor_array_ops::Write);
SLUICE_KERNEL(TensorArrayReadV3, kCpu).Function(tensor_array_ops::Read);
SLUICE_KERNEL(TensorArrayGatherV3, kCpu).Function(tensor_array_ops::Gather);
SLUICE_KERNEL(TensorArrayScatterV3, kCpu).Function(tensor_array_ops::Scatter);
SLUICE_KERNEL(TensorArrayConcatV3, kCpu).Function(tensor_array_ops::Concat);
SLUICE_KERNEL(TensorArraySplitV3, kCpu).Function(tensor_array_ops::Split);
SLUICE_KERNEL(TensorArraySizeV3, kCpu).Function(tensor_array_ops::Size);
SLUICE_KERNEL(TensorArrayCloseV3, kCpu).Function(tensor_array_ops::Close);

}  // namespace sluice
