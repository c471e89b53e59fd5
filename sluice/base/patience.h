// Patience: a thread that works for its caller may go on for long. On its way
// it calls Check, which now and then asks what the caller wanted to have asked:
// is the time over, was it interrupted?
#pragma once

#include "absl/functional/function_ref.h"
#include "sluice/base/clock.h"

namespace sluice {

// Of one thread, on its stack.
class Patience {
 public:
  // While it lives, `ask`, which must live as long, is called by Check on this
  // thread, about every 100 ms.
  explicit Patience(absl::FunctionRef<void()> ask)
      : ask_(ask), before_(current_) {
    current_ = this;
  }
  ~Patience() { current_ = before_; }
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

  static void Check() {
    if (current_ != nullptr) current_->AskIfDue();
  }

 private:
  void AskIfDue();

  const absl::FunctionRef<void()> ask_;
  Patience* const before_;
  SteadyTime next_;  // The clock's beginning: since nobody has looked.
  static thread_local Patience* current_;
};

}  // namespace sluice
