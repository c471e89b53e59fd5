// ParseSingleSequenceExample and ParseSequenceExample: SequenceExamples as
// tensors, one or a batch of them.

#include <algorithm>
#include <utility>

#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/parsing/sequence_parser.h"

namespace sluice {
namespace {
namespace parse_sequence {

// The keys, which are inputs of the one op and attrs of the other.
struct Keys {
  std::vector<std::string> context_sparse, context_dense, list_sparse,
      list_dense, may_be_missing;
};

template <typename T>
absl::Status CheckLength(std::string_view name, const std::vector<T>& list,
                         size_t expected) {
  if (list.size() == expected) return absl::OkStatus();
  return InvalidArgument("len(", name, ") is ", list.size(), ", expected ",
                         expected);
}

// `first_default` is the input that is the first default of the context.
absl::StatusOr<SequenceParser> MakeParser(const KernelContext& ctx,
                                          const Keys& keys, int first_default) {
  const auto types = [&](const char* name) {
    return ctx.attr<AttrList>(name).types;
  };
  const auto shapes = [&](const char* name) {
    return ctx.attr<AttrList>(name).shapes;
  };
  const std::vector<DType> sparse_types = types("context_sparse_types");
  const std::vector<DType> dense_types = types("Tcontext_dense");
  const std::vector<PartialShape> dense_shapes = shapes("context_dense_shapes");
  const std::vector<DType> list_sparse = types("feature_list_sparse_types");
  const std::vector<DType> list_dense = types("feature_list_dense_types");
  const std::vector<PartialShape> list_shapes =
      shapes("feature_list_dense_shapes");
  SLUICE_RETURN_IF_ERROR(CheckLength("context_sparse_types", sparse_types,
                                     keys.context_sparse.size()));
  SLUICE_RETURN_IF_ERROR(
      CheckLength("Tcontext_dense", dense_types, keys.context_dense.size()));
  SLUICE_RETURN_IF_ERROR(CheckLength("context_dense_shapes", dense_shapes,
                                     keys.context_dense.size()));
  SLUICE_RETURN_IF_ERROR(CheckLength("feature_list_sparse_types", list_sparse,
                                     keys.list_sparse.size()));
  SLUICE_RETURN_IF_ERROR(CheckLength("feature_list_dense_types", list_dense,
                                     keys.list_dense.size()));
  SLUICE_RETURN_IF_ERROR(CheckLength("feature_list_dense_shapes", list_shapes,
                                     keys.list_dense.size()));
  std::vector<SparseFeature> sparse, lists;
  std::vector<DenseFeature> dense;
  std::vector<DenseList> dense_lists;
  for (size_t i = 0; i < sparse_types.size(); ++i) {
    sparse.push_back({keys.context_sparse[i], sparse_types[i]});
  }
  for (size_t i = 0; i < dense_types.size(); ++i) {
    dense.push_back({keys.context_dense[i], dense_types[i], dense_shapes[i],
                     ctx.input(first_default + static_cast<int>(i))});
    SLUICE_RETURN_IF_ERROR(CheckDenseFeature(dense[i], i));
  }
  for (size_t i = 0; i < list_sparse.size(); ++i) {
    lists.push_back({keys.list_sparse[i], list_sparse[i]});
  }
  for (size_t i = 0; i < list_dense.size(); ++i) {
    if (!list_shapes[i].FullyDefined()) {
      return InvalidArgument("feature_list_dense_shapes[", i,
                             "] = ", list_shapes[i].DebugString(),
                             " must be fully defined");
    }
    SLUICE_ASSIGN_OR_RETURN(Shape shape, Shape::Create(list_shapes[i].dims()));
    dense_lists.push_back(
        {keys.list_dense[i], list_dense[i], std::move(shape),
         std::ranges::count(keys.may_be_missing, keys.list_dense[i]) > 0});
  }
  return SequenceParser(ExampleParser(std::move(sparse), std::move(dense)),
                        std::move(lists), std::move(dense_lists));
}

// Fills the outputs of a node in order.
class Outputs {
 public:
  explicit Outputs(KernelContext& ctx) : ctx_(ctx) {}
  void Add(Tensor tensor) { ctx_.set_output(next_++, std::move(tensor)); }
  // The three parts of sparse tensors, which stand in three lists.
  struct Sparse {
    Tensor indices, values, shape;
  };
  void Add(std::vector<Sparse> all) {
    for (Sparse& one : all) Add(std::move(one.indices));
    for (Sparse& one : all) Add(std::move(one.values));
    for (Sparse& one : all) Add(std::move(one.shape));
  }

 private:
  KernelContext& ctx_;
  int next_ = 0;
};

// A vector of one example, a matrix of a batch.
absl::StatusOr<Outputs::Sparse> SparseContext(FeatureColumn column,
                                              bool single) {
  Outputs::Sparse out;
  SLUICE_ASSIGN_OR_RETURN(out.indices, MatrixIndices(column));
  const int64_t longest = column.longest();
  out.shape = Tensor::Vector<int64_t>({column.rows(), longest});
  if (single) {
    Tensor positions(DType::kInt64, Shape({longest, 1}));
    for (int64_t i = 0; i < longest; ++i) {
      positions.mutable_data<int64_t>()[i] = i;
    }
    out.indices = std::move(positions);
    out.shape = Tensor::Vector<int64_t>({longest});
  }
  SLUICE_ASSIGN_OR_RETURN(out.values, column.TakeValues());
  return out;
}

// (step, position) of one example, (example, step, position) of a batch.
absl::StatusOr<Outputs::Sparse> SparseList(ListColumn list, bool single) {
  Outputs::Sparse out;
  const int64_t steps = list.longest();
  const int64_t longest = list.column.longest();
  if (single) {
    SLUICE_ASSIGN_OR_RETURN(out.indices, MatrixIndices(list.column));
    out.shape = Tensor::Vector<int64_t>({steps, longest});
    SLUICE_ASSIGN_OR_RETURN(out.values, list.column.TakeValues());
    return out;
  }
  const int64_t examples = static_cast<int64_t>(list.steps.size());
  std::vector<int64_t> indices;
  int64_t row = 0;
  for (int64_t i = 0; i < examples; ++i) {
    for (int64_t step = 0; step < list.steps[i]; ++step, ++row) {
      for (int64_t k = 0; k < list.column.count(row); ++k) {
        indices.insert(indices.end(), {i, step, k});
      }
    }
  }
  const int64_t total = static_cast<int64_t>(indices.size()) / 3;
  SLUICE_ASSIGN_OR_RETURN(out.indices,
                          Tensor::Create(DType::kInt64, Shape({total, 3})));
  std::ranges::copy(indices, out.indices.mutable_data<int64_t>().begin());
  out.shape = Tensor::Vector<int64_t>({examples, steps, longest});
  SLUICE_ASSIGN_OR_RETURN(out.values, list.column.TakeValues());
  return out;
}

// [steps] and the shape of one example; a batch is padded with zeros.
absl::StatusOr<Tensor> DenseValues(ListColumn list, const DenseList& feature,
                                   bool single) {
  const int64_t steps = list.longest();
  std::vector<int64_t> dims;
  if (!single) dims.push_back(static_cast<int64_t>(list.steps.size()));
  dims.push_back(steps);
  dims.insert(dims.end(), feature.shape.dims().begin(),
              feature.shape.dims().end());
  SLUICE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  SLUICE_ASSIGN_OR_RETURN(Tensor values, Tensor::Zeros(feature.dtype, shape));
  const int64_t elements = feature.shape.size();
  int64_t row = 0;
  for (size_t i = 0; i < list.steps.size(); ++i) {
    list.column.MoveRows(row, row + list.steps[i], &values,
                         static_cast<int64_t>(i) * steps * elements, elements);
    row += list.steps[i];
  }
  return values;
}

absl::Status SetOutputs(KernelContext& ctx, const SequenceParser& parser,
                        ParsedSequences parsed, bool single) {
  Outputs outputs(ctx);
  std::vector<Outputs::Sparse> sparse;
  for (FeatureColumn& column : parsed.context.sparse) {
    SLUICE_ASSIGN_OR_RETURN(Outputs::Sparse out,
                            SparseContext(std::move(column), single));
    sparse.push_back(std::move(out));
  }
  outputs.Add(std::move(sparse));
  for (Tensor& dense : parsed.context.dense) {
    Shape shape = dense.shape();
    if (single) shape.RemoveDim(0);
    outputs.Add(dense.Reshaped(shape));
  }
  sparse.clear();
  for (ListColumn& list : parsed.sparse) {
    SLUICE_ASSIGN_OR_RETURN(Outputs::Sparse out,
                            SparseList(std::move(list), single));
    sparse.push_back(std::move(out));
  }
  outputs.Add(std::move(sparse));
  std::vector<Tensor> lengths;
  for (size_t i = 0; i < parsed.dense.size(); ++i) {
    lengths.push_back(Tensor::Of<int64_t>(
        {static_cast<int64_t>(parsed.dense[i].steps.size())},
        std::span<const int64_t>(parsed.dense[i].steps)));
    SLUICE_ASSIGN_OR_RETURN(
        Tensor values,
        DenseValues(std::move(parsed.dense[i]), parser.dense()[i], single));
    outputs.Add(std::move(values));
  }
  if (single) return absl::OkStatus();
  for (Tensor& length : lengths) outputs.Add(std::move(length));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> KeyInputs(const KernelContext& ctx,
                                                   int first, int64_t n,
                                                   std::string_view what) {
  std::vector<std::string> keys;
  for (int64_t i = 0; i < n; ++i) {
    const Tensor& key = ctx.input(first + static_cast<int>(i));
    if (key.rank() != 0) {
      return InvalidArgument(
          "Expected ", what, "[", i,
          "] to be a scalar, got shape: ", key.shape().DebugString());
    }
    keys.push_back(key.scalar<std::string>());
  }
  return keys;
}

absl::Status ParseSingle(KernelContext& ctx) {
  const Tensor& serialized = ctx.input(0);
  const Tensor& name = ctx.input(ctx.num_inputs() - 1);
  if (serialized.rank() != 0) {
    return InvalidArgument("Expected serialized to be a scalar, got shape: ",
                           serialized.shape().DebugString());
  }
  if (name.rank() != 0) {
    return InvalidArgument("Expected debug_name to be a scalar, got shape: ",
                           name.shape().DebugString());
  }
  Keys keys;
  const auto missing = ctx.input(1).data<std::string>();
  keys.may_be_missing.assign(missing.begin(), missing.end());
  int at = 2;
  const std::pair<const char*, std::vector<std::string>*> kinds[] = {
      {"context_sparse", &keys.context_sparse},
      {"context_dense", &keys.context_dense},
      {"feature_list_sparse", &keys.list_sparse},
      {"feature_list_dense", &keys.list_dense}};
  for (const auto& [kind, list] : kinds) {
    const int64_t n = ctx.attr<int64_t>(StrCat("N", kind));
    SLUICE_ASSIGN_OR_RETURN(*list,
                            KeyInputs(ctx, at, n, StrCat(kind, "_keys")));
    at += static_cast<int>(n);
  }
  SLUICE_ASSIGN_OR_RETURN(const SequenceParser parser,
                          MakeParser(ctx, keys, at));
  const bool named = !name.scalar<std::string>().empty();
  SLUICE_ASSIGN_OR_RETURN(
      ParsedSequences parsed,
      parser.Parse(serialized.data<std::string>(),
                   name.data<std::string>().subspan(0, named ? 1 : 0), ctx));
  return SetOutputs(ctx, parser, std::move(parsed), /*single=*/true);
}

absl::Status ParseBatch(KernelContext& ctx) {
  const Tensor& serialized = ctx.input(0);
  const Tensor& names = ctx.input(1);
  if (serialized.rank() != 1) {
    return InvalidArgument("Expected serialized to be a vector, got shape: ",
                           serialized.shape().DebugString());
  }
  if (names.size() != 0 && names.size() != serialized.size()) {
    return InvalidArgument(
        "Expected debug_name to be empty or as long as serialized, got shape: ",
        names.shape().DebugString());
  }
  const auto strings = [&](const char* name) {
    return ctx.attr<AttrList>(name).strings;
  };
  const Keys keys = {
      strings("context_sparse_keys"), strings("context_dense_keys"),
      strings("feature_list_sparse_keys"), strings("feature_list_dense_keys"),
      strings("feature_list_dense_missing_assumed_empty")};
  // How many outputs there are follows from these.
  const std::pair<const char*, size_t> counts[] = {
      {"Ncontext_sparse", keys.context_sparse.size()},
      {"Nfeature_list_sparse", keys.list_sparse.size()},
      {"Nfeature_list_dense", keys.list_dense.size()}};
  for (const auto& [attr, count] : counts) {
    if (static_cast<size_t>(ctx.attr<int64_t>(attr)) != count) {
      return InvalidArgument(attr, " is ", ctx.attr<int64_t>(attr),
                             ", but there are ", count, " keys");
    }
  }
  SLUICE_ASSIGN_OR_RETURN(const SequenceParser parser,
                          MakeParser(ctx, keys, 2));
  SLUICE_ASSIGN_OR_RETURN(ParsedSequences parsed,
                          parser.Parse(serialized.data<std::string>(),
                                       names.data<std::string>(), ctx));
  return SetOutputs(ctx, parser, std::move(parsed), /*single=*/false);
}

absl::Status SequenceShape(ShapeContext& c, bool single) {
  SLUICE_RETURN_IF_ERROR(c.WithRank(0, single ? 0 : 1).status());
  const PartialShape batch = c.input(0);
  const int64_t rows = batch.known_rank() && !single ? batch.dim(0) : -1;
  int at = 0;
  // The lists may contradict each other, which the kernel refuses.
  const auto put = [&](PartialShape shape) {
    if (at < c.num_outputs()) c.set_output(at++, std::move(shape));
  };
  const auto sparse = [&](const char* count, int64_t rank) {
    const int64_t n = c.attr<int64_t>(count);
    for (int64_t i = 0; i < n; ++i) put({-1, rank});
    for (int64_t i = 0; i < n; ++i) put({-1});
    for (int64_t i = 0; i < n; ++i) put({rank});
  };
  const auto dense = [&](const char* attr, const PartialShape& before) {
    for (const PartialShape& shape : c.attr<AttrList>(attr).shapes) {
      PartialShape full = before;
      for (int64_t dim : shape.dims()) full.AddDim(dim);
      put(shape.known_rank() ? full : PartialShape());
    }
  };
  sparse("Ncontext_sparse", single ? 1 : 2);
  dense("context_dense_shapes",
        single ? PartialShape::Scalar() : PartialShape({rows}));
  sparse("Nfeature_list_sparse", single ? 2 : 3);
  dense("feature_list_dense_shapes",
        single ? PartialShape({-1}) : PartialShape({rows, -1}));
  while (at < c.num_outputs()) put({rows});
  return absl::OkStatus();
}

}  // namespace parse_sequence
}  // namespace

#define SLUICE_SEQUENCE_OUTPUTS                                            \
  .Output("context_sparse_indices: Ncontext_sparse * int64")               \
      .Output("context_sparse_values: context_sparse_types")               \
      .Output("context_sparse_shapes: Ncontext_sparse * int64")            \
      .Output("context_dense_values: Tcontext_dense")                      \
      .Output("feature_list_sparse_indices: Nfeature_list_sparse * int64") \
      .Output("feature_list_sparse_values: feature_list_sparse_types")     \
      .Output("feature_list_sparse_shapes: Nfeature_list_sparse * int64")  \
      .Output("feature_list_dense_values: feature_list_dense_types")
#define SLUICE_SEQUENCE_ATTRS                                               \
  .Attr("Ncontext_sparse: int >= 0 = 0")                                    \
      .Attr("Ncontext_dense: int >= 0 = 0")                                 \
      .Attr("Nfeature_list_sparse: int >= 0 = 0")                           \
      .Attr("Nfeature_list_dense: int >= 0 = 0")                            \
      .Attr("context_sparse_types: list({float, int64, string}) >= 0 = []") \
      .Attr("Tcontext_dense: list({float, int64, string}) >= 0 = []")       \
      .Attr(                                                                \
          "feature_list_dense_types: list({float, int64, string}) >= 0 = "  \
          "[]")                                                             \
      .Attr("context_dense_shapes: list(shape) >= 0 = []")                  \
      .Attr(                                                                \
          "feature_list_sparse_types: list({float, int64, string}) >= 0 "   \
          "= []")                                                           \
      .Attr("feature_list_dense_shapes: list(shape) >= 0 = []")

SLUICE_OP(ParseSingleSequenceExample)
    .Input("serialized: string")
    .Input("feature_list_dense_missing_assumed_empty: string")
    .Input("context_sparse_keys: Ncontext_sparse * string")
    .Input("context_dense_keys: Ncontext_dense * string")
    .Input("feature_list_sparse_keys: Nfeature_list_sparse * string")
    .Input("feature_list_dense_keys: Nfeature_list_dense * string")
    .Input("context_dense_defaults: Tcontext_dense")
    .Input("debug_name: string")  //
    SLUICE_SEQUENCE_OUTPUTS       //
    SLUICE_SEQUENCE_ATTRS
    .Shape([](ShapeContext& c) {
      return parse_sequence::SequenceShape(c, /*single=*/true);
    })
    .NotDifferentiable();

SLUICE_OP(ParseSequenceExample)
    .Input("serialized: string")
    .Input("debug_name: string")
    .Input("context_dense_defaults: Tcontext_dense")  //
    SLUICE_SEQUENCE_OUTPUTS
    .Output("feature_list_dense_lengths: Nfeature_list_dense * int64")
    .Attr("feature_list_dense_missing_assumed_empty: list(string) >= 0")
    .Attr("context_sparse_keys: list(string) >= 0")
    .Attr("context_dense_keys: list(string) >= 0")
    .Attr("feature_list_sparse_keys: list(string) >= 0")
    .Attr("feature_list_dense_keys: list(string) >= 0")  //
    SLUICE_SEQUENCE_ATTRS
    .Shape([](ShapeContext& c) {
      return parse_sequence::SequenceShape(c, /*single=*/false);
    })
    .NotDifferentiable();

#undef SLUICE_SEQUENCE_OUTPUTS
#undef SLUICE_SEQUENCE_ATTRS

SLUICE_KERNEL(ParseSingleSequenceExample, kCpu)
    .Function(parse_sequence::ParseSingle);
SLUICE_KERNEL(ParseSequenceExample, kCpu).Function(parse_sequence::ParseBatch);

}  // namespace sluice
