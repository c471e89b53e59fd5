#include "sluice/master/connect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/kernel/testing/op_test.h"
#include "sluice/master/testing/fake_worker.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using TasksOr = absl::StatusOr<std::vector<ConnectedTask>>;

constexpr char kOwn[] = "/job:a/replica:0/task:0";

// A ConnectTasks under way.
struct Connecting {
  std::shared_ptr<Notification> done = std::make_shared<Notification>();
  std::shared_ptr<TasksOr> result =
      std::make_shared<TasksOr>(absl::UnknownError("not yet"));
  std::shared_ptr<Cancellation> cancellation = std::make_shared<Cancellation>();

  explicit Connecting(FakeWorkers& workers,
                      const SessionOptions& options = {}) {
    ConnectTasks(workers, kOwn, options, cancellation,
                 [done = done, result = result](TasksOr tasks) {
                   EXPECT_FALSE(done->HasBeenNotified());
                   *result = std::move(tasks);
                   done->Notify();
                 });
  }
  TasksOr Wait() {
    EXPECT_TRUE(done->WaitFor(std::chrono::seconds(60)));
    return *result;
  }
};

std::vector<std::string> Names(const TasksOr& tasks) {
  EXPECT_TRUE(tasks.ok()) << tasks.status();
  std::vector<std::string> names;
  if (!tasks.ok()) return names;
  for (const ConnectedTask& task : *tasks) names.push_back(task.name);
  return names;
}

TEST(ConnectTasks, GathersTheDevicesOfAllTasks) {
  FakeWorkers workers({"a", "b"});
  const TasksOr tasks = Connecting(workers).Wait();
  EXPECT_THAT(Names(tasks), ElementsAre(kOwn, "/job:b/replica:0/task:0"));
  EXPECT_EQ((*tasks)[1].devices[0].text,
            "/job:b/replica:0/task:0/device:CPU:0");
}

TEST(ConnectTasks, WaitsForTheLast) {
  FakeWorkers workers({"a", "b"});
  workers["b"].answers_status = false;
  Connecting connecting(workers);
  EXPECT_FALSE(connecting.done->HasBeenNotified());
  workers["b"].AnswerStatus(std::vector<DeviceInfo>{workers["b"].device()});
  EXPECT_TRUE(connecting.Wait().ok());
}

TEST(ConnectTasks, AsksOnlyWhomTheFiltersLeaveAndItself) {
  FakeWorkers workers({"a", "b", "c"});
  SessionOptions options;
  options.device_filters = {"/job:c"};
  EXPECT_THAT(Names(Connecting(workers, options).Wait()),
              ElementsAre(kOwn, "/job:c/replica:0/task:0"));
  options.device_filters = {"not a device"};
  EXPECT_THAT(Connecting(workers, options).Wait().status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "Invalid device filter: not a device"));
}

TEST(ConnectTasks, FiltersHideDevicesOfOtherTasks) {
  FakeWorkers workers({"a", "b"});
  SessionOptions options;
  const auto devices = [&](const std::string& filter) {
    options.device_filters = {filter};
    std::vector<std::string> names;
    const TasksOr tasks = Connecting(workers, options).Wait();
    for (const ConnectedTask& task : *tasks) {
      for (const DeviceInfo& device : task.devices) {
        names.push_back(device.text);
      }
    }
    return names;
  };
  const std::string a = "/job:a/replica:0/task:0/device:CPU:0";
  const std::string b = "/job:b/replica:0/task:0/device:CPU:0";
  EXPECT_THAT(devices("/job:b/device:CPU:0"), ElementsAre(a, b));
  EXPECT_THAT(devices("/device:CPU:0"), ElementsAre(a, b));
  // As in TensorFlow, its own devices a master always sees.
  EXPECT_THAT(devices("/job:b/device:CPU:1"), ElementsAre(a));
  EXPECT_THAT(devices("/device:GPU:0"), ElementsAre(a));
}

TEST(ConnectTasks, ATaskThatNothingWouldGoToIsNotWaitedFor) {
  FakeWorkers workers({"A", "a"});  // The other one comes first by name.
  workers["A"].answers_status = false;
  SessionOptions options;
  options.patience = std::chrono::milliseconds(1);
  options.wanted_devices = {""};
  options.prefer_own_task = true;
  EXPECT_THAT(Names(Connecting(workers, options).Wait()).size(), 2u);
  workers["A"].AnswerStatus(absl::UnavailableError("late"));
}

TEST(ConnectTasks, AnErrorNamesItsTask) {
  FakeWorkers workers({"a", "b"});
  workers["b"].answers_status = false;
  Connecting connecting(workers);
  workers["b"].AnswerStatus(absl::InternalError("broken"));
  EXPECT_THAT(connecting.Wait().status(),
              StatusIs(absl::StatusCode::kInternal,
                       "CreateSession failed because worker "
                       "/job:b/replica:0/task:0 returned error: broken"));
}

TEST(ConnectTasks, GivesUpWhenNothingChangesForLong) {
  FakeWorkers workers({"a", "b"});
  workers["b"].answers_status = false;
  SessionOptions options;
  options.task_deadline = std::chrono::milliseconds(50);
  EXPECT_THAT(Connecting(workers, options).Wait().status(),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       testing::AllOf(HasSubstr("/job:b/replica:0/task:0"),
                                      HasSubstr("device_filters"))));
  workers["b"].AnswerStatus(absl::UnavailableError("too late"));
}

TEST(ConnectTasks, CountsFromTheLastChangeOfAReason) {
  FakeWorkers workers({"a", "b"});
  workers["b"].answers_status = false;
  SessionOptions options;
  options.task_deadline = std::chrono::milliseconds(50);
  const SteadyTime change = RealClock().Now() + std::chrono::milliseconds(200);
  const auto token = WaitTable::Global().Add(
      {"refused", "/job:b/replica:0/task:0", 0, change});
  const absl::Status status = Connecting(workers, options).Wait().status();
  EXPECT_GE(RealClock().Now(), change + options.task_deadline);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded,
                               HasSubstr("/job:b/replica:0/task:0 (refused)")));
  WaitTable::Global().Remove(token);
  workers["b"].AnswerStatus(absl::UnavailableError("too late"));
}

TEST(ConnectTasks, SaysWhoIsMissingWhenItsTimeIsUp) {
  FakeWorkers workers({"a", "b"});
  workers["b"].answers_status = false;
  Connecting connecting(workers);
  connecting.cancellation->Cancel(
      absl::DeadlineExceededError("Operation timed out."));
  EXPECT_THAT(
      connecting.Wait().status(),
      StatusIs(absl::StatusCode::kDeadlineExceeded,
               testing::AllOf(HasSubstr("Operation timed out. "),
                              HasSubstr("/job:b/replica:0/task:0 (no answer)"),
                              testing::Not(HasSubstr("/job:a/")))));
  workers["b"].AnswerStatus(absl::UnavailableError("too late"));
}

TEST(DefaultTaskDeadline, IsTheEnvironmentsIfItSaysANumber) {
  EXPECT_EQ(SessionOptions().task_deadline, std::chrono::minutes(10));
  setenv("SLUICE_TASK_DEADLINE_SECONDS", "2.5", 1);
  EXPECT_EQ(SessionOptions().task_deadline, std::chrono::milliseconds(2500));
  setenv("SLUICE_TASK_DEADLINE_SECONDS", "soon", 1);
  EXPECT_EQ(SessionOptions().task_deadline, std::chrono::minutes(10));
  setenv("SLUICE_TASK_DEADLINE_SECONDS", "inf", 1);
  EXPECT_GE(SessionOptions().task_deadline, std::chrono::years(99));
  unsetenv("SLUICE_TASK_DEADLINE_SECONDS");
}

TEST(ConnectTasks, GoesOnWithoutATaskThatTheGraphCannotNeed) {
  FakeWorkers workers({"a", "b"});
  workers["b"].answers_status = false;
  SessionOptions options;
  options.patience = std::chrono::milliseconds(20);
  options.wanted_devices = {"", "/job:a", "/job:a/task:0/cpu:0"};
  const TasksOr tasks = Connecting(workers, options).Wait();
  ASSERT_TRUE(tasks.ok()) << tasks.status();
  ASSERT_EQ(tasks->size(), 2);
  EXPECT_EQ((*tasks)[0].missing, "");
  EXPECT_EQ((*tasks)[1].missing, "no answer");
  workers["b"].AnswerStatus(std::vector<DeviceInfo>{workers["b"].device()});
}

TEST(ConnectTasks, WaitsForATaskThatTheGraphNeeds) {
  FakeWorkers workers({"a", "b"});
  workers["b"].answers_status = false;
  SessionOptions options;
  options.patience = std::chrono::milliseconds(1);
  options.task_deadline = std::chrono::milliseconds(50);
  options.wanted_devices = {"", "/job:b"};
  EXPECT_EQ(Connecting(workers, options).Wait().status().code(),
            absl::StatusCode::kDeadlineExceeded);
  workers["b"].AnswerStatus(absl::UnavailableError("too late"));
}

TEST(WouldGoTo, IsTheFirstTaskByNameThatFits) {
  const auto task = [](const char* job, int index) {
    return StrCat("/job:", job, "/replica:0/task:", index);
  };
  const std::vector<std::string> present = {task("ps", 0), task("worker", 1)};
  const auto goes = [&](const std::string& to, const char* device) {
    return WouldGoTo(to, *DeviceName::Parse(device), present);
  };
  EXPECT_TRUE(goes(task("worker", 0), "/job:worker/task:0"));
  EXPECT_TRUE(goes(task("worker", 0), "/job:worker"));
  EXPECT_FALSE(goes(task("worker", 0), "/job:worker/task:1"));
  EXPECT_FALSE(goes(task("worker", 0), ""));
  EXPECT_FALSE(goes(task("worker", 2), "/job:worker"));
  // By bytes.
  EXPECT_FALSE(goes(task("worker", 10), "/job:worker"));
  EXPECT_TRUE(goes(task("a", 0), "/cpu:0"));
}

TEST(ConnectTasks, CanBeCancelledBeforeAndMeanwhile) {
  FakeWorkers workers({"a", "b"});
  workers["b"].answers_status = false;
  Connecting connecting(workers);
  connecting.cancellation->Cancel(absl::CancelledError("enough"));
  EXPECT_EQ(connecting.Wait().status(), absl::CancelledError("enough"));
  workers["b"].AnswerStatus(absl::UnavailableError("too late"));

  absl::Status status;
  ConnectTasks(workers, kOwn, {}, connecting.cancellation,
               [&](const TasksOr& tasks) { status = tasks.status(); });
  EXPECT_EQ(status, absl::CancelledError("enough"));
}

TEST(ConnectTasks, KeepsNothingWhenItIsOver) {
  FakeWorkers workers({"a"});
  auto cancellation = std::make_shared<Cancellation>();
  auto token = std::make_shared<int>(0);
  ConnectTasks(workers, kOwn, {}, cancellation, [token](const TasksOr&) {});
  EXPECT_EQ(token.use_count(), 1);
  EXPECT_EQ(cancellation.use_count(), 1);
}

}  // namespace
}  // namespace sluice
