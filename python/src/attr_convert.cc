#include "src/attr_convert.h"

#include "sluice/base/status.h"
#include "src/graph_binding.h"
#include "src/status.h"

namespace py = pybind11;

namespace sluice::python {
namespace {

std::string Text(const py::handle& value) {
  if (py::isinstance<py::bytes>(value)) return value.cast<std::string>();
  return py::str(value).cast<std::string>();
}

[[noreturn]] void Wrong(std::string_view type, const py::handle& value) {
  throw StatusException(InvalidArgument("Expected an attr value of type ", type,
                                        ", got ",
                                        py::repr(value).cast<std::string>()));
}

AttrList ListFromPython(std::string_view element, const py::handle& value) {
  AttrList list;
  for (const py::handle& item : value) {
    if (element == "string") {
      list.strings.push_back(Text(item));
    } else if (element == "int") {
      list.ints.push_back(item.cast<int64_t>());
    } else if (element == "float") {
      list.floats.push_back(item.cast<float>());
    } else if (element == "bool") {
      list.bools.push_back(item.cast<bool>());
    } else if (element == "type") {
      list.types.push_back(static_cast<DType>(item.cast<int>()));
    } else if (element == "shape") {
      list.shapes.push_back(ShapeFromPython(item));
    } else if (element == "tensor") {
      list.tensors.push_back(item.cast<Tensor>());
    } else if (element == "func") {
      list.functions.push_back({Text(item), nullptr});
    } else {
      Wrong(element, item);
    }
  }
  return list;
}

std::string_view GuessType(const py::handle& value) {
  if (py::isinstance<py::bool_>(value)) return "bool";
  if (py::isinstance<py::int_>(value)) return "int";
  if (py::isinstance<py::float_>(value)) return "float";
  if (py::isinstance<py::str>(value) || py::isinstance<py::bytes>(value))
    return "string";
  if (py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value)) {
    const auto list = py::reinterpret_borrow<py::sequence>(value);
    if (list.size() == 0) return "list(string)";
    const std::string_view element = GuessType(list[0]);
    if (element == "int") return "list(int)";
    if (element == "float") return "list(float)";
    if (element == "bool") return "list(bool)";
    return "list(string)";
  }
  return "";
}

}  // namespace

AttrValue AttrFromPython(std::string_view type, const py::handle& value) {
  if (type.empty()) type = GuessType(value);
  try {
    if (type.starts_with("list(")) {
      return ListFromPython(type.substr(5, type.size() - 6), value);
    }
    if (type == "string") return Text(value);
    if (type == "int") return value.cast<int64_t>();
    if (type == "float") return static_cast<float>(value.cast<double>());
    if (type == "bool") return value.cast<bool>();
    if (type == "type") return static_cast<DType>(value.cast<int>());
    if (type == "shape") return ShapeFromPython(value);
    if (type == "tensor" && py::isinstance<py::tuple>(value)) {
      // (tensor, how many values were written).
      const auto pair = value.cast<std::pair<Tensor, int64_t>>();
      AttrValue tensor(pair.first);
      tensor.set_given_values(pair.second);
      return tensor;
    }
    if (type == "tensor") return value.cast<Tensor>();
    if (type == "func") return FunctionName{Text(value), nullptr};
  } catch (const py::cast_error&) {
  }
  Wrong(type, value);
}

py::object AttrToPython(const AttrValue& value) {
  struct Convert {
    py::object operator()(std::monostate) const { return py::none(); }
    py::object operator()(const std::string& v) const { return py::bytes(v); }
    py::object operator()(int64_t v) const { return py::int_(v); }
    py::object operator()(float v) const { return py::float_(v); }
    py::object operator()(bool v) const { return py::bool_(v); }
    py::object operator()(DType v) const {
      return py::make_tuple("type", static_cast<int>(v));
    }
    py::object operator()(const PartialShape& v) const {
      return py::make_tuple("shape", ShapeToPython(v));
    }
    py::object operator()(const Tensor& v) const { return py::cast(v); }
    py::object operator()(const FunctionName& v) const {
      return py::make_tuple("func", v.name);
    }
    py::object operator()(const AttrPlaceholder& v) const {
      return py::make_tuple("placeholder", v.name);
    }
    py::object operator()(const AttrList& v) const {
      py::list list;
      for (const auto& x : v.strings) list.append(py::bytes(x));
      for (int64_t x : v.ints) list.append(x);
      for (float x : v.floats) list.append(x);
      for (bool x : v.bools) list.append(x);
      for (DType x : v.types) list.append((*this)(x));
      for (const auto& x : v.shapes) list.append((*this)(x));
      for (const auto& x : v.tensors) list.append((*this)(x));
      for (const auto& x : v.functions) list.append((*this)(x));
      return list;
    }
  };
  return std::visit(Convert(), value.variant());
}

}  // namespace sluice::python
