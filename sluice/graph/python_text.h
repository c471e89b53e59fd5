// Shapes, types and tensors in the words of TensorFlow's Python messages, on
// which programs match.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "sluice/graph/graph.h"

namespace sluice {

// "(2, ?)", "(3,)", "()", "<unknown>".
std::string PythonText(const PartialShape& shape);
// "float32", "int64", "float32_ref".
std::string PythonText(DType type);
// `Tensor("mul:0", shape=(2,), dtype=float32)`.
std::string PythonText(Output tensor);

// The type URL of a payload that holds the name of a Python exception.
inline constexpr char kPythonErrorPayload[] = "sluice/python_error";
// An InvalidArgument that Python raises as TypeError.
absl::Status PythonTypeError(std::string_view message);

}  // namespace sluice
