#include "sluice/client/variable.h"

#include "sluice/base/strings.h"
#include "sluice/client/collections.h"
#include "sluice/client/op_call.h"

namespace sluice {
namespace {

std::vector<std::string> LocatedWith(std::string_view node) {
  return {StrCat("loc:@", node)};
}

// `scope` without its last '/': the name of the node a scope is named after.
std::string NodeNameOf(const Scope& scope) {
  const std::string& name = scope.context().name_scope;
  return name.substr(0, name.size() - 1);
}

Scope Reopened(const Scope& scope, std::string_view name) {
  return scope.Named(scope.NameScope(name).context().name_scope);
}

std::shared_ptr<const SaveSlice> Shared(const std::optional<SaveSlice>& slice) {
  return slice ? std::make_shared<const SaveSlice>(*slice) : nullptr;
}

}  // namespace

Variable::Variable(const Scope& scope, Output initial_value,
                   const VariableOptions& options) {
  Build(
      scope, [&](const Scope&) { return initial_value; },
      /*in_initializer_scope=*/false, options);
}

Variable::Variable(const Scope& scope, Tensor initial_value,
                   const VariableOptions& options) {
  Build(
      scope,
      [&](const Scope& inner) {
        return inner.Named("initial_value").Const(std::move(initial_value));
      },
      /*in_initializer_scope=*/options.resource, options);
}

Variable::Variable(const Scope& scope, const Initializer& initial_value,
                   const VariableOptions& options) {
  Build(scope, initial_value, /*in_initializer_scope=*/true, options);
}

Variable::Variable(const Nodes& nodes)
    : ref_(nodes.ref),
      value_(nodes.value),
      initial_value_(nodes.initial_value),
      initializer_(nodes.initializer),
      trainable_(nodes.trainable),
      slice_(Shared(nodes.slice)) {}

void Variable::Build(const Scope& outer, const Initializer& initial_value,
                     bool in_initializer_scope,
                     const VariableOptions& options) {
  trainable_ = options.trainable;
  slice_ = Shared(options.slice);
  // A variable made inside of control_dependencies or cond exists anyhow.
  const Scope scope = outer.NoControl().NameScope(
      outer.next_name().empty() ? "Variable" : outer.next_name());
  if (!scope.ok()) return;
  Scope located = scope;
  if (in_initializer_scope) {
    located = scope.Attr("_class", LocatedWith(NodeNameOf(scope)));
    Scope inside = located.NameScope("Initializer");
    inside.context().ClearDevices();
    initial_value_ = initial_value(inside);
  } else {
    initial_value_ = initial_value(scope);
  }
  if (!initial_value_) {
    scope.Fail(InvalidArgument("initial_value must be specified."));
    return;
  }
  if (options.validate_shape && !ShapeOf(initial_value_).FullyDefined()) {
    scope.Fail(InvalidArgument("initial_value must have a shape specified: ",
                               TensorName(initial_value_), " of ",
                               NodeNameOf(scope), " has shape ",
                               ShapeOf(initial_value_).DebugString()));
    return;
  }
  const AttrMap attrs = {
      {"shape",
       options.validate_shape ? ShapeOf(initial_value_) : PartialShape()},
      {"dtype", BaseType(TypeOf(initial_value_))}};
  if (options.resource) {
    AttrMap shared = attrs;
    shared.Set("shared_name", NodeNameOf(scope));
    ref_ = scope.Named(scope.context().name_scope)
               .Add("VarHandleOp", {}, std::move(shared));
    if (ref_) BuildResource(scope);
  } else {
    ref_ =
        located.Named(scope.context().name_scope).Add("VariableV2", {}, attrs);
    if (ref_) BuildRef(scope, options);
  }
  if (!scope.ok()) {
    *this = Variable();
    return;
  }
  Collections& collections = Collections::Of(scope.graph());
  for (const std::string& key : options.collections) {
    collections.Add(key, *this);
  }
  if (options.trainable) collections.Add(keys::kTrainableVariables, *this);
}

void Variable::BuildRef(const Scope& scope, const VariableOptions& options) {
  initializer_ = scope.Named("Assign").AddNode(
      "Assign", {ref_, initial_value_},
      {{"validate_shape", options.validate_shape}});
  value_ = scope.Colocate(ref_.node).Named("read").Add("Identity", {ref_});
}

void Variable::BuildResource(const Scope& scope) {
  scope.NameScope("IsInitialized").Add("VarIsInitializedOp", {ref_});
  const Scope there = scope.Device(ref_.node->device());
  initializer_ = Reopened(there, "Assign")
                     .AddNode("AssignVariableOp", {ref_, initial_value_});
  value_ = there.NameScope("Read").Add(
      "ReadVariableOp", {ref_}, {{"dtype", BaseType(TypeOf(initial_value_))}});
}

DType Variable::dtype() const { return ref_.node->attr<DType>("dtype"); }

PartialShape Variable::shape() const {
  return resource() ? ref_.node->output_handle(0).shape : ShapeOf(ref_);
}

const std::string& Variable::saved_name() const {
  return slice_ ? slice_->full_name : name();
}

std::string Variable::saved_slice() const {
  if (!slice_) return "";
  std::string whole, part;
  for (int i = 0; i < slice_->full_shape.rank(); ++i) {
    StrAppend(&whole, slice_->full_shape.dim(i), " ");
    StrAppend(&part, i == 0 ? "" : ":", slice_->offset[i], ",", shape().dim(i));
  }
  return StrCat(whole, part);
}

bool Variable::resource() const { return TypeOf(ref_) == DType::kResource; }

Output Variable::Update(const Scope& scope, std::string op,
                        const Input& value) const {
  if (!ref_) return Output();  // The scope has the error.
  if (resource()) op += "VariableOp";
  OpCall call(scope, op.c_str());
  call.In(ref_).In(value);
  if (!resource()) return call.One();
  Node* update = call.Attr("dtype", dtype()).Result();
  return scope.Control(std::vector<Node*>{update})
      .Named("")
      .Add("ReadVariableOp", {ref_}, {{"dtype", dtype()}});
}

Output Variable::Assign(const Scope& scope, const Input& value) const {
  return Update(scope, "Assign", value);
}
Output Variable::AssignAdd(const Scope& scope, const Input& delta) const {
  return Update(scope, "AssignAdd", delta);
}
Output Variable::AssignSub(const Scope& scope, const Input& delta) const {
  return Update(scope, "AssignSub", delta);
}

}  // namespace sluice
