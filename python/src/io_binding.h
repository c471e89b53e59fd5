// Files as Python sees them: event files, record files, checkpoints, and the
// engine's own file functions.
#pragma once

#include <pybind11/pybind11.h>

namespace sluice::python {

void BindIo(pybind11::module_& m);

}  // namespace sluice::python
