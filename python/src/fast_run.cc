// SessionCore: a session whose `run` is one C function over CPython's API.
//
//   core.run(fetches, feed_dict) -> result, or NotImplemented when there is no
//     plan for these fetches and feed keys yet or a value needs conversion;
//     Python then does it the slow way and may add a plan.
//   core.add_plan(fetches, feed_keys, step) remembers a prepared step. Its key
//     is the shape of the fetch structure and the identities of its leaves and
//     of the feed keys, which it keeps alive so that they stay unique.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "sluice/base/status.h"
#include "src/gil.h"
#include "src/session_binding.h"
#include "src/status.h"
#include "src/tensor_convert.h"

namespace py = pybind11;

namespace sluice::python {
namespace {

using Key = absl::InlinedVector<PyObject*, 12>;

struct FeedSpec {
  DType dtype;
  PartialShape shape;
};

// How results go back: one per leaf, or None for an operation.
struct FastPlan {
  std::shared_ptr<PreparedStep> step;
  std::vector<FeedSpec> feeds;
  std::vector<int> leaf_fetch;  // Index into the fetched tensors, -1: None.
  int num_fetches = 0;
  ~FastPlan() {
    for (PyObject* object : kept) Py_DECREF(object);
  }
  std::vector<PyObject*> kept;
};

struct Core {
  PyObject_HEAD struct Data* data;
};

struct Data {
  std::unique_ptr<Session> session;
  py::object graph;  // Keeps the graph alive.
  absl::flat_hash_map<Key, std::shared_ptr<FastPlan>> plans;
};

// Marks what kind of structure follows in a key.
PyObject* Tag(long kind, Py_ssize_t size) {
  return reinterpret_cast<PyObject*>((size << 3 | kind) << 1 | 1);
}

// False if the structure is not a leaf or a flat list or tuple of leaves.
bool AppendFetches(PyObject* fetches, Key* key) {
  if (PyList_CheckExact(fetches) || PyTuple_CheckExact(fetches)) {
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(fetches);
    key->push_back(Tag(PyList_CheckExact(fetches) ? 1 : 2, n));
    PyObject** items = PySequence_Fast_ITEMS(fetches);
    for (Py_ssize_t i = 0; i < n; ++i) {
      if (PyList_Check(items[i]) || PyTuple_Check(items[i]) ||
          PyDict_Check(items[i]) || PyUnicode_Check(items[i])) {
        return false;
      }
      key->push_back(items[i]);
    }
    return true;
  }
  if (PyDict_Check(fetches) || PyTuple_Check(fetches) ||
      PyList_Check(fetches) || PyUnicode_Check(fetches) || fetches == Py_None) {
    return false;
  }
  key->push_back(Tag(3, 1));
  key->push_back(fetches);
  return true;
}

// A Python number as a scalar tensor, without NumPy. False: not one of these.
bool ScalarFromNumber(PyObject* value, DType dtype, Tensor* tensor) {
  double number;
  if (PyFloat_Check(value)) {  // np.float64 too.
    number = PyFloat_AS_DOUBLE(value);
    if (dtype == DType::kFloat) {
      *tensor = Tensor::Scalar<float>(static_cast<float>(number));
      return true;
    }
    if (dtype == DType::kDouble) {
      *tensor = Tensor::Scalar<double>(number);
      return true;
    }
    return false;
  }
  if (PyBool_Check(value)) {
    if (dtype != DType::kBool) return false;
    *tensor = Tensor::Scalar<bool>(value == Py_True);
    return true;
  }
  if (!PyLong_CheckExact(value)) return false;
  int overflow = 0;
  const long long integer = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow != 0) return false;
  switch (dtype) {
    case DType::kInt32:
      if (integer != static_cast<int32_t>(integer)) return false;
      *tensor = Tensor::Scalar<int32_t>(static_cast<int32_t>(integer));
      return true;
    case DType::kInt64:
      *tensor = Tensor::Scalar<int64_t>(integer);
      return true;
    case DType::kFloat:
      *tensor = Tensor::Scalar<float>(static_cast<float>(integer));
      return true;
    case DType::kDouble:
      *tensor = Tensor::Scalar<double>(static_cast<double>(integer));
      return true;
    default:
      return false;
  }
}

bool ConvertFeed(PyObject* value, const FeedSpec& spec, Tensor* tensor) {
  if (!ScalarFromNumber(value, spec.dtype, tensor)) {
    if (PyList_Check(value) || PyTuple_Check(value) ||
        !PyObject_CheckBuffer(value) || PyBytes_Check(value)) {
      return false;
    }
    absl::StatusOr<Tensor> converted = TensorFromArray(value);
    if (!converted.ok() || converted->dtype() != spec.dtype) return false;
    *tensor = *std::move(converted);
  }
  return spec.shape.CompatibleWith(PartialShape(tensor->shape()));
}

PyObject* BuildResult(PyObject* fetches, const FastPlan& plan,
                      absl::InlinedVector<Tensor, 8>* values) {
  // Moved: an array need not copy what nobody else owns.
  const auto convert = [&](int at) -> PyObject* {
    if (at < 0) Py_RETURN_NONE;
    return ArrayFromTensor(std::move((*values)[at]));
  };
  if (!PyList_CheckExact(fetches) && !PyTuple_CheckExact(fetches))
    return convert(plan.leaf_fetch[0]);
  // One object for each, however often it is fetched; `result` keeps them.
  absl::InlinedVector<PyObject*, 8> made(values->size(), nullptr);
  const auto leaf = [&](size_t i) -> PyObject* {
    const int at = plan.leaf_fetch[i];
    if (at < 0) return convert(at);
    if (made[at] == nullptr) return made[at] = convert(at);
    Py_INCREF(made[at]);
    return made[at];
  };
  const size_t n = plan.leaf_fetch.size();
  PyObject* result =
      PyList_CheckExact(fetches) ? PyList_New(n) : PyTuple_New(n);
  if (result == nullptr) return nullptr;
  for (size_t i = 0; i < n; ++i) {
    PyObject* item = leaf(i);
    if (item == nullptr) {
      Py_DECREF(result);
      return nullptr;
    }
    if (PyList_CheckExact(result)) {
      PyList_SET_ITEM(result, i, item);
    } else {
      PyTuple_SET_ITEM(result, i, item);
    }
  }
  return result;
}

PyObject* CoreRun(PyObject* self, PyObject* const* args, Py_ssize_t nargs) {
  Data& data = *reinterpret_cast<Core*>(self)->data;
  if (nargs != 2) {
    PyErr_SetString(PyExc_TypeError, "run takes fetches and a feed dict");
    return nullptr;
  }
  PyObject* fetches = args[0];
  PyObject* feed_dict = args[1];
  Key key;
  if (!AppendFetches(fetches, &key)) Py_RETURN_NOTIMPLEMENTED;
  absl::InlinedVector<PyObject*, 4> feed_values;
  if (feed_dict != Py_None) {
    if (!PyDict_CheckExact(feed_dict)) Py_RETURN_NOTIMPLEMENTED;
    key.push_back(Tag(4, PyDict_GET_SIZE(feed_dict)));
    PyObject *feed, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(feed_dict, &position, &feed, &value)) {
      key.push_back(feed);
      feed_values.push_back(value);
    }
  }
  auto it = data.plans.find(key);
  if (it == data.plans.end()) Py_RETURN_NOTIMPLEMENTED;
  const std::shared_ptr<FastPlan> plan = it->second;
  absl::InlinedVector<Tensor, 8> feeds(feed_values.size());
  for (size_t i = 0; i < feeds.size(); ++i) {
    if (!ConvertFeed(feed_values[i], plan->feeds[i], &feeds[i])) {
      Py_RETURN_NOTIMPLEMENTED;
    }
  }
  absl::InlinedVector<Tensor, 8> values(plan->num_fetches);
  absl::Status status;
  {
    WithoutGil release;
    status =
        plan->step->Run({feeds.data(), feeds.size()},
                        {values.data(), values.size()}, RunOptions(), nullptr);
  }
  if (PyErr_Occurred() != nullptr) return nullptr;  // Ctrl-C.
  if (!status.ok()) {
    SetPythonError(status);
    return nullptr;
  }
  return BuildResult(fetches, *plan, &values);
}

Data& DataOf(const py::handle& core) {
  return *reinterpret_cast<Core*>(core.ptr())->data;
}

// The session, for a call that sends new nodes. One that another thread opens
// meanwhile may wait for the nodes that this thread is adding.
Session& SessionToSync(const Data& data) {
  if (IsBuilding(data.graph.cast<PyGraph&>())) {
    throw StatusException(FailedPrecondition(
        "A session cannot run a graph from a function that is called to build "
        "a part of it: a loop's condition or body, a gradient, a device "
        "function"));
  }
  return *data.session;
}

void CoreDealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Data* data = reinterpret_cast<Core*>(self)->data;
  if (data != nullptr) {
    data->plans.clear();
    // Ctrl-C while the session is closed leaves an error, which nobody can get
    // from here; one that is on its way elsewhere must stay.
    PyObject *kind, *error, *traceback;
    PyErr_Fetch(&kind, &error, &traceback);
    {
      WithoutGil release;
      data->session.reset();
    }
    if (PyErr_Occurred() != nullptr) PyErr_WriteUnraisable(nullptr);
    PyErr_Restore(kind, error, traceback);
    delete data;
  }
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef core_methods[] = {
    {"run", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(CoreRun)),
     METH_FASTCALL, "Runs a known kind of step; NotImplemented if unknown."},
    {nullptr, nullptr, 0, nullptr}};

PyTypeObject* CoreType() {
  static PyTypeObject* type = [] {
    PyType_Slot slots[] = {
        {Py_tp_dealloc, reinterpret_cast<void*>(CoreDealloc)},
        {Py_tp_methods, core_methods},
        {0, nullptr}};
    PyType_Spec spec = {"sluice._sluice.SessionCore", sizeof(Core), 0,
                        Py_TPFLAGS_DEFAULT, slots};
    return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  }();
  return type;
}

}  // namespace

void BindFastRun(py::module_& m) {
  m.attr("SessionCore") = py::handle(reinterpret_cast<PyObject*>(CoreType()));
  m.def("open_session", [](const std::string& target, py::object graph,
                           const py::bytes& config) {
    std::unique_ptr<Session> session =
        OpenSession(target, graph.cast<PyGraph&>(), config);
    auto* core = PyObject_New(Core, CoreType());
    core->data = new Data{std::move(session), std::move(graph), {}};
    return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(core));
  });
  py::class_<PreparedStep, std::shared_ptr<PreparedStep>>(m, "PreparedStep");

  // Everything below takes the core as its first argument.
  m.def(
      "session_prepare",
      [](const py::object& core, StepSignature signature,
         const py::bytes& run_options) {
        Session& session = SessionToSync(DataOf(core));
        const RunOptions options = RunOptionsFromBytes(run_options);
        absl::StatusOr<std::shared_ptr<PreparedStep>> step =
            Internal("not prepared");
        {
          WithoutGil release;
          step = session.Prepare(signature, options);
        }
        return Check(std::move(step));
      },
      // The garbage collector frees both in any order.
      py::keep_alive<0, 1>());
  m.def("session_add_plan",
        [](const py::object& core, const py::object& fetches,
           const py::list& feed_keys, std::shared_ptr<PreparedStep> step,
           const py::list& feed_specs, const std::vector<int>& leaf_fetch,
           int num_fetches, bool has_feed_dict) {
          Key key;
          if (!AppendFetches(fetches.ptr(), &key)) return;
          if (has_feed_dict) {
            key.push_back(Tag(4, feed_keys.size()));
            for (const py::handle& feed : feed_keys) key.push_back(feed.ptr());
          }
          auto plan = std::make_shared<FastPlan>();
          plan->step = std::move(step);
          plan->leaf_fetch = leaf_fetch;
          plan->num_fetches = num_fetches;
          for (const py::handle& spec : feed_specs) {
            const auto pair = spec.cast<py::tuple>();
            plan->feeds.push_back({static_cast<DType>(pair[0].cast<int>()),
                                   ShapeFromPython(pair[1])});
          }
          for (PyObject* object : key) {
            if (reinterpret_cast<uintptr_t>(object) & 1) continue;  // A tag.
            Py_INCREF(object);
            plan->kept.push_back(object);
          }
          DataOf(core).plans[key] = std::move(plan);
        });
  m.def("session_drop_plans",
        [](const py::object& core) { DataOf(core).plans.clear(); });
  m.def(
      "session_of",
      [](const py::object& core) -> Session& { return *DataOf(core).session; },
      py::return_value_policy::reference);
  m.def(
      "session_to_sync",
      [](const py::object& core) -> Session& {
        return SessionToSync(DataOf(core));
      },
      py::return_value_policy::reference);
}

}  // namespace sluice::python
