// Any bytes sent to a method of the worker get one answer. A session with
// registered graphs is there; a graph that an input registers is run too.
#include <google/protobuf/text_format.h>

#include "absl/strings/str_format.h"
#include "sluice/proto/collective.pb.h"
#include "sluice/proto/task_status.pb.h"
#include "sluice/proto/worker.pb.h"
#include "sluice/rpc/paths.h"
#include "sluice/rpc/testing/service_fuzzer.h"

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
    {paths::kGetStepSequence, &pb::GetStepSequenceRequest::default_instance()},
    // Of the task's own service.
    {paths::kHold, &pb::HoldRequest::default_instance()},
};

// Stands for the incarnation of the device in the keys of an input.
constexpr char kIncarnationInInput[] = "0000000000000001";

// Inputs name them "1" to "3".
constexpr const char* kGraphs[] = {
    // A client's tensor comes in, is doubled, and leaves.
    R"(node { name: "feed" op: "_Recv"
              attr { key: "tensor_type" value { type: DT_FLOAT } }
              attr { key: "tensor_name" value { s: "x:0" } }
              attr { key: "client_terminated" value { b: true } } }
       node { name: "sum" op: "AddV2" input: "feed" input: "feed"
              attr { key: "T" value { type: DT_FLOAT } } }
       node { name: "out" op: "_Send" input: "sum"
              attr { key: "T" value { type: DT_FLOAT } }
              attr { key: "tensor_name" value { s: "sum:0" } }
              attr { key: "client_terminated" value { b: true } } })",
    // Tensors for other tasks.
    R"(node { name: "c" op: "Const"
              attr { key: "dtype" value { type: DT_FLOAT } }
              attr { key: "value" value { tensor {
                dtype: DT_FLOAT float_val: 3
                tensor_shape { dim { size: 8 } } } } } }
       node { name: "a" op: "_Send" input: "c"
              attr { key: "T" value { type: DT_FLOAT } }
              attr { key: "tensor_name" value { s: "edge_1_a" } } }
       node { name: "b" op: "_Send" input: "c"
              attr { key: "T" value { type: DT_FLOAT } }
              attr { key: "tensor_name" value { s: "edge_2_b" } } })",
    // A tensor that nobody sends.
    R"(node { name: "c" op: "_Recv"
              attr { key: "tensor_type" value { type: DT_FLOAT } }
              attr { key: "tensor_name" value { s: "edge_3_c" } } })"};

// A task with a session and its graphs, and the master that has opened it. They
// are replaced when an input has taken them away.
class FuzzedWorker {
 public:
  FuzzedWorker()
      : incarnation_(task_.worker().devices()[0].incarnation),
        incarnation_text_(absl::StrFormat("%016x", incarnation_)) {
    Open();
  }
  // Aborts if a step that was cancelled has not ended.
  ~FuzzedWorker() {
    Delete(kHandleInInput);
    AwaitEndOfSteps(task_);
  }

  void Run(const std::string& path, const std::string& input, int64_t number) {
    const std::string bytes =
        ReplaceAll(input, kIncarnationInInput, incarnation_text_);
    if (path == paths::kCreateWorkerSession) {
      CreateSession(bytes);
    } else if (path == paths::kRegisterGraph) {
      Register(bytes, OwnId(1, number));
    } else if (path == paths::kDeregisterGraph) {
      if (Call(path, Naming<pb::DeregisterGraphRequest>(bytes))) spent_ = true;
    } else if (path == paths::kRunGraph) {
      RunGraph(Naming<pb::RunGraphRequest>(bytes));
    } else if (path == paths::kCleanupGraph) {
      CleanUpGraph(bytes);
    } else if (path == paths::kRecvTensor) {
      RecvTensor(bytes);
    } else {
      Call(path, bytes);
    }
    const bool open = task_.worker().HasSession(kHandleInInput);
    if (open && !spent_) return;
    if (open) Delete(kHandleInInput);
    Open();
  }

 private:
  // Whether the request was accepted.
  bool Call(const std::string& path, const std::string& bytes,
            google::protobuf::MessageLite* response = nullptr) {
    return FuzzCall(task_, path, bytes, response).status.ok();
  }

  void Open() {
    pb::CreateWorkerSessionRequest open;
    open.set_session_handle(kHandleInInput);
    pb::CreateWorkerSessionResponse opened;
    if (!task_.Call(paths::kCreateWorkerSession, open, &opened).ok()) {
      std::abort();
    }
    graphs_.clear();
    for (const char* text : kGraphs) graphs_.push_back(Register(text));
    spent_ = false;
  }

  std::string Register(const char* text) {
    pb::RegisterGraphRequest request;
    request.set_session_handle(kHandleInInput);
    request.set_create_worker_session_called(true);
    if (!google::protobuf::TextFormat::ParseFromString(
            text, request.mutable_graph_def())) {
      std::abort();
    }
    for (pb::NodeDef& node : *request.mutable_graph_def()->mutable_node()) {
      node.set_device(TaskUnderTest::kDevice);
      if (!node.op().starts_with("_")) continue;
      auto& attrs = *node.mutable_attr();
      attrs["send_device"].set_s(TaskUnderTest::kDevice);
      attrs["recv_device"].set_s(TaskUnderTest::kDevice);
      attrs["send_device_incarnation"].set_i(
          static_cast<int64_t>(incarnation_));
    }
    pb::RegisterGraphResponse response;
    if (!task_.Call(paths::kRegisterGraph, request, &response).ok()) {
      std::abort();
    }
    return response.graph_handle();
  }

  void Delete(const std::string& handle) {
    pb::DeleteWorkerSessionRequest request;
    request.set_session_handle(handle);
    Call(paths::kDeleteWorkerSession, request.SerializeAsString());
  }

  // With the name that a graph has this time.
  template <typename Request>
  std::string Naming(const std::string& bytes) {
    Request request;
    if (!request.ParseFromString(bytes)) return bytes;
    for (size_t i = 0; i < graphs_.size(); ++i) {
      if (request.graph_handle() != std::to_string(i + 1)) continue;
      request.set_graph_handle(graphs_[i]);
      return request.SerializeAsString();
    }
    return bytes;
  }

  void CleanUp(int64_t step_id) {
    pb::CleanupGraphRequest request;
    request.set_step_id(step_id);
    Call(paths::kCleanupGraph, request.SerializeAsString());
  }

  void CreateSession(const std::string& bytes) {
    pb::CreateWorkerSessionRequest request;
    if (Call(paths::kCreateWorkerSession, bytes) &&
        request.ParseFromString(bytes)) {
      Delete(request.session_handle());
    }
  }

  void Register(const std::string& bytes, int64_t step_id) {
    pb::RegisterGraphResponse response;
    if (!Call(paths::kRegisterGraph, bytes, &response)) return;
    RunStep(response.graph_handle(), step_id);
    CleanUp(step_id);
    pb::DeregisterGraphRequest request;
    request.set_graph_handle(response.graph_handle());
    Call(paths::kDeregisterGraph, request.SerializeAsString());
  }

  void RunStep(const std::string& graph, int64_t step_id) {
    pb::RunGraphRequest request;
    request.set_graph_handle(graph);
    request.set_session_handle(kHandleInInput);
    request.set_create_worker_session_called(true);
    request.set_step_id(step_id);
    Call(paths::kRunGraph, request.SerializeAsString());
  }

  void RunGraph(const std::string& bytes) {
    pb::RunGraphRequest request;
    Call(paths::kRunGraph, bytes);
    if (request.ParseFromString(bytes)) CleanUp(request.step_id());
  }

  // Somebody waits for a tensor of the step.
  void CleanUpGraph(const std::string& bytes) {
    pb::CleanupGraphRequest request;
    pb::RecvTensorRequest recv;
    if (request.ParseFromString(bytes)) recv.set_step_id(request.step_id());
    recv.set_rendezvous_key(StrCat(TaskUnderTest::kDevice, ";",
                                   incarnation_text_, ";",
                                   TaskUnderTest::kDevice, ";edge_3_c;0:0"));
    const auto waiting =
        task_.Start(paths::kRecvTensor, recv.SerializeAsString());
    Call(paths::kCleanupGraph, bytes);
    waiting->Cancel();
    if (!TaskUnderTest::WaitLong(*waiting) || waiting->answers() != 1) {
      std::abort();
    }
  }

  // The step has sent its tensors; what else is asked for does not come.
  void RecvTensor(const std::string& bytes) {
    pb::RecvTensorRequest request;
    const bool parsed = request.ParseFromString(bytes);
    if (parsed) RunStep(graphs_[1], request.step_id());
    const bool ok = Call(paths::kRecvTensor, bytes);
    if (!parsed) return;
    // The rest of a tensor that comes in chunks.
    if (ok && request.sluice_chunk_bytes() > 0) {
      request.set_sluice_transfer(request.request_id());
      request.set_sluice_offset(request.sluice_chunk_bytes());
      Call(paths::kRecvTensor, request.SerializeAsString());
    }
    CleanUp(request.step_id());
  }

  TaskUnderTest task_{LimitsForFuzzing(), /*with_peer=*/true};
  const uint64_t incarnation_;
  const std::string incarnation_text_;
  std::vector<std::string> graphs_;  // Their handles.
  bool spent_ = false;               // They are not all there any more.
};

}  // namespace
}  // namespace sluice

SLUICE_FUZZ_SERVICE(FuzzedWorker)
