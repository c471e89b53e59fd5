#include "sluice/io/table.h"

#include <snappy.h>

#include <algorithm>

#include "sluice/base/coding.h"
#include "sluice/base/crc32c.h"
#include "sluice/base/status.h"
#include "sluice/io/table_format.h"

namespace sluice {
namespace {

absl::StatusOr<std::string> Unpack(std::string_view packed) {
  size_t size;
  // Snappy copies at most 64 bytes for 3, so a larger claim is a lie.
  if (!snappy::GetUncompressedLength(packed.data(), packed.size(), &size) ||
      size / 32 > packed.size()) {
    return DataLoss("corrupted compressed block contents");
  }
  std::string block;
  if (!snappy::Uncompress(packed.data(), packed.size(), &block)) {
    return DataLoss("corrupted compressed block contents");
  }
  return block;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Table>> Table::Open(
    std::unique_ptr<RandomAccessFile> file, bool verify_checksums) {
  std::unique_ptr<Table> table(new Table(std::move(file), verify_checksums));
  SLUICE_RETURN_IF_ERROR(table->ReadIndex());
  return table;
}

absl::Status Table::ReadIndex() {
  if (file_->size() < static_cast<int64_t>(kFooterSize)) {
    return DataLoss("file is too short to be an sstable");
  }
  char footer[kFooterSize];
  SLUICE_RETURN_IF_ERROR(
      ReadExactly(*file_, file_->size() - kFooterSize, kFooterSize, footer));
  if (LoadFixed64(footer + kFooterSize - 8) != kTableMagic) {
    return DataLoss("not an sstable (bad magic number)");
  }
  std::string_view handles(footer, kFooterSize - 8);
  BlockHandle meta, index;
  if (!meta.TakeFrom(&handles) || !index.TakeFrom(&handles)) {
    return DataLoss("bad block handle");
  }
  SLUICE_ASSIGN_OR_RETURN(const BlockPtr block, ReadBlock(index));
  BlockCursor cursor(*block);
  for (cursor.SeekToFirst(); cursor.valid(); cursor.Next()) {
    std::string_view value = cursor.value();
    Entry entry{cursor.key(), {}};
    if (!entry.handle.TakeFrom(&value)) return DataLoss("bad block handle");
    index_.push_back(std::move(entry));
  }
  SLUICE_RETURN_IF_ERROR(cursor.status());
  MutexLock lock(mu_);
  blocks_.resize(index_.size());
  return absl::OkStatus();
}

absl::StatusOr<Table::BlockPtr> Table::ReadBlock(
    const BlockHandle& handle) const {
  const uint64_t file_size = static_cast<uint64_t>(file_->size());
  if (handle.size > file_size || handle.offset > file_size ||
      handle.offset + handle.size + kBlockTrailer > file_size) {
    return DataLoss("truncated block read");
  }
  auto block = std::make_shared<std::string>(handle.size + kBlockTrailer, '\0');
  SLUICE_RETURN_IF_ERROR(
      ReadExactly(*file_, handle.offset, block->size(), block->data()));
  const std::string_view typed(block->data(), handle.size + 1);
  const uint32_t stored = LoadFixed32(block->data() + typed.size());
  if (verify_ && UnmaskCrc(stored) != Crc32c(typed)) {
    return DataLoss("block checksum mismatch");
  }
  const char type = typed.back();
  block->resize(handle.size);
  if (type == kBlockSnappy) {
    SLUICE_ASSIGN_OR_RETURN(*block, Unpack(*block));
  } else if (type != kBlockPlain) {
    return DataLoss("bad block type");
  }
  return block;
}

absl::StatusOr<Table::BlockPtr> Table::DataBlock(size_t i) const {
  {
    MutexLock lock(mu_);
    if (blocks_[i] != nullptr) return blocks_[i];
  }
  // Two threads may both read it; the bytes are the same.
  SLUICE_ASSIGN_OR_RETURN(BlockPtr block, ReadBlock(index_[i].handle));
  MutexLock lock(mu_);
  blocks_[i] = block;
  return block;
}

size_t Table::BlockOf(std::string_view key) const {
  const auto found =
      std::lower_bound(index_.begin(), index_.end(), key,
                       [](const Entry& entry, std::string_view k) {
                         return entry.last_key < k;
                       });
  return found - index_.begin();
}

absl::StatusOr<std::optional<std::string>> Table::Find(
    std::string_view key) const {
  std::optional<std::string> value;
  SLUICE_RETURN_IF_ERROR(
      Scan(key, [&](std::string_view found, std::string_view bytes) {
        if (found == key) value = bytes;
        return false;
      }));
  return value;
}

absl::Status Table::Scan(std::string_view start, Visitor visit) const {
  for (size_t i = BlockOf(start); i < index_.size(); ++i) {
    SLUICE_ASSIGN_OR_RETURN(const BlockPtr block, DataBlock(i));
    BlockCursor cursor(*block);
    for (cursor.Seek(start); cursor.valid(); cursor.Next()) {
      if (!visit(cursor.key(), cursor.value())) return absl::OkStatus();
    }
    SLUICE_RETURN_IF_ERROR(cursor.status());
  }
  return absl::OkStatus();
}

}  // namespace sluice
