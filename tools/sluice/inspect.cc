// The commands that look at running tasks: devices, status, doctor.
#include <cstdio>
#include <cstdlib>

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

}  // namespace

int ListDevices(const std::string& target, const std::string& tls) {
  Graph graph;
  SessionConfig config;
  config.target = target;
  config.tls = Certificates(tls);
  // Somebody looks at the screen: do not wait for ten minutes.
  config.options.task_deadline = std::chrono::seconds(10);
  auto session = Session::Create(config, graph);
  if (!session.ok()) return Complain(session.status());
  auto devices = (*session)->ListDevices();
  if (!devices.ok()) return Complain(devices.status());
  for (const DeviceInfo& device : *devices) {
    std::printf("%s  %s  %.1f GB  incarnation %llu\n", device.text.c_str(),
                device.name.type->c_str(), device.memory_limit / 1e9,
                static_cast<unsigned long long>(device.incarnation));
  }
  return 0;
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
      return 2;
    }
    text = config;
  }
  const absl::StatusOr<ClusterSpec> cluster = ReadCluster(text);
  if (!cluster.ok()) return Complain(cluster.status());
  if (cluster->empty())
    return Complain(InvalidArgument("the cluster is empty"));
  const std::vector<TaskDiagnosis> tasks =
      sluice::Diagnose(*cluster, {.tls = Certificates(tls)});
  std::fputs(DiagnosisText(tasks).c_str(), stdout);
  for (const TaskDiagnosis& task : tasks) {
    if (!task.healthy) return 1;
  }
  return 0;
}

}  // namespace sluice::tools
