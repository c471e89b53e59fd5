// A task without a network: a worker and a master behind their services, whose
// kernels see files in memory only; on request with a peer.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/memory_file_system.h"
#include "sluice/master/master.h"
#include "sluice/proto/cluster.pb.h"
#include "sluice/rpc/cluster_workers.h"
#include "sluice/rpc/services.h"
#include "sluice/rpc/testing/local_call.h"
#include "sluice/rpc/testing/local_channel.h"
#include "sluice/worker/worker.h"

namespace sluice {

class TaskUnderTest {
 public:
  static constexpr char kTask[] = "/job:a/replica:0/task:0";
  static constexpr char kDevice[] = "/job:a/replica:0/task:0/device:CPU:0";

  // Of /job:b/replica:0/task:0, which it also knows.
  static constexpr char kAddress[] = "localhost:1";
  static constexpr char kAskerAddress[] = "localhost:2";
  static constexpr char kAskerTask[] = "/job:b/replica:0/task:0";

  // With a peer that other task is there, too: both are one cluster, and
  // sessions may bring clusters of these addresses.
  explicit TaskUnderTest(const Limits& limits = {}, bool with_peer = false) {
    worker_ = Worker::Create(*DeviceName::Parse(kTask), 1, files_);
    MasterEnv env;
    env.workers = std::make_shared<OneWorker>(worker_);
    env.own_task = kTask;
    if (with_peer) {
      peer_ = Worker::Create(*DeviceName::Parse(kAskerTask), 1, files_);
      env.workers = Connect(worker_);
      env.own_address = kAddress;
      env.other_cluster = [this](
                              const std::map<std::string, std::string>& tasks,
                              const std::string& own_task)
          -> absl::StatusOr<std::shared_ptr<WorkerCache>> {
        return ClusterWorkers::CreateRenamed(worker_, own_task, tasks,
                                             connect_);
      };
    }
    master_ = std::make_shared<Master>(std::move(env), SessionOptions());
    pb::ClusterDef cluster;
    AddJob("a", kAddress, &cluster);
    AddJob("b", kAskerAddress, &cluster);
    handler_ = MakeTaskHandler(worker_, master_, cluster, activity_, limits);
    if (!with_peer) return;
    MasterEnv other;
    other.workers = Connect(peer_);
    other.own_task = kAskerTask;
    peer_master_ = std::make_shared<Master>(std::move(other), SessionOptions());
    handlers_->Set(kAddress, handler_);
    handlers_->Set(kAskerAddress,
                   MakeTaskHandler(peer_, peer_master_, cluster,
                                   std::make_shared<TaskActivity>(), limits));
  }
  ~TaskUnderTest() {
    Stop();
    // The tasks reach each other by them, and they hold the tasks.
    handlers_->Clear();
  }

  // Ends what still waits, so that every call gets its answer.
  void Stop() {
    master_->Shutdown();
    worker_->Shutdown();
    if (peer_ == nullptr) return;
    peer_master_->Shutdown();
    peer_->Shutdown();
  }

  Worker& worker() { return *worker_; }
  // Only with a peer.
  Worker& peer() { return *peer_; }
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

  // The way of `worker` to both tasks.
  std::shared_ptr<ClusterWorkers> Connect(
      const std::shared_ptr<Worker>& worker) {
    auto cluster = *ClusterWorkers::Create(
        worker, {{kTask, kAddress}, {kAskerTask, kAskerAddress}}, connect_);
    ConnectRendezvous(*worker, cluster, connect_);
    return cluster;
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
  // Shared, as calls may end later than the tasks.
  const std::shared_ptr<LocalHandlers> handlers_ =
      std::make_shared<LocalHandlers>();
  const ChannelMaker connect_ = [handlers =
                                     handlers_](const std::string& address)
      -> absl::StatusOr<std::shared_ptr<RpcChannel>> {
    return std::make_shared<LocalChannel>(handlers, address);
  };
  const std::shared_ptr<TaskActivity> activity_ =
      std::make_shared<TaskActivity>();
  std::shared_ptr<Worker> worker_;
  std::shared_ptr<Master> master_;
  std::shared_ptr<Worker> peer_;
  std::shared_ptr<Master> peer_master_;
  CallHandler handler_;
};

}  // namespace sluice
