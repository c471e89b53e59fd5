#include "sluice/kernel/cancellation.h"

#include <gtest/gtest.h>

#include <thread>

namespace sluice {
namespace {

TEST(Cancellation, CallsEachCallbackOnceAndKeepsTheFirstReason) {
  Cancellation cancellation;
  EXPECT_FALSE(cancellation.cancelled());
  EXPECT_TRUE(cancellation.status().ok());
  int calls = 0;
  EXPECT_NE(cancellation.Register([&] { ++calls; }), Cancellation::kNone);
  EXPECT_NE(cancellation.Register([&] { ++calls; }), Cancellation::kNone);
  cancellation.Cancel(absl::AbortedError("first"));
  cancellation.Cancel(absl::CancelledError("second"));
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(cancellation.cancelled());
  EXPECT_EQ(cancellation.status(), absl::AbortedError("first"));
}

TEST(Cancellation, IsAnErrorEvenWhenItsReasonIsNone) {
  Cancellation cancellation;
  cancellation.Cancel(absl::OkStatus());
  EXPECT_TRUE(absl::IsCancelled(cancellation.status()));
}

TEST(Cancellation, WhoComesTooLateIsToldAndNeverCalled) {
  Cancellation cancellation;
  cancellation.Cancel(absl::CancelledError(""));
  EXPECT_EQ(cancellation.Register([] { FAIL(); }), Cancellation::kNone);
}

TEST(Cancellation, ADeregisteredCallbackIsNotCalled) {
  Cancellation cancellation;
  const auto token = cancellation.Register([] { FAIL(); });
  EXPECT_TRUE(cancellation.Deregister(token));
  EXPECT_FALSE(cancellation.Deregister(token));
  cancellation.Cancel(absl::CancelledError(""));
  EXPECT_FALSE(cancellation.Deregister(token));
}

TEST(Cancellation, ACallbackMayDeregisterItselfAndOthers) {
  Cancellation cancellation;
  Cancellation::Token a = 0, b = 0;
  a = cancellation.Register([&] {
    EXPECT_FALSE(cancellation.Deregister(a));
    EXPECT_FALSE(cancellation.Deregister(b));
  });
  b = cancellation.Register([] {});
  cancellation.Cancel(absl::CancelledError(""));
}

TEST(Cancellation, DeregisterAndWaitWaitsForACallbackOfAnotherThread) {
  Cancellation cancellation;
  Notification running, let_go;
  bool finished = false;
  const auto token = cancellation.Register([&] {
    running.Notify();
    let_go.Wait();
    finished = true;
  });
  std::thread canceller([&] { cancellation.Cancel(absl::CancelledError("")); });
  running.Wait();
  std::thread releaser([&] { let_go.Notify(); });
  cancellation.DeregisterAndWait(token);
  EXPECT_TRUE(finished);
  canceller.join();
  releaser.join();
}

}  // namespace
}  // namespace sluice
