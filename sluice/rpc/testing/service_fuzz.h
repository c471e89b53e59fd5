// What the fuzz targets of both services share. An input is one byte that picks
// the method, and the bytes of its request. Every call must be answered exactly
// once, whatever the bytes are.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sluice/base/logging.h"
#include "sluice/graph/op_registry.h"
#include "sluice/rpc/testing/message_mutator.h"
#include "sluice/rpc/testing/task_under_test.h"

namespace sluice {

// Stands for the handle of the open session in an input; as long as one.
inline constexpr char kHandleInInput[] = "session__handle_";

inline std::string WithHandle(std::string bytes, const std::string& handle) {
  const std::string mark = kHandleInInput;
  for (size_t at = 0; (at = bytes.find(mark, at)) != std::string::npos;) {
    bytes.replace(at, mark.size(), handle);
  }
  return bytes;
}

// Sends the bytes, gives a step that waits a moment, then takes its client
// away. Stops the task; aborts if the call is not answered by then.
inline void FuzzCall(TaskUnderTest& task, const std::string& path,
                     const std::string& bytes) {
  const auto call = task.Start(path, bytes);
  if (!call->WaitFor(std::chrono::milliseconds(50))) call->Cancel();
  if (!call->WaitFor(std::chrono::milliseconds(50))) task.Stop();
  if (!call->WaitFor(std::chrono::seconds(10)) || call->answers() != 1) {
    std::fprintf(stderr, "%s was answered %d times\n", path.c_str(),
                 call->answers());
    std::abort();
  }
}

// A method and an empty request of its kind.
struct FuzzedMethod {
  const char* path;
  const google::protobuf::Message* request;
};

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
                                  "1",
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
                                  "/cpu:0",
                                  "/gpu:0"};
    for (size_t i = 0; i < ops; ++i) {
      all->push_back(others[i % std::size(others)]);
    }
    return all;
  }();
  return *words;
}

// The mutation of an input: of its message if it is one, else of its bytes.
inline size_t MutateInput(std::span<const FuzzedMethod> methods, uint8_t* data,
                          size_t size, size_t max_size, unsigned seed) {
  if (size == 0) return 0;
  const FuzzedMethod& method = methods[data[0] % methods.size()];
  std::unique_ptr<google::protobuf::Message> request(method.request->New());
  std::string bytes;
  if (request->ParseFromArray(data + 1, static_cast<int>(size - 1))) {
    MessageMutator mutator(seed, WordsForFuzzing());
    for (unsigned i = 0; i <= seed % 4; ++i) mutator.Mutate(request.get());
    bytes = request->SerializeAsString();
  }
  // Now and then what a parser must survive.
  if (bytes.empty() || seed % 16 == 0) {
    bytes.assign(reinterpret_cast<char*>(data + 1), size - 1);
    if (!bytes.empty()) bytes[seed % bytes.size()] ^= 1 << (seed / 7 % 8);
  }
  if (bytes.size() + 1 > max_size) return size;
  std::copy(bytes.begin(), bytes.end(), data + 1);
  return bytes.size() + 1;
}

// Only what is wrong should be printed, not what the inputs ask for.
inline void SilenceLogs() {
  static const bool once = [] {
    SetLogSinkForTest([](LogLevel, const std::string&) {});
    return true;
  }();
  (void)once;
}

}  // namespace sluice
