#include "sluice/ops/parsing/sequence_parser.h"

#include <algorithm>
#include <optional>

#include "sluice/base/status.h"

namespace sluice {
namespace {

std::string NameOf(std::span<const std::string> names, int64_t i) {
  return names.empty() ? "<unknown>" : names[i];
}

struct ContextErrors : ExampleErrors {
  explicit ContextErrors(std::span<const std::string> given) : names(given) {}
  std::string AtKey(int64_t example, std::string_view key) const override {
    return StrCat("Name: ", NameOf(names, example), ", Context feature: ", key,
                  ".  ");
  }
  std::string Missing(int64_t example,
                      const DenseFeature& feature) const override {
    return StrCat("Name: ", NameOf(names, example), ", Context feature '",
                  feature.key, "' is required but could not be found.");
  }
  std::span<const std::string> names;
};

bool Ignore(std::string_view, std::string_view) { return true; }

absl::Status WrongStep(std::string_view name, std::string_view key,
                       int64_t step, DType expected, DType got) {
  return InvalidArgument(
      "Name: ", name, ", Feature list: ", key, ", Index: ", step,
      ".  Data types don't match. Expected type: ", DTypeName(expected),
      "  Feature is: ", got == DType::kInvalid ? "none" : DTypeName(got));
}

}  // namespace

int64_t ListColumn::longest() const {
  return steps.empty() ? 0 : *std::ranges::max_element(steps);
}

absl::StatusOr<ParsedSequences> SequenceParser::Parse(
    std::span<const std::string> serialized, std::span<const std::string> names,
    const KernelContext& ctx) const {
  ParsedSequences parsed;
  SLUICE_ASSIGN_OR_RETURN(
      parsed.context, context_.Parse(
                          serialized,
                          [](std::string_view example, EntryVisitor visit) {
                            return VisitSequenceExample(example, visit, Ignore);
                          },
                          ContextErrors(names), ctx));
  for (const SparseFeature& feature : sparse_) {
    parsed.sparse.emplace_back(feature.dtype);
  }
  for (const DenseList& feature : dense_) {
    parsed.dense.emplace_back(feature.dtype);
  }
  for (size_t i = 0; i < serialized.size(); ++i) {
    SLUICE_RETURN_IF_ERROR(ParseLists(
        serialized[i], NameOf(names, static_cast<int64_t>(i)), &parsed));
  }
  return parsed;
}

absl::Status SequenceParser::ParseLists(const std::string& example,
                                        std::string_view name,
                                        ParsedSequences* parsed) const {
  std::vector<std::optional<std::string_view>> sparse(sparse_.size());
  std::vector<std::optional<std::string_view>> dense(dense_.size());
  const bool good = VisitSequenceExample(
      example, Ignore, [&](std::string_view key, std::string_view list) {
        for (size_t i = 0; i < sparse_.size(); ++i) {
          if (sparse_[i].key == key) sparse[i] = list;
        }
        for (size_t i = 0; i < dense_.size(); ++i) {
          if (dense_[i].key == key) dense[i] = list;
        }
        return true;
      });
  if (!good) return MalformedExample(example);
  for (size_t i = 0; i < sparse_.size(); ++i) {
    SLUICE_RETURN_IF_ERROR(AddSparse(sparse_[i],
                                     sparse[i].value_or(std::string_view()),
                                     name, &parsed->sparse[i]));
  }
  for (size_t i = 0; i < dense_.size(); ++i) {
    SLUICE_RETURN_IF_ERROR(AddDense(dense_[i], dense[i] ? &*dense[i] : nullptr,
                                    name, &parsed->dense[i]));
  }
  return absl::OkStatus();
}

absl::Status SequenceParser::AddSparse(const SparseFeature& feature,
                                       std::string_view list,
                                       std::string_view name,
                                       ListColumn* column) const {
  FeatureValues values;
  absl::Status status;
  int64_t step = 0;
  const bool good = VisitFeatureList(list, [&](std::string_view bytes) {
    if (!DecodeFeature(bytes, &values)) return false;
    if (values.dtype != DType::kInvalid && values.dtype != feature.dtype) {
      status = WrongStep(name, feature.key, step, feature.dtype, values.dtype);
      return false;
    }
    column->column.AddRow(values);
    ++step;
    return true;
  });
  if (!status.ok()) return status;
  if (!good) return MalformedExample(list);
  column->steps.push_back(step);
  return absl::OkStatus();
}

absl::Status SequenceParser::AddDense(const DenseList& feature,
                                      const std::string_view* list,
                                      std::string_view name,
                                      ListColumn* column) const {
  if (list == nullptr && !feature.may_be_missing) {
    return InvalidArgument(
        "Name: ", name, ", Feature list '", feature.key,
        "' is required but could not be found.  Did you mean to include it in "
        "feature_list_dense_missing_assumed_empty or "
        "feature_list_dense_defaults?");
  }
  FeatureValues values;
  absl::Status status;
  int64_t step = 0;
  const bool good = VisitFeatureList(
      list == nullptr ? std::string_view() : *list,
      [&](std::string_view bytes) {
        if (!DecodeFeature(bytes, &values)) return false;
        if (values.dtype != feature.dtype) {
          status =
              WrongStep(name, feature.key, step, feature.dtype, values.dtype);
        } else if (values.size() != feature.shape.size()) {
          status = InvalidArgument(
              "Name: ", name, ", Key: ", feature.key, ", Index: ", step,
              ".  Number of ", DTypeName(feature.dtype),
              " values != expected.  values size: ", values.size(),
              " but output shape: ", feature.shape.DebugString());
        }
        column->column.AddRow(values);
        ++step;
        return status.ok();
      });
  if (!status.ok()) return status;
  if (!good) return MalformedExample(*list);
  column->steps.push_back(step);
  return absl::OkStatus();
}

}  // namespace sluice
