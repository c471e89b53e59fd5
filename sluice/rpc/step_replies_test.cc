#include "sluice/rpc/step_replies.h"

#include <gtest/gtest.h>

#include "sluice/base/status.h"

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

TEST(StepReplies, ARequestSentTwiceRunsOnceAndIsAnsweredTwice) {
  StepReplies replies;
  auto early = std::make_shared<FakeCall>();
  auto late = std::make_shared<FakeCall>();
  auto latest = std::make_shared<FakeCall>();
  auto first = replies.FindOrAdd(7);
  EXPECT_TRUE(first.first);
  first.audience->Join(early);
  auto second = replies.FindOrAdd(7);
  EXPECT_FALSE(second.first);
  second.audience->Join(late);
  first.audience->Reply(Bytes("done"));
  replies.FindOrAdd(7).audience->Join(latest);
  EXPECT_EQ(early->answers, Answers{"done"});
  EXPECT_EQ(late->answers, Answers{"done"});
  EXPECT_EQ(latest->answers, Answers{"done"});
}

TEST(StepReplies, AStepIsCancelledWhenNobodyWaitsForIt) {
  StepReplies replies;
  auto lost = std::make_shared<FakeCall>();
  auto again = std::make_shared<FakeCall>();
  bool cancelled = false;
  auto audience = replies.FindOrAdd(7).audience;
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
  replies.FindOrAdd(7).audience->Join(third);
  EXPECT_EQ(third->answers, Answers{"ABORTED"});
}

TEST(StepReplies, WhoAsksAgainForACancelledStepHasToStartAfresh) {
  StepReplies replies;
  auto lost = std::make_shared<FakeCall>();
  auto again = std::make_shared<FakeCall>();
  auto audience = replies.FindOrAdd(7).audience;
  audience->OnAbandoned([] {});
  audience->Join(lost);
  lost->go_away();
  replies.FindOrAdd(7).audience->Join(again);
  audience->Reply(Bytes("it was cancelled"));
  EXPECT_EQ(again->answers, Answers{"ABORTED"});
}

// One that has not lost its patience but its connection comes back.
std::shared_ptr<FakeCall> PatientCall() {
  auto call = std::make_shared<FakeCall>();
  call->patience = std::chrono::system_clock::time_point::max();
  return call;
}

TEST(StepReplies, AStepGoesOnForAClientThatComesBackSoon) {
  StepReplies replies(std::chrono::hours(1));
  auto lost = PatientCall();
  auto again = PatientCall();
  bool cancelled = false;
  auto audience = replies.FindOrAdd(7).audience;
  audience->Join(lost);
  audience->OnAbandoned([&] { cancelled = true; });
  lost->go_away();
  replies.FindOrAdd(7).audience->Join(again);
  audience->Reply(Bytes("done"));
  EXPECT_FALSE(cancelled);
  EXPECT_EQ(again->answers, Answers{"done"});
}

TEST(StepReplies, AStepIsCancelledWhenItsClientDoesNotComeBack) {
  StepReplies replies(std::chrono::milliseconds(1));
  auto lost = PatientCall();
  Notification cancelled;
  auto audience = replies.FindOrAdd(7).audience;
  audience->Join(lost);
  audience->OnAbandoned([&] { cancelled.Notify(); });
  lost->go_away();
  EXPECT_TRUE(cancelled.WaitFor(std::chrono::seconds(60)));
}

TEST(StepReplies, LargeAnswersAreNotKept) {
  StepReplies replies;
  auto call = std::make_shared<FakeCall>();
  auto audience = replies.FindOrAdd(7).audience;
  audience->Join(call);
  audience->Reply(Bytes(std::string(1 << 20, 'x')));
  EXPECT_EQ(call->answers[0].size(), size_t{1} << 20);
  auto again = std::make_shared<FakeCall>();
  replies.FindOrAdd(7).audience->Join(again);
  EXPECT_EQ(again->answers, Answers{"ABORTED"});
}

TEST(StepReplies, RequestsWithoutAnIdAreNeverTheSame) {
  StepReplies replies;
  EXPECT_TRUE(replies.FindOrAdd(0).first);
  EXPECT_TRUE(replies.FindOrAdd(0).first);
}

TEST(StepReplies, AStepIsRememberedAsLongAsItRuns) {
  StepReplies replies;
  auto blocked = replies.FindOrAdd(7).audience;
  for (int64_t id = 1000; id < 2000; ++id) {
    replies.FindOrAdd(id).audience->Reply(Bytes("done"));
  }
  EXPECT_FALSE(replies.FindOrAdd(7).first);
  EXPECT_FALSE(replies.FindOrAdd(1999).first);
  EXPECT_TRUE(replies.FindOrAdd(1000).first);
  // Once answered, it goes as others do.
  blocked->Reply(Bytes("done"));
  EXPECT_FALSE(replies.FindOrAdd(7).first);
  for (int64_t id = 2000; id < 3000; ++id) {
    replies.FindOrAdd(id).audience->Reply(Bytes("done"));
  }
  EXPECT_TRUE(replies.FindOrAdd(7).first);
}

}  // namespace
}  // namespace sluice
