// Any bytes sent to a method of the master get one answer. The session that is
// open has a graph with what steps are made of; what an input adds to it, or
// prepares, is run too.
#include <google/protobuf/text_format.h>

#include "sluice/proto/master.pb.h"
#include "sluice/proto/task_status.pb.h"
#include "sluice/rpc/paths.h"
#include "sluice/rpc/testing/service_fuzzer.h"

namespace sluice {
namespace {

// Inputs name them by their place.
const FuzzedMethod kMethods[] = {
    {paths::kCreateSession, &pb::CreateSessionRequest::default_instance()},
    {paths::kExtendSession, &pb::ExtendSessionRequest::default_instance()},
    {paths::kRunStep, &pb::RunStepRequest::default_instance()},
    {paths::kCloseSession, &pb::CloseSessionRequest::default_instance()},
    {paths::kListDevices, &pb::ListDevicesRequest::default_instance()},
    {paths::kReset, &pb::ResetRequest::default_instance()},
    {paths::kPartialRunSetup, &pb::PartialRunSetupRequest::default_instance()},
    {paths::kMakeCallable, &pb::MakeCallableRequest::default_instance()},
    {paths::kRunCallable, &pb::RunCallableRequest::default_instance()},
    {paths::kReleaseCallable, &pb::ReleaseCallableRequest::default_instance()},
    // Of the task's own service.
    {paths::kHold, &pb::HoldRequest::default_instance()},
};

// A feed, a variable, a queue to wait at when it is empty, and a sum.
constexpr char kSessionGraph[] = R"(
  node { name: "x" op: "Placeholder"
         attr { key: "dtype" value { type: DT_FLOAT } } }
  node { name: "sum" op: "AddV2" input: "x" input: "x"
         attr { key: "T" value { type: DT_FLOAT } } }
  node { name: "v" op: "VariableV2"
         attr { key: "dtype" value { type: DT_FLOAT } }
         attr { key: "shape" value { shape {} } } }
  node { name: "set" op: "Assign" input: "v" input: "sum"
         attr { key: "T" value { type: DT_FLOAT } } }
  node { name: "q" op: "FIFOQueueV2"
         attr { key: "component_types" value { list { type: DT_FLOAT } } } }
  node { name: "get" op: "QueueDequeueV2" input: "q"
         attr { key: "component_types" value { list { type: DT_FLOAT } } } }
  node { name: "put" op: "QueueEnqueueV2" input: "q" input: "sum"
         attr { key: "Tcomponents" value { list { type: DT_FLOAT } } } }
  node { name: "some" op: "Const"
         attr { key: "dtype" value { type: DT_FLOAT } }
         attr { key: "value" value { tensor {
           dtype: DT_FLOAT tensor_shape { dim { size: 8 } } } } } }
  node { name: "fill" op: "QueueEnqueueManyV2" input: "q" input: "some"
         attr { key: "Tcomponents" value { list { type: DT_FLOAT } } } }
)";

constexpr char kScalar[] = "dtype: DT_FLOAT float_val: 3 tensor_shape {}";

template <typename Message>
Message FromText(const std::string& text) {
  Message message;
  if (!google::protobuf::TextFormat::ParseFromString(text, &message)) {
    std::abort();
  }
  return message;
}

// A task with an open session, and its client. The session is replaced when an
// input has changed it.
class FuzzedMaster {
 public:
  FuzzedMaster() { Open(); }
  // Aborts if a step that was cancelled has not ended.
  ~FuzzedMaster() {
    Close(handle_);
    AwaitEndOfSteps(task_);
  }

  void Run(const std::string& path, const std::string& input, int64_t) {
    const std::string bytes = ReplaceAll(input, kHandleInInput, handle_);
    if (path == paths::kCreateSession) {
      Create(bytes);
    } else if (path == paths::kExtendSession) {
      Extend(bytes);
    } else if (path == paths::kRunStep) {
      RunStep(bytes);
    } else if (path == paths::kPartialRunSetup) {
      SetUpPartialRun(bytes);
    } else if (path == paths::kMakeCallable) {
      MakeCallable(bytes);
    } else if (path == paths::kRunCallable) {
      AddCallables();
      Call(path, bytes);
    } else if (path == paths::kReleaseCallable) {
      AddCallables();
      if (Call(path, bytes)) spent_ = true;
    } else {
      Call(path, bytes);
    }
    if (!spent_ && task_.master().FindSession(handle_).ok()) return;
    Close(handle_);
    Open();
  }

 private:
  FuzzedAnswer Ask(const std::string& path, const std::string& bytes,
                   google::protobuf::MessageLite* response = nullptr) {
    FuzzedAnswer answer = FuzzCall(task_, path, bytes, response);
    if (!answer.in_time) is_queue_full_ = false;
    return answer;
  }
  // Whether the request was accepted.
  bool Call(const std::string& path, const std::string& bytes,
            google::protobuf::MessageLite* response = nullptr) {
    return Ask(path, bytes, response).status.ok();
  }

  void Open() {
    static const auto request = FromText<pb::CreateSessionRequest>(
        StrCat("config { isolate_session_state: true } graph_def { ",
               kSessionGraph, " }"));
    pb::CreateSessionResponse response;
    if (!task_.Call(paths::kCreateSession, request, &response).ok()) {
      std::abort();
    }
    handle_ = response.session_handle();
    spent_ = false;
    has_callables_ = false;
    is_queue_full_ = false;
  }

  void Close(const std::string& handle) {
    pb::CloseSessionRequest request;
    request.set_session_handle(handle);
    pb::CloseSessionResponse response;
    // It may be closed already.
    if (absl::IsDeadlineExceeded(
            task_.Call(paths::kCloseSession, request, &response))) {
      std::abort();
    }
  }

  // Runs every node of a graph that was accepted, a few at most, until one
  // waits or goes on for ever, as the others would, too.
  void RunNodes(const std::string& handle, const pb::GraphDef& graph) {
    constexpr int kMost = 6;
    for (int i = 0; i < std::min(graph.node_size(), kMost); ++i) {
      pb::RunStepRequest request;
      request.set_session_handle(handle);
      request.add_target(graph.node(i).name());
      if (!Ask(paths::kRunStep, request.SerializeAsString()).in_time) break;
    }
  }

  void Create(const std::string& bytes) {
    pb::CreateSessionRequest request;
    pb::CreateSessionResponse response;
    if (!Call(paths::kCreateSession, bytes, &response)) return;
    if (request.ParseFromString(bytes)) {
      RunNodes(response.session_handle(), request.graph_def());
    }
    Close(response.session_handle());
  }

  void Extend(const std::string& bytes) {
    pb::ExtendSessionRequest request;
    if (!Call(paths::kExtendSession, bytes)) return;
    if (request.ParseFromString(bytes)) RunNodes(handle_, request.graph_def());
    spent_ = true;
  }

  // So that few steps wait.
  void FillQueue() {
    if (is_queue_full_) return;
    pb::RunStepRequest request;
    request.set_session_handle(handle_);
    request.add_target("fill");
    Call(paths::kRunStep, request.SerializeAsString());
    is_queue_full_ = true;
  }

  // Inputs call the partial run of the moment "0".
  void RunStep(const std::string& bytes) {
    FillQueue();
    pb::RunStepRequest request;
    if (!request.ParseFromString(bytes) ||
        request.partial_run_handle() != "0") {
      Call(paths::kRunStep, bytes);
      return;
    }
    static const auto set_up = FromText<pb::PartialRunSetupRequest>(
        "feed: 'x:0' fetch: 'sum:0' fetch: 'v:0' target: 'set'");
    pb::PartialRunSetupRequest partial = set_up;
    partial.set_session_handle(handle_);
    pb::PartialRunSetupResponse response;
    Call(paths::kPartialRunSetup, partial.SerializeAsString(), &response);
    request.set_partial_run_handle(response.partial_run_handle());
    Call(paths::kRunStep, request.SerializeAsString());
  }

  void SetUpPartialRun(const std::string& bytes) {
    pb::PartialRunSetupRequest request;
    pb::PartialRunSetupResponse response;
    if (!Call(paths::kPartialRunSetup, bytes, &response)) return;
    if (!request.ParseFromString(bytes)) return;
    pb::RunStepRequest run;
    run.set_session_handle(handle_);
    run.set_partial_run_handle(response.partial_run_handle());
    for (const std::string& name : request.feed()) {
      pb::NamedTensorProto* feed = run.add_feed();
      feed->set_name(name);
      *feed->mutable_tensor() = FromText<pb::TensorProto>(kScalar);
    }
    *run.mutable_fetch() = request.fetch();
    Call(paths::kRunStep, run.SerializeAsString());
  }

  void MakeCallable(const std::string& bytes) {
    pb::MakeCallableRequest request;
    pb::MakeCallableResponse response;
    if (!Call(paths::kMakeCallable, bytes, &response)) return;
    if (!request.ParseFromString(bytes)) return;
    pb::RunCallableRequest run;
    run.set_session_handle(handle_);
    run.set_handle(response.handle());
    for (int i = 0; i < request.options().feed_size(); ++i) {
      *run.add_feed() = FromText<pb::TensorProto>(kScalar);
    }
    Call(paths::kRunCallable, run.SerializeAsString());
    pb::ReleaseCallableRequest release;
    release.set_session_handle(handle_);
    release.set_handle(response.handle());
    Call(paths::kReleaseCallable, release.SerializeAsString());
  }

  // Inputs know them by their numbers, 0 and up.
  void AddCallables() {
    if (has_callables_) return;
    FillQueue();
    for (const char* options :
         {"feed: 'x:0' fetch: 'sum:0'",
          "feed: 'x:0' fetch: 'sum:0' target: 'set'", "fetch: 'get:0'"}) {
      pb::MakeCallableRequest request;
      request.set_session_handle(handle_);
      *request.mutable_options() = FromText<pb::CallableOptions>(options);
      Call(paths::kMakeCallable, request.SerializeAsString());
    }
    has_callables_ = true;
  }

  TaskUnderTest task_{LimitsForFuzzing(), /*with_peer=*/true};
  std::string handle_;
  bool spent_ = false;  // The session is not what it was.
  bool has_callables_ = false;
  bool is_queue_full_ = false;  // Or was.
};

}  // namespace
}  // namespace sluice

SLUICE_FUZZ_SERVICE(FuzzedMaster)
