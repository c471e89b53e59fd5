// Layers with variables of their own (tf.layers). The variables are found by
// their collections.
#pragma once

#include "sluice/client/input.h"
#include "sluice/client/variable.h"
#include "sluice/graph/scope.h"

namespace sluice::layers {

// The form of ops::Relu and its like.
using Activation = Output (*)(const Scope& scope, const Input& features);

struct DenseOptions {
  Activation activation = nullptr;  // None.
  bool use_bias = true;
  // The first values of kernel and bias; Glorot's uniform ones, and zeros.
  Initializer kernel_initializer = nullptr;
  Initializer bias_initializer = nullptr;
};

// activation(x · kernel + bias) for rows of x, whose number of columns must be
// known. Its nodes are named `dense/…`, or as `scope` says (Named).
Output Dense(const Scope& scope, const Input& x, int64_t units,
             const DenseOptions& options = {});

}  // namespace sluice::layers
