// Any bytes sent to a method of the worker get one answer. A session with a
// registered graph is there; a graph that an input registers is run too.
#include <google/protobuf/text_format.h>

#include "sluice/proto/worker.pb.h"
#include "sluice/rpc/paths.h"
#include "sluice/rpc/testing/service_fuzz.h"

namespace sluice {
namespace {

// Inputs name them by their place.
const FuzzedMethod kMethods[] = {
    {paths::kGetStatus, &pb::GetStatusRequest::default_instance()},
    {paths::kCreateWorkerSession,
     &pb::CreateWorkerSessionRequest::default_instance()},
    {paths::kDeleteWorkerSession,
     &pb::DeleteWorkerSessionRequest::default_instance()},
    {paths::kRegisterGraph, &pb::RegisterGraphRequest::default_instance()},
    {paths::kDeregisterGraph, &pb::DeregisterGraphRequest::default_instance()},
    {paths::kRunGraph, &pb::RunGraphRequest::default_instance()},
    {paths::kCleanupGraph, &pb::CleanupGraphRequest::default_instance()},
    {paths::kCleanupAll, &pb::CleanupAllRequest::default_instance()},
    {paths::kRecvTensor, &pb::RecvTensorRequest::default_instance()},
    {paths::kLogging, &pb::LoggingRequest::default_instance()},
    {paths::kTracing, &pb::TracingRequest::default_instance()},
    {paths::kMarkRecvFinished,
     &pb::MarkRecvFinishedRequest::default_instance()},
};

// A client's tensor comes in, is doubled, and leaves.
constexpr char kGraph[] = R"(
  session_handle: "session__handle_"
  create_worker_session_called: true
  graph_def {
    node { name: "feed" op: "_Recv"
           attr { key: "tensor_type" value { type: DT_FLOAT } }
           attr { key: "tensor_name" value { s: "x:0" } }
           attr { key: "send_device_incarnation" value { i: 1 } }
           attr { key: "client_terminated" value { b: true } } }
    node { name: "sum" op: "AddV2" input: "feed" input: "feed"
          
           attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "out" op: "_Send" input: "sum"
          
           attr { key: "T" value { type: DT_FLOAT } }
           attr { key: "tensor_name" value { s: "sum:0" } }
           attr { key: "send_device_incarnation" value { i: 1 } }
           attr { key: "client_terminated" value { b: true } } }
  }
)";

void RunGraph(TaskUnderTest& task, const std::string& handle) {
  pb::RunGraphRequest request;
  request.set_graph_handle(handle);
  request.set_session_handle(kHandleInInput);
  request.set_create_worker_session_called(true);
  request.set_step_id(1);
  FuzzCall(task, paths::kRunGraph, request.SerializeAsString());
}

// Inputs name the registered graph "1"; `handle` is what it is called this
// time.
template <typename Request>
std::string Naming(const std::string& handle, const std::string& bytes) {
  Request request;
  if (!request.ParseFromString(bytes) || request.graph_handle() != "1") {
    return bytes;
  }
  request.set_graph_handle(handle);
  return request.SerializeAsString();
}

void RunOneInput(const std::string& method, const std::string& bytes) {
  TaskUnderTest task;
  pb::CreateWorkerSessionRequest open;
  open.set_session_handle(kHandleInInput);
  pb::CreateWorkerSessionResponse opened;
  if (!task.Call(paths::kCreateWorkerSession, open, &opened).ok()) std::abort();
  pb::RegisterGraphRequest graph;
  if (!google::protobuf::TextFormat::ParseFromString(kGraph, &graph)) {
    std::abort();
  }
  for (pb::NodeDef& node : *graph.mutable_graph_def()->mutable_node()) {
    node.set_device(TaskUnderTest::kDevice);
    if (node.op() == "AddV2") continue;
    (*node.mutable_attr())["send_device"].set_s(TaskUnderTest::kDevice);
    (*node.mutable_attr())["recv_device"].set_s(TaskUnderTest::kDevice);
  }
  pb::RegisterGraphResponse registered;
  const absl::Status status =
      task.Call(paths::kRegisterGraph, graph, &registered);
  if (!status.ok()) std::abort();
  const std::string handle = registered.graph_handle();

  pb::RegisterGraphRequest more;
  if (method == paths::kRegisterGraph && more.ParseFromString(bytes) &&
      task.Call(paths::kRegisterGraph, more, &registered).ok()) {
    RunGraph(task, registered.graph_handle());
  }
  if (method == paths::kRunGraph) {
    FuzzCall(task, method, Naming<pb::RunGraphRequest>(handle, bytes));
  } else if (method == paths::kDeregisterGraph) {
    FuzzCall(task, method, Naming<pb::DeregisterGraphRequest>(handle, bytes));
  } else {
    FuzzCall(task, method, bytes);
  }
}

}  // namespace
}  // namespace sluice

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,
                                          size_t max_size, unsigned seed) {
  return sluice::MutateInput(sluice::kMethods, data, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sluice::SilenceLogs();
  if (size == 0) return 0;
  const auto& method = sluice::kMethods[data[0] % std::size(sluice::kMethods)];
  sluice::RunOneInput(
      method.path,
      std::string(reinterpret_cast<const char*>(data + 1), size - 1));
  return 0;
}
