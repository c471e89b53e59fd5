#include "sluice/passes/inline_functions.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "sluice/autodiff/between.h"
#include "sluice/autodiff/gradients.h"
#include "sluice/autodiff/slices.h"
#include "sluice/base/status.h"
#include "sluice/graph/frames.h"
#include "sluice/graph/function_body.h"
#include "sluice/graph/functions.h"
#include "sluice/graph/scope.h"

namespace sluice {
namespace {

// Functions that call each other twice make bodies twice as large each time.
// This many take a second and half a gigabyte.
constexpr int64_t kMostNodes = 1 << 18;
// Inlining is recursive, and the stack has an end.
constexpr size_t kDeepestCalls = 200;

// The function that a call runs.
FunctionName FunctionOf(const Node& call) {
  if (const auto* f = call.attrs().Find<FunctionName>("f");
      f != nullptr && OpRegistry::Global().Find(call.type()) != nullptr) {
    return *f;
  }
  return {call.type(), std::make_shared<AttrMap>(call.attrs())};
}

absl::StatusOr<Node*> AddArg(Graph& graph, DType type, size_t index) {
  return graph.AddNode(
      {StrCat("grad_arg_", index),
       "_Arg",
       {},
       {},
       {{"T", BaseType(type)}, {"index", static_cast<int64_t>(index)}},
       ""});
}

// The gradients of the arguments, given those of the results, which become
// arguments too.
absl::StatusOr<FunctionBody> DifferentiateBody(FunctionBody body) {
  std::vector<Output> xs, ys;
  std::vector<Grad> grad_ys;
  for (Node* arg : body.args) xs.push_back(arg->output(0));
  for (const Output& result : body.results) {
    SLUICE_ASSIGN_OR_RETURN(
        Node * arg, AddArg(*body.graph, TypeOf(result), body.args.size()));
    body.args.push_back(arg);
    if (!IsTrainable(TypeOf(result))) continue;
    ys.push_back(result);
    grad_ys.push_back(Grad(arg->output(0)));
  }
  const Scope scope(*body.graph);
  std::vector<Grad> dx(xs.size());
  if (!ys.empty()) {
    SLUICE_ASSIGN_OR_RETURN(dx, AddGradients(scope, ys, xs, grad_ys));
  }
  body.results.clear();
  for (size_t i = 0; i < xs.size(); ++i) {
    body.results.push_back(dx[i] ? Densify(scope, dx[i])
                                 : scope.Add("ZerosLike", {xs[i]}));
  }
  SLUICE_RETURN_IF_ERROR(scope.status());
  return body;
}

std::string TypesText(std::span<const DType> types) {
  std::vector<std::string> names;
  for (DType type : types) names.push_back(DTypeName(BaseType(type)));
  return StrCat("(", absl::StrJoin(names, ", "), ")");
}

bool SameTypes(std::span<const DType> a, std::span<const DType> b) {
  return std::ranges::equal(a, b, {}, BaseType, BaseType);
}

// Whether the body fits the call: what goes in and what comes out.
absl::Status CheckFits(const Node& call, const FunctionBody& body,
                       const std::string& function) {
  std::vector<DType> given, taken, results;
  for (int i = 0; i < call.num_inputs(); ++i) {
    given.push_back(call.input_type(i));
  }
  for (const Node* arg : body.args) taken.push_back(arg->output_type(0));
  for (const Output& result : body.results) results.push_back(TypeOf(result));
  if (!SameTypes(given, taken)) {
    return InvalidArgument("Function ", function, " takes ", TypesText(taken),
                           ", but is given ", TypesText(given));
  }
  if (!SameTypes(call.output_types(), results)) {
    return InvalidArgument("Function ", function, " returns ",
                           TypesText(results), ", but ",
                           TypesText(call.output_types()), " is wanted");
  }
  return absl::OkStatus();
}

absl::StatusOr<FunctionBody> BodyOf(const FunctionLibrary& functions,
                                    const FunctionName& function,
                                    bool gradient) {
  const AttrMap none;
  const AttrMap& attrs = function.attrs == nullptr ? none : *function.attrs;
  const std::string* declared =
      gradient ? functions.FindGradient(function.name) : nullptr;
  if (declared != nullptr) {
    return InstantiateFunction(functions, *declared, attrs);
  }
  SLUICE_ASSIGN_OR_RETURN(FunctionBody body,
                          InstantiateFunction(functions, function.name, attrs));
  if (gradient) return DifferentiateBody(std::move(body));
  return body;
}

// The nodes that results or side effects need, by id.
std::vector<bool> NeededNodes(const FunctionBody& body) {
  std::vector<bool> needed(body.graph->num_nodes());
  std::vector<const Node*> stack;
  const auto need = [&](const Node* node) {
    if (needed[node->id()]) return;
    needed[node->id()] = true;
    stack.push_back(node);
  };
  for (const Output& result : body.results) need(result.node);
  for (const Node* node : body.control_results) need(node);
  for (int id = 0; id < body.graph->num_nodes(); ++id) {
    const Node* node = body.graph->node(id);
    if (node->op().def.stateful && node->type() != "_Arg") need(node);
  }
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    for (const Output& input : node->inputs()) {
      if (input) need(input.node);
    }
    for (const Node* control : node->control_inputs()) need(control);
  }
  return needed;
}

// A body, and what all calls of it need to know.
struct PreparedBody {
  FunctionName function;
  bool gradient;
  FunctionBody body;
  std::vector<bool> needed;  // By node id, as the next one.
  std::vector<bool> run_once;
};

// What there is in the new graph for a node of an old one.
struct Stand {
  Node* node = nullptr;  // The copy, or null for a call. All else is of calls.
  std::vector<Output> outputs;
  std::vector<Node*> args;  // What the inputs go to.
  Node* start = nullptr;    // A NoOp that waits for all inputs; may be null.
  std::vector<Node*> ends;  // What those wait for who wait for the call.
};

// The nodes of one body, or of the whole graph.
struct Level {
  const Graph& graph;
  const PreparedBody* body = nullptr;  // Null: the whole graph.
  std::string prefix = {};             // Of names.
  std::string device = {};
  std::vector<Node*> args = {};
  Node* start = nullptr;  // What nodes without inputs wait for; may be null.
  std::vector<std::string> functions = {};  // Those that are being inlined.
  std::vector<Stand> stands = {};

  bool Needs(const Node& node) const {
    return body == nullptr || body->needed[node.id()];
  }
  Output Mapped(Output output) const {
    const Stand& stand = stands[output.node->id()];
    return stand.node != nullptr ? Output{stand.node, output.index}
                                 : stand.outputs[output.index];
  }
};

// By node id: whether a node runs once whenever the body does, that is neither
// in a loop nor in a branch of a cond.
absl::StatusOr<std::vector<bool>> RunOnce(const Graph& graph) {
  SLUICE_ASSIGN_OR_RETURN(const LoopFrames frames, FindFrames(graph));
  std::vector<int> branches(graph.num_nodes());  // That its outputs are in.
  for (const Node* node : frames.order) {
    int& depth = branches[node->id()];
    const bool loop = frames.OfOutputs(*node) != 0;
    for (const Output& input : node->inputs()) {
      if (IsMerge(*node) && loop && !IsEnter(*input.node)) continue;
      depth = std::max(depth, branches[input.node->id()]);
    }
    for (const Node* control : node->control_inputs()) {
      depth = std::max(depth, branches[control->id()]);
    }
    if (IsSwitch(*node)) ++depth;
    if ((IsMerge(*node) && !loop) || IsExit(*node)) {
      depth = std::max(depth - 1, 0);
    }
  }
  std::vector<bool> once(graph.num_nodes());
  for (int id = 0; id < graph.num_nodes(); ++id) {
    once[id] = branches[id] == 0 && frames.frame[id] == 0 &&
               frames.OfOutputs(*graph.node(id)) == 0;
  }
  return once;
}

class Inliner {
 public:
  Inliner(const Graph& graph, int64_t most_nodes)
      : graph_(graph),
        most_nodes_(most_nodes),
        out_(std::make_unique<Graph>()) {
    out_->versions() = graph.versions();
  }

  absl::StatusOr<std::unique_ptr<Graph>> Run() {
    Level top{graph_};
    SLUICE_RETURN_IF_ERROR(CopyLevel(top));
    return std::move(out_);
  }

 private:
  absl::Status CopyLevel(Level& level) {
    const Graph& graph = level.graph;
    level.stands.resize(graph.num_nodes());
    for (int id = 0; id < graph.num_nodes(); ++id) {
      const Node& node = *graph.node(id);
      if (!level.Needs(node)) continue;
      SLUICE_RETURN_IF_ERROR(CheckSize());
      if (level.body != nullptr && node.type() == "_Arg") {
        level.stands[id].node = level.args[node.attr<int64_t>("index")];
      } else if (CallsFunction(node)) {
        SLUICE_RETURN_IF_ERROR(Expand(level, node));
      } else {
        level.stands[id].node = Copy(level, node);
      }
    }
    for (int id = 0; id < graph.num_nodes(); ++id) {
      const Node& node = *graph.node(id);
      if (level.Needs(node) &&
          (level.body == nullptr || node.type() != "_Arg")) {
        Connect(level, node);
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckSize() const {
    if (out_->num_nodes() > most_nodes_) {
      return OverLimit(StrCat("A graph whose functions make more than ",
                              most_nodes_, " nodes"),
                       "graph_nodes", most_nodes_);
    }
    if (out_->num_nodes() > kMostNodes) {
      return ResourceExhausted("The functions of this graph make more than ",
                               kMostNodes, " nodes");
    }
    return absl::OkStatus();
  }

  Node* Copy(const Level& level, const Node& node) {
    Node* copy =
        Add(node, StrCat(level.prefix, node.name()),
            level.body == nullptr ? node.assigned_device() : level.device);
    if (const auto* frame = node.attrs().Find<std::string>("frame_name")) {
      // Two calls of a loop must not share its iterations.
      copy->set_attr("frame_name", StrCat(level.prefix, *frame));
    }
    return copy;
  }

  // A copy of `like` that is called `name`, or like that.
  Node* Add(const Node& like, std::string name, const std::string& device) {
    for (int i = 1; out_->FindNode(name) != nullptr ||
                    (name != like.name() && graph_.FindNode(name) != nullptr);
         ++i) {
      name = StrCat(name, "_", i);
    }
    Node* node = out_->CopyNode(like, std::move(name));
    node->set_assigned_device(device);
    return node;
  }

  absl::Status Expand(Level& level, const Node& call) {
    const absl::Status status = ExpandCall(level, call);
    if (status.ok()) return status;
    const std::string where = StrCat("{{node ", level.prefix, call.name());
    if (ToStd(status.message()).find(where) != std::string_view::npos ||
        ToStd(status.message()).find("[[{{node ") != std::string_view::npos) {
      return status;  // An inner call has said it.
    }
    return WithMessage(status,
                       StrCat(status.message(), "\n\t [[", where, "}}]]"));
  }

  absl::Status ExpandCall(Level& level, const Node& call) {
    const std::string function =
        StrCat(call.type() == "SymbolicGradient" ? "gradient of " : "",
               FunctionOf(call).name);
    std::vector<std::string> functions = level.functions;
    functions.push_back(function);
    if (std::ranges::count(functions, function) > 1) {
      return InvalidArgument("Function ", function, " calls itself (",
                             absl::StrJoin(functions, " -> "),
                             "); that is not supported");
    }
    if (functions.size() > kDeepestCalls) {
      return ResourceExhausted("More than ", kDeepestCalls,
                               " functions call one another");
    }
    SLUICE_ASSIGN_OR_RETURN(const PreparedBody* prepared, Prepare(call));
    const FunctionBody& body = prepared->body;
    SLUICE_RETURN_IF_ERROR(CheckFits(call, body, function));
    Level inner{*body.graph, prepared, StrCat(level.prefix, call.name(), "/")};
    inner.device =
        level.body == nullptr ? call.assigned_device() : level.device;
    inner.functions = std::move(functions);
    Stand& stand = level.stands[call.id()];
    SLUICE_RETURN_IF_ERROR(AddEntry(level, call, &inner, &stand));
    SLUICE_RETURN_IF_ERROR(CopyLevel(inner));
    for (const Output& result : body.results) {
      stand.outputs.push_back(inner.Mapped(result));
    }
    stand.ends = EndsOf(inner);
    return absl::OkStatus();
  }

  // The body that a call runs; made once for all calls alike.
  absl::StatusOr<const PreparedBody*> Prepare(const Node& call) {
    const FunctionName function = FunctionOf(call);
    const bool gradient = call.type() == "SymbolicGradient";
    auto& same_name = prepared_[function.name];
    for (const auto& known : same_name) {
      if (known->gradient == gradient && known->function == function) {
        return known.get();
      }
    }
    SLUICE_ASSIGN_OR_RETURN(FunctionBody body,
                            BodyOf(graph_.functions(), function, gradient));
    std::vector<bool> needed = NeededNodes(body);
    SLUICE_ASSIGN_OR_RETURN(std::vector<bool> run_once, RunOnce(*body.graph));
    same_name.push_back(std::make_unique<PreparedBody>(
        PreparedBody{function, gradient, std::move(body), std::move(needed),
                     std::move(run_once)}));
    return same_name.back().get();
  }

  // The nodes that take the inputs of a call.
  absl::Status AddEntry(const Level& level, const Node& call, Level* inner,
                        Stand* stand) {
    const auto add = [&](std::string_view name, const Node* like) {
      return Add(*like, StrCat(inner->prefix, name), inner->device);
    };
    for (int i = 0; i < call.num_inputs(); ++i) {
      SLUICE_ASSIGN_OR_RETURN(const Node* identity,
                              IdentityOf(BaseType(call.input_type(i))));
      stand->args.push_back(add(StrCat("_arg_", i), identity));
    }
    inner->args = stand->args;
    inner->start = level.start;
    if (call.num_inputs() == 1 && call.control_inputs().empty()) {
      inner->start = stand->args[0];
    } else if (call.num_inputs() + call.control_inputs().size() > 0) {
      SLUICE_ASSIGN_OR_RETURN(const Node* no_op, TheNoOp());
      stand->start = add("_start", no_op);
      for (Node* arg : stand->args) out_->AddControlEdge(stand->start, arg);
      inner->start = stand->start;
    }
    return absl::OkStatus();
  }

  // What must be over before the call is. Nothing can wait for side effects in
  // a branch that may not be taken; those before its end have happened.
  static std::vector<Node*> EndsOf(const Level& level) {
    std::vector<Node*> ends;
    const auto add = [&](const Node* node) {
      const Stand& stand = level.stands[node->id()];
      if (stand.node != nullptr) {
        ends.push_back(stand.node);
      } else {
        ends.insert(ends.end(), stand.ends.begin(), stand.ends.end());
      }
    };
    for (const Output& result : level.body->body.results) add(result.node);
    for (const Node* node : level.body->body.control_results) add(node);
    for (int id = 0; id < level.graph.num_nodes(); ++id) {
      const Node& node = *level.graph.node(id);
      if (node.op().def.stateful && level.body->run_once[id] &&
          level.Needs(node)) {
        add(&node);
      }
    }
    for (Node* arg : level.args) ends.push_back(arg);
    if (level.start != nullptr) ends.push_back(level.start);
    return ends;
  }

  void Connect(const Level& level, const Node& node) {
    const Stand& stand = level.stands[node.id()];
    for (int i = 0; i < node.num_inputs(); ++i) {
      if (!node.input(i)) continue;
      const Output source = level.Mapped(node.input(i));
      if (stand.node != nullptr) {
        out_->Connect(source, stand.node, i);
        continue;
      }
      out_->Connect(source, stand.args[i], 0);
      if (stand.start != nullptr)
        out_->AddControlEdge(source.node, stand.start);
    }
    Node* const waits = stand.node != nullptr ? stand.node : stand.start;
    for (const Node* control : node.control_inputs()) {
      const Stand& before = level.stands[control->id()];
      if (before.node != nullptr) out_->AddControlEdge(before.node, waits);
      for (Node* end : before.ends) out_->AddControlEdge(end, waits);
    }
    if (level.start != nullptr && stand.node != nullptr &&
        node.num_inputs() == 0 && node.control_inputs().empty()) {
      out_->AddControlEdge(level.start, stand.node);
    }
  }

  // Nodes to make copies of.
  absl::StatusOr<const Node*> IdentityOf(DType type) {
    auto [it, added] = identities_.try_emplace(type, nullptr);
    if (added) {
      const std::string name = DTypeName(type);
      SLUICE_ASSIGN_OR_RETURN(
          Node * source,
          patterns_.AddNode(
              {name, "Placeholder", {}, {}, {{"dtype", type}}, ""}));
      SLUICE_ASSIGN_OR_RETURN(it->second,
                              patterns_.AddNode({StrCat(name, "_identity"),
                                                 "Identity",
                                                 {source->output(0)},
                                                 {},
                                                 {},
                                                 ""}));
    }
    return it->second;
  }
  absl::StatusOr<const Node*> TheNoOp() {
    if (no_op_ == nullptr) {
      SLUICE_ASSIGN_OR_RETURN(
          no_op_, patterns_.AddNode({"no_op", "NoOp", {}, {}, {}, ""}));
    }
    return no_op_;
  }

  const Graph& graph_;
  const int64_t most_nodes_;
  std::unique_ptr<Graph> out_;
  std::map<std::string, std::vector<std::unique_ptr<PreparedBody>>> prepared_;
  Graph patterns_;
  std::map<DType, const Node*> identities_;
  const Node* no_op_ = nullptr;
};

}  // namespace

bool HasFunctionCalls(const Graph& graph) {
  for (int id = 0; id < graph.num_nodes(); ++id) {
    if (CallsFunction(*graph.node(id))) return true;
  }
  return false;
}

absl::StatusOr<std::unique_ptr<Graph>> InlineFunctions(const Graph& graph,
                                                       int64_t most_nodes) {
  return Inliner(graph, most_nodes).Run();
}

}  // namespace sluice
