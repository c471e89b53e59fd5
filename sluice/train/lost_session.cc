#include "sluice/train/lost_session.h"

#include <algorithm>
#include <thread>

#include "sluice/base/random.h"
#include "sluice/base/status.h"
#include "sluice/train/session_manager.h"

namespace sluice {
namespace {

std::string_view Begin(LostIn what) {
  switch (what) {
    case LostIn::kCreation:
      return "An error was raised while a session was being created. This may "
             "be due to a preemption of a connected worker or parameter "
             "server. A new session will be created.";
    case LostIn::kRun:
      return "An error was raised. This may be due to a preemption in a "
             "connected worker or parameter server. The current session will "
             "be closed and a new session will be created.";
    case LostIn::kShouldStop:
      return "An error was raised while considering whether the session is "
             "complete. This may be due to a preemption in a connected worker "
             "or parameter server. The current session will be closed and a "
             "new session will be created.";
  }
  return "";
}

}  // namespace

bool IsPreemption(const absl::Status& status) {
  return absl::IsAborted(status) || absl::IsUnavailable(status);
}

bool LacksValue(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) &&
         status.message().find("uninitialized value") !=
             absl::string_view::npos;
}

bool IsLost(const absl::Status& status, Session* session, Output ready_op) {
  if (IsPreemption(status)) return true;
  if (!LacksValue(status) || session == nullptr) return false;
  const absl::StatusOr<std::string> missing =
      FindUninitialized(*session, ready_op, "Model not ready");
  return missing.ok() ? !missing->empty() : IsPreemption(missing.status());
}

std::string LostSessionText(LostIn what, const absl::Status& error) {
  return StrCat(Begin(what),
                " This error may also occur due to a gRPC failure caused by "
                "high memory or network bandwidth usage in the parameter "
                "servers. If this error occurs repeatedly, try increasing the "
                "number of parameter servers assigned to the job. Error: ",
                StatusText(error));
}

void Backoff::Wait() {
  const double part = 0.5 + 0.5 * static_cast<double>(RandomId() % 1024) / 1024;
  std::this_thread::sleep_for(next_ * part);
  next_ = std::min(next_ * 2, std::chrono::duration<double>(2));
}

}  // namespace sluice
