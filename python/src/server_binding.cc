#include "src/server_binding.h"

#include <chrono>
#include <memory>
#include <string>

#include "sluice/base/signals.h"
#include "sluice/base/status.h"
#include "sluice/proto/server.pb.h"
#include "sluice/rpc/client_call.h"
#include "sluice/server/server.h"
#include "src/gil.h"
#include "src/status.h"

namespace py = pybind11;

namespace sluice::python {
namespace {

// How long a join waits before it looks for signals, so that Ctrl-C is felt.
constexpr std::chrono::milliseconds kJoinSlice(100);

std::shared_ptr<Server> CreateServer(const py::bytes& def, bool start) {
  pb::ServerDef proto;
  if (!proto.ParseFromString(std::string(def))) {
    throw StatusException(InvalidArgument("These bytes are no ServerDef"));
  }
  absl::StatusOr<std::shared_ptr<Server>> server = Internal("");
  {
    WithoutGil release;
    server = Server::Create(proto, start);
  }
  return Check(std::move(server));
}

void Join(Server& server) {
  const TerminationNotice termination;
  for (;;) {
    bool done;
    {
      WithoutGil release;
      done = server.JoinFor(kJoinSlice);
    }
    if (done) return;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (!termination.arrived()) continue;
    absl::Status stopped;
    {
      WithoutGil release;
      stopped = server.Stop();
    }
    Check(stopped);
    // The ordinary end of the program, with whatever it does at exit.
    PyErr_SetObject(PyExc_SystemExit, py::int_(0).ptr());
    throw py::error_already_set();
  }
}

}  // namespace

void BindServer(py::module_& m) {
  m.def("rpcs_started", &RpcsStarted,
        "How many calls to other tasks this process has begun.");
  const auto without_gil = [](absl::Status (Server::*method)()) {
    return [method](Server& server) {
      absl::Status status;
      {
        WithoutGil release;
        status = (server.*method)();
      }
      Check(status);
    };
  };
  py::class_<Server, std::shared_ptr<Server>>(m, "Server")
      .def(py::init(&CreateServer), py::arg("server_def"),
           py::arg("start") = true)
      .def("start", without_gil(&Server::Start))
      .def("stop", without_gil(&Server::Stop))
      .def("join", &Join)
      .def_property_readonly("target",
                             [](const Server& s) { return s.target(); })
      .def_property_readonly("server_def", [](const Server& s) {
        return py::bytes(s.server_def().SerializeAsString());
      });
}

}  // namespace sluice::python
