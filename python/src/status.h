// Errors on their way to Python: an absl::Status becomes the exception that
// sluice/errors.py makes of its code and message.
#pragma once

#include <pybind11/pybind11.h>

#include <exception>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace sluice::python {

struct StatusException : std::exception {
  explicit StatusException(absl::Status s) : status(std::move(s)) {}
  const char* what() const noexcept override { return "sluice error"; }
  absl::Status status;
};

// Throws `status`, unless OK; or the error that Python has already: Ctrl-C
// during a call leaves a KeyboardInterrupt, however the call ended.
inline void Check(const absl::Status& status) {
  if (PyErr_Occurred() != nullptr) throw pybind11::error_already_set();
  if (!status.ok()) throw StatusException(status);
}
template <typename T>
T Check(absl::StatusOr<T> value) {
  Check(value.status());
  return *std::move(value);
}

// Sets Python's error for `status`; for code outside of pybind11.
void SetPythonError(const absl::Status& status);

void BindStatus(pybind11::module_& m);

}  // namespace sluice::python
