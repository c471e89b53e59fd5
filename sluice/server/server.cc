#include "sluice/server/server.h"

#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "sluice/base/file_jail.h"
#include "sluice/base/logging.h"
#include "sluice/base/mutex.h"
#include "sluice/base/signals.h"
#include "sluice/base/status.h"
#include "sluice/base/thread_pool.h"
#include "sluice/graph/device_name.h"
#include "sluice/master/device_count.h"
#include "sluice/master/master.h"
#include "sluice/proto/server.pb.h"
#include "sluice/rpc/cluster_workers.h"
#include "sluice/rpc/config.h"
#include "sluice/rpc/generic_server.h"
#include "sluice/rpc/lane_channel.h"
#include "sluice/rpc/services.h"
#include "sluice/rpc/tls_probe.h"
#include "sluice/server/housekeeper.h"
#include "sluice/server/status.h"
#include "sluice/worker/worker.h"

namespace sluice {

namespace {

// How long a join waits before it looks for SIGTERM.
constexpr std::chrono::milliseconds kJoinSlice(100);

std::string TargetOf(const std::string& host, int port) {
  return StrCat("grpc://", host, ":", port);
}

// Keeps calls until the server is started.
class Gate {
 public:
  // For calls that come, instead of `handler`.
  static CallHandler Before(std::shared_ptr<Gate> gate, CallHandler handler) {
    gate->handler_ = std::move(handler);
    return [gate = std::move(gate)](std::shared_ptr<ServerCall> call) {
      if (gate->open_.load(std::memory_order_acquire) || !gate->Hold(call)) {
        gate->handler_(std::move(call));
      }
    };
  }
  void Open() {
    for (auto& call : Take()) handler_(std::move(call));
  }
  // Ends those that wait; later ones go to the handler of a server that is
  // being stopped.
  void Close() {
    for (auto& call : Take()) {
      call->Fail(Unavailable("The server was stopped before it was started."));
    }
  }

 private:
  using Calls = std::vector<std::shared_ptr<ServerCall>>;

  bool Hold(const std::shared_ptr<ServerCall>& call) {
    MutexLock lock(mu_);
    if (open_.load(std::memory_order_relaxed)) return false;
    held_.push_back(call);
    return true;
  }
  Calls Take() {
    MutexLock lock(mu_);
    open_.store(true, std::memory_order_release);
    return std::exchange(held_, {});
  }

  CallHandler handler_;
  std::atomic<bool> open_{false};
  Mutex mu_;
  Calls held_ SLUICE_GUARDED_BY(mu_);
};

}  // namespace

struct Server::State {
  pb::ServerDef def;
  ClusterSpec cluster;
  TlsOptions tls;
  // By which this machine reaches it.
  std::string host = "localhost";
  std::string target;
  // By which a session of this process may name the server, `target` first.
  std::vector<std::string> targets;
  std::shared_ptr<Worker> worker;
  std::shared_ptr<ClusterWorkers> peers;
  std::shared_ptr<Master> master;
  std::shared_ptr<TaskActivity> activity = std::make_shared<TaskActivity>();
  std::unique_ptr<GenericServer> service;
  const SteadyTime made = RealClock().Now();
  // 0 until it is bound; calls may come right after.
  const std::shared_ptr<std::atomic<int>> port =
      std::make_shared<std::atomic<int>>(0);
  std::shared_ptr<Housekeeper> housekeeper;
  const std::shared_ptr<Gate> gate = std::make_shared<Gate>();

  enum class Life { kNew, kStarted, kStopping, kStopped };
  Mutex mu;
  CondVar changed;
  Life life SLUICE_GUARDED_BY(mu) = Life::kNew;

  TaskParts Parts() const {
    return {target, worker, master, peers, activity, made};
  }
  void ServeStatus() {
    TaskParts parts = Parts();
    parts.activity = nullptr;  // It will hold what is made here.
    activity->status =
        [parts, port = port, host = host,
         weak = std::weak_ptr<TaskActivity>(activity)](pb::TaskStatus* status) {
          TaskParts task = parts;
          task.activity = weak.lock();
          task.target = TargetOf(host, port->load());
          if (task.activity != nullptr) *status = GetTaskStatus(task);
        };
  }

  // Steps end first, so that their clients hear why.
  void Shutdown() {
    housekeeper = nullptr;
    for (const std::string& name : targets) RemoveLocalMaster(name, master);
    master->Shutdown();
    gate->Close();
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

// What SIGUSR1 prints.
void PrintStatus() {
  std::vector<std::shared_ptr<Server>> servers;
  {
    MutexLock lock(TheServing().mu);
    servers.assign(TheServing().servers.begin(), TheServing().servers.end());
  }
  for (const auto& server : servers) {
    const std::string text = TaskStatusText(server->status());
    std::fwrite(text.data(), 1, text.size(), stderr);
  }
  std::fflush(stderr);
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
      end != digits.data() + digits.size()) {
    return InvalidArgument("Could not parse port for local server from \"",
                           address, "\".");
  }
  if (result.port < 0 || result.port > 65535) {
    return InvalidArgument("Could not parse port for local server from \"",
                           address, "\": it is not from 0 to 65535.");
  }
  result.host = address.substr(0, colon);
  return result;
}

std::string WithoutBrackets(const std::string& host) {
  if (!host.starts_with("[") || !host.ends_with("]")) return host;
  return host.substr(1, host.size() - 2);
}

// An address in its usual spelling, whatever the one of `host` is ("127.1",
// "[0:0:0:0:0:0:0:1]"); IPv4 within IPv6 is IPv4. Empty if `host` is a name.
std::string NumericHost(const std::string& host) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (getaddrinfo(WithoutBrackets(host).c_str(), nullptr, &hints, &found) !=
      0) {
    return "";
  }
  char text[NI_MAXHOST] = "";
  getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof(text), nullptr, 0,
              NI_NUMERICHOST);
  freeaddrinfo(found);
  constexpr std::string_view kMapped = "::ffff:";
  const std::string_view usual(text);
  const bool mapped =
      usual.starts_with(kMapped) && usual.find('.') != std::string_view::npos;
  return std::string(mapped ? usual.substr(kMapped.size()) : usual);
}

// 127.0.0.2 and the like, each of which is a loopback address of its own.
bool IsOtherLoopback(const std::string& numeric) {
  return numeric.starts_with("127.") && numeric != "127.0.0.1";
}

bool IsLoopback(std::string host) {
  const std::string numeric = NumericHost(host);
  if (!numeric.empty()) return numeric == "::1" || numeric.starts_with("127.");
  host = absl::AsciiStrToLower(host);
  if (host.ends_with(".")) host.pop_back();
  return host == "localhost" || host == "ip6-localhost" ||
         host == "ip6-loopback";
}

constexpr char kAllAddresses[] = "[::]";

// Where a task listens whose host is `own` and that is told `bind`.
std::string BindHost(const std::string& own, const std::string& bind) {
  const std::string& host =
      bind.empty() || bind == ServerOptions::kOwnHost ? own : bind;
  const std::string numeric = NumericHost(host);
  if (IsOtherLoopback(numeric)) return numeric;
  // Both loopback addresses, as `localhost` may mean either.
  if (IsLoopback(host)) return "localhost";
  if (bind.empty()) return kAllAddresses;
  if (numeric.empty()) return host;
  // As gRPC reads it: before a port, IPv6 has brackets.
  const bool ipv6 = numeric.find(':') != std::string::npos;
  return ipv6 ? StrCat("[", numeric, "]") : numeric;
}

// Why a port cannot be had, asked of the system itself: gRPC does not tell.
std::string BindProblem(const std::string& host, int port) {
  addrinfo hints = {};
  // By IPv4 as well, where gRPC listens at all addresses by one IPv6 socket.
  hints.ai_family = host == kAllAddresses ? AF_INET : AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  const std::string name = WithoutBrackets(host);
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host == kAllAddresses ? nullptr : name.c_str(),
                                std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    return StrCat(": ", host, " has no address: ", gai_strerror(error));
  }
  std::string problem;
  const int fd = socket(found->ai_family, SOCK_STREAM, 0);
  const int on = 1;
  if (fd < 0) problem = StrCat(": ", host, ": ", strerror(errno));
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (fd >= 0 && (bind(fd, found->ai_addr, found->ai_addrlen) != 0 ||
                  listen(fd, 1) != 0)) {
    const bool elsewhere = errno == EADDRNOTAVAIL;
    problem =
        StrCat(": port ", port, " cannot be bound: ", strerror(errno),
               elsewhere ? StrCat(". ", host, " is no address of this machine.")
                         : ". Stop what listens there or choose another port.");
  }
  if (fd >= 0) close(fd);
  freeaddrinfo(found);
  return problem;
}

std::string TaskName(const std::string& job, int task) {
  return StrCat("/job:", job, "/replica:0/task:", task);
}

// The most explicit of those given.
TlsOptions Choose(const TlsOptions& given, const pb::ServerDef& def) {
  if (!given.empty()) return given;
  const TlsOptions configured = TlsFromConfig(def.default_session_config());
  return configured.empty() ? TlsOptions::FromEnvironment() : configured;
}

// Where the server is told to listen; empty: it is not told.
absl::StatusOr<std::string> Bind(const ServerOptions& given) {
  const char* text = std::getenv("SLUICE_BIND");
  if (!given.bind.empty() || text == nullptr) return given.bind;
  if (*text != '\0') return text;
  return InvalidArgument(
      "SLUICE_BIND is set and empty; unset it to listen as the cluster says");
}

// Peers and clients that use this address would refuse such a certificate.
void WarnOfOtherHosts(const TlsIdentity& tls, std::string host) {
  host = WithoutBrackets(host);
  const bool any = host.empty() || host == "0.0.0.0" || host == "::";
  if (any || IsForHost(tls, host)) return;
  SLUICE_LOG(WARNING)
      << "The certificate of this server is not for " << host
      << ", its host in the cluster, so nobody will take it there. `sluice "
         "certs DIR --host "
      << host << "` makes one that is.";
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

absl::StatusOr<std::shared_ptr<Server>> Server::Create(
    const pb::ServerDef& def, bool start, const ServerOptions& given) {
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

  state->tls = Choose(given.tls, def);
  SLUICE_ASSIGN_OR_RETURN(const TlsIdentityPtr tls,
                          LoadTls(state->tls, TlsRole::kTask));
  Limits limits;
  if (given.limits) {
    limits = *given.limits;
  } else {
    SLUICE_ASSIGN_OR_RETURN(limits, Limits::FromEnvironment());
  }
  const SessionOptions defaults =
      SessionOptionsFromConfig(def.default_session_config());
  SLUICE_ASSIGN_OR_RETURN(DeviceName task,
                          DeviceName::Parse(TaskName(job, def.task_index())));
  std::vector<std::string> allowed = given.allowed_files;
  if (allowed.empty()) {
    SLUICE_ASSIGN_OR_RETURN(allowed, AllowedFilesFromEnvironment());
  }
  FileSystem* files = &RealFileSystem();
  if (!allowed.empty()) {
    SLUICE_ASSIGN_OR_RETURN(files, FileJail(allowed));
    SLUICE_LOG(INFO) << "Ops may touch files in these folders only: "
                     << absl::StrJoin(allowed, ", ");
  }
  SLUICE_RETURN_IF_ERROR(CheckDeviceCount(defaults.num_cpus));
  SetComputePoolSize(defaults.compute_threads);
  state->worker = Worker::Create(task, defaults.num_cpus, *files);
  state->worker->set_max_graphs(limits.graphs);
  state->worker->set_max_graph_nodes(limits.graph_nodes);
  std::map<std::string, std::string> addresses;
  for (const auto& [name, tasks] : state->cluster.tasks()) {
    for (const auto& [index, peer] : tasks)
      addresses[TaskName(name, index)] = peer;
  }
  const ChannelMaker connect = [tls](const std::string& peer) {
    return CreateLaneChannel(peer, tls);
  };
  SLUICE_ASSIGN_OR_RETURN(
      state->peers, ClusterWorkers::Create(state->worker, addresses, connect));
  ConnectRendezvous(*state->worker, state->peers, connect);
  MasterEnv env;
  env.workers = state->peers;
  env.own_task = task.ToString();
  env.own_address = *own;
  env.other_cluster = [worker = state->worker, connect](
                          const std::map<std::string, std::string>& tasks,
                          const std::string& own_task)
      -> absl::StatusOr<std::shared_ptr<WorkerCache>> {
    return ClusterWorkers::CreateRenamed(worker, own_task, tasks, connect);
  };
  env.max_sessions = limits.sessions;
  env.max_callables = limits.callables;
  state->master = std::make_shared<Master>(std::move(env), defaults);

  SLUICE_ASSIGN_OR_RETURN(const std::string told, Bind(given));
  const std::string bind_host = BindHost(address.host, told);
  const bool loopback = IsLoopback(bind_host);
  const bool everywhere = bind_host == kAllAddresses;
  // Who listens at one address is not reached by localhost.
  if (!everywhere && bind_host != "localhost") state->host = bind_host;
  state->ServeStatus();
  if (tls == nullptr && LanesAllowed()) state->activity->lane = NewLaneName();
  GenericServer::Options options;
  options.address = StrCat(bind_host, ":", address.port);
  options.handler = Gate::Before(
      state->gate, MakeTaskHandler(state->worker, state->master, def.cluster(),
                                   state->activity, limits));
  options.counters = {state->activity, &state->activity->calls};
  options.limits = limits;
  options.tls = tls;
  options.lane = state->activity->lane;
  auto service = GenericServer::Start(std::move(options));
  if (!service.ok()) {
    return WithMessage(service.status(),
                       StrCat(service.status().message(),
                              BindProblem(bind_host, address.port)));
  }
  state->service = *std::move(service);
  const int port = state->service->port();
  state->port->store(port);
  state->target = TargetOf(state->host, port);
  LogChannels(state->cluster, job, def.task_index(), port);
  if (!loopback && tls == nullptr) {
    SLUICE_LOG(WARNING)
        << "This server listens on "
        << (everywhere ? "all addresses of" : bind_host + ",") << " port "
        << port
        << " without encryption: whoever reaches it can run code here and read "
           "its files. Keep it on a trusted network, or switch TLS on: `sluice "
           "certs DIR` makes certificates; give them to every task and client "
           "by --tls DIR, or by SLUICE_TLS_CERT, SLUICE_TLS_KEY and "
           "SLUICE_TLS_CA.";
  }
  if (tls != nullptr) WarnOfOtherHosts(*tls, address.host);
  HousekeeperOptions housekeeping = HousekeeperOptions::FromEnvironment();
  housekeeping.tls = state->tls;
  state->housekeeper = Housekeeper::Start(state->Parts(), housekeeping);
  state->targets = {state->target};
  if (state->host == "localhost") {
    for (const std::string& host :
         {std::string("127.0.0.1"), std::string("[::1]"), address.host}) {
      state->targets.push_back(TargetOf(host, port));
    }
  }
  for (const std::string& name : state->targets) {
    AddLocalMaster(name, state->master);
  }
  std::shared_ptr<Server> server(new Server(std::move(state)));
  if (start) SLUICE_RETURN_IF_ERROR(server->Start());
  return server;
}

absl::StatusOr<std::shared_ptr<Server>> Server::Create(
    const ClusterSpec& cluster, const std::string& job, int task,
    const ServerOptions& options) {
  pb::ServerDef def;
  cluster.ToProto(def.mutable_cluster());
  def.set_job_name(job);
  def.set_task_index(task);
  def.set_protocol("grpc");
  return Create(def, /*start=*/true, options);
}

absl::StatusOr<std::shared_ptr<Server>> Server::CreateLocal() {
  return Create(ClusterSpec{{"local", {"localhost:0"}}}, "local", 0);
}

absl::Status Server::Start() {
  {
    MutexLock lock(state_->mu);
    if (state_->life >= State::Life::kStopping) {
      return FailedPrecondition("Server has stopped.");
    }
    if (state_->life == State::Life::kStarted) {
      SLUICE_LOG(INFO) << "Server already started (target: " << state_->target
                       << ")";
      return absl::OkStatus();
    }
    state_->life = State::Life::kStarted;
  }
  state_->gate->Open();
  {
    MutexLock lock(TheServing().mu);
    TheServing().servers.insert(shared_from_this());
  }
  static std::once_flag once;
  std::call_once(once, [] {
    HandleSignal(SIGUSR1, PrintStatus);
    // Who writes more than a file may have is told so by EFBIG.
    IgnoreSignal(SIGXFSZ);
  });
  SLUICE_LOG(INFO) << "Started server with target: " << state_->target;
  return absl::OkStatus();
}

absl::Status Server::Stop() {
  {
    MutexLock lock(state_->mu);
    while (state_->life == State::Life::kStopping) {
      state_->changed.Wait(state_->mu);
    }
    if (state_->life == State::Life::kStopped) return absl::OkStatus();
    state_->life = State::Life::kStopping;
  }
  End();
  return absl::OkStatus();
}

void Server::End() {
  state_->Shutdown();
  {
    MutexLock lock(state_->mu);
    state_->life = State::Life::kStopped;
  }
  state_->changed.NotifyAll();
  MutexLock lock(TheServing().mu);
  TheServing().servers.erase(shared_from_this());
}

absl::Status Server::Join() {
  const TerminationNotice termination;
  while (!JoinFor(kJoinSlice)) {
    if (termination.arrived()) return Stop();
  }
  return absl::OkStatus();
}

bool Server::JoinFor(std::chrono::milliseconds timeout) {
  const auto until = std::chrono::steady_clock::now() + timeout;
  bool unused = false;
  {
    MutexLock lock(state_->mu);
    unused = state_->life == State::Life::kNew;
    if (unused) state_->life = State::Life::kStopping;
  }
  // Joining a server that was never started ends it.
  if (unused) End();
  MutexLock lock(state_->mu);
  while (state_->life != State::Life::kStopped) {
    if (!state_->changed.WaitUntil(state_->mu, until)) break;
  }
  return state_->life == State::Life::kStopped;
}

TlsOptions Server::TlsAt(const std::string& target) {
  MutexLock lock(TheServing().mu);
  for (const auto& server : TheServing().servers) {
    const std::vector<std::string>& names = server->state_->targets;
    if (std::ranges::count(names, target) > 0) return server->state_->tls;
  }
  return {};
}

pb::TaskStatus Server::status() const { return GetTaskStatus(state_->Parts()); }

const std::string& Server::target() const { return state_->target; }
const pb::ServerDef& Server::server_def() const { return state_->def; }

}  // namespace sluice
