// GenerateVocabRemapping and LoadAndRemapMatrix: a matrix of a checkpoint whose
// rows or columns stand for the words of one vocabulary, for another one.

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/io/checkpoint_reader.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/io/blocking_kernel.h"

namespace sluice {
namespace {
namespace vocab_remap {

// The first `limit` lines of a file; all of them for a negative limit.
absl::StatusOr<std::vector<std::string>> ReadLines(FileSystem& files,
                                                   const std::string& path,
                                                   int64_t limit) {
  SLUICE_ASSIGN_OR_RETURN(const std::string text, files.ReadFile(path));
  std::vector<std::string> lines;
  size_t at = 0;
  while (at < text.size() &&
         (limit < 0 || static_cast<int64_t>(lines.size()) < limit)) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

absl::Status Generate(KernelContext& ctx) {
  for (int i = 0; i < 2; ++i) {
    if (ctx.input(i).size() != 1) {
      return InvalidArgument(i == 0 ? "new" : "old",
                             " vocab filename tensor should have size 1, got ",
                             ctx.input(i).size());
    }
  }
  const std::string& new_path = ctx.input(0).data<std::string>()[0];
  const std::string& old_path = ctx.input(1).data<std::string>()[0];
  const int64_t offset = ctx.attr<int64_t>("new_vocab_offset");
  const int64_t count = ctx.attr<int64_t>("num_new_vocab");
  FileSystem& files = ctx.device().files();
  SLUICE_ASSIGN_OR_RETURN(
      const std::vector<std::string> old_words,
      ReadLines(files, old_path, ctx.attr<int64_t>("old_vocab_size")));
  SLUICE_ASSIGN_OR_RETURN(const std::vector<std::string> new_words,
                          ReadLines(files, new_path, offset + count));
  if (static_cast<int64_t>(new_words.size()) < offset + count) {
    return InvalidArgument("Vocabulary ", new_path, " has ", new_words.size(),
                           " words, wanted are ", count, " from ", offset);
  }
  std::unordered_map<std::string_view, int64_t> places;
  for (size_t i = 0; i < old_words.size(); ++i) {
    places[old_words[i]] = static_cast<int64_t>(i);
  }
  SLUICE_ASSIGN_OR_RETURN(Tensor & remapping, ctx.Output(0, {count}));
  int32_t present = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto found = places.find(new_words[offset + i]);
    remapping.mutable_data<int64_t>()[i] =
        found == places.end() ? -1 : found->second;
    present += found != places.end();
  }
  ctx.set_output(1, Tensor::Scalar(present));
  return absl::OkStatus();
}

// Checks that old indices are in range and none is used twice.
absl::Status CheckRemapping(std::string_view what,
                            std::span<const int64_t> remapping, int64_t limit) {
  std::set<int64_t> seen;
  for (const int64_t old : remapping) {
    if (old < 0) continue;
    if (old >= limit) {
      return InvalidArgument(what, " remapping names ", old,
                             ", the old tensor has ", limit);
    }
    if (!seen.insert(old).second) {
      return Unimplemented("Old tensor ", what, " ", old,
                           " was requested more than once.");
    }
  }
  return absl::OkStatus();
}

absl::Status LoadAndRemap(KernelContext& ctx) {
  const int64_t rows = ctx.attr<int64_t>("num_rows");
  const int64_t cols = ctx.attr<int64_t>("num_cols");
  const auto row_map = ctx.input(2).data<int64_t>();
  const auto col_map = ctx.input(3).data<int64_t>();
  const auto fill = ctx.input(4).data<float>();
  if (ctx.input(0).size() != 1 || ctx.input(1).size() != 1) {
    return InvalidArgument("ckpt_path and old_tensor_name must be scalars");
  }
  if (static_cast<int64_t>(row_map.size()) != rows) {
    return InvalidArgument("Size of row_remapping is expected to be ", rows,
                           ", but it is ", row_map.size());
  }
  // No columns: they stay as they are.
  const bool remap_cols = !col_map.empty();
  if (remap_cols && static_cast<int64_t>(col_map.size()) != cols) {
    return InvalidArgument("Size of col_remapping is expected to be ", cols,
                           ", but it is ", col_map.size());
  }
  const std::string& name = ctx.input(1).data<std::string>()[0];
  SLUICE_ASSIGN_OR_RETURN(
      const std::unique_ptr<CheckpointReader> reader,
      CheckpointReader::Open(ctx.device().files(),
                             ctx.input(0).data<std::string>()[0]));
  SLUICE_ASSIGN_OR_RETURN(const Tensor old,
                          reader->Restore(name, "", DType::kFloat));
  if (old.rank() != 2) {
    return InvalidArgument("Old tensor ", name,
                           " must be a matrix, but has "
                           "shape ",
                           old.shape().DebugString());
  }
  if (!remap_cols && old.dim(1) != cols) {
    return InvalidArgument("Old tensor ", name, " has ", old.dim(1),
                           " columns, expected are ", cols);
  }
  SLUICE_RETURN_IF_ERROR(CheckRemapping("row", row_map, old.dim(0)));
  SLUICE_RETURN_IF_ERROR(CheckRemapping("column", col_map, old.dim(1)));
  SLUICE_ASSIGN_OR_RETURN(Tensor & matrix, ctx.Output(0, {rows, cols}));
  const auto source = old.data<float>();
  float* out = matrix.mutable_data<float>().data();
  size_t filled = 0;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c, ++out) {
      const int64_t col = remap_cols ? col_map[c] : c;
      if (row_map[r] >= 0 && col >= 0) {
        *out = source[row_map[r] * old.dim(1) + col];
      } else if (filled < fill.size()) {
        *out = fill[filled++];
      } else {
        return InvalidArgument("initializing_values contains ", fill.size(),
                               " values, which are too few for the cells that "
                               "the old tensor does not fill");
      }
    }
  }
  if (filled != fill.size()) {
    return InvalidArgument("initializing_values contains ", fill.size(),
                           " values, but only ", filled, " are missing");
  }
  return absl::OkStatus();
}

absl::Status GenerateShape(ShapeContext& c) {
  SLUICE_RETURN_IF_ERROR(c.WithRank(0, 0).status());
  SLUICE_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  c.set_output(0, PartialShape{c.attr<int64_t>("num_new_vocab")});
  c.set_output(1, PartialShape::Scalar());
  return absl::OkStatus();
}

absl::Status LoadShape(ShapeContext& c) {
  c.set_output(0, PartialShape{c.attr<int64_t>("num_rows"),
                               c.attr<int64_t>("num_cols")});
  return absl::OkStatus();
}

}  // namespace vocab_remap
}  // namespace

SLUICE_OP(GenerateVocabRemapping)
    .Input("new_vocab_file: string")
    .Input("old_vocab_file: string")
    .Output("remapping: int64")
    .Output("num_present: int32")
    .Attr("new_vocab_offset: int >= 0")
    .Attr("num_new_vocab: int >= 0")
    .Attr("old_vocab_size: int >= -1 = -1")
    .Shape(vocab_remap::GenerateShape)
    .NotDifferentiable();

SLUICE_OP(LoadAndRemapMatrix)
    .Input("ckpt_path: string")
    .Input("old_tensor_name: string")
    .Input("row_remapping: int64")
    .Input("col_remapping: int64")
    .Input("initializing_values: float")
    .Output("output_matrix: float")
    .Attr("num_rows: int >= 0")
    .Attr("num_cols: int >= 1")
    .Attr("max_rows_in_memory: int = -1")
    .Stateful()
    .Shape(vocab_remap::LoadShape)
    .NotDifferentiable();

SLUICE_KERNEL(GenerateVocabRemapping, kCpu)
    .Class<BlockingKernel<vocab_remap::Generate>>();
SLUICE_KERNEL(LoadAndRemapMatrix, kCpu)
    .Class<BlockingKernel<vocab_remap::LoadAndRemap>>();

}  // namespace sluice
