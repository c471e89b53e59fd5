// tf.py_func: how PyFunc kernels reach the program's functions.
#pragma once

#include <pybind11/pybind11.h>

namespace sluice::python {

void BindPyFunc(pybind11::module_& m);

}  // namespace sluice::python
