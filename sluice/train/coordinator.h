// Coordinator: lets threads that work together stop together. Any of them may
// ask all to stop and say why; Join waits for them and returns the reason.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace sluice {

// Thread-safe. Threads may outlive it.
class Coordinator {
 public:
  using Seconds = std::chrono::duration<double>;

  // An error of these codes says only that all is done.
  explicit Coordinator(std::vector<absl::StatusCode> clean_stop_codes = {
                           absl::StatusCode::kOutOfRange});

  // Asks all to stop. The first error is kept; those that come after somebody
  // asked are consequences and dropped.
  void RequestStop(absl::Status error = absl::OkStatus());
  bool ShouldStop() const;
  // False when `timeout` passed first.
  bool WaitForStop(Seconds timeout) const;
  // What was reported to RequestStop.
  absl::Status error() const;
  // Forgets the request and the error, to start anew.
  void ClearStop();

  // Runs `body` on a thread of its own, once. An error of it stops all.
  void Start(std::string name, std::function<absl::Status()> body);
  // Calls `body` now and then every `interval`, however long a call takes,
  // until all stop. An interval of 0: back to back.
  void StartLoop(std::string name, Seconds interval,
                 std::function<absl::Status()> body);

  // Waits until all threads have ended or somebody asked to stop, then up to
  // `grace` for those left. Returns the error reported, else
  // FAILED_PRECONDITION that names threads that still run, which is only logged
  // with `ignore_live_threads`.
  absl::Status Join(Seconds grace, bool ignore_live_threads = false);
  // Waits up to `timeout`: whether all threads have ended.
  bool JoinFor(Seconds timeout);
  // The names of those that have not.
  std::vector<std::string> live_threads() const;

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace sluice
