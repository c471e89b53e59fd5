#include "sluice/base/status.h"

namespace sluice {

absl::Status WithMessage(const absl::Status& status, std::string_view message) {
  if (status.ok()) return status;
  absl::Status result(status.code(), ToAbsl(message));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    result.SetPayload(url, payload);
  });
  return result;
}

absl::Status Annotate(const absl::Status& status, std::string_view context) {
  return WithMessage(status, StrCat(context, " ", status.message()));
}

std::string_view CodeText(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return "OK";
    case absl::StatusCode::kCancelled:
      return "Cancelled";
    case absl::StatusCode::kInvalidArgument:
      return "Invalid argument";
    case absl::StatusCode::kDeadlineExceeded:
      return "Deadline exceeded";
    case absl::StatusCode::kNotFound:
      return "Not found";
    case absl::StatusCode::kAlreadyExists:
      return "Already exists";
    case absl::StatusCode::kPermissionDenied:
      return "Permission denied";
    case absl::StatusCode::kUnauthenticated:
      return "Unauthenticated";
    case absl::StatusCode::kResourceExhausted:
      return "Resource exhausted";
    case absl::StatusCode::kFailedPrecondition:
      return "Failed precondition";
    case absl::StatusCode::kAborted:
      return "Aborted";
    case absl::StatusCode::kOutOfRange:
      return "Out of range";
    case absl::StatusCode::kUnimplemented:
      return "Unimplemented";
    case absl::StatusCode::kInternal:
      return "Internal";
    case absl::StatusCode::kUnavailable:
      return "Unavailable";
    case absl::StatusCode::kDataLoss:
      return "Data loss";
    default:
      return "Unknown";
  }
}

std::string StatusText(const absl::Status& status) {
  if (status.ok()) return "OK";
  return StrCat(CodeText(status.code()), ": ", status.message());
}

}  // namespace sluice
