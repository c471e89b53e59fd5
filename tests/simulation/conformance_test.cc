// The simulated network under the suites that the direct and the gRPC
// implementations pass.
#include "sluice/kernel/testing/rendezvous_conformance.h"
#include "sluice/rpc/remote_worker.h"
#include "sluice/worker/testing/worker_conformance.h"
#include "tests/simulation/task.h"

namespace sluice {
namespace {

constexpr char kTask[] = "/job:a/replica:0/task:0";
constexpr char kAsker[] = "/job:b/replica:0/task:0";

// Two tasks, of which the second asks the first.
struct Simulated {
  sim::Addresses addresses = {{kTask, "a:1"}, {kAsker, "b:1"}};
  sim::Trace trace{/*keep=*/false};
  sim::Scheduler scheduler{/*seed=*/1};
  sim::Network network{scheduler, trace};
  sim::Task task{scheduler, network, addresses, kTask};
  sim::Task asker{scheduler, network, addresses, kAsker};

  Simulated() {
    task.Start();
    asker.Start();
    // A minute passes whenever something is asked.
    task.StopHousekeeping();
    asker.StopHousekeeping();
  }
  ~Simulated() {
    // The test still holds parts of them.
    task.Kill().IgnoreError();
    asker.Kill().IgnoreError();
  }
  // Lets everything happen that will, but for what comes of long silence:
  // nobody holds the sessions of these suites.
  void Run() {
    const SteadyTime until = scheduler.Now() + sim::seconds(5);
    while (scheduler.RunOne(until)) {
    }
  }
};

WorkerUnderTest SimulatedWorker() {
  auto simulated = std::make_shared<Simulated>();
  Simulated* s = simulated.get();
  auto worker = *MakeRemoteWorker(
      {kTask, "a:1"}, {kAsker, "b:1"}, [s](const std::string& address) {
        return s->network.Connect("b:1", sim::kOutside, address);
      });
  return {worker, StrCat(kTask, "/device:CPU:0"), simulated, [s] { s->Run(); }};
}

INSTANTIATE_TEST_SUITE_P(Simulated, WorkerConformance,
                         testing::Values(SimulatedWorker));

RendezvousEnds SimulatedEnds() {
  auto simulated = std::make_shared<Simulated>();
  Simulated* s = simulated.get();
  const uint64_t incarnation = s->task.device().incarnation();
  return {s->task.worker().StepRendezvous(5, ""),
          s->asker.worker().StepRendezvous(5, ""),
          [incarnation](const std::string& edge) {
            return StrCat(
                RendezvousKeyPrefix(StrCat(kTask, "/device:CPU:0"), incarnation,
                                    StrCat(kAsker, "/device:CPU:0"), edge),
                "0:0");
          },
          simulated, [s] { s->Run(); }};
}

INSTANTIATE_TEST_SUITE_P(Simulated, RendezvousConformance,
                         testing::Values(SimulatedEnds));

}  // namespace
}  // namespace sluice
