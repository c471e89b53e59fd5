#include "sluice/base/signals.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "gtest/gtest.h"
#include "sluice/base/mutex.h"

namespace sluice {
namespace {

TEST(HandleSignal, ReportsOnAnotherThreadEachTime) {
  static Mutex mu;
  static CondVar changed;
  static int reports = 0;
  ASSERT_TRUE(HandleSignal(SIGUSR2, [] {
    MutexLock lock(mu);
    ++reports;
    changed.NotifyAll();
  }));
  for (int i = 1; i <= 2; ++i) {
    raise(SIGUSR2);
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::seconds(60);
    MutexLock lock(mu);
    while (reports < i) ASSERT_TRUE(changed.WaitUntil(mu, deadline));
  }
  // It has a use now.
  EXPECT_FALSE(HandleSignal(SIGUSR2, [] {}));
}

TEST(HandleSignal, LeavesASignalAloneThatIsInUse) {
  signal(SIGWINCH, SIG_IGN);
  EXPECT_FALSE(HandleSignal(SIGWINCH, [] {}));
  EXPECT_EQ(signal(SIGWINCH, SIG_DFL), SIG_IGN);
}

TEST(HandleSignal, ASignalToAForkedChildIsNotTheParents) {
  static std::atomic<int> reports{0};
  ASSERT_TRUE(HandleSignal(SIGURG, [] { ++reports; }));
  const pid_t child = fork();
  if (child == 0) {
    raise(SIGURG);
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(reports.load(), 0);
}

TEST(IgnoreSignal, LetsTheProcessLive) {
  IgnoreSignal(SIGXFSZ);
  raise(SIGXFSZ);
  EXPECT_EQ(signal(SIGXFSZ, SIG_DFL), SIG_IGN);
}

TEST(IgnoreSignal, LeavesASignalAloneThatIsInUse) {
  static std::atomic<int> used{0};
  signal(SIGXFSZ, [](int) { ++used; });
  IgnoreSignal(SIGXFSZ);
  raise(SIGXFSZ);
  EXPECT_EQ(used.load(), 1);
  signal(SIGXFSZ, SIG_DFL);
}

TEST(TerminationNotice, NotesASignalWhileItLives) {
  {
    const TerminationNotice notice;
    EXPECT_FALSE(notice.arrived());
    raise(SIGTERM);
    EXPECT_TRUE(notice.arrived());
  }
  const TerminationNotice another;
  EXPECT_FALSE(another.arrived());
}

TEST(TerminationNotice, LeavesASignalAloneThatIsInUse) {
  static std::atomic<int> used{0};
  signal(SIGTERM, [](int) { ++used; });
  {
    const TerminationNotice notice;
    raise(SIGTERM);
    EXPECT_FALSE(notice.arrived());
  }
  EXPECT_EQ(used.load(), 1);
  signal(SIGTERM, SIG_DFL);
}

TEST(TerminationNotice, IsForTheMainThread) {
  std::thread([] {
    const TerminationNotice notice;
    struct sigaction current = {};
    sigaction(SIGTERM, nullptr, &current);
    EXPECT_EQ(current.sa_handler, SIG_DFL);
  }).join();
}

}  // namespace
}  // namespace sluice
