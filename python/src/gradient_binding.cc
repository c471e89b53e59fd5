#include "src/gradient_binding.h"

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include "sluice/autodiff/gradients.h"
#include "src/gil.h"
#include "src/graph_binding.h"
#include "src/status.h"

namespace py = pybind11;

namespace sluice::python {
namespace {

// None, (node, index) or ((values), (indices), (dense_shape) or None).
py::object GradToPython(const Grad& grad) {
  const auto output = [](Output o) -> py::object {
    if (!o) return py::none();
    return py::make_tuple(o.node->id(), o.index);
  };
  if (!grad) return py::none();
  if (!grad.is_slices()) return output(grad.values);
  return py::make_tuple(output(grad.values), output(grad.indices),
                        output(grad.dense_shape));
}

Grad GradFromPython(PyGraph& graph, const py::handle& value) {
  if (value.is_none()) return Grad();
  const auto tuple = value.cast<py::tuple>();
  const auto output = [&](const py::handle& h) {
    if (h.is_none()) return Output();
    const auto pair = h.cast<std::pair<int, int>>();
    return OutputOf(graph, pair.first, pair.second);
  };
  if (tuple.size() == 2) return output(tuple);
  return Grad::Slices(output(tuple[0]), output(tuple[1]), output(tuple[2]));
}

}  // namespace

void BindGradients(py::module_& m) {
  // `callback(op id, [grad, …])` returns None if it has no gradient for the op,
  // else a list of gradients. Its exceptions come out unchanged.
  m.def("add_gradients",
        [](PyGraph& graph, const std::vector<int>& ys,
           const std::vector<int>& xs, const py::list& grad_ys,
           const std::string& name, bool colocate, bool gate, int aggregation,
           const std::vector<int>& stop, bool zero_for_unconnected,
           const py::object& callback, const py::object& not_differentiable) {
          GradientOptions options;
          options.name = name;
          options.colocate_with_ops = colocate;
          options.gate = gate;
          options.aggregation = static_cast<AggregationMethod>(aggregation);
          options.stop_gradients = OutputsOf(graph, stop);
          options.zero_for_unconnected = zero_for_unconnected;
          if (!callback.is_none()) {
            options.callback = [&](const Node& op, std::span<const Grad> dy,
                                   Scope&) -> std::optional<Grads> {
              py::list gradients;
              for (const Grad& g : dy) gradients.append(GradToPython(g));
              const py::object result =
                  CallObject(callback, py::make_tuple(op.id(), gradients));
              if (result.is_none()) return std::nullopt;
              std::vector<Grad> grads;
              for (const py::handle& g : result)
                grads.push_back(GradFromPython(graph, g));
              return Grads(std::move(grads));
            };
          }
          if (!not_differentiable.is_none()) {
            options.not_differentiable = [&](const Node& op) {
              return CallObject(not_differentiable, py::make_tuple(op.id()))
                  .cast<bool>();
            };
          }
          std::vector<Grad> starts;
          for (const py::handle& g : grad_ys)
            starts.push_back(GradFromPython(graph, g));
          const std::vector<Output> outputs = OutputsOf(graph, ys);
          const std::vector<Output> inputs = OutputsOf(graph, xs);
          GraphLock lock(graph);
          const std::vector<Grad> grads = Check(AddGradients(
              Scope::Detached(graph.graph), outputs, inputs, starts, options));
          py::list result;
          for (const Grad& g : grads) result.append(GradToPython(g));
          return result;
        });
}

}  // namespace sluice::python
