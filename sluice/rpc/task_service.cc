// Status and Hold: what a task of ours answers beyond TensorFlow's services.
#include "sluice/base/status.h"
#include "sluice/proto/task_status.pb.h"
#include "sluice/rpc/answer.h"
#include "sluice/rpc/byte_buffer.h"
#include "sluice/rpc/paths.h"
#include "sluice/rpc/services.h"

namespace sluice {
namespace {

using CallPtr = std::shared_ptr<ServerCall>;

void Status(const TaskActivity& activity, const CallPtr& call) {
  if (!activity.status) {
    call->Fail(Unimplemented("This task does not tell its status"));
    return;
  }
  pb::TaskStatus status;
  activity.status(&status);
  Answer(*call, status);
}

void Hold(TaskActivity& activity, const CallPtr& call) {
  pb::HoldRequest request;
  if (!FromByteBuffer(&call->request(), &request)) {
    call->Fail(InvalidArgument("The bytes sent to ", call->path(),
                               " are no such request"));
    return;
  }
  const std::string& handle = request.session_handle();
  if (activity.clients.Hold(handle, call) ||
      activity.masters.Hold(handle, call)) {
    return;
  }
  call->Fail(Aborted("Session ", handle, " is not found."));
}

}  // namespace

ServiceHandler MakeTaskService(std::shared_ptr<TaskActivity> activity) {
  return [activity = std::move(activity)](const CallPtr& call) {
    if (call->path() == paths::kStatus) {
      Status(*activity, call);
    } else if (call->path() == paths::kHold) {
      Hold(*activity, call);
    } else {
      return false;
    }
    return true;
  };
}

}  // namespace sluice
