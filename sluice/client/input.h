// Input: what an op function takes — the output of a node, or a value written
// into the program, which becomes a Const.
//
//   ops::Add(scope, x, 1)               // 1 takes the type of x.
//   ops::Reshape(scope, x, {2, 3})
//   ops::MatMul(scope, {{1.f, 2.f}, {3.f, 4.f}}, x)
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/graph/op_registry.h"
#include "sluice/tensor/tensor.h"

namespace sluice {

// A value written into a program. Numbers and lists of them adapt to the type
// that the op asks for; tensors and strings stay what they are. Immutable.
class Literal {
 public:
  template <typename T>
    requires std::is_arithmetic_v<T>
  Literal(T value)  // NOLINT: numbers are literals.
      : value_(Tensor::Scalar<typename StoredAs<T>::type>(value)),
        adapts_(!std::is_same_v<T, bool>) {}
  Literal(const char* text)  // NOLINT
      : Literal(std::string(text)) {}
  Literal(std::string_view text)  // NOLINT
      : Literal(std::string(text)) {}
  Literal(std::string text)  // NOLINT
      : value_(Tensor::Scalar<std::string>(std::move(text))) {}
  Literal(Tensor value) : value_(std::move(value)) {}  // NOLINT
  template <typename T>
    requires(!std::is_same_v<T, bool>)
  Literal(const std::vector<T>& values)  // NOLINT
      : value_(Tensor::Of<T>({static_cast<int64_t>(values.size())},
                             std::span<const T>(values))),
        adapts_(std::is_arithmetic_v<T>) {}
  // Lists may nest, and are as long as their neighbours. Of mixed numbers the
  // widest type counts. A list that is none of that fails where it is used.
  Literal(std::initializer_list<Literal> items);  // NOLINT

  // The value as `dtype`; kInvalid means as it is. An error if it would not be
  // the same value any more (1.5 as an integer), or is no number.
  absl::StatusOr<Tensor> As(DType dtype) const;
  bool adapts() const { return adapts_; }
  // kInvalid for a list that is none.
  DType dtype() const { return value_.dtype(); }

 protected:
  // No value at all. No default constructor, as `{}` is an empty list.
  enum class None { kNone };
  explicit Literal(None) {}

 private:
  // The fixed-width type that holds a T.
  template <typename T>
  struct StoredAs {
    using type = T;
  };
  Tensor value_;
  bool adapts_ = false;
};

template <>
struct Literal::StoredAs<long long> {
  using type = int64_t;
};
template <>
struct Literal::StoredAs<unsigned long long> {
  using type = uint64_t;
};
template <>
struct Literal::StoredAs<char> {
  using type = int8_t;
};

// What a list of these literals would have as type.
DType WidestType(const std::vector<Literal>& literals);

// An Output or a Literal. Immutable.
class Input : Literal {
 public:
  using Literal::Literal;
  Input(Literal literal) : Literal(std::move(literal)) {}  // NOLINT
  Input(Output output)                                     // NOLINT
      : Literal(None::kNone), output_(output), is_output_(true) {}
  // Whatever stands for an output, such as a Variable.
  template <typename T>
    requires(std::convertible_to<const T&, Output> && !std::same_as<T, Output>)
  Input(const T& value)  // NOLINT
      : Input(static_cast<Output>(value)) {}

  bool is_output() const { return is_output_; }
  // Only for outputs; "none" stays none.
  Output output() const { return output_; }
  // Only for literals.
  const Literal& literal() const { return *this; }

 private:
  Output output_;
  bool is_output_ = false;
};

// What an op function takes for a list of tensors.
class InputList {
 public:
  InputList(std::initializer_list<Input> items) : items_(items) {}
  InputList(std::vector<Input> items) : items_(std::move(items)) {}  // NOLINT
  InputList(const std::vector<Output>& outputs)                      // NOLINT
      : items_(outputs.begin(), outputs.end()) {}

  const std::vector<Input>& items() const { return items_; }

 private:
  std::vector<Input> items_;
};

}  // namespace sluice
