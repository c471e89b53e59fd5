// Sessions as Python sees them. SessionCore.run is the hot path and plain C
// (fast_run.cc); everything else goes through pybind11.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>

#include "sluice/session/session.h"
#include "src/graph_binding.h"

namespace sluice::python {

// Opens a session; `config` is a serialized ConfigProto.
std::unique_ptr<Session> OpenSession(const std::string& target, PyGraph& graph,
                                     const std::string& config);

void BindSession(pybind11::module_& m);
void BindFastRun(pybind11::module_& m);

// Of a serialized tf.RunOptions.
RunOptions RunOptionsFromBytes(const pybind11::bytes& bytes);

}  // namespace sluice::python
