// Sessions that were opened without a task, which comes later.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/master/testing/master_test.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A session that was opened without task b, with a node on each.
class LeftOutTest : public MasterTest {
 protected:
  void SetUp() override {
    (*workers_)["b"].answers_status = false;
    SessionOptions options;
    options.patience = std::chrono::milliseconds(1);
    options.wanted_devices = {"/job:a"};
    Notification opened;
    master_->CreateSession(options, nullptr, [&](SessionOr session) {
      SLUICE_EXPECT_OK(session.status());
      if (session.ok()) session_ = *std::move(session);
      opened.Notify();
    });
    ASSERT_TRUE(opened.WaitFor(std::chrono::seconds(60)));
    ASSERT_NE(session_, nullptr);
    SLUICE_ASSERT_OK(session_->Extend([](Graph& graph) {
      Scope scope(graph);
      scope.Device("/job:a").Named("on_a").AddNode("NoOp", {});
      scope.Device("/job:b").Named("on_b").AddNode("NoOp", {});
      return scope.status();
    }));
  }

  struct Planning {
    MasterSession::PlanOr plan = absl::UnknownError("waits");
    Notification made;
  };
  std::shared_ptr<Planning> Plan(const std::string& target) {
    auto planning = std::make_shared<Planning>();
    session_->PlanAsync({{}, {}, {target}}, [planning](auto plan) {
      planning->plan = std::move(plan);
      planning->made.Notify();
    });
    return planning;
  }

  std::shared_ptr<MasterSession> session_;
};

TEST_F(LeftOutTest, OnlyStepsThatReachTheTaskWaitForIt) {
  FakeWorker& b = (*workers_)["b"];
  EXPECT_TRUE(session_->Plan({{}, {}, {"on_a"}}).ok());
  const auto first = Plan("on_b");
  EXPECT_FALSE(first->made.HasBeenNotified());
  const auto waits = [&] {
    return std::ranges::count(WaitTable::Global().List(),
                              StrCat("session ", session_->handle()),
                              &WaitInfo::where);
  };
  EXPECT_EQ(waits(), 1);
  // Everything is placed again when the graph grows.
  SLUICE_ASSERT_OK(session_->Extend([](Graph& graph) {
    Scope scope(graph);
    scope.Device("/job:a").Named("more").AddNode("NoOp", {});
    scope.Device("/job:b").Named("more_on_b").AddNode("NoOp", {});
    scope.Device("/job:nowhere").Named("lost").AddNode("NoOp", {});
    // Stands with what is on /job:a, though alone it could be on both.
    AttrList classes;
    classes.strings = {"loc:@on_a"};
    scope.Named("beside_a").AddNode("NoOp", {}, {{"_class", classes}});
    return scope.status();
  }));
  EXPECT_TRUE(session_->Plan({{}, {}, {"more"}}).ok());
  EXPECT_TRUE(session_->Plan({{}, {}, {"beside_a"}}).ok());
  EXPECT_THAT(session_->Plan({{}, {}, {"lost"}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("available devices are [ "
                                 "/job:a/replica:0/task:0/device:CPU:0 ]")));
  const auto second = Plan("more_on_b");
  EXPECT_FALSE(first->made.HasBeenNotified());
  EXPECT_EQ(session_->devices().size(), 1);
  b.AnswerStatus(std::vector<DeviceInfo>{b.device()});
  for (const auto& planning : {first, second}) {
    ASSERT_TRUE(planning->made.WaitFor(std::chrono::seconds(60)));
    SLUICE_EXPECT_OK(planning->plan.status());
  }
  EXPECT_EQ(session_->devices().size(), 2);
  EXPECT_EQ(waits(), 0);
  EXPECT_THAT(b.sessions, ElementsAre(session_->handle()));
  SLUICE_EXPECT_OK(*Close(*session_));
  EXPECT_THAT(b.sessions, IsEmpty());
}

TEST_F(LeftOutTest, TheWaitEndsWithTheSession) {
  FakeWorker& b = (*workers_)["b"];
  const auto waiting = Plan("on_b");
  SLUICE_EXPECT_OK(*Close(*session_));
  ASSERT_TRUE(waiting->made.WaitFor(std::chrono::seconds(60)));
  EXPECT_THAT(waiting->plan.status(),
              StatusIs(absl::StatusCode::kCancelled,
                       HasSubstr("explicit call to `Session::Close()`")));
  b.AnswerStatus(std::vector<DeviceInfo>{b.device()});
  EXPECT_THAT(b.sessions, IsEmpty());
}

TEST_F(LeftOutTest, ATaskThatRefusesFailsTheStepAndIsAskedAgain) {
  FakeWorker& b = (*workers_)["b"];
  b.create_status = absl::InternalError("full");
  const auto refused = Plan("on_b");
  b.AnswerStatus(std::vector<DeviceInfo>{b.device()});
  ASSERT_TRUE(refused->made.WaitFor(std::chrono::seconds(60)));
  EXPECT_THAT(refused->plan.status(),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("full")));
  b.create_status = absl::OkStatus();
  b.answers_status = true;
  const auto taken = Plan("on_b");
  ASSERT_TRUE(taken->made.WaitFor(std::chrono::seconds(60)));
  SLUICE_EXPECT_OK(taken->plan.status());
  SLUICE_EXPECT_OK(*Close(*session_));
}

}  // namespace
}  // namespace sluice
