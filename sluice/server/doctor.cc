#include "sluice/server/doctor.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "sluice/base/mutex.h"
#include "sluice/base/status.h"
#include "sluice/proto/cluster.pb.h"
#include "sluice/proto/device.pb.h"
#include "sluice/proto/master.pb.h"
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
             self->Unreadable();
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

  void Unreadable() {
    result.finding = "answers with something unreadable";
    result.advice = "See what listens there.";
    finished.Notify();
  }

  // For what WhyUnreachable says; behind a TLS handshake that failed stands
  // what rpc/tls_probe.h says.
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
    if (has("wants TLS")) {
      return "Ask with the certificates of its cluster: --tls DIR, or "
             "SLUICE_TLS_CERT, SLUICE_TLS_KEY and SLUICE_TLS_CA.";
    }
    if (has("speaks plain text")) {
      return "Start it with certificates (--tls DIR), or ask it without.";
    }
    if (has("has expired")) {
      return "Make new certificates with `sluice certs` and restart with them.";
    }
    if (has("not valid yet")) return "Set the clocks by NTP.";
    if (has("is for other hosts")) {
      return "Restart it with a certificate for the host of its address.";
    }
    if (has("not signed by the CA") || has("does not take the certificate")) {
      return "Give this side and the task certificates of one CA.";
    }
    if (has("something else listens")) {
      return "Another program has the port: choose another one.";
    }
    return "See its log.";
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
    if (status.ok() && !ours) return Unreadable();
    if (!ours && !absl::IsUnimplemented(status)) return Unreachable(status);
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
  Doctor(const ClusterSpec& cluster, const DoctorOptions& options,
         TlsIdentityPtr tls)
      : cluster_(cluster), options_(options), tls_(std::move(tls)) {}

  std::vector<TaskDiagnosis> Examine() {
    Ask();
    for (const auto& task : tasks_) {
      task->finished.Wait();
      ReadDevices(*task);
    }
    for (const auto& task : tasks_) Judge(*task);
    CompareVersions();
    std::vector<TaskDiagnosis> results;
    for (const auto& task : tasks_) results.push_back(std::move(task->result));
    return results;
  }

 private:
  void Ask() {
    for (const auto& [job, tasks] : cluster_.tasks()) {
      for (const auto& [index, address] : tasks) {
        auto task = std::make_shared<Examination>();
        task->result.task = NameOf(job, index);
        task->result.address = address;
        task->deadline = std::chrono::steady_clock::now() + options_.timeout;
        tasks_.push_back(task);
        absl::StatusOr<std::shared_ptr<RpcChannel>> channel =
            RpcChannel::CreateWithTls(address, tls_);
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

  static void ReadDevices(Examination& task) {
    for (const pb::DeviceAttributes& proto : task.devices.device_attributes()) {
      absl::StatusOr<DeviceInfo> device = DeviceFromProto(proto);
      if (!device.ok()) continue;
      if (task.result.incarnation == 0) {
        task.result.incarnation = device->incarnation;
      }
      task.result.devices.push_back(*std::move(device));
    }
  }

  void JudgeDevices(Examination& task) {
    std::string other;
    for (const DeviceInfo& device : task.result.devices) {
      if (device.name.TaskName() != task.result.task) {
        other = device.name.TaskName();
      }
    }
    if (task.result.devices.empty()) {
      Blame(task, "has no devices", "See its log.");
    } else if (other.empty()) {
      return;
    } else if (const Examination* twin = Twin(task)) {
      Blame(task,
            StrCat("is the same process as ", twin->result.task, " at ",
                   twin->result.address),
            "Two addresses lead to one server: correct one of them.");
    } else {
      const std::string expected = AddressOf(other);
      Blame(task, StrCat("answers as ", other),
            expected.empty()
                ? StrCat("It belongs to another cluster: stop it, or choose "
                         "another port.")
                : StrCat("The cluster has ", other, " at ", expected,
                         ": are the addresses swapped, or was the server "
                         "started with the wrong job or index?"));
    }
  }

  // Another task that the same process answers for; null if there is none.
  const Examination* Twin(const Examination& task) const {
    for (const auto& one : tasks_) {
      if (one.get() != &task &&
          one->result.incarnation == task.result.incarnation) {
        return one.get();
      }
    }
    return nullptr;
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
  const TlsIdentityPtr tls_;
  std::vector<std::shared_ptr<Examination>> tasks_;
};

std::string Millis(const std::optional<double>& value, bool sign) {
  if (!value) return "-";
  return sign ? absl::StrFormat("%+.1f ms", *value)
              : absl::StrFormat("%.2f ms", *value);
}

absl::StatusOr<TlsIdentityPtr> Load(const DoctorOptions& options) {
  return LoadTls(
      options.tls.empty() ? TlsOptions::FromEnvironment() : options.tls,
      TlsRole::kClient);
}

// One call that blocks.
absl::Status Ask(RpcChannel& channel, const char* path,
                 const google::protobuf::MessageLite& request,
                 std::chrono::milliseconds timeout,
                 google::protobuf::MessageLite* response) {
  RpcChannel::Options options;
  options.deadline = std::chrono::steady_clock::now() + timeout;
  Notification finished;
  absl::Status result;
  channel.Call(path, request, options,
               [&](absl::Status status, grpc::ByteBuffer bytes) {
                 result = std::move(status);
                 if (result.ok() && !FromByteBuffer(&bytes, response)) {
                   result = Internal("The answer could not be read");
                 }
                 finished.Notify();
               });
  finished.Wait();
  if (result.ok()) return result;
  return WithMessage(result, WhyUnreachable(channel.address(), result));
}

bool IsOf(const DeviceInfo& device, const std::string& task) {
  return device.name.TaskName() == task;
}

}  // namespace

absl::StatusOr<std::vector<TaskDiagnosis>> Diagnose(
    const ClusterSpec& cluster, const DoctorOptions& options) {
  SLUICE_ASSIGN_OR_RETURN(TlsIdentityPtr tls, Load(options));
  return Doctor(cluster, options, std::move(tls)).Examine();
}

absl::StatusOr<ClusterDevices> ListClusterDevices(
    const std::string& address, const DoctorOptions& options) {
  SLUICE_ASSIGN_OR_RETURN(TlsIdentityPtr tls, Load(options));
  SLUICE_ASSIGN_OR_RETURN(const std::shared_ptr<RpcChannel> channel,
                          RpcChannel::CreateWithTls(address, std::move(tls)));
  // Its cluster, which TensorFlow does not tell.
  pb::GetStatusResponse asked;
  SLUICE_RETURN_IF_ERROR(Ask(*channel, paths::kGetStatus,
                             pb::GetStatusRequest(), options.timeout, &asked));
  pb::ListDevicesResponse listed;
  const absl::Status status =
      Ask(*channel, paths::kListDevices, pb::ListDevicesRequest(),
          options.timeout, &listed);
  // A task that is stopped keeps the master waiting; the rest can be asked.
  const bool waits =
      absl::IsDeadlineExceeded(status) && asked.has_sluice_cluster();
  if (!status.ok() && !waits) return status;
  ClusterDevices result;
  for (const auto* list : {&listed.local_device(), &listed.remote_device()}) {
    for (const pb::DeviceAttributes& proto : *list) {
      SLUICE_ASSIGN_OR_RETURN(DeviceInfo device, DeviceFromProto(proto));
      result.devices.push_back(std::move(device));
    }
  }
  if (!asked.has_sluice_cluster()) return result;
  SLUICE_ASSIGN_OR_RETURN(const ClusterSpec cluster,
                          ClusterSpec::FromProto(asked.sluice_cluster()));
  std::set<std::string> present;
  for (const DeviceInfo& device : result.devices) {
    present.insert(device.name.TaskName());
  }
  size_t expected = 0;
  for (const auto& [job, tasks] : cluster.tasks()) expected += tasks.size();
  if (present.size() >= expected) return result;
  SLUICE_ASSIGN_OR_RETURN(const std::vector<TaskDiagnosis> tasks,
                          Diagnose(cluster, options));
  for (const TaskDiagnosis& task : tasks) {
    if (present.contains(task.task)) continue;
    if (!task.devices.empty() && IsOf(task.devices[0], task.task)) {
      result.devices.insert(result.devices.end(), task.devices.begin(),
                            task.devices.end());
    } else {
      result.missing.push_back(task);
    }
  }
  return result;
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
