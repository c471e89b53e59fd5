#include "tests/simulation/task.h"

#include "sluice/base/status.h"
#include "sluice/proto/cluster.pb.h"
#include "sluice/rpc/cluster_workers.h"
#include "sluice/rpc/services.h"

namespace sluice::sim {
namespace {

pb::ClusterDef ToProto(const Addresses& cluster) {
  pb::ClusterDef def;
  std::map<std::string, pb::JobDef*> jobs;
  for (const auto& [task, address] : cluster) {
    const DeviceName name = *DeviceName::Parse(task);
    pb::JobDef*& job = jobs[*name.job];
    if (job == nullptr) {
      job = def.add_job();
      job->set_name(*name.job);
    }
    (*job->mutable_tasks())[*name.task] = address;
  }
  return def;
}

}  // namespace

Task::Task(Scheduler& scheduler, Network& network, const Addresses& cluster,
           const std::string& name)
    : scheduler_(scheduler),
      network_(network),
      cluster_(cluster),
      name_(name),
      address_(cluster.at(name)) {}

void Task::Start() {
  life_ = scheduler_.NewLife();
  scheduler_.RunAs(life_, [this] {
    worker_ = Worker::Create(*DeviceName::Parse(name_), 1);
    auto peers = *ClusterWorkers::Create(
        worker_, cluster_, [this](const std::string& address) {
          return network_.Connect(address_, life_, address);
        });
    ConnectRendezvous(*worker_, peers);
    MasterEnv env;
    env.workers = peers;
    env.own_task = name_;
    master_ = std::make_shared<Master>(std::move(env), SessionOptions());
    auto activity = std::make_shared<TaskActivity>();
    network_.Listen(
        address_, life_,
        MakeTaskHandler(worker_, master_, ToProto(cluster_), activity));
    HousekeeperOptions options;
    options.stall_seconds = 0;  // Its lines would be read by nobody.
    // As after a day for real: by then its connection would be closed.
    options.sessions.unused = options.sessions.released;
    housekeeper_ = Housekeeper::Start(
        {address_, worker_, master_, peers, activity, scheduler_.Now()},
        options);
  });
}

Device& Task::device() const {
  return *worker_->FindDevice(StrCat(name_, "/device:CPU:0"));
}

absl::Status Task::Kill() {
  scheduler_.End(life_);
  network_.Vanish(address_);
  const std::weak_ptr<Worker> worker = worker_;
  const std::weak_ptr<Master> master = master_;
  scheduler_.RunAs(life_, [this] {
    master_->Shutdown();
    worker_->Shutdown();
    housekeeper_ = nullptr;
    master_ = nullptr;
    worker_ = nullptr;
  });
  if (!scheduler_.DrainEnded(life_)) {
    return Internal(name_, " does not come to rest when it ends");
  }
  if (!master.expired()) return Internal("The master of ", name_, " leaked");
  if (!worker.expired()) return Internal("The worker of ", name_, " leaked");
  return absl::OkStatus();
}

}  // namespace sluice::sim
