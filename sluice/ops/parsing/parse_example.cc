// ParseExample: a batch of serialized Examples as tensors. ParseSingleExample:
// the same of one, without the dimension of the batch.

#include <utility>

#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/parsing/example_parser.h"

namespace sluice {
namespace {
namespace parse_example {

constexpr char kUnknownName[] = "<unknown>";

struct BatchErrors : ExampleErrors {
  explicit BatchErrors(std::span<const std::string> given) : names(given) {}
  std::string NameOf(int64_t example) const {
    return names.empty() ? kUnknownName : names[example];
  }
  std::string AtKey(int64_t example, std::string_view key) const override {
    return StrCat("Name: ", NameOf(example), ", Key: ", key,
                  ", Index: ", example, ".  ");
  }
  std::string Missing(int64_t example,
                      const DenseFeature& feature) const override {
    return StrCat("Name: ", NameOf(example), ", Feature: ", feature.key,
                  " (data type: ", DTypeName(feature.dtype),
                  ") is required but could not be found.");
  }
  std::span<const std::string> names;
};

struct SingleErrors : ExampleErrors {
  std::string AtKey(int64_t, std::string_view key) const override {
    return StrCat("Key: ", key, ".  ");
  }
  std::string Missing(int64_t, const DenseFeature& feature) const override {
    return StrCat("Feature: ", feature.key,
                  " (data type: ", DTypeName(feature.dtype),
                  ") is required but could not be found.");
  }
};

// The outputs of sparse feature i of n; those of dense ones follow all of them.
void SetSparse(KernelContext& ctx, size_t i, size_t n, Tensor indices,
               Tensor values, Tensor shape) {
  ctx.set_output(static_cast<int>(i), std::move(indices));
  ctx.set_output(static_cast<int>(n + i), std::move(values));
  ctx.set_output(static_cast<int>(2 * n + i), std::move(shape));
}

absl::StatusOr<std::string> KeyInput(const KernelContext& ctx, int i,
                                     std::string_view what) {
  if (ctx.input(i).rank() == 0) return ctx.input(i).scalar<std::string>();
  return InvalidArgument("Expected ", what, " to be a scalar, got shape: ",
                         ctx.input(i).shape().DebugString());
}

absl::Status CheckCount(std::string_view list, size_t got, size_t expected,
                        std::string_view what) {
  if (got == expected) return absl::OkStatus();
  return InvalidArgument("len(", list, ") is ", got, ", but there are ",
                         expected, " ", what);
}

// The parser of a ParseExample node, whose keys are inputs.
absl::StatusOr<ExampleParser> BatchParser(const KernelContext& ctx) {
  const size_t num_sparse = ctx.attr<int64_t>("Nsparse");
  const size_t num_dense = ctx.attr<int64_t>("Ndense");
  const AttrList sparse_types = ctx.attr<AttrList>("sparse_types");
  const AttrList dense_types = ctx.attr<AttrList>("Tdense");
  const AttrList shapes = ctx.attr<AttrList>("dense_shapes");
  SLUICE_RETURN_IF_ERROR(CheckCount("sparse_types", sparse_types.types.size(),
                                    num_sparse, "sparse keys"));
  SLUICE_RETURN_IF_ERROR(
      CheckCount("Tdense", dense_types.types.size(), num_dense, "dense keys"));
  SLUICE_RETURN_IF_ERROR(CheckCount("dense_shapes", shapes.shapes.size(),
                                    num_dense, "dense keys"));
  std::vector<SparseFeature> sparse(num_sparse);
  std::vector<DenseFeature> dense(num_dense);
  for (size_t i = 0; i < num_sparse; ++i) {
    sparse[i].dtype = sparse_types.types[i];
    SLUICE_ASSIGN_OR_RETURN(
        sparse[i].key,
        KeyInput(ctx, static_cast<int>(2 + i), StrCat("sparse_keys[", i, "]")));
  }
  for (size_t i = 0; i < num_dense; ++i) {
    const int key = static_cast<int>(2 + num_sparse + i);
    SLUICE_ASSIGN_OR_RETURN(dense[i].key,
                            KeyInput(ctx, key, StrCat("dense_keys[", i, "]")));
    dense[i].dtype = dense_types.types[i];
    dense[i].shape = shapes.shapes[i];
    dense[i].default_value = ctx.input(key + static_cast<int>(num_dense));
    SLUICE_RETURN_IF_ERROR(CheckDenseFeature(dense[i], i));
  }
  return ExampleParser(std::move(sparse), std::move(dense));
}

absl::Status ParseBatch(KernelContext& ctx) {
  const Tensor& serialized = ctx.input(0);
  const Tensor& names = ctx.input(1);
  if (serialized.rank() != 1) {
    return InvalidArgument("Expected serialized to be a vector, got shape: ",
                           serialized.shape().DebugString());
  }
  if (names.size() != 0 && names.size() != serialized.size()) {
    return InvalidArgument("Expected len(names) == len(serialized), but got: ",
                           names.size(), " vs. ", serialized.size());
  }
  SLUICE_ASSIGN_OR_RETURN(const ExampleParser parser, BatchParser(ctx));
  const BatchErrors errors(names.data<std::string>());
  SLUICE_ASSIGN_OR_RETURN(
      ParsedExamples parsed,
      parser.Parse(serialized.data<std::string>(), VisitExample, errors, ctx));
  const size_t n = parsed.sparse.size();
  for (size_t i = 0; i < n; ++i) {
    FeatureColumn& column = parsed.sparse[i];
    SLUICE_ASSIGN_OR_RETURN(Tensor indices, MatrixIndices(column));
    SLUICE_ASSIGN_OR_RETURN(Tensor values, column.TakeValues());
    SetSparse(ctx, i, n, std::move(indices), std::move(values),
              Tensor::Vector<int64_t>({serialized.size(), column.longest()}));
  }
  for (size_t i = 0; i < parsed.dense.size(); ++i) {
    ctx.set_output(static_cast<int>(3 * n + i), std::move(parsed.dense[i]));
  }
  return absl::OkStatus();
}

absl::StatusOr<ExampleParser> SingleParser(const KernelContext& ctx) {
  const AttrList sparse_keys = ctx.attr<AttrList>("sparse_keys");
  const AttrList dense_keys = ctx.attr<AttrList>("dense_keys");
  const AttrList sparse_types = ctx.attr<AttrList>("sparse_types");
  const AttrList dense_types = ctx.attr<AttrList>("Tdense");
  const AttrList shapes = ctx.attr<AttrList>("dense_shapes");
  const size_t num_sparse = ctx.attr<int64_t>("num_sparse");
  const size_t num_dense = dense_types.types.size();
  SLUICE_RETURN_IF_ERROR(CheckCount("sparse_keys", sparse_keys.strings.size(),
                                    num_sparse, "sparse features"));
  SLUICE_RETURN_IF_ERROR(CheckCount("sparse_types", sparse_types.types.size(),
                                    num_sparse, "sparse features"));
  SLUICE_RETURN_IF_ERROR(CheckCount("dense_keys", dense_keys.strings.size(),
                                    num_dense, "dense features"));
  SLUICE_RETURN_IF_ERROR(CheckCount("dense_shapes", shapes.shapes.size(),
                                    num_dense, "dense features"));
  std::vector<SparseFeature> sparse(num_sparse);
  std::vector<DenseFeature> dense(num_dense);
  for (size_t i = 0; i < num_sparse; ++i) {
    sparse[i] = {sparse_keys.strings[i], sparse_types.types[i]};
  }
  for (size_t i = 0; i < num_dense; ++i) {
    dense[i] = {dense_keys.strings[i], dense_types.types[i], shapes.shapes[i],
                ctx.input(static_cast<int>(1 + i))};
    SLUICE_RETURN_IF_ERROR(CheckDenseFeature(dense[i], i));
  }
  return ExampleParser(std::move(sparse), std::move(dense));
}

absl::Status ParseSingle(KernelContext& ctx) {
  const Tensor& serialized = ctx.input(0);
  if (serialized.rank() != 0) {
    return InvalidArgument("Expected serialized to be a scalar, got shape: ",
                           serialized.shape().DebugString());
  }
  SLUICE_ASSIGN_OR_RETURN(const ExampleParser parser, SingleParser(ctx));
  SLUICE_ASSIGN_OR_RETURN(ParsedExamples parsed,
                          parser.Parse(serialized.data<std::string>(),
                                       VisitExample, SingleErrors(), ctx));
  const size_t n = parsed.sparse.size();
  for (size_t i = 0; i < n; ++i) {
    const int64_t count = parsed.sparse[i].longest();
    SLUICE_ASSIGN_OR_RETURN(Tensor indices,
                            Tensor::Create(DType::kInt64, Shape({count, 1})));
    for (int64_t k = 0; k < count; ++k) {
      indices.mutable_data<int64_t>()[k] = k;
    }
    SLUICE_ASSIGN_OR_RETURN(Tensor values, parsed.sparse[i].TakeValues());
    SetSparse(ctx, i, n, std::move(indices), std::move(values),
              Tensor::Vector<int64_t>({count}));
  }
  for (size_t i = 0; i < parsed.dense.size(); ++i) {
    Shape shape = parsed.dense[i].shape();
    shape.RemoveDim(0);
    ctx.set_output(static_cast<int>(3 * n + i),
                   parsed.dense[i].Reshaped(shape));
  }
  return absl::OkStatus();
}

// Shapes of the outputs of `n` sparse features: indices [?, rank], values [?],
// shapes [rank].
void SetSparseShapes(ShapeContext& c, int n, int64_t rank) {
  // The lists may contradict each other, which the kernel refuses.
  for (int i = 0; i < n && 2 * n + i < c.num_outputs(); ++i) {
    c.set_output(i, {-1, rank});
    c.set_output(n + i, {-1});
    c.set_output(2 * n + i, {rank});
  }
}

absl::Status BatchShape(ShapeContext& c) {
  SLUICE_ASSIGN_OR_RETURN(const PartialShape batch, c.WithRank(0, 1));
  SLUICE_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  const int n = static_cast<int>(c.attr<int64_t>("Nsparse"));
  SetSparseShapes(c, n, 2);
  const AttrList shapes = c.attr<AttrList>("dense_shapes");
  for (int i = 3 * n; i < c.num_outputs(); ++i) {
    PartialShape shape({batch.known_rank() ? batch.dim(0) : -1});
    if (i - 3 * n >= static_cast<int>(shapes.shapes.size()) ||
        !shapes.shapes[i - 3 * n].known_rank()) {
      c.set_output(i, PartialShape());
      continue;
    }
    for (int64_t dim : shapes.shapes[i - 3 * n].dims()) shape.AddDim(dim);
    c.set_output(i, shape);
  }
  return absl::OkStatus();
}

absl::Status SingleShape(ShapeContext& c) {
  SLUICE_RETURN_IF_ERROR(c.WithRank(0, 0).status());
  const int n = static_cast<int>(c.attr<int64_t>("num_sparse"));
  SetSparseShapes(c, n, 1);
  const AttrList shapes = c.attr<AttrList>("dense_shapes");
  for (int i = 3 * n; i < c.num_outputs(); ++i) {
    const size_t at = i - 3 * n;
    c.set_output(
        i, at < shapes.shapes.size() ? shapes.shapes[at] : PartialShape());
  }
  return absl::OkStatus();
}

}  // namespace parse_example
}  // namespace

SLUICE_OP(ParseExample)
    .Input("serialized: string")
    .Input("names: string")
    .Input("sparse_keys: Nsparse * string")
    .Input("dense_keys: Ndense * string")
    .Input("dense_defaults: Tdense")
    .Output("sparse_indices: Nsparse * int64")
    .Output("sparse_values: sparse_types")
    .Output("sparse_shapes: Nsparse * int64")
    .Output("dense_values: Tdense")
    .Attr("Nsparse: int >= 0")
    .Attr("Ndense: int >= 0")
    .Attr("sparse_types: list({float, int64, string}) >= 0")
    .Attr("Tdense: list({float, int64, string}) >= 0")
    .Attr("dense_shapes: list(shape) >= 0")
    .Shape(parse_example::BatchShape)
    .NotDifferentiable();

SLUICE_OP(ParseSingleExample)
    .Input("serialized: string")
    .Input("dense_defaults: Tdense")
    .Output("sparse_indices: num_sparse * int64")
    .Output("sparse_values: sparse_types")
    .Output("sparse_shapes: num_sparse * int64")
    .Output("dense_values: Tdense")
    .Attr("num_sparse: int >= 0")
    .Attr("sparse_keys: list(string) >= 0")
    .Attr("dense_keys: list(string) >= 0")
    .Attr("sparse_types: list({float, int64, string}) >= 0")
    .Attr("Tdense: list({float, int64, string}) >= 0")
    .Attr("dense_shapes: list(shape) >= 0")
    .Shape(parse_example::SingleShape)
    .NotDifferentiable();

SLUICE_KERNEL(ParseExample, kCpu).Function(parse_example::ParseBatch);
SLUICE_KERNEL(ParseSingleExample, kCpu).Function(parse_example::ParseSingle);

}  // namespace sluice
