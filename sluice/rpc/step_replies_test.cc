#include "sluice/rpc/step_replies.h"

#include <gtest/gtest.h>

#include <thread>

#include "sluice/base/status.h"
#include "sluice/base/testing/virtual_time.h"

namespace sluice {
namespace {

grpc::ByteBuffer Bytes(const std::string& text) {
  const grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

// A call whose client can go away.
class FakeCall : public ServerCall {
 public:
  const std::string& path() const override { return path_; }
  std::string peer() const override { return ""; }
  grpc::ByteBuffer& request() override { return request_; }
  void Reply(grpc::ByteBuffer response) override {
    grpc::Slice slice;
    EXPECT_TRUE(response.DumpToSingleSlice(&slice).ok());
    answers.push_back(std::string(reinterpret_cast<const char*>(slice.begin()),
                                  slice.size()));
  }
  void Fail(const absl::Status& status) override {
    answers.push_back(absl::StatusCodeToString(status.code()));
  }
  void OnCancel(absl::AnyInvocable<void()> callback) override {
    go_away = std::move(callback);
  }

  std::chrono::system_clock::time_point deadline() const override {
    return patience;
  }

  std::vector<std::string> answers;
  absl::AnyInvocable<void()> go_away;
  std::chrono::system_clock::time_point patience =
      std::chrono::system_clock::now();

 private:
  std::string path_;
  grpc::ByteBuffer request_;
};

using Answers = std::vector<std::string>;

// The step with this id of a session.
StepReplies::Found Find(StepReplies& replies, int64_t id) {
  return replies.FindOrAdd("session", id, /*content=*/1);
}

TEST(StepReplies, ARequestSentTwiceRunsOnceAndIsAnsweredTwice) {
  StepReplies replies;
  auto early = std::make_shared<FakeCall>();
  auto late = std::make_shared<FakeCall>();
  auto latest = std::make_shared<FakeCall>();
  auto first = Find(replies, 7);
  EXPECT_TRUE(first.first);
  first.audience->Join(early);
  auto second = Find(replies, 7);
  EXPECT_FALSE(second.first);
  second.audience->Join(late);
  first.audience->Reply(Bytes("done"));
  Find(replies, 7).audience->Join(latest);
  EXPECT_EQ(early->answers, Answers{"done"});
  EXPECT_EQ(late->answers, Answers{"done"});
  EXPECT_EQ(latest->answers, Answers{"done"});
}

TEST(StepReplies, AStepIsCancelledWhenNobodyWaitsForIt) {
  StepReplies replies;
  auto lost = std::make_shared<FakeCall>();
  auto again = std::make_shared<FakeCall>();
  bool cancelled = false;
  auto audience = Find(replies, 7).audience;
  audience->Join(lost);
  audience->OnAbandoned([&] { cancelled = true; });
  audience->Join(again);
  lost->go_away();
  EXPECT_FALSE(cancelled);
  again->go_away();
  EXPECT_TRUE(cancelled);
  audience->Fail(Cancelled("by its client"));
  // How far the step got is unknown: the client has to start afresh.
  auto third = std::make_shared<FakeCall>();
  Find(replies, 7).audience->Join(third);
  EXPECT_EQ(third->answers, Answers{"ABORTED"});
}

TEST(StepReplies, WhoAsksAgainForACancelledStepHasToStartAfresh) {
  StepReplies replies;
  auto lost = std::make_shared<FakeCall>();
  auto again = std::make_shared<FakeCall>();
  auto audience = Find(replies, 7).audience;
  audience->OnAbandoned([] {});
  audience->Join(lost);
  lost->go_away();
  Find(replies, 7).audience->Join(again);
  audience->Reply(Bytes("it was cancelled"));
  EXPECT_EQ(again->answers, Answers{"ABORTED"});
}

// One that has not lost its patience but its connection comes back.
std::shared_ptr<FakeCall> PatientCall() {
  auto call = std::make_shared<FakeCall>();
  call->patience = std::chrono::system_clock::time_point::max();
  return call;
}

// Ctrl-C, for one: the client is there and does not want the step.
TEST(StepReplies, AClientThatStillHoldsItsSessionHasCancelledTheStep) {
  StepReplies replies(
      RepliesKept{.grace = std::chrono::hours(1)},
      [](const std::string& handle) { return handle == "session"; });
  auto cancelled = PatientCall();
  Notification over;
  auto audience = Find(replies, 7).audience;
  audience->Join(cancelled);
  audience->OnAbandoned([&] { over.Notify(); });
  cancelled->go_away();
  EXPECT_TRUE(over.WaitFor(std::chrono::seconds(60)));
}

TEST(StepReplies, AStepGoesOnForAClientThatComesBackSoon) {
  StepReplies replies(RepliesKept{.grace = std::chrono::hours(1)});
  auto lost = PatientCall();
  auto again = PatientCall();
  bool cancelled = false;
  auto audience = Find(replies, 7).audience;
  audience->Join(lost);
  audience->OnAbandoned([&] { cancelled = true; });
  lost->go_away();
  Find(replies, 7).audience->Join(again);
  audience->Reply(Bytes("done"));
  EXPECT_FALSE(cancelled);
  EXPECT_EQ(again->answers, Answers{"done"});
}

TEST(StepReplies, AStepIsCancelledWhenItsClientDoesNotComeBack) {
  StepReplies replies(RepliesKept{.grace = std::chrono::milliseconds(1)});
  auto lost = PatientCall();
  Notification cancelled;
  auto audience = Find(replies, 7).audience;
  audience->Join(lost);
  audience->OnAbandoned([&] { cancelled.Notify(); });
  lost->go_away();
  EXPECT_TRUE(cancelled.WaitFor(std::chrono::seconds(60)));
}

TEST(StepReplies, AClientThatIsLostAgainHasItsWholeGraceAgain) {
  VirtualTime time;
  StepReplies replies(RepliesKept{.grace = std::chrono::seconds(5)});
  bool cancelled = false;
  auto audience = Find(replies, 7).audience;
  audience->OnAbandoned([&] { cancelled = true; });
  const auto lose_client = [&] {
    auto call = PatientCall();
    audience->Join(call);
    call->go_away();
  };
  lose_client();
  time.Pass(std::chrono::seconds(4));
  lose_client();
  time.Pass(std::chrono::seconds(4));
  EXPECT_FALSE(cancelled);
  time.Pass(std::chrono::seconds(1));
  EXPECT_TRUE(cancelled);
}

std::string AnswerTo(StepReplies& replies, std::string_view session,
                     int64_t id) {
  auto again = std::make_shared<FakeCall>();
  replies.FindOrAdd(session, id, /*content=*/1).audience->Join(again);
  return again->answers.empty() ? "" : again->answers[0];
}

TEST(StepReplies, AnswersTooLargeToBeKeptAreToldApart) {
  StepReplies replies(RepliesKept{.largest = 1000});
  auto call = std::make_shared<FakeCall>();
  auto audience = Find(replies, 7).audience;
  audience->Join(call);
  audience->Reply(Bytes(std::string(1001, 'x')));
  EXPECT_EQ(call->answers[0].size(), 1001);
  EXPECT_EQ(AnswerTo(replies, "session", 7), "ABORTED");
  Find(replies, 8).audience->Reply(Bytes(std::string(1000, 'x')));
  EXPECT_EQ(AnswerTo(replies, "session", 8).size(), 1000);
}

TEST(StepReplies, AnAnswerOf80KbIsKeptThroughAThousandSteps) {
  StepReplies replies;
  Find(replies, 7).audience->Reply(Bytes(std::string(80 << 10, 'x')));
  for (int64_t id = 1000; id < 2000; ++id) {
    Find(replies, id).audience->Reply(Bytes("done"));
  }
  EXPECT_EQ(AnswerTo(replies, "session", 7).size(), size_t{80} << 10);
}

TEST(StepReplies, SessionsDoNotGetEachOthersAnswers) {
  StepReplies replies;
  replies.FindOrAdd("a", 7, 1).audience->Reply(Bytes("of a"));
  const auto other = replies.FindOrAdd("b", 7, 1);
  EXPECT_TRUE(other.first);
  other.audience->Reply(Bytes("of b"));
  EXPECT_EQ(AnswerTo(replies, "a", 7), "of a");
  EXPECT_EQ(AnswerTo(replies, "b", 7), "of b");
}

TEST(StepReplies, AnotherRequestOfTheSameIdIsNotAnswered) {
  StepReplies replies;
  replies.FindOrAdd("a", 7, 1).audience->Reply(Bytes("one"));
  EXPECT_EQ(replies.FindOrAdd("a", 7, 2).audience, nullptr);
}

TEST(StepReplies, AClosedSessionIsForgotten) {
  StepReplies replies;
  auto waiting = std::make_shared<FakeCall>();
  replies.FindOrAdd("a", 7, 1).audience->Reply(Bytes("done"));
  auto running = replies.FindOrAdd("a", 8, 1).audience;
  running->Join(waiting);
  replies.Forget("a");
  replies.Forget("a");
  EXPECT_TRUE(replies.FindOrAdd("a", 7, 1).first);
  running->Reply(Bytes("late"));
  EXPECT_EQ(waiting->answers, Answers{"late"});
  EXPECT_TRUE(replies.FindOrAdd("a", 8, 1).first);
}

// It is closed while a timer asks whether its client is there, which keeps what
// is known of it alive.
TEST(StepReplies, AnAnswerOfAClosedSessionDoesNotTouchTheNextOfItsName) {
  VirtualTime time;
  std::function<void()> meanwhile;
  StepReplies replies(RepliesKept{.time = std::chrono::milliseconds(0)},
                      [&](const std::string&) {
                        meanwhile();
                        return true;
                      });
  auto lost = PatientCall();
  auto late = Find(replies, 7).audience;
  late->Join(lost);
  bool asked = false;
  meanwhile = [&] {
    asked = true;
    replies.Forget("session");
    EXPECT_TRUE(Find(replies, 8).first);
    // Kept for no time at all, and dropped with its session.
    late->Reply(Bytes("late"));
  };
  lost->go_away();
  time.Pass(std::chrono::seconds(1));
  EXPECT_TRUE(asked);
  EXPECT_FALSE(Find(replies, 8).first);
}

TEST(StepReplies, TheOldestAnswersMakeRoomForOthers) {
  StepReplies replies(
      RepliesKept{.total_bytes = 100'000, .session_bytes = 50'000});
  const auto answer = [&](std::string_view session, int64_t id) {
    replies.FindOrAdd(session, id, 1)
        .audience->Reply(Bytes(std::string(20'000, 'x')));
  };
  const auto kept = [&](std::string_view session, int64_t id) {
    const auto found = replies.FindOrAdd(session, id, 1);
    if (found.first) found.audience->Reply(Bytes(""));
    return !found.first;
  };
  answer("a", 1);
  answer("a", 2);
  answer("a", 3);  // Over the limit of a session.
  EXPECT_TRUE(kept("a", 2));
  EXPECT_TRUE(kept("a", 3));
  EXPECT_FALSE(kept("a", 1));
  answer("b", 1);
  answer("b", 2);
  answer("c", 1);  // Over that of all.
  EXPECT_FALSE(kept("a", 2));
  EXPECT_TRUE(kept("b", 1));
  EXPECT_TRUE(kept("c", 1));
}

TEST(StepReplies, AnswersGoWhenTheyAreOld) {
  StepReplies replies(RepliesKept{.time = std::chrono::milliseconds(0)});
  Find(replies, 7).audience->Reply(Bytes("done"));
  EXPECT_TRUE(Find(replies, 7).first);
}

// A session that runs no more steps.
TEST(StepReplies, AnswersGoWithoutLaterOnes) {
  StepReplies replies(RepliesKept{.time = std::chrono::milliseconds(1)});
  std::weak_ptr<StepAudience> audience;
  {
    const auto kept = Find(replies, 7).audience;
    kept->Reply(Bytes("done"));
    audience = kept;
  }
  while (!audience.expired()) std::this_thread::yield();
}

TEST(StepReplies, RequestsWithoutAnIdAreNeverTheSame) {
  StepReplies replies;
  EXPECT_TRUE(Find(replies, 0).first);
  EXPECT_TRUE(Find(replies, 0).first);
}

TEST(StepReplies, AStepIsRememberedAsLongAsItRuns) {
  StepReplies replies(RepliesKept{.session_bytes = 100 * 600});
  auto blocked = Find(replies, 7).audience;
  for (int64_t id = 1000; id < 2000; ++id) {
    Find(replies, id).audience->Reply(Bytes("done"));
  }
  EXPECT_FALSE(Find(replies, 7).first);
  EXPECT_FALSE(Find(replies, 1999).first);
  EXPECT_TRUE(Find(replies, 1000).first);
  // Once answered, it goes as others do.
  blocked->Reply(Bytes("done"));
  EXPECT_FALSE(Find(replies, 7).first);
  for (int64_t id = 2000; id < 3000; ++id) {
    Find(replies, id).audience->Reply(Bytes("done"));
  }
  EXPECT_TRUE(Find(replies, 7).first);
}

}  // namespace
}  // namespace sluice
