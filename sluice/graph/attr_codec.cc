// Attributes from and to messages.
#include <algorithm>

#include "sluice/base/status.h"
#include "sluice/graph/graph_def.h"
#include "sluice/proto/attr_value.pb.h"
#include "sluice/tensor/codec.h"

namespace sluice {
namespace {

// How many values the typed field of a message holds. Only the field of its
// dtype counts; a decoded tensor has shown that the dtype has one.
int64_t TypedValues(const pb::TensorProto& proto) {
  switch (DTypeFromProto(proto.dtype())) {
    case DType::kFloat:
      return proto.float_val_size();
    case DType::kDouble:
      return proto.double_val_size();
    case DType::kString:
      return proto.string_val_size();
    case DType::kComplex64:
      return proto.scomplex_val_size() / 2;
    case DType::kComplex128:
      return proto.dcomplex_val_size() / 2;
    case DType::kInt64:
      return proto.int64_val_size();
    case DType::kBool:
      return proto.bool_val_size();
    case DType::kHalf:
    case DType::kBfloat16:
      return proto.half_val_size();
    case DType::kUint32:
      return proto.uint32_val_size();
    case DType::kUint64:
      return proto.uint64_val_size();
    case DType::kResource:
    case DType::kVariant:
      return 0;  // Their last value does not repeat.
    default:
      return proto.int_val_size();
  }
}

absl::StatusOr<AttrValue> TensorAttr(const pb::TensorProto& proto) {
  SLUICE_ASSIGN_OR_RETURN(Tensor tensor, TensorFromProto(proto));
  const int64_t size = tensor.size();
  AttrValue value(std::move(tensor));
  if (!proto.tensor_content().empty()) return value;
  const int64_t given = TypedValues(proto);
  if (size > 1) value.set_given_values(std::min(given, size));
  return value;
}

void TensorToAttr(const AttrValue& value, pb::TensorProto* proto) {
  const Tensor& tensor = *value.get<Tensor>();
  const int64_t given = value.given_values();
  if (given <= 0 || given > tensor.size()) {
    TensorToTypedProto(tensor, proto);
    return;
  }
  const Tensor first = tensor.Reshaped({tensor.size()}).Rows(0, given);
  // A shape that the values do not fill makes them typed ones.
  TensorToTypedProto(first, Shape({given + 1}), proto);
  ShapeToProto(tensor.shape(), proto->mutable_tensor_shape());
}

// Function attributes hold attributes, and so on. Deeper than any program nests
// them; bounds the recursion.
constexpr int kMaxNesting = 64;

absl::StatusOr<AttrValue> FromProto(const pb::AttrValue& proto, int depth);

absl::StatusOr<FunctionName> FunctionFromProto(const pb::NameAttrList& proto,
                                               int depth) {
  if (depth >= kMaxNesting) {
    return InvalidArgument("Function attributes are nested too deeply");
  }
  FunctionName function{proto.name(), nullptr};
  if (proto.attr().empty()) return function;
  auto attrs = std::make_shared<AttrMap>();
  for (const auto& [name, value] : proto.attr()) {
    SLUICE_ASSIGN_OR_RETURN(AttrValue attr, FromProto(value, depth + 1));
    attrs->Set(name, std::move(attr));
  }
  function.attrs = std::move(attrs);
  return function;
}

void FunctionToProto(const FunctionName& function, pb::NameAttrList* proto) {
  proto->set_name(function.name);
  if (function.attrs == nullptr) return;
  for (const auto& [name, value] : *function.attrs) {
    AttrToProto(value, &(*proto->mutable_attr())[name]);
  }
}

absl::StatusOr<AttrList> ListFromProto(const pb::AttrValue::ListValue& proto,
                                       int depth) {
  AttrList list;
  list.strings.assign(proto.s().begin(), proto.s().end());
  list.ints.assign(proto.i().begin(), proto.i().end());
  list.floats.assign(proto.f().begin(), proto.f().end());
  list.bools.assign(proto.b().begin(), proto.b().end());
  for (int type : proto.type()) list.types.push_back(static_cast<DType>(type));
  for (const auto& each : proto.shape()) {
    SLUICE_ASSIGN_OR_RETURN(PartialShape shape, PartialShapeFromProto(each));
    list.shapes.push_back(std::move(shape));
  }
  for (const auto& each : proto.tensor()) {
    SLUICE_ASSIGN_OR_RETURN(Tensor tensor, TensorFromProto(each));
    list.tensors.push_back(std::move(tensor));
  }
  for (const auto& each : proto.func()) {
    SLUICE_ASSIGN_OR_RETURN(FunctionName function,
                            FunctionFromProto(each, depth));
    list.functions.push_back(std::move(function));
  }
  const bool kinds[] = {!list.strings.empty(), !list.ints.empty(),
                        !list.floats.empty(),  !list.bools.empty(),
                        !list.types.empty(),   !list.shapes.empty(),
                        !list.tensors.empty(), !list.functions.empty()};
  if (std::ranges::count(kinds, true) > 1) {
    return InvalidArgument("A list holds values of more than one kind");
  }
  return list;
}

void ListToProto(const AttrList& list, pb::AttrValue::ListValue* proto) {
  for (const std::string& value : list.strings) proto->add_s(value);
  for (int64_t value : list.ints) proto->add_i(value);
  for (float value : list.floats) proto->add_f(value);
  for (bool value : list.bools) proto->add_b(value);
  for (DType value : list.types) proto->add_type(DTypeToProto(value));
  for (const PartialShape& value : list.shapes) {
    PartialShapeToProto(value, proto->add_shape());
  }
  for (const Tensor& value : list.tensors) {
    TensorToTypedProto(value, proto->add_tensor());
  }
  for (const FunctionName& value : list.functions) {
    FunctionToProto(value, proto->add_func());
  }
}

absl::StatusOr<AttrValue> FromProto(const pb::AttrValue& proto, int depth) {
  switch (proto.value_case()) {
    case pb::AttrValue::kS:
      return AttrValue(proto.s());
    case pb::AttrValue::kI:
      return AttrValue(int64_t{proto.i()});
    case pb::AttrValue::kF:
      return AttrValue(proto.f());
    case pb::AttrValue::kB:
      return AttrValue(proto.b());
    case pb::AttrValue::kType:
      return AttrValue(DTypeFromProto(proto.type()));
    case pb::AttrValue::kShape: {
      SLUICE_ASSIGN_OR_RETURN(PartialShape shape,
                              PartialShapeFromProto(proto.shape()));
      return AttrValue(std::move(shape));
    }
    case pb::AttrValue::kTensor:
      return TensorAttr(proto.tensor());
    case pb::AttrValue::kFunc: {
      SLUICE_ASSIGN_OR_RETURN(FunctionName function,
                              FunctionFromProto(proto.func(), depth));
      return AttrValue(std::move(function));
    }
    case pb::AttrValue::kList: {
      SLUICE_ASSIGN_OR_RETURN(AttrList list,
                              ListFromProto(proto.list(), depth));
      return AttrValue(std::move(list));
    }
    case pb::AttrValue::kPlaceholder:
      return AttrValue(AttrPlaceholder{proto.placeholder()});
    case pb::AttrValue::VALUE_NOT_SET:
      return AttrValue();
  }
  return AttrValue();
}

}  // namespace

absl::StatusOr<AttrValue> AttrFromProto(const pb::AttrValue& proto) {
  return FromProto(proto, 0);
}

void AttrToProto(const AttrValue& value, pb::AttrValue* proto) {
  proto->Clear();
  if (auto* v = value.get<std::string>()) proto->set_s(*v);
  if (auto* v = value.get<int64_t>()) proto->set_i(*v);
  if (auto* v = value.get<float>()) proto->set_f(*v);
  if (auto* v = value.get<bool>()) proto->set_b(*v);
  if (auto* v = value.get<DType>()) proto->set_type(DTypeToProto(*v));
  if (auto* v = value.get<PartialShape>()) {
    PartialShapeToProto(*v, proto->mutable_shape());
  }
  if (value.get<Tensor>()) TensorToAttr(value, proto->mutable_tensor());
  if (auto* v = value.get<FunctionName>()) {
    FunctionToProto(*v, proto->mutable_func());
  }
  if (auto* v = value.get<AttrList>()) ListToProto(*v, proto->mutable_list());
  if (auto* v = value.get<AttrPlaceholder>()) {
    proto->set_placeholder(v->name);
  }
}

}  // namespace sluice
