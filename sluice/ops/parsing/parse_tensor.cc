// SerializeTensor, ParseTensor: a tensor as the bytes of a message, and back.
// DecodeJSONExample: Examples written as JSON.

#include <google/protobuf/util/json_util.h>

#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/proto/example.pb.h"
#include "sluice/tensor/codec.h"

namespace sluice {
namespace {
namespace parse_tensor {

absl::Status Serialize(KernelContext& ctx) {
  pb::TensorProto proto;
  TensorToProto(ctx.input(0), &proto);
  std::string bytes;
  // Fails for what is too large for a message.
  if (!proto.SerializeToString(&bytes)) {
    return InvalidArgument("Unable to serialize ", ctx.input(0).DebugString());
  }
  ctx.set_output(0, Tensor::Scalar(std::move(bytes)));
  return absl::OkStatus();
}

absl::Status Parse(KernelContext& ctx) {
  const Tensor& serialized = ctx.input(0);
  if (serialized.rank() != 0) {
    return InvalidArgument("Expected `serialized` to be a scalar, got shape: ",
                           serialized.shape().DebugString());
  }
  pb::TensorProto proto;
  if (!proto.ParseFromString(serialized.scalar<std::string>())) {
    return InvalidArgument("Could not parse `serialized` as TensorProto: its ",
                           serialized.scalar<std::string>().size(),
                           " bytes are none");
  }
  SLUICE_ASSIGN_OR_RETURN(Tensor tensor, TensorFromProto(proto));
  const DType expected = ctx.attr<DType>("out_type");
  if (tensor.dtype() != expected) {
    return InvalidArgument("Type mismatch between parsed tensor (",
                           DTypeName(tensor.dtype()), ") and dtype (",
                           DTypeName(expected), ")");
  }
  ctx.set_output(0, std::move(tensor));
  return absl::OkStatus();
}

absl::Status DecodeJson(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, in.shape()));
  for (int64_t i = 0; i < in.size(); ++i) {
    pb::Example example;
    const auto parsed = google::protobuf::util::JsonStringToMessage(
        in.data<std::string>()[i], &example);
    if (!parsed.ok()) {
      return InvalidArgument("Error while parsing JSON: ", parsed.ToString());
    }
    if (!example.SerializeToString(&out.mutable_data<std::string>()[i])) {
      return InvalidArgument("Unable to serialize the example of JSON ", i);
    }
  }
  return absl::OkStatus();
}

}  // namespace parse_tensor
}  // namespace

SLUICE_OP(SerializeTensor)
    .Input("tensor: T")
    .Output("serialized: string")
    .Attr("T: type")
    .Shape(shapes::Scalar)
    .NotDifferentiable();

SLUICE_OP(ParseTensor)
    .Input("serialized: string")
    .Output("output: out_type")
    .Attr("out_type: type")
    .Shape(shapes::Unknown)
    .NotDifferentiable();

SLUICE_OP(DecodeJSONExample)
    .Input("json_examples: string")
    .Output("binary_examples: string")
    .Shape(shapes::SameAsInput)
    .NotDifferentiable();

SLUICE_KERNEL(SerializeTensor, kCpu).Function(parse_tensor::Serialize);
SLUICE_KERNEL(ParseTensor, kCpu).Function(parse_tensor::Parse);
SLUICE_KERNEL(DecodeJSONExample, kCpu).Function(parse_tensor::DecodeJson);

}  // namespace sluice
