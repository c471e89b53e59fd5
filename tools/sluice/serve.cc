#include <signal.h>

#include <cstdio>
#include <cstdlib>

#include "sluice/base/status.h"
#include "sluice/server/server.h"
#include "tools/sluice/cluster.h"
#include "tools/sluice/commands.h"

namespace sluice::tools {
namespace {

volatile sig_atomic_t stop_requested = 0;
void OnSignal(int) { stop_requested = 1; }

// As given, or from TF_CONFIG, which also knows the task.
absl::StatusOr<ClusterSpec> Cluster(ServeOptions* options) {
  if (!options->cluster.empty()) return ReadCluster(options->cluster);
  const char* text = std::getenv("TF_CONFIG");
  if (text != nullptr && !options->job.empty()) return ClusterSpec::Parse(text);
  SLUICE_ASSIGN_OR_RETURN(const TaskConfig config,
                          TaskConfig::FromEnvironment());
  options->job = config.job;
  options->task = config.task;
  return config.cluster;
}

absl::StatusOr<ServerOptions> Told(const ServeOptions& options) {
  ServerOptions told;
  if (!options.tls.empty()) told.tls = TlsOptions::InDirectory(options.tls);
  SLUICE_ASSIGN_OR_RETURN(told.limits, Limits::FromEnvironment());
  for (const std::string& limit : options.limits) {
    SLUICE_RETURN_IF_ERROR(told.limits->Set(limit));
  }
  told.allowed_files = options.allowed_files;
  told.bind = options.bind;
  return told;
}

}  // namespace

int Serve(const ServeOptions& given) {
  ServeOptions options = given;
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
  const absl::StatusOr<ServerOptions> told = Told(options);
  if (!told.ok()) return Complain(told.status());
  auto server = Server::Create(*cluster, options.job, options.task, *told);
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

}  // namespace sluice::tools
