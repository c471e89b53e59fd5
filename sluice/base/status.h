// Errors are absl::Status everywhere (DESIGN D5). This header makes them short
// to write: InvalidArgument("expected ", a, ", got ", b), and short to pass on.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/base/strings.h"

namespace sluice {

#define SLUICE_STATUS_FACTORY(NAME, CODE)                         \
  template <typename... Args>                                     \
  absl::Status NAME(const Args&... args) {                        \
    return absl::Status(absl::StatusCode::CODE, StrCat(args...)); \
  }
SLUICE_STATUS_FACTORY(Cancelled, kCancelled)
SLUICE_STATUS_FACTORY(Unknown, kUnknown)
SLUICE_STATUS_FACTORY(InvalidArgument, kInvalidArgument)
SLUICE_STATUS_FACTORY(DeadlineExceeded, kDeadlineExceeded)
SLUICE_STATUS_FACTORY(NotFound, kNotFound)
SLUICE_STATUS_FACTORY(AlreadyExists, kAlreadyExists)
SLUICE_STATUS_FACTORY(PermissionDenied, kPermissionDenied)
SLUICE_STATUS_FACTORY(ResourceExhausted, kResourceExhausted)
SLUICE_STATUS_FACTORY(FailedPrecondition, kFailedPrecondition)
SLUICE_STATUS_FACTORY(Aborted, kAborted)
SLUICE_STATUS_FACTORY(OutOfRange, kOutOfRange)
SLUICE_STATUS_FACTORY(Unimplemented, kUnimplemented)
SLUICE_STATUS_FACTORY(Internal, kInternal)
SLUICE_STATUS_FACTORY(Unavailable, kUnavailable)
SLUICE_STATUS_FACTORY(DataLoss, kDataLoss)
#undef SLUICE_STATUS_FACTORY

// The same code and payloads with `context` and a space before the message.
absl::Status Annotate(const absl::Status& status, std::string_view context);
// The same code and payloads with another message.
absl::Status WithMessage(const absl::Status& status, std::string_view message);

// The words TensorFlow puts before a message inside other messages:
// "Invalid argument", "Not found", …
std::string_view CodeText(absl::StatusCode code);
// "Invalid argument: message", or "OK".
std::string StatusText(const absl::Status& status);

#define SLUICE_CONCAT_INNER(a, b) a##b
#define SLUICE_CONCAT(a, b) SLUICE_CONCAT_INNER(a, b)

#define SLUICE_RETURN_IF_ERROR(expr)                 \
  do {                                               \
    if (absl::Status sluice_status_ = (expr);        \
        __builtin_expect(!sluice_status_.ok(), 0)) { \
      return sluice_status_;                         \
    }                                                \
  } while (0)

#define SLUICE_ASSIGN_OR_RETURN(lhs, expr) \
  SLUICE_ASSIGN_OR_RETURN_IMPL(SLUICE_CONCAT(sluice_or_, __LINE__), lhs, expr)
#define SLUICE_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                                 \
  if (__builtin_expect(!tmp.ok(), 0)) {              \
    return std::move(tmp).status();                  \
  }                                                  \
  lhs = *std::move(tmp)

}  // namespace sluice
