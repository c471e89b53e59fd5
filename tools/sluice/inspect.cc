// The commands that look at running tasks: devices, status, doctor.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "sluice/base/status.h"
#include "sluice/server/doctor.h"
#include "sluice/server/status.h"
#include "sluice/session/session.h"
#include "tools/sluice/cluster.h"
#include "tools/sluice/commands.h"

namespace sluice::tools {
namespace {

// Those in `folder`; none if it is empty.
TlsOptions Certificates(const std::string& folder) {
  return folder.empty() ? TlsOptions() : TlsOptions::InDirectory(folder);
}

void Print(const std::vector<DeviceInfo>& devices) {
  for (const DeviceInfo& device : devices) {
    std::printf("%s  %s  %.1f GB  incarnation %llu\n", device.text.c_str(),
                device.name.type->c_str(), device.memory_limit / 1e9,
                static_cast<unsigned long long>(device.incarnation));
  }
}

}  // namespace

int ListDevices(const std::string& target, const std::string& tls) {
  if (target.empty()) {
    Graph graph;
    auto session = Session::Create({}, graph);
    if (!session.ok()) return Complain(session.status());
    auto devices = (*session)->ListDevices();
    if (!devices.ok()) return Complain(devices.status());
    Print(*devices);
    return 0;
  }
  constexpr std::string_view kPrefix = "grpc://";
  const absl::StatusOr<ClusterDevices> found = ListClusterDevices(
      target.starts_with(kPrefix) ? target.substr(kPrefix.size()) : target,
      {.tls = Certificates(tls)});
  if (!found.ok()) return Complain(found.status());
  Print(found->devices);
  for (const TaskDiagnosis& task : found->missing) {
    std::printf("%s is missing: %s\n", task.task.c_str(), task.finding.c_str());
  }
  return found->missing.empty() ? 0 : 1;
}

int PrintStatus(const std::string& target, const std::string& tls, bool json) {
  const absl::StatusOr<pb::TaskStatus> status =
      FetchTaskStatus(target, std::chrono::seconds(10), Certificates(tls));
  if (!status.ok()) return Complain(status.status());
  const std::string text =
      json ? TaskStatusJson(*status) : TaskStatusText(*status);
  std::fputs(text.c_str(), stdout);
  return 0;
}

int Diagnose(const std::string& given, const std::string& tls) {
  std::string text = given;
  if (text.empty()) {
    const char* config = std::getenv("TF_CONFIG");
    if (config == nullptr) {
      std::fprintf(stderr,
                   "sluice doctor: no cluster: give "
                   "'ps=host:port;worker=host:port' or a JSON file, or set "
                   "TF_CONFIG\n");
      return kWrongUsage;
    }
    text = config;
  }
  const absl::StatusOr<ClusterSpec> cluster = ReadCluster(text);
  // 1 is for a cluster that is ill.
  const auto refuse = [](const absl::Status& why) {
    Complain(why);
    return kWrongUsage;
  };
  if (!cluster.ok()) return refuse(cluster.status());
  if (cluster->empty()) return refuse(InvalidArgument("the cluster is empty"));
  const absl::StatusOr<std::vector<TaskDiagnosis>> tasks =
      sluice::Diagnose(*cluster, {.tls = Certificates(tls)});
  if (!tasks.ok()) return refuse(tasks.status());
  std::fputs(DiagnosisText(*tasks).c_str(), stdout);
  for (const TaskDiagnosis& task : *tasks) {
    if (!task.healthy) return 1;
  }
  return 0;
}

}  // namespace sluice::tools
