// Op definitions from and to messages.
#include "sluice/base/status.h"
#include "sluice/graph/graph_def.h"
#include "sluice/proto/op_def.pb.h"
#include "sluice/tensor/codec.h"

namespace sluice {
namespace {

absl::StatusOr<AttrDef> AttrDefFromProto(const pb::OpDef::AttrDef& proto) {
  AttrDef attr;
  attr.name = proto.name();
  attr.type = proto.type();
  if (attr.name.empty()) return InvalidArgument("an attr has no name");
  if (!IsAttrType(attr.type)) {
    return InvalidArgument("attr '", attr.name, "' has unknown type '",
                           attr.type, "'");
  }
  if (proto.has_default_value()) {
    SLUICE_ASSIGN_OR_RETURN(attr.default_value,
                            AttrFromProto(proto.default_value()));
  }
  if (proto.has_minimum()) attr.minimum = proto.minimum();
  if (proto.has_allowed_values()) {
    SLUICE_ASSIGN_OR_RETURN(const AttrValue allowed,
                            AttrFromProto(proto.allowed_values()));
    if (const AttrList* list = allowed.get<AttrList>()) attr.allowed = *list;
  }
  return attr;
}

absl::Status CheckAttrOfArg(const OpDef& op, const ArgDef& arg,
                            const std::string& attr, std::string_view type) {
  if (attr.empty()) return absl::OkStatus();
  const AttrDef* found = op.FindAttr(attr);
  if (found != nullptr && found->type == type) return absl::OkStatus();
  return InvalidArgument("argument '", arg.name, "' needs an attr '", attr,
                         "' of type ", type);
}

absl::StatusOr<ArgDef> ArgDefFromProto(const OpDef& op,
                                       const pb::OpDef::ArgDef& proto) {
  ArgDef arg;
  arg.name = proto.name();
  arg.type = DTypeFromProto(proto.type());
  arg.type_attr = proto.type_attr();
  arg.number_attr = proto.number_attr();
  arg.type_list_attr = proto.type_list_attr();
  arg.is_ref = proto.is_ref();
  if (arg.name.empty()) return InvalidArgument("an argument has no name");
  const int ways = (arg.type != DType::kInvalid) + !arg.type_attr.empty() +
                   !arg.type_list_attr.empty();
  if (ways != 1) {
    return InvalidArgument("argument '", arg.name,
                           "' must have exactly one of type, type_attr and "
                           "type_list_attr");
  }
  if (arg.type != DType::kInvalid && (!IsKnown(arg.type) || IsRef(arg.type))) {
    return InvalidArgument("argument '", arg.name, "' has type ",
                           DTypeName(arg.type));
  }
  if (!arg.type_list_attr.empty() && !arg.number_attr.empty()) {
    return InvalidArgument("argument '", arg.name,
                           "' has both type_list_attr and number_attr");
  }
  SLUICE_RETURN_IF_ERROR(CheckAttrOfArg(op, arg, arg.type_attr, "type"));
  SLUICE_RETURN_IF_ERROR(CheckAttrOfArg(op, arg, arg.number_attr, "int"));
  SLUICE_RETURN_IF_ERROR(
      CheckAttrOfArg(op, arg, arg.type_list_attr, "list(type)"));
  return arg;
}

absl::StatusOr<OpDef> FromProto(const pb::OpDef& proto) {
  OpDef def;
  def.name = proto.name();
  if (def.name.empty()) return InvalidArgument("it has no name");
  AttrMap defaults;
  for (const auto& each : proto.attr()) {
    SLUICE_ASSIGN_OR_RETURN(AttrDef attr, AttrDefFromProto(each));
    if (def.FindAttr(attr.name) != nullptr) {
      return InvalidArgument("attr '", attr.name, "' stands there twice");
    }
    if (attr.default_value) defaults.Set(attr.name, *attr.default_value);
    def.attrs.push_back(std::move(attr));
  }
  for (const auto& each : proto.input_arg()) {
    SLUICE_ASSIGN_OR_RETURN(ArgDef arg, ArgDefFromProto(def, each));
    def.inputs.push_back(std::move(arg));
  }
  for (const auto& each : proto.output_arg()) {
    SLUICE_ASSIGN_OR_RETURN(ArgDef arg, ArgDefFromProto(def, each));
    def.outputs.push_back(std::move(arg));
  }
  def.stateful = proto.is_stateful();
  def.aggregate = proto.is_aggregate();
  def.commutative = proto.is_commutative();
  def.allows_uninitialized_input = proto.allows_uninitialized_input();
  // Defaults must themselves be allowed; attrs without one do not matter here.
  OpDef with_defaults = def;
  std::erase_if(with_defaults.attrs,
                [](const AttrDef& attr) { return !attr.default_value; });
  SLUICE_RETURN_IF_ERROR(CheckAttrs(with_defaults, "defaults", &defaults));
  return def;
}

void ArgDefToProto(const ArgDef& arg, pb::OpDef::ArgDef* proto) {
  proto->set_name(arg.name);
  proto->set_type(DTypeToProto(arg.type));
  proto->set_type_attr(arg.type_attr);
  proto->set_number_attr(arg.number_attr);
  proto->set_type_list_attr(arg.type_list_attr);
  proto->set_is_ref(arg.is_ref);
}

}  // namespace

absl::StatusOr<OpDef> OpDefFromProto(const pb::OpDef& proto) {
  auto def = FromProto(proto);
  if (def.ok()) return def;
  return Annotate(def.status(), StrCat("Bad OpDef '", proto.name(), "':"));
}

void OpDefToProto(const OpDef& def, pb::OpDef* proto) {
  proto->Clear();
  proto->set_name(def.name);
  for (const ArgDef& arg : def.inputs)
    ArgDefToProto(arg, proto->add_input_arg());
  for (const ArgDef& arg : def.outputs) {
    ArgDefToProto(arg, proto->add_output_arg());
  }
  for (const AttrDef& attr : def.attrs) {
    auto* out = proto->add_attr();
    out->set_name(attr.name);
    out->set_type(attr.type);
    if (attr.default_value) {
      AttrToProto(*attr.default_value, out->mutable_default_value());
    }
    out->set_has_minimum(attr.minimum.has_value());
    out->set_minimum(attr.minimum.value_or(0));
    if (attr.allowed.size() > 0) {
      AttrToProto(attr.allowed, out->mutable_allowed_values());
    }
  }
  proto->set_is_stateful(def.stateful);
  proto->set_is_aggregate(def.aggregate);
  proto->set_is_commutative(def.commutative);
  proto->set_allows_uninitialized_input(def.allows_uninitialized_input);
}

}  // namespace sluice
