// The interpreter's lock, on threads that may outlive the interpreter.
//
// A thread that asks for the lock when the interpreter has begun to end does
// not get it: before Python 3.14 it gets pthread_exit, which unwinds its stack.
// That goes through destructors that must not throw, which ends the program
// with std::terminate, and through those that drop Python's objects without the
// lock. So such a thread waits here for the end of the process, as from Python
// 3.14 on.
#pragma once

#include <pybind11/pybind11.h>

namespace sluice::python {

// PyEval_RestoreThread and PyGILState_Ensure.
void RestoreThread(PyThreadState* state);
PyGILState_STATE EnsureGil();

// PyObject_CallObject: Python's code gives the lock up now and then.
PyObject* CallObject(PyObject* function, PyObject* arguments);
// Throws what the function raises.
inline pybind11::object CallObject(const pybind11::handle& function,
                                   const pybind11::tuple& arguments) {
  PyObject* result = CallObject(function.ptr(), arguments.ptr());
  if (result == nullptr) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::object>(result);
}

// Gives the lock up until the end of the scope.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() { RestoreThread(state_); }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* const state_;
};

}  // namespace sluice::python
