#include "src/gil.h"

#include <unistd.h>

namespace sluice::python {
namespace {

// Where a thread stops for ever that a call in its scope is to end: what
// unwinds it then must go on or not come back. A destructor and no handler, as
// no handler can be entered for it where another exception is handled, which is
// where pybind11 makes Python's errors.
class LastStop {
 public:
  LastStop() = default;
  ~LastStop() {
    if (passed_) return;
    for (;;) pause();
  }
  LastStop(const LastStop&) = delete;
  LastStop& operator=(const LastStop&) = delete;

  void Pass() { passed_ = true; }

 private:
  bool passed_ = false;
};

}  // namespace

void RestoreThread(PyThreadState* state) {
  LastStop stop;
  PyEval_RestoreThread(state);
  stop.Pass();
}

PyGILState_STATE EnsureGil() {
  LastStop stop;
  const PyGILState_STATE state = PyGILState_Ensure();
  stop.Pass();
  return state;
}

PyObject* CallObject(PyObject* function, PyObject* arguments) {
  LastStop stop;
  PyObject* result = PyObject_CallObject(function, arguments);
  stop.Pass();
  return result;
}

}  // namespace sluice::python
