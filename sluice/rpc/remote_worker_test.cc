#include "sluice/rpc/remote_worker.h"

#include "sluice/kernel/testing/rendezvous_conformance.h"
#include "sluice/rpc/testing/task_under_test.h"
#include "sluice/worker/testing/worker_conformance.h"

namespace sluice {
namespace {

constexpr char kAsker[] = "/job:b/replica:0/task:0";

// A task behind a port, its stub, and a second task that uses the stub.
struct Served {
  TaskUnderTest task;
  std::unique_ptr<GenericServer> server;
  std::shared_ptr<Worker> asker = Worker::Create(*DeviceName::Parse(kAsker), 1);
  std::shared_ptr<ClusterWorkers> cluster;

  Served() {
    GenericServer::Options options;
    options.address = "localhost:0";
    options.handler = task.handler();
    server = *GenericServer::Start(std::move(options));
    cluster = *ClusterWorkers::Create(
        asker, {{TaskUnderTest::kTask, StrCat("localhost:", server->port())},
                {kAsker, TaskUnderTest::kAskerAddress}});
    ConnectRendezvous(*asker, cluster);
  }
};

WorkerUnderTest Remote() {
  auto served = std::make_shared<Served>();
  return {served->cluster->Find(TaskUnderTest::kTask), TaskUnderTest::kDevice,
          served};
}

INSTANTIATE_TEST_SUITE_P(Remote, WorkerConformance, testing::Values(Remote));

// What the task sends, the asker receives.
RendezvousEnds RemoteEnds() {
  auto served = std::make_shared<Served>();
  const uint64_t incarnation = served->task.worker().devices()[0].incarnation;
  return {served->task.worker().StepRendezvous(5),
          served->asker->StepRendezvous(5),
          [incarnation](const std::string& edge) {
            return StrCat(
                RendezvousKeyPrefix(TaskUnderTest::kDevice, incarnation,
                                    StrCat(kAsker, "/device:CPU:0"), edge),
                "0:0");
          },
          served};
}

INSTANTIATE_TEST_SUITE_P(Remote, RendezvousConformance,
                         testing::Values(RemoteEnds));

absl::Status GetStatus(WorkerInterface& worker) {
  Notification done;
  absl::Status result;
  worker.GetStatus(/*wait=*/false, nullptr,
                   [&](absl::StatusOr<std::vector<DeviceInfo>> devices) {
                     result = devices.status();
                     done.Notify();
                   });
  EXPECT_TRUE(done.WaitFor(std::chrono::seconds(60)));
  return result;
}

TEST(RemoteWorker, ATaskThatIsNotThereIsUnavailable) {
  auto worker = *MakeRemoteWorker({TaskUnderTest::kTask, "localhost:1"},
                                  {kAsker, TaskUnderTest::kAskerAddress});
  EXPECT_THAT(GetStatus(*worker),
              StatusIs(absl::StatusCode::kUnavailable,
                       testing::AllOf(testing::HasSubstr(TaskUnderTest::kTask),
                                      testing::HasSubstr("localhost:1"),
                                      testing::HasSubstr("refused"))));
}

TEST(RemoteWorker, ATaskThatDoesNotKnowTheAskerBelongsToAnotherCluster) {
  Served served;
  const std::string address = StrCat("localhost:", served.server->port());
  for (const TaskAddress& asker :
       {TaskAddress{"/job:stranger/replica:0/task:0", "localhost:2"},
        TaskAddress{kAsker, "localhost:4711"}}) {
    auto worker = *MakeRemoteWorker({TaskUnderTest::kTask, address}, asker);
    EXPECT_THAT(GetStatus(*worker),
                StatusIs(absl::StatusCode::kUnavailable,
                         testing::AllOf(testing::HasSubstr("another cluster"),
                                        testing::HasSubstr(asker.task))));
  }
  // Another name for the host, or a port that was not known before, is fine.
  for (const TaskAddress& asker :
       {TaskAddress{kAsker, "other.name:2"}, TaskAddress{kAsker, "x:0"}}) {
    auto worker = *MakeRemoteWorker({TaskUnderTest::kTask, address}, asker);
    SLUICE_EXPECT_OK(GetStatus(*worker));
  }
}

TEST(RemoteWorker, AnotherTaskAtTheAddressIsTold) {
  Served served;
  auto worker = *MakeRemoteWorker(
      {"/job:a/replica:0/task:3", StrCat("localhost:", served.server->port())},
      {kAsker, TaskUnderTest::kAskerAddress});
  EXPECT_THAT(GetStatus(*worker),
              StatusIs(absl::StatusCode::kUnavailable,
                       testing::AllOf(testing::HasSubstr("another cluster"),
                                      testing::HasSubstr("/task:0"))));
}

}  // namespace
}  // namespace sluice
