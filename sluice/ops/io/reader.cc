#include "sluice/ops/io/reader.h"

#include <new>
#include <utility>

#include "absl/strings/escaping.h"
#include "sluice/base/status.h"
#include "sluice/base/thread_pool.h"
#include "sluice/proto/reader_base.pb.h"

namespace sluice {

struct Reader::Request {
  RefPtr<Reader> reader;
  RefPtr<Queue> queue;
  int64_t most = 0;  // 0: exactly one record.
  const KernelContext* ctx = nullptr;
  RecordsDone done;
  std::vector<Record> records;

  bool enough() const {
    return !records.empty() && static_cast<int64_t>(records.size()) >= most;
  }
};

void Reader::Read(RefPtr<Queue> queue, int64_t most, const KernelContext& ctx,
                  RecordsDone done) {
  auto request = std::make_unique<Request>();
  request->reader = RefPtr<Reader>::Share(this);
  request->queue = std::move(queue);
  request->most = most;
  request->ctx = &ctx;
  request->done = std::move(done);
  const RefPtr<Reader> self = request->reader;
  lock_.Acquire(
      self, ctx, StrCat("reader '", name_, "', which another step is using"),
      [this, request = std::move(request)](const absl::Status& got) mutable {
        if (!got.ok()) return request->done(got);
        ComputePool().Schedule([this, request = std::move(request)]() mutable {
          Continue(std::move(request));
        });
      });
}

void Reader::Continue(RequestPtr request) {
  while (in_progress_ && !request->enough()) {
    if (request->ctx->step().cancellation->cancelled()) {
      return End(std::move(request), Cancelled("Read was cancelled"));
    }
    Record record;
    const absl::StatusOr<bool> found = TryNext(&record);
    if (!found.ok()) return End(std::move(request), found.status());
    if (*found) {
      request->records.push_back(std::move(record));
      MutexLock lock(mu_);
      ++produced_;
    } else {
      FinishWork();
      // Records of one call come from one file.
      if (!request->records.empty()) break;
    }
  }
  if (!request->records.empty()) {
    return End(std::move(request), absl::OkStatus());
  }
  AwaitWork(std::move(request));
}

absl::StatusOr<bool> Reader::TryNext(Record* record) {
  try {
    return Next(work_, record);
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("No memory left for a record of ", work_);
  }
}

void Reader::AwaitWork(RequestPtr request) {
  const RefPtr<Queue> queue = request->queue;
  const KernelContext& ctx = *request->ctx;
  queue->Dequeue(ctx, [this, request = std::move(request)](
                          absl::StatusOr<Tuple> element) mutable {
    // The thread is that of whoever enqueued.
    ComputePool().Schedule([this, request = std::move(request),
                            element = std::move(element)]() mutable {
      absl::Status status = StartWork(*request, element);
      if (!status.ok()) return End(std::move(request), std::move(status));
      Continue(std::move(request));
    });
  });
}

absl::Status Reader::StartWork(const Request& request,
                               const absl::StatusOr<Tuple>& element) {
  SLUICE_RETURN_IF_ERROR(element.status());
  if (element->size() != 1) {
    return InvalidArgument("Expected single component queue");
  }
  const Tensor& name = (*element)[0];
  if (name.dtype() != DType::kString) {
    return InvalidArgument("Expected queue with single string component");
  }
  if (name.size() != 1) {
    return InvalidArgument("Expected to dequeue a one-element string tensor");
  }
  work_ = name.data<std::string>()[0];
  SLUICE_RETURN_IF_ERROR(Open(request.ctx->device().files(), work_));
  in_progress_ = true;
  MutexLock lock(mu_);
  ++started_;
  return absl::OkStatus();
}

void Reader::FinishWork() {
  Close();
  in_progress_ = false;
  MutexLock lock(mu_);
  finished_ = started_;
}

void Reader::End(RequestPtr request, absl::Status status) {
  // What ends the step may drop the reader.
  const RefPtr<Reader> self = std::move(request->reader);
  lock_.Release();
  if (!status.ok()) return request->done(std::move(status));
  request->done(std::move(request->records));
}

void Reader::WhenIdle(const KernelContext& ctx, Change change, Done done) {
  const auto self = RefPtr<Reader>::Share(this);
  lock_.Acquire(self, ctx,
                StrCat("reader '", name_, "', which another step is using"),
                [self, change = std::move(change),
                 done = std::move(done)](const absl::Status& got) mutable {
                  if (!got.ok()) return done(got);
                  ComputePool().Schedule([self, change = std::move(change),
                                          done = std::move(done)]() mutable {
                    absl::Status status = change(*self);
                    self->lock_.Release();
                    done(std::move(status));
                  });
                });
}

int64_t Reader::records_produced() const {
  MutexLock lock(mu_);
  return produced_;
}

int64_t Reader::work_units_completed() const {
  MutexLock lock(mu_);
  return finished_;
}

void Reader::Reset() {
  if (in_progress_) Close();
  in_progress_ = false;
  work_.clear();
  MutexLock lock(mu_);
  started_ = finished_ = produced_ = 0;
}

absl::StatusOr<std::string> Reader::SerializeState() const {
  return Unimplemented("Reader SerializeState");
}

absl::Status Reader::RestoreState(const std::string&, FileSystem&) {
  return Unimplemented("Reader RestoreState");
}

std::string Reader::SerializeBase() const {
  pb::ReaderBaseState state;
  if (in_progress_) state.set_current_work(work_);
  MutexLock lock(mu_);
  state.set_work_started(started_);
  state.set_work_finished(finished_);
  state.set_num_records_produced(produced_);
  return state.SerializeAsString();
}

absl::Status Reader::RestoreBase(const std::string& bytes, FileSystem& files) {
  pb::ReaderBaseState state;
  if (!state.ParseFromString(bytes)) {
    return InvalidArgument("Could not parse state for ", name_, ": ",
                           absl::CEscape(bytes));
  }
  if (state.work_started() < 0 || state.work_finished() < 0 ||
      state.num_records_produced() < 0) {
    return InvalidArgument("Unexpected negative value when restoring in ",
                           name_, ": ", state.ShortDebugString());
  }
  const int64_t open = state.work_started() - state.work_finished();
  if (open != 0 && open != 1) {
    return InvalidArgument(
        "Inconsistent work started vs. finished when restoring in ", name_,
        ": ", state.ShortDebugString());
  }
  Reset();
  if (open == 1) {
    work_ = state.current_work();
    SLUICE_RETURN_IF_ERROR(Open(files, work_));
    in_progress_ = true;
  }
  MutexLock lock(mu_);
  started_ = state.work_started();
  finished_ = state.work_finished();
  produced_ = state.num_records_produced();
  return absl::OkStatus();
}

std::string Reader::DebugString() const {
  MutexLock lock(mu_);
  return StrCat("reader that gave ", produced_, " records of ", started_,
                " files");
}

}  // namespace sluice
