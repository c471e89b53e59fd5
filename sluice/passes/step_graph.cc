#include "sluice/passes/step_graph.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_join.h"
#include "sluice/base/status.h"
#include "sluice/graph/functions.h"

namespace sluice {

AttrMap TransferAttrs(std::string_view tensor_name, std::string_view src_device,
                      uint64_t src_incarnation, std::string_view dst_device,
                      bool client_terminated) {
  AttrMap attrs;
  attrs.Set("tensor_name", tensor_name);
  attrs.Set("send_device", src_device);
  attrs.Set("send_device_incarnation", static_cast<int64_t>(src_incarnation));
  attrs.Set("recv_device", dst_device);
  attrs.Set("client_terminated", client_terminated);
  return attrs;
}

namespace {

using TensorKey = std::pair<const Node*, int>;

class StepGraphBuilder {
 public:
  StepGraphBuilder(const Graph& graph, const StepSignature& signature,
                   const DeviceInfo& client)
      : graph_(graph),
        signature_(signature),
        client_(client),
        out_(std::make_unique<Graph>()),
        copies_(graph.num_nodes(), nullptr) {}

  absl::StatusOr<std::unique_ptr<Graph>> Build() {
    if (signature_.fetches.empty() && signature_.targets.empty()) {
      return InvalidArgument(
          "Must specify at least one target to fetch or execute.");
    }
    out_->versions() = graph_.versions();
    if (!graph_.functions().empty()) out_->functions() = graph_.functions();
    SLUICE_RETURN_IF_ERROR(AddFeeds());
    SLUICE_RETURN_IF_ERROR(FindConnections());
    SLUICE_RETURN_IF_ERROR(FindTargets());
    SLUICE_RETURN_IF_ERROR(FindFetches());
    CopyNeeded();
    SLUICE_RETURN_IF_ERROR(AddConnections());
    Connect();
    SLUICE_RETURN_IF_ERROR(AddFetches());
    return std::move(out_);
  }

 private:
  absl::Status AddFeeds() {
    for (const std::string& name : signature_.feeds) {
      SLUICE_ASSIGN_OR_RETURN(const Output fed, FindFed(name));
      AttrMap attrs = TransferAttrs(name, client_.text, client_.incarnation,
                                    client_.text, !signature_.partial);
      attrs.Set("tensor_type", BaseType(TypeOf(fed)));
      NodeSpec spec{StrCat("_recv_", fed.node->name(), "_", fed.index),
                    "_Recv",
                    {},
                    {},
                    std::move(attrs),
                    client_.text};
      SLUICE_ASSIGN_OR_RETURN(Node * recv, out_->AddNode(std::move(spec)));
      recv->set_assigned_device(client_.text);
      feeds_[TensorKey(fed.node, fed.index)] = recv;
      if (IsPlaceholder(*fed.node)) fed_placeholders_[fed.node] = recv;
    }
    return absl::OkStatus();
  }

  static bool IsPlaceholder(const Node& node) {
    return node.type() == "Placeholder" || node.type() == "PlaceholderV2";
  }

  // The tensor that a feed or a connection replaces.
  absl::StatusOr<Output> FindFed(const std::string& name) const {
    absl::StatusOr<Output> fed = graph_.FindOutput(name);
    if (absl::IsNotFound(fed.status())) {
      return NotFound("FeedInputs: unable to find feed output ", name);
    }
    SLUICE_RETURN_IF_ERROR(fed.status());
    if (FeedOf(*fed) != nullptr || ConnectionTo(*fed) != nullptr) {
      return InvalidArgument("Endpoint \"", name, "\" fed more than once.");
    }
    return fed;
  }

  Node* FeedOf(Output output) const {
    if (feeds_.empty()) return nullptr;
    auto it = feeds_.find(TensorKey(output.node, output.index));
    return it == feeds_.end() ? nullptr : it->second;
  }

  // A tensor that is used in place of another one.
  struct Connection {
    Output from;
    Output to;
    Node* identity = nullptr;  // If something takes it.
  };

  absl::Status FindConnections() {
    connections_.reserve(signature_.connections.size());
    for (const auto& [from_name, to_name] : signature_.connections) {
      SLUICE_ASSIGN_OR_RETURN(const Output to, FindFed(to_name));
      const absl::StatusOr<Output> from = graph_.FindOutput(from_name);
      if (!from.ok()) {
        return InvalidArgument(
            "Requested tensor connection from unknown node: \"", from_name,
            "\".");
      }
      if (BaseType(TypeOf(*from)) != BaseType(TypeOf(to))) {
        return InvalidArgument("Requested tensor connection from ", from_name,
                               " of type ", DTypeName(BaseType(TypeOf(*from))),
                               " to ", to_name, " of type ",
                               DTypeName(BaseType(TypeOf(to))));
      }
      connections_.push_back({*from, to});
      if (DependsOn(from->node, connections_.back())) {
        return InvalidArgument("Requested Tensor connection between nodes \"",
                               to.node->name(), "\" and \"", from->node->name(),
                               "\" would create a cycle.");
      }
    }
    return absl::OkStatus();
  }

  const Connection* ConnectionTo(Output output) const {
    for (const Connection& connection : connections_) {
      if (connection.to == output) return &connection;
    }
    return nullptr;
  }
  // A Placeholder that is connected waits for nothing, as one that is fed.
  const Connection* ConnectionTo(const Node* placeholder) const {
    if (connections_.empty() || !IsPlaceholder(*placeholder)) return nullptr;
    return ConnectionTo({const_cast<Node*>(placeholder), 0});
  }

  // Calls `visit` for each node whose value or end `node` waits for.
  void ForDependencies(const Node* node,
                       absl::FunctionRef<void(const Node*)> visit) const {
    const auto through = [&](const Connection* connection) {
      if (FeedOf(connection->from) == nullptr) visit(connection->from.node);
    };
    for (const Output& input : node->inputs()) {
      if (!input || FeedOf(input) != nullptr) continue;
      if (const Connection* connection = ConnectionTo(input)) {
        through(connection);
      } else {
        visit(input.node);
      }
    }
    for (const Node* control : node->control_inputs()) {
      if (fed_placeholders_.contains(control)) continue;
      if (const Connection* connection = ConnectionTo(control)) {
        through(connection);
      } else {
        visit(control);
      }
    }
  }

  // Whether `node` waits for what the connection brings.
  bool DependsOn(const Node* node, const Connection& connection) const {
    absl::flat_hash_set<const Node*> seen = {node};
    std::vector<const Node*> stack = {node};
    while (!stack.empty()) {
      const Node* n = stack.back();
      stack.pop_back();
      for (const Output& input : n->inputs()) {
        if (input == connection.to) return true;
      }
      for (const Node* control : n->control_inputs()) {
        if (ConnectionTo(control) == &connection) return true;
      }
      ForDependencies(n, [&](const Node* next) {
        if (seen.insert(next).second) stack.push_back(next);
      });
    }
    return false;
  }

  // After the nodes are copied.
  absl::Status AddConnections() {
    for (Connection& connection : connections_) {
      Node* const feed = FeedOf(connection.from);
      Node* const from = copies_[connection.from.node->id()];
      if (feed == nullptr && from == nullptr) continue;  // Nothing takes it.
      const Output source = feed != nullptr
                                ? feed->output(0)
                                : Output{from, connection.from.index};
      AttrMap attrs;
      attrs.Set("T", BaseType(TypeOf(connection.to)));
      NodeSpec spec{StrCat("_identity_", connection.to.node->name(), "_",
                           connection.to.index),
                    "Identity",
                    {source},
                    {},
                    std::move(attrs),
                    source.node->assigned_device()};
      SLUICE_ASSIGN_OR_RETURN(connection.identity,
                              out_->AddNode(std::move(spec)));
      connection.identity->set_assigned_device(source.node->assigned_device());
    }
    return absl::OkStatus();
  }

  absl::Status FindTargets() {
    std::vector<std::string> missing;
    for (const std::string& name : signature_.targets) {
      if (const Node* node = graph_.FindNode(name)) {
        Need(node);
      } else {
        missing.push_back(name);
      }
    }
    if (missing.empty()) return absl::OkStatus();
    return NotFound("PruneForTargets: Some target nodes not found: ",
                    absl::StrJoin(missing, " "), " ");
  }

  absl::Status FindFetches() {
    for (const std::string& name : signature_.fetches) {
      absl::StatusOr<Output> fetched = graph_.FindOutput(name);
      if (absl::IsNotFound(fetched.status())) {
        return NotFound("FetchOutputs node ", name, ": not found");
      }
      const std::string node_name = name.substr(0, name.rfind(':'));
      if (!fetched.ok() && graph_.FindNode(node_name) != nullptr &&
          graph_.FindNode(node_name)->num_outputs() == 0) {
        return InvalidArgument("Tried to fetch data for '", name,
                               "', which produces no output.  To run to a node "
                               "but not fetch any data, pass '",
                               name,
                               "' as an argument to the 'target_node_names' "
                               "argument of the Session::Run API.");
      }
      SLUICE_RETURN_IF_ERROR(fetched.status());
      if (FeedOf(*fetched) != nullptr || ConnectionTo(*fetched) != nullptr) {
        return InvalidArgument(name, " is both fed and fetched.");
      }
      fetches_.push_back(*fetched);
      Need(fetched->node);
    }
    return absl::OkStatus();
  }

  void Need(const Node* node) {
    std::vector<const Node*> stack = {node};
    while (!stack.empty()) {
      const Node* n = stack.back();
      stack.pop_back();
      if (needed_.size() <= static_cast<size_t>(n->id())) {
        needed_.resize(graph_.num_nodes());
      }
      if (needed_[n->id()]) continue;
      needed_[n->id()] = true;
      ForDependencies(n, [&](const Node* next) { stack.push_back(next); });
    }
  }

  void CopyNeeded() {
    for (size_t id = 0; id < needed_.size(); ++id) {
      if (!needed_[id]) continue;
      const Node& node = *graph_.node(static_cast<int>(id));
      copies_[id] = out_->CopyNode(node, node.name());
    }
  }

  void Connect() {
    for (size_t id = 0; id < needed_.size(); ++id) {
      if (!needed_[id]) continue;
      const Node& node = *graph_.node(static_cast<int>(id));
      for (int i = 0; i < node.num_inputs(); ++i) {
        const Output input = node.input(i);
        if (!input) continue;
        if (Node* feed = FeedOf(input)) {
          out_->Connect(feed->output(0), copies_[id], i);
        } else if (const Connection* connection = ConnectionTo(input)) {
          out_->Connect(connection->identity->output(0), copies_[id], i);
        } else {
          out_->Connect({copies_[input.node->id()], input.index}, copies_[id],
                        i);
        }
      }
      for (const Node* control : node.control_inputs()) {
        Node* before = copies_[control->id()];
        auto it = fed_placeholders_.find(control);
        if (it != fed_placeholders_.end()) {
          before = it->second;
        } else if (const Connection* connection = ConnectionTo(control)) {
          before = connection->identity;
        }
        out_->AddControlEdge(before, copies_[id]);
      }
    }
  }

  absl::Status AddFetches() {
    for (size_t i = 0; i < fetches_.size(); ++i) {
      const Output source{copies_[fetches_[i].node->id()], fetches_[i].index};
      AttrMap attrs =
          TransferAttrs(signature_.fetches[i], client_.text,
                        client_.incarnation, client_.text, !signature_.partial);
      NodeSpec spec{StrCat("_send_", source.node->name(), "_", source.index),
                    "_Send",
                    {source},
                    {},
                    std::move(attrs),
                    client_.text};
      SLUICE_ASSIGN_OR_RETURN(Node * send, out_->AddNode(std::move(spec)));
      send->set_assigned_device(client_.text);
    }
    return absl::OkStatus();
  }

  const Graph& graph_;
  const StepSignature& signature_;
  const DeviceInfo& client_;
  std::unique_ptr<Graph> out_;
  absl::flat_hash_map<TensorKey, Node*> feeds_;
  absl::flat_hash_map<const Node*, Node*> fed_placeholders_;
  std::vector<Connection> connections_;
  std::vector<Output> fetches_;
  std::vector<bool> needed_;
  std::vector<Node*> copies_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Graph>> BuildStepGraph(
    const Graph& graph, const StepSignature& signature,
    const DeviceInfo& client) {
  return StepGraphBuilder(graph, signature, client).Build();
}

}  // namespace sluice
