// The names of a graph's collections (collections.h), as meta graphs spell
// them.
#pragma once

namespace sluice::keys {

inline constexpr char kGlobalVariables[] = "variables";
inline constexpr char kLocalVariables[] = "local_variables";
inline constexpr char kTrainableVariables[] = "trainable_variables";
inline constexpr char kModelVariables[] = "model_variables";
inline constexpr char kMovingAverageVariables[] = "moving_average_variables";
inline constexpr char kGlobalStep[] = "global_step";
inline constexpr char kSummaries[] = "summaries";
inline constexpr char kSummaryOp[] = "summary_op";
inline constexpr char kSavers[] = "savers";
inline constexpr char kQueueRunners[] = "queue_runners";
inline constexpr char kTableInitializers[] = "table_initializer";
inline constexpr char kUpdateOps[] = "update_ops";
inline constexpr char kLosses[] = "losses";
inline constexpr char kRegularizationLosses[] = "regularization_losses";
inline constexpr char kTrainOp[] = "train_op";
inline constexpr char kInitOp[] = "init_op";
inline constexpr char kLocalInitOp[] = "local_init_op";
inline constexpr char kReadyOp[] = "ready_op";
inline constexpr char kReadyForLocalInitOp[] = "ready_for_local_init_op";

}  // namespace sluice::keys
