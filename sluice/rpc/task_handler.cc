// All services of a task behind one handler.
#include <new>
#include <string_view>

#include "sluice/base/status.h"
#include "sluice/rpc/answer.h"
#include "sluice/rpc/services.h"

namespace sluice {
namespace {

std::string_view WhyNotServed(std::string_view path) {
  const std::string_view method = path.substr(path.rfind('/') + 1);
  if (method == "RecvBuf" || method == "CompleteGroup" ||
      method == "CompleteInstance") {
    return "it has no collective operations";
  }
  if (path.find("EagerService") != path.npos) {
    return "it runs graphs, not single operations";
  }
  return "there is no such method";
}

}  // namespace

CallHandler MakeTaskHandler(std::shared_ptr<Worker> worker,
                            std::shared_ptr<Master> master,
                            const pb::ClusterDef& cluster,
                            std::shared_ptr<TaskActivity> activity,
                            const Limits& limits) {
  ServiceHandler on_worker =
      MakeWorkerService(std::move(worker), cluster, activity, limits);
  ServiceHandler on_master =
      MakeMasterService(std::move(master), activity, limits);
  ServiceHandler on_task = MakeTaskService(std::move(activity));
  return [on_worker, on_master, on_task](std::shared_ptr<ServerCall> call) {
    try {
      if (on_worker(call) || on_master(call) || on_task(call)) return;
    } catch (const std::bad_alloc&) {
      FailForMemory(*call);
      return;
    }
    call->Fail(Unimplemented("Sluice does not serve ", call->path(), ": ",
                             WhyNotServed(call->path())));
  };
}

}  // namespace sluice
