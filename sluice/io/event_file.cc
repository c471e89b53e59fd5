#include "sluice/io/event_file.h"

#include <unistd.h>

#include "absl/strings/str_format.h"
#include "sluice/base/logging.h"
#include "sluice/base/path.h"
#include "sluice/base/status.h"

namespace sluice {
namespace {

std::string HostName() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0) return "localhost";
  return name;
}

}  // namespace

EventWriter::EventWriter(FileSystem& files, Clock& clock, std::string logdir,
                         std::string suffix)
    : files_(files),
      clock_(clock),
      logdir_(std::move(logdir)),
      suffix_(std::move(suffix)) {}

EventWriter::~EventWriter() {
  const absl::Status status = Close();
  if (!status.ok()) {
    SLUICE_LOG(WARNING) << "Events were lost: " << status.message();
  }
}

absl::Status EventWriter::Open(int64_t seconds) {
  // Two writers of one second must not share a file: the later moves on.
  for (int64_t i = 0; i < 1000; ++i) {
    path_ =
        JoinPath(logdir_, absl::StrFormat("events.out.tfevents.%010d.%s%s",
                                          seconds + i, HostName(), suffix_));
    absl::StatusOr<std::unique_ptr<WritableFile>> file =
        files_.NewExclusive(path_);
    if (absl::IsAlreadyExists(file.status())) continue;
    SLUICE_RETURN_IF_ERROR(file.status());
    writer_ = std::make_unique<RecordWriter>(*std::move(file));
    return absl::OkStatus();
  }
  return AlreadyExists("No free name for an event file in ", logdir_);
}

absl::Status EventWriter::EnsureOpen() {
  if (writer_ != nullptr) return absl::OkStatus();
  if (!logdir_.empty()) SLUICE_RETURN_IF_ERROR(files_.MkDirs(logdir_));
  const int64_t seconds = clock_.WallMicros() / 1'000'000;
  SLUICE_RETURN_IF_ERROR(Open(seconds));
  pb::Event version;
  version.set_wall_time(static_cast<double>(seconds));
  version.set_file_version("brain.Event:2");
  SLUICE_RETURN_IF_ERROR(OrClose(writer_->Write(version.SerializeAsString())));
  return OrClose(writer_->Flush());
}

absl::Status EventWriter::Write(const pb::Event& event) {
  return WriteSerialized(event.SerializeAsString());
}

absl::Status EventWriter::WriteSerialized(std::string_view event) {
  MutexLock lock(mu_);
  SLUICE_RETURN_IF_ERROR(EnsureOpen());
  return OrClose(writer_->Write(event));
}

// A file that failed once fails for ever: the next event starts a new one.
absl::Status EventWriter::OrClose(absl::Status status) {
  if (!status.ok()) CloseFile().IgnoreError();  // It is the same error.
  return status;
}

absl::Status EventWriter::Flush() {
  MutexLock lock(mu_);
  SLUICE_RETURN_IF_ERROR(EnsureOpen());
  SLUICE_RETURN_IF_ERROR(OrClose(writer_->Flush()));
  if (files_.Exists(path_)) return absl::OkStatus();
  CloseFile().IgnoreError();  // What it held is gone anyway.
  return Unknown("The events file ", path_, " has disappeared.");
}

absl::Status EventWriter::CloseFile() {
  if (writer_ == nullptr) return absl::OkStatus();
  absl::Status status = writer_->Close();
  writer_.reset();
  return status;
}

absl::Status EventWriter::Close() {
  MutexLock lock(mu_);
  return CloseFile();
}

std::string EventWriter::path() const {
  MutexLock lock(mu_);
  return path_;
}

absl::StatusOr<std::unique_ptr<EventReader>> EventReader::Open(
    FileSystem& files, const std::string& path) {
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<RecordReader> records,
                          RecordReader::Open(files, path));
  return std::make_unique<EventReader>(std::move(records));
}

absl::StatusOr<bool> EventReader::Read(pb::Event* event) {
  const uint64_t offset = records_->offset();
  SLUICE_ASSIGN_OR_RETURN(const bool found, records_->Read(&record_));
  if (!found) return false;
  if (!event->ParseFromString(record_)) {
    return DataLoss("The record at ", offset, " is not an event");
  }
  return true;
}

}  // namespace sluice
