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

using Clock = std::chrono::steady_clock;

volatile sig_atomic_t interrupted = 0;
volatile sig_atomic_t by_terminal = 0;  // Which told our whole group.
volatile sig_atomic_t suspended = 0;
void OnSignal(int signal, siginfo_t* info, void*) {
  if (signal == SIGTSTP) {
    suspended = 1;
    return;
  }
  by_terminal = info->si_code == SI_KERNEL;
  interrupted = signal;
}

void Catch(int signal) {
  struct sigaction before = {}, action = {};
  action.sa_sigaction = OnSignal;
  action.sa_flags = SA_SIGINFO;
  sigaction(signal, &action, &before);
  // nohup, and shells that know no jobs, want these to do nothing.
  const bool may_be_off = signal == SIGHUP || signal == SIGTSTP;
  if (may_be_off && before.sa_handler == SIG_IGN) {
    sigaction(signal, &before, nullptr);
  }
}

// A single task that someone sits in front of stays in our process group, which
// is the terminal's. Otherwise each is one of its own, so that what it started
// ends with it.
bool SharesGroup(size_t tasks) {
  return tasks == 1 &&
         (isatty(STDIN_FILENO) != 0 || isatty(STDOUT_FILENO) != 0 ||
          isatty(STDERR_FILENO) != 0);
}

struct Child {
  const Task* task = nullptr;
  pid_t pid = -1;
  int out = -1;
  int err = -1;
  std::string out_line, err_line;
  bool shares_group = false;
  bool running = false;         // The process that was started.
  bool left = false;            // Any of its own group.
  int told = 0;                 // The last signal to end.
  Clock::time_point harder_at;  // When a harder one follows.

  // For kill and waitpid.
  pid_t all() const { return shares_group ? pid : -pid; }
};

void Tell(Child* child, int signal) {
  if (!child->left) return;
  child->told = signal;
  child->harder_at = Clock::now() + kGrace;
  kill(child->all(), signal);
  kill(child->all(), SIGCONT);  // Who is stopped hears nothing.
}

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

// Reads what is there, but no more than a pipe holds: a task that writes
// without pause must not keep us from the others. False at the end of the
// stream.
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

[[noreturn]] void Exec(const Task& task, bool shares_group, int out, int err,
                       pid_t parent) {
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  // The launcher's death takes its children along.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  if (!shares_group) {
    setpgid(0, 0);
    // Only the terminal's own group may read it.
    if (isatty(STDIN_FILENO) != 0) {
      dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    }
  }
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
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
  if (child->pid == 0) {
    Exec(*child->task, child->shares_group, out[1], err[1], parent);
  }
  // Whoever of us is the first.
  if (!child->shares_group) setpgid(child->pid, child->pid);
  close(out[1]);
  close(err[1]);
  child->out = out[0];
  child->err = err[0];
  fcntl(child->out, F_SETFL, O_NONBLOCK);
  fcntl(child->err, F_SETFL, O_NONBLOCK);
  child->running = child->left = true;
  return true;
}

class Runner {
 public:
  explicit Runner(const std::vector<Task>& tasks) {
    for (const Task& task : tasks) {
      children_.emplace_back();
      children_.back().task = &task;
      children_.back().shares_group = SharesGroup(tasks.size());
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
    while (AnyLeft()) {
      PollOutput();
      Reap();
      // Who shares our group has heard of it, and may handle it.
      const bool heard = children_[0].shares_group && by_terminal;
      if (interrupted && !heard && !ending_) {
        status_ = 130;
        // A program may handle Ctrl-C.
        EndAll(interrupted == SIGINT ? SIGINT : SIGTERM);
      }
      if (suspended) Suspend();
      if (!ending_ && WorkersDone()) EndAll(SIGTERM);
      BeHarder();
    }
    for (Child& child : children_) ReadRest(&child);
    return status_;
  }

 private:
  bool AnyLeft() const {
    for (const Child& child : children_) {
      if (child.left) return true;
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
    ending_ = true;
    for (Child& child : children_) Tell(&child, signal);
  }

  void BeHarder() {
    for (Child& child : children_) {
      if (child.told == 0 || Clock::now() < child.harder_at) continue;
      Tell(&child, child.told == SIGINT ? SIGTERM : SIGKILL);
    }
  }

  // Ctrl-Z, as a shell takes it: stops with the tasks, and goes on with them.
  void Suspend() {
    suspended = 0;
    for (const Child& child : children_) {
      if (child.left) kill(child.all(), SIGTSTP);
    }
    signal(SIGTSTP, SIG_DFL);
    raise(SIGTSTP);
    // Here somebody has let us go on.
    Catch(SIGTSTP);
    for (const Child& child : children_) {
      if (child.left) kill(child.all(), SIGCONT);
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
      if (child.left && TaskEnded(&child, &status)) Ended(&child, status);
    }
  }

  // Buries the dead of the task's group: those whose parents are gone are ours,
  // see RunTasks. As long as there is one more, nobody else gets its number.
  static bool TaskEnded(Child* child, int* task_status) {
    bool ended = false;
    int status = 0;
    pid_t pid;
    while ((pid = waitpid(child->all(), &status, WNOHANG)) > 0) {
      if (pid != child->pid) continue;
      ended = true;
      *task_status = status;
    }
    child->left = pid == 0;
    return ended;
  }

  void Ended(Child* child, int status) {
    child->running = false;
    ReadFrom(child);  // Before what we say of its end.
    if (child->told == 0) Tell(child, SIGTERM);  // What it leaves behind.
    const int code =
        WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (code == 0 || ending_) return;
    if (status_ == 0) status_ = code;
    if (interrupted) return;
    std::fprintf(stderr,
                 "sluice run: %s ended with status %d; ending the "
                 "others\n",
                 Name(*child->task).c_str(), code);
    EndAll(SIGTERM);
  }

  std::vector<Child> children_;
  int status_ = 0;
  bool ending_ = false;
};

}  // namespace

int RunTasks(const std::vector<Task>& tasks) {
  for (int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP}) Catch(signal);
  // What a task started becomes our child when its parent ends, so that we know
  // when the whole group is gone.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  return Runner(tasks).Run();
}

}  // namespace sluice::tools
