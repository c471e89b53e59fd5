#include "sluice/graph/functions.h"

#include <set>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "sluice/base/status.h"
#include "sluice/graph/graph_def.h"
#include "sluice/graph/scope.h"
#include "sluice/proto/graph.pb.h"

namespace sluice {
namespace {

// Equal messages give equal bytes: maps are written in the order of their keys.
std::string Bytes(const google::protobuf::MessageLite& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream out(&stream);
    out.SetSerializationDeterministic(true);
    message.SerializePartialToCodedStream(&out);
  }
  return bytes;
}

}  // namespace

struct FunctionLibrary::State {
  struct Function {
    pb::FunctionDef def;
    OpInfo op;
  };
  // In the order they came.
  std::vector<std::shared_ptr<const Function>> functions;
  absl::flat_hash_map<std::string, std::shared_ptr<const Function>> by_name;
  // Function -> its gradient function.
  std::map<std::string, std::string> gradients;
  // (Op type, gradient function) pairs.
  std::set<std::pair<std::string, std::string>> registered;

  const Function* Find(std::string_view name) const {
    auto it = by_name.find(ToAbsl(name));
    return it == by_name.end() ? nullptr : it->second.get();
  }

  absl::Status AddFunction(const pb::FunctionDef& def) {
    const std::string& name = def.signature().name();
    if (const Function* existing = Find(name)) {
      if (Bytes(existing->def) == Bytes(def)) return absl::OkStatus();
      return InvalidArgument("Cannot add function '", name,
                             "' because a different function with the same "
                             "name already exists.");
    }
    if (OpRegistry::Global().Find(name) != nullptr) {
      return InvalidArgument("Cannot add function '", name,
                             "' because an op with the same name already "
                             "exists.");
    }
    auto function = std::make_shared<Function>();
    SLUICE_ASSIGN_OR_RETURN(function->op.def, OpDefFromProto(def.signature()));
    function->op.gradient = [](Scope& scope, const Node& op,
                               std::span<const Output> dy) -> Grads {
      return FunctionGradient(scope, op, op.type(), dy);
    };
    function->def = def;
    by_name[name] = function;
    functions.push_back(std::move(function));
    return absl::OkStatus();
  }

  absl::Status AddGradient(const std::string& function,
                           const std::string& gradient) {
    const auto [it, added] = gradients.try_emplace(function, gradient);
    if (added || it->second == gradient) return absl::OkStatus();
    return InvalidArgument(
        "Cannot assign gradient function '", gradient, "' to '", function,
        "' because it already has gradient function '", it->second, "'");
  }

  absl::Status Add(const pb::FunctionDefLibrary& library) {
    for (const auto& def : library.function()) {
      SLUICE_RETURN_IF_ERROR(AddFunction(def));
    }
    for (const auto& each : library.gradient()) {
      SLUICE_RETURN_IF_ERROR(
          AddGradient(each.function_name(), each.gradient_func()));
    }
    for (const auto& each : library.registered_gradients()) {
      registered.emplace(each.registered_op_type(), each.gradient_func());
    }
    return absl::OkStatus();
  }
};

FunctionLibrary::FunctionLibrary() : state_(std::make_unique<State>()) {}
FunctionLibrary::~FunctionLibrary() = default;
FunctionLibrary::FunctionLibrary(const FunctionLibrary& other)
    : state_(std::make_unique<State>(*other.state_)) {}
FunctionLibrary& FunctionLibrary::operator=(const FunctionLibrary& other) {
  if (this != &other) *state_ = *other.state_;
  return *this;
}

absl::Status FunctionLibrary::Add(const pb::FunctionDefLibrary& library) {
  State added = *state_;
  SLUICE_RETURN_IF_ERROR(added.Add(library));
  *state_ = std::move(added);
  return absl::OkStatus();
}

const pb::FunctionDef* FunctionLibrary::Find(std::string_view name) const {
  const State::Function* function = state_->Find(name);
  return function == nullptr ? nullptr : &function->def;
}

const OpInfo* FunctionLibrary::FindOp(std::string_view name) const {
  const State::Function* function = state_->Find(name);
  return function == nullptr ? nullptr : &function->op;
}

const std::string* FunctionLibrary::FindGradient(
    std::string_view function) const {
  auto it = state_->gradients.find(std::string(function));
  return it == state_->gradients.end() ? nullptr : &it->second;
}

bool FunctionLibrary::empty() const {
  return state_->functions.empty() && state_->gradients.empty() &&
         state_->registered.empty();
}

void FunctionLibrary::ToProto(pb::FunctionDefLibrary* library) const {
  library->Clear();
  for (const auto& function : state_->functions) {
    *library->add_function() = function->def;
  }
  for (const auto& [function, gradient] : state_->gradients) {
    auto* out = library->add_gradient();
    out->set_function_name(function);
    out->set_gradient_func(gradient);
  }
  for (const auto& [op_type, gradient] : state_->registered) {
    auto* out = library->add_registered_gradients();
    out->set_registered_op_type(op_type);
    out->set_gradient_func(gradient);
  }
}

absl::Status FunctionLibrary::AddAll(const FunctionLibrary& other) {
  if (other.empty()) return absl::OkStatus();
  pb::FunctionDefLibrary library;
  other.ToProto(&library);
  return Add(library);
}

namespace {

// The names that a graph or function may mean a function by.
struct Names {
  std::vector<std::string> found = {};

  void Add(const FunctionName& function) {
    found.push_back(function.name);
    if (function.attrs != nullptr) Add(*function.attrs);
  }
  void Add(const AttrMap& attrs) {
    for (const auto& [name, value] : attrs) {
      if (const auto* function = value.get<FunctionName>()) Add(*function);
      if (const auto* list = value.get<AttrList>()) {
        for (const FunctionName& function : list->functions) Add(function);
      }
    }
  }
  void Add(const pb::NameAttrList& function) {
    found.push_back(function.name());
    for (const auto& [name, value] : function.attr()) Add(value);
  }
  void Add(const pb::AttrValue& value) {
    if (value.has_func()) Add(value.func());
    for (const auto& function : value.list().func()) Add(function);
  }
  void Add(const pb::NodeDef& node) {
    found.push_back(node.op());
    for (const auto& [name, value] : node.attr()) Add(value);
  }
};

}  // namespace

FunctionLibrary FunctionLibrary::ReachedFrom(const Graph& graph) const {
  Names names;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    names.found.push_back(graph.node(id)->type());
    names.Add(graph.node(id)->attrs());
  }
  std::set<std::string> reached;
  while (!names.found.empty()) {
    const std::string name = std::move(names.found.back());
    names.found.pop_back();
    const State::Function* function = state_->Find(name);
    if (function == nullptr || !reached.insert(name).second) continue;
    for (const pb::NodeDef& node : function->def.node_def()) names.Add(node);
    for (const auto& [attr, value] : function->def.attr()) names.Add(value);
    if (const std::string* gradient = FindGradient(name)) {
      names.found.push_back(*gradient);
    }
  }
  FunctionLibrary library;
  for (const auto& function : state_->functions) {
    const std::string& name = function->def.signature().name();
    if (!reached.contains(name)) continue;
    library.state_->functions.push_back(function);
    library.state_->by_name[name] = function;
    if (const std::string* gradient = FindGradient(name)) {
      library.state_->gradients[name] = *gradient;
    }
  }
  for (const auto& entry : state_->registered) {
    if (reached.contains(entry.second))
      library.state_->registered.insert(entry);
  }
  return library;
}

bool CallsFunction(const Node& node) {
  const std::string& type = node.type();
  if (type == "SymbolicGradient" || type == "PartitionedCall" ||
      type == "StatefulPartitionedCall") {
    return true;
  }
  const FunctionLibrary& functions = node.graph().functions();
  return !functions.empty() && functions.FindOp(type) == &node.op();
}

Grads FunctionGradient(Scope& scope, const Node& op,
                       const std::string& function,
                       std::span<const Output> dy) {
  std::vector<Output> inputs(op.inputs().begin(), op.inputs().end());
  for (int i = 0; i < op.num_outputs(); ++i) {
    // The function takes a gradient for each of its results.
    inputs.push_back(dy[i] ? dy[i] : scope.Add("ZerosLike", {op.output(i)}));
  }
  AttrList types;
  for (const Output& input : op.inputs()) {
    types.types.push_back(BaseType(TypeOf(input)));
  }
  const std::vector<Output> dx = scope.AddMulti(
      "SymbolicGradient", inputs,
      {{"Tout", std::move(types)},
       {"f", FunctionName{function, std::make_shared<AttrMap>(op.attrs())}}});
  SLUICE_RETURN_IF_ERROR(scope.status());
  return std::vector<Grad>(dx.begin(), dx.end());
}

}  // namespace sluice
