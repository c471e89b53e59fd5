#include "sluice/base/signals.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

namespace sluice {
namespace {

// By signal number. Posted by the handler, which may do little else; after a
// fork the child posts its own copy, which nobody hears.
sem_t arrived[NSIG];

void OnSignal(int signal) {
  const int saved = errno;
  sem_post(&arrived[signal]);
  errno = saved;
}

volatile sig_atomic_t terminated = 0;
void OnTerminate(int) { terminated = 1; }

bool HasDefaultHandler(int signal) {
  struct sigaction current = {};
  return sigaction(signal, nullptr, &current) == 0 &&
         (current.sa_flags & SA_SIGINFO) == 0 && current.sa_handler == SIG_DFL;
}

}  // namespace

bool HandleSignal(int signal, std::function<void()> report) {
  if (!HasDefaultHandler(signal)) return false;
  sem_init(&arrived[signal], /*pshared=*/0, 0);
  std::thread([signal, report = std::move(report)] {
    pthread_setname_np(pthread_self(), "sluice-signal");
    while (true) {
      if (sem_wait(&arrived[signal]) == 0) report();
    }
  }).detach();
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  // Nobody else's system call should notice.
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  return sigaction(signal, &action, nullptr) == 0;
}

void IgnoreSignal(int signal) {
  if (HasDefaultHandler(signal)) ::signal(signal, SIG_IGN);
}

TerminationNotice::TerminationNotice() {
  if (gettid() != getpid() || !HasDefaultHandler(SIGTERM)) return;
  terminated = 0;
  struct sigaction action = {};
  action.sa_handler = OnTerminate;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  active_ = sigaction(SIGTERM, &action, nullptr) == 0;
}

TerminationNotice::~TerminationNotice() {
  if (active_) signal(SIGTERM, SIG_DFL);
}

bool TerminationNotice::arrived() const { return active_ && terminated != 0; }

}  // namespace sluice
