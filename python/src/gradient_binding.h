#pragma once

#include <pybind11/pybind11.h>

namespace sluice::python {
void BindGradients(pybind11::module_& m);
}  // namespace sluice::python
