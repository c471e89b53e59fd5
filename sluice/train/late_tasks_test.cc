#include "sluice/train/late_tasks.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "sluice/base/status.h"

namespace sluice {
namespace {

// Answers of the tasks of a cluster.
class FakeCluster {
 public:
  pb::TaskStatus& Add(const std::string& task, const std::string& address) {
    pb::TaskStatus& status = answers_[address];
    status.set_task(task);
    return status;
  }
  std::string LateTasksFrom(const std::string& address) {
    for (const auto& [other, status] : answers_) {
      auto& peer = *answers_[address].add_peers();
      peer.set_task(status.task());
      peer.set_address(other);
    }
    return LateTasks(
        address,
        [this](const std::string& at) -> absl::StatusOr<pb::TaskStatus> {
          if (dead.contains(at)) return Unavailable("refused");
          return answers_.at(at);
        });
  }
  std::set<std::string> dead;

 private:
  std::map<std::string, pb::TaskStatus> answers_;
};

void RunStep(pb::TaskStatus& task, int64_t id, double age) {
  auto& session = task.sessions().empty() ? *task.add_sessions()
                                          : *task.mutable_sessions(0);
  auto& step = *session.add_steps();
  step.set_id(id);
  step.set_age_seconds(age);
}

void Wait(pb::TaskStatus& task, int64_t step, const std::string& what) {
  auto& wait = *task.add_waits();
  wait.set_step_id(step);
  wait.set_what(what);
}

TEST(LateTasks, NamesThoseThatAreDeadSlowOrIdle) {
  FakeCluster cluster;
  pb::TaskStatus& ps = cluster.Add("/job:ps/replica:0/task:0", "p:0");
  pb::TaskStatus& chief = cluster.Add("/job:worker/replica:0/task:0", "w:0");
  pb::TaskStatus& slow = cluster.Add("/job:worker/replica:0/task:1", "w:1");
  pb::TaskStatus& idle = cluster.Add("/job:worker/replica:0/task:2", "w:2");
  cluster.Add("/job:worker/replica:0/task:3", "w:3");
  cluster.dead = {"w:3"};
  RunStep(chief, 1, 30);
  Wait(ps, 1, "2 gradients in accumulator 'w:0/grad_accum', which has 1");
  RunStep(chief, 2, 30);
  Wait(ps, 2, "dequeue from FIFOQueue 'sync_token_q'");
  RunStep(slow, 3, 12);
  idle.add_sessions()->set_idle_seconds(9);
  EXPECT_EQ(cluster.LateTasksFrom("w:0"),
            " /job:worker/replica:0/task:3 at w:3 does not answer: refused."
            " /job:worker/replica:0/task:1 has been in a step for 12 s."
            " /job:worker/replica:0/task:2 has run no step for 9.0 s.");
}

TEST(LateTasks, SaysNothingWhenAllWaitForTokens) {
  FakeCluster cluster;
  pb::TaskStatus& ps = cluster.Add("/job:ps/replica:0/task:0", "p:0");
  pb::TaskStatus& chief = cluster.Add("/job:worker/replica:0/task:0", "w:0");
  RunStep(chief, 2, 30);
  Wait(ps, 2, "dequeue from FIFOQueue 'sync_token_q'");
  EXPECT_EQ(cluster.LateTasksFrom("w:0"), "");
  EXPECT_EQ(LateTasks(""), "");
}

}  // namespace
}  // namespace sluice
