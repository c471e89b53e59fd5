#include "sluice/client/variable_scope.h"

#include <algorithm>
#include <map>

#include "sluice/base/status.h"
#include "sluice/client/collections.h"
#include "sluice/client/initializers.h"

namespace sluice {
namespace {

struct Partitioned {
  std::vector<Variable> parts;
  Shape shape;
};

// What the scopes of a graph share.
struct VariableStore {
  std::map<std::string, Variable> variables;
  std::map<std::string, Partitioned> partitioned;
  // How often a scope was opened.
  std::map<std::string, int> opened;

  static VariableStore& Of(Graph& graph) {
    return graph.Attached<VariableStore>();
  }
};

constexpr std::string_view kDidYouMean =
    " Did you mean to set Reuse::kAlways or Reuse::kAuto in VariableScope?";
constexpr std::string_view kDoesNotExist =
    " does not exist, or was not created with GetVariable. Did you mean to set "
    "Reuse::kAuto in VariableScope?";

std::string Joined(std::string_view scope, std::string_view name) {
  if (scope.empty()) return std::string(name);
  return name.empty() ? std::string(scope) : StrCat(scope, "/", name);
}

// As GlorotUniformInitializer, with a variance that fits `whole`.
Initializer GlorotForPart(const Shape& part, const Shape& whole, DType dtype) {
  const double limit = GlorotUniformLimit(whole);
  return RandomUniformInitializer(part, -limit, limit, {.dtype = dtype});
}

}  // namespace

VariableScope::VariableScope(const Scope& scope) : Scope(scope) {}

VariableScope::VariableScope(const VariableScope& outer, std::string_view name,
                             const VariableScopeOptions& options)
    : VariableScope(outer) {
  name_ = Joined(outer.name_, name);
  Open(name, options);
}

VariableScope::VariableScope(const VariableScope& outer,
                             const VariableScope& same,
                             const VariableScopeOptions& options)
    : VariableScope(outer) {
  name_ = same.name_;
  defaults_ = same.defaults_;
  if (defaults_.reuse == Reuse::kNever) defaults_.reuse = outer.reuse();
  Open(name_.substr(name_.rfind('/') + 1), options);
}

VariableScope VariableScope::Unique(const VariableScope& outer,
                                    std::string_view default_name,
                                    const VariableScopeOptions& options) {
  const auto& opened = VariableStore::Of(outer.graph()).opened;
  std::string name(default_name);
  for (int i = 1; opened.contains(Joined(outer.name_, name)); ++i) {
    name = StrCat(default_name, "_", i);
  }
  VariableScope scope = outer;
  scope.name_ = Joined(outer.name_, name);
  scope.Open(default_name, options);
  return scope;
}

void VariableScope::Open(std::string_view name_scope,
                         const VariableScopeOptions& options) {
  auto& opened = VariableStore::Of(graph()).opened;
  ++opened[name_];
  // Unique scopes inside have the names that they had the last time.
  const std::string inside = name_ + "/";
  std::erase_if(
      opened, [&](const auto& item) { return item.first.starts_with(inside); });
  if (options.reuse != Reuse::kNever) defaults_.reuse = options.reuse;
  if (options.dtype) defaults_.dtype = options.dtype;
  if (options.initializer) defaults_.initializer = options.initializer;
  if (options.regularizer) defaults_.regularizer = options.regularizer;
  if (options.partitioner) defaults_.partitioner = options.partitioner;
  if (options.resource) defaults_.resource = options.resource;
  if (options.name_scope && !name_scope.empty()) {
    static_cast<Scope&>(*this) = NameScope(name_scope);
  }
}

VariableScope VariableScope::On(const Scope& scope) const {
  VariableScope moved = *this;
  static_cast<Scope&>(moved) = scope;
  return moved;
}

std::string VariableScope::FullName(std::string_view name) const {
  return Joined(name_, name);
}

DType VariableScope::TypeOfNew(const GetVariableOptions& options) const {
  return options.dtype.value_or(defaults_.dtype.value_or(DType::kFloat));
}

VariableOptions VariableScope::OptionsOf(
    const GetVariableOptions& options) const {
  return {
      .trainable = options.trainable,
      .resource = options.resource.value_or(defaults_.resource.value_or(false)),
      .collections = options.collections};
}

Variable VariableScope::Find(const std::string& full_name, const Shape* shape,
                             std::optional<DType> dtype) const {
  if (!ok()) return Variable();
  const auto& variables = VariableStore::Of(graph()).variables;
  const auto it = variables.find(full_name);
  if (it == variables.end()) {
    if (reuse() == Reuse::kAlways) {
      Fail(InvalidArgument("Variable ", full_name, kDoesNotExist));
    }
    return Variable();
  }
  const Variable& found = it->second;
  if (reuse() == Reuse::kNever) {
    Fail(InvalidArgument("Variable ", full_name, " already exists, disallowed.",
                         kDidYouMean));
  } else if (shape && !found.shape().CompatibleWith(PartialShape(*shape))) {
    Fail(InvalidArgument("Trying to share variable ", full_name,
                         ", but specified shape ", shape->DebugString(),
                         " and found shape ", found.shape().DebugString(),
                         "."));
  } else if (dtype && *dtype != found.dtype()) {
    Fail(InvalidArgument("Trying to share variable ", full_name,
                         ", but specified dtype ", DTypeName(*dtype),
                         " and found dtype ", DTypeName(found.dtype()), "."));
  }
  return ok() ? found : Variable();
}

Initializer VariableScope::InitializerFor(
    const std::string& full_name, const Shape& shape, const Shape& whole,
    const GetVariableOptions& options) const {
  const DType dtype = TypeOfNew(options);
  const InitializerOf& given =
      options.initializer ? options.initializer : defaults_.initializer;
  if (given) return given(shape, dtype);
  if (IsFloating(dtype)) return GlorotForPart(shape, whole, dtype);
  if (IsInteger(dtype) || dtype == DType::kBool || dtype == DType::kString) {
    return ZerosInitializer(shape, dtype);
  }
  Fail(InvalidArgument("An initializer for variable ", full_name, " of ",
                       DTypeName(dtype), " is required"));
  return nullptr;
}

Variable VariableScope::Make(const std::string& full_name,
                             const Initializer& initializer,
                             const GetVariableOptions& options,
                             std::optional<SaveSlice> slice) const {
  VariableOptions made = OptionsOf(options);
  made.slice = std::move(slice);
  // Name scopes do not show in the names of variables.
  return Register(full_name,
                  Variable(NameScope("").Named(full_name), initializer, made),
                  options);
}

Variable VariableScope::Register(const std::string& full_name, Variable made,
                                 const GetVariableOptions& options) const {
  if (!ok()) return Variable();
  VariableStore::Of(graph()).variables[full_name] = made;
  const Regularizer& regularizer =
      options.regularizer ? options.regularizer : defaults_.regularizer;
  if (!regularizer) return made;
  const Output loss = regularizer(
      NameScope(full_name + "/Regularizer/").Colocate(made.node()), made);
  if (loss) {
    Collections::Of(graph()).Add(keys::kRegularizationLosses, loss);
  }
  return made;
}

Variable VariableScope::GetVariable(std::string_view name, const Shape& shape,
                                    const GetVariableOptions& options) const {
  const std::string full_name = FullName(name);
  const Variable found = Find(full_name, &shape, TypeOfNew(options));
  if (found || !ok()) return found;
  const Initializer initializer =
      InitializerFor(full_name, shape, shape, options);
  return ok() ? Make(full_name, initializer, options) : Variable();
}

Variable VariableScope::GetVariableFrom(
    std::string_view name, const Output& initial_value,
    const GetVariableOptions& options) const {
  const std::string full_name = FullName(name);
  const Variable found = Find(full_name, nullptr, options.dtype);
  if (found || !ok()) return found;
  return Register(full_name,
                  Variable(NameScope("").Named(full_name), initial_value,
                           OptionsOf(options)),
                  options);
}

Variable VariableScope::FindVariable(std::string_view name) const {
  VariableScope finds = *this;
  finds.defaults_.reuse = Reuse::kAlways;
  return finds.Find(FullName(name), nullptr, std::nullopt);
}

std::vector<int> VariableScope::Cuts(const std::string& full_name,
                                     const Shape& shape,
                                     const GetVariableOptions& options) const {
  const Partitioner& partitioner =
      options.partitioner ? options.partitioner : defaults_.partitioner;
  if (shape.rank() == 0) {
    Fail(InvalidArgument("A partitioned variable must have at least one ",
                         "dimension: ", full_name));
    return {};
  }
  if (!partitioner) return std::vector<int>(shape.rank(), 1);
  std::vector<int> cuts = partitioner(shape, TypeOfNew(options));
  if (static_cast<int>(cuts.size()) != shape.rank()) {
    Fail(InvalidArgument("Partitioner returned a partition list that does not ",
                         "match the rank of ", full_name, ": ", cuts.size(),
                         " vs. ", shape.DebugString()));
  } else if (std::ranges::min(cuts) < 1) {
    Fail(InvalidArgument("Partitioner returned zero partitions for some axes ",
                         "of ", full_name));
  } else if (std::ranges::count_if(cuts, [](int n) { return n > 1; }) > 1) {
    Fail(InvalidArgument("Can only slice a variable along one dimension: ",
                         full_name, " of shape ", shape.DebugString()));
  }
  return cuts;
}

std::vector<Variable> VariableScope::GetPartitionedVariable(
    std::string_view name, const Shape& shape,
    const GetVariableOptions& options) const {
  if (!ok()) return {};
  const std::string full_name = FullName(name);
  auto& partitioned = VariableStore::Of(graph()).partitioned;
  if (const auto it = partitioned.find(full_name); it != partitioned.end()) {
    if (reuse() == Reuse::kNever) {
      Fail(InvalidArgument("Partitioned variable with name ", full_name,
                           " already exists.", kDidYouMean));
      return {};
    }
    if (it->second.shape != shape) {
      Fail(InvalidArgument("Trying to reuse partitioned variable ", full_name,
                           ", but specified shape ", shape.DebugString(),
                           " and found shape ", it->second.shape.DebugString(),
                           "."));
      return {};
    }
    return it->second.parts;
  }
  if (reuse() == Reuse::kAlways) {
    Fail(InvalidArgument("Partitioned variable ", full_name, kDoesNotExist));
    return {};
  }
  const std::vector<int> cuts = Cuts(full_name, shape, options);
  if (!ok()) return {};
  std::vector<Variable> made;
  for (VariablePart& part : CutVariable(full_name, shape, cuts)) {
    const std::string part_name = StrCat(full_name, "/", part.name);
    if (Find(part_name, nullptr, std::nullopt) || !ok()) return {};
    const Initializer initializer =
        InitializerFor(part_name, part.shape, shape, options);
    if (!ok()) return {};
    made.push_back(
        Make(part_name, initializer, options, std::move(part.slice)));
    if (!ok()) return {};
  }
  partitioned[full_name] = {made, shape};
  return made;
}

}  // namespace sluice
