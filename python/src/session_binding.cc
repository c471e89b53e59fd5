#include "src/session_binding.h"

#include <pybind11/stl.h>
#include <unistd.h>

#include "sluice/base/status.h"
#include "sluice/proto/config.pb.h"
#include "sluice/rpc/config.h"
#include "sluice/train/late_tasks.h"
#include "src/gil.h"
#include "src/status.h"
#include "src/tensor_convert.h"

namespace py = pybind11;

namespace sluice::python {

namespace {

// Lets Python see its signals while a step blocks. Only the main thread does
// that; KeyboardInterrupt is then set as its error.
bool CtrlC() {
  if (gettid() != getpid()) return false;
  py::gil_scoped_acquire acquire;
  return PyErr_CheckSignals() != 0;
}

SessionConfig ConfigFor(const std::string& target, pb::ConfigProto* proto) {
  SessionConfig config;
  config.target = target;
  config.options = SessionOptionsFromConfig(*proto, target);
  config.tls = TlsFromConfig(*proto);
  RemoveTls(proto);
  if (proto->has_rpc_options()) {
    pb::RPCOptions* rpc = proto->mutable_rpc_options();
    config.connect_timeout_ms = rpc->sluice_connect_timeout_in_ms();
    rpc->clear_sluice_connect_timeout_in_ms();
  }
  config.config_proto = proto->SerializeAsString();
  return config;
}

}  // namespace

std::unique_ptr<Session> OpenSession(const std::string& target, PyGraph& graph,
                                     const std::string& config) {
  pb::ConfigProto proto;
  if (!proto.ParseFromString(config)) {
    throw StatusException(InvalidArgument("These bytes are no ConfigProto"));
  }
  if (!target.empty()) Check(CheckRemoteConfig(proto));
  SessionConfig session = ConfigFor(target, &proto);
  session.interrupted = CtrlC;
  session.graph_mu = &graph.mu;
  absl::StatusOr<std::unique_ptr<Session>> created = Internal("");
  {
    WithoutGil release;
    created = Session::Create(std::move(session), graph.graph);
  }
  return Check(std::move(created));
}

RunOptions RunOptionsFromBytes(const py::bytes& bytes) {
  pb::RunOptions proto;
  if (!proto.ParseFromString(std::string(bytes))) {
    throw StatusException(InvalidArgument("These bytes are no RunOptions"));
  }
  return RunOptionsFromProto(proto);
}

namespace {

py::object MetadataBytes(const RunMetadata& metadata) {
  pb::RunMetadata proto;
  RunMetadataToProto(metadata, &proto);
  return py::bytes(proto.SerializeAsString());
}

py::list ArraysFromTensors(std::vector<Tensor> tensors) {
  py::list values;
  for (Tensor& tensor : tensors) {
    PyObject* value = ArrayFromTensor(std::move(tensor));
    if (value == nullptr) throw py::error_already_set();
    values.append(py::reinterpret_steal<py::object>(value));
  }
  return values;
}

// The slow way to run a prepared step: with options and metadata.
py::tuple RunStep(PreparedStep& step, const std::vector<Tensor>& feeds,
                  int num_fetches, const py::bytes& options,
                  bool want_metadata) {
  const RunOptions run_options = RunOptionsFromBytes(options);
  RunMetadata metadata;
  std::vector<Tensor> fetched(num_fetches);
  absl::Status status;
  {
    WithoutGil release;
    status = step.Run(feeds, fetched, run_options,
                      want_metadata ? &metadata : nullptr);
  }
  Check(status);
  return py::make_tuple(ArraysFromTensors(std::move(fetched)),
                        want_metadata ? MetadataBytes(metadata) : py::none());
}

std::string SetUpPartialRun(Session& session, const StepSignature& signature) {
  absl::StatusOr<std::string> name = Internal("");
  {
    WithoutGil release;
    name = session.SetUpPartialRun(signature);
  }
  return Check(std::move(name));
}

py::list RunPartially(Session& session, const std::string& name,
                      std::vector<std::string> feed_names,
                      const std::vector<Tensor>& feeds,
                      std::vector<std::string> fetch_names) {
  std::vector<Tensor> fetched(fetch_names.size());
  absl::Status status;
  {
    WithoutGil release;
    status = session.RunPartially(
        name, {std::move(feed_names), feeds, std::move(fetch_names), fetched});
  }
  Check(status);
  return ArraysFromTensors(std::move(fetched));
}

}  // namespace

void BindSession(py::module_& m) {
  py::class_<StepSignature>(m, "StepSignature")
      .def(
          py::init(
              [](std::vector<std::string> feeds,
                 std::vector<std::string> fetches,
                 std::vector<std::string> targets,
                 std::vector<std::pair<std::string, std::string>> connections) {
                return StepSignature{std::move(feeds), std::move(fetches),
                                     std::move(targets),
                                     std::move(connections)};
              }),
          py::arg("feeds"), py::arg("fetches"), py::arg("targets"),
          py::arg("connections") =
              std::vector<std::pair<std::string, std::string>>());
  py::class_<Session>(m, "Session")
      .def("close",
           [](Session& s) {
             absl::Status status;
             {
               WithoutGil release;
               status = s.Close();
             }
             Check(status);
           })
      .def("set_up_partial_run", SetUpPartialRun)
      .def("run_partially", RunPartially)
      // Waits for nothing, so it keeps the interpreter's lock: a daemon thread
      // that must take it again while the interpreter ends would be lost here.
      .def("interrupt", [](Session& s) { s.Interrupt(); })
      .def("list_devices", [](Session& s) {
        absl::StatusOr<std::vector<DeviceInfo>> devices = Internal("");
        {
          WithoutGil release;
          devices = s.ListDevices();
        }
        py::list list;
        for (const DeviceInfo& d : Check(std::move(devices))) {
          list.append(py::make_tuple(d.text, *d.name.type, d.memory_limit,
                                     d.incarnation));
        }
        return list;
      });
  m.def("late_tasks", [](const std::string& target) {
    WithoutGil release;
    return LateTasks(target);
  });
  m.def("run_step", RunStep);
  m.def("reset", [](const std::string& target,
                    const std::vector<std::string>& containers,
                    const py::bytes& config) {
    pb::ConfigProto proto;
    if (!proto.ParseFromString(std::string(config))) {
      throw StatusException(InvalidArgument("These bytes are no ConfigProto"));
    }
    SessionConfig session = ConfigFor(target, &proto);
    session.interrupted = CtrlC;
    absl::Status status;
    {
      WithoutGil release;
      status = Session::Reset(session, containers);
    }
    Check(status);
  });
}

}  // namespace sluice::python
