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

// TF_CONFIG, where what is given takes the place of what it says.
absl::StatusOr<TaskConfig> FromTfConfig(const ServeOptions& given,
                                        const std::string& text) {
  TaskConfig config;
  const bool names_task = text.find("\"task\"") != std::string::npos;
  if (!given.job.empty() && (given.task || !names_task)) {
    SLUICE_ASSIGN_OR_RETURN(config.cluster, ClusterSpec::Parse(text));
    config.job = given.job;
  } else {
    SLUICE_ASSIGN_OR_RETURN(config, TaskConfig::Parse(text));
    if (!given.job.empty() && given.job != config.job) {
      return InvalidArgument("TF_CONFIG is that of a task of job '", config.job,
                             "': --job ", given.job, " needs a --task too");
    }
  }
  config.task = given.task.value_or(config.task);
  return config;
}

absl::StatusOr<TaskConfig> Place(const ServeOptions& given) {
  if (given.cluster.empty()) {
    return FromTfConfig(given, std::getenv("TF_CONFIG"));
  }
  TaskConfig config;
  SLUICE_ASSIGN_OR_RETURN(config.cluster, ReadCluster(given.cluster));
  config.job = given.job;
  if (config.job.empty() && config.cluster.jobs().size() == 1) {
    config.job = config.cluster.jobs()[0];
  }
  config.task = given.task.value_or(0);
  return config;
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

int Serve(const ServeOptions& options) {
  if (options.cluster.empty() && std::getenv("TF_CONFIG") == nullptr) {
    std::fprintf(stderr,
                 "sluice server: no cluster: give --cluster "
                 "'ps=host:port;worker=host:port' or a JSON file, or set "
                 "TF_CONFIG\n");
    return kWrongUsage;
  }
  const absl::StatusOr<TaskConfig> place = Place(options);
  if (!place.ok()) return Complain(place.status());
  const ClusterSpec& cluster = place->cluster;
  if (!cluster.HasJob(place->job)) {
    std::string jobs;
    for (const std::string& job : cluster.jobs()) jobs += " " + job;
    std::fprintf(stderr,
                 "sluice server: the cluster has no job '%s'; it has:%s\n",
                 place->job.c_str(), jobs.c_str());
    return kWrongUsage;
  }
  const absl::StatusOr<ServerOptions> told = Told(options);
  if (!told.ok()) return Complain(told.status());
  auto server = Server::Create(cluster, place->job, place->task, *told);
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
