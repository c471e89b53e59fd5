#include "sluice/graph/scope.h"

namespace sluice {

Scope::Scope(Graph& graph)
    : graph_(&graph),
      context_(graph.build().current()),
      error_(graph.build().error()) {}

Scope Scope::Detached(Graph& graph) {
  Scope scope(graph);
  scope.error_ = std::make_shared<absl::Status>();
  return scope;
}

With::With(Scope scope)
    : Scope(std::move(scope)), saved_(graph().build().current()) {
  graph().build().current() = context();
}

With::~With() { graph().build().current() = std::move(saved_); }

void Scope::Fail(absl::Status error) const {
  if (error_->ok()) *error_ = std::move(error);
}

Scope Scope::NameScope(std::string_view name) const {
  Scope child = *this;
  child.next_name_.clear();
  absl::StatusOr<std::string> full = EnterNameScope(*graph_, context_, name);
  if (full.ok()) {
    child.context_.name_scope = *std::move(full);
  } else {
    Fail(full.status());
  }
  return child;
}

Scope Scope::Named(std::string_view name) const {
  Scope child = *this;
  child.next_name_ = std::string(name);
  return child;
}

Scope Scope::Device(std::string_view spec) const {
  Scope child = *this;
  absl::StatusOr<DeviceName> parsed = DeviceName::Parse(spec);
  if (parsed.ok()) {
    child.context_.PushDevice(*parsed);
  } else {
    Fail(parsed.status());
  }
  return child;
}

Scope Scope::Device(DeviceFunction function) const {
  Scope child = *this;
  if (function) child.context_.PushDeviceFunction(std::move(function));
  return child;
}

Scope Scope::Control(std::vector<Node*> nodes) const {
  Scope child = *this;
  std::erase(nodes, nullptr);
  child.context_.PushControl(std::move(nodes));
  return child;
}

Scope Scope::Control(const std::vector<Output>& outputs) const {
  std::vector<Node*> nodes;
  for (const Output& output : outputs) nodes.push_back(output.node);
  return Control(std::move(nodes));
}

Scope Scope::NoControl() const {
  Scope child = *this;
  child.context_.ClearControl();
  return child;
}

Scope Scope::Colocate(Node* node) const {
  Scope child = *this;
  if (node != nullptr) child.context_.PushColocation(node);
  return child;
}

Scope Scope::Attr(std::string_view name, AttrValue value) const {
  Scope child = *this;
  child.context_.attrs.emplace_back(std::string(name), std::move(value));
  return child;
}

Scope Scope::Container(std::string_view container) const {
  Scope child = *this;
  child.context_.container = std::string(container);
  return child;
}

Node* Scope::AddNode(std::string_view op, const std::vector<Output>& inputs,
                     AttrMap attrs) const {
  if (!ok()) return nullptr;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) {
      Fail(InvalidArgument("Input ", i, " of a new ", op, " is missing"));
      return nullptr;
    }
  }
  absl::StatusOr<Node*> node =
      BuildNode(*graph_, context_,
                {std::string(op), next_name_, inputs, std::move(attrs), {}});
  if (node.ok()) return *node;
  // Some errors name the op only, and a program has many of a kind.
  const bool exact = next_name_.ends_with('/');
  const std::string name =
      exact ? StrCat("'", next_name_.substr(0, next_name_.size() - 1), "'")
            : StrCat("'", context_.name_scope,
                     next_name_.empty() ? op : next_name_, "'");
  const bool named =
      ToStd(node.status().message()).find(name) != std::string_view::npos;
  Fail(named ? node.status()
             : Annotate(node.status(), StrCat(name, " (op: '", op, "'):")));
  return nullptr;
}

Output Scope::Add(std::string_view op, const std::vector<Output>& inputs,
                  AttrMap attrs) const {
  Node* node = AddNode(op, inputs, std::move(attrs));
  return node == nullptr ? Output() : node->output(0);
}

std::vector<Output> Scope::AddMulti(std::string_view op,
                                    const std::vector<Output>& inputs,
                                    AttrMap attrs) const {
  std::vector<Output> outputs;
  if (Node* node = AddNode(op, inputs, std::move(attrs))) {
    for (int i = 0; i < node->num_outputs(); ++i) {
      outputs.push_back(node->output(i));
    }
  }
  return outputs;
}

Output Scope::Const(Tensor value) const {
  const DType dtype = value.dtype();
  return Add("Const", {}, {{"value", std::move(value)}, {"dtype", dtype}});
}

Output Scope::Ints(std::vector<int32_t> values) const {
  return Const(Tensor::Of<int32_t>({static_cast<int64_t>(values.size())},
                                   std::span<const int32_t>(values)));
}

Tensor ScalarOfType(DType dtype, double value) {
  switch (dtype) {
    case DType::kFloat:
      return Tensor::Scalar<float>(static_cast<float>(value));
    case DType::kDouble:
      return Tensor::Scalar<double>(value);
    case DType::kInt32:
      return Tensor::Scalar<int32_t>(static_cast<int32_t>(value));
    case DType::kInt64:
      return Tensor::Scalar<int64_t>(static_cast<int64_t>(value));
    case DType::kHalf:
      return Tensor::Scalar<Half>(Half(static_cast<float>(value)));
    case DType::kBfloat16:
      return Tensor::Scalar<BFloat16>(BFloat16(static_cast<float>(value)));
    case DType::kUint8:
      return Tensor::Scalar<uint8_t>(static_cast<uint8_t>(value));
    case DType::kInt8:
      return Tensor::Scalar<int8_t>(static_cast<int8_t>(value));
    case DType::kInt16:
      return Tensor::Scalar<int16_t>(static_cast<int16_t>(value));
    case DType::kUint16:
      return Tensor::Scalar<uint16_t>(static_cast<uint16_t>(value));
    case DType::kUint32:
      return Tensor::Scalar<uint32_t>(static_cast<uint32_t>(value));
    case DType::kUint64:
      return Tensor::Scalar<uint64_t>(static_cast<uint64_t>(value));
    case DType::kBool:
      return Tensor::Scalar<bool>(value != 0);
    case DType::kComplex64:
      return Tensor::Scalar<std::complex<float>>(static_cast<float>(value));
    case DType::kComplex128:
      return Tensor::Scalar<std::complex<double>>(value);
    default:
      return Tensor();
  }
}

}  // namespace sluice
