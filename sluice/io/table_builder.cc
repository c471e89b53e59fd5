#include "sluice/base/coding.h"
#include "sluice/base/crc32c.h"
#include "sluice/base/status.h"
#include "sluice/io/table.h"
#include "sluice/io/table_format.h"

namespace sluice {
namespace {

// TensorFlow's choices. They must stay for files to be equal byte for byte.
constexpr size_t kBlockSize = 256 << 10;
constexpr int kDataRestartInterval = 16;
constexpr int kIndexRestartInterval = 1;

// The shortest key that is >= `key` and < `next` by raising one byte of `key`,
// or `key` itself.
std::string ShortestSeparator(std::string_view key, std::string_view next) {
  size_t same = 0;
  const size_t limit = std::min(key.size(), next.size());
  while (same < limit && key[same] == next[same]) ++same;
  if (same < limit) {
    const uint8_t byte = static_cast<uint8_t>(key[same]);
    if (byte < 0xff && byte + 1 < static_cast<uint8_t>(next[same])) {
      std::string separator(key.substr(0, same + 1));
      separator.back() = static_cast<char>(byte + 1);
      return separator;
    }
  }
  return std::string(key);
}

// A short key that is >= `key`.
std::string ShortSuccessor(std::string_view key) {
  for (size_t i = 0; i < key.size(); ++i) {
    const uint8_t byte = static_cast<uint8_t>(key[i]);
    if (byte == 0xff) continue;
    std::string successor(key.substr(0, i + 1));
    successor.back() = static_cast<char>(byte + 1);
    return successor;
  }
  return std::string(key);
}

}  // namespace

TableBuilder::TableBuilder(WritableFile* file)
    : file_(file), data_(kDataRestartInterval), index_(kIndexRestartInterval) {}

absl::Status TableBuilder::Add(std::string_view key, std::string_view value) {
  if (has_keys_ && key <= last_key_) {
    return InvalidArgument("Keys of a table must rise: '", key,
                           "' comes after '", last_key_, "'");
  }
  if (!data_.empty() && value.size() >= 2 * kBlockSize) {
    SLUICE_RETURN_IF_ERROR(CloseBlock());
  }
  if (pending_.has_value()) {
    std::string handle;
    pending_->AppendTo(&handle);
    index_.Add(ShortestSeparator(last_key_, key), handle);
    pending_.reset();
  }
  data_.Add(key, value);
  last_key_ = key;
  has_keys_ = true;
  return data_.size() >= kBlockSize ? CloseBlock() : absl::OkStatus();
}

absl::Status TableBuilder::CloseBlock() {
  SLUICE_ASSIGN_OR_RETURN(pending_, WriteBlock(&data_));
  return absl::OkStatus();
}

absl::StatusOr<BlockHandle> TableBuilder::WriteBlock(BlockBuilder* block) {
  const std::string_view contents = block->Finish();
  const BlockHandle handle{offset_, contents.size()};
  std::string trailer(1, kBlockPlain);
  AppendFixed32(MaskCrc(Crc32cExtend(Crc32c(contents), trailer)), &trailer);
  SLUICE_RETURN_IF_ERROR(file_->Append(contents));
  SLUICE_RETURN_IF_ERROR(file_->Append(trailer));
  offset_ += contents.size() + trailer.size();
  block->Clear();
  return handle;
}

absl::Status TableBuilder::Finish() {
  if (!data_.empty()) SLUICE_RETURN_IF_ERROR(CloseBlock());
  BlockBuilder nothing(kIndexRestartInterval);
  SLUICE_ASSIGN_OR_RETURN(const BlockHandle meta, WriteBlock(&nothing));
  if (pending_.has_value()) {
    std::string handle;
    pending_->AppendTo(&handle);
    index_.Add(ShortSuccessor(last_key_), handle);
    pending_.reset();
  }
  SLUICE_ASSIGN_OR_RETURN(const BlockHandle index, WriteBlock(&index_));
  std::string footer;
  meta.AppendTo(&footer);
  index.AppendTo(&footer);
  footer.resize(kFooterSize - 8, '\0');
  AppendFixed64(kTableMagic, &footer);
  return file_->Append(footer);
}

}  // namespace sluice
