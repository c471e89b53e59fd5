// `sluice run`: gives a program the Python package and, for a cluster, its
// tasks' addresses.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "sluice/base/errno_status.h"
#include "sluice/rpc/tls.h"
#include "tools/sluice/commands.h"
#include "tools/sluice/processes.h"

namespace sluice::tools {
namespace {

namespace fs = std::filesystem;

// build/, or the prefix of an installation.
fs::path Root() {
  return fs::read_symlink("/proc/self/exe").parent_path().parent_path();
}

fs::path PythonFolder() {
  const fs::path built = Root() / "python";
  return fs::exists(built) ? built : Root() / SLUICE_INSTALLED_PYTHON;
}

std::string Interpreter(const RunOptions& options) {
  if (!options.python.empty()) return options.python;
  std::ifstream file(Root() / "python.path");
  std::string path;
  if (std::getline(file, path) && !path.empty()) return path;
  return "python3";
}

bool IsPython(const std::string& program) { return program.ends_with(".py"); }

std::string Text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// A socket bound to that port of this host, or -1.
int Bind(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (fd >= 0 &&
      bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

// The lowest port that the system gives to outgoing connections.
int FirstOutgoingPort() {
  std::ifstream file("/proc/sys/net/ipv4/ip_local_port_range");
  int first = 32768;
  file >> first;
  return first;
}

// `count` free ports. All are held until all are found, so that they differ.
// None of them can become the near end of a connection before its task listens
// there: those, of this cluster's own tasks too, have ports of another range.
std::vector<int> FreePorts(int count) {
  constexpr int kFirst = 10000;
  const int end = std::max(FirstOutgoingPort(), kFirst + 10000);
  std::uniform_int_distribution<int> any(kFirst, end - 1);
  std::random_device random;
  std::vector<int> ports, sockets;
  for (int tries = 0; tries < 100 * count && std::ssize(ports) < count;
       ++tries) {
    const int port = any(random);
    const int fd = Bind(port);
    if (fd < 0) continue;
    sockets.push_back(fd);
    ports.push_back(port);
  }
  for (int fd : sockets) close(fd);
  return ports;
}

std::map<std::string, std::string> Environment(const RunOptions& options) {
  std::map<std::string, std::string> environment;
  const char* before = std::getenv("PYTHONPATH");
  std::string path =
      PythonFolder().string() + ":" + (PythonFolder() / "alias").string();
  if (before != nullptr && *before != '\0') path += std::string(":") + before;
  environment["PYTHONPATH"] = path;
  environment["PYTHONUNBUFFERED"] = "1";
  if (options.soft_placement) environment["SLUICE_SOFT_PLACEMENT"] = "1";
  if (!options.tls.empty()) {
    // Absolute: a program may change its directory.
    const TlsOptions tls =
        TlsOptions::InDirectory(fs::absolute(options.tls).string());
    environment["SLUICE_TLS_CERT"] = tls.certificate;
    environment["SLUICE_TLS_KEY"] = tls.key;
    environment["SLUICE_TLS_CA"] = tls.ca;
  }
  return environment;
}

std::vector<std::string> Command(const RunOptions& options) {
  std::vector<std::string> command;
  if (IsPython(options.command[0])) command.push_back(Interpreter(options));
  command.insert(command.end(), options.command.begin(), options.command.end());
  return command;
}

struct Job {
  std::string name;
  std::vector<std::string> addresses;
};

std::string Joined(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items)
    text += (text.empty() ? "" : ",") + item;
  return text;
}

std::string TfConfig(const std::vector<Job>& jobs, const std::string& job,
                     int index) {
  std::string cluster;
  for (const Job& j : jobs) {
    if (j.name == "evaluator") continue;  // Stands outside of the cluster.
    std::string list;
    for (const std::string& address : j.addresses) {
      list += (list.empty() ? "\"" : ", \"") + address + "\"";
    }
    cluster +=
        (cluster.empty() ? "\"" : ", \"") + j.name + "\": [" + list + "]";
  }
  return "{\"cluster\": {" + cluster + "}, \"task\": {\"type\": \"" + job +
         "\", \"index\": " + std::to_string(index) + "}}";
}

// The flags that scripts by convention declare for their place in a cluster.
void AddFlags(const std::string& script, const std::vector<Job>& jobs,
              const std::string& job, int index,
              std::vector<std::string>* command) {
  const auto declares = [&](const std::string& flag) {
    return script.find("\"" + flag + "\"") != std::string::npos ||
           script.find("'" + flag + "'") != std::string::npos ||
           script.find("--" + flag) != std::string::npos;
  };
  for (const Job& j : jobs) {
    const std::string flag = j.name + "_hosts";
    if (declares(flag))
      command->push_back("--" + flag + "=" + Joined(j.addresses));
  }
  if (declares("job_name")) command->push_back("--job_name=" + job);
  if (declares("task_index")) {
    command->push_back("--task_index=" + std::to_string(index));
  }
}

int RunAlone(const RunOptions& options) {
  for (const auto& [key, value] : Environment(options)) {
    setenv(key.c_str(), value.c_str(), 1);
  }
  const std::vector<std::string> command = Command(options);
  std::vector<char*> argv;
  for (const std::string& arg : command)
    argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  std::fprintf(stderr, "sluice run: cannot run %s: %s\n", argv[0],
               strerror(errno));
  return 127;
}

int RunCluster(const RunOptions& options);

// Certificates for one run, in a folder that goes away with the object.
class NewCertificates {
 public:
  NewCertificates() {
    std::error_code none;
    directory_ = (fs::temp_directory_path(none) / "sluice-tls-XXXXXX").string();
    if (mkdtemp(directory_.data()) == nullptr) {
      status_ = ErrnoStatus(errno, directory_);
    } else {
      status_ =
          MakeCertificates(
              {.directory = directory_, .hosts = {"localhost"}, .days = 30})
              .status();
    }
  }
  ~NewCertificates() {
    std::error_code none;
    fs::remove_all(directory_, none);
  }
  NewCertificates(const NewCertificates&) = delete;
  NewCertificates& operator=(const NewCertificates&) = delete;
  const absl::Status& status() const { return status_; }
  const std::string& directory() const { return directory_; }

 private:
  std::string directory_;
  absl::Status status_;
};

int RunClusterWithNewTls(RunOptions options) {
  const NewCertificates certificates;
  if (!certificates.status().ok()) {
    std::fprintf(stderr, "sluice run: --tls: %s\n",
                 std::string(certificates.status().message()).c_str());
    return 1;
  }
  options.tls = certificates.directory();
  return RunCluster(options);
}

}  // namespace

int Run(const RunOptions& options) {
  const std::string& program = options.command[0];
  if (IsPython(program) && access(program.c_str(), R_OK) != 0) {
    std::fprintf(stderr, "sluice run: cannot read %s: %s\n", program.c_str(),
                 strerror(errno));
    return 2;
  }
  const int total =
      options.ps + options.workers + options.chiefs + options.evaluators;
  if (options.ps < 0 || options.workers < 0 || options.chiefs < 0 ||
      options.chiefs > 1 || options.evaluators < 0) {
    std::fprintf(stderr,
                 "sluice run: counts must not be negative, and there is "
                 "at most one chief\n");
    return 2;
  }
  if (total == 0 && options.tls == kNewTls) {
    std::fprintf(stderr,
                 "sluice run: --tls alone makes certificates for a local "
                 "cluster; for one process give --tls=DIR\n");
    return 2;
  }
  if (!options.tls.empty() && options.tls != kNewTls) {
    const absl::StatusOr<TlsIdentityPtr> tls =
        LoadTls(TlsOptions::InDirectory(options.tls),
                total == 0 ? TlsRole::kClient : TlsRole::kTask);
    if (!tls.ok()) {
      std::fprintf(stderr, "sluice run: --tls: %s\n",
                   std::string(tls.status().message()).c_str());
      return 2;
    }
  }
  if (total == 0) return RunAlone(options);
  return options.tls == kNewTls ? RunClusterWithNewTls(options)
                                : RunCluster(options);
}

namespace {

int RunCluster(const RunOptions& options) {
  const std::string& program = options.command[0];
  const int total =
      options.ps + options.workers + options.chiefs + options.evaluators;
  const std::vector<int> ports = FreePorts(total);
  if (static_cast<int>(ports.size()) != total) {
    std::fprintf(stderr, "sluice run: no free ports: %s\n", strerror(errno));
    return 1;
  }
  std::vector<Job> jobs;
  int next = 0;
  for (const auto& [name, count] :
       {std::pair<const char*, int>{"ps", options.ps},
        {"chief", options.chiefs},
        {"worker", options.workers},
        {"evaluator", options.evaluators}}) {
    if (count == 0) continue;
    Job job{name, {}};
    for (int i = 0; i < count; ++i) {
      job.addresses.push_back("localhost:" + std::to_string(ports[next++]));
    }
    jobs.push_back(std::move(job));
  }
  const bool by_flags = options.wire == "flags" || options.wire == "both";
  const bool by_env = options.wire == "env" || options.wire == "both";
  // Of a C++ program the help text, which names its flags, is found in there.
  const std::string script = by_flags ? Text(program) : "";
  std::vector<Task> tasks;
  for (const Job& job : jobs) {
    for (size_t i = 0; i < job.addresses.size(); ++i) {
      Task task{job.name, static_cast<int>(i), Command(options),
                Environment(options)};
      if (by_env) task.environment["TF_CONFIG"] = TfConfig(jobs, job.name, i);
      if (by_flags) {
        AddFlags(script, jobs, job.name, static_cast<int>(i), &task.command);
      }
      tasks.push_back(std::move(task));
    }
  }
  return RunTasks(tasks);
}

}  // namespace

}  // namespace sluice::tools
