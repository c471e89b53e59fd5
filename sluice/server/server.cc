#include "sluice/server/server.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <set>

#include "sluice/base/logging.h"
#include "sluice/base/mutex.h"
#include "sluice/base/status.h"
#include "sluice/graph/device_name.h"
#include "sluice/master/master.h"
#include "sluice/proto/server.pb.h"
#include "sluice/rpc/config.h"
#include "sluice/rpc/generic_server.h"
#include "sluice/rpc/remote_worker.h"
#include "sluice/rpc/services.h"
#include "sluice/worker/worker.h"

namespace sluice {

struct Server::State {
  pb::ServerDef def;
  ClusterSpec cluster;
  std::string target;
  std::shared_ptr<Worker> worker;
  std::shared_ptr<ClusterWorkers> peers;
  std::shared_ptr<Master> master;
  std::unique_ptr<GenericServer> service;

  enum class Life { kNew, kStarted, kStopped };
  Mutex mu;
  CondVar changed;
  Life life SLUICE_GUARDED_BY(mu) = Life::kNew;

  // Steps end first, so that their clients hear why.
  void Shutdown() {
    RemoveLocalMaster(target, master);
    master->Shutdown();
    service->Shutdown();
    worker->Shutdown();
  }
};

namespace {

// Started servers that nobody holds any more serve on from here.
struct Serving {
  Mutex mu;
  std::set<std::shared_ptr<Server>> servers SLUICE_GUARDED_BY(mu);
};
Serving& TheServing() {
  static Serving* serving = new Serving;
  return *serving;
}

struct HostPort {
  std::string host;
  int port = 0;
};

absl::StatusOr<HostPort> ParseOwnAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  HostPort result;
  const std::string digits =
      colon == std::string::npos ? "" : address.substr(colon + 1);
  const auto [end, error] = std::from_chars(
      digits.data(), digits.data() + digits.size(), result.port);
  if (digits.empty() || error != std::errc() ||
      end != digits.data() + digits.size() || result.port > 65535) {
    return InvalidArgument("Could not parse port for local server from \"",
                           address, "\".");
  }
  result.host = address.substr(0, colon);
  return result;
}

bool IsLoopback(const std::string& host) {
  return host == "localhost" || host.starts_with("127.") || host == "[::1]" ||
         host == "::1";
}

// Why a port cannot be had, asked of the system itself: gRPC does not tell.
std::string BindProblem(const std::string& host, int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return "";
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr =
      IsLoopback(host) ? htonl(INADDR_LOOPBACK) : htonl(INADDR_ANY);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  std::string problem;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(fd, 1) != 0) {
    problem = StrCat(": port ", port, " cannot be bound: ", strerror(errno),
                     ". Stop what listens there or choose another port.");
  }
  close(fd);
  return problem;
}

std::string TaskName(const std::string& job, int task) {
  return StrCat("/job:", job, "/replica:0/task:", task);
}

void LogChannels(const ClusterSpec& cluster, const std::string& job, int task,
                 int port) {
  for (const auto& [name, tasks] : cluster.tasks()) {
    std::string list;
    for (const auto& [index, address] : tasks) {
      StrAppend(
          &list, list.empty() ? "" : ", ", index, " -> ",
          name == job && index == task ? StrCat("localhost:", port) : address);
    }
    SLUICE_LOG(INFO) << "Initialize GrpcChannelCache for job " << name
                     << " -> {" << list << "}";
  }
}

}  // namespace

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}

Server::~Server() {
  if (state_->service != nullptr) state_->Shutdown();
}

absl::StatusOr<std::shared_ptr<Server>> Server::Create(const pb::ServerDef& def,
                                                       bool start) {
  auto state = std::make_unique<State>();
  state->def = def;
  if (!def.protocol().empty() && def.protocol() != "grpc") {
    return NotFound("No server factory registered for the given ServerDef: ",
                    def.ShortDebugString(),
                    "\nThe available server factories are: [ GRPC_SERVER ]");
  }
  SLUICE_ASSIGN_OR_RETURN(state->cluster,
                          ClusterSpec::FromProto(def.cluster()));
  const std::string& job = def.job_name();
  for (const std::string& name : state->cluster.jobs()) {
    if (!IsValidJobName(name)) {
      return InvalidArgument("Job name \"", name,
                             "\" must be a letter followed by letters, digits "
                             "and underscores");
    }
  }
  if (!state->cluster.HasJob(job)) {
    return Internal("Job \"", job, "\" was not defined in cluster");
  }
  absl::StatusOr<std::string> own =
      state->cluster.TaskAddress(job, def.task_index());
  if (!own.ok()) {
    return InvalidArgument("Task ", def.task_index(),
                           " was not defined in job \"", job, "\"");
  }
  SLUICE_ASSIGN_OR_RETURN(HostPort address, ParseOwnAddress(*own));

  const SessionOptions defaults =
      SessionOptionsFromConfig(def.default_session_config());
  SLUICE_ASSIGN_OR_RETURN(DeviceName task,
                          DeviceName::Parse(TaskName(job, def.task_index())));
  state->worker = Worker::Create(task, defaults.num_cpus);
  std::map<std::string, std::string> addresses;
  for (const auto& [name, tasks] : state->cluster.tasks()) {
    for (const auto& [index, peer] : tasks)
      addresses[TaskName(name, index)] = peer;
  }
  SLUICE_ASSIGN_OR_RETURN(state->peers,
                          ClusterWorkers::Create(state->worker, addresses));
  ConnectRendezvous(*state->worker, state->peers);
  MasterEnv env;
  env.workers = state->peers;
  env.own_task = task.ToString();
  state->master = std::make_shared<Master>(std::move(env), defaults);

  const bool loopback = IsLoopback(address.host);
  // Both loopback addresses, as `localhost` may mean either.
  GenericServer::Options options;
  options.address = StrCat(loopback ? "localhost:" : "[::]:", address.port);
  options.handler =
      MakeTaskHandler(state->worker, state->master, def.cluster());
  auto service = GenericServer::Start(std::move(options));
  if (!service.ok()) {
    return WithMessage(service.status(),
                       StrCat(service.status().message(),
                              BindProblem(address.host, address.port)));
  }
  state->service = *std::move(service);
  const int port = state->service->port();
  state->target = StrCat("grpc://localhost:", port);
  LogChannels(state->cluster, job, def.task_index(), port);
  if (!loopback) {
    SLUICE_LOG(WARNING)
        << "This server listens on all addresses of port " << port
        << " without encryption: whoever reaches it can run code here and read "
           "its files. Keep it on a trusted network.";
  }
  AddLocalMaster(state->target, state->master);
  std::shared_ptr<Server> server(new Server(std::move(state)));
  if (start) SLUICE_RETURN_IF_ERROR(server->Start());
  return server;
}

absl::StatusOr<std::shared_ptr<Server>> Server::Create(
    const ClusterSpec& cluster, const std::string& job, int task) {
  pb::ServerDef def;
  cluster.ToProto(def.mutable_cluster());
  def.set_job_name(job);
  def.set_task_index(task);
  def.set_protocol("grpc");
  return Create(def);
}

absl::StatusOr<std::shared_ptr<Server>> Server::CreateLocal() {
  return Create(ClusterSpec{{"local", {"localhost:0"}}}, "local", 0);
}

absl::Status Server::Start() {
  {
    MutexLock lock(state_->mu);
    if (state_->life == State::Life::kStopped) {
      return FailedPrecondition("Server has stopped.");
    }
    if (state_->life == State::Life::kStarted) {
      SLUICE_LOG(INFO) << "Server already started (target: " << state_->target
                       << ")";
      return absl::OkStatus();
    }
    state_->life = State::Life::kStarted;
  }
  {
    MutexLock lock(TheServing().mu);
    TheServing().servers.insert(shared_from_this());
  }
  SLUICE_LOG(INFO) << "Started server with target: " << state_->target;
  return absl::OkStatus();
}

absl::Status Server::Stop() {
  {
    MutexLock lock(state_->mu);
    if (state_->life == State::Life::kStopped) return absl::OkStatus();
    state_->life = State::Life::kStopped;
  }
  state_->Shutdown();
  state_->changed.NotifyAll();
  MutexLock lock(TheServing().mu);
  TheServing().servers.erase(shared_from_this());
  return absl::OkStatus();
}

absl::Status Server::Join() {
  while (!JoinFor(std::chrono::hours(1))) {
  }
  return absl::OkStatus();
}

bool Server::JoinFor(std::chrono::milliseconds timeout) {
  const auto until = std::chrono::steady_clock::now() + timeout;
  MutexLock lock(state_->mu);
  // Joining a server that was never started ends it.
  if (state_->life == State::Life::kNew) state_->life = State::Life::kStopped;
  while (state_->life != State::Life::kStopped) {
    if (!state_->changed.WaitUntil(state_->mu, until)) break;
  }
  return state_->life == State::Life::kStopped;
}

const std::string& Server::target() const { return state_->target; }
const pb::ServerDef& Server::server_def() const { return state_->def; }

}  // namespace sluice
