// What the fuzz targets of both services share. An input is one byte that picks
// the method, and the bytes of its request. Every call must be answered exactly
// once, whatever the bytes are.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/logging.h"
#include "sluice/graph/op_registry.h"
#include "sluice/rpc/paths.h"
#include "sluice/rpc/testing/message_mutator.h"
#include "sluice/rpc/testing/task_under_test.h"

namespace sluice {

// Stands for the handle of the open session in an input; as long as one.
inline constexpr char kHandleInInput[] = "session__handle_";

inline std::string ReplaceAll(std::string bytes, const std::string& mark,
                              const std::string& value) {
  for (size_t at = 0; (at = bytes.find(mark, at)) != std::string::npos;) {
    bytes.replace(at, mark.size(), value);
    at += value.size();
  }
  return bytes;
}

// Values that repeat may fill the memory of a task, but not that of a machine
// on which several targets run.
inline Limits LimitsForFuzzing() {
  Limits limits;
  limits.message_bytes = 64 << 20;
  return limits;
}

// A method and an empty request of its kind.
struct FuzzedMethod {
  const char* path;
  const google::protobuf::Message* request;

  std::string name() const {
    const std::string text = path;
    return text.substr(text.rfind('/') + 1);
  }
};

struct FuzzedAnswer {
  absl::Status status;
  bool in_time = true;  // If not, its client went away before.
};

// Whether another thread of this process runs or wants to.
inline bool OthersRun() {
  const std::string own = std::to_string(gettid());
  for (const auto& thread :
       std::filesystem::directory_iterator("/proc/self/task")) {
    if (thread.path().filename() == own) continue;
    std::string line;
    std::getline(std::ifstream(thread.path() / "stat"), line);
    const size_t name_end = line.rfind(") ");
    if (name_end != line.npos && line[name_end + 2] == 'R') return true;
  }
  return false;
}

// How often each path was answered without an error, or not at all as a Hold is
// when there is something to hold.
inline std::map<std::string, int64_t>& AcceptedCalls() {
  static auto* accepted = new std::map<std::string, int64_t>;
  return *accepted;
}

// Sends the bytes; when nothing but waiting is done about them, or that takes
// long, takes their client away. Aborts if the call is not answered once by
// then. `response` may be null.
inline FuzzedAnswer FuzzCall(
    TaskUnderTest& task, const std::string& path, const std::string& bytes,
    google::protobuf::MessageLite* response = nullptr) {
  constexpr int kLooks = 10;
  constexpr auto kPause = std::chrono::microseconds(300);
  FuzzedAnswer answer;
  const auto call = task.Start(path, bytes);
  bool answered = call->WaitFor(kPause);
  for (int i = 0; !answered && i < kLooks && OthersRun(); ++i) {
    answered = call->WaitFor(kPause);
  }
  if (!answered) {
    answer.in_time = false;
    call->Cancel();
  }
  if (!TaskUnderTest::WaitLong(*call) || call->answers() != 1) {
    std::fprintf(stderr, "%s was answered %d times\n", path.c_str(),
                 call->answers());
    std::abort();
  }
  answer.status = response != nullptr ? call->Take(response) : call->status();
  const bool held = path == paths::kHold && !answer.in_time;
  if (answer.status.ok() || held) ++AcceptedCalls()[path];
  return answer;
}

// Aborts if something still holds a graph when every session is closed and
// every graph is deregistered.
inline void AwaitEndOfSteps(TaskUnderTest& task) {
  for (int i = 0; task.worker().num_graphs() > 0; ++i) {
    if (i == 60'000) {
      std::fprintf(stderr, "%d graphs still run\n", task.worker().num_graphs());
      std::abort();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// The ids 1 to 9 are an input's own: the task must not have seen them before.
inline int64_t OwnId(int64_t id, int64_t input) {
  return id > 0 && id < 10 ? id + 10 * input : id;
}

// The request with its own ids; bytes that are no request stay as they are.
inline std::string WithOwnIds(const FuzzedMethod& method,
                              const std::string& bytes, int64_t input) {
  std::unique_ptr<google::protobuf::Message> request(method.request->New());
  if (!request->ParseFromString(bytes)) return bytes;
  const google::protobuf::Reflection* reflection = request->GetReflection();
  bool changed = false;
  for (const char* name : {"request_id", "step_id", "sluice_transfer"}) {
    const auto* field = request->GetDescriptor()->FindFieldByName(name);
    if (field == nullptr) continue;
    const int64_t id = reflection->GetInt64(*request, field);
    if (OwnId(id, input) == id) continue;
    reflection->SetInt64(request.get(), field, OwnId(id, input));
    changed = true;
  }
  return changed ? request->SerializeAsString() : bytes;
}

// Names of ops, of nodes in the graphs of the targets, and of other things that
// requests are made of.
inline const std::vector<std::string>& WordsForFuzzing() {
  static const auto* words = [] {
    auto* all = new std::vector<std::string>(OpRegistry::Global().Names());
    // Half of the words, whatever the number of ops.
    const size_t ops = all->size();
    const std::string others[] = {"",
                                  "x",
                                  "x:0",
                                  "sum",
                                  "sum:0",
                                  "v",
                                  "v:0",
                                  "set",
                                  "q",
                                  "get",
                                  "^get",
                                  "put",
                                  "a",
                                  "b",
                                  "c",
                                  "merge",
                                  "merge:1",
                                  "next",
                                  "^a",
                                  "0",
                                  "1",
                                  "2",
                                  "3",
                                  "T",
                                  "dtype",
                                  "shape",
                                  "value",
                                  "N",
                                  "_class",
                                  "loc:@v",
                                  "frame_name",
                                  "container",
                                  "shared_name",
                                  "client_terminated",
                                  kHandleInInput,
                                  TaskUnderTest::kDevice,
                                  "/job:a",
                                  "/job:b",
                                  "/job:b/replica:0/task:0/device:CPU:0",
                                  TaskUnderTest::kAddress,
                                  TaskUnderTest::kAskerAddress,
                                  "/cpu:0",
                                  "/gpu:0"};
    for (size_t i = 0; i < ops; ++i) {
      all->push_back(others[i % std::size(others)]);
    }
    return all;
  }();
  return *words;
}

// Takes over who the request is for: if nobody is, the rest of it is not looked
// at.
inline void KeepHandles(const google::protobuf::Message& from,
                        google::protobuf::Message* to) {
  const google::protobuf::Reflection* reflection = to->GetReflection();
  for (const char* name : {"session_handle", "graph_handle"}) {
    const auto* field = to->GetDescriptor()->FindFieldByName(name);
    if (field == nullptr) continue;
    reflection->SetString(to, field, reflection->GetString(from, field));
  }
}

// The mutation of a request: of its message if it is one, else of its bytes.
inline std::string MutateRequest(const FuzzedMethod& method,
                                 const std::string& bytes, unsigned seed) {
  std::unique_ptr<google::protobuf::Message> request(method.request->New());
  // Now and then what a parser must survive.
  if (!request->ParseFromString(bytes) || seed % 16 == 0) {
    std::string broken = bytes;
    if (!broken.empty()) broken[seed % broken.size()] ^= 1 << (seed / 7 % 8);
    return broken;
  }
  const std::unique_ptr<google::protobuf::Message> before(request->New());
  before->CopyFrom(*request);
  MessageMutator mutator(seed, WordsForFuzzing());
  for (unsigned i = 0; i <= seed % 4; ++i) mutator.Mutate(request.get());
  if (seed / 8 % 8 < 7) KeepHandles(*before, request.get());
  return request->SerializeAsString();
}

}  // namespace sluice
