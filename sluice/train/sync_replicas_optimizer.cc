#include "sluice/train/sync_replicas_optimizer.h"

#include <algorithm>

#include "sluice/autodiff/gate.h"
#include "sluice/base/logging.h"
#include "sluice/base/status.h"
#include "sluice/client/collections.h"
#include "sluice/train/initialize.h"
#include "sluice/train/session_manager.h"

namespace sluice {
namespace {

Output AsInt64(const Scope& scope, Output value) {
  if (BaseType(TypeOf(value)) == DType::kInt64) return value;
  return scope.Add("Cast", {value}, {{"DstT", DType::kInt64}});
}

Scope OnDevice(const Scope& scope, const std::string& device) {
  return device.empty() ? scope : scope.Device(device);
}

// Takes the mean of `count` gradients.
Node* Take(const Scope& outer, const std::string& op, Output handle,
           int32_t count, DType dtype) {
  const Scope scope = outer.NameScope(op);
  const Output required = scope.Named("num_required").Scalar(count);
  return scope.Named(scope.context().name_scope)
      .AddNode(op, {handle, required}, {{"dtype", dtype}});
}

}  // namespace

class SyncReplicasHook : public SessionRunHook {
 public:
  SyncReplicasHook(const SyncReplicasOptimizer& optimizer, bool is_chief,
                   int num_tokens)
      : optimizer_(optimizer), is_chief_(is_chief), num_tokens_(num_tokens) {}

  absl::Status Begin(Graph& graph) override {
    if (optimizer_.chief_init_op() == nullptr) {
      return FailedPrecondition(
          "SyncReplicasOptimizer.apply_gradient should be called before using "
          "the hook.");
    }
    init_op_ = is_chief_ ? optimizer_.chief_init_op()
                         : optimizer_.local_step_init_op();
    const Scope scope = Scope::Detached(graph);
    const SyncReplicasOps ops =
        optimizer_.CareOps(scope.NameScope("sync_replicas_care"));
    hand_out_ = ops.hand_out;
    if (is_chief_) {
      init_tokens_ = optimizer_.InitTokensOp(scope, num_tokens_);
      chief_ = std::make_shared<SyncReplicasChief>(
          ops, optimizer_.replicas_to_aggregate_, optimizer_.options_);
    }
    return scope.status();
  }

  absl::Status AfterCreateSession(std::shared_ptr<Session> session,
                                  Coordinator& coordinator) override {
    SLUICE_ASSIGN_OR_RETURN(
        const std::string missing,
        FindUninitialized(
            *session, optimizer_.ready_for_local_init_op(),
            "Model is not ready for SyncReplicasOptimizer local init."));
    if (!missing.empty()) {
      return FailedPrecondition(
          "Init operations did not make model ready for SyncReplicasOptimizer "
          "local_init. Init op: ",
          init_op_->name(), ", error: ", missing);
    }
    SLUICE_RETURN_IF_ERROR(session->Run(init_op_));
    if (init_tokens_ != nullptr) {
      SLUICE_RETURN_IF_ERROR(session->Run(init_tokens_));
    }
    if (is_chief_) {
      chief_->Start(session, coordinator);
    } else {
      wait_->Start(session->target(), coordinator);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<SessionRunArgs> BeforeRun(SessionRunContext&) override {
    wait_->Begin();
    return SessionRunArgs();
  }
  absl::Status AfterRun(SessionRunContext&,
                        const std::vector<Tensor>&) override {
    wait_->End();
    return absl::OkStatus();
  }

  absl::Status End(Session& session) override {
    if (is_chief_) {
      chief_->TrainingEnded();
    } else {
      // The others go on, and need the token that this one holds; unless the
      // training is over.
      session.Run(hand_out_).IgnoreError();
    }
    return absl::OkStatus();
  }

 private:
  const SyncReplicasOptimizer& optimizer_;
  const bool is_chief_;
  const int num_tokens_;
  Node* init_op_ = nullptr;
  Node* init_tokens_ = nullptr;
  Node* hand_out_ = nullptr;
  std::shared_ptr<SyncReplicasChief> chief_;
  const std::shared_ptr<TokenWait> wait_ = std::make_shared<TokenWait>();
};

SyncReplicasOptimizer::SyncReplicasOptimizer(
    std::shared_ptr<Optimizer> optimizer, int replicas_to_aggregate,
    int total_num_replicas, std::string name, SyncReplicasOptions options)
    : Optimizer(std::move(name), /*use_locking=*/false),
      optimizer_(std::move(optimizer)),
      replicas_to_aggregate_(replicas_to_aggregate),
      total_num_replicas_(total_num_replicas == 0 ? replicas_to_aggregate
                                                  : total_num_replicas),
      options_(options) {
  SLUICE_LOG(INFO) << "SyncReplicasV2: replicas_to_aggregate="
                   << replicas_to_aggregate_
                   << "; total_num_replicas=" << total_num_replicas_;
}

std::vector<GradAndVar> SyncReplicasOptimizer::ComputeGradients(
    const Scope& scope, Output loss, const MinimizeOptions& options) {
  return optimizer_->ComputeGradients(scope, loss, options);
}
Variable SyncReplicasOptimizer::slot(const Variable& var,
                                     std::string_view slot) const {
  return optimizer_->slot(var, slot);
}
std::vector<std::string> SyncReplicasOptimizer::slot_names() const {
  return optimizer_->slot_names();
}
std::vector<Variable> SyncReplicasOptimizer::variables() const {
  return optimizer_->variables();
}

void SyncReplicasOptimizer::MakeLocalStep(const Scope& scope) {
  // On this worker, also where variables go to parameter servers.
  Node* anchor = scope.AddNode("NoOp", {});
  local_step_ =
      Variable(scope.Colocate(anchor).Named("sync_rep_local_step"),
               ScalarOfType(global_step_.dtype(), 0),
               {.trainable = false, .collections = {keys::kLocalVariables}});
  if (!scope.ok()) return;
  local_step_init_op_ =
      scope.AddNode("Assign", {local_step_.ref(), global_step_.value()});
}

Grad SyncReplicasOptimizer::Aggregate(const Scope& outer,
                                      const GradAndVar& pair,
                                      std::vector<Node*>* pushes) {
  const Scope scope = OnDevice(outer, pair.var.device());
  const DType dtype = pair.var.dtype();
  const std::string shared = pair.var.name() + ":0/grad_accum";
  Output handle;
  Grad taken;
  if (!pair.grad.is_slices()) {
    handle = scope.Named("conditional_accumulator")
                 .Add("ResourceConditionalAccumulator", {},
                      {{"dtype", dtype},
                       {"shape", pair.var.shape()},
                       {"shared_name", shared}});
    pushes->push_back(
        scope.AddNode("ResourceAccumulatorApplyGradient",
                      {handle, AsInt64(scope, local_step_), pair.grad.values}));
    if (Node* node = Take(scope, "ResourceAccumulatorTakeGradient", handle,
                          replicas_to_aggregate_, dtype)) {
      taken = node->output(0);
      takes_.push_back(node->input(1));
    }
  } else {
    handle = scope.Named("sparse_conditional_accumulator")
                 .Add("SparseConditionalAccumulator", {},
                      {{"dtype", dtype},
                       {"shape", PartialShape::Scalar()},
                       {"shared_name", shared}});
    const Output step = AsInt64(scope, local_step_);
    const Output rows = AsInt64(scope, pair.grad.indices);
    const bool known = static_cast<bool>(pair.grad.dense_shape);
    const Output shape = known ? AsInt64(scope, pair.grad.dense_shape)
                               : scope.Const(Tensor(DType::kInt64, Shape({0})));
    pushes->push_back(
        scope.AddNode("SparseAccumulatorApplyGradient",
                      {handle, step, rows, pair.grad.values, shape},
                      {{"has_known_shape", known}}));
    if (Node* node = Take(scope, "SparseAccumulatorTakeGradient", handle,
                          replicas_to_aggregate_, dtype)) {
      taken = Grad::Slices(node->output(1), node->output(0), node->output(2));
      takes_.push_back(node->input(1));
    }
  }
  accumulators_.push_back({handle, pair.var.device()});
  return taken;
}

Output SyncReplicasOptimizer::StepNow(const Scope& scope) const {
  // The value of a ref variable is its buffer, so whoever reads it later sees
  // later updates; one of a resource is what it was when it was read.
  if (!global_step_.resource()) return global_step_.value();
  return scope.Add("ReadVariableOp", {global_step_.ref()},
                   {{"dtype", global_step_.dtype()}});
}

Node* SyncReplicasOptimizer::Enqueue(const Scope& scope, int tokens) const {
  const Scope filling = scope.NameScope("Fill");
  const Output dims = filling.Named("dims").Ints({tokens});
  const Output filled = filling.Named(filling.context().name_scope)
                            .Add("Fill", {dims, StepNow(filling)});
  return scope.Named("sync_token_q_EnqueueMany")
      .AddNode("QueueEnqueueManyV2", {token_queue_, filled});
}

Node* SyncReplicasOptimizer::AddTokens(const Scope& scope,
                                       const std::vector<Node*>& pushes,
                                       Node* update) {
  const auto queue = [&](const char* name, int capacity, DType dtype) {
    return scope.Named(name).Add(
        "FIFOQueueV2", {},
        {{"component_types", std::vector<DType>{dtype}},
         {"shapes", std::vector<PartialShape>{PartialShape::Scalar()}},
         {"capacity", capacity},
         {"shared_name", name}});
  };
  const std::vector<DType> types = {global_step_.dtype()};
  token_queue_ = queue("sync_token_q", -1, global_step_.dtype());
  // A queue runner closes a queue when it ends; not the one above.
  const Output dummy = queue("dummy_queue", 1, DType::kInt32);
  const Output token =
      scope.Control(pushes)
          .Named("sync_token_q_Dequeue")
          .Add("QueueDequeueV2", {token_queue_}, {{"component_types", types}});
  Node* train = scope.AddNode("Assign", {local_step_.ref(), token});
  // Workers go on from the step this update made.
  Node* sync = Enqueue(scope.Control(std::vector<Node*>{update}),
                       std::max(total_num_replicas_, replicas_to_aggregate_));
  chief_queue_runner_ = MakeQueueRunner(scope, dummy, {sync});
  return train;
}

Node* SyncReplicasOptimizer::ApplyGradients(
    const Scope& outer, const std::vector<GradAndVar>& gradients,
    const Variable& global_step, std::string_view) {
  if (!outer.ok()) return nullptr;
  if (gradients.empty()) {
    outer.Fail(InvalidArgument("Must supply at least one variable"));
    return nullptr;
  }
  if (!global_step) {
    outer.Fail(InvalidArgument("Global step is required to check staleness"));
    return nullptr;
  }
  if (replicas_to_aggregate_ < 1 || total_num_replicas_ < 1) {
    outer.Fail(InvalidArgument("replicas_to_aggregate ", replicas_to_aggregate_,
                               " and total_num_replicas ", total_num_replicas_,
                               " must be positive"));
    return nullptr;
  }
  global_step_ = global_step;
  MakeLocalStep(outer);
  ready_for_local_init_op_ =
      ReportUninitializedVariables(outer, GlobalVariables(outer.graph()));
  const Scope scope = outer.NameScope(name());
  if (!scope.ok()) return nullptr;
  std::vector<Node*> pushes;
  std::vector<GradAndVar> averages;
  for (const GradAndVar& pair : gradients) {
    averages.push_back(
        {pair.grad ? Aggregate(scope, pair, &pushes) : Grad(), pair.var});
    if (!scope.ok()) return nullptr;
  }
  const Scope beside_step = OnDevice(outer.NameScope(""), global_step.device());
  Node* update = optimizer_->ApplyGradients(beside_step, averages, global_step);
  if (update == nullptr) return nullptr;
  Node* train = AddTokens(beside_step, pushes, update);
  std::vector<Node*> init = {local_step_init_op_};
  for (const Accumulator& accumulator : accumulators_) {
    const Scope there =
        OnDevice(scope, accumulator.device).Named("SetGlobalStep");
    const bool resource = TypeOf(accumulator.handle) == DType::kResource;
    init.push_back(there.AddNode(
        resource ? "ResourceAccumulatorSetGlobalStep"
                 : "AccumulatorSetGlobalStep",
        {accumulator.handle, AsInt64(there.Named(""), global_step_)}));
  }
  if (!scope.ok()) return nullptr;
  chief_init_op_ = Group(scope, init);
  return train;
}

Node* SyncReplicasOptimizer::InitTokensOp(const Scope& scope,
                                          int num_tokens) const {
  if (chief_init_op_ == nullptr) {
    scope.Fail(FailedPrecondition(
        "get_init_tokens_op() should be called after apply_gradients()."));
    return nullptr;
  }
  const int needed = replicas_to_aggregate_ - total_num_replicas_;
  if (num_tokens == -1) {
    num_tokens = replicas_to_aggregate_;
  } else if (num_tokens < needed) {
    scope.Fail(
        InvalidArgument("Too few tokens to finish the first step: ", num_tokens,
                        " (given) vs ", needed, " (needed)"));
    return nullptr;
  }
  if (num_tokens <= 0) {
    return scope.Named("no_init_tokens").AddNode("NoOp", {});
  }
  return Enqueue(OnDevice(scope.NameScope(""), global_step_.device()),
                 num_tokens);
}

SyncReplicasOps SyncReplicasOptimizer::CareOps(const Scope& scope) const {
  SyncReplicasOps ops;
  ops.update = chief_queue_runner_.enqueue_ops[0];
  ops.required = takes_;
  ops.step = global_step_.value();
  const Scope beside_step = OnDevice(scope, global_step_.device());
  // One by one: a batch would take the place of newer tokens.
  ops.hand_out =
      beside_step.Named("hand_out")
          .AddNode("QueueEnqueueV2",
                   {token_queue_,
                    beside_step.Add("Identity", {global_step_.value()})});
  ops.close =
      beside_step.Named("close").AddNode("QueueCloseV2", {token_queue_});
  for (const Accumulator& accumulator : accumulators_) {
    const bool resource = TypeOf(accumulator.handle) == DType::kResource;
    ops.counts.push_back(OnDevice(scope, accumulator.device)
                             .Add(resource ? "ResourceAccumulatorNumAccumulated"
                                           : "AccumulatorNumAccumulated",
                                  {accumulator.handle}));
    ops.names.push_back(
        accumulator.handle.node->attr<std::string>("shared_name"));
  }
  return ops;
}

std::shared_ptr<SessionRunHook> SyncReplicasOptimizer::MakeSessionRunHook(
    bool is_chief, int num_tokens) {
  return std::make_shared<SyncReplicasHook>(*this, is_chief, num_tokens);
}

}  // namespace sluice
