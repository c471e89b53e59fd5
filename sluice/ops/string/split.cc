// StringSplit and StringSplitV2: the parts of strings as a sparse matrix, one
// row a string.

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"

namespace sluice {
namespace {

using StringParts = std::vector<std::string_view>;

absl::Status StringSplitShape(ShapeContext& c) {
  SLUICE_RETURN_IF_ERROR(c.WithRank(0, 1).status());
  SLUICE_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  c.set_output(0, PartialShape({-1, 2}));
  c.set_output(1, PartialShape({-1}));
  c.set_output(2, PartialShape({2}));
  return absl::OkStatus();
}

// Any character of `delimiters` ends a part; without any, every byte is one.
StringParts SplitAtAny(std::string_view text, std::string_view delimiters,
                       bool skip_empty) {
  StringParts parts;
  if (text.empty()) return parts;
  if (delimiters.empty()) {
    for (size_t i = 0; i < text.size(); ++i) parts.push_back(text.substr(i, 1));
    return parts;
  }
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end =
        std::min(text.find_first_of(delimiters, begin), text.size());
    if (!skip_empty || end > begin) {
      parts.push_back(text.substr(begin, end - begin));
    }
    begin = end + 1;
  }
  return parts;
}

// As Python's str.split: at `separator`, or without one at white space.
StringParts SplitAtString(std::string_view text, std::string_view separator,
                          int64_t max_split) {
  StringParts parts;
  const auto may_split = [&] {
    return max_split < 0 || static_cast<int64_t>(parts.size()) < max_split;
  };
  if (!separator.empty()) {
    size_t at;
    while (may_split() &&
           (at = text.find(separator)) != std::string_view::npos) {
      parts.push_back(text.substr(0, at));
      text.remove_prefix(at + separator.size());
    }
    parts.push_back(text);
    return parts;
  }
  const auto strip_front = [&] {
    while (!text.empty() && absl::ascii_isspace(text.front())) {
      text.remove_prefix(1);
    }
  };
  for (strip_front(); !text.empty(); strip_front()) {
    size_t end = text.size();
    if (may_split()) {
      end =
          std::find_if(text.begin(), text.end(),
                       [](unsigned char c) { return absl::ascii_isspace(c); }) -
          text.begin();
    }
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return parts;
}

// Gives the parts of each row out as a sparse matrix.
absl::Status OutputParts(KernelContext& ctx,
                         const std::vector<StringParts>& rows) {
  int64_t total = 0;
  int64_t widest = 0;
  for (const StringParts& row : rows) {
    total += static_cast<int64_t>(row.size());
    widest = std::max(widest, static_cast<int64_t>(row.size()));
  }
  SLUICE_ASSIGN_OR_RETURN(Tensor & indices, ctx.Output(0, Shape({total, 2})));
  SLUICE_ASSIGN_OR_RETURN(Tensor & values, ctx.Output(1, Shape({total})));
  SLUICE_ASSIGN_OR_RETURN(Tensor & shape, ctx.Output(2, Shape({2})));
  int64_t* index = indices.mutable_data<int64_t>().data();
  std::string* value = values.mutable_data<std::string>().data();
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t i = 0; i < rows[r].size(); ++i) {
      *index++ = static_cast<int64_t>(r);
      *index++ = static_cast<int64_t>(i);
      *value++ = rows[r][i];
    }
  }
  shape.mutable_data<int64_t>()[0] = static_cast<int64_t>(rows.size());
  shape.mutable_data<int64_t>()[1] = widest;
  return absl::OkStatus();
}

absl::Status CheckSplitInputs(const KernelContext& ctx, std::string_view what) {
  if (ctx.input(0).rank() != 1) {
    return InvalidArgument("input must be a vector, got shape: ",
                           ctx.input(0).shape().DebugString());
  }
  if (ctx.input(1).rank() != 0) {
    return InvalidArgument(what, " must be a scalar, got shape: ",
                           ctx.input(1).shape().DebugString());
  }
  return absl::OkStatus();
}

absl::Status StringSplit(KernelContext& ctx) {
  SLUICE_RETURN_IF_ERROR(CheckSplitInputs(ctx, "delimiter"));
  const bool skip_empty = ctx.attr<bool>("skip_empty");
  std::vector<StringParts> rows;
  for (const std::string& text : ctx.input(0).data<std::string>()) {
    rows.push_back(
        SplitAtAny(text, ctx.input(1).scalar<std::string>(), skip_empty));
  }
  return OutputParts(ctx, rows);
}

absl::Status StringSplitV2(KernelContext& ctx) {
  SLUICE_RETURN_IF_ERROR(CheckSplitInputs(ctx, "sep"));
  const int64_t max_split = ctx.attr<int64_t>("maxsplit");
  std::vector<StringParts> rows;
  for (const std::string& text : ctx.input(0).data<std::string>()) {
    rows.push_back(
        SplitAtString(text, ctx.input(1).scalar<std::string>(), max_split));
  }
  return OutputParts(ctx, rows);
}

}  // namespace

SLUICE_OP(StringSplit)
    .Input("input: string")
    .Input("delimiter: string")
    .Output("indices: int64")
    .Output("values: string")
    .Output("shape: int64")
    .Attr("skip_empty: bool = true")
    .Shape(StringSplitShape)
    .NotDifferentiable();

SLUICE_OP(StringSplitV2)
    .Input("input: string")
    .Input("sep: string")
    .Output("indices: int64")
    .Output("values: string")
    .Output("shape: int64")
    .Attr("maxsplit: int = -1")
    .Shape(StringSplitShape)
    .NotDifferentiable();

SLUICE_KERNEL(StringSplit, kCpu).Function(StringSplit);
SLUICE_KERNEL(StringSplitV2, kCpu).Function(StringSplitV2);

}  // namespace sluice
