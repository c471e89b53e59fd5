#include "sluice/io/block.h"

#include <algorithm>

#include "sluice/base/coding.h"
#include "sluice/base/status.h"

namespace sluice {

void BlockHandle::AppendTo(std::string* out) const {
  AppendVarint(offset, out);
  AppendVarint(size, out);
}

bool BlockHandle::TakeFrom(std::string_view* bytes) {
  return TakeVarint64(bytes, &offset) && TakeVarint64(bytes, &size);
}

BlockBuilder::BlockBuilder(int restart_interval)
    : restart_interval_(restart_interval) {
  Clear();
}

void BlockBuilder::Clear() {
  bytes_.clear();
  restarts_.assign(1, 0);
  since_restart_ = 0;
  last_key_.clear();
}

size_t BlockBuilder::size() const {
  return bytes_.size() + 4 * restarts_.size() + 4;
}

void BlockBuilder::Add(std::string_view key, std::string_view value) {
  size_t shared = 0;
  if (since_restart_ < restart_interval_) {
    const size_t limit = std::min(key.size(), last_key_.size());
    while (shared < limit && key[shared] == last_key_[shared]) ++shared;
  } else {
    restarts_.push_back(static_cast<uint32_t>(bytes_.size()));
    since_restart_ = 0;
  }
  AppendVarint(shared, &bytes_);
  AppendVarint(key.size() - shared, &bytes_);
  AppendVarint(value.size(), &bytes_);
  bytes_.append(key.substr(shared));
  bytes_.append(value);
  last_key_ = key;
  ++since_restart_;
}

std::string_view BlockBuilder::Finish() {
  for (uint32_t restart : restarts_) AppendFixed32(restart, &bytes_);
  AppendFixed32(static_cast<uint32_t>(restarts_.size()), &bytes_);
  return bytes_;
}

BlockCursor::BlockCursor(std::string_view block) {
  if (block.size() >= 4) {
    restart_count_ = LoadFixed32(block.data() + block.size() - 4);
  }
  const uint64_t tail = 4 + 4 * uint64_t{restart_count_};
  if (restart_count_ == 0 || tail > block.size()) {
    Fail();
    return;
  }
  entries_ = block.substr(0, block.size() - tail);
  restarts_ = entries_.data() + entries_.size();
}

void BlockCursor::Fail() {
  restart_count_ = 0;
  valid_ = false;
  status_ = DataLoss("bad entry in block");
}

uint32_t BlockCursor::Restart(uint32_t i) const {
  return LoadFixed32(restarts_ + 4 * size_t{i});
}

void BlockCursor::GoToRestart(uint32_t i) {
  const uint32_t offset = Restart(i);
  if (offset > entries_.size()) return Fail();
  rest_ = entries_.substr(offset);
  key_.clear();
  Next();
}

void BlockCursor::SeekToFirst() {
  if (restart_count_ > 0) GoToRestart(0);
}

void BlockCursor::Next() {
  valid_ = false;
  if (rest_.empty() || !status_.ok()) return;
  uint32_t shared, unshared, value_size;
  if (!TakeVarint32(&rest_, &shared) || !TakeVarint32(&rest_, &unshared) ||
      !TakeVarint32(&rest_, &value_size) || shared > key_.size() ||
      uint64_t{unshared} + value_size > rest_.size()) {
    return Fail();
  }
  key_.resize(shared);
  key_.append(rest_.substr(0, unshared));
  value_ = rest_.substr(unshared, value_size);
  rest_.remove_prefix(size_t{unshared} + value_size);
  valid_ = true;
}

void BlockCursor::Seek(std::string_view key) {
  if (restart_count_ == 0) return;
  // The last restart whose key is smaller: the key sought is not before it.
  uint32_t low = 0, high = restart_count_ - 1;
  while (low < high) {
    const uint32_t middle = low + (high - low + 1) / 2;
    GoToRestart(middle);
    if (!status_.ok()) return;
    if (valid_ && key_ < key) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  for (GoToRestart(low); valid_ && key_ < key;) Next();
}

}  // namespace sluice
