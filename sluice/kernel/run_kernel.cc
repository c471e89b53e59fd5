#include "sluice/kernel/run_kernel.h"

#include "sluice/base/file_jail.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"

namespace sluice {

absl::StatusOr<std::vector<Tensor>> RunKernel(Kernel& kernel, const Node& node,
                                              Device& device,
                                              std::span<const Tensor> inputs) {
  const int num_inputs = static_cast<int>(inputs.size());
  std::vector<Slot> slots(num_inputs + node.num_outputs());
  std::vector<int32_t> at(num_inputs);
  const auto last_use = std::make_unique<bool[]>(num_inputs);
  for (int i = 0; i < num_inputs; ++i) {
    slots[i].tensor = inputs[i];
    slots[i].kind = Slot::Kind::kValue;
    at[i] = i;
  }
  Cancellation cancellation;
  LocalRendezvous rendezvous;
  Step step;
  step.cancellation = &cancellation;
  step.rendezvous = &rendezvous;
  step.clock = &RealClock();
  const NodeSlots where{&node, at.data(), last_use.get(), num_inputs,
                        node.output_types().data()};
  KernelContext ctx(step, device, slots.data());
  ctx.Enter(where);
  SLUICE_RETURN_IF_ERROR(kernel.Run(ctx));
  std::vector<Tensor> outputs;
  for (int i = 0; i < node.num_outputs(); ++i) {
    outputs.push_back(std::move(slots[num_inputs + i].tensor));
  }
  return outputs;
}

Device& ScratchDevice() {
  // Without any file: those of the task an op is placed on may be others, may
  // change between steps, or be none of a client's business.
  static Device* device = new Device(
      *DeviceName::Parse("/job:localhost/replica:0/task:0/device:CPU:0"), 1,
      **FileJail({}));
  return *device;
}

namespace {

std::optional<Tensor> Evaluate(const Node& node, int output,
                               std::span<const Tensor> inputs) {
  absl::StatusOr<std::unique_ptr<Kernel>> kernel =
      MakeKernel(node, ScratchDevice());
  if (!kernel.ok() || (*kernel)->AsAsync() != nullptr) return std::nullopt;
  auto outputs = RunKernel(**kernel, node, ScratchDevice(), inputs);
  // An error here is for the run to report, with the step it happens in.
  if (!outputs.ok() || !(*outputs)[output].initialized()) return std::nullopt;
  return (*outputs)[output];
}

[[maybe_unused]] const bool kEvaluatorIsSet = [] {
  SetConstantEvaluator(Evaluate);
  return true;
}();

}  // namespace
}  // namespace sluice
