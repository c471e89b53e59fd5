#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
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

// The cluster's text: as given, from a file, or from TF_CONFIG, which also
// knows the task. Empty if there is none.
absl::StatusOr<std::string> ClusterText(ServerOptions* options) {
  if (options->cluster.empty()) {
    const char* config = std::getenv("TF_CONFIG");
    if (config == nullptr) return std::string();
    const nlohmann::json json = nlohmann::json::parse(config, nullptr, false);
    if (json.is_object() && json.contains("task") && json["task"].is_object()) {
      const nlohmann::json& task = json["task"];
      if (options->job.empty() && task.contains("type") &&
          task["type"].is_string()) {
        options->job = task["type"].get<std::string>();
      }
      if (task.contains("index") && task["index"].is_number_integer()) {
        options->task = task["index"].get<int>();
      }
    }
    return std::string(config);
  }
  if (options->cluster.ends_with(".json")) {
    std::ifstream file(options->cluster);
    std::stringstream text;
    text << file.rdbuf();
    if (!file) return NotFound("cannot read ", options->cluster);
    return text.str();
  }
  return options->cluster;
}

}  // namespace

int Serve(const ServerOptions& given) {
  ServerOptions options = given;
  const absl::StatusOr<std::string> text = ClusterText(&options);
  if (!text.ok()) return Complain(text.status());
  if (text->empty()) {
    std::fprintf(stderr,
                 "sluice server: no cluster: give --cluster "
                 "'ps=host:port;worker=host:port' or a JSON file, or set "
                 "TF_CONFIG\n");
    return 2;
  }
  absl::StatusOr<ClusterSpec> cluster = ClusterSpec::Parse(*text);
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
