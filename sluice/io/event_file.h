// Event files: records of what happened in training, which TensorBoard reads.
// docs/formats/events.md has the layout.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/base/clock.h"
#include "sluice/base/file.h"
#include "sluice/base/mutex.h"
#include "sluice/io/record_file.h"
#include "sluice/proto/event.pb.h"

namespace sluice {

// Writes `<logdir>/events.out.tfevents.<seconds>.<host><suffix>`, which it
// makes at the first event or flush, its directory too. If the file disappears
// or cannot be written, the next event after a Flush starts a new one.
// Thread-safe; calls block on the disk.
class EventWriter {
 public:
  EventWriter(FileSystem& files, Clock& clock, std::string logdir,
              std::string suffix = "");
  // Closes.
  ~EventWriter();

  absl::Status Write(const pb::Event& event);
  // The same for an event that is serialized already.
  absl::Status WriteSerialized(std::string_view event);
  // Hands all events to the system, where readers see them.
  absl::Status Flush();
  // Flushes and closes; a later event starts a new file.
  absl::Status Close();

  // The file of the last event; empty before the first.
  std::string path() const;

 private:
  absl::Status EnsureOpen() SLUICE_REQUIRES(mu_);
  // Takes the first free name from that time on.
  absl::Status Open(int64_t seconds) SLUICE_REQUIRES(mu_);
  absl::Status CloseFile() SLUICE_REQUIRES(mu_);
  absl::Status OrClose(absl::Status status) SLUICE_REQUIRES(mu_);

  FileSystem& files_;
  Clock& clock_;
  const std::string logdir_;
  const std::string suffix_;

  mutable Mutex mu_;
  std::unique_ptr<RecordWriter> writer_ SLUICE_GUARDED_BY(mu_);
  std::string path_ SLUICE_GUARDED_BY(mu_);
};

// Thread-compatible.
class EventReader {
 public:
  static absl::StatusOr<std::unique_ptr<EventReader>> Open(
      FileSystem& files, const std::string& path);
  explicit EventReader(std::unique_ptr<RecordReader> records)
      : records_(std::move(records)) {}

  // The next event; false at the end. A record that a writer has only begun is
  // DATA_LOSS "truncated record …", and may be read later.
  absl::StatusOr<bool> Read(pb::Event* event);

 private:
  const std::unique_ptr<RecordReader> records_;
  std::string record_;
};

}  // namespace sluice
