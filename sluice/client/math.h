// Op functions with the signatures that Python programs know, beside the
// generated ones (client/ops.h).
#pragma once

#include <optional>
#include <vector>

#include "sluice/client/input.h"
#include "sluice/graph/scope.h"

namespace sluice::ops {

// A Const of a value written into the program.
Output Const(const Scope& scope, const Literal& value);
// Tensors of one value. A shape may be computed: any integer vector.
Output Zeros(const Scope& scope, const Input& shape,
             DType dtype = DType::kFloat);
Output Ones(const Scope& scope, const Input& shape,
            DType dtype = DType::kFloat);

struct RandomNormalOptions {
  float mean = 0;
  float stddev = 1;
  DType dtype = DType::kFloat;
  // Both 0: other numbers in every run.
  int64_t seed = 0;
  int64_t seed2 = 0;
};
Output RandomNormal(const Scope& scope, const Input& shape,
                    const RandomNormalOptions& options = {});

struct ReduceOptions {
  // The dimensions to reduce; from the last one if negative. Nothing: all.
  std::optional<std::vector<int32_t>> axis = std::nullopt;
  bool keepdims = false;
};
Output ReduceSum(const Scope& scope, const Input& x,
                 const ReduceOptions& options = {});
Output ReduceMean(const Scope& scope, const Input& x,
                  const ReduceOptions& options = {});
Output ReduceProd(const Scope& scope, const Input& x,
                  const ReduceOptions& options = {});
Output ReduceMax(const Scope& scope, const Input& x,
                 const ReduceOptions& options = {});
Output ReduceMin(const Scope& scope, const Input& x,
                 const ReduceOptions& options = {});
Output ReduceAll(const Scope& scope, const Input& x,
                 const ReduceOptions& options = {});
Output ReduceAny(const Scope& scope, const Input& x,
                 const ReduceOptions& options = {});

}  // namespace sluice::ops
