// Hooks that most training loops use.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sluice/train/global_step.h"
#include "sluice/train/scaffold.h"
#include "sluice/train/session_run_hook.h"
#include "sluice/train/step_timer.h"
#include "sluice/train/summary_writer.h"

namespace sluice {

// When a hook acts: give exactly one.
struct Every {
  double secs = 0;
  int64_t steps = 0;
};

// An error unless exactly one is given; `hook` begins its text.
absl::Status CheckEvery(const Every& every, std::string_view hook);

// A hook that fetches the global step in every training step.
class GlobalStepHook : public SessionRunHook {
 public:
  absl::Status Begin(Graph& graph) override;
  absl::StatusOr<SessionRunArgs> BeforeRun(SessionRunContext& context) override;

 protected:
  // `name` for "Global step should be created to use <name>."
  explicit GlobalStepHook(std::string name) : name_(std::move(name)) {}
  absl::StatusOr<int64_t> ReadStep(Session& session) const;
  Output step_read() const { return step_read_; }

 private:
  const std::string name_;
  Output step_read_;
};

// Stops when the global step has come to `last_step`, or `num_steps` further
// than it was in the first session. Exactly one is given.
class StopAtStepHook : public GlobalStepHook {
 public:
  struct Options {
    std::optional<int64_t> num_steps = std::nullopt;
    std::optional<int64_t> last_step = std::nullopt;
  };
  explicit StopAtStepHook(Options options);

  absl::Status Begin(Graph& graph) override;
  absl::Status AfterCreateSession(std::shared_ptr<Session> session,
                                  Coordinator& coordinator) override;
  absl::Status AfterRun(SessionRunContext& context,
                        const std::vector<Tensor>& results) override;

 private:
  const Options options_;
  std::optional<int64_t> last_step_;
  std::optional<int64_t> seen_;
};

// Called around every save of a CheckpointSaverHook.
class CheckpointSaverListener {
 public:
  virtual ~CheckpointSaverListener() = default;
  // While the graph may still grow.
  virtual absl::Status Begin(Graph&) { return absl::OkStatus(); }
  virtual absl::Status BeforeSave(Session&, int64_t) {
    return absl::OkStatus();
  }
  // True asks to stop.
  virtual absl::StatusOr<bool> AfterSave(Session&, int64_t) { return false; }
  // With the last step.
  virtual absl::Status End(Session&, int64_t) { return absl::OkStatus(); }
};

struct CheckpointSaverOptions {
  std::string checkpoint_dir;
  Every every = {.secs = 600};
  std::string basename = "model.ckpt";
  // One of these, or neither: the graph's saver.
  std::shared_ptr<Saver> saver = {};
  std::shared_ptr<Scaffold> scaffold = {};
  std::vector<std::shared_ptr<CheckpointSaverListener>> listeners = {};
  // Empty: one of its own in checkpoint_dir.
  std::shared_ptr<SummaryWriter> summary_writer = {};
};

// Saves at once, then on time, then at the end. Writes the graph beside it.
class CheckpointSaverHook : public GlobalStepHook {
 public:
  explicit CheckpointSaverHook(CheckpointSaverOptions options);

  absl::Status Begin(Graph& graph) override;
  absl::Status AfterCreateSession(std::shared_ptr<Session> session,
                                  Coordinator& coordinator) override;
  absl::Status AfterRun(SessionRunContext& context,
                        const std::vector<Tensor>& results) override;
  absl::Status End(Session& session) override;

 private:
  absl::StatusOr<Saver*> GetSaver();
  // Whether a listener asks to stop.
  // `restored`: the checkpoint is there, and only the listeners are told.
  absl::StatusOr<bool> Save(Session& session, int64_t step,
                            bool restored = false);

  CheckpointSaverOptions options_;
  const std::string path_;
  StepTimer timer_;
  Graph* graph_ = nullptr;
};

// Logs and records how many global steps run in a second.
class StepCounterHook : public GlobalStepHook {
 public:
  explicit StepCounterHook(Every every = {.steps = 100},
                           std::shared_ptr<SummaryWriter> writer = nullptr);

  absl::Status Begin(Graph& graph) override;
  absl::Status AfterRun(SessionRunContext& context,
                        const std::vector<Tensor>& results) override;

 private:
  const Every every_;
  const std::shared_ptr<SummaryWriter> writer_;
  StepTimer timer_;
  std::string tag_;
  std::optional<int64_t> last_;
  int warnings_ = 0;
};

// Records summaries: in the first step, then on time. The summary op is the
// scaffold's or the one given.
class SummarySaverHook : public GlobalStepHook {
 public:
  SummarySaverHook(Every every, std::shared_ptr<SummaryWriter> writer,
                   std::shared_ptr<Scaffold> scaffold);
  SummarySaverHook(Every every, std::shared_ptr<SummaryWriter> writer,
                   Output summary_op);

  absl::Status Begin(Graph& graph) override;
  absl::StatusOr<SessionRunArgs> BeforeRun(SessionRunContext& context) override;
  absl::Status AfterRun(SessionRunContext& context,
                        const std::vector<Tensor>& results) override;
  absl::Status End(Session& session) override;

 private:
  const Every every_;
  const std::shared_ptr<SummaryWriter> writer_;
  const std::shared_ptr<Scaffold> scaffold_;
  const Output summary_op_;
  StepTimer timer_;
  std::optional<int64_t> next_step_;
  bool requested_ = false;
};

// Logs tensors, in this process's first step and then on time: "a = 1, b = 2
// (0.123 sec)", or what `formatter` makes of their values. `every` may be none
// if they are logged at the end.
class LoggingTensorHook : public SessionRunHook {
 public:
  using Formatter = std::function<std::string(const std::vector<Tensor>&)>;
  LoggingTensorHook(std::vector<std::pair<std::string, Output>> tensors,
                    Every every, bool at_end = false, Formatter formatter = {});

  absl::Status Begin(Graph& graph) override;

  absl::StatusOr<SessionRunArgs> BeforeRun(SessionRunContext& context) override;
  absl::Status AfterRun(SessionRunContext& context,
                        const std::vector<Tensor>& results) override;
  absl::Status End(Session& session) override;

 private:
  void Log(const std::vector<Tensor>& values);

  const std::vector<std::pair<std::string, Output>> tensors_;
  const Every every_;
  const bool at_end_;
  const Formatter formatter_;
  StepTimer timer_;
  int64_t iteration_ = 0;
  bool requested_ = false;
};

// Ends the training when the loss is not a number: with INTERNAL "NaN loss
// during training.", or without an error.
class NanTensorHook : public SessionRunHook {
 public:
  explicit NanTensorHook(Output loss, bool fail_on_nan_loss = true)
      : loss_(loss), fail_(fail_on_nan_loss) {}

  absl::StatusOr<SessionRunArgs> BeforeRun(SessionRunContext& context) override;
  absl::Status AfterRun(SessionRunContext& context,
                        const std::vector<Tensor>& results) override;

 private:
  const Output loss_;
  const bool fail_;
};

// Fetches tensors once, at the end.
class FinalOpsHook : public SessionRunHook {
 public:
  explicit FinalOpsHook(std::vector<Output> fetches,
                        std::vector<Session::Feed> feeds = {})
      : fetches_(std::move(fetches)), feeds_(std::move(feeds)) {}

  const std::vector<Tensor>& values() const { return values_; }
  absl::Status End(Session& session) override;

 private:
  const std::vector<Output> fetches_;
  const std::vector<Session::Feed> feeds_;
  std::vector<Tensor> values_;
};

// Feeds every step what `feed` gives.
class FeedFnHook : public SessionRunHook {
 public:
  explicit FeedFnHook(std::function<std::vector<Session::Feed>()> feed)
      : feed_(std::move(feed)) {}
  absl::StatusOr<SessionRunArgs> BeforeRun(SessionRunContext& context) override;

 private:
  const std::function<std::vector<Session::Feed>()> feed_;
};

// Holds the first step back until others have brought the global step so far.
class GlobalStepWaiterHook : public GlobalStepHook {
 public:
  explicit GlobalStepWaiterHook(int64_t wait_until_step);
  absl::StatusOr<SessionRunArgs> BeforeRun(SessionRunContext& context) override;

 private:
  const int64_t wait_until_;
  bool started_ = false;
};

}  // namespace sluice
