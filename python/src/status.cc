#include "src/status.h"

#include "sluice/graph/python_text.h"
#include "src/gil.h"

namespace py = pybind11;

namespace sluice::python {
namespace {

// Makes an exception of (code, message); set by sluice/errors.py. Never freed:
// the interpreter may be gone by then.
PyObject* error_factory = nullptr;

}  // namespace

void SetPythonError(const absl::Status& status) {
  // After Ctrl-C the handler's KeyboardInterrupt says more.
  if (absl::IsCancelled(status) && PyErr_CheckSignals() != 0) return;
  const std::string message(status.message());
  // Where a Python function would raise it, Python raises TypeError.
  const auto kind = status.GetPayload(kPythonErrorPayload);
  if (kind.has_value() && *kind == "TypeError") {
    PyErr_SetString(PyExc_TypeError, message.c_str());
    return;
  }
  if (error_factory == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, message.c_str());
    return;
  }
  // Messages may quote bytes of files or peers that are no UTF-8.
  PyObject* text =
      PyUnicode_DecodeUTF8(message.data(), message.size(), "replace");
  // Frees `text`.
  PyObject* arguments = Py_BuildValue("(iN)", status.raw_code(), text);
  if (arguments == nullptr) return;
  PyObject* error = CallObject(error_factory, arguments);
  Py_DECREF(arguments);
  if (error == nullptr) return;  // The factory's own error stands.
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error)), error);
  Py_DECREF(error);
}

void BindStatus(py::module_& m) {
  m.def("set_error_factory", [](py::object factory) {
    Py_XDECREF(error_factory);
    error_factory = factory.release().ptr();
  });
  py::register_exception_translator([](std::exception_ptr p) {
    try {
      if (p) std::rethrow_exception(p);
    } catch (const StatusException& e) {
      SetPythonError(e.status);
    }
  });
}

}  // namespace sluice::python
