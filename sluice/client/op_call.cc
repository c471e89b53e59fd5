#include "sluice/client/op_call.h"

#include <algorithm>
#include <utility>

#include "sluice/base/status.h"

namespace sluice {

OpCall::OpCall(const Scope& scope, const char* op) : scope_(scope), op_(op) {}

OpCall& OpCall::In(const Input& input) {
  args_.push_back({{input}});
  return *this;
}

OpCall& OpCall::In(const InputList& inputs) {
  args_.push_back({inputs.items()});
  return *this;
}

#define SLUICE_OP_CALL_ATTR(type)                      \
  OpCall& OpCall::Attr(const char* name, type value) { \
    attrs_.Set(name, AttrValue(value));                \
    return *this;                                      \
  }
SLUICE_OP_CALL_ATTR(bool)
SLUICE_OP_CALL_ATTR(int64_t)
SLUICE_OP_CALL_ATTR(float)
SLUICE_OP_CALL_ATTR(DType)
SLUICE_OP_CALL_ATTR(const std::string&)
SLUICE_OP_CALL_ATTR(const PartialShape&)
SLUICE_OP_CALL_ATTR(const std::vector<int64_t>&)
SLUICE_OP_CALL_ATTR(const std::vector<float>&)
SLUICE_OP_CALL_ATTR(const std::vector<DType>&)
SLUICE_OP_CALL_ATTR(const std::vector<std::string>&)
SLUICE_OP_CALL_ATTR(const std::vector<PartialShape>&)
#undef SLUICE_OP_CALL_ATTR

OpCall& OpCall::Attr(const char* name, const Tensor& value) {
  if (value.initialized()) attrs_.Set(name, value);
  return *this;
}

OpCall& OpCall::Attr(const char* name, const FunctionName& value) {
  if (!value.name.empty()) attrs_.Set(name, value);
  return *this;
}

OpCall& OpCall::Attr(const char* name, const std::vector<bool>& value) {
  AttrList list;
  list.bools = value;
  attrs_.Set(name, std::move(list));
  return *this;
}

OpCall& OpCall::Attr(const char* name, const std::vector<Tensor>& value) {
  AttrList list;
  list.tensors = value;
  attrs_.Set(name, std::move(list));
  return *this;
}

OpCall& OpCall::Attr(const char* name, const std::vector<FunctionName>& value) {
  AttrList list;
  list.functions = value;
  attrs_.Set(name, std::move(list));
  return *this;
}

DType OpCall::WantedType(const ArgDef& arg, size_t item) const {
  if (arg.type != DType::kInvalid) return arg.type;
  if (!arg.type_attr.empty()) {
    const DType* known = known_types_.Find<DType>(arg.type_attr);
    return known == nullptr ? DType::kInvalid : *known;
  }
  const AttrList* given = attrs_.Find<AttrList>(arg.type_list_attr);
  if (given == nullptr || item >= given->types.size()) return DType::kInvalid;
  return given->types[item];
}

// Decides the type attrs: by what was given, by outputs and tensors, and for
// literals that stand alone by the default or else the widest literal.
absl::Status OpCall::Resolve(const OpDef& def) {
  if (args_.size() != def.inputs.size()) {
    return Internal("The function of ", op_, " passes ", args_.size(),
                    " inputs, the op has ", def.inputs.size(),
                    ": build it again");
  }
  for (const auto& [name, value] : attrs_) {
    if (value.get<DType>() != nullptr) known_types_.Set(name, value);
  }
  for (size_t i = 0; i < args_.size(); ++i) {
    const std::string& attr = def.inputs[i].type_attr;
    if (attr.empty() || known_types_.Contains(attr)) continue;
    for (const Input& item : args_[i].items) {
      if (item.is_output() && !item.output()) continue;
      if (!item.is_output() && item.literal().adapts()) continue;
      known_types_.Set(attr, item.is_output() ? BaseType(TypeOf(item.output()))
                                              : item.literal().dtype());
      break;
    }
  }
  for (size_t i = 0; i < args_.size(); ++i) {
    const std::string& attr = def.inputs[i].type_attr;
    if (attr.empty() || known_types_.Contains(attr)) continue;
    const AttrDef* attr_def = def.FindAttr(attr);
    if (attr_def != nullptr && attr_def->default_value.has_value()) {
      const DType* preferred = attr_def->default_value->get<DType>();
      const bool all_fit =
          std::ranges::all_of(args_[i].items, [&](const Input& item) {
            return !item.is_output() && item.literal().As(*preferred).ok();
          });
      if (preferred != nullptr && all_fit) {
        known_types_.Set(attr, *preferred);
        continue;
      }
    }
    std::vector<Literal> values;
    for (size_t j = i; j < args_.size(); ++j) {
      if (def.inputs[j].type_attr != attr) continue;
      for (const Input& item : args_[j].items) {
        if (!item.is_output()) values.push_back(item.literal());
      }
    }
    known_types_.Set(attr, WidestType(values));
  }
  return absl::OkStatus();
}

std::string OpCall::LiteralName(const ArgDef& arg, size_t item) const {
  return arg.is_list() ? StrCat(arg.name, "_", item) : arg.name;
}

std::vector<Output> OpCall::AddInputs(const Scope& inner, const OpDef& def) {
  std::vector<Output> inputs;
  for (size_t i = 0; i < args_.size(); ++i) {
    const ArgDef& arg = def.inputs[i];
    for (size_t j = 0; j < args_[i].items.size(); ++j) {
      const Input& item = args_[i].items[j];
      if (item.is_output()) {
        inputs.push_back(item.output());
        continue;
      }
      absl::StatusOr<Tensor> value = item.literal().As(WantedType(arg, j));
      if (!value.ok()) {
        scope_.Fail(Annotate(
            value.status(),
            StrCat("Input '", arg.name, "' of '", inner.context().name_scope,
                   "' (op: '", op_, "'):")));
        return {};
      }
      inputs.push_back(
          inner.Named(LiteralName(arg, j)).Const(*std::move(value)));
    }
  }
  return inputs;
}

Node* OpCall::Result() {
  if (std::exchange(added_, true) || !scope_.ok()) return node_;
  const absl::StatusOr<const OpInfo*> op = OpRegistry::Global().Lookup(op_);
  if (!op.ok()) {
    scope_.Fail(op.status());
    return nullptr;
  }
  const OpDef& def = (*op)->def;
  if (const absl::Status status = Resolve(def); !status.ok()) {
    scope_.Fail(status);
    return nullptr;
  }
  const bool any_literal = std::ranges::any_of(args_, [](const Arg& arg) {
    return !std::ranges::all_of(arg.items, &Input::is_output);
  });
  if (!any_literal) {
    node_ = scope_.AddNode(op_, AddInputs(scope_, def), std::move(attrs_));
    return node_;
  }
  // As in Python, "add/y" is the second operand of "add".
  const std::string& given = scope_.next_name();
  const Scope inner = scope_.NameScope(given.empty() ? op_ : given);
  const std::vector<Output> inputs = AddInputs(inner, def);
  if (!scope_.ok()) return nullptr;
  node_ = scope_.Named(inner.context().name_scope)
              .AddNode(op_, inputs, std::move(attrs_));
  return node_;
}

Output OpCall::One() {
  return Result() == nullptr ? Output() : node_->output(0);
}

std::vector<Output> OpCall::Many() {
  std::vector<Output> outputs;
  if (Result() == nullptr) return outputs;
  for (int i = 0; i < node_->num_outputs(); ++i) {
    outputs.push_back(node_->output(i));
  }
  return outputs;
}

Output OpCall::Next() {
  if (Result() == nullptr) return Output();
  ++next_arg_;
  return node_->output(next_output_++);
}

std::vector<Output> OpCall::NextList() {
  std::vector<Output> outputs;
  if (Result() == nullptr) return outputs;
  const ArgDef& arg = node_->op().def.outputs[next_arg_++];
  const absl::StatusOr<int> count = ArgCount(arg, node_->attrs());
  for (int i = 0; count.ok() && i < *count; ++i) {
    outputs.push_back(node_->output(next_output_++));
  }
  return outputs;
}

Output AsOutput(const Scope& scope, const Input& input, std::string_view name,
                DType dtype) {
  if (input.is_output()) {
    if (!input.output()) scope.Fail(InvalidArgument("'", name, "' is missing"));
    return input.output();
  }
  absl::StatusOr<Tensor> value =
      input.literal().As(input.literal().adapts() ? dtype : DType::kInvalid);
  if (value.ok()) return scope.Named(name).Const(*std::move(value));
  scope.Fail(Annotate(value.status(), StrCat("'", name, "':")));
  return Output();
}

}  // namespace sluice
