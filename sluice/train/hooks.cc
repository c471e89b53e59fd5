#include "sluice/train/hooks.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <thread>

#include "sluice/base/logging.h"
#include "sluice/base/path.h"
#include "sluice/base/status.h"
#include "sluice/client/collections.h"
#include "sluice/train/meta_graph.h"

namespace sluice {

absl::Status CheckEvery(const Every& every, std::string_view hook) {
  if (every.secs <= 0 && every.steps <= 0) {
    return InvalidArgument(
        hook, ": Either every_secs or every_steps should be provided.");
  }
  if (every.secs > 0 && every.steps > 0) {
    return InvalidArgument(
        hook, ": Can not provide both every_secs and every_steps.");
  }
  return absl::OkStatus();
}

namespace {

// As Python prints a scalar; of more elements the first few.
std::string ValueText(const Tensor& value) {
  if (value.size() != 1) return value.DebugString(6);
  char text[32];
  switch (value.dtype()) {
    case DType::kFloat:
      std::snprintf(text, sizeof text, "%.8g", value.scalar<float>());
      return text;
    case DType::kDouble:
      std::snprintf(text, sizeof text, "%.17g", value.scalar<double>());
      return text;
    case DType::kInt32:
      return StrCat(value.scalar<int32_t>());
    case DType::kInt64:
      return StrCat(value.scalar<int64_t>());
    case DType::kBool:
      return value.scalar<bool>() ? "True" : "False";
    case DType::kString:
      return value.scalar<std::string>();
    default:
      return value.DebugString(6);
  }
}

template <typename T>
bool AnyNan(const Tensor& tensor) {
  return std::ranges::any_of(tensor.data<T>(),
                             [](T value) { return std::isnan(value); });
}

}  // namespace

absl::Status GlobalStepHook::Begin(Graph& graph) {
  step_read_ = GlobalStepRead(graph);
  if (step_read_) return absl::OkStatus();
  return FailedPrecondition("Global step should be created to use ", name_,
                            ".");
}

absl::StatusOr<SessionRunArgs> GlobalStepHook::BeforeRun(SessionRunContext&) {
  return SessionRunArgs{.fetches = {step_read_}};
}

absl::StatusOr<int64_t> GlobalStepHook::ReadStep(Session& session) const {
  std::vector<Tensor> value;
  SLUICE_RETURN_IF_ERROR(session.Run({}, {step_read_}, {}, &value));
  return IntegerOf(value[0]);
}

StopAtStepHook::StopAtStepHook(Options options)
    : GlobalStepHook("StopAtStepHook"), options_(options) {}

absl::Status StopAtStepHook::Begin(Graph& graph) {
  if (!options_.num_steps && !options_.last_step) {
    return InvalidArgument("One of num_steps or last_step must be specified.");
  }
  if (options_.num_steps && options_.last_step) {
    return InvalidArgument(
        "Only one of num_steps or last_step can be specified.");
  }
  last_step_ = options_.last_step;
  return GlobalStepHook::Begin(graph);
}

absl::Status StopAtStepHook::AfterCreateSession(
    std::shared_ptr<Session> session, Coordinator&) {
  seen_.reset();
  if (last_step_) return absl::OkStatus();
  SLUICE_ASSIGN_OR_RETURN(const int64_t step, ReadStep(*session));
  last_step_ = step + *options_.num_steps;
  return absl::OkStatus();
}

absl::Status StopAtStepHook::AfterRun(SessionRunContext& context,
                                      const std::vector<Tensor>& results) {
  // The value may be from before this step's count, and from before what other
  // workers counted meanwhile: about as much as last time.
  SLUICE_ASSIGN_OR_RETURN(const int64_t stale, IntegerOf(results[0]));
  const int64_t others = seen_ ? std::max<int64_t>(0, stale - *seen_) : 0;
  seen_ = stale;
  if (stale + 1 + others < *last_step_) return absl::OkStatus();
  SLUICE_ASSIGN_OR_RETURN(const int64_t step, ReadStep(context.session()));
  if (step >= *last_step_) context.RequestStop();
  return absl::OkStatus();
}

CheckpointSaverHook::CheckpointSaverHook(CheckpointSaverOptions options)
    : GlobalStepHook("CheckpointSaverHook"),
      options_(std::move(options)),
      path_(JoinPath(options_.checkpoint_dir, options_.basename)),
      timer_(options_.every.secs, options_.every.steps) {
  SLUICE_LOG(INFO) << "Create CheckpointSaverHook.";
}

absl::Status CheckpointSaverHook::Begin(Graph& graph) {
  SLUICE_RETURN_IF_ERROR(CheckEvery(options_.every, "CheckpointSaverHook"));
  if (options_.saver != nullptr && options_.scaffold != nullptr) {
    return InvalidArgument("You cannot provide both saver and scaffold.");
  }
  if (options_.summary_writer == nullptr) {
    options_.summary_writer =
        std::make_shared<SummaryWriter>(options_.checkpoint_dir);
  }
  graph_ = &graph;
  SLUICE_RETURN_IF_ERROR(GlobalStepHook::Begin(graph));
  for (const auto& listener : options_.listeners) {
    SLUICE_RETURN_IF_ERROR(listener->Begin(graph));
  }
  return absl::OkStatus();
}

absl::StatusOr<Saver*> CheckpointSaverHook::GetSaver() {
  if (options_.saver != nullptr) return options_.saver.get();
  if (options_.scaffold != nullptr) return options_.scaffold->saver.get();
  SLUICE_ASSIGN_OR_RETURN(options_.saver, SaverOfGraph(*graph_));
  if (options_.saver != nullptr) return options_.saver.get();
  return FailedPrecondition(
      "No items in collection savers. Please add a saver to the collection or "
      "provide a saver or scaffold.");
}

absl::Status CheckpointSaverHook::AfterCreateSession(
    std::shared_ptr<Session> session, Coordinator&) {
  SLUICE_ASSIGN_OR_RETURN(const int64_t step, ReadStep(*session));
  // The graph is finalized now; this is how it is written down.
  SLUICE_RETURN_IF_ERROR(
      WriteGraph(*graph_, options_.checkpoint_dir, "graph.pbtxt"));
  SLUICE_ASSIGN_OR_RETURN(Saver * saver, GetSaver());
  options_.summary_writer->AddGraph(*graph_);
  options_.summary_writer->AddMetaGraph(
      ExportMetaGraph(*graph_, &saver->def()));
  // Writing what was just read puts the only good copy at risk.
  const bool restored = saver->restored() == StrCat(path_, "-", step);
  SLUICE_RETURN_IF_ERROR(Save(*session, step, restored).status());
  timer_.Triggered(step);
  return absl::OkStatus();
}

absl::Status CheckpointSaverHook::AfterRun(SessionRunContext& context,
                                           const std::vector<Tensor>& results) {
  SLUICE_ASSIGN_OR_RETURN(const int64_t stale, IntegerOf(results[0]));
  if (!timer_.ShouldTrigger(stale + 1)) return absl::OkStatus();
  SLUICE_ASSIGN_OR_RETURN(const int64_t step, ReadStep(context.session()));
  if (!timer_.ShouldTrigger(step)) return absl::OkStatus();
  timer_.Triggered(step);
  SLUICE_ASSIGN_OR_RETURN(const bool stop, Save(context.session(), step));
  if (stop) context.RequestStop();
  return absl::OkStatus();
}

absl::Status CheckpointSaverHook::End(Session& session) {
  SLUICE_ASSIGN_OR_RETURN(const int64_t step, ReadStep(session));
  if (step != timer_.last_step()) {
    SLUICE_RETURN_IF_ERROR(Save(session, step).status());
  }
  for (const auto& listener : options_.listeners) {
    SLUICE_RETURN_IF_ERROR(listener->End(session, step));
  }
  return options_.summary_writer->Flush();
}

absl::StatusOr<bool> CheckpointSaverHook::Save(Session& session, int64_t step,
                                               bool restored) {
  if (restored) {
    SLUICE_LOG(INFO) << "The checkpoint for " << step << " in " << path_
                     << " was just restored and is not written again.";
  } else {
    SLUICE_LOG(INFO) << "Saving checkpoints for " << step << " into " << path_
                     << ".";
  }
  for (const auto& listener : options_.listeners) {
    SLUICE_RETURN_IF_ERROR(listener->BeforeSave(session, step));
  }
  SLUICE_ASSIGN_OR_RETURN(Saver * saver, GetSaver());
  if (!restored) {
    SLUICE_RETURN_IF_ERROR(
        saver->Save(session, path_, {.global_step = step}).status());
  }
  options_.summary_writer->AddSessionLog(pb::SessionLog::CHECKPOINT, path_,
                                         step);
  bool stop = false;
  for (const auto& listener : options_.listeners) {
    SLUICE_ASSIGN_OR_RETURN(const bool asks,
                            listener->AfterSave(session, step));
    if (asks) {
      SLUICE_LOG(INFO)
          << "A CheckpointSaverListener requested that training be stopped.";
    }
    stop = stop || asks;
  }
  return stop;
}

StepCounterHook::StepCounterHook(Every every,
                                 std::shared_ptr<SummaryWriter> writer)
    : GlobalStepHook("StepCounterHook"),
      every_(every),
      writer_(std::move(writer)),
      timer_(every.secs, every.steps) {}

absl::Status StepCounterHook::Begin(Graph& graph) {
  SLUICE_RETURN_IF_ERROR(CheckEvery(every_, "StepCounterHook"));
  SLUICE_RETURN_IF_ERROR(GlobalStepHook::Begin(graph));
  tag_ = GetGlobalStep(graph).name() + "/sec";
  return absl::OkStatus();
}

absl::Status StepCounterHook::AfterRun(SessionRunContext& context,
                                       const std::vector<Tensor>& results) {
  SLUICE_ASSIGN_OR_RETURN(const int64_t stale, IntegerOf(results[0]));
  if (timer_.ShouldTrigger(stale + 1)) {
    SLUICE_ASSIGN_OR_RETURN(const int64_t step, ReadStep(context.session()));
    if (timer_.ShouldTrigger(step)) {
      const auto elapsed = timer_.Triggered(step);
      if (elapsed && elapsed->seconds > 0) {
        const double rate =
            static_cast<double>(elapsed->steps) / elapsed->seconds;
        if (writer_ != nullptr) {
          writer_->AddScalar(tag_, static_cast<float>(rate), step);
        }
        SLUICE_LOG(INFO) << tag_ << ": " << rate;
      }
    }
  }
  if (last_ == stale && warnings_ < 5) {
    ++warnings_;
    SLUICE_LOG(WARNING)
        << "It seems that global step (tf.train.get_global_step) has not been "
           "increased. Current value (could be stable): "
        << stale << " vs previous value: " << *last_
        << ". You could increase the global step by passing it to the "
           "optimizer.";
  }
  last_ = stale;
  return absl::OkStatus();
}

SummarySaverHook::SummarySaverHook(Every every,
                                   std::shared_ptr<SummaryWriter> writer,
                                   std::shared_ptr<Scaffold> scaffold)
    : GlobalStepHook("SummarySaverHook"),
      every_(every),
      writer_(std::move(writer)),
      scaffold_(std::move(scaffold)),
      timer_(every.secs, every.steps) {}

SummarySaverHook::SummarySaverHook(Every every,
                                   std::shared_ptr<SummaryWriter> writer,
                                   Output summary_op)
    : GlobalStepHook("SummarySaverHook"),
      every_(every),
      writer_(std::move(writer)),
      summary_op_(summary_op),
      timer_(every.secs, every.steps) {}

absl::Status SummarySaverHook::Begin(Graph& graph) {
  SLUICE_RETURN_IF_ERROR(CheckEvery(every_, "SummarySaverHook"));
  next_step_.reset();
  return GlobalStepHook::Begin(graph);
}

absl::StatusOr<SessionRunArgs> SummarySaverHook::BeforeRun(
    SessionRunContext& context) {
  SLUICE_ASSIGN_OR_RETURN(SessionRunArgs args,
                          GlobalStepHook::BeforeRun(context));
  requested_ = !next_step_ || timer_.ShouldTrigger(*next_step_);
  const Output op = scaffold_ != nullptr ? scaffold_->summary_op : summary_op_;
  if (requested_ && op) args.fetches.push_back(op);
  return args;
}

absl::Status SummarySaverHook::AfterRun(SessionRunContext& context,
                                        const std::vector<Tensor>& results) {
  SLUICE_ASSIGN_OR_RETURN(int64_t step, IntegerOf(results[0]));
  step += 1;
  if (requested_) {
    SLUICE_ASSIGN_OR_RETURN(step, ReadStep(context.session()));
  }
  if (!next_step_) {
    writer_->AddSessionLog(pb::SessionLog::START, "", step);
  }
  if (requested_) {
    timer_.Triggered(step);
    if (results.size() > 1 && results[1].dtype() == DType::kString) {
      for (const std::string& summary : results[1].data<std::string>()) {
        writer_->AddSummary(summary, step);
      }
    }
  }
  next_step_ = step + 1;
  return absl::OkStatus();
}

absl::Status SummarySaverHook::End(Session&) { return writer_->Flush(); }

LoggingTensorHook::LoggingTensorHook(
    std::vector<std::pair<std::string, Output>> tensors, Every every,
    bool at_end, Formatter formatter)
    : tensors_(std::move(tensors)),
      every_(every),
      at_end_(at_end),
      formatter_(std::move(formatter)),
      timer_(every.secs, every.steps) {}

absl::Status LoggingTensorHook::Begin(Graph&) {
  timer_.Reset();
  iteration_ = 0;
  const bool only_at_end = at_end_ && every_.secs <= 0 && every_.steps <= 0;
  return only_at_end ? absl::OkStatus()
                     : CheckEvery(every_, "LoggingTensorHook");
}

absl::StatusOr<SessionRunArgs> LoggingTensorHook::BeforeRun(
    SessionRunContext&) {
  SessionRunArgs args;
  requested_ =
      (every_.secs > 0 || every_.steps > 0) && timer_.ShouldTrigger(iteration_);
  if (requested_) {
    for (const auto& [tag, tensor] : tensors_) args.fetches.push_back(tensor);
  }
  return args;
}

void LoggingTensorHook::Log(const std::vector<Tensor>& values) {
  if (formatter_) {
    timer_.Triggered(iteration_);
    SLUICE_LOG(INFO) << formatter_(values);
    return;
  }
  std::string text;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    StrAppend(&text, i == 0 ? "" : ", ", tensors_[i].first, " = ",
              ValueText(values[i]));
  }
  if (const auto elapsed = timer_.Triggered(iteration_)) {
    char seconds[48];
    std::snprintf(seconds, sizeof seconds, " (%.3f sec)", elapsed->seconds);
    text += seconds;
  }
  SLUICE_LOG(INFO) << text;
}

absl::Status LoggingTensorHook::AfterRun(SessionRunContext&,
                                         const std::vector<Tensor>& results) {
  if (requested_) Log(results);
  ++iteration_;
  return absl::OkStatus();
}

absl::Status LoggingTensorHook::End(Session& session) {
  if (!at_end_) return absl::OkStatus();
  std::vector<Output> fetches;
  fetches.reserve(tensors_.size());
  for (const auto& [tag, tensor] : tensors_) fetches.push_back(tensor);
  std::vector<Tensor> values;
  SLUICE_RETURN_IF_ERROR(session.Run({}, fetches, {}, &values));
  Log(values);
  return absl::OkStatus();
}

absl::StatusOr<SessionRunArgs> NanTensorHook::BeforeRun(SessionRunContext&) {
  return SessionRunArgs{.fetches = {loss_}};
}

absl::Status NanTensorHook::AfterRun(SessionRunContext& context,
                                     const std::vector<Tensor>& results) {
  const Tensor& loss = results[0];
  const bool nan = loss.dtype() == DType::kDouble  ? AnyNan<double>(loss)
                   : loss.dtype() == DType::kFloat ? AnyNan<float>(loss)
                                                   : false;
  if (!nan) return absl::OkStatus();
  constexpr char kDiverged[] = "Model diverged with loss = NaN.";
  if (fail_) {
    SLUICE_LOG(ERROR) << kDiverged;
    return Internal("NaN loss during training.");
  }
  SLUICE_LOG(WARNING) << kDiverged;
  context.RequestStop();
  return absl::OkStatus();
}

absl::Status FinalOpsHook::End(Session& session) {
  const absl::Status status = session.Run(feeds_, fetches_, {}, &values_);
  if (absl::IsOutOfRange(status)) {
    SLUICE_LOG(WARNING)
        << "The final ops read input that has ended. They should depend on "
           "variables only, as the values of metrics do, and not on what feeds "
           "training steps.";
  }
  return status;
}

absl::StatusOr<SessionRunArgs> FeedFnHook::BeforeRun(SessionRunContext&) {
  return SessionRunArgs{.feeds = feed_()};
}

GlobalStepWaiterHook::GlobalStepWaiterHook(int64_t wait_until_step)
    : GlobalStepHook("GlobalStepWaiterHook"), wait_until_(wait_until_step) {}

absl::StatusOr<SessionRunArgs> GlobalStepWaiterHook::BeforeRun(
    SessionRunContext& context) {
  if (!started_ && wait_until_ > 0) {
    SLUICE_LOG(INFO) << "Waiting for global step " << wait_until_
                     << " before starting training.";
    int64_t told = 0;
    while (true) {
      SLUICE_ASSIGN_OR_RETURN(const int64_t step, ReadStep(context.session()));
      if (step >= wait_until_) break;
      if (step - told > 1000) {
        told = step;
        SLUICE_LOG(INFO) << "Waiting for global step " << wait_until_
                         << " before starting training. Current step is "
                         << step << ".";
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
  }
  started_ = true;
  return SessionRunArgs();
}

}  // namespace sluice
