// A task without a network: a worker and a master behind their services, whose
// kernels see files in memory only.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/memory_file_system.h"
#include "sluice/master/master.h"
#include "sluice/proto/cluster.pb.h"
#include "sluice/rpc/services.h"
#include "sluice/rpc/testing/local_call.h"
#include "sluice/worker/worker.h"

namespace sluice {

class TaskUnderTest {
 public:
  static constexpr char kTask[] = "/job:a/replica:0/task:0";
  static constexpr char kDevice[] = "/job:a/replica:0/task:0/device:CPU:0";

  // Of /job:b/replica:0/task:0, which it also knows.
  static constexpr char kAskerAddress[] = "localhost:2";

  explicit TaskUnderTest(const Limits& limits = {}) {
    worker_ = Worker::Create(*DeviceName::Parse(kTask), 1, files_);
    MasterEnv env;
    env.workers = std::make_shared<OneWorker>(worker_);
    env.own_task = kTask;
    master_ = std::make_shared<Master>(std::move(env), SessionOptions());
    pb::ClusterDef cluster;
    AddJob("a", "localhost:1", &cluster);
    AddJob("b", kAskerAddress, &cluster);
    handler_ = MakeTaskHandler(worker_, master_, cluster, activity_, limits);
  }
  ~TaskUnderTest() { Stop(); }

  // Ends what still waits, so that every call gets its answer.
  void Stop() {
    master_->Shutdown();
    worker_->Shutdown();
  }

  Worker& worker() { return *worker_; }
  Master& master() { return *master_; }
  MemoryFileSystem& files() { return files_; }
  TaskActivity& activity() { return *activity_; }
  const CallHandler& handler() const { return handler_; }
  // To be set before the first call.
  void set_lane(const std::string& name) { activity_->lane = name; }

  std::shared_ptr<LocalCall> Start(const std::string& path,
                                   std::string_view bytes) {
    auto call = std::make_shared<LocalCall>(path, bytes);
    handler_(call);
    return call;
  }
  // Calls and waits for the answer.
  absl::Status Call(const char* path,
                    const google::protobuf::MessageLite& request,
                    google::protobuf::MessageLite* response) {
    auto call = std::make_shared<LocalCall>(path, request);
    handler_(call);
    if (!WaitLong(*call)) {
      return DeadlineExceeded(path, " was not answered");
    }
    return call->Take(response);
  }
  // A minute in which this process runs: it may be stopped for a while.
  static bool WaitLong(const LocalCall& call) {
    for (int i = 0; i < 600; ++i) {
      if (call.WaitFor(std::chrono::milliseconds(100))) return true;
    }
    return false;
  }

 private:
  static void AddJob(const char* name, const char* address,
                     pb::ClusterDef* cluster) {
    pb::JobDef* job = cluster->add_job();
    job->set_name(name);
    (*job->mutable_tasks())[0] = address;
  }

  class OneWorker : public WorkerCache {
   public:
    explicit OneWorker(std::shared_ptr<Worker> worker)
        : worker_(std::move(worker)) {}
    std::vector<std::string> Tasks() const override { return {kTask}; }
    std::shared_ptr<WorkerInterface> Find(std::string_view task) override {
      return task == kTask ? worker_ : nullptr;
    }

   private:
    const std::shared_ptr<Worker> worker_;
  };

  MemoryFileSystem files_;
  const std::shared_ptr<TaskActivity> activity_ =
      std::make_shared<TaskActivity>();
  std::shared_ptr<Worker> worker_;
  std::shared_ptr<Master> master_;
  CallHandler handler_;
};

}  // namespace sluice
