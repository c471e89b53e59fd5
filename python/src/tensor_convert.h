// Tensors and NumPy arrays, by the buffer protocol alone: pybind11's and
// NumPy's own headers tie a build to one NumPy.
#pragma once

#include <pybind11/pybind11.h>

#include "absl/status/statusor.h"
#include "sluice/tensor/tensor.h"

namespace sluice::python {

// A tensor over the memory of `array`, which must be C-contiguous; strings and
// objects are copied. Holds `array` until the last tensor over it is gone. The
// caller holds the GIL; whoever drops the tensor need not.
absl::StatusOr<Tensor> TensorFromArray(PyObject* array);

// What `Session.run` returns for a tensor: a NumPy scalar or bytes for a
// scalar, an array otherwise. New reference, or nullptr with Python's error
// set.
PyObject* ArrayFromTensor(Tensor tensor);
// As above, but scalars come as arrays of rank 0.
PyObject* ArrayFromTensorAlways(Tensor tensor);

// The dtype a buffer's format stands for; kInvalid if none of ours.
DType DTypeOfFormat(const char* format, Py_ssize_t itemsize);

void BindTensor(pybind11::module_& m);

}  // namespace sluice::python
