// Status and Hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/kernel/testing/op_test.h"
#include "sluice/proto/task_status.pb.h"
#include "sluice/proto/worker.pb.h"
#include "sluice/rpc/paths.h"
#include "sluice/rpc/testing/task_under_test.h"

namespace sluice {
namespace {

TEST(Hold, KeepsTheSessionOfAMasterUntilItIsDeleted) {
  TaskUnderTest task;
  pb::CreateWorkerSessionRequest create;
  create.set_session_handle("abc");
  pb::CreateWorkerSessionResponse created;
  SLUICE_ASSERT_OK(task.Call(paths::kCreateWorkerSession, create, &created));
  pb::HoldRequest hold;
  hold.set_session_handle("abc");
  auto held = task.Start(paths::kHold, hold.SerializeAsString());
  EXPECT_EQ(held->answers(), 0);
  pb::DeleteWorkerSessionRequest remove;
  remove.set_session_handle("abc");
  pb::DeleteWorkerSessionResponse removed;
  SLUICE_ASSERT_OK(task.Call(paths::kDeleteWorkerSession, remove, &removed));
  EXPECT_EQ(held->answers(), 1);
  pb::HoldResponse response;
  EXPECT_THAT(
      task.Call(paths::kHold, hold, &response),
      StatusIs(absl::StatusCode::kAborted, "Session abc is not found."));
}

}  // namespace
}  // namespace sluice
