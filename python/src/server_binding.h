// Servers as Python sees them: one task of a cluster each.
#pragma once

#include <pybind11/pybind11.h>

namespace sluice::python {

void BindServer(pybind11::module_& m);

}  // namespace sluice::python
