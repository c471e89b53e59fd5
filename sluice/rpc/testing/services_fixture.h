// Fixtures of tests that send requests to the services of a task.
#pragma once

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "sluice/kernel/testing/op_test.h"
#include "sluice/proto/master.pb.h"
#include "sluice/proto/worker.pb.h"
#include "sluice/rpc/paths.h"
#include "sluice/rpc/testing/task_under_test.h"

namespace sluice {

template <typename Message>
Message Parsed(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message))
      << text;
  return message;
}

// y = -x.
inline constexpr char kGraph[] = R"(
  node { name: "x" op: "Placeholder"
         attr { key: "dtype" value { type: DT_FLOAT } } }
  node { name: "y" op: "Neg" input: "x"
         attr { key: "T" value { type: DT_FLOAT } } })";

class ServicesTest : public testing::Test {
 protected:
  template <typename Response>
  absl::Status Call(const char* path,
                    const google::protobuf::MessageLite& request,
                    Response* response = nullptr) {
    Response unused;
    return task_.Call(path, request, response ? response : &unused);
  }
  // Opens a session with this graph.
  absl::Status Open(const std::string& graph) {
    pb::CreateSessionResponse response;
    const absl::Status status =
        Call(paths::kCreateSession,
             Parsed<pb::CreateSessionRequest>("graph_def {" + graph + "}"),
             &response);
    handle_ = response.session_handle();
    return status;
  }
  absl::Status Run(const std::string& request) {
    auto proto = Parsed<pb::RunStepRequest>(request);
    proto.set_session_handle(handle_);
    return Call<pb::RunStepResponse>(paths::kRunStep, proto);
  }

  TaskUnderTest task_;
  std::string handle_;
};

class WorkerSessionsTest : public ServicesTest {
 protected:
  absl::Status OpenWorkerSession(const std::string& request) {
    return Call<pb::CreateWorkerSessionResponse>(
        paths::kCreateWorkerSession,
        Parsed<pb::CreateWorkerSessionRequest>(request));
  }
  absl::Status DeleteWorkerSession(const std::string& handle) {
    pb::DeleteWorkerSessionRequest request;
    request.set_session_handle(handle);
    return Call<pb::DeleteWorkerSessionResponse>(paths::kDeleteWorkerSession,
                                                 request);
  }
  // A request to run these nodes, registered in the session.
  pb::RunGraphRequest Register(const std::string& session,
                               const std::string& nodes) {
    auto graph =
        Parsed<pb::RegisterGraphRequest>(StrCat("graph_def {", nodes, "}"));
    graph.set_session_handle(session);
    graph.set_create_worker_session_called(true);
    for (pb::NodeDef& node : *graph.mutable_graph_def()->mutable_node()) {
      node.set_device(TaskUnderTest::kDevice);
    }
    pb::RegisterGraphResponse registered;
    SLUICE_EXPECT_OK(Call(paths::kRegisterGraph, graph, &registered));
    pb::RunGraphRequest run;
    run.set_session_handle(session);
    run.set_create_worker_session_called(true);
    run.set_graph_handle(registered.graph_handle());
    run.set_step_id(next_step_++);
    return run;
  }
  std::shared_ptr<LocalCall> Start(const pb::RunGraphRequest& request) {
    return task_.Start(paths::kRunGraph, request.SerializeAsString());
  }
  absl::Status RunGraph(const pb::RunGraphRequest& request) {
    return Call<pb::RunGraphResponse>(paths::kRunGraph, request);
  }

  int64_t next_step_ = 100;
};

}  // namespace sluice
