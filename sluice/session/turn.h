// Turn: one thread at a time opens or extends a session; the others wait, each
// for as long as its own caller wants. Private to session/.
#pragma once

#include <functional>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "sluice/base/clock.h"
#include "sluice/base/mutex.h"
#include "sluice/kernel/cancellation.h"

namespace sluice {

// 0: no deadline.
std::optional<SteadyTime> DeadlineIn(int64_t ms);

// What ends a call before its result.
struct Limit {
  using Cancel = absl::FunctionRef<void(const absl::Status&)>;

  std::optional<SteadyTime> deadline;
  const char* timed_out;
  const std::function<bool()>& interrupted;

  // When a blocked call has to look again whether the limit is reached.
  SteadyTime NextLook() const;
  bool CancelIfReached(Cancel cancel) const;
};

// Thread-safe.
class Turn {
 public:
  // Blocks while another thread has the turn, until `limit` is reached, which
  // cancels `call`, or `call` is cancelled elsewhere. After OK the caller must
  // give the turn back.
  absl::Status Take(const Limit& limit, Cancellation& call);
  void GiveBack();

 private:
  bool TakeUntil(SteadyTime until);

  Mutex mu_;
  CondVar free_;
  bool taken_ SLUICE_GUARDED_BY(mu_) = false;
};

}  // namespace sluice
