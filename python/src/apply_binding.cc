// Python's optimizers over sluice/train/apply.h: one function that knows every
// update by its name. What it builds stands under the graph's current context,
// which Python's `with` blocks made.
#include "src/apply_binding.h"

#include <pybind11/stl.h>

#include "sluice/train/apply.h"
#include "src/graph_binding.h"
#include "src/status.h"

namespace py = pybind11;

namespace sluice::python {
namespace {

Output OutputFrom(PyGraph& graph, const py::handle& pair) {
  const auto ids = pair.cast<std::pair<int, int>>();
  return OutputOf(graph, ids.first, ids.second);
}

// (ref or handle, value).
Variable VariableFrom(PyGraph& graph, const py::handle& pair) {
  const auto parts = pair.cast<py::tuple>();
  Variable::Nodes nodes;
  nodes.ref = OutputFrom(graph, parts[0]);
  nodes.value = OutputFrom(graph, parts[1]);
  return Variable(nodes);
}

// A tensor or a number.
Input InputFrom(PyGraph& graph, const py::handle& value) {
  if (py::isinstance<py::tuple>(value)) return OutputFrom(graph, value);
  return value.cast<double>();
}

struct Call {
  Scope scope;
  std::vector<Variable> v;  // The variable, its slots, what else it reads.
  std::vector<Input> p;     // Hyper-parameters.
  Grad grad;
  bool locking;
  bool nesterov;

  Output at(size_t i) const { return p.at(i).output(); }
  AdamSlots slots() const { return {v.at(1), v.at(2)}; }
  AdamParameters adam() const {
    return {v.at(3), v.size() > 4 ? v[4] : Variable(), at(0), at(1), at(2),
            at(3)};
  }
};

using ApplyFn = Node* (*)(const Call&);
struct NamedApply {
  std::string_view name;
  ApplyFn apply;
};

constexpr NamedApply kUpdates[] = {
    {"GradientDescent",
     [](const Call& c) {
       return ApplyGradientDescent(c.scope, c.v.at(0), {c.at(0), c.p.at(1)},
                                   c.grad, c.locking);
     }},
    {"Momentum",
     [](const Call& c) {
       return ApplyMomentum(c.scope, c.v.at(0), c.v.at(1),
                            {c.at(0), c.at(1), c.nesterov}, c.grad, c.locking);
     }},
    {"Adagrad",
     [](const Call& c) {
       return ApplyAdagrad(c.scope, c.v.at(0), c.v.at(1), c.at(0), c.grad,
                           c.locking);
     }},
    {"AdagradDA",
     [](const Call& c) {
       return ApplyAdagradDa(c.scope, c.v.at(0), c.v.at(1), c.v.at(2),
                             {c.at(0), c.p.at(1), c.p.at(2), c.at(3)}, c.grad,
                             c.locking);
     }},
    {"Adadelta",
     [](const Call& c) {
       return ApplyAdadelta(c.scope, c.v.at(0), c.v.at(1), c.v.at(2),
                            {c.at(0), c.at(1), c.at(2)}, c.grad, c.locking);
     }},
    {"Adam",
     [](const Call& c) {
       return ApplyAdam(c.scope, c.v.at(0), c.slots(), c.adam(), c.grad,
                        c.locking);
     }},
    {"LazyAdam",
     [](const Call& c) {
       return ApplyLazyAdam(c.scope, c.v.at(0), c.slots(), c.adam(), c.grad,
                            c.locking);
     }},
    {"Nadam",
     [](const Call& c) {
       return ApplyNadam(c.scope, c.v.at(0), c.slots(), c.adam(), c.grad,
                         c.locking);
     }},
    {"AdaMax",
     [](const Call& c) {
       return ApplyAdaMax(c.scope, c.v.at(0), c.slots(), c.adam(), c.grad,
                          c.locking);
     }},
    {"RMSProp",
     [](const Call& c) {
       const Variable mean = c.v.size() > 3 ? c.v[3] : Variable();
       return ApplyRmsProp(c.scope, c.v.at(0), c.v.at(1), c.v.at(2), mean,
                           {c.at(0), c.at(1), c.at(2), c.at(3)}, c.grad,
                           c.locking);
     }},
    {"Ftrl",
     [](const Call& c) {
       const Output shrinkage = c.p.size() > 4 ? c.at(4) : Output();
       return ApplyFtrl(c.scope, c.v.at(0), c.v.at(1), c.v.at(2),
                        {c.at(0), c.at(1), c.at(2), c.at(3), shrinkage}, c.grad,
                        c.locking);
     }},
    {"ProximalGradientDescent",
     [](const Call& c) {
       return ApplyProximalGradientDescent(
           c.scope, c.v.at(0), {c.at(0), c.at(1), c.at(2)}, c.grad, c.locking);
     }},
    {"ProximalAdagrad",
     [](const Call& c) {
       return ApplyProximalAdagrad(c.scope, c.v.at(0), c.v.at(1),
                                   {c.at(0), c.at(1), c.at(2)}, c.grad,
                                   c.locking);
     }},
    {"AddSign",
     [](const Call& c) {
       SignParameters p;
       p.rate = c.at(0), p.sign_decay = c.at(1), p.beta = c.at(2);
       p.alpha = c.at(3);
       return ApplyAddSign(c.scope, c.v.at(0), c.v.at(1), p, c.grad, c.locking);
     }},
    {"PowerSign",
     [](const Call& c) {
       SignParameters p;
       p.rate = c.at(0), p.sign_decay = c.at(1), p.beta = c.at(2);
       p.log_base = c.at(3);
       return ApplyPowerSign(c.scope, c.v.at(0), c.v.at(1), p, c.grad,
                             c.locking);
     }},
};

ApplyFn FindUpdate(std::string_view name) {
  for (const NamedApply& update : kUpdates) {
    if (update.name == name) return update.apply;
  }
  throw py::key_error(std::string(name));
}

int IdOf(const Scope& scope, const Node* node) {
  Check(scope.status());
  return node->id();
}

int ApplyUpdate(PyGraph& graph, const std::string& name,
                const py::list& variables, const py::list& parameters,
                const py::tuple& grad, bool use_locking, bool nesterov) {
  const ApplyFn apply = FindUpdate(name);
  Call call = {Scope::Detached(graph.graph), {}, {}, {}, use_locking, nesterov};
  for (const py::handle& v : variables) {
    call.v.push_back(VariableFrom(graph, v));
  }
  for (const py::handle& p : parameters) {
    call.p.push_back(InputFrom(graph, p));
  }
  call.grad = OutputFrom(graph, grad[0]);
  if (!grad[1].is_none()) call.grad.indices = OutputFrom(graph, grad[1]);
  if (!grad[2].is_none()) call.grad.dense_shape = OutputFrom(graph, grad[2]);
  GraphLock lock(graph);
  return IdOf(call.scope, apply(call));
}

}  // namespace

void BindApply(py::module_& m) {
  // `grad` is (values, indices or None, dense shape or None). The id of the
  // node to wait for.
  m.def("apply_update", ApplyUpdate);

  // (values, indices) with every index once.
  m.def("sum_repeated_rows",
        [](PyGraph& graph, const py::tuple& values, const py::tuple& indices) {
          const Scope scope = Scope::Detached(graph.graph);
          const Grad grad = Grad::Slices(OutputFrom(graph, values),
                                         OutputFrom(graph, indices), Output());
          GraphLock lock(graph);
          const Grad sums = SumRepeatedRows(scope, grad);
          Check(scope.status());
          return py::make_tuple(
              py::make_tuple(sums.values.node->id(), sums.values.index),
              py::make_tuple(sums.indices.node->id(), sums.indices.index));
        });

  // After the updates: power = power * beta, for one or two of them.
  m.def("advance_powers", [](PyGraph& graph, const std::vector<int>& updates,
                             const py::list& powers, const py::list& betas,
                             bool use_locking) {
    const Scope scope = Scope::Detached(graph.graph);
    std::vector<Node*> nodes;
    for (int id : updates) {
      if (id < 0 || id >= graph.graph.num_nodes()) {
        throw py::index_error("no node " + std::to_string(id));
      }
      nodes.push_back(graph.graph.node(id));
    }
    AdamParameters parameters;
    parameters.beta1_power = VariableFrom(graph, powers[0]);
    parameters.beta1 = OutputFrom(graph, betas[0]);
    if (powers.size() > 1) {
      parameters.beta2_power = VariableFrom(graph, powers[1]);
      parameters.beta2 = OutputFrom(graph, betas[1]);
    }
    GraphLock lock(graph);
    std::vector<int> ids;
    for (Node* node : AdvancePowers(scope, nodes, parameters, use_locking)) {
      ids.push_back(IdOf(scope, node));
    }
    return ids;
  });
}

}  // namespace sluice::python
