#include "sluice/ops/state/testing/op_session.h"

#include "sluice/base/logging.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"

namespace sluice {

SLUICE_OP(SessionValue)
    .Output("output: dtype")
    .Attr("dtype: type")
    .Attr("shape: shape = ?")
    .Shape(shapes::FromShapeAttr);

std::unique_ptr<Device> MakeTestDevice(std::string_view job) {
  return std::make_unique<Device>(
      *DeviceName::Parse(
          StrCat("/job:", job, "/replica:0/task:0/device:CPU:0")),
      1);
}

absl::StatusOr<Node*> OpSession::TryAdd(std::string_view op,
                                        const std::vector<Output>& inputs,
                                        const AttrMap& attrs,
                                        std::string_view name) {
  NodeSpec spec;
  spec.name = name.empty() ? StrCat("node", next_name_++) : std::string(name);
  spec.op = std::string(op);
  spec.inputs = inputs;
  spec.attrs = attrs;
  return graph_.AddNode(std::move(spec));
}

Node* OpSession::Add(std::string_view op, const std::vector<Output>& inputs,
                     const AttrMap& attrs, std::string_view name) {
  absl::StatusOr<Node*> node = TryAdd(op, inputs, attrs, name);
  SLUICE_CHECK(node.ok()) << node.status();
  return *node;
}

Output OpSession::Value(Tensor value, bool known_shape) {
  AttrMap attrs{{"dtype", value.dtype()}};
  if (known_shape) attrs.Set("shape", value.shape());
  Node* node = Add("SessionValue", {}, attrs);
  values_[node] = std::move(value);
  return node->output(0);
}

void OpSession::SetValue(Output source, Tensor value) {
  values_[source.node] = std::move(value);
}

std::shared_ptr<OpRun> OpSession::Start(Node* node) {
  return StartIn(std::make_shared<OpRun>(), node);
}

std::shared_ptr<OpRun> OpSession::StartCancelled(Node* node) {
  auto run = std::make_shared<OpRun>();
  run->cancellation_.Cancel(Cancelled("The step is over"));
  return StartIn(std::move(run), node);
}

std::shared_ptr<OpRun> OpSession::StartIn(std::shared_ptr<OpRun> run,
                                          Node* node) {
  results_.clear();
  const auto finish = [run](absl::Status status) {
    run->status_ = std::move(status);
    run->done_.Notify();
  };
  const absl::Status started = StartOne(node, *run, finish);
  if (!started.ok()) finish(started);
  return run;
}

absl::StatusOr<std::vector<Tensor>> OpSession::Outputs(Node* node) {
  const std::shared_ptr<OpRun> run = Start(node);
  SLUICE_RETURN_IF_ERROR(run->Wait());
  std::vector<Tensor> outputs;
  for (int i = 0; i < node->num_outputs(); ++i) {
    const Slot& slot = run->slot(i);
    outputs.push_back(slot.kind == Slot::Kind::kRef ? slot.variable->Read()
                                                    : slot.tensor);
  }
  return outputs;
}

Tensor OpSession::Output0(Node* node) {
  absl::StatusOr<std::vector<Tensor>> outputs = Outputs(node);
  SLUICE_CHECK(outputs.ok()) << outputs.status();
  return (*outputs)[0];
}

absl::Status OpSession::Prepare(Node* node, OpRun& run) {
  run.slots_.resize(node->num_inputs() + node->num_outputs());
  run.last_use_ = std::make_unique<bool[]>(node->num_inputs());
  for (int i = 0; i < node->num_inputs(); ++i) {
    run.inputs_.push_back(i);
    const Output input = node->input(i);
    if (!results_.contains(input.node)) {
      OpRun before;
      absl::Status status;
      Notification done;
      SLUICE_RETURN_IF_ERROR(StartOne(input.node, before, [&](absl::Status s) {
        status = std::move(s);
        done.Notify();
      }));
      done.Wait();
      SLUICE_RETURN_IF_ERROR(status);
      results_[input.node] = {before.slots_.begin() + before.first_output_,
                              before.slots_.end()};
    }
    Slot slot = results_[input.node][input.index];
    if (slot.kind == Slot::Kind::kRef &&
        !node->op().def.allows_uninitialized_input &&
        !slot.variable->initialized()) {
      return FailedPrecondition("Attempting to use uninitialized value ",
                                input.node->name());
    }
    if (slot.kind == Slot::Kind::kRef && !IsRef(node->input_type(i))) {
      slot.tensor = slot.variable->Read();
      slot.kind = Slot::Kind::kValue;
    }
    run.slots_[i] = std::move(slot);
  }
  run.first_output_ = node->num_inputs();
  return absl::OkStatus();
}

absl::Status OpSession::StartOne(Node* node, OpRun& run, Done done) {
  SLUICE_RETURN_IF_ERROR(Prepare(node, run));
  if (auto value = values_.find(node); value != values_.end()) {
    run.slots_[run.first_output_].tensor = value->second;
    run.slots_[run.first_output_].kind = Slot::Kind::kValue;
    done(absl::OkStatus());
    return absl::OkStatus();
  }
  std::unique_ptr<Kernel>& kernel = kernels_[node];
  if (kernel == nullptr) {
    SLUICE_ASSIGN_OR_RETURN(kernel, MakeKernel(*node, device_));
  }
  run.step_.id = 1;
  run.step_.cancellation = &run.cancellation_;
  run.step_.rendezvous = &rendezvous_;
  run.step_.clock = &RealClock();
  run.at_ = {node, run.inputs_.data(), run.last_use_.get(), run.first_output_,
             node->output_types().data()};
  run.context_ =
      std::make_unique<KernelContext>(run.step_, device_, run.slots_.data());
  run.context_->Enter(run.at_);
  if (AsyncKernel* async = kernel->AsAsync()) {
    async->Start(*run.context_, std::move(done));
  } else {
    done(kernel->Run(*run.context_));
  }
  return absl::OkStatus();
}

}  // namespace sluice
