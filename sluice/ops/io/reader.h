// Reader: the records of files whose names come from a queue, one after the
// other. A name is a unit of work; when its file has no more records the next
// name is dequeued.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/base/file.h"
#include "sluice/base/mutex.h"
#include "sluice/kernel/kernel.h"
#include "sluice/kernel/resource.h"
#include "sluice/ops/queue/queue.h"
#include "sluice/ops/queue/step_lock.h"

namespace sluice {

struct Record {
  std::string key;  // Says where in which file it was.
  std::string value;
};

// Thread-safe: one operation at a time, in the order they came. None blocks the
// caller; files are read on the compute pool.
class Reader : public Resource {
 public:
  explicit Reader(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }

  using RecordsDone =
      absl::AnyInvocable<void(absl::StatusOr<std::vector<Record>>)>;
  // One record, or with `most` > 0 up to that many, all of one file and at
  // least one. OUT_OF_RANGE from the queue when it is closed and empty.
  void Read(RefPtr<Queue> queue, int64_t most, const KernelContext& ctx,
            RecordsDone done);
  // Runs `change` while nobody reads.
  using Change = absl::AnyInvocable<absl::Status(Reader&)>;
  void WhenIdle(const KernelContext& ctx, Change change, Done done);

  int64_t records_produced() const;
  int64_t work_units_completed() const;

  // Only inside WhenIdle.
  void Reset();
  virtual absl::StatusOr<std::string> SerializeState() const;
  virtual absl::Status RestoreState(const std::string& state,
                                    FileSystem& files);

  std::string DebugString() const override;

 protected:
  // Starts with a file.
  virtual absl::Status Open(FileSystem& files, const std::string& path) = 0;
  // The next record; false at the end of the file.
  virtual absl::StatusOr<bool> Next(const std::string& path,
                                    Record* record) = 0;
  virtual void Close() = 0;

  // For kinds that can say where they are.
  std::string SerializeBase() const;
  absl::Status RestoreBase(const std::string& state, FileSystem& files);

 private:
  struct Request;
  using RequestPtr = std::unique_ptr<Request>;

  void Continue(RequestPtr request);
  absl::StatusOr<bool> TryNext(Record* record);
  void AwaitWork(RequestPtr request);
  absl::Status StartWork(const Request& request,
                         const absl::StatusOr<Tuple>& element);
  void FinishWork();
  void End(RequestPtr request, absl::Status status);

  const std::string name_;
  StepLock lock_;
  // Guarded by lock_: what only the operation under way touches.
  std::string work_;
  bool in_progress_ = false;

  mutable Mutex mu_;
  int64_t started_ SLUICE_GUARDED_BY(mu_) = 0;
  int64_t finished_ SLUICE_GUARDED_BY(mu_) = 0;
  int64_t produced_ SLUICE_GUARDED_BY(mu_) = 0;
};

}  // namespace sluice
