#include "sluice/server/status.h"

#include <unistd.h>

#include <map>

#include "sluice/base/blocking_pool.h"
#include "sluice/base/status.h"
#include "sluice/base/thread_pool.h"
#include "sluice/kernel/step.h"
#include "sluice/rpc/byte_buffer.h"
#include "sluice/rpc/client_call.h"
#include "sluice/rpc/lane_channel.h"
#include "sluice/rpc/paths.h"
#include "sluice/tensor/buffer.h"

namespace sluice {
namespace {

class Snapshot {
 public:
  explicit Snapshot(const TaskParts& task) : task_(task) {}

  pb::TaskStatus Take() {
    out_.set_task(task_.worker->task().ToString());
    out_.set_target(task_.target);
    out_.set_version(SluiceVersion());
    out_.set_pid(getpid());
    out_.set_uptime_seconds(Age(task_.started));
    AddSessions();
    AddWaits();
    AddQueues();
    AddPeers();
    AddCounters();
    AddPools();
    // Last, as it is compared with the clock of who reads it.
    out_.set_wall_micros(RealClock().WallMicros());
    return std::move(out_);
  }

 private:
  double Age(SteadyTime since) const {
    return std::max(0.0, std::chrono::duration<double>(now_ - since).count());
  }

  void AddUse(const SessionUse& use, pb::TaskStatus::Session* session) {
    session->set_handle(use.handle());
    session->set_client(use.client());
    session->set_age_seconds(Age(use.opened()));
    session->set_idle_seconds(Age(use.last_use()));
    session->set_held(use.held());
    for (const SessionUse::RunningStep& step : use.ListSteps()) {
      pb::TaskStatus::Step* out = session->add_steps();
      out->set_id(step.id);
      out->set_age_seconds(Age(step.since));
    }
  }

  void AddSessions() {
    for (const MasterSession::Info& info : task_.master->ListSessions()) {
      pb::TaskStatus::Session* session = out_.add_sessions();
      session->set_handle(info.handle);
      session->set_age_seconds(Age(info.opened));
      if (auto use = task_.activity->clients.Find(info.handle)) {
        use->Touch(info.last_use);
        AddUse(*use, session);
      }
      for (const auto& step : info.steps) {
        pb::TaskStatus::Step* out = session->add_steps();
        out->set_id(step.id);
        out->set_age_seconds(Age(step.since));
        for (const std::string& task : step.running_on) {
          out->add_running_on(task);
        }
      }
    }
    for (const auto& use : task_.activity->masters.List()) {
      AddUse(*use, out_.add_served_sessions());
    }
  }

  void AddWaits() {
    for (const WaitInfo& wait : WaitTable::Global().List()) {
      pb::TaskStatus::Wait* out = out_.add_waits();
      out->set_what(wait.what);
      out->set_where(wait.where);
      out->set_step_id(wait.step_id);
      out->set_age_seconds(Age(wait.since));
      out->set_owed_by(wait.owed_by);
    }
    std::map<int64_t, size_t> left = task_.activity->transfers->BytesLeft();
    for (const Worker::Transfers& step : task_.worker->ListTransfers()) {
      pb::TaskStatus::Transfers* out = out_.add_transfers();
      out->set_step_id(step.step_id);
      for (const std::string& key : step.wanted) out->add_wanted_key(key);
      const auto found = left.find(step.step_id);
      if (found == left.end()) continue;
      out->set_bytes_left(static_cast<int64_t>(found->second));
      left.erase(found);
    }
    for (const auto& [step_id, bytes] : left) {
      pb::TaskStatus::Transfers* out = out_.add_transfers();
      out->set_step_id(step_id);
      out->set_bytes_left(static_cast<int64_t>(bytes));
    }
  }

  void AddQueues() {
    for (const DeviceInfo& info : task_.worker->devices()) {
      Device* device = task_.worker->FindDevice(info.text);
      for (const auto& [name, depth] : device->resources().ListQueues()) {
        pb::TaskStatus::Queue* out = out_.add_queues();
        out->set_device(info.text);
        out->set_name(name);
        out->set_kind(depth.kind);
        out->set_elements(depth.elements);
        out->set_adding(depth.adding);
        out->set_taking(depth.taking);
      }
    }
    out_.set_lane_bytes_queued(LaneBytesQueued());
  }

  void AddPeers() {
    for (const auto& [name, worker] : task_.peers->peers()) {
      pb::TaskStatus::Peer* out = out_.add_peers();
      out->set_task(name);
      out->set_address(worker->address());
      const std::optional<SteadyTime> answer = worker->last_answer();
      out->set_last_answer_seconds(answer ? Age(*answer) : -1);
      out->set_lane(worker->has_lane());
    }
  }

  static void AddCalls(
      const CallCounters& calls,
      google::protobuf::RepeatedPtrField<pb::TaskStatus::Calls>* out) {
    for (const CallCounters::Method& method : calls.List()) {
      pb::TaskStatus::Calls* entry = out->Add();
      entry->set_method(method.name);
      entry->set_calls(method.calls);
      entry->set_request_bytes(method.request_bytes);
      entry->set_response_bytes(method.response_bytes);
    }
  }

  void AddCounters() {
    AddCalls(task_.activity->calls, out_.mutable_calls_in());
    AddCalls(OutgoingCalls(), out_.mutable_calls_out());
    const StepTotals& totals = *task_.master->env().totals;
    out_.set_steps_started(totals.started.load(std::memory_order_relaxed));
    out_.set_steps_failed(totals.failed.load(std::memory_order_relaxed));
    out_.set_kernels_run(Worker::KernelsRun());
    const BufferPoolStats buffers = GetBufferPoolStats();
    out_.set_buffer_hits(buffers.reuses);
    out_.set_buffer_misses(buffers.system_allocations);
    out_.set_buffer_bytes_in_use(buffers.bytes_in_use);
    out_.set_buffer_bytes_pooled(buffers.bytes_pooled);
  }

  void AddPools() {
    pb::TaskStatus::Pool* compute = out_.add_pools();
    compute->set_name("compute");
    compute->set_threads(ComputePool().size());
    compute->set_queued(ComputePool().queued());
    const BlockingPoolStats stats = GetBlockingPoolStats();
    pb::TaskStatus::Pool* blocking = out_.add_pools();
    blocking->set_name("blocking");
    blocking->set_threads(stats.threads);
    blocking->set_queued(stats.queued);
  }

  const TaskParts& task_;
  const SteadyTime now_ = RealClock().Now();
  pb::TaskStatus out_;
};

}  // namespace

pb::TaskStatus GetTaskStatus(const TaskParts& task) {
  return Snapshot(task).Take();
}

absl::StatusOr<pb::TaskStatus> FetchTaskStatus(
    const std::string& target, std::chrono::milliseconds timeout,
    const TlsOptions& tls_options) {
  constexpr char kPrefix[] = "grpc://";
  const std::string address =
      target.starts_with(kPrefix) ? target.substr(sizeof(kPrefix) - 1) : target;
  SLUICE_ASSIGN_OR_RETURN(
      TlsIdentityPtr tls,
      LoadTls(tls_options.empty() ? TlsOptions::FromEnvironment() : tls_options,
              TlsRole::kClient));
  SLUICE_ASSIGN_OR_RETURN(std::shared_ptr<RpcChannel> channel,
                          RpcChannel::CreateWithTls(address, std::move(tls)));
  RpcChannel::Options options;
  options.deadline = std::chrono::steady_clock::now() + timeout;
  Notification finished;
  absl::Status result;
  pb::TaskStatus status;
  channel->Call(paths::kStatus, pb::TaskStatusRequest(), options,
                [&](absl::Status answer, grpc::ByteBuffer bytes) {
                  result = std::move(answer);
                  if (result.ok() && !FromByteBuffer(&bytes, &status)) {
                    result = Internal("The answer could not be read");
                  }
                  finished.Notify();
                });
  finished.Wait();
  if (absl::IsUnimplemented(result)) {
    return Unimplemented("The server at ", address,
                         " is not Sluice's; it does not tell its status");
  }
  if (!result.ok()) {
    return WithMessage(result, WhyUnreachable(address, result));
  }
  return status;
}

const char* SluiceVersion() { return SLUICE_VERSION; }

}  // namespace sluice
