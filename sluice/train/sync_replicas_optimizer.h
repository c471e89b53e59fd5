// SyncReplicasOptimizer: workers train together. Each pushes its gradients to
// accumulators beside the variables and waits for a token; the chief takes the
// mean of `replicas_to_aggregate` gradients, updates, counts the step and hands
// out tokens. A gradient of an older step is dropped.
//
//   SyncReplicasOptimizer optimizer(std::make_shared<AdamOptimizer>(0.01), 2);
//   Node* train = optimizer.Minimize(scope, loss, {.global_step = step});
//   options.hooks.push_back(optimizer.MakeSessionRunHook(is_chief));
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sluice/train/optimizer.h"
#include "sluice/train/queue_runner.h"
#include "sluice/train/session_run_hook.h"
#include "sluice/train/sync_replicas_chief.h"

namespace sluice {

class SyncReplicasOptimizer : public Optimizer {
 public:
  // `total_num_replicas` above `replicas_to_aggregate` are backup workers; 0
  // means as many as are aggregated.
  SyncReplicasOptimizer(std::shared_ptr<Optimizer> optimizer,
                        int replicas_to_aggregate, int total_num_replicas = 0,
                        std::string name = "sync_replicas",
                        SyncReplicasOptions options = {});

  std::vector<GradAndVar> ComputeGradients(
      const Scope& scope, Output loss,
      const MinimizeOptions& options = {}) override;
  // The op a worker runs. A global step is needed; the name is not used.
  Node* ApplyGradients(const Scope& scope,
                       const std::vector<GradAndVar>& gradients,
                       const Variable& global_step = {},
                       std::string_view name = "") override;
  Variable slot(const Variable& var, std::string_view slot) const override;
  std::vector<std::string> slot_names() const override;
  std::vector<Variable> variables() const override;

  // What a session needs around it, for programs without the hook; after
  // ApplyGradients.
  Node* local_step_init_op() const { return local_step_init_op_; }
  Node* chief_init_op() const { return chief_init_op_; }
  Output ready_for_local_init_op() const { return ready_for_local_init_op_; }
  const QueueRunner& chief_queue_runner() const { return chief_queue_runner_; }
  // Hands out the first tokens: as many as are aggregated, or `num_tokens`, of
  // which there must be enough for the first step. Fails the scope if not.
  Node* InitTokensOp(const Scope& scope, int num_tokens = -1) const;

  // Does all of that in a monitored session, and what SyncReplicasOptions say.
  // A worker that is done gives its token back; when the chief is done, workers
  // that wait for a token get OUT_OF_RANGE. The optimizer must outlive it.
  std::shared_ptr<SessionRunHook> MakeSessionRunHook(bool is_chief,
                                                     int num_tokens = -1);

 protected:
  void Prepare(const Scope&) override {}
  Node* Update(const Scope&, const Variable&, const Grad&) override {
    return nullptr;  // ApplyGradients is its own.
  }

 private:
  friend class SyncReplicasHook;
  struct Accumulator {
    Output handle;
    std::string device;
  };
  // Beside what TensorFlow's graphs have.
  SyncReplicasOps CareOps(const Scope& scope) const;
  void MakeLocalStep(const Scope& scope);
  Grad Aggregate(const Scope& scope, const GradAndVar& pair,
                 std::vector<Node*>* pushes);
  Node* AddTokens(const Scope& scope, const std::vector<Node*>& pushes,
                  Node* update);
  Node* Enqueue(const Scope& scope, int tokens) const;
  // What the global step is when the controls of `scope` have run.
  Output StepNow(const Scope& scope) const;

  const std::shared_ptr<Optimizer> optimizer_;
  const int replicas_to_aggregate_;
  const int total_num_replicas_;
  const SyncReplicasOptions options_;
  Variable global_step_;
  Variable local_step_;
  std::vector<Accumulator> accumulators_;
  std::vector<Output> takes_;  // How many gradients are asked for.
  Output token_queue_;
  QueueRunner chief_queue_runner_;
  Node* local_step_init_op_ = nullptr;
  Node* chief_init_op_ = nullptr;
  Output ready_for_local_init_op_;
};

}  // namespace sluice
