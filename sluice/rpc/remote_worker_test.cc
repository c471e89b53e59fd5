#include "sluice/rpc/remote_worker.h"

#include <sys/resource.h>

#include <algorithm>
#include <functional>
#include <new>

#include "sluice/base/testing/eventually.h"
#include "sluice/graph/scope.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/kernel/testing/rendezvous_conformance.h"
#include "sluice/proto/worker.pb.h"
#include "sluice/rpc/byte_buffer.h"
#include "sluice/rpc/client_call.h"
#include "sluice/rpc/cluster_workers.h"
#include "sluice/rpc/lane_channel.h"
#include "sluice/rpc/paths.h"
#include "sluice/rpc/recv_chunks.h"
#include "sluice/rpc/testing/lane_only.h"
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

  explicit Served(bool by_lane = false) {
    GenericServer::Options options;
    options.address = "localhost:0";
    options.handler = task.handler();
    options.lane = by_lane ? NewLaneName() : "";
    const std::string lane = options.lane;
    server = *GenericServer::Start(std::move(options));
    ChannelMaker connect = RpcChannel::Create;
    if (by_lane) {
      connect = [lane](const std::string&) { return LaneOnly::Connect(lane); };
    }
    cluster = *ClusterWorkers::Create(
        asker,
        {{TaskUnderTest::kTask, StrCat("localhost:", server->port())},
         {kAsker, TaskUnderTest::kAskerAddress}},
        connect);
    ConnectRendezvous(*asker, cluster, connect);
  }
  // As a server does: a step that is open holds the cluster, which holds the
  // worker.
  ~Served() { asker->Shutdown(); }
};

template <bool kByLane>
WorkerUnderTest Remote() {
  auto served = std::make_shared<Served>(kByLane);
  return {served->cluster->Find(TaskUnderTest::kTask), TaskUnderTest::kDevice,
          served};
}

INSTANTIATE_TEST_SUITE_P(Remote, WorkerConformance,
                         testing::Values(Remote<false>));
INSTANTIATE_TEST_SUITE_P(Lane, WorkerConformance,
                         testing::Values(Remote<true>));

// What the task sends, the asker receives.
RendezvousEnds EndsOf(const std::shared_ptr<Served>& served) {
  const uint64_t incarnation = served->task.worker().devices()[0].incarnation;
  return {served->task.worker().StepRendezvous(5, ""),
          served->asker->StepRendezvous(5, ""),
          [incarnation](const std::string& edge) {
            return StrCat(
                RendezvousKeyPrefix(TaskUnderTest::kDevice, incarnation,
                                    StrCat(kAsker, "/device:CPU:0"), edge),
                "0:0");
          },
          served};
}

RendezvousEnds RemoteEnds() { return EndsOf(std::make_shared<Served>()); }
RendezvousEnds LaneEnds() { return EndsOf(std::make_shared<Served>(true)); }

INSTANTIATE_TEST_SUITE_P(Remote, RendezvousConformance,
                         testing::Values(RemoteEnds));
INSTANTIATE_TEST_SUITE_P(Lane, RendezvousConformance,
                         testing::Values(LaneEnds));

// While it lives, tensors above so many bytes come in chunks.
struct SmallChunks {
  explicit SmallChunks(size_t bytes) : before(SetChunkBytesForTest(bytes)) {}
  ~SmallChunks() { SetChunkBytesForTest(before); }
  const size_t before;
};

RendezvousEnds ChunkedEnds() {
  auto chunks = std::make_shared<SmallChunks>(10000);
  RendezvousEnds ends = RemoteEnds();
  ends.keep = std::make_shared<
      std::pair<std::shared_ptr<void>, std::shared_ptr<SmallChunks>>>(ends.keep,
                                                                      chunks);
  return ends;
}

INSTANTIATE_TEST_SUITE_P(Chunked, RendezvousConformance,
                         testing::Values(ChunkedEnds));

absl::StatusOr<Parcel> Receive(const RendezvousEnds& ends,
                               const std::string& edge) {
  Notification done;
  absl::StatusOr<Parcel> result = Internal("nothing came");
  ends.receiver->RecvAsync(ends.key(edge), [&](absl::StatusOr<Parcel> parcel) {
    result = std::move(parcel);
    done.Notify();
  });
  EXPECT_TRUE(done.WaitFor(std::chrono::seconds(60)));
  return result;
}

TEST(RemoteWorker, ALargeTensorComesInChunks) {
  const SmallChunks chunks(1000);
  const RendezvousEnds ends = RemoteEnds();
  Tensor numbers(DType::kDouble, {25, 50});
  double next = 0;
  for (double& x : numbers.mutable_data<double>()) x = next++;
  Tensor bools(DType::kBool, {1001});
  for (bool& b : bools.mutable_data<bool>()) b = next++ < 1500;
  for (const Tensor& tensor : {numbers, bools}) {
    const std::string edge = StrCat("edge_of_", tensor.bytes());
    SLUICE_ASSERT_OK(ends.sender->Send(ends.key(edge), {tensor}));
    const int64_t before = RpcsStarted();
    const absl::StatusOr<Parcel> got = Receive(ends, edge);
    ASSERT_TRUE(got.ok()) << got.status();
    ExpectClose(got->tensor, tensor);
    EXPECT_EQ(RpcsStarted() - before, (tensor.bytes() + 999) / 1000);
  }
}

TEST(RemoteWorker, ALargeTensorIsReadWhereItIs) {
  const RendezvousEnds ends = LaneEnds();
  for (const int size : {3000, 100'000, 1'000'000}) {
    Tensor sent(DType::kDouble, {size});
    double next = 0;
    for (double& x : sent.mutable_data<double>()) x = next++;
    const std::string edge = StrCat("edge_of_", size);
    SLUICE_ASSERT_OK(ends.sender->Send(ends.key(edge), {sent}));
    absl::StatusOr<Parcel> got = Receive(ends, edge);
    ASSERT_TRUE(got.ok()) << got.status();
    ExpectClose(got->tensor, sent);
    const bool lent = sent.bytes() >= kShareableBytes;
    EXPECT_EQ(got->tensor.buffer()->borrowed(), lent) << size;
    if (!lent) continue;
    // As long as it is read, nobody may write to it; then anybody.
    EXPECT_FALSE(sent.unique());
    EXPECT_EQ(got->tensor.data<double>()[size - 1], size - 1);
    got->tensor = Tensor();
    EXPECT_TRUE(Eventually([&] { return sent.unique(); }));
    sent.mutable_data<double>()[0] = 7;
    EXPECT_EQ(sent.data<double>()[0], 7);
  }
}

// A sanitizer's allocator gives memory back as it likes.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
int64_t PageFaults() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

TEST(RemoteWorker, TensorsComeIntoMemoryThatOthersCameInto) {
  const RendezvousEnds ends = RemoteEnds();
  const Tensor sent(DType::kFloat, {4 << 20});
  const auto receive = [&](int i) {
    const std::string edge = StrCat("edge_", i);
    SLUICE_ASSERT_OK(ends.sender->Send(ends.key(edge), {sent}));
    ASSERT_TRUE(Receive(ends, edge).ok());
  };
  for (int i = 0; i < 5; ++i) receive(i);
  const int64_t before = PageFaults();
  constexpr int kTimes = 10;
  for (int i = 0; i < kTimes; ++i) receive(5 + i);
  const int64_t pages = static_cast<int64_t>(sent.bytes()) / 4096;
  // A few, as memory is shared with other threads; not each page each time.
  EXPECT_LT(PageFaults() - before, kTimes * pages / 2);
}
#endif

TEST(RemoteWorker, AGraphThatNobodyNeedsIsForgotten) {
  Served served;
  std::shared_ptr<WorkerInterface> worker =
      served.cluster->Find(TaskUnderTest::kTask);
  Notification opened;
  worker->CreateSession({"s"}, [&](absl::Status status) {
    SLUICE_EXPECT_OK(status);
    opened.Notify();
  });
  ASSERT_TRUE(opened.WaitFor(std::chrono::seconds(60)));
  auto graph = std::make_shared<Graph>();
  Scope(*graph).Scalar(1.0f).node->set_assigned_device(TaskUnderTest::kDevice);
  RegisterGraphRequest request;
  request.session_handle = "s";
  request.graph = graph;
  std::shared_ptr<RegisteredGraph> registered;
  Notification done;
  worker->RegisterGraph(
      std::move(request),
      [&](absl::StatusOr<std::shared_ptr<RegisteredGraph>> result) {
        if (result.ok()) registered = *std::move(result);
        done.Notify();
      });
  ASSERT_TRUE(done.WaitFor(std::chrono::seconds(60)));
  ASSERT_NE(registered, nullptr);
  EXPECT_EQ(served.task.worker().num_graphs(), 1);
  registered = nullptr;
  EXPECT_TRUE(
      Eventually([&] { return served.task.worker().num_graphs() == 0; }));
}

// Notes what is called; answers come when the test says so.
struct NotedCalls : RpcChannel {
  const std::string name = "nowhere:1";
  std::vector<std::string> paths;
  std::vector<Done> answers;
  std::function<void()> at_call;

  const std::string& address() const override { return name; }
  void Call(const char* path, const grpc::ByteBuffer&, const Options&,
            Done done) override {
    paths.push_back(path);
    answers.push_back(std::move(done));
    if (at_call) at_call();
  }
};

TEST(RemoteWorker, AGraphThatComesAfterTheEndOfItsSessionWentWithIt) {
  auto calls = std::make_shared<NotedCalls>();
  auto worker = *MakeRemoteWorker({TaskUnderTest::kTask, calls->name},
                                  {kAsker, TaskUnderTest::kAskerAddress},
                                  [&](const std::string&) { return calls; });
  RegisterGraphRequest request;
  request.session_handle = "s";
  request.graph = std::make_shared<Graph>();
  bool registered = false;
  worker->RegisterGraph(
      std::move(request),
      [&](const absl::StatusOr<std::shared_ptr<RegisteredGraph>>& graph) {
        registered = graph.ok();
      });
  worker->DeleteSession("s", [](absl::Status) {});
  calls->answers[0](absl::OkStatus(),
                    *ToByteBuffer(pb::RegisterGraphResponse()));
  EXPECT_TRUE(registered);
  EXPECT_THAT(calls->paths, testing::ElementsAre(paths::kRegisterGraph,
                                                 paths::kDeleteWorkerSession));
  calls->answers.clear();  // They hold the worker, which holds this channel.
}

TEST(RemoteWorker, AGraphThatCannotBeSentForLackOfMemoryFailsOnce) {
  auto calls = std::make_shared<NotedCalls>();
  auto worker = *MakeRemoteWorker({TaskUnderTest::kTask, calls->name},
                                  {kAsker, TaskUnderTest::kAskerAddress},
                                  [&](const std::string&) { return calls; });
  // The call may be on its way by then.
  for (const bool sent : {false, true}) {
    calls->at_call = [&] {
      if (!sent) calls->answers.clear();
      throw std::bad_alloc();
    };
    RegisterGraphRequest request;
    request.session_handle = "s";
    request.graph = std::make_shared<Graph>();
    std::vector<absl::Status> answers;
    worker->RegisterGraph(
        std::move(request),
        [&](const absl::StatusOr<std::shared_ptr<RegisteredGraph>>& graph) {
          answers.push_back(graph.status());
        });
    EXPECT_THAT(
        answers,
        testing::ElementsAre(StatusIs(
            absl::StatusCode::kResourceExhausted,
            testing::HasSubstr("Out of memory while sending a graph"))));
    EXPECT_TRUE(std::ranges::none_of(
        WaitTable::Global().List(), [](const WaitInfo& wait) {
          return wait.what.starts_with("the registration of a graph");
        }));
    calls->at_call = nullptr;
    for (RpcChannel::Done& answer : std::exchange(calls->answers, {})) {
      answer(absl::OkStatus(), *ToByteBuffer(pb::RegisterGraphResponse()));
    }
    EXPECT_EQ(answers.size(), 1u);
  }
  // What the task has taken nobody needs.
  EXPECT_THAT(calls->paths,
              testing::ElementsAre(paths::kRegisterGraph, paths::kRegisterGraph,
                                   paths::kDeregisterGraph));
  calls->answers.clear();  // They hold the worker, which holds this channel.
}

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

TEST(RemoteWorker, WhatATaskOutsideTheClusterSendsIsAnError) {
  const auto served = std::make_shared<Served>();
  const auto step = served->asker->StepRendezvous(5, "");
  const std::string key =
      StrCat(RendezvousKeyPrefix("/job:c/replica:0/task:3/device:CPU:0", 1,
                                 StrCat(kAsker, "/device:CPU:0"), "e"),
             "0:0");
  const auto wrong = [](const auto& received) {
    EXPECT_THAT(received.status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         testing::HasSubstr(
                             "comes from /job:c/replica:0/task:3, which is not "
                             "in the cluster of /job:b/replica:0/task:0")));
  };
  int answers = 0;
  step->RecvAsync(key, [&](const absl::StatusOr<Parcel>& parcel) {
    ++answers;
    wrong(parcel);
  });
  step->RecvGroupAsync({&key, 1},
                       [&](const absl::StatusOr<std::vector<Parcel>>& parcels) {
                         ++answers;
                         wrong(parcels);
                       });
  EXPECT_EQ(answers, 2);
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
