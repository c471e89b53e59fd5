#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "sluice/base/status.h"
#include "sluice/server/server.h"
#include "sluice/session/session.h"
#include "tools/sluice/commands.h"

namespace sluice::tools {
namespace {

volatile sig_atomic_t stop_requested = 0;
void OnSignal(int) { stop_requested = 1; }

int Complain(const absl::Status& status) {
  std::fprintf(stderr, "sluice: %s\n", std::string(status.message()).c_str());
  return 1;
}

// Text as it is given, or what stands in the file it names.
absl::StatusOr<std::string> ClusterText(const std::string& given) {
  if (!given.ends_with(".json")) return given;
  std::ifstream file(given);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return NotFound("cannot read ", given);
  return text.str();
}

// As given, or from TF_CONFIG, which also knows the task.
absl::StatusOr<ClusterSpec> Cluster(ServerOptions* options) {
  if (!options->cluster.empty()) {
    SLUICE_ASSIGN_OR_RETURN(const std::string text,
                            ClusterText(options->cluster));
    return ClusterSpec::Parse(text);
  }
  const char* text = std::getenv("TF_CONFIG");
  if (text != nullptr && !options->job.empty()) return ClusterSpec::Parse(text);
  SLUICE_ASSIGN_OR_RETURN(const TaskConfig config,
                          TaskConfig::FromEnvironment());
  options->job = config.job;
  options->task = config.task;
  return config.cluster;
}

}  // namespace

int Serve(const ServerOptions& given) {
  ServerOptions options = given;
  if (options.cluster.empty() && std::getenv("TF_CONFIG") == nullptr) {
    std::fprintf(stderr,
                 "sluice server: no cluster: give --cluster "
                 "'ps=host:port;worker=host:port' or a JSON file, or set "
                 "TF_CONFIG\n");
    return 2;
  }
  absl::StatusOr<ClusterSpec> cluster = Cluster(&options);
  if (!cluster.ok()) return Complain(cluster.status());
  if (options.job.empty() && cluster->jobs().size() == 1) {
    options.job = cluster->jobs()[0];
  }
  if (!cluster->HasJob(options.job)) {
    std::string jobs;
    for (const std::string& job : cluster->jobs()) jobs += " " + job;
    std::fprintf(stderr,
                 "sluice server: the cluster has no job '%s'; it has:%s\n",
                 options.job.c_str(), jobs.c_str());
    return 2;
  }
  auto server = Server::Create(*cluster, options.job, options.task);
  if (!server.ok()) return Complain(server.status());
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  while (!stop_requested &&
         !(*server)->JoinFor(std::chrono::milliseconds(200))) {
  }
  const absl::Status stopped = (*server)->Stop();
  return stopped.ok() ? 0 : Complain(stopped);
}

int ListDevices(const std::string& target) {
  Graph graph;
  SessionConfig config;
  config.target = target;
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

}  // namespace sluice::tools
