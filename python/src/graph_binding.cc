#include "src/graph_binding.h"

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include "sluice/base/status.h"
#include "sluice/graph/control_flow.h"
#include "sluice/graph/control_flow_def.h"
#include "sluice/graph/functions.h"
#include "sluice/graph/graph_def.h"
#include "sluice/graph/graph_to_function.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/graph/while_loop.h"
#include "sluice/proto/graph.pb.h"
#include "sluice/proto/op_def.pb.h"
#include "src/attr_convert.h"
#include "src/gil.h"
#include "src/status.h"
#include "src/tensor_convert.h"

namespace py = pybind11;

namespace sluice::python {

Output OutputOf(PyGraph& graph, int node, int index) {
  if (node < 0 || node >= graph.graph.num_nodes()) {
    throw py::index_error("no node " + std::to_string(node));
  }
  Node* n = graph.graph.node(node);
  if (index < 0 || index >= n->num_outputs()) {
    throw py::index_error(n->name() + " has no output " +
                          std::to_string(index));
  }
  return n->output(index);
}

std::vector<Output> OutputsOf(PyGraph& graph, const std::vector<int>& flat) {
  std::vector<Output> outputs;
  outputs.reserve(flat.size() / 2);
  for (size_t i = 0; i + 1 < flat.size(); i += 2) {
    outputs.push_back(OutputOf(graph, flat[i], flat[i + 1]));
  }
  return outputs;
}

py::object ShapeToPython(const PartialShape& shape) {
  if (!shape.known_rank()) return py::none();
  py::tuple dims(shape.rank());
  for (int i = 0; i < shape.rank(); ++i) dims[i] = shape.dim(i);
  return dims;
}

PartialShape ShapeFromPython(const py::handle& shape) {
  if (shape.is_none()) return PartialShape();
  std::vector<int64_t> dims;
  for (const py::handle& dim : shape) {
    dims.push_back(dim.is_none() ? -1 : dim.cast<int64_t>());
  }
  return Check(PartialShape::Create(dims));
}

namespace {

Node* NodeOf(PyGraph& graph, int id) {
  if (id < 0 || id >= graph.graph.num_nodes()) {
    throw py::index_error("no node " + std::to_string(id));
  }
  return graph.graph.node(id);
}

std::vector<Node*> NodesOf(PyGraph& graph, const std::vector<int>& ids) {
  std::vector<Node*> nodes;
  for (int id : ids) nodes.push_back(NodeOf(graph, id));
  return nodes;
}

// (id, ((dtype, shape), …)): all that Python needs to make the Operation.
py::tuple Describe(const Node& node) {
  py::tuple outputs(node.num_outputs());
  for (int i = 0; i < node.num_outputs(); ++i) {
    outputs[i] = py::make_tuple(static_cast<int>(node.output_type(i)),
                                ShapeToPython(node.output_shape(i)));
  }
  return py::make_tuple(node.id(), node.name(), node.type(), outputs);
}

py::tuple AddOp(PyGraph& graph, const std::string& op, const std::string& name,
                const std::vector<int>& inputs, const py::dict& attrs,
                const std::vector<int>& controls) {
  NewNode node;
  node.op = op;
  node.name = name;
  node.inputs = OutputsOf(graph, inputs);
  node.control_inputs = NodesOf(graph, controls);
  const OpInfo* info = Check(graph.graph.FindOp(op));
  for (const auto& [key, value] : attrs) {
    const std::string attr = key.cast<std::string>();
    const AttrDef* def = info->def.FindAttr(attr);
    node.attrs.Set(attr,
                   AttrFromPython(def == nullptr ? "" : def->type, value));
  }
  GraphLock lock(graph);
  return Describe(*Check(
      BuildNode(graph.graph, graph.graph.build().current(), std::move(node))));
}

// A Python device function, called with the id of the new node. Its exception
// must come out unchanged, so it is kept as pybind11's own.
DeviceFunction WrapDeviceFunction(py::function function) {
  auto shared = std::make_shared<py::function>(std::move(function));
  return [shared](const Node& node) -> absl::StatusOr<std::string> {
    return CallObject(*shared, py::make_tuple(node.id())).cast<std::string>();
  };
}

DeviceName DeviceFromTuple(const py::tuple& parts) {
  DeviceName name;
  if (!parts[0].is_none()) name.job = parts[0].cast<std::string>();
  if (!parts[1].is_none()) name.replica = parts[1].cast<int>();
  if (!parts[2].is_none()) name.task = parts[2].cast<int>();
  if (!parts[3].is_none()) name.type = parts[3].cast<std::string>();
  if (!parts[4].is_none()) name.id = parts[4].cast<int>();
  return name;
}

BuildContext& Current(PyGraph& graph) { return graph.graph.build().current(); }

// `condition` and `body` get and give lists of (node, index).
py::tuple BuildWhile(PyGraph& graph, const std::vector<int>& variables,
                     const py::list& invariants, const py::object& condition,
                     const py::object& body, int parallel_iterations,
                     bool back_prop, bool swap_memory,
                     const std::vector<int>& maximum_iterations) {
  const auto call = [&graph](const py::object& function) -> LoopFunction {
    return [&graph, &function](const Scope&, const std::vector<Output>& values)
               -> absl::StatusOr<std::vector<Output>> {
      py::list keys;
      for (const Output& v : values) {
        keys.append(py::make_tuple(v.node->id(), v.index));
      }
      const py::object results = CallObject(function, py::make_tuple(keys));
      return OutputsOf(graph, results.cast<std::vector<int>>());
    };
  };
  WhileLoop loop;
  loop.variables = OutputsOf(graph, variables);
  for (const py::handle& shape : invariants) {
    loop.shape_invariants.push_back(ShapeFromPython(shape));
  }
  loop.options.parallel_iterations = parallel_iterations;
  loop.options.back_prop = back_prop;
  loop.options.swap_memory = swap_memory;
  const std::vector<Output> maximum = OutputsOf(graph, maximum_iterations);
  if (!maximum.empty()) loop.options.maximum_iterations = maximum[0];
  loop.condition = call(condition);
  loop.body = call(body);
  // A session must not see the loop before its last edge.
  GraphLock lock(graph);
  const WhileResult result = Check(While(Scope::Detached(graph.graph), loop));
  py::list exits;
  for (const Output& exit : result.values) {
    exits.append(py::make_tuple(exit.node->id(), exit.index));
  }
  return py::make_tuple(
      std::static_pointer_cast<ControlFlowContext>(result.context), exits);
}

void BindScopes(py::class_<PyGraph>& graph) {
  graph
      .def(
          "push",
          [](PyGraph& g) {
            g.saved.push_back(Current(g));
            return g.saved.size();
          },
          "Remembers the current scopes; returns how many are remembered.")
      .def("pop",
           [](PyGraph& g) {
             if (g.saved.empty()) throw std::runtime_error("pop without push");
             Current(g) = std::move(g.saved.back());
             g.saved.pop_back();
           })
      .def("enter_name_scope",
           [](PyGraph& g, const std::string& name) {
             Current(g).name_scope =
                 Check(EnterNameScope(g.graph, Current(g), name));
             return Current(g).name_scope;
           })
      .def("name_scope", [](PyGraph& g) { return Current(g).name_scope; })
      .def("set_name_scope",
           [](PyGraph& g, const std::string& s) { Current(g).name_scope = s; })
      .def("unique_name",
           [](PyGraph& g, const std::string& name, bool mark) {
             return g.graph.build().UniqueName(Current(g).name_scope + name,
                                               mark);
           })
      .def("push_device",
           [](PyGraph& g, const py::tuple& parts) {
             Current(g).PushDevice(DeviceFromTuple(parts));
           })
      .def("push_device_function",
           [](PyGraph& g, py::function f) {
             Current(g).PushDeviceFunction(WrapDeviceFunction(std::move(f)));
           })
      .def("clear_devices", [](PyGraph& g) { Current(g).ClearDevices(); })
      .def("push_control",
           [](PyGraph& g, const std::vector<int>& nodes) {
             Current(g).PushControl(NodesOf(g, nodes));
           })
      .def("clear_control", [](PyGraph& g) { Current(g).ClearControl(); })
      .def("control_inputs",
           [](PyGraph& g) {
             std::vector<int> ids;
             for (const auto& scope : Current(g).controls) {
               for (const Node* node : scope->nodes) ids.push_back(node->id());
             }
             return ids;
           })
      .def("push_colocation",
           [](PyGraph& g, int node, bool replace) {
             Current(g).PushColocation(node < 0 ? nullptr : NodeOf(g, node),
                                       replace);
           })
      .def("push_attr",
           [](PyGraph& g, const std::string& name, const py::object& value) {
             Current(g).attrs.emplace_back(name, AttrFromPython("", value));
           })
      .def("set_container",
           [](PyGraph& g, const std::string& c) { Current(g).container = c; })
      .def("push_gradient_overrides",
           [](PyGraph& g, const std::map<std::string, std::string>& m) {
             auto merged =
                 Current(g).gradient_overrides == nullptr
                     ? std::make_shared<
                           absl::flat_hash_map<std::string, std::string>>()
                     : std::make_shared<
                           absl::flat_hash_map<std::string, std::string>>(
                           *Current(g).gradient_overrides);
             for (const auto& [op, gradient] : m) (*merged)[op] = gradient;
             Current(g).gradient_overrides = merged;
           })
      .def(
          "enter_cond",
          [](PyGraph& g, const std::string& name, int pred_node, int pred_index,
             int pivot_node, int pivot_index, int branch) {
            Current(g).control_flow =
                CondContext::Create(name, OutputOf(g, pred_node, pred_index),
                                    OutputOf(g, pivot_node, pivot_index),
                                    branch, Current(g).control_flow);
          },
          "Nodes built from here on belong to that branch of a cond.")
      .def("cond_value",
           [](PyGraph& g, int node, int index) {
             // A branch result as it is seen inside the branch.
             GraphLock lock(g);
             auto* cond =
                 dynamic_cast<CondContext*>(Current(g).control_flow.get());
             if (cond == nullptr) return std::make_pair(node, index);
             const Output inside =
                 Check(cond->AddResult(OutputOf(g, node, index), Current(g)));
             return std::make_pair(inside.node->id(), inside.index);
           })
      .def("while_loop", BuildWhile)
      .def("control_flow_context",
           [](PyGraph& g) { return Current(g).control_flow; })
      .def("exit_control_flow",
           [](PyGraph& g) {
             if (Current(g).control_flow)
               Current(g).control_flow = Current(g).control_flow->outer();
           })
      .def("in_control_flow",
           [](PyGraph& g) { return Current(g).control_flow != nullptr; });
}

void BindNodes(py::class_<PyGraph>& graph) {
  graph.def("num_nodes", [](PyGraph& g) { return g.graph.num_nodes(); })
      .def("describe",
           [](PyGraph& g, int id) { return Describe(*NodeOf(g, id)); })
      .def("find_node",
           [](PyGraph& g, const std::string& name) {
             const Node* node = g.graph.FindNode(name);
             return node == nullptr ? -1 : node->id();
           })
      .def("node_name",
           [](PyGraph& g, int id) { return NodeOf(g, id)->name(); })
      .def("node_device",
           [](PyGraph& g, int id) { return NodeOf(g, id)->device(); })
      .def("apply_devices",
           [](PyGraph& g, int id) {
             GraphLock lock(g);
             Node* node = NodeOf(g, id);
             if (!node->device().empty()) {
               node->set_device(
                   Check(DeviceName::Parse(node->device())).ToString());
             }
             Check(ApplyDevices(Current(g), node));
           })
      .def("set_node_device",
           [](PyGraph& g, int id, const std::string& d) {
             GraphLock lock(g);
             NodeOf(g, id)->set_device(d);
           })
      .def("node_inputs",
           [](PyGraph& g, int id) {
             std::vector<std::pair<int, int>> inputs;
             for (const Output& in : NodeOf(g, id)->inputs()) {
               inputs.emplace_back(in ? in.node->id() : -1, in.index);
             }
             return inputs;
           })
      .def("node_input_types",
           [](PyGraph& g, int id) {
             std::vector<int> types;
             const Node* node = NodeOf(g, id);
             for (int i = 0; i < node->num_inputs(); ++i)
               types.push_back(static_cast<int>(node->input_type(i)));
             return types;
           })
      .def("node_control_inputs",
           [](PyGraph& g, int id) {
             std::vector<int> ids;
             for (const Node* n : NodeOf(g, id)->control_inputs())
               ids.push_back(n->id());
             return ids;
           })
      .def("node_consumers",
           [](PyGraph& g, int id, int index) {
             std::vector<int> ids;
             for (const OutEdge& e : NodeOf(g, id)->out_edges()) {
               if (e.src_output == index) ids.push_back(e.dst->id());
             }
             return ids;
           })
      .def("node_control_consumers",
           [](PyGraph& g, int id) {
             std::vector<int> ids;
             for (const OutEdge& e : NodeOf(g, id)->out_edges()) {
               if (e.src_output < 0) ids.push_back(e.dst->id());
             }
             return ids;
           })
      .def("node_attr",
           [](PyGraph& g, int id, const std::string& name) -> py::object {
             const AttrValue* value = NodeOf(g, id)->FindAttr(name);
             if (value == nullptr) throw py::key_error(name);
             return AttrToPython(*value);
           })
      .def("node_fetchable",
           [](PyGraph& g, int id) {
             // Only the results of an outermost loop or cond are.
             const Node* node = NodeOf(g, id);
             const ControlFlowContext* flow = node->control_flow().get();
             return flow == nullptr ||
                    (flow->outer() == nullptr && IsExit(*node));
           })
      .def("node_has_attr",
           [](PyGraph& g, int id, const std::string& name) {
             return NodeOf(g, id)->FindAttr(name) != nullptr;
           })
      .def("set_node_attr",
           [](PyGraph& g, int id, const std::string& name,
              const py::object& value) {
             Node* node = NodeOf(g, id);
             const AttrDef* def = node->op().def.FindAttr(name);
             AttrValue attr =
                 AttrFromPython(def == nullptr ? "" : def->type, value);
             GraphLock lock(g);
             node->set_attr(name, std::move(attr));
           })
      .def("erase_node_attr",
           [](PyGraph& g, int id, const std::string& name) {
             GraphLock lock(g);
             NodeOf(g, id)->erase_attr(name);
           })
      .def("add_control_edge",
           [](PyGraph& g, int src, int dst) {
             GraphLock lock(g);
             g.graph.AddControlEdge(NodeOf(g, src), NodeOf(g, dst));
           })
      .def("set_input",
           [](PyGraph& g, int node, int input, int src, int index) {
             GraphLock lock(g);
             Check(g.graph.SetInput(NodeOf(g, node), input,
                                    OutputOf(g, src, index)));
           })
      .def("shape",
           [](PyGraph& g, int id, int index) {
             return ShapeToPython(ShapeOf(OutputOf(g, id, index)));
           })
      .def("handle_shape",
           [](PyGraph& g, int id, int index) {
             const HandleShape& h = NodeOf(g, id)->output_handle(index);
             return py::make_tuple(static_cast<int>(h.dtype),
                                   ShapeToPython(h.shape));
           })
      .def("set_shape",
           [](PyGraph& g, int id, int index, const py::object& shape) {
             const PartialShape refined = ShapeFromPython(shape);
             GraphLock lock(g);
             Check(NodeOf(g, id)->RefineOutputShape(index, refined));
           })
      .def("constant_value",
           [](PyGraph& g, int id, int index) -> py::object {
             std::optional<Tensor> value =
                 ConstantValue(OutputOf(g, id, index));
             if (!value) return py::none();
             PyObject* array = ArrayFromTensorAlways(*std::move(value));
             if (array == nullptr) throw py::error_already_set();
             return py::reinterpret_steal<py::object>(array);
           })
      .def("constant_value_as_shape",
           [](PyGraph& g, int id, int index) {
             const Output output = OutputOf(g, id, index);
             std::optional<PartialShape> shape = ConstantValueAsShape(output);
             return ShapeToPython(shape.value_or(PartialShape()));
           })
      .def("node_def", [](PyGraph& g, int id) {
        pb::NodeDef def;
        NodeToDef(*NodeOf(g, id), &def);
        return py::bytes(def.SerializeAsString());
      });
}

py::dict ImportBytes(
    PyGraph& graph, const py::bytes& bytes, const std::string& prefix,
    bool uniquify, const std::map<std::string, std::pair<int, int>>& input_map,
    const std::vector<std::string>& return_tensors,
    const std::vector<std::string>& return_nodes) {
  pb::GraphDef def;
  if (!def.ParseFromString(std::string(bytes))) {
    throw StatusException(InvalidArgument("These bytes are no GraphDef"));
  }
  ImportOptions options;
  options.prefix = prefix;
  options.uniquify_names = uniquify;
  for (const auto& [name, output] : input_map) {
    options.input_map[name] = OutputOf(graph, output.first, output.second);
  }
  options.return_tensors = return_tensors;
  options.return_nodes = return_nodes;
  ImportResults results;
  GraphLock lock(graph);
  Check(ImportGraphDef(def, options, &graph.graph, &results));
  py::dict out;
  py::list tensors, nodes;
  for (const Output& t : results.return_tensors)
    tensors.append(py::make_tuple(t.node->id(), t.index));
  for (const Node* n : results.return_nodes) nodes.append(n->id());
  out["tensors"] = tensors;
  out["nodes"] = nodes;
  out["first"] = results.first_node;
  return out;
}

// The graph as a FunctionDef.
py::bytes ToFunction(PyGraph& graph, const std::string& name,
                     const std::vector<int>& inputs,
                     const std::vector<int>& outputs,
                     const std::vector<std::string>& output_names,
                     const py::dict& attrs) {
  FunctionParts parts{name,
                      OutputsOf(graph, inputs),
                      OutputsOf(graph, outputs),
                      output_names,
                      {}};
  for (const auto& [key, value] : attrs) {
    parts.attrs.Set(key.cast<std::string>(), AttrFromPython("", value));
  }
  pb::FunctionDef def;
  GraphLock lock(graph);
  Check(GraphToFunction(graph.graph, parts, &def));
  return py::bytes(def.SerializeAsString());
}

void AddFunctions(PyGraph& graph, const py::bytes& bytes) {
  pb::FunctionDefLibrary library;
  if (!library.ParseFromString(std::string(bytes))) {
    throw StatusException(
        InvalidArgument("These bytes are no FunctionDefLibrary"));
  }
  GraphLock lock(graph);
  Check(graph.graph.functions().Add(library));
}

}  // namespace

void BindContexts(py::module_& m) {
  py::class_<ControlFlowContext, std::shared_ptr<ControlFlowContext>>(
      m, "ControlFlowContext")
      .def_property_readonly("name", &ControlFlowContext::name)
      .def_property_readonly("outer",
                             [](ControlFlowContext& c) { return c.outer(); })
      .def("to_bytes", [](const ControlFlowContext& c) {
        pb::ControlFlowContextDef def;
        ControlFlowToProto(c, &def);
        return py::bytes(def.SerializeAsString());
      });
  m.def("import_control_flow",
        [](PyGraph& g, const py::bytes& bytes, const std::string& scope) {
          pb::ControlFlowContextDef def;
          if (!def.ParseFromString(std::string(bytes))) {
            throw StatusException(
                InvalidArgument("These bytes are no ControlFlowContextDef"));
          }
          GraphLock lock(g);
          return Check(ControlFlowFromProto(def, scope, &g.graph));
        });
}

void BindGraph(py::module_& m) {
  BindContexts(m);
  py::class_<PyGraph> graph(m, "GraphCore");
  graph.def(py::init<>())
      .def("add_op", AddOp, py::arg("op"), py::arg("name"), py::arg("inputs"),
           py::arg("attrs"), py::arg("controls"))
      .def("set_finalized",
           [](PyGraph& g, bool finalized) {
             GraphLock lock(g);
             g.graph.build().finalized = finalized;
           })
      .def("finalized", [](PyGraph& g) { return g.graph.build().finalized; })
      .def(
          "graph_def",
          [](PyGraph& g, int from, bool shapes) {
            pb::GraphDef def;
            ExportOptions options;
            options.from_node = from;
            options.add_shapes = shapes;
            ExportGraphDef(g.graph, options, &def);
            return py::bytes(def.SerializeAsString());
          },
          py::arg("from_node") = 0, py::arg("add_shapes") = false)
      .def("import_graph_def", ImportBytes)
      .def("to_function", ToFunction)
      .def("add_functions", AddFunctions)
      .def("has_function", [](PyGraph& g, const std::string& name) {
        return g.graph.functions().Find(name) != nullptr;
      });
  BindScopes(graph);
  BindNodes(graph);

  m.def("op_names", [] { return OpRegistry::Global().Names(); });
  m.def("op_def", [](const std::string& name) -> py::object {
    const OpInfo* info = OpRegistry::Global().Find(name);
    if (info == nullptr) return py::none();
    pb::OpDef def;
    OpDefToProto(info->def, &def);
    return py::bytes(def.SerializeAsString());
  });
  // What building a node needs to know of an op, without a message:
  // (inputs, outputs, attrs), each a tuple of tuples.
  m.def("op_signature", [](const std::string& name) -> py::object {
    const OpInfo* info = OpRegistry::Global().Find(name);
    if (info == nullptr) return py::none();
    const auto args = [](const std::vector<ArgDef>& defs) {
      py::tuple out(defs.size());
      for (size_t i = 0; i < defs.size(); ++i) {
        const ArgDef& a = defs[i];
        out[i] = py::make_tuple(a.name, static_cast<int>(a.type), a.type_attr,
                                a.number_attr, a.type_list_attr, a.is_ref);
      }
      return out;
    };
    py::tuple attrs(info->def.attrs.size());
    for (size_t i = 0; i < info->def.attrs.size(); ++i) {
      const AttrDef& a = info->def.attrs[i];
      py::list allowed;
      for (DType t : a.allowed.types) allowed.append(static_cast<int>(t));
      for (const std::string& s : a.allowed.strings) allowed.append(s);
      attrs[i] = py::make_tuple(
          a.name, a.type, a.default_value.has_value(),
          a.default_value ? AttrToPython(*a.default_value) : py::none(),
          allowed);
    }
    return py::make_tuple(args(info->def.inputs), args(info->def.outputs),
                          attrs, info->def.stateful);
  });
  m.def("dtype_name", [](int t) { return DTypeName(static_cast<DType>(t)); });
  m.def("parse_device", [](const std::string& text) {
    const DeviceName n = Check(DeviceName::Parse(text));
    return py::make_tuple(n.job, n.replica, n.task, n.type, n.id);
  });
}

}  // namespace sluice::python
