// Sparse tensors as three strings, and back: SerializeSparse,
// SerializeManySparse, DeserializeSparse, DeserializeManySparse.

#include <utility>

#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/sparse/sparse_parts.h"
#include "sluice/tensor/codec.h"

namespace sluice {
namespace {
namespace serialize_sparse {

absl::Status RequireStrings(const KernelContext& ctx, const char* attr) {
  if (ctx.attr<DType>(attr) == DType::kString) return absl::OkStatus();
  return Unimplemented(ctx.node().type(),
                       " with variants: use strings (out_type=tf.string)");
}

absl::Status ToStrings(const SparseParts& parts, std::string* three) {
  for (const Tensor& tensor : {parts.indices, parts.values, parts.shape}) {
    pb::TensorProto proto;
    TensorToProto(tensor, &proto);
    if (!proto.SerializeToString(three++)) {
      return InvalidArgument("Unable to serialize ", tensor.DebugString());
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> FromString(const std::string& bytes, DType dtype,
                                  int64_t row, std::string_view what) {
  pb::TensorProto proto;
  if (!proto.ParseFromString(bytes)) {
    return InvalidArgument("Could not parse serialized_sparse[", row, "] ",
                           what, ": ", bytes.size(), " bytes");
  }
  SLUICE_ASSIGN_OR_RETURN(Tensor tensor, TensorFromProto(proto));
  if (tensor.dtype() == dtype) return tensor;
  return InvalidArgument("Expected serialized_sparse[", row, "] ", what,
                         " to be ", DTypeName(dtype), ", but it is ",
                         DTypeName(tensor.dtype()));
}

absl::StatusOr<SparseParts> FromStrings(const std::string* three, DType dtype,
                                        int64_t row) {
  SparseParts parts;
  SLUICE_ASSIGN_OR_RETURN(parts.indices,
                          FromString(three[0], DType::kInt64, row, "indices"));
  SLUICE_ASSIGN_OR_RETURN(parts.values,
                          FromString(three[1], dtype, row, "values"));
  SLUICE_ASSIGN_OR_RETURN(parts.shape,
                          FromString(three[2], DType::kInt64, row, "shape"));
  SLUICE_RETURN_IF_ERROR(CheckSparse(parts));
  return parts;
}

absl::Status Serialize(KernelContext& ctx) {
  SLUICE_RETURN_IF_ERROR(RequireStrings(ctx, "out_type"));
  SLUICE_ASSIGN_OR_RETURN(const SparseParts parts, SparseInput(ctx));
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, Shape({3})));
  return ToStrings(parts, out.mutable_data<std::string>().data());
}

absl::Status SerializeMany(KernelContext& ctx) {
  SLUICE_RETURN_IF_ERROR(RequireStrings(ctx, "out_type"));
  SLUICE_ASSIGN_OR_RETURN(const SparseParts batch, SparseInput(ctx));
  SLUICE_ASSIGN_OR_RETURN(const std::vector<SparseParts> rows,
                          SparseRows(batch));
  SLUICE_ASSIGN_OR_RETURN(
      Tensor & out,
      ctx.Output(0, Shape({static_cast<int64_t>(rows.size()), 3})));
  for (size_t i = 0; i < rows.size(); ++i) {
    SLUICE_RETURN_IF_ERROR(
        ToStrings(rows[i], out.mutable_data<std::string>().data() + 3 * i));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<SparseParts>> ParseRows(const KernelContext& ctx) {
  const Tensor& serialized = ctx.input(0);
  std::vector<SparseParts> rows;
  for (int64_t i = 0; i < serialized.size() / 3; ++i) {
    SLUICE_ASSIGN_OR_RETURN(
        SparseParts row,
        FromStrings(serialized.data<std::string>().data() + 3 * i,
                    ctx.attr<DType>("dtype"), i));
    rows.push_back(std::move(row));
  }
  return rows;
}

absl::Status DeserializeMany(KernelContext& ctx) {
  const Tensor& serialized = ctx.input(0);
  if (serialized.rank() != 2 || serialized.dim(1) != 3) {
    return InvalidArgument(
        "Serialized sparse should be a matrix with 3 columns but received "
        "shape ",
        serialized.shape().DebugString());
  }
  SLUICE_ASSIGN_OR_RETURN(const std::vector<SparseParts> rows, ParseRows(ctx));
  if (rows.empty()) {
    return InvalidArgument(
        "Must have at least 1 serialized SparseTensor, "
        "but input matrix has 0 rows");
  }
  SLUICE_ASSIGN_OR_RETURN(SparseParts batch,
                          StackSparse(rows, ctx.attr<DType>("dtype")));
  SetSparseOutputs(ctx, std::move(batch));
  return absl::OkStatus();
}

// The dimensions before the three strings become dimensions of the result.
absl::Status Deserialize(KernelContext& ctx) {
  SLUICE_RETURN_IF_ERROR(RequireStrings(ctx, "Tserialized"));
  const Tensor& serialized = ctx.input(0);
  if (serialized.rank() < 1 || serialized.dim(serialized.rank() - 1) != 3) {
    return InvalidArgument(
        "Serialized sparse should have 3 as the last "
        "dimension but received shape ",
        serialized.shape().DebugString());
  }
  SLUICE_ASSIGN_OR_RETURN(std::vector<SparseParts> rows, ParseRows(ctx));
  const int outer = serialized.rank() - 1;
  if (outer == 0) {
    SetSparseOutputs(ctx, std::move(rows[0]));
    return absl::OkStatus();
  }
  if (rows.empty()) {
    return InvalidArgument("Serialized sparse holds no tensors: shape ",
                           serialized.shape().DebugString());
  }
  for (int d = outer - 1; d >= 0; --d) {
    const int64_t n = serialized.dim(d);
    std::vector<SparseParts> stacked;
    for (size_t i = 0; i < rows.size(); i += n) {
      SLUICE_ASSIGN_OR_RETURN(
          SparseParts part,
          StackSparse({rows.begin() + i, rows.begin() + i + n},
                      ctx.attr<DType>("dtype")));
      stacked.push_back(std::move(part));
    }
    rows = std::move(stacked);
  }
  SetSparseOutputs(ctx, std::move(rows[0]));
  return absl::OkStatus();
}

absl::Status SerializeShape(ShapeContext& c, bool many) {
  SLUICE_RETURN_IF_ERROR(c.WithRank(0, 2).status());
  SLUICE_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  SLUICE_RETURN_IF_ERROR(c.WithRank(2, 1).status());
  c.set_output(0, many ? PartialShape({-1, 3}) : PartialShape({3}));
  return absl::OkStatus();
}

absl::Status DeserializeShape(ShapeContext& c) {
  c.set_output(0, {-1, -1});
  c.set_output(1, {-1});
  c.set_output(2, {-1});
  return absl::OkStatus();
}

}  // namespace serialize_sparse
}  // namespace

SLUICE_OP(SerializeSparse)
    .Input("sparse_indices: int64")
    .Input("sparse_values: T")
    .Input("sparse_shape: int64")
    .Output("serialized_sparse: out_type")
    .Attr("T: type")
    .Attr("out_type: {string, variant} = DT_STRING")
    .Shape([](ShapeContext& c) {
      return serialize_sparse::SerializeShape(c, /*many=*/false);
    })
    .NotDifferentiable();

SLUICE_OP(SerializeManySparse)
    .Input("sparse_indices: int64")
    .Input("sparse_values: T")
    .Input("sparse_shape: int64")
    .Output("serialized_sparse: out_type")
    .Attr("T: type")
    .Attr("out_type: {string, variant} = DT_STRING")
    .Shape([](ShapeContext& c) {
      return serialize_sparse::SerializeShape(c, /*many=*/true);
    })
    .NotDifferentiable();

SLUICE_OP(DeserializeSparse)
    .Input("serialized_sparse: Tserialized")
    .Output("sparse_indices: int64")
    .Output("sparse_values: dtype")
    .Output("sparse_shape: int64")
    .Attr("dtype: type")
    .Attr("Tserialized: {string, variant} = DT_STRING")
    .Shape(serialize_sparse::DeserializeShape)
    .NotDifferentiable();

SLUICE_OP(DeserializeManySparse)
    .Input("serialized_sparse: string")
    .Output("sparse_indices: int64")
    .Output("sparse_values: dtype")
    .Output("sparse_shape: int64")
    .Attr("dtype: type")
    .Shape(serialize_sparse::DeserializeShape)
    .NotDifferentiable();

SLUICE_KERNEL(SerializeSparse, kCpu).Function(serialize_sparse::Serialize);
SLUICE_KERNEL(SerializeManySparse, kCpu)
    .Function(serialize_sparse::SerializeMany);
SLUICE_KERNEL(DeserializeSparse, kCpu).Function(serialize_sparse::Deserialize);
SLUICE_KERNEL(DeserializeManySparse, kCpu)
    .Function(serialize_sparse::DeserializeMany);

}  // namespace sluice
