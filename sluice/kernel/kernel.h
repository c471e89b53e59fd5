// Kernel: the code behind a node on a device, and KernelContext: what it sees
// while it runs. Most kernels are plain functions `absl::Status
// F(KernelContext&)` (kernel_registry.h); classes keep attributes or state.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/base/status.h"
#include "sluice/graph/graph.h"
#include "sluice/kernel/device.h"
#include "sluice/kernel/step.h"
#include "sluice/kernel/variable.h"
#include "sluice/tensor/tensor.h"

namespace sluice {

class KernelContext;

// A place for a value while a step runs. A *ref* slot holds the variable
// itself; an *alias* slot stands for the variable's current value, which is
// read when a consumer runs (DESIGN D3).
struct Slot {
  enum class Kind : uint8_t { kEmpty, kValue, kRef, kAlias, kDead };

  Tensor tensor;
  RefPtr<VariableState> variable;
  Kind kind = Kind::kEmpty;

  void Clear() {
    if (kind == Kind::kValue) {
      tensor.Reset();
    } else if (variable) {
      variable = nullptr;
    }
    kind = Kind::kEmpty;
  }
};

// Finishes an async kernel; called exactly once.
using Done = absl::AnyInvocable<void(absl::Status)>;

// What a kernel may ask for while it is made.
class KernelConstruction {
 public:
  KernelConstruction(const Node& node, Device& device)
      : node_(node), device_(device) {}
  const Node& node() const { return node_; }
  Device& device() const { return device_; }
  template <typename T>
  T attr(std::string_view name) const {
    return node_.attr<T>(name);
  }

 private:
  const Node& node_;
  Device& device_;
};

// Made once per node and registered graph (stateful ops: once per node and
// session) and then run by many steps at once, so it must be thread-safe.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual absl::Status Run(KernelContext& ctx) = 0;
  // Non-null for kernels whose work may wait; Run is then never called.
  virtual class AsyncKernel* AsAsync() { return nullptr; }
};

class AsyncKernel : public Kernel {
 public:
  // Must not block. `ctx` stays valid until `done` has been called. A kernel
  // that waits registers with ctx.step().cancellation.
  virtual void Start(KernelContext& ctx, Done done) = 0;
  absl::Status Run(KernelContext& ctx) final;  // Start and wait, for tests.
  AsyncKernel* AsAsync() final { return this; }
};

// A tensor reference or an error; made for SLUICE_ASSIGN_OR_RETURN(Tensor& y,
// …).
class OutputResult {
 public:
  OutputResult(Tensor& tensor) : tensor_(&tensor) {}                 // NOLINT
  OutputResult(absl::Status status) : status_(std::move(status)) {}  // NOLINT
  bool ok() const { return tensor_ != nullptr; }
  const absl::Status& status() const { return status_; }
  Tensor& operator*() const { return *tensor_; }

 private:
  Tensor* tensor_ = nullptr;
  absl::Status status_;
};

// Where a node's inputs and outputs live in an array of slots. Compiled once.
struct NodeSlots {
  const Node* node = nullptr;
  const int32_t* inputs = nullptr;  // One slot index per input.
  // Whether this node is the last to use that slot and so may take it over.
  const bool* last_use = nullptr;
  int32_t first_output = 0;
  // One per output. The same as the node's, but a step does not touch nodes:
  // they are scattered over memory, and each would be a cache miss.
  const DType* output_types = nullptr;
};

// Thread-compatible; belongs to one running node.
class KernelContext {
 public:
  KernelContext(Step& step, Device& device, Slot* slots)
      : step_(&step), device_(&device), slots_(slots) {}

  const Node& node() const { return *at_->node; }
  template <typename T>
  T attr(std::string_view name) const {
    return node().attr<T>(name);
  }
  Step& step() const { return *step_; }
  Device& device() const { return *device_; }
  ResourceManager& resources() const { return device_->resources(); }

  int num_inputs() const { return node().num_inputs(); }
  int num_outputs() const { return node().num_outputs(); }
  const Tensor& input(int i) const { return slots_[at_->inputs[i]].tensor; }
  // For inputs of a ref type.
  VariableState& variable(int i) const {
    return *slots_[at_->inputs[i]].variable;
  }
  // False for a ref input whose variable was never assigned, and for an input
  // that is not there (the untaken branch of a Merge).
  bool has_input(int i) const {
    return slots_[at_->inputs[i]].kind == Slot::Kind::kValue ||
           slots_[at_->inputs[i]].kind == Slot::Kind::kRef;
  }

  // Memory for output i, contents undefined.
  OutputResult Output(int i, const Shape& shape);
  // Output 0 with the shape of `input`, in that input's memory if nobody else
  // needs it. The kernel must then read element k before it writes it.
  OutputResult OutputLike(int input) {
    return OutputFrom({input}, 0, this->input(input).shape());
  }
  // As OutputLike for any output and the first of `candidates` that has the
  // right size and type.
  OutputResult OutputFrom(std::initializer_list<int> candidates, int i,
                          const Shape& shape);
  void set_output(int i, Tensor value) {
    Slot& slot = slots_[at_->first_output + i];
    slot.tensor = std::move(value);
    slot.kind = Slot::Kind::kValue;
  }
  void set_output_variable(int i, RefPtr<VariableState> variable) {
    Slot& slot = slots_[at_->first_output + i];
    slot.variable = std::move(variable);
    slot.kind = Slot::Kind::kRef;
  }
  // Passes ref input `input` on as output i.
  void ForwardRef(int input, int i) {
    set_output_variable(i, slots_[at_->inputs[input]].variable);
  }
  // Marks output i as not taken (Switch, Recv of a dead value).
  void set_output_dead(int i) {
    slots_[at_->first_output + i].kind = Slot::Kind::kDead;
  }
  // True while running a Send whose input is dead.
  bool input_dead() const { return input_dead_; }

  // Splits [0, n) over the compute pool if it is worth it. `nanos_per_item` is
  // a rough cost of one item.
  void ParallelFor(int64_t n, absl::FunctionRef<void(int64_t, int64_t)> body,
                   double nanos_per_item = 1.0) const;

  // The loop this node runs in: "0:0" outside of loops.
  std::string_view frame_and_iter() const { return frame_and_iter_; }

  // For executors.
  void Enter(const NodeSlots& at) { at_ = &at; }
  void set_input_dead(bool dead) { input_dead_ = dead; }
  void set_frame_and_iter(std::string_view text) { frame_and_iter_ = text; }
  Slot& input_slot(int i) const { return slots_[at_->inputs[i]]; }
  Slot& output_slot(int i) const { return slots_[at_->first_output + i]; }

 private:
  Step* step_;
  Device* device_;
  Slot* slots_;
  const NodeSlots* at_ = nullptr;
  std::string_view frame_and_iter_ = "0:0";
  bool input_dead_ = false;
};

}  // namespace sluice
