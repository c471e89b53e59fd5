// What every Rendezvous promises. An implementation instantiates the suite with
// a function that makes a pair of ends.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

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

// A receive under way.
class PendingRecv {
 public:
  PendingRecv(Rendezvous& rendezvous, const std::string& key,
              std::function<void()> run = {})
      : run_(std::move(run)), state_(std::make_shared<State>()) {
    rendezvous.RecvAsync(key, [state = state_](absl::StatusOr<Parcel> parcel) {
      EXPECT_FALSE(state->done.HasBeenNotified());
      state->parcel = std::move(parcel);
      state->done.Notify();
    });
  }
  bool done() const { return state_->done.HasBeenNotified(); }
  absl::StatusOr<Parcel> Wait() const {
    if (run_) run_();
    if (!state_->done.WaitFor(std::chrono::seconds(run_ ? 0 : 60))) {
      return absl::DeadlineExceededError("nothing received");
    }
    return state_->parcel;
  }

 private:
  struct State {
    Notification done;
    absl::StatusOr<Parcel> parcel = absl::UnknownError("");
  };
  std::function<void()> run_;
  std::shared_ptr<State> state_;
};

class RendezvousConformance
    : public testing::TestWithParam<MakeRendezvousEnds> {
 protected:
  absl::Status Send(const std::string& edge, float value, bool dead = false) {
    return ends_.sender->Send(ends_.key(edge), {Tensor::Scalar(value), dead});
  }
  PendingRecv Recv(const std::string& edge) {
    return PendingRecv(*ends_.receiver, ends_.key(edge), ends_.run);
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

TEST_P(RendezvousConformance, TheProducersAbortReachesWhoWaits) {
  const PendingRecv waiting = Recv("a");
  ends_.sender->Abort(absl::AbortedError("the producer failed"));
  EXPECT_THAT(waiting.Wait().status(),
              StatusIs(absl::StatusCode::kAborted,
                       testing::HasSubstr("the producer failed")));
}

}  // namespace sluice
