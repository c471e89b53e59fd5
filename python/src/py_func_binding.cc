#include "src/py_func_binding.h"

#include <atomic>
#include <string>
#include <vector>

#include "sluice/base/status.h"
#include "sluice/base/thread_pool.h"
#include "sluice/kernel/foreign_functions.h"
#include "src/gil.h"
#include "src/tensor_convert.h"

namespace py = pybind11;

namespace sluice::python {
namespace {

// The package's `call(token, arguments) -> (code, message, values)`. Never
// freed: kernels may outlive the interpreter.
PyObject* the_call = nullptr;
// No function may be entered any more: the interpreter is about to end, and a
// thread that waits for its lock then is lost.
std::atomic<bool> interpreter_ends{false};

// The interpreter's lock for the one thread that runs functions. Unlike
// PyGILState it keeps the thread's state between calls, so that the values of
// threading.local() last.
class ThreadInPython {
 public:
  ThreadInPython() {
    thread_local PyThreadState* state = nullptr;
    if (state == nullptr) {
      EnsureGil();
      state = PyThreadState_Get();
    } else {
      RestoreThread(state);
    }
  }
  ~ThreadInPython() { PyEval_SaveThread(); }
  ThreadInPython(const ThreadInPython&) = delete;
  ThreadInPython& operator=(const ThreadInPython&) = delete;
};

using Values = absl::StatusOr<std::vector<Tensor>>;

// Copies both ways: the function may keep and change what it sees and gives.
py::list ArgumentsFrom(const std::vector<Tensor>& inputs) {
  py::list arguments;
  for (const Tensor& input : inputs) {
    PyObject* array = ArrayFromTensor(input.Clone());
    if (array == nullptr) throw py::error_already_set();
    arguments.append(py::reinterpret_steal<py::object>(array));
  }
  return arguments;
}

Values ValuesFrom(const py::tuple& answer) {
  const auto code = static_cast<absl::StatusCode>(answer[0].cast<int>());
  if (code != absl::StatusCode::kOk) {
    return absl::Status(code, answer[1].cast<std::string>());
  }
  std::vector<Tensor> values;
  for (const py::handle& array : answer[2]) {
    SLUICE_ASSIGN_OR_RETURN(const Tensor value, TensorFromArray(array.ptr()));
    values.push_back(value.Clone());
  }
  return values;
}

Values CallPython(const std::string& token, const std::vector<Tensor>& inputs) {
  try {
    return ValuesFrom(
        CallObject(the_call, py::make_tuple(token, ArgumentsFrom(inputs))));
  } catch (const std::exception& e) {
    return Internal("A Python function could not be called: ", e.what());
  }
}

// One thread for all functions of the process, started by the first call.
ThreadPool& PythonThread() {
  static auto* thread = new ThreadPool("sluice-python", 1);
  return *thread;
}

void Call(const std::string& token, std::vector<Tensor> inputs,
          ForeignDone done) {
  PythonThread().Schedule(
      [token, inputs = std::move(inputs), done = std::move(done)]() mutable {
        Values values = Cancelled("The Python interpreter ends");
        if (!interpreter_ends.load()) {
          const ThreadInPython python;
          values = CallPython(token, inputs);
        }
        done(std::move(values));
      });
}

}  // namespace

void BindPyFunc(py::module_& m) {
  // The first call counts; `call` must not raise.
  m.def("set_py_func_caller", [](py::function call) {
    if (the_call != nullptr) return;
    the_call = call.release().ptr();
    SetForeignCaller(Call);
  });
  m.def("end_py_funcs", [] { interpreter_ends = true; });
}

}  // namespace sluice::python
