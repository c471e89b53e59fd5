// The blocks of a table file: runs of entries whose keys share prefixes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace sluice {

// Where a block lies, without its trailer.
struct BlockHandle {
  uint64_t offset = 0;
  uint64_t size = 0;

  void AppendTo(std::string* out) const;
  // Takes one off the front of `bytes`; false if there is none.
  bool TakeFrom(std::string_view* bytes);
};

// Thread-compatible.
class BlockBuilder {
 public:
  // Every `restart_interval`-th key is stored whole.
  explicit BlockBuilder(int restart_interval);

  // The key must be larger than the one before.
  void Add(std::string_view key, std::string_view value);
  // What Finish would give now, in bytes.
  size_t size() const;
  bool empty() const { return bytes_.empty(); }
  // The block, valid until Clear.
  std::string_view Finish();
  void Clear();

 private:
  const int restart_interval_;
  std::string bytes_;
  std::vector<uint32_t> restarts_;
  int since_restart_ = 0;
  std::string last_key_;
};

// Walks over the entries of a block. The bytes may be anything: a broken entry
// ends the walk with an error. Thread-compatible.
class BlockCursor {
 public:
  // `block` must outlive the cursor, which stands on no entry yet.
  explicit BlockCursor(std::string_view block);

  void SeekToFirst();
  // Goes to the first key that is not smaller.
  void Seek(std::string_view key);
  void Next();

  // Whether it stands on an entry. If not, status() says why: OK at the end.
  bool valid() const { return valid_; }
  const absl::Status& status() const { return status_; }
  const std::string& key() const { return key_; }
  std::string_view value() const { return value_; }

 private:
  uint32_t Restart(uint32_t i) const;
  void GoToRestart(uint32_t i);
  void Fail();

  std::string_view entries_;  // The block without its restarts.
  const char* restarts_ = nullptr;
  uint32_t restart_count_ = 0;
  std::string_view rest_;  // What follows the current entry.
  bool valid_ = false;
  absl::Status status_;
  std::string key_;
  std::string_view value_;
};

}  // namespace sluice
