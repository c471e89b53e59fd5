// What every Rendezvous promises. An implementation instantiates the suite with
// a function that makes a pair of ends.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/mutex.h"
#include "sluice/kernel/rendezvous.h"
#include "sluice/kernel/testing/op_test.h"

namespace sluice {

// Where values of one step go in and come out. In one process both are the
// same table.
struct RendezvousEnds {
  std::shared_ptr<Rendezvous> sender;
  std::shared_ptr<Rendezvous> receiver;
  // The full key of an edge from one to the other.
  std::function<std::string(const std::string& edge)> key;
  std::shared_ptr<void> keep;  // What else must live.
  // Lets everything happen; empty where things happen by themselves.
  std::function<void()> run = {};
};
using MakeRendezvousEnds = RendezvousEnds (*)();

// A receive of one value, or of several, under way.
template <typename Result>
class Pending {
 public:
  explicit Pending(std::function<void()> run)
      : run_(std::move(run)), state_(std::make_shared<State>()) {}
  // To be called once.
  auto callback() const {
    return [state = state_](absl::StatusOr<Result> result) {
      EXPECT_FALSE(state->done.HasBeenNotified());
      state->result = std::move(result);
      state->done.Notify();
    };
  }
  bool done() const { return state_->done.HasBeenNotified(); }
  absl::StatusOr<Result> Wait() const {
    if (run_) run_();
    if (!state_->done.WaitFor(std::chrono::seconds(run_ ? 0 : 60))) {
      return absl::DeadlineExceededError("nothing received");
    }
    return state_->result;
  }

 private:
  struct State {
    Notification done;
    absl::StatusOr<Result> result = absl::UnknownError("");
  };
  std::function<void()> run_;
  std::shared_ptr<State> state_;
};
using PendingRecv = Pending<Parcel>;
using PendingGroup = Pending<std::vector<Parcel>>;

inline PendingRecv StartRecv(Rendezvous& rendezvous, const std::string& key,
                             std::function<void()> run = {}) {
  PendingRecv recv(std::move(run));
  rendezvous.RecvAsync(key, recv.callback());
  return recv;
}

class RendezvousConformance
    : public testing::TestWithParam<MakeRendezvousEnds> {
 protected:
  absl::Status Send(const std::string& edge, float value, bool dead = false) {
    return ends_.sender->Send(ends_.key(edge), {Tensor::Scalar(value), dead});
  }
  PendingRecv Recv(const std::string& edge) {
    return StartRecv(*ends_.receiver, ends_.key(edge), ends_.run);
  }
  PendingGroup RecvGroup(const std::vector<std::string>& edges) {
    std::vector<std::string> keys;
    for (const std::string& edge : edges) keys.push_back(ends_.key(edge));
    PendingGroup group(ends_.run);
    ends_.receiver->RecvGroupAsync(keys, group.callback());
    return group;
  }
  static float Value(const PendingRecv& recv) {
    const absl::StatusOr<Parcel> parcel = recv.Wait();
    EXPECT_TRUE(parcel.ok()) << parcel.status();
    return parcel.ok() ? parcel->tensor.scalar<float>() : -1;
  }

  RendezvousEnds ends_ = GetParam()();
};

TEST_P(RendezvousConformance, AValueThatIsThereIsTaken) {
  SLUICE_ASSERT_OK(Send("a", 1));
  EXPECT_EQ(Value(Recv("a")), 1);
}

TEST_P(RendezvousConformance, WhoComesFirstWaits) {
  const PendingRecv recv = Recv("a");
  EXPECT_FALSE(recv.done());
  SLUICE_ASSERT_OK(Send("a", 2));
  EXPECT_EQ(Value(recv), 2);
}

TEST_P(RendezvousConformance, KeysDoNotMix) {
  const PendingRecv a = Recv("a");
  SLUICE_ASSERT_OK(Send("b", 3));
  EXPECT_EQ(Value(Recv("b")), 3);
  EXPECT_FALSE(a.done());
  SLUICE_ASSERT_OK(Send("a", 4));
  EXPECT_EQ(Value(a), 4);
}

TEST_P(RendezvousConformance, DeadValuesArriveDead) {
  SLUICE_ASSERT_OK(Send("a", 0, /*dead=*/true));
  const absl::StatusOr<Parcel> parcel = Recv("a").Wait();
  ASSERT_TRUE(parcel.ok()) << parcel.status();
  EXPECT_TRUE(parcel->dead);
}

TEST_P(RendezvousConformance, StringsAndLargeTensorsArriveWhole) {
  SLUICE_ASSERT_OK(ends_.sender->Send(
      ends_.key("text"),
      {Tensor::Of<std::string>({2}, {std::string("a\0b", 3), ""}), false}));
  absl::StatusOr<Parcel> text = Recv("text").Wait();
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->tensor.data<std::string>()[0], std::string("a\0b", 3));

  Tensor large(DType::kInt32, {1000, 1000});
  int32_t next = 0;
  for (int32_t& x : large.mutable_data<int32_t>()) x = next++;
  SLUICE_ASSERT_OK(ends_.sender->Send(ends_.key("large"), {large, false}));
  absl::StatusOr<Parcel> got = Recv("large").Wait();
  ASSERT_TRUE(got.ok()) << got.status();
  ExpectClose(got->tensor, large);
}

TEST_P(RendezvousConformance, AnAbortEndsWhoWaitsAndWhoComesLater) {
  const PendingRecv waiting = Recv("a");
  ends_.receiver->Abort(absl::AbortedError("the step failed"));
  EXPECT_THAT(waiting.Wait().status(),
              StatusIs(absl::StatusCode::kAborted,
                       testing::HasSubstr("the step failed")));
  EXPECT_THAT(Recv("b").Wait().status(),
              StatusIs(absl::StatusCode::kAborted,
                       testing::HasSubstr("the step failed")));
  EXPECT_THAT(ends_.receiver->Send(ends_.key("c"), {}),
              StatusIs(absl::StatusCode::kAborted,
                       testing::HasSubstr("the step failed")));
}

TEST_P(RendezvousConformance, TheFirstAbortCounts) {
  ends_.receiver->Abort(absl::AbortedError("first"));
  ends_.receiver->Abort(absl::CancelledError("second"));
  EXPECT_THAT(Recv("a").Wait().status(), StatusIs(absl::StatusCode::kAborted,
                                                  testing::HasSubstr("first")));
}

TEST_P(RendezvousConformance, AGroupComesInTheOrderOfItsKeys) {
  for (int i = 0; i < 3; ++i) {
    SLUICE_ASSERT_OK(Send(std::string(1, 'a' + i), i, /*dead=*/i == 1));
  }
  const auto group = RecvGroup({"c", "a", "b"}).Wait();
  ASSERT_TRUE(group.ok()) << group.status();
  ASSERT_EQ(group->size(), 3u);
  EXPECT_EQ((*group)[0].tensor.scalar<float>(), 2);
  EXPECT_EQ((*group)[1].tensor.scalar<float>(), 0);
  EXPECT_TRUE((*group)[2].dead);
}

TEST_P(RendezvousConformance, AGroupWaitsForItsLastValue) {
  SLUICE_ASSERT_OK(Send("a", 1));
  const PendingGroup group = RecvGroup({"a", "b"});
  EXPECT_FALSE(group.done());
  SLUICE_ASSERT_OK(Send("b", 2));
  const auto got = group.Wait();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*got)[1].tensor.scalar<float>(), 2);
}

TEST_P(RendezvousConformance, AnAbortEndsAGroupOnce) {
  SLUICE_ASSERT_OK(Send("a", 1));
  const PendingGroup group = RecvGroup({"a", "b", "c"});
  ends_.receiver->Abort(absl::AbortedError("the step failed"));
  EXPECT_THAT(group.Wait().status(),
              StatusIs(absl::StatusCode::kAborted,
                       testing::HasSubstr("the step failed")));
}

TEST_P(RendezvousConformance, ManyThreadsSendAndReceive) {
  if (ends_.run) GTEST_SKIP() << "Here everything happens in one thread.";
  constexpr int kThreads = 4;
  constexpr int kEach = 50;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    const auto edge = [t](int i) {
      return "e" + std::to_string(t * kEach + i);
    };
    threads.emplace_back([this, t, edge] {
      for (int i = 0; i < kEach; ++i) {
        SLUICE_EXPECT_OK(Send(edge(i), static_cast<float>(t * kEach + i)));
      }
    });
    threads.emplace_back([this, t, edge] {
      // Some by themselves and some together, the last ones first.
      for (int i = kEach - 1; i > 0; i -= 2) {
        const float value = static_cast<float>(t * kEach + i);
        if (i % 4 == 1) {
          EXPECT_EQ(Value(Recv(edge(i))), value);
          EXPECT_EQ(Value(Recv(edge(i - 1))), value - 1);
          continue;
        }
        const auto group = RecvGroup({edge(i), edge(i - 1)}).Wait();
        ASSERT_TRUE(group.ok()) << group.status();
        EXPECT_EQ((*group)[0].tensor.template scalar<float>(), value);
        EXPECT_EQ((*group)[1].tensor.template scalar<float>(), value - 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(RendezvousConformance, AnAbortAmongManyThreadsEndsEveryCallOnce) {
  if (ends_.run) GTEST_SKIP() << "Here everything happens in one thread.";
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      std::vector<PendingRecv> waiting;
      for (int i = 0; i < 50; ++i) {
        waiting.push_back(Recv("e" + std::to_string(t * 50 + i)));
        if (t == 0 && i == 25) {
          ends_.receiver->Abort(absl::AbortedError("the step failed"));
        }
      }
      for (const PendingRecv& recv : waiting) {
        EXPECT_TRUE(absl::IsAborted(recv.Wait().status()));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(RendezvousConformance, TheProducersAbortReachesWhoWaits) {
  const PendingRecv waiting = Recv("a");
  ends_.sender->Abort(absl::AbortedError("the producer failed"));
  EXPECT_THAT(waiting.Wait().status(),
              StatusIs(absl::StatusCode::kAborted,
                       testing::HasSubstr("the producer failed")));
}

}  // namespace sluice
