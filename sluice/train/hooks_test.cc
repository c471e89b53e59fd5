#include "sluice/train/hooks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "sluice/base/testing/temp_dir.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/train/profiler_hook.h"
#include "sluice/train/testing/counting_model.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::shared_ptr<SessionRunHook> HookOf(const std::string& name, int64_t every,
                                       CountingModel& model,
                                       const std::string& dir) {
  if (name == "checkpoint") {
    CheckpointSaverOptions saving;
    saving.checkpoint_dir = dir;
    saving.every = {.steps = every};
    return std::make_shared<CheckpointSaverHook>(saving);
  }
  if (name == "counter") {
    return std::make_shared<StepCounterHook>(Every{.steps = every});
  }
  if (name == "logging") {
    return std::make_shared<LoggingTensorHook>(
        std::vector<std::pair<std::string, Output>>{
            {"seven", model.scope.Scalar<int32_t>(7)}},
        Every{.steps = every});
  }
  if (name == "nan") {
    return std::make_shared<NanTensorHook>(model.scope.Scalar(NAN), false);
  }
  EXPECT_EQ(name, "waiter");
  return std::make_shared<GlobalStepWaiterHook>(every);
}

// Whether a line of the log is one of those that the table speaks of.
bool IsOfHook(const std::string& line) {
  for (const char* start :
       {"Saving", "global_step/sec", "seven", "Model", "Waiting for gl"}) {
    if (line.starts_with(start)) return true;
  }
  return false;
}

// tests/scenarios/README.md says what a line holds.
TEST(Hooks, ActWhenTheyShould) {
  std::ifstream file("tests/scenarios/hooks.txt");
  int played = 0;
  for (std::string line; std::getline(file, line); ++played) {
    SCOPED_TRACE(line);
    std::vector<std::string> fields;
    for (const absl::string_view field : absl::StrSplit(line, '|')) {
      fields.emplace_back(absl::StripAsciiWhitespace(field));
    }
    ASSERT_EQ(fields.size(), 4u);
    int64_t every = 0;
    int64_t steps = 0;
    ASSERT_TRUE(absl::SimpleAtoi(fields[1], &every));
    ASSERT_TRUE(absl::SimpleAtoi(fields[2], &steps));
    const TempDir dir;
    CountingModel model;
    LogCapture log;
    auto session = MonitoredTrainingSession(
        model.graph, {.hooks = {HookOf(fields[0], every, model, dir.path())}});
    ASSERT_TRUE(session.ok()) << session.status();
    for (int i = 0; i < steps && !(*session)->ShouldStop(); ++i) {
      SLUICE_ASSERT_OK((*session)->Run({}, {}, {model.train}, nullptr));
    }
    SLUICE_ASSERT_OK((*session)->Close());
    std::vector<std::string> said;
    for (const std::string& text : log.lines()) {
      if (IsOfHook(text)) said.push_back(text);
    }
    std::vector<std::string> starts =
        absl::StrSplit(fields[3], ", ", absl::SkipEmpty());
    ASSERT_EQ(said.size(), starts.size());
    for (size_t i = 0; i < said.size(); ++i) {
      EXPECT_THAT(said[i], StartsWith(starts[i]));
    }
  }
  EXPECT_GT(played, 5);
}

TEST(Hooks, ALossThatIsNotANumberEndsIt) {
  for (const bool fail : {true, false}) {
    CountingModel model;
    const Output loss = model.scope.Scalar(NAN);
    auto session = MonitoredTrainingSession(
        model.graph, {.hooks = {std::make_shared<NanTensorHook>(loss, fail)}});
    ASSERT_TRUE(session.ok()) << session.status();
    const absl::Status status = (*session)->Run({}, {}, {model.train}, nullptr);
    EXPECT_EQ(status.message(), fail ? "NaN loss during training." : "");
    EXPECT_EQ((*session)->ShouldStop(), !fail);
  }
}

TEST(Hooks, LogsTensorsEverySoManySteps) {
  CountingModel model;
  auto final_ops = std::make_shared<FinalOpsHook>(std::vector{model.w.value()});
  LogCapture log;
  auto session = MonitoredTrainingSession(
      model.graph, {.hooks = {StopAt(3), final_ops,
                              std::make_shared<LoggingTensorHook>(
                                  std::vector<std::pair<std::string, Output>>{
                                      {"five", model.scope.Scalar<int32_t>(5)}},
                                  Every{.steps = 2})}});
  ASSERT_TRUE(session.ok()) << session.status();
  SLUICE_ASSERT_OK(TrainToTheEnd(**session, model.train));
  std::vector<std::string> found;
  for (const std::string& line : log.lines()) {
    if (line.starts_with("five")) found.push_back(line);
  }
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0], "five = 5");
  EXPECT_THAT(found[1], ::testing::MatchesRegex("five = 5 \\([0-9.]+ sec\\)"));
  EXPECT_EQ(final_ops->values()[0].scalar<float>(), -3.0f);
}

TEST(Hooks, ListenersHearOfEverySave) {
  class Recorder : public CheckpointSaverListener {
   public:
    explicit Recorder(std::vector<std::string>* calls) : calls_(calls) {}
    absl::Status Begin(Graph&) override { return Call("begin"); }
    absl::Status BeforeSave(Session&, int64_t step) override {
      return Call(StrCat("before ", step));
    }
    absl::StatusOr<bool> AfterSave(Session&, int64_t step) override {
      calls_->push_back(StrCat("after ", step));
      return step >= 2;
    }
    absl::Status End(Session&, int64_t step) override {
      return Call(StrCat("end ", step));
    }

   private:
    absl::Status Call(std::string what) {
      calls_->push_back(std::move(what));
      return absl::OkStatus();
    }
    std::vector<std::string>* const calls_;
  };
  const TempDir dir;
  CountingModel model;
  std::vector<std::string> calls;
  CheckpointSaverOptions saving;
  saving.checkpoint_dir = dir.path();
  saving.every = {.steps = 1};
  saving.listeners = {std::make_shared<Recorder>(&calls)};
  auto session = MonitoredTrainingSession(
      model.graph, {.hooks = {std::make_shared<CheckpointSaverHook>(saving)}});
  ASSERT_TRUE(session.ok()) << session.status();
  SLUICE_ASSERT_OK(TrainToTheEnd(**session, model.train));
  EXPECT_THAT(calls, ElementsAre("begin", "before 0", "after 0", "before 1",
                                 "after 1", "before 2", "after 2", "end 2"));
}

TEST(Hooks, AProfilerWritesWhereTheTimeGoes) {
  const TempDir dir;
  CountingModel model;
  auto session = MonitoredTrainingSession(
      model.graph, {.hooks = {StopAt(5), std::make_shared<ProfilerHook>(
                                             Every{.steps = 2}, dir.path())}});
  ASSERT_TRUE(session.ok()) << session.status();
  SLUICE_ASSERT_OK(TrainToTheEnd(**session, model.train));
  const auto files = RealFileSystem().Glob(dir / "timeline-*.json");
  ASSERT_TRUE(files.ok());
  ASSERT_FALSE(files->empty());
  const std::string trace = *RealFileSystem().ReadFile((*files)[0]);
  EXPECT_THAT(trace, HasSubstr("\"traceEvents\""));
  EXPECT_THAT(trace, HasSubstr("\"name\": \"ApplyGradientDescent\""));
}

TEST(Hooks, AHookSaysHowOftenItMayAct) {
  for (const Every every : {Every{}, Every{.secs = 1, .steps = 1}}) {
    CountingModel model;
    EXPECT_THAT(
        MonitoredTrainingSession(
            model.graph,
            {.hooks = {std::make_shared<LoggingTensorHook>(
                 std::vector<std::pair<std::string, Output>>{}, every)}})
            .status(),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("every_secs")));
  }
}

TEST(Hooks, AHookWithoutAGlobalStepSaysWhatItNeeds) {
  Graph graph;
  const Scope scope(graph);
  const Variable w(scope, Tensor::Scalar(1.0f));
  EXPECT_THAT(MonitoredTrainingSession(graph, {.hooks = {StopAt(3)}}).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "Global step should be created to use StopAtStepHook."));
}

}  // namespace
}  // namespace sluice
