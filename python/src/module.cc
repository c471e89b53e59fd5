// The extension behind the Python package: converts, gives up the GIL, calls,
// and turns statuses into exceptions. Nothing is decided here.
#include <pybind11/pybind11.h>

#include "src/apply_binding.h"
#include "src/gradient_binding.h"
#include "src/graph_binding.h"
#include "src/io_binding.h"
#include "src/py_func_binding.h"
#include "src/server_binding.h"
#include "src/session_binding.h"
#include "src/status.h"
#include "src/tensor_convert.h"

PYBIND11_MODULE(_sluice, m) {
  using namespace sluice::python;
  BindStatus(m);
  BindTensor(m);
  BindGraph(m);
  BindGradients(m);
  BindApply(m);
  BindSession(m);
  BindFastRun(m);
  BindServer(m);
  BindIo(m);
  BindPyFunc(m);
}
