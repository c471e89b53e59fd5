// Task: one task of a simulated cluster. Master, Worker, services and stubs are
// the product's own; only what a server would put around them is missing.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sluice/master/master.h"
#include "sluice/server/housekeeper.h"
#include "sluice/worker/worker.h"
#include "tests/simulation/network.h"

namespace sluice::sim {

// Task names ("/job:ps/replica:0/task:0") and addresses of a cluster.
using Addresses = std::map<std::string, std::string>;

// Thread-compatible.
class Task {
 public:
  Task(Scheduler& scheduler, Network& network, const Addresses& cluster,
       const std::string& name);

  // A new life with a new incarnation.
  void Start();
  // No session is collected any more.
  void StopHousekeeping() { housekeeper_ = nullptr; }
  // As kill -9: nothing of it reaches anyone any more. What it held is freed
  // all the same; an error if that does not work.
  absl::Status Kill();

  bool up() const { return worker_ != nullptr; }
  Life life() const { return life_; }
  const std::string& name() const { return name_; }
  const std::string& address() const { return address_; }
  // Only while it is up.
  Worker& worker() const { return *worker_; }
  Master& master() const { return *master_; }
  Device& device() const;

 private:
  Scheduler& scheduler_;
  Network& network_;
  const Addresses& cluster_;
  const std::string name_;
  const std::string address_;
  Life life_ = kOutside;
  std::shared_ptr<Worker> worker_;
  std::shared_ptr<Master> master_;
  std::shared_ptr<Housekeeper> housekeeper_;
};

}  // namespace sluice::sim
