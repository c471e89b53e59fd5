#include "tools/sluice/processes.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace sluice::tools {
namespace {

constexpr auto kGrace = std::chrono::seconds(5);
// What is longer is shown as several: who never ends a line must not fill our
// memory.
constexpr size_t kLongestLine = 64 << 10;

volatile sig_atomic_t interrupted = 0;
void OnSignal(int signal) { interrupted = signal; }

struct Child {
  const Task* task = nullptr;
  pid_t pid = -1;
  int out = -1;
  int err = -1;
  std::string out_line, err_line;
  bool running = false;
};

std::string Name(const Task& task) {
  return task.job + "/" + std::to_string(task.index);
}

void Show(const Task& task, FILE* to, const std::string& line) {
  std::fprintf(to, "[%s] %s\n", Name(task).c_str(), line.c_str());
  std::fflush(to);
}

void Flush(const Task& task, FILE* to, std::string* line) {
  if (!line->empty()) Show(task, to, *line);
  line->clear();
}

// Reads what is there, but no more than a pipe holds: a task that writes without
// pause must not keep us from the others. False at the end of the stream.
bool Read(const Task& task, int fd, FILE* to, std::string* line) {
  static char buffer[64 << 10];
  const ssize_t n = read(fd, buffer, sizeof(buffer));
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  for (ssize_t i = 0; i < n; ++i) {
    if (buffer[i] == '\n') {
      Show(task, to, *line);
      line->clear();
      continue;
    }
    if (line->size() == kLongestLine) Flush(task, to, line);
    line->push_back(buffer[i]);
  }
  if (n == 0) Flush(task, to, line);
  return n > 0;
}

[[noreturn]] void Exec(const Task& task, int out, int err, pid_t parent) {
  // The launcher's death takes its children along.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  for (const auto& [key, value] : task.environment) {
    setenv(key.c_str(), value.c_str(), 1);
  }
  std::vector<char*> argv;
  for (const std::string& arg : task.command) {
    argv.push_back(const_cast<char*>(arg.c_str()));
  }
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  std::fprintf(stderr, "cannot run %s: %s\n", argv[0], strerror(errno));
  _exit(127);
}

bool Start(Child* child) {
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) return false;
  const pid_t parent = getpid();
  child->pid = fork();
  if (child->pid < 0) return false;
  if (child->pid == 0) Exec(*child->task, out[1], err[1], parent);
  close(out[1]);
  close(err[1]);
  child->out = out[0];
  child->err = err[0];
  fcntl(child->out, F_SETFL, O_NONBLOCK);
  fcntl(child->err, F_SETFL, O_NONBLOCK);
  child->running = true;
  return true;
}

class Runner {
 public:
  explicit Runner(const std::vector<Task>& tasks) {
    for (const Task& task : tasks) {
      children_.emplace_back();
      children_.back().task = &task;
    }
  }

  int Run() {
    for (Child& child : children_) {
      if (Start(&child)) continue;
      std::fprintf(stderr, "sluice run: cannot start %s: %s\n",
                   Name(*child.task).c_str(), strerror(errno));
      status_ = 1;
      EndAll(SIGKILL);
      break;
    }
    while (AnyRunning()) {
      PollOutput();
      Reap();
      if (interrupted && !ending_) {
        status_ = 130;
        EndAll(SIGTERM);
      }
      if (!ending_ && WorkersDone()) EndAll(SIGTERM);
      if (ending_ && std::chrono::steady_clock::now() > kill_at_) {
        EndAll(SIGKILL);
      }
    }
    for (Child& child : children_) ReadRest(&child);
    return status_;
  }

 private:
  bool AnyRunning() const {
    for (const Child& child : children_) {
      if (child.running) return true;
    }
    return false;
  }

  // Where there are only ps, they end by themselves.
  bool WorkersDone() const {
    bool any = false;
    for (const Child& child : children_) {
      if (child.task->job == "ps") continue;
      if (child.running) return false;
      any = true;
    }
    return any;
  }

  void EndAll(int signal) {
    if (!ending_) kill_at_ = std::chrono::steady_clock::now() + kGrace;
    ending_ = true;
    for (const Child& child : children_) {
      if (child.running) kill(child.pid, signal);
    }
  }

  void PollOutput() {
    std::vector<pollfd> fds;
    for (const Child& child : children_) {
      if (child.out >= 0) fds.push_back({child.out, POLLIN, 0});
      if (child.err >= 0) fds.push_back({child.err, POLLIN, 0});
    }
    poll(fds.data(), fds.size(), 100);
    for (Child& child : children_) ReadFrom(&child);
  }

  static void ReadFrom(Child* child) {
    if (child->out >= 0 &&
        !Read(*child->task, child->out, stdout, &child->out_line)) {
      close(child->out);
      child->out = -1;
    }
    if (child->err >= 0 &&
        !Read(*child->task, child->err, stderr, &child->err_line)) {
      close(child->err);
      child->err = -1;
    }
  }

  // Who left the task's group may hold its streams open for ever.
  static void ReadRest(Child* child) {
    ReadFrom(child);
    Flush(*child->task, stdout, &child->out_line);
    Flush(*child->task, stderr, &child->err_line);
  }

  void Reap() {
    for (Child& child : children_) {
      int status = 0;
      if (!child.running || waitpid(child.pid, &status, WNOHANG) != child.pid) {
        continue;
      }
      child.running = false;
      ReadFrom(&child);  // Before what we say of its end.
      const int code =
          WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      if (code == 0 || ending_) continue;
      std::fprintf(stderr,
                   "sluice run: %s ended with status %d; ending the "
                   "others\n",
                   Name(*child.task).c_str(), code);
      if (status_ == 0) status_ = code;
      EndAll(SIGTERM);
    }
  }

  std::vector<Child> children_;
  int status_ = 0;
  bool ending_ = false;
  std::chrono::steady_clock::time_point kill_at_;
};

}  // namespace

int RunTasks(const std::vector<Task>& tasks) {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return Runner(tasks).Run();
}

}  // namespace sluice::tools
