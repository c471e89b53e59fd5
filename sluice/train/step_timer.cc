#include "sluice/train/step_timer.h"

namespace sluice {
namespace {

double SecondsBetween(SteadyTime from, SteadyTime to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

bool StepTimer::ShouldTrigger(int64_t step) const {
  if (every_secs_ <= 0 && every_steps_ <= 0) return false;
  if (!step_) return true;
  if (*step_ == step) return false;
  if (every_secs_ > 0 && SecondsBetween(*time_, clock_.Now()) >= every_secs_) {
    return true;
  }
  return every_steps_ > 0 && step >= *step_ + every_steps_;
}

std::optional<StepTimer::Elapsed> StepTimer::Triggered(int64_t step) {
  const SteadyTime now = clock_.Now();
  std::optional<Elapsed> elapsed;
  if (step_) elapsed = {SecondsBetween(*time_, now), step - *step_};
  step_ = step;
  time_ = now;
  return elapsed;
}

}  // namespace sluice
