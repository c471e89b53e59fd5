#include "sluice/server/doctor.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "sluice/base/mutex.h"
#include "sluice/base/status.h"
#include "sluice/proto/cluster.pb.h"
#include "sluice/proto/device.pb.h"
#include "sluice/proto/worker.pb.h"
#include "sluice/rpc/byte_buffer.h"
#include "sluice/rpc/client_call.h"
#include "sluice/rpc/config.h"
#include "sluice/rpc/paths.h"
#include "sluice/server/status.h"

namespace sluice {
namespace {

// The best of this many round trips is shown, and used to compare clocks.
constexpr int kRoundTrips = 5;

// One task being examined: first GetStatus, which TensorFlow answers too, then
// our own Status a few times.
struct Examination : std::enable_shared_from_this<Examination> {
  TaskDiagnosis result;
  std::shared_ptr<RpcChannel> channel;
  SteadyTime deadline;
  pb::GetStatusResponse devices;
  int trips_left = kRoundTrips;
  Notification finished;

  void Call(const char* path, const google::protobuf::MessageLite& request,
            RpcChannel::Done done) {
    RpcChannel::Options options;
    options.deadline = deadline;
    channel->Call(path, request, options, std::move(done));
  }

  void Begin() {
    Call(paths::kGetStatus, pb::GetStatusRequest(),
         [self = shared_from_this()](const absl::Status& status,
                                     grpc::ByteBuffer bytes) {
           if (!status.ok()) {
             self->Unreachable(status);
           } else if (!FromByteBuffer(&bytes, &self->devices)) {
             self->result.finding = "answers with something unreadable";
             self->result.advice = "See what listens there.";
             self->finished.Notify();
           } else {
             self->Measure();
           }
         });
  }

  void Unreachable(const absl::Status& status) {
    result.finding = WhyUnreachable(channel->address(), status);
    result.advice = Advice(result.finding);
    finished.Notify();
  }

  static std::string Advice(const std::string& why) {
    const auto has = [&](const char* part) {
      return why.find(part) != std::string::npos;
    };
    if (has("does not resolve")) {
      return "Correct the host name, or the name service of this machine.";
    }
    if (has("refused")) {
      return "Start the task, or correct its address; if it runs elsewhere "
             "only on localhost, give it an address others can reach.";
    }
    if (has("no answer")) {
      return "See whether the host is up, a firewall drops the packets, or the "
             "process is stopped.";
    }
    if (has("something else listens")) {
      return "Another program has the port: choose another one. If it is a "
             "server that expects TLS, ask it with TLS.";
    }
    return "If the server expects TLS, ask it with TLS.";
  }

  void Measure() {
    const auto sent = std::chrono::steady_clock::now();
    const int64_t sent_wall = RealClock().WallMicros();
    // A copy: the callback may come while this object is in use.
    Call(paths::kStatus, pb::TaskStatusRequest(),
         [self = shared_from_this(), sent, sent_wall](
             const absl::Status& status, grpc::ByteBuffer bytes) {
           self->Measured(status, &bytes, sent, sent_wall);
         });
  }

  void Measured(const absl::Status& status, grpc::ByteBuffer* bytes,
                SteadyTime sent, int64_t sent_wall) {
    const double trip_ms = std::chrono::duration<double, std::milli>(
                               std::chrono::steady_clock::now() - sent)
                               .count();
    pb::TaskStatus theirs;
    const bool ours = status.ok() && FromByteBuffer(bytes, &theirs);
    if (!ours && !absl::IsUnimplemented(status)) {
      Unreachable(status);
      return;
    }
    if (!result.round_trip_ms || trip_ms < *result.round_trip_ms) {
      result.round_trip_ms = trip_ms;
      if (ours) {
        result.version = theirs.version();
        // It looked at its clock half a round trip after we looked at ours.
        result.skew_ms =
            static_cast<double>(theirs.wall_micros() - sent_wall) / 1000 -
            trip_ms / 2;
      }
    }
    if (--trips_left > 0) {
      Measure();
    } else {
      finished.Notify();
    }
  }
};

std::string NameOf(const std::string& job, int index) {
  return StrCat("/job:", job, "/replica:0/task:", index);
}

class Doctor {
 public:
  Doctor(const ClusterSpec& cluster, const DoctorOptions& options)
      : cluster_(cluster), options_(options) {}

  std::vector<TaskDiagnosis> Examine() {
    Ask();
    for (const auto& task : tasks_) {
      task->finished.Wait();
      Judge(*task);
    }
    CompareIncarnations();
    CompareVersions();
    std::vector<TaskDiagnosis> results;
    for (const auto& task : tasks_) results.push_back(std::move(task->result));
    return results;
  }

 private:
  void Ask() {
    const absl::StatusOr<TlsIdentityPtr> tls = LoadTls(
        options_.tls.empty() ? TlsOptions::FromEnvironment() : options_.tls,
        TlsRole::kClient);
    for (const auto& [job, tasks] : cluster_.tasks()) {
      for (const auto& [index, address] : tasks) {
        auto task = std::make_shared<Examination>();
        task->result.task = NameOf(job, index);
        task->result.address = address;
        task->deadline = std::chrono::steady_clock::now() + options_.timeout;
        tasks_.push_back(task);
        absl::StatusOr<std::shared_ptr<RpcChannel>> channel =
            tls.ok() ? RpcChannel::CreateWithTls(address, *tls) : tls.status();
        if (channel.ok()) {
          task->channel = *std::move(channel);
          task->Begin();
        } else {
          Blame(*task, std::string(channel.status().message()),
                "An address is host:port.");
          task->finished.Notify();
        }
      }
    }
  }

  static void Blame(Examination& task, std::string finding,
                    std::string advice) {
    task.result.healthy = false;
    // The first finding is the cause of those that follow.
    if (!task.result.finding.empty()) return;
    task.result.finding = std::move(finding);
    task.result.advice = std::move(advice);
  }

  void Judge(Examination& task) {
    if (!task.result.finding.empty()) return;
    task.result.healthy = true;
    JudgeDevices(task);
    if (task.devices.has_sluice_cluster()) JudgeCluster(task);
    if (task.result.skew_ms &&
        std::abs(*task.result.skew_ms) > options_.max_skew_ms) {
      Blame(task,
            absl::StrFormat("its clock differs by %.1f s from this machine's",
                            *task.result.skew_ms / 1000),
            "Set the clocks by NTP: logs and traces mislead otherwise.");
    }
  }

  void JudgeDevices(Examination& task) {
    std::string other;
    for (const pb::DeviceAttributes& proto : task.devices.device_attributes()) {
      absl::StatusOr<DeviceInfo> device = DeviceFromProto(proto);
      if (!device.ok()) continue;
      task.result.devices.push_back(device->text);
      if (task.result.incarnation == 0) {
        task.result.incarnation = device->incarnation;
      }
      if (device->name.TaskName() != task.result.task) {
        other = device->name.TaskName();
      }
    }
    if (!other.empty()) {
      const std::string expected = AddressOf(other);
      Blame(task, StrCat("answers as ", other),
            expected.empty()
                ? StrCat("It belongs to another cluster: stop it, or choose "
                         "another port.")
                : StrCat("The cluster has ", other, " at ", expected,
                         ": are the addresses swapped, or was the server "
                         "started with the wrong job or index?"));
    } else if (task.result.devices.empty()) {
      Blame(task, "has no devices", "See its log.");
    }
  }

  // Empty if the cluster has no such task.
  std::string AddressOf(const std::string& name) const {
    for (const auto& [job, tasks] : cluster_.tasks()) {
      for (const auto& [index, address] : tasks) {
        if (NameOf(job, index) == name) return address;
      }
    }
    return "";
  }

  void JudgeCluster(Examination& task) {
    absl::StatusOr<ClusterSpec> theirs =
        ClusterSpec::FromProto(task.devices.sluice_cluster());
    if (!theirs.ok()) return;
    const std::string difference = Difference(*theirs);
    if (difference.empty()) return;
    Blame(task, StrCat("was started with another cluster: ", difference),
          "Start all tasks with the same cluster.");
  }

  static std::string Port(const std::string& address) {
    return address.substr(address.rfind(':') + 1);
  }

  // Hosts may have several names, but not ports.
  std::string Difference(const ClusterSpec& theirs) const {
    for (const auto& [job, tasks] : cluster_.tasks()) {
      for (const auto& [index, address] : tasks) {
        const absl::StatusOr<std::string> there =
            theirs.TaskAddress(job, index);
        const std::string name = NameOf(job, index);
        if (!there.ok()) return StrCat("it has no ", name);
        if (Port(*there) != Port(address)) {
          return StrCat("there ", name, " is at ", *there);
        }
      }
    }
    for (const auto& [job, tasks] : theirs.tasks()) {
      for (const auto& [index, address] : tasks) {
        const std::string name = NameOf(job, index);
        if (AddressOf(name).empty()) return StrCat("it has ", name, " too");
      }
    }
    return "";
  }

  void CompareIncarnations() {
    std::map<uint64_t, Examination*> seen;
    for (const auto& task : tasks_) {
      if (task->result.incarnation == 0) continue;
      const auto [it, added] =
          seen.try_emplace(task->result.incarnation, task.get());
      if (added) continue;
      Blame(*task,
            StrCat("is the same process as ", it->second->result.task, " at ",
                   it->second->result.address),
            "Two addresses lead to one server: correct one of them.");
    }
  }

  void CompareVersions() {
    for (const auto& task : tasks_) {
      const std::string& version = task->result.version;
      if (version.empty() || version == SluiceVersion()) continue;
      Blame(*task,
            StrCat("runs Sluice ", version, ", this is ", SluiceVersion()),
            "Run the same release everywhere.");
    }
  }

  const ClusterSpec& cluster_;
  const DoctorOptions options_;
  std::vector<std::shared_ptr<Examination>> tasks_;
};

std::string Millis(const std::optional<double>& value, bool sign) {
  if (!value) return "-";
  return sign ? absl::StrFormat("%+.1f ms", *value)
              : absl::StrFormat("%.2f ms", *value);
}

}  // namespace

std::vector<TaskDiagnosis> Diagnose(const ClusterSpec& cluster,
                                    const DoctorOptions& options) {
  return Doctor(cluster, options).Examine();
}

std::string DiagnosisText(const std::vector<TaskDiagnosis>& tasks) {
  std::vector<std::vector<std::string>> rows = {
      {"task", "address", "round trip", "clock", "finding"}};
  int ill = 0;
  for (const TaskDiagnosis& task : tasks) {
    const bool reached = task.round_trip_ms.has_value();
    rows.push_back({task.task, task.address, Millis(task.round_trip_ms, false),
                    task.skew_ms ? Millis(task.skew_ms, true)
                                 : (reached ? "unknown" : "-"),
                    task.healthy && !task.skew_ms
                        ? "is well; not Sluice, so its clock is not known"
                        : (task.healthy ? "is well" : task.finding)});
    ill += task.healthy ? 0 : 1;
  }
  std::vector<size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (size_t i = 0; i < rows[r].size(); ++i) {
      StrAppend(&line, rows[r][i],
                i + 1 == rows[r].size()
                    ? ""
                    : std::string(widths[i] - rows[r][i].size() + 2, ' '));
    }
    StrAppend(&text, line, "\n");
    if (r > 0 && !tasks[r - 1].healthy && !tasks[r - 1].advice.empty()) {
      StrAppend(&text, "    ", tasks[r - 1].advice, "\n");
    }
  }
  if (ill == 0) {
    StrAppend(&text, "All ", tasks.size(), " tasks are well.\n");
  } else {
    StrAppend(&text, ill, " of ", tasks.size(), " tasks need attention.\n");
  }
  return text;
}

}  // namespace sluice
