#include "sluice/base/errno_status.h"

#include <cerrno>
#include <cstring>

#include "sluice/base/strings.h"

namespace sluice {
namespace {

absl::StatusCode CodeOfErrno(int error) {
  switch (error) {
    case EINVAL:
    case ENAMETOOLONG:
    case E2BIG:
    case EDOM:
    case EFAULT:
    case EILSEQ:
    case ELOOP:
    case ENOTTY:
    case ENOTSOCK:
    case ESPIPE:
      return absl::StatusCode::kInvalidArgument;
    case ETIMEDOUT:
    case ETIME:
      return absl::StatusCode::kDeadlineExceeded;
    case ENOENT:
    case ENODEV:
    case ENXIO:
    case ESRCH:
      return absl::StatusCode::kNotFound;
    case EEXIST:
    case EADDRNOTAVAIL:
    case EALREADY:
      return absl::StatusCode::kAlreadyExists;
    case EPERM:
    case EACCES:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    case ENOTEMPTY:
    case EISDIR:
    case ENOTDIR:
    case EADDRINUSE:
    case EBADF:
    case EBUSY:
    case ECHILD:
    case EISCONN:
    case ENOTCONN:
    case EPIPE:
    case ESHUTDOWN:
    case ETXTBSY:
      return absl::StatusCode::kFailedPrecondition;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case EMLINK:
    case ENOBUFS:
    case ENOMEM:
      return absl::StatusCode::kResourceExhausted;
    case EFBIG:
    case EOVERFLOW:
    case ERANGE:
      return absl::StatusCode::kOutOfRange;
    case ENOSYS:
    case ENOTSUP:
    case EAFNOSUPPORT:
    case EPROTONOSUPPORT:
    case EXDEV:
      return absl::StatusCode::kUnimplemented;
    case EAGAIN:
    case ECONNABORTED:
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case EINTR:
    case ENETDOWN:
    case ENETRESET:
    case ENETUNREACH:
      return absl::StatusCode::kUnavailable;
    case EDEADLK:
    case ESTALE:
      return absl::StatusCode::kAborted;
    case ECANCELED:
      return absl::StatusCode::kCancelled;
    default:
      return absl::StatusCode::kUnknown;
  }
}

}  // namespace

absl::Status ErrnoStatus(int error, std::string_view context) {
  char buffer[128];
  // The GNU form: the text may or may not be in the buffer.
  const char* text = strerror_r(error, buffer, sizeof(buffer));
  return absl::Status(CodeOfErrno(error), StrCat(context, "; ", text));
}

}  // namespace sluice
