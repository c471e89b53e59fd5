// A worker that the test plays: calls wait until the test answers them.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sluice/base/mutex.h"
#include "sluice/worker/worker_interface.h"

namespace sluice {

// Thread-compatible, but for waiting calls.
class FakeWorker : public WorkerInterface {
 public:
  explicit FakeWorker(const std::string& task) : task_(task) {}

  DeviceInfo device(int id = 0) const {
    DeviceInfo info;
    info.text = task_ + "/device:CPU:" + std::to_string(id);
    info.name = *DeviceName::Parse(info.text);
    info.incarnation = incarnation + 1000 * id;
    return info;
  }
  std::vector<DeviceInfo> devices() const {
    std::vector<DeviceInfo> all;
    for (int id = 0; id < cpus; ++id) all.push_back(device(id));
    return all;
  }

  void GetStatus(bool, Cancellation*, StatusDone done) override {
    status_calls.push_back(std::move(done));
    if (!refuses_status.ok()) {
      AnswerStatus(refuses_status);
    } else if (answers_status) {
      AnswerStatus(devices());
    }
  }
  void AnswerStatus(absl::StatusOr<std::vector<DeviceInfo>> devices) {
    std::vector<StatusDone> calls;
    calls.swap(status_calls);
    for (StatusDone& done : calls) done(devices);
  }

  void CreateSession(CreateSessionRequest request, Done done) override {
    ++created;
    if (at_create) at_create();
    if (closed_early.contains(request.handle)) {
      done(absl::AbortedError("closed before it was opened"));
      return;
    }
    if (create_status.ok()) sessions.push_back(request.handle);
    done(create_status);
  }
  void DeleteSession(const std::string& handle, Done done) override {
    if (std::erase(sessions, handle) == 0) closed_early.insert(handle);
    done(absl::OkStatus());
  }
  void RegisterGraph(RegisterGraphRequest, RegisterDone done) override {
    ++registered;
    if (register_status.ok()) {
      done(std::make_shared<RegisteredGraph>());
    } else {
      done(std::exchange(register_status, absl::OkStatus()));
    }
  }
  // Steps wait for AnswerSteps or their cancellation.
  void RunGraph(const RunGraphRequest& request, Done done) override {
    steps.push_back({request.cancellation, std::move(done)});
  }
  void AnswerSteps(const absl::Status& status) {
    std::vector<RunningStep> ended;
    ended.swap(steps);
    for (RunningStep& step : ended) {
      step.done(step.cancellation->cancelled() ? step.cancellation->status()
                                               : status);
    }
  }
  std::shared_ptr<Rendezvous> StepRendezvous(int64_t step_id,
                                             const std::string&) override {
    open_steps.insert(step_id);
    if (at_step_rendezvous) at_step_rendezvous();
    return nullptr;
  }
  void CleanupGraph(int64_t step_id, Done done) override {
    open_steps.erase(step_id);
    done(absl::OkStatus());
  }
  // Waits to be answered if the test wants to.
  void EndStep(int64_t step_id, Done done) override {
    if (holds_ends) {
      ends.push_back(std::move(done));
    } else {
      CleanupGraph(step_id, std::move(done));
    }
  }
  void CleanupAll(std::vector<std::string> containers, Done done) override {
    cleaned = containers;
    done(clean_status);
  }
  bool TakesGroups() const override { return takes_groups; }

  struct RunningStep {
    Cancellation* cancellation;
    Done done;
  };
  uint64_t incarnation = 1;
  int cpus = 1;
  bool takes_groups = true;  // As Sluice does, and TensorFlow does not.
  bool answers_status = true;
  bool holds_ends = false;
  std::vector<Done> ends;
  absl::Status create_status, clean_status, refuses_status;
  absl::Status register_status;  // Of the next graph.
  std::vector<StatusDone> status_calls;
  std::vector<std::string> sessions;
  std::set<std::string> closed_early;
  std::vector<RunningStep> steps;
  std::function<void()> at_create, at_step_rendezvous;
  std::set<int64_t> open_steps;  // That somebody has the rendezvous of.
  std::vector<std::string> cleaned;
  std::atomic<int> registered{0};  // By threads that plan side by side.
  int created = 0;                 // Sessions that were asked for.

 private:
  const std::string task_;
};

class FakeWorkers : public WorkerCache {
 public:
  // "/job:<name>/replica:0/task:0" for each.
  explicit FakeWorkers(const std::vector<std::string>& jobs) {
    for (const std::string& job : jobs) {
      const std::string task = "/job:" + job + "/replica:0/task:0";
      workers_[task] = std::make_shared<FakeWorker>(task);
    }
  }
  FakeWorker& operator[](const std::string& job) {
    return *workers_.at("/job:" + job + "/replica:0/task:0");
  }
  std::vector<std::string> Tasks() const override {
    std::vector<std::string> tasks;
    for (const auto& [task, worker] : workers_) tasks.push_back(task);
    return tasks;
  }
  std::shared_ptr<WorkerInterface> Find(std::string_view task) override {
    auto it = workers_.find(std::string(task));
    return it == workers_.end() ? nullptr : it->second;
  }

 private:
  std::map<std::string, std::shared_ptr<FakeWorker>> workers_;
};

}  // namespace sluice
