// Lanes when there is more to do than can be done at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "sluice/base/logging.h"
#include "sluice/base/mutex.h"
#include "sluice/base/simulation.h"
#include "sluice/base/testing/eventually.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/rpc/event.h"
#include "sluice/rpc/generic_server.h"
#include "sluice/rpc/lane_channel.h"
#include "sluice/rpc/lane_loop.h"
#include "sluice/rpc/lane_socket.h"
#include "sluice/rpc/testing/lane_only.h"
#include "sluice/rpc/testing/raw_peer.h"
#include "sluice/rpc/testing/raw_server.h"

namespace sluice {
namespace {

using testing::ElementsAre;

constexpr auto kBusyPatience = std::chrono::seconds(60);

// Calls `run` on a loop's thread, behind what that has to do already.
class LoopTurn {
 public:
  LoopTurn(LaneLoop& loop, std::function<void()> run)
      : loop_(loop), task_(std::make_shared<Task>(std::move(run))) {
    SLUICE_EXPECT_OK(loop_.Add(task_->fd, task_));
  }
  ~LoopTurn() { loop_.Remove(task_->loop_id(), task_->fd); }
  LoopTurn(const LoopTurn&) = delete;
  LoopTurn& operator=(const LoopTurn&) = delete;

  bool Wait() const { return task_->done.WaitFor(kBusyPatience); }

 private:
  struct Task : public LaneLoop::Watcher {
    explicit Task(std::function<void()> r) : run(std::move(r)) {}
    ~Task() override { close(fd); }
    void Ready(uint32_t) override {
      eventfd_t unused;
      eventfd_read(fd, &unused);
      run();
      done.Notify();
    }
    void Tick(SteadyTime) override {}
    using LaneLoop::Watcher::loop_id;

    const std::function<void()> run;
    const int fd = eventfd(/*count=*/1, EFD_CLOEXEC | EFD_NONBLOCK);
    Notification done;
  };

  LaneLoop& loop_;
  const std::shared_ptr<Task> task_;
};

// The loops of this process, which do nothing until they are let go.
class HeldLoops {
 public:
  HeldLoops() {
    std::set<LaneLoop*> loops;
    while (loops.size() < static_cast<size_t>(PollingThreads())) {
      loops.insert(&LaneLoop::Next());
    }
    for (LaneLoop* loop : loops) {
      auto held = std::make_unique<Held>(*loop);
      EXPECT_TRUE(held->begun.WaitFor(kBusyPatience));
      loops_.push_back(std::move(held));
    }
  }
  ~HeldLoops() {
    for (int i = 0; i < count(); ++i) LetGo(i);
  }
  HeldLoops(const HeldLoops&) = delete;
  HeldLoops& operator=(const HeldLoops&) = delete;

  int count() const { return static_cast<int>(loops_.size()); }
  LaneLoop& loop(int i) { return loops_[i]->loop; }
  void LetGo(int i) { loops_[i]->over.Notify(); }

 private:
  struct Held {
    explicit Held(LaneLoop& l) : loop(l) {}
    LaneLoop& loop;
    Notification begun, over;
    LoopTurn turn{loop, [this] {
                    begun.Notify();
                    over.Wait();
                  }};
  };
  std::vector<std::unique_ptr<Held>> loops_;
};

GenericServer::Options ServerWithLane() {
  GenericServer::Options options;
  options.address = "localhost:0";
  options.lane = NewLaneName();
  options.handler = [](const std::shared_ptr<ServerCall>& call) {
    call->Reply({});
  };
  return options;
}

TEST(LaneServer, TakesFewOfManyConnectionsBeforeOthersHaveTheirTurn) {
  constexpr int kPeers = 100;
  GenericServer::Options options = ServerWithLane();
  const std::string lane = options.lane;
  const auto server = *GenericServer::Start(std::move(options));
  HeldLoops loops;
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < kPeers; ++i) {
    peers.push_back(std::make_unique<RawPeer>(lane));
  }
  // Each that is taken costs at least one.
  ptrdiff_t before = 0;
  std::vector<ptrdiff_t> opened(loops.count());
  std::vector<std::unique_ptr<LoopTurn>> turns;
  for (int i = 0; i < loops.count(); ++i) {
    turns.push_back(std::make_unique<LoopTurn>(
        loops.loop(i), [&, i] { opened[i] = OpenDescriptors() - before; }));
  }
  before = OpenDescriptors();
  // One of them has the listener.
  ptrdiff_t first = 0;
  for (int i = 0; i < loops.count(); ++i) {
    loops.LetGo(i);
    ASSERT_TRUE(turns[i]->Wait());
    if (first == 0) first = opened[i];
  }
  EXPECT_GT(first, 0);
  EXPECT_LT(first, kPeers);
  EXPECT_TRUE(Eventually([&] { return OpenDescriptors() - before >= kPeers; }));
}

// The machine, but for the time that the test adds.
class LaterMachine : public Simulation {
 public:
  SteadyTime Now() override { return RealClock().Now() + later.load(); }
  int64_t WallMicros() override { return RealClock().WallMicros(); }
  void CallLater(std::chrono::nanoseconds,
                 absl::AnyInvocable<void()>) override {}
  void RunBlocking(absl::AnyInvocable<void()>) override {}
  uint64_t RandomId() override { return 0; }

  std::atomic<std::chrono::minutes> later;
};

// Connects as somebody else, so often.
void ConnectAsNobody(const std::string& lane, int times) {
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (setuid(kNobody) != 0) _exit(1);
    for (int i = 0; i < times; ++i) {
      if (!absl::IsPermissionDenied(ConnectLane(lane).status())) _exit(1);
    }
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  // Comes behind them.
  EXPECT_NE(LaneOnly::Connect(lane), nullptr);
}

TEST(LaneServer, SaysOnceInAMinuteWhomItRefuses) {
  if (geteuid() != 0) GTEST_SKIP() << "Only root can be somebody else";
  static Mutex mu;
  std::vector<std::string> lines;
  SetLogSinkForTest([&](LogLevel, const std::string& line) {
    MutexLock lock(mu);
    if (const size_t at = line.find("refused since"); at != line.npos) {
      lines.push_back(line.substr(at));
    }
  });
  GenericServer::Options options = ServerWithLane();
  const std::string lane = options.lane;
  // Lives on, as the loops may be looking at it.
  static auto* machine = new LaterMachine;
  machine->later = std::chrono::minutes(0);
  SetSimulation(machine);
  auto server = *GenericServer::Start(std::move(options));
  ConnectAsNobody(lane, 40);
  machine->later = std::chrono::minutes(2);
  ConnectAsNobody(lane, 5);
  server = nullptr;
  SetSimulation(nullptr);
  SetLogSinkForTest({});
  EXPECT_THAT(lines, ElementsAre("refused since the last such line: 1",
                                 "refused since the last such line: 40"));
}

LaneHeader HelloThatTakesCalls() {
  LaneHeader hello = Hello();
  hello.call = 10;
  return hello;
}

TEST(LaneClient, APongThatThereWasNoTimeToReadIsInTime) {
  absl::Status ended;
  const RawServer server(HelloThatTakesCalls());
  ASSERT_NE(server.client, nullptr);
  RpcChannel::Done done = [&](absl::Status status, const grpc::ByteBuffer&) {
    ended = std::move(status);
  };
  ASSERT_TRUE(server.client->Call("/a", {}, {}, done));
  // The test has the client's turns now.
  const HeldLoops loops;
  LaneLoop::Watcher& client = *server.client;
  const SteadyTime now = RealClock().Now();
  client.Tick(now + std::chrono::seconds(10));  // Sends a ping.
  LaneHeader pong;
  pong.kind = LaneKind::kPong;
  ASSERT_EQ(send(server.fd, &pong, sizeof(pong), MSG_NOSIGNAL),
            ssize_t{sizeof(pong)});
  client.Tick(now + std::chrono::seconds(30));
  EXPECT_FALSE(server.client->closed());
  client.Tick(now + std::chrono::seconds(50));  // Another.
  EXPECT_FALSE(server.client->closed());
  client.Tick(now + std::chrono::seconds(70));
  EXPECT_EQ(ended, absl::UnavailableError("keepalive watchdog timeout"));
}

// The machine, but for its timers, which go off when the test says so.
class HandTimers : public Simulation {
 public:
  SteadyTime Now() override { return RealClock().Now(); }
  int64_t WallMicros() override { return RealClock().WallMicros(); }
  void CallLater(std::chrono::nanoseconds,
                 absl::AnyInvocable<void()> timer) override {
    // What earlier tests have left asks on other threads.
    if (std::this_thread::get_id() == thread_) {
      pending_.push_back(std::move(timer));
    }
  }
  void RunBlocking(absl::AnyInvocable<void()>) override {}
  uint64_t RandomId() override { return 0; }

  size_t count() const { return pending_.size(); }
  void FireLast() {
    absl::AnyInvocable<void()> last = std::move(pending_.back());
    pending_.pop_back();
    last();
  }

 private:
  const std::thread::id thread_ = std::this_thread::get_id();
  std::vector<absl::AnyInvocable<void()>> pending_;
};

TEST(LaneClient, HasOneTimerForADeadlineHoweverManyComeBefore) {
  int ended = 0;
  const RawServer server(HelloThatTakesCalls());
  ASSERT_NE(server.client, nullptr);
  const HeldLoops loops;
  // Threads of earlier tests may be looking at it.
  static auto& timers = *new HandTimers;
  SetSimulation(&timers);
  const absl::Cleanup real = [] { SetSimulation(nullptr); };
  const auto call = [&](SteadyTime deadline) {
    RpcChannel::Options options;
    options.deadline = deadline;
    RpcChannel::Done done = [&](const absl::Status& status,
                                const grpc::ByteBuffer&) {
      if (absl::IsDeadlineExceeded(status)) ++ended;
    };
    ASSERT_TRUE(server.client->Call("/a", {}, options, done));
  };
  const SteadyTime begin = RealClock().Now();
  const SteadyTime late = begin + std::chrono::milliseconds(100);
  call(late);
  call(late + std::chrono::hours(1));
  ASSERT_EQ(timers.count(), 1u);
  for (int i = 1; i <= 3; ++i) {
    call(begin);
    ASSERT_EQ(timers.count(), 2u);
    timers.FireLast();
    EXPECT_GE(ended, i);
    EXPECT_EQ(timers.count(), 1u);
  }
  ASSERT_TRUE(Eventually([&] { return RealClock().Now() > late; }));
  timers.FireLast();
  EXPECT_EQ(ended, 4);
  EXPECT_EQ(timers.count(), 1u);  // For the one that is left.
}

}  // namespace
}  // namespace sluice
