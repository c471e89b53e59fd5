#include "sluice/ops/lookup/text_file.h"

#include <algorithm>
#include <vector>

#include "sluice/base/logging.h"
#include "sluice/base/status.h"
#include "sluice/ops/parsing/element_text.h"

namespace sluice {
namespace {

absl::Status CheckIndex(std::string_view what, int64_t index, DType dtype) {
  if (index == kLineNumber && dtype != DType::kInt64) {
    return InvalidArgument(what, " index for line number requires table ",
                           what == "Key" ? "key" : "value",
                           " dtype of int64, got ", DTypeName(dtype));
  }
  if (index == kWholeLine && dtype != DType::kString && !IsInteger(dtype)) {
    return InvalidArgument(what, " index for whole line requires table ",
                           what == "Key" ? "key" : "value",
                           " dtype of integer or string, got ",
                           DTypeName(dtype));
  }
  return absl::OkStatus();
}

// The lines of a text, which may end with CRLF.
std::vector<std::string> Lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string line(text.substr(0, end));
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(std::move(line));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::vector<std::string> SplitAt(const std::string& line, char delimiter) {
  std::vector<std::string> tokens;
  size_t begin = 0;
  while (true) {
    const size_t end = line.find(delimiter, begin);
    tokens.push_back(line.substr(begin, end - begin));
    if (end == std::string::npos) return tokens;
    begin = end + 1;
  }
}

// Sets element `number` to what `index` names of a line.
absl::Status SetPart(const std::string& line,
                     const std::vector<std::string>& tokens, int64_t index,
                     int64_t number, Tensor* part) {
  if (index == kLineNumber) {
    part->mutable_data<int64_t>()[number] = number;
    return absl::OkStatus();
  }
  const std::string& text = index == kWholeLine ? line : tokens[index];
  if (SetElementFromText(text, part, number)) return absl::OkStatus();
  return InvalidArgument("Field ", text, " in line ", number,
                         " is not a valid ", DTypeName(part->dtype()), ".");
}

}  // namespace

absl::Status FillFromTextFile(FileSystem& files, const std::string& path,
                              const TextFileColumns& columns,
                              LookupTable* table) {
  const TableConfig& config = table->config();
  SLUICE_RETURN_IF_ERROR(
      CheckIndex("Key", columns.key_index, config.key_dtype));
  SLUICE_RETURN_IF_ERROR(
      CheckIndex("Value", columns.value_index, config.value_dtype));
  SLUICE_ASSIGN_OR_RETURN(const std::string text, files.ReadFile(path));
  std::vector<std::string> lines = Lines(text);
  const int64_t available = static_cast<int64_t>(lines.size());
  if (columns.vocab_size > available) {
    return InvalidArgument("Invalid vocab_size in ", path, ": expected ",
                           columns.vocab_size, " but got ", available);
  }
  if (columns.vocab_size >= 0 && columns.vocab_size < available) {
    SLUICE_LOG(WARNING) << "Truncated " << path << " before its end at "
                        << columns.vocab_size << " records.";
    lines.resize(columns.vocab_size);
  }
  const int64_t count = static_cast<int64_t>(lines.size());
  SLUICE_ASSIGN_OR_RETURN(Tensor keys,
                          Tensor::Create(config.key_dtype, Shape({count})));
  SLUICE_ASSIGN_OR_RETURN(Tensor values,
                          Tensor::Create(config.value_dtype, Shape({count})));
  const int64_t last = std::max(columns.key_index, columns.value_index);
  for (int64_t i = 0; i < count; ++i) {
    std::vector<std::string> tokens;
    if (last >= 0) tokens = SplitAt(lines[i], columns.delimiter);
    if (last >= static_cast<int64_t>(tokens.size())) {
      return InvalidArgument("Invalid number of columns in ", path, " line ", i,
                             " (", lines[i], ") : expected ", last + 1, " got ",
                             tokens.size());
    }
    SLUICE_RETURN_IF_ERROR(
        SetPart(lines[i], tokens, columns.key_index, i, &keys));
    SLUICE_RETURN_IF_ERROR(
        SetPart(lines[i], tokens, columns.value_index, i, &values));
  }
  return table->Import(keys, values);
}

}  // namespace sluice
