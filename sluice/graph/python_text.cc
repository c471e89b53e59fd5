#include "sluice/graph/python_text.h"

#include "absl/strings/cord.h"

namespace sluice {

std::string PythonText(const PartialShape& shape) {
  if (!shape.known_rank()) return "<unknown>";
  std::string text = "(";
  for (int i = 0; i < shape.rank(); ++i) {
    if (i > 0) text += ", ";
    text += shape.dim(i) < 0 ? "?" : StrCat(shape.dim(i));
  }
  return text + (shape.rank() == 1 ? ",)" : ")");
}

std::string PythonText(DType type) {
  const std::string suffix = IsRef(type) ? "_ref" : "";
  switch (BaseType(type)) {
    case DType::kFloat:
      return "float32" + suffix;
    case DType::kDouble:
      return "float64" + suffix;
    case DType::kHalf:
      return "float16" + suffix;
    default:
      return DTypeName(type);
  }
}

std::string PythonText(Output tensor) {
  const PartialShape& shape = ShapeOf(tensor);
  std::string text = StrCat("Tensor(\"", TensorName(tensor), "\"");
  if (shape.known_rank()) text += ", shape=" + PythonText(shape);
  text += ", dtype=" + PythonText(TypeOf(tensor));
  if (!tensor.node->device().empty()) {
    text += ", device=" + tensor.node->device();
  }
  return text + ")";
}

absl::Status PythonTypeError(std::string_view message) {
  absl::Status status = InvalidArgument(message);
  status.SetPayload(kPythonErrorPayload, absl::Cord("TypeError"));
  return status;
}

}  // namespace sluice
