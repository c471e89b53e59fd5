// What the fuzz targets of both services share. An input is one byte that picks
// the method, and the bytes of its request. Every call must be answered exactly
// once, whatever the bytes are.
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

#include "sluice/base/logging.h"
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

// Only what is wrong should be printed, not what the inputs ask for.
inline void SilenceLogs() {
  static const bool once = [] {
    SetLogSinkForTest([](LogLevel, const std::string&) {});
    return true;
  }();
  (void)once;
}

}  // namespace sluice
