#include "sluice/autodiff/seed.h"

#include "sluice/autodiff/zeros.h"
#include "sluice/graph/python_text.h"

namespace sluice {

namespace {

absl::StatusOr<Grad> Ones(const Scope& scope, Output y, int index) {
  const DType type = BaseType(TypeOf(y));
  if (IsComplex(type)) {
    return PythonTypeError(
        StrCat("Gradients of complex tensors must set grad_ys (y.dtype = tf.",
               PythonText(type), ")"));
  }
  if (!IsFloating(type) && !IsInteger(type)) {
    return PythonTypeError(StrCat("Expected ", PythonText(type),
                                  ", got 1 of type 'int' instead."));
  }
  const Output shape = ShapeNode(scope, y);
  const Output one =
      scope.Named(StrCat("grad_ys_", index)).Const(ScalarOfType(type, 1));
  const Output ones = scope.Add("Fill", {shape, one});
  SLUICE_RETURN_IF_ERROR(scope.status());
  return Grad(ones);
}

bool IsReal(DType type) { return IsFloating(type) || IsInteger(type); }

// Whether a gradient of y may have the type of `grad`.
absl::Status CheckType(Output y, const Grad& grad) {
  const DType type = BaseType(TypeOf(y));
  const DType grad_type = BaseType(TypeOf(grad.values));
  auto mismatch = [&](std::string_view kind, std::string_view needed) {
    return PythonTypeError(StrCat("Gradient type ", PythonText(grad_type),
                                  " generated for ", kind, " tensor ",
                                  PythonText(y), " with type ",
                                  PythonText(type), " must be ", needed));
  };
  if (IsReal(type)) {
    if (IsReal(grad_type)) return absl::OkStatus();
    return mismatch("real or integer-valued", "real or integer");
  }
  if (IsComplex(type)) {
    if (IsComplex(grad_type)) return absl::OkStatus();
    // TensorFlow's word, though complex is meant.
    return mismatch("complex-valued", "real");
  }
  if (type == DType::kVariant) {
    if (grad_type == DType::kVariant) return absl::OkStatus();
    return mismatch("variant", "variant");
  }
  if (type == DType::kResource) {
    if (grad_type != DType::kResource) return absl::OkStatus();
    return PythonTypeError(StrCat("Input gradient ", PythonText(grad.values),
                                  " for resource tensor ", PythonText(y),
                                  " should not be a resource"));
  }
  return PythonTypeError(
      StrCat("Tensor ", PythonText(y), " with type ", PythonText(type),
             " must be numeric to obtain a default gradient"));
}

}  // namespace

absl::StatusOr<Grad> SeedGradient(const Scope& scope, Output y,
                                  const Grad& given, int index) {
  SLUICE_RETURN_IF_ERROR(scope.status());
  if (!given) return Ones(scope, y, index);
  SLUICE_RETURN_IF_ERROR(CheckType(y, given));
  // The copy lies in the scope of this call, by which tensor arrays tell the
  // calls apart.
  auto copy = [&](Output tensor, std::string_view suffix) {
    if (!tensor) return tensor;
    return scope.Named(StrCat("grad_ys_", index, suffix))
        .Add("Identity", {tensor});
  };
  Grad seed;
  if (given.is_slices()) {
    seed.indices = copy(given.indices, "_indices");
    seed.values = copy(given.values, "_values");
    seed.dense_shape = copy(given.dense_shape, "_shape");
  } else {
    seed.values = copy(given.values, "");
  }
  SLUICE_RETURN_IF_ERROR(scope.status());
  return seed;
}

}  // namespace sluice
