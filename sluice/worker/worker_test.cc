#include "sluice/worker/worker.h"

#include "sluice/base/memory_file_system.h"
#include "sluice/worker/testing/worker_conformance.h"

namespace sluice {
namespace {

constexpr char kTask[] = "/job:a/replica:0/task:0";
constexpr char kDevice[] = "/job:a/replica:0/task:0/device:CPU:0";

WorkerUnderTest Direct() {
  return {Worker::Create(*DeviceName::Parse(kTask), 1), kDevice, nullptr};
}

INSTANTIATE_TEST_SUITE_P(Direct, WorkerConformance, testing::Values(Direct));

std::string Key(const Worker& worker, std::string_view edge) {
  return StrCat(RendezvousKeyPrefix(kDevice, worker.devices()[0].incarnation,
                                    kDevice, edge),
                "0:0");
}

absl::StatusOr<Parcel> Recv(Worker& worker, int64_t step,
                            const std::string& key) {
  absl::StatusOr<Parcel> result = Unknown("waits");
  worker.RecvTensor(step, key,
                    [&](absl::StatusOr<Parcel> p) { result = std::move(p); });
  return result;
}

TEST(Worker, GivesAPeerWhatAStepSent) {
  auto worker = Worker::Create(*DeviceName::Parse(kTask), 1);
  const std::string key = Key(*worker, "e");
  SLUICE_ASSERT_OK(
      worker->StepRendezvous(5, "")->Send(key, {Tensor::Scalar(3.0f)}));
  EXPECT_EQ(Recv(*worker, 5, key)->tensor.scalar<float>(), 3.0f);
}

TEST(Worker, APeerThatComesBeforeTheStepWaits) {
  auto worker = Worker::Create(*DeviceName::Parse(kTask), 1);
  const std::string key = Key(*worker, "e");
  absl::StatusOr<Parcel> got = Unknown("waits");
  worker->RecvTensor(5, key,
                     [&](absl::StatusOr<Parcel> p) { got = std::move(p); });
  EXPECT_EQ(worker->num_steps(), 1);
  SLUICE_ASSERT_OK(
      worker->StepRendezvous(5, "")->Send(key, {Tensor::Scalar(3.0f)}));
  EXPECT_EQ(got->tensor.scalar<float>(), 3.0f);
}

TEST(Worker, APeerThatComesAfterTheStepIsToldSo) {
  auto worker = Worker::Create(*DeviceName::Parse(kTask), 1);
  absl::StatusOr<Parcel> early = Unknown("waits");
  worker->RecvTensor(5, Key(*worker, "e"),
                     [&](absl::StatusOr<Parcel> p) { early = std::move(p); });
  worker->CleanupGraph(5, [](absl::Status) {});
  EXPECT_THAT(early.status(), StatusIs(absl::StatusCode::kAborted,
                                       testing::HasSubstr("Cleanup 5")));
  EXPECT_EQ(worker->num_steps(), 0);
  EXPECT_TRUE(absl::IsAborted(Recv(*worker, 5, Key(*worker, "e")).status()));
  EXPECT_EQ(worker->num_steps(), 0);
}

TEST(Worker, TakesSoManySessionsAndNoMore) {
  const auto worker = Worker::Create(*DeviceName::Parse(kTask), 1);
  const auto open = [&](const std::string& handle, int64_t most) {
    CreateSessionRequest request{handle};
    request.max_sessions = most;
    absl::Status status;
    worker->CreateSession(std::move(request),
                          [&](absl::Status s) { status = std::move(s); });
    return status;
  };
  SLUICE_EXPECT_OK(open("a", 1));
  SLUICE_EXPECT_OK(open("a", 1));
  EXPECT_TRUE(absl::IsResourceExhausted(open("b", 1)));
  SLUICE_EXPECT_OK(open("b", 2));
}

TEST(Worker, KeysOfOthersAreErrors) {
  auto worker = Worker::Create(*DeviceName::Parse(kTask), 1);
  EXPECT_THAT(Recv(*worker, 1, "no key").status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("no key")));
  EXPECT_THAT(
      Recv(*worker, 1,
           StrCat(RendezvousKeyPrefix(kDevice, 12345, kDevice, "e"), "0:0"))
          .status(),
      StatusIs(
          absl::StatusCode::kAborted,
          testing::HasSubstr(
              "RecvTensor expects a different device incarnation: 12345")));
  EXPECT_THAT(
      Recv(*worker, 1,
           StrCat(RendezvousKeyPrefix("/job:a/replica:0/task:0/device:GPU:7", 1,
                                      kDevice, "e"),
                  "0:0"))
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               testing::HasSubstr("Invalid rendezvous key (src)")));
  EXPECT_EQ(worker->num_steps(), 0);
}

TEST(Worker, ItsEndIsToldToPeersThatWait) {
  auto worker = Worker::Create(*DeviceName::Parse(kTask), 1);
  absl::StatusOr<Parcel> got = Unknown("waits");
  worker->RecvTensor(5, Key(*worker, "e"),
                     [&](absl::StatusOr<Parcel> p) { got = std::move(p); });
  worker = nullptr;
  EXPECT_THAT(got.status(), StatusIs(absl::StatusCode::kAborted,
                                     testing::HasSubstr("Shutdown")));
}

// Masters elsewhere may send two graphs that mean different things by a name.
TEST(Worker, ANodeOfTheSameNameButAnotherKindGetsAKernelOfItsOwn) {
  auto worker = Worker::Create(*DeviceName::Parse(kTask), 1);
  worker->CreateSession({"s"}, [](absl::Status) {});
  for (const DType dtype : {DType::kFloat, DType::kString}) {
    auto graph = std::make_shared<Graph>();
    Scope scope(*graph);
    const AttrMap types = {{"component_types", std::vector<DType>{dtype}}};
    const Output queue = scope.Named("q").Add("FIFOQueueV2", {}, types);
    const Output value = dtype == DType::kFloat
                             ? scope.Scalar(1.0f)
                             : scope.Scalar(std::string("text"));
    scope.AddNode("QueueEnqueueV2", {queue, value});
    for (int id = 0; id < graph->num_nodes(); ++id) {
      graph->node(id)->set_assigned_device(kDevice);
    }
    RegisterGraphRequest request;
    request.session_handle = "s";
    request.graph = graph;
    std::shared_ptr<RegisteredGraph> registered;
    worker->RegisterGraph(std::move(request),
                          [&](auto made) { registered = *std::move(made); });
    RunGraphRequest run;
    run.graph = registered.get();
    absl::Status status = Unknown("waits");
    worker->RunGraph(run, [&](absl::Status s) { status = std::move(s); });
    SLUICE_EXPECT_OK(status);
  }
}

TEST(Worker, ItsKernelsUseItsFiles) {
  MemoryFileSystem files;
  auto worker = Worker::Create(*DeviceName::Parse(kTask), 1, files);
  worker->CreateSession({"s"}, [](absl::Status) {});
  auto graph = std::make_shared<Graph>();
  Scope scope(*graph);
  scope.Add("WriteFile", {scope.Scalar(std::string("dir/name")),
                          scope.Scalar(std::string("contents"))});
  for (int id = 0; id < graph->num_nodes(); ++id) {
    graph->node(id)->set_assigned_device(kDevice);
  }
  RegisterGraphRequest request;
  request.session_handle = "s";
  request.graph = graph;
  std::shared_ptr<RegisteredGraph> registered;
  worker->RegisterGraph(std::move(request),
                        [&](auto made) { registered = *std::move(made); });
  RunGraphRequest run;
  run.graph = registered.get();
  Notification over;
  worker->RunGraph(run, [&](absl::Status status) {
    SLUICE_EXPECT_OK(status);
    over.Notify();
  });
  ASSERT_TRUE(over.WaitFor(std::chrono::seconds(60)));
  EXPECT_EQ(*files.ReadFile("dir/name"), "contents");
}

}  // namespace
}  // namespace sluice
