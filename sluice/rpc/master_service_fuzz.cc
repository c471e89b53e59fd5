// Any bytes sent to a method of the master get one answer. The session that is
// open has a graph with what steps are made of; what an input adds to it is run
// too.
#include <google/protobuf/text_format.h>

#include "sluice/proto/master.pb.h"
#include "sluice/rpc/paths.h"
#include "sluice/rpc/testing/service_fuzz.h"

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
};

// A feed, a variable, a queue to wait at, and a sum.
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
)";

// Runs every node of a graph that was accepted, a few at most.
void RunNodes(TaskUnderTest& task, const std::string& handle,
              const pb::GraphDef& graph) {
  constexpr int kMost = 6;
  for (int i = 0; i < std::min(graph.node_size(), kMost); ++i) {
    pb::RunStepRequest request;
    request.set_session_handle(handle);
    request.add_target(graph.node(i).name());
    FuzzCall(task, paths::kRunStep, request.SerializeAsString());
  }
}

void RunOneInput(const std::string& method, const std::string& input) {
  TaskUnderTest task;
  pb::CreateSessionRequest open;
  if (!google::protobuf::TextFormat::ParseFromString(
          kSessionGraph, open.mutable_graph_def())) {
    std::abort();
  }
  pb::CreateSessionResponse opened;
  if (!task.Call(paths::kCreateSession, open, &opened).ok()) std::abort();
  const std::string& handle = opened.session_handle();
  const std::string bytes = WithHandle(input, handle);

  if (method == paths::kCreateSession) {
    pb::CreateSessionRequest request;
    pb::CreateSessionResponse response;
    if (request.ParseFromString(bytes) &&
        task.Call(paths::kCreateSession, request, &response).ok()) {
      RunNodes(task, response.session_handle(), request.graph_def());
    }
  }
  FuzzCall(task, method, bytes);
  pb::ExtendSessionRequest extend;
  if (method == paths::kExtendSession && extend.ParseFromString(bytes)) {
    RunNodes(task, handle, extend.graph_def());
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
