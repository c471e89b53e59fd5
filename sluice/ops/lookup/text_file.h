// Tables whose entries are the lines of a text file.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "sluice/base/file.h"
#include "sluice/ops/lookup/table.h"

namespace sluice {

// What of a line is the key and what the value: a column, counted from 0, or
// one of these.
inline constexpr int64_t kLineNumber = -1;
inline constexpr int64_t kWholeLine = -2;

struct TextFileColumns {
  int64_t key_index = 0;
  int64_t value_index = 0;
  int64_t vocab_size = -1;  // Lines to read; -1: all.
  char delimiter = '\t';
};

// Fills a static table. Blocks.
absl::Status FillFromTextFile(FileSystem& files, const std::string& path,
                              const TextFileColumns& columns,
                              LookupTable* table);

}  // namespace sluice
