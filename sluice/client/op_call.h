// OpCall: adds one node from what an op function was given. The generated
// functions (build tree, sluice/client/ops/) are a few lines over it, so that
// hundreds of them stay cheap to compile.
//
//   OpCall call(scope, "MatMul");
//   call.In(a).In(b).Attr("transpose_a", true);
//   Output product = call.One();
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sluice/client/input.h"
#include "sluice/graph/scope.h"

namespace sluice {

// Inputs come in the order of the op's definition. Used once: One, Many, Result
// or Outputs adds the node. Errors go to the scope. Thread-compatible.
class OpCall {
 public:
  OpCall(const Scope& scope, const char* op);

  OpCall& In(const Input& input);
  OpCall& In(const InputList& inputs);

  OpCall& Attr(const char* name, bool value);
  OpCall& Attr(const char* name, int64_t value);
  OpCall& Attr(const char* name, float value);
  OpCall& Attr(const char* name, DType value);
  OpCall& Attr(const char* name, const std::string& value);
  OpCall& Attr(const char* name, const PartialShape& value);
  // Left out if there is no tensor, or no function.
  OpCall& Attr(const char* name, const Tensor& value);
  OpCall& Attr(const char* name, const FunctionName& value);
  OpCall& Attr(const char* name, const std::vector<bool>& value);
  OpCall& Attr(const char* name, const std::vector<int64_t>& value);
  OpCall& Attr(const char* name, const std::vector<float>& value);
  OpCall& Attr(const char* name, const std::vector<DType>& value);
  OpCall& Attr(const char* name, const std::vector<std::string>& value);
  OpCall& Attr(const char* name, const std::vector<PartialShape>& value);
  OpCall& Attr(const char* name, const std::vector<Tensor>& value);
  OpCall& Attr(const char* name, const std::vector<FunctionName>& value);

  // The node, nullptr after an error.
  Node* Result();
  // Its first output.
  Output One();
  // All its outputs.
  std::vector<Output> Many();
  // Of an op with several outputs: the next one, or the next list.
  Output Next();
  std::vector<Output> NextList();

 private:
  // One input argument; not a list: one item.
  struct Arg {
    std::vector<Input> items;
  };
  // The type that literals for `arg` adapt to; kInvalid: their own.
  DType WantedType(const ArgDef& arg, size_t item) const;
  absl::Status Resolve(const OpDef& def);
  std::vector<Output> AddInputs(const Scope& inner, const OpDef& def);
  std::string LiteralName(const ArgDef& arg, size_t item) const;

  const Scope& scope_;
  const char* const op_;
  std::vector<Arg> args_;
  AttrMap attrs_;
  // Type attrs as far as outputs, tensors and given attrs decide them.
  AttrMap known_types_;
  Node* node_ = nullptr;
  bool added_ = false;
  int next_arg_ = 0;
  int next_output_ = 0;
};

// The input as an output; a literal becomes a Const called `name`. `dtype`
// counts for numbers only; kInvalid: their own. Errors go to the scope.
Output AsOutput(const Scope& scope, const Input& input, std::string_view name,
                DType dtype = DType::kInvalid);

}  // namespace sluice
