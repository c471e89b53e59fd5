// Table: a sorted map from byte strings to byte strings in one file, the format
// of checkpoint indexes (LevelDB's, without filters).
// docs/formats/checkpoint.md has the layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/base/file.h"
#include "sluice/base/mutex.h"
#include "sluice/io/block.h"

namespace sluice {

// Writes a table. The file stays the caller's, who syncs and closes it.
// Thread-compatible.
class TableBuilder {
 public:
  explicit TableBuilder(WritableFile* file);

  // Keys must come in strictly rising byte order.
  absl::Status Add(std::string_view key, std::string_view value);
  absl::Status Finish();

 private:
  absl::Status CloseBlock();
  absl::StatusOr<BlockHandle> WriteBlock(BlockBuilder* block);

  WritableFile* const file_;
  BlockBuilder data_;
  BlockBuilder index_;
  uint64_t offset_ = 0;
  bool has_keys_ = false;
  std::string last_key_;
  // The last block written: its index key depends on the key that follows.
  std::optional<BlockHandle> pending_;
};

// Reads a table. Blocks are read when first needed and kept. Thread-safe.
class Table {
 public:
  static absl::StatusOr<std::unique_ptr<Table>> Open(
      std::unique_ptr<RandomAccessFile> file, bool verify_checksums = true);

  // The value of `key`, or nothing.
  absl::StatusOr<std::optional<std::string>> Find(std::string_view key) const;

  // Calls visit(key, value) for each key from `start` on in order, until it
  // returns false. The views live for that call only.
  using Visitor = absl::FunctionRef<bool(std::string_view, std::string_view)>;
  absl::Status Scan(std::string_view start, Visitor visit) const;

 private:
  struct Entry {
    std::string last_key;  // No smaller than any key in the block.
    BlockHandle handle;
  };
  using BlockPtr = std::shared_ptr<const std::string>;

  Table(std::unique_ptr<RandomAccessFile> file, bool verify_checksums)
      : file_(std::move(file)), verify_(verify_checksums) {}
  absl::Status ReadIndex();
  absl::StatusOr<BlockPtr> ReadBlock(const BlockHandle& handle) const;
  absl::StatusOr<BlockPtr> DataBlock(size_t i) const;
  // The first block that may hold `key`.
  size_t BlockOf(std::string_view key) const;

  const std::unique_ptr<RandomAccessFile> file_;
  const bool verify_;
  std::vector<Entry> index_;  // Constant after Open.

  mutable Mutex mu_;
  mutable std::vector<BlockPtr> blocks_ SLUICE_GUARDED_BY(mu_);
};

}  // namespace sluice
