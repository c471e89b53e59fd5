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

// PyEval_RestoreThread.
void RestoreThread(PyThreadState* state);

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
