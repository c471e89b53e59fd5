// MasterTest: a master whose tasks are played by the test.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "sluice/graph/scope.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/master/master.h"
#include "sluice/master/testing/fake_worker.h"

namespace sluice {

using SessionOr = absl::StatusOr<std::shared_ptr<MasterSession>>;

// A master over the tasks /job:a and /job:b, both played by the test.
class MasterTest : public testing::Test {
 protected:
  MasterTest() {
    MasterEnv env;
    env.workers = workers_;
    env.own_task = "/job:a/replica:0/task:0";
    env.own_address = "here:1";
    master_ = std::make_unique<Master>(env, SessionOptions());
  }

  SessionOr Create() {
    SessionOr result = absl::UnknownError("waits");
    master_->CreateSession({}, nullptr,
                           [&](const SessionOr& session) { result = session; });
    return result;
  }
  // A session with one node on each task, and the plan of both.
  std::shared_ptr<MasterSession> SessionWithPlan() {
    std::shared_ptr<MasterSession> session = *Create();
    SLUICE_EXPECT_OK(session->Extend([](Graph& graph) {
      Scope scope(graph);
      scope.Device("/job:a").Named("on_a").AddNode("NoOp", {});
      scope.Device("/job:b").Named("on_b").AddNode("NoOp", {});
      return scope.status();
    }));
    auto plan = session->Plan({{}, {}, {"on_a", "on_b"}});
    EXPECT_TRUE(plan.ok()) << plan.status();
    plan_ = *plan;
    return session;
  }
  std::shared_ptr<absl::Status> Run(MasterSession& session) {
    auto status = std::make_shared<absl::Status>(absl::UnknownError("runs"));
    session.Run(plan_, {}, [status](absl::Status s) { *status = s; });
    return status;
  }
  std::shared_ptr<absl::Status> Close(MasterSession& session) {
    auto status = std::make_shared<absl::Status>(absl::UnknownError("closes"));
    session.Close(ClosedByClient(), [status](absl::Status s) { *status = s; });
    return status;
  }
  void AnswerSteps(const absl::Status& a, const absl::Status& b) {
    (*workers_)["a"].AnswerSteps(a);
    (*workers_)["b"].AnswerSteps(b);
  }

  std::shared_ptr<FakeWorkers> workers_ =
      std::make_shared<FakeWorkers>(std::vector<std::string>{"a", "b"});
  std::unique_ptr<Master> master_;
  std::shared_ptr<const StepPlan> plan_;
};

}  // namespace sluice
