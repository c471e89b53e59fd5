#include "sluice/ops/parsing/example_parser.h"

#include <map>
#include <utility>

#include "absl/strings/escaping.h"
#include "sluice/base/mutex.h"
#include "sluice/base/status.h"
#include "sluice/ops/state/elements.h"

namespace sluice {
namespace {

// Parsing an example takes about this long for each of its bytes.
constexpr double kNanosPerExampleByte = 2;

absl::Status WrongType(std::string_view where, DType expected, DType got) {
  return InvalidArgument(where,
                         "Data types don't match. Data type: ", DTypeName(got),
                         " but expected type: ", DTypeName(expected));
}

Shape WithRows(int64_t rows, const PartialShape& shape, int64_t first) {
  Shape result({rows});
  for (int d = 0; d < shape.rank(); ++d) {
    result.AddDim(shape.dim(d) < 0 ? first : shape.dim(d));
  }
  return result;
}

}  // namespace

int64_t DenseFeature::elements() const {
  int64_t elements = 1;
  for (int d = variable() ? 1 : 0; d < shape.rank(); ++d) {
    elements *= shape.dim(d);
  }
  return elements;
}

absl::Status CheckDenseFeature(const DenseFeature& feature, size_t i) {
  const PartialShape& shape = feature.shape;
  bool known = shape.known_rank();
  for (int d = 1; known && d < shape.rank(); ++d) known = shape.dim(d) >= 0;
  if (!known) {
    return InvalidArgument("dense_shapes[", i, "] = ", shape.DebugString(),
                           " must be known but for the first size");
  }
  PartialShape sizes = shape;
  if (feature.variable()) sizes.set_dim(0, 1);
  SLUICE_RETURN_IF_ERROR(Shape::Create(sizes.dims()).status());
  const Tensor& value = feature.default_value;
  if (value.dtype() != feature.dtype) {
    return InvalidArgument("dense_defaults[", i, "] is of type ",
                           DTypeName(value.dtype()), ", but Tdense[", i,
                           "] is ", DTypeName(feature.dtype));
  }
  if (feature.variable()) {
    if (value.size() <= 1) return absl::OkStatus();
    return InvalidArgument(
        "dense_shape[", i,
        "] is a variable length shape: ", shape.DebugString(),
        ", therefore def_value[", i,
        "] must contain a single element (the padding element).  But its "
        "shape is: ",
        value.shape().DebugString());
  }
  if (value.size() == 0 || shape.CompatibleWith(value.shape())) {
    return absl::OkStatus();
  }
  return InvalidArgument("def_value[", i,
                         "].shape() == ", value.shape().DebugString(),
                         " is not compatible with dense_shapes_[", i,
                         "] == ", shape.DebugString());
}

absl::Status MalformedExample(std::string_view bytes) {
  constexpr size_t kShown = 200;
  const std::string_view shown = bytes.substr(0, kShown);
  return InvalidArgument(
      "Could not parse example input, value: '",
      absl::CHexEscape(absl::string_view(shown.data(), shown.size())), "'",
      bytes.size() > kShown ? "..." : "");
}

ExampleParser::ExampleParser(std::vector<SparseFeature> sparse,
                             std::vector<DenseFeature> dense)
    : sparse_(std::move(sparse)), dense_(std::move(dense)) {
  for (size_t i = 0; i < sparse_.size(); ++i) {
    places_[sparse_[i].key].sparse = static_cast<int>(i);
  }
  for (size_t i = 0; i < dense_.size(); ++i) {
    places_[dense_[i].key].dense = static_cast<int>(i);
  }
}

// What one thread made of a range of examples.
struct ExampleParser::Shard {
  explicit Shard(const ExampleParser& parser) {
    for (const SparseFeature& feature : parser.sparse_) {
      sparse.emplace_back(feature.dtype);
    }
    for (const DenseFeature& feature : parser.dense_) {
      variable.emplace_back(feature.dtype);
    }
    sparse_bytes.resize(sparse.size());
    dense_bytes.resize(variable.size());
  }

  std::vector<FeatureColumn> sparse;
  std::vector<FeatureColumn> variable;  // Empty where a size is fixed.
  // Scratch: the last Feature of each key in the example at hand.
  std::vector<std::string_view> sparse_bytes;
  std::vector<std::string_view> dense_bytes;
  FeatureValues values;
};

absl::StatusOr<ParsedExamples> ExampleParser::Parse(
    std::span<const std::string> serialized, Visit visit,
    const ExampleErrors& errors, const KernelContext& ctx) const {
  const int64_t n = static_cast<int64_t>(serialized.size());
  std::vector<Tensor> fixed(dense_.size());
  for (size_t i = 0; i < dense_.size(); ++i) {
    if (dense_[i].variable()) continue;
    SLUICE_ASSIGN_OR_RETURN(
        const Shape shape,
        Shape::Create(WithRows(n, dense_[i].shape, 0).dims()));
    SLUICE_ASSIGN_OR_RETURN(fixed[i], Tensor::Create(dense_[i].dtype, shape));
  }
  size_t bytes = 0;
  for (const std::string& example : serialized) bytes += example.size();

  Mutex mu;
  std::map<int64_t, Shard> shards;  // By first example.
  std::map<int64_t, absl::Status> failures;
  ctx.ParallelFor(
      n,
      [&](int64_t begin, int64_t end) {
        Shard shard(*this);
        absl::Status status;
        int64_t i = begin;
        for (; i < end && status.ok(); ++i) {
          status = ParseOne(serialized[i], i, visit, errors, &shard, &fixed);
        }
        MutexLock lock(mu);
        if (!status.ok()) failures.emplace(i, std::move(status));
        shards.emplace(begin, std::move(shard));
      },
      n == 0 ? 1 : kNanosPerExampleByte * static_cast<double>(bytes) / n);
  if (!failures.empty()) return failures.begin()->second;

  Shard all(*this);
  for (auto& [begin, shard] : shards) {
    for (size_t i = 0; i < sparse_.size(); ++i) {
      all.sparse[i].Append(std::move(shard.sparse[i]));
    }
    for (size_t i = 0; i < dense_.size(); ++i) {
      all.variable[i].Append(std::move(shard.variable[i]));
    }
  }
  ParsedExamples parsed;
  parsed.sparse = std::move(all.sparse);
  parsed.dense = std::move(fixed);
  for (size_t i = 0; i < dense_.size(); ++i) {
    if (!dense_[i].variable()) continue;
    SLUICE_ASSIGN_OR_RETURN(parsed.dense[i],
                            Pad(dense_[i], std::move(all.variable[i])));
  }
  return parsed;
}

absl::Status ExampleParser::ParseOne(const std::string& example, int64_t index,
                                     Visit visit, const ExampleErrors& errors,
                                     Shard* shard,
                                     std::vector<Tensor>* fixed) const {
  std::ranges::fill(shard->sparse_bytes, std::string_view());
  std::ranges::fill(shard->dense_bytes, std::string_view());
  const bool good =
      visit(example, [&](std::string_view key, std::string_view feature) {
        const auto it = places_.find(absl::string_view(key.data(), key.size()));
        if (it == places_.end()) return true;
        if (it->second.sparse >= 0) {
          shard->sparse_bytes[it->second.sparse] = feature;
        }
        if (it->second.dense >= 0) {
          shard->dense_bytes[it->second.dense] = feature;
        }
        return true;
      });
  if (!good) return MalformedExample(example);
  FeatureValues& values = shard->values;
  for (size_t i = 0; i < sparse_.size(); ++i) {
    if (!DecodeFeature(shard->sparse_bytes[i], &values)) {
      return MalformedExample(example);
    }
    if (values.dtype != DType::kInvalid && values.dtype != sparse_[i].dtype) {
      return InvalidArgument(errors.AtKey(index, sparse_[i].key),
                             "Data types don't match. Expected type: ",
                             DTypeName(sparse_[i].dtype),
                             ", Actual type: ", DTypeName(values.dtype));
    }
    shard->sparse[i].AddRow(values);
  }
  for (size_t i = 0; i < dense_.size(); ++i) {
    if (!DecodeFeature(shard->dense_bytes[i], &values)) {
      return MalformedExample(example);
    }
    SLUICE_RETURN_IF_ERROR(SetDense(dense_[i], values, index, errors,
                                    &shard->variable[i], &(*fixed)[i]));
  }
  return absl::OkStatus();
}

absl::Status ExampleParser::SetDense(const DenseFeature& feature,
                                     const FeatureValues& values, int64_t index,
                                     const ExampleErrors& errors,
                                     FeatureColumn* column,
                                     Tensor* fixed) const {
  const int64_t elements = feature.elements();
  if (values.dtype == DType::kInvalid) {
    if (feature.variable()) {
      column->AddRow(values);
      return absl::OkStatus();
    }
    if (feature.default_value.size() == 0 && elements > 0) {
      return InvalidArgument(errors.Missing(index, feature));
    }
    CopyElements(feature.default_value, 0, fixed, index * elements, elements);
    return absl::OkStatus();
  }
  if (values.dtype != feature.dtype) {
    return WrongType(errors.AtKey(index, feature.key), feature.dtype,
                     values.dtype);
  }
  if (feature.variable()) {
    if (elements == 0 || values.size() % elements != 0) {
      return InvalidArgument(
          errors.AtKey(index, feature.key), "Number of ",
          DTypeName(feature.dtype),
          " values is not a multiple of stride length. Saw ", values.size(),
          " values but output shape is: ", feature.shape.DebugString());
    }
    column->AddRow(values);
    return absl::OkStatus();
  }
  if (values.size() != elements) {
    return InvalidArgument(errors.AtKey(index, feature.key), "Number of ",
                           DTypeName(feature.dtype),
                           " values != expected.  Values size: ", values.size(),
                           " but output shape: ", feature.shape.DebugString());
  }
  CopyValues(values, fixed, index * elements);
  return absl::OkStatus();
}

absl::StatusOr<Tensor> ExampleParser::Pad(const DenseFeature& feature,
                                          FeatureColumn column) const {
  const int64_t elements = feature.elements();
  const int64_t steps = elements == 0 ? 0 : column.longest() / elements;
  SLUICE_ASSIGN_OR_RETURN(
      const Shape shape,
      Shape::Create(WithRows(column.rows(), feature.shape, steps).dims()));
  const bool zeros = feature.default_value.size() == 0;
  SLUICE_ASSIGN_OR_RETURN(Tensor padded,
                          zeros ? Tensor::Zeros(feature.dtype, shape)
                                : Tensor::Create(feature.dtype, shape));
  if (!zeros) {
    FillElements(feature.default_value, &padded, 0, padded.size());
  }
  column.MoveRows(0, column.rows(), &padded, 0, steps * elements);
  return padded;
}

}  // namespace sluice
