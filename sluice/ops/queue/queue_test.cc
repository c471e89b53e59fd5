#include "sluice/ops/queue/queue.h"

#include <thread>

#include "sluice/kernel/testing/op_test.h"
#include "sluice/ops/state/testing/op_session.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = absl::StatusCode;

AttrMap ScalarQueue(int64_t capacity) {
  return {{"component_types", std::vector<DType>{DType::kInt32}},
          {"shapes", std::vector<PartialShape>{PartialShape::Scalar()}},
          {"capacity", capacity}};
}

// A queue of int32 scalars and the ops on it.
class QueueFixture {
 public:
  explicit QueueFixture(int64_t capacity, std::string_view op = "FIFOQueueV2",
                        AttrMap attrs = {})
      : device_(MakeTestDevice()), session_(*device_) {
    for (const auto& [name, value] : ScalarQueue(capacity)) {
      if (!attrs.Contains(name)) attrs.Set(name, value);
    }
    if (!attrs.Contains("shared_name")) attrs.Set("shared_name", "q");
    queue_ = session_.Add(op, {}, attrs, "queue");
    v2_ = op.ends_with("V2") ? "V2" : "";
    dequeue_ =
        session_.Add(StrCat("QueueDequeue", v2_), {queue_->output(0)},
                     {{"component_types", std::vector<DType>{DType::kInt32}}});
  }

  OpSession& session() { return session_; }
  Node* queue() const { return queue_; }

  std::shared_ptr<OpRun> Enqueue(int32_t value) {
    return session_.Start(session_.Add(
        StrCat("QueueEnqueue", v2_),
        {queue_->output(0), session_.Value(Tensor::Scalar(value))}));
  }
  std::shared_ptr<OpRun> EnqueueMany(std::initializer_list<int32_t> values) {
    return session_.Start(session_.Add(
        StrCat("QueueEnqueueMany", v2_),
        {queue_->output(0), session_.Value(Tensor::Vector<int32_t>(values))}));
  }
  std::shared_ptr<OpRun> Dequeue() { return session_.Start(dequeue_); }
  std::shared_ptr<OpRun> DequeueMany(int32_t n, bool up_to = false) {
    return session_.Start(session_.Add(
        StrCat(up_to ? "QueueDequeueUpTo" : "QueueDequeueMany", v2_),
        {queue_->output(0), session_.Value(Tensor::Scalar(n))},
        {{"component_types", std::vector<DType>{DType::kInt32}}}));
  }
  std::shared_ptr<OpRun> Close(bool cancel = false) {
    return session_.Start(session_.Add(StrCat("QueueClose", v2_),
                                       {queue_->output(0)},
                                       {{"cancel_pending_enqueues", cancel}}));
  }
  int32_t Size() {
    return session_
        .Output0(session_.Add(StrCat("QueueSize", v2_), {queue_->output(0)}))
        .scalar<int32_t>();
  }
  bool IsClosed() {
    return session_
        .Output0(
            session_.Add(StrCat("QueueIsClosed", v2_), {queue_->output(0)}))
        .scalar<bool>();
  }

 private:
  std::unique_ptr<Device> device_;
  OpSession session_;
  std::string v2_;
  Node* queue_;
  Node* dequeue_;
};

std::vector<int32_t> ValuesOf(const OpRun& run) {
  const Tensor& output = run.output(0);
  return {output.data<int32_t>().begin(), output.data<int32_t>().end()};
}

TEST(FifoQueue, GivesElementsInTheOrderTheyCame) {
  for (const char* op : {"FIFOQueue", "FIFOQueueV2"}) {
    QueueFixture q(10, op);
    SLUICE_ASSERT_OK(q.Enqueue(1)->Wait());
    SLUICE_ASSERT_OK(q.EnqueueMany({2, 3, 4})->Wait());
    EXPECT_EQ(q.Size(), 4);
    auto one = q.Dequeue();
    SLUICE_ASSERT_OK(one->Wait());
    EXPECT_THAT(ValuesOf(*one), ElementsAre(1));
    auto many = q.DequeueMany(3);
    SLUICE_ASSERT_OK(many->Wait());
    EXPECT_EQ(many->output(0).shape().DebugString(), "[3]");
    EXPECT_THAT(ValuesOf(*many), ElementsAre(2, 3, 4));
    EXPECT_EQ(q.Size(), 0);
  }
}

TEST(FifoQueue, DequeuesWaitInOrderAndSayForWhat) {
  QueueFixture q(10);
  const size_t before = WaitTable::Global().List().size();
  auto first = q.Dequeue();
  auto second = q.Dequeue();
  EXPECT_FALSE(first->finished());
  ASSERT_EQ(WaitTable::Global().List().size(), before + 2);
  EXPECT_EQ(WaitTable::Global().List().back().what,
            "dequeue from FIFOQueue 'q'");
  SLUICE_ASSERT_OK(q.EnqueueMany({7, 8})->Wait());
  SLUICE_ASSERT_OK(first->Wait());
  SLUICE_ASSERT_OK(second->Wait());
  EXPECT_THAT(ValuesOf(*first), ElementsAre(7));
  EXPECT_THAT(ValuesOf(*second), ElementsAre(8));
  EXPECT_EQ(WaitTable::Global().List().size(), before);
}

TEST(FifoQueue, AFullQueueTakesABatchAsSpaceAppears) {
  QueueFixture q(2);
  auto batch = q.EnqueueMany({1, 2, 3});
  EXPECT_FALSE(batch->finished());
  EXPECT_EQ(q.Size(), 2);
  auto later = q.Enqueue(4);
  SLUICE_ASSERT_OK(q.Dequeue()->Wait());
  SLUICE_ASSERT_OK(batch->Wait());
  EXPECT_FALSE(later->finished());
  auto rest = q.DequeueMany(3);
  SLUICE_ASSERT_OK(rest->Wait());
  SLUICE_ASSERT_OK(later->Wait());
  EXPECT_THAT(ValuesOf(*rest), ElementsAre(2, 3, 4));
}

TEST(FifoQueue, DequeueManyGathersUntilItHasEnough) {
  QueueFixture q(2);
  auto many = q.DequeueMany(5);
  SLUICE_ASSERT_OK(q.EnqueueMany({1, 2, 3})->Wait());
  EXPECT_EQ(q.Size(), 0);
  EXPECT_FALSE(many->finished());
  SLUICE_ASSERT_OK(q.EnqueueMany({4, 5, 6})->Wait());
  SLUICE_ASSERT_OK(many->Wait());
  EXPECT_THAT(ValuesOf(*many), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(q.Size(), 1);
}

TEST(FifoQueue, ABatchOfNoneIsThereAtOnce) {
  QueueFixture q(2);
  auto none = q.DequeueMany(0);
  SLUICE_ASSERT_OK(none->Wait());
  EXPECT_EQ(none->output(0).shape().DebugString(), "[0]");
  SLUICE_EXPECT_OK(q.EnqueueMany({})->Wait());
  EXPECT_THAT(q.DequeueMany(-1)->Wait(),
              StatusIs(Kind::kInvalidArgument,
                       "DequeueManyOp requested -1 < 0 elements"));
}

TEST(FifoQueue, AfterCloseTakersGetWhatIsLeft) {
  QueueFixture q(10);
  SLUICE_ASSERT_OK(q.EnqueueMany({1, 2, 3})->Wait());
  EXPECT_FALSE(q.IsClosed());
  SLUICE_ASSERT_OK(q.Close()->Wait());
  EXPECT_TRUE(q.IsClosed());
  EXPECT_THAT(q.Enqueue(4)->Wait(),
              StatusIs(Kind::kCancelled, "FIFOQueue 'q' is closed."));
  EXPECT_THAT(q.DequeueMany(4)->Wait(),
              StatusIs(Kind::kOutOfRange,
                       "FIFOQueue 'q' is closed and has insufficient elements "
                       "(requested 4, current size 3)"));
  auto one = q.Dequeue();
  SLUICE_ASSERT_OK(one->Wait());
  EXPECT_THAT(ValuesOf(*one), ElementsAre(1));
  auto rest = q.DequeueMany(9, /*up_to=*/true);
  SLUICE_ASSERT_OK(rest->Wait());
  EXPECT_THAT(ValuesOf(*rest), ElementsAre(2, 3));
  EXPECT_THAT(q.DequeueMany(9, /*up_to=*/true)->Wait(),
              StatusIs(Kind::kOutOfRange, HasSubstr("requested 9")));
  EXPECT_THAT(q.Dequeue()->Wait(),
              StatusIs(Kind::kOutOfRange,
                       "FIFOQueue 'q' is closed and has insufficient elements "
                       "(requested 1, current size 0)"));
  EXPECT_THAT(q.Close()->Wait(),
              StatusIs(Kind::kCancelled, "Queue 'q' is already closed."));
}

TEST(FifoQueue, CloseEndsTheWaitOfTakers) {
  QueueFixture q(10);
  SLUICE_ASSERT_OK(q.Enqueue(1)->Wait());
  auto many = q.DequeueMany(3);
  SLUICE_ASSERT_OK(q.Close()->Wait());
  // It says what it still missed, and gives back what it had.
  EXPECT_THAT(many->Wait(),
              StatusIs(Kind::kOutOfRange,
                       "FIFOQueue 'q' is closed and has insufficient elements "
                       "(requested 2, current size 0)"));
  auto one = q.Dequeue();
  SLUICE_ASSERT_OK(one->Wait());
  EXPECT_THAT(ValuesOf(*one), ElementsAre(1));
}

TEST(FifoQueue, CloseWaitsForTheEnqueuesBeforeIt) {
  QueueFixture q(1);
  SLUICE_ASSERT_OK(q.Enqueue(1)->Wait());
  auto waiting = q.Enqueue(2);
  auto close = q.Close();
  auto after = q.Enqueue(3);
  EXPECT_FALSE(close->finished());
  EXPECT_FALSE(q.IsClosed());
  SLUICE_ASSERT_OK(q.Dequeue()->Wait());
  SLUICE_ASSERT_OK(waiting->Wait());
  SLUICE_ASSERT_OK(close->Wait());
  EXPECT_THAT(after->Wait(),
              StatusIs(Kind::kCancelled, "FIFOQueue 'q' is closed."));
  EXPECT_EQ(q.Size(), 1);
}

TEST(FifoQueue, CloseMayCancelTheEnqueuesBeforeIt) {
  QueueFixture q(1);
  auto partial = q.EnqueueMany({1, 2});
  auto waiting = q.Enqueue(3);
  SLUICE_ASSERT_OK(q.Close(/*cancel=*/true)->Wait());
  for (const auto& run : {partial, waiting}) {
    EXPECT_THAT(run->Wait(),
                StatusIs(Kind::kCancelled, "Enqueue operation was cancelled"));
  }
  EXPECT_EQ(q.Size(), 1);
}

TEST(FifoQueue, CancellingTheStepEndsTheWait) {
  QueueFixture q(1);
  auto take = q.DequeueMany(2);
  SLUICE_ASSERT_OK(q.Enqueue(1)->Wait());
  auto next = q.Dequeue();
  take->cancellation().Cancel(absl::CancelledError("enough"));
  EXPECT_THAT(take->Wait(),
              StatusIs(Kind::kCancelled, "Dequeue operation was cancelled"));
  // The element it had taken goes to the next.
  SLUICE_ASSERT_OK(next->Wait());
  EXPECT_THAT(ValuesOf(*next), ElementsAre(1));

  SLUICE_ASSERT_OK(q.Enqueue(1)->Wait());
  auto put = q.Enqueue(2);
  put->cancellation().Cancel(absl::CancelledError("enough"));
  EXPECT_THAT(put->Wait(),
              StatusIs(Kind::kCancelled, "Enqueue operation was cancelled"));
  EXPECT_EQ(q.Size(), 1);
}

TEST(FifoQueue, ChecksElements) {
  QueueFixture q(5);
  OpSession& session = q.session();
  const Output handle = q.queue()->output(0);
  const Output vector = session.Value(Tensor::Vector<int32_t>({1, 2}));
  const Output matrix = session.Value(Tensor::Of<int32_t>({1, 2}, {1, 2}));
  const Output text = session.Value(Tensor::Scalar<std::string>("x"));
  EXPECT_THAT(session.Run(session.Add("QueueEnqueueV2", {handle, vector})),
              StatusIs(Kind::kInvalidArgument,
                       "Shape mismatch in tuple component 0. Expected [], got "
                       "[2]"));
  EXPECT_THAT(session.Run(session.Add("QueueEnqueueManyV2", {handle, matrix})),
              StatusIs(Kind::kInvalidArgument,
                       "Shape mismatch in tuple component 0. Expected [1], got "
                       "[1,2]"));
  EXPECT_THAT(session.Run(session.Add(
                  "QueueEnqueueManyV2",
                  {handle, session.Value(Tensor::Scalar<int32_t>(1))})),
              StatusIs(Kind::kInvalidArgument, HasSubstr("component 0")));
  EXPECT_THAT(session.Run(session.Add("QueueEnqueueV2", {handle, text})),
              StatusIs(Kind::kInvalidArgument,
                       "Signature mismatch, have: resource, string-> expected: "
                       "resource, int32->"));
  EXPECT_THAT(session.Run(session.Add(
                  "QueueDequeueV2", {handle},
                  {{"component_types", std::vector<DType>{DType::kFloat}}})),
              StatusIs(Kind::kInvalidArgument,
                       "Signature mismatch, have: resource->float expected: "
                       "resource->int32"));
}

TEST(FifoQueue, BatchesNeedShapes) {
  const auto device = MakeTestDevice();
  OpSession session(*device);
  const std::vector<DType> types{DType::kFloat, DType::kString};
  Node* q = session.Add("FIFOQueueV2", {}, {{"component_types", types}});
  const Output floats = session.Value(Tensor::Vector<float>({1, 2, 3}));
  EXPECT_THAT(
      session.Run(
          session.Add("QueueDequeueManyV2",
                      {q->output(0), session.Value(Tensor::Scalar<int32_t>(1))},
                      {{"component_types", types}})),
      StatusIs(Kind::kInvalidArgument,
               "FIFOQueue's DequeueMany and DequeueUpTo require the components "
               "to have specified shapes."));
  EXPECT_THAT(session.Run(session.Add(
                  "QueueEnqueueManyV2",
                  {q->output(0), floats,
                   session.Value(Tensor::Vector<std::string>({"a"}))})),
              StatusIs(Kind::kInvalidArgument,
                       "All input tensors must have the same size in the 0th "
                       "dimension. Component 1 has 1, and should have 3"));
  // Single elements may have any shape.
  SLUICE_ASSERT_OK(session.Run(session.Add(
      "QueueEnqueueV2", {q->output(0), floats,
                         session.Value(Tensor::Scalar<std::string>("b"))})));
  auto outputs = session.Outputs(session.Add("QueueDequeueV2", {q->output(0)},
                                             {{"component_types", types}}));
  SLUICE_ASSERT_OK(outputs.status());
  ExpectClose((*outputs)[0], Tensor::Vector<float>({1, 2, 3}));
  ExpectClose((*outputs)[1], Tensor::Scalar<std::string>("b"));
}

TEST(FifoQueue, IsSharedOnlyByItsLike) {
  const auto device = MakeTestDevice();
  OpSession session(*device);
  AttrMap attrs = ScalarQueue(2);
  attrs.Set("shared_name", "sh");
  SLUICE_ASSERT_OK(session.Run(session.Add("FIFOQueueV2", {}, attrs)));
  SLUICE_EXPECT_OK(session.Run(session.Add("FIFOQueue", {}, attrs)));
  const auto sharing = [&](std::string_view op, std::string_view attr,
                           AttrValue value) {
    AttrMap changed = attrs;
    changed.Set(attr, std::move(value));
    return session.Run(session.Add(op, {}, changed));
  };
  EXPECT_THAT(sharing("FIFOQueueV2", "capacity", 3),
              StatusIs(Kind::kInvalidArgument,
                       "Shared queue 'sh' has capacity 2 but requested "
                       "capacity was 3"));
  EXPECT_THAT(sharing("FIFOQueueV2", "component_types",
                      std::vector<DType>{DType::kFloat}),
              StatusIs(Kind::kInvalidArgument,
                       "Shared queue 'sh' has component types int32 but "
                       "requested component types were float"));
  EXPECT_THAT(
      sharing("FIFOQueueV2", "shapes", std::vector<PartialShape>{{2}}),
      StatusIs(Kind::kInvalidArgument,
               "Shared queue 'sh' has component shapes [[]] but requested "
               "component shapes were [[2]]"));
  EXPECT_THAT(sharing("RandomShuffleQueueV2", "capacity", 2),
              StatusIs(Kind::kInvalidArgument,
                       "Expected FIFOQueue, found RandomShuffleQueueV2"));
}

TEST(FifoQueue, WithoutASharedNameGoesWithItsSession) {
  const auto device = MakeTestDevice();
  {
    OpSession one(*device);
    OpSession two(*device);
    Node* q = one.Add("FIFOQueueV2", {}, ScalarQueue(2), "fifo_queue");
    SLUICE_ASSERT_OK(one.Run(
        one.Add("QueueEnqueueV2",
                {q->output(0), one.Value(Tensor::Scalar<int32_t>(1))})));
    Node* other = two.Add("FIFOQueueV2", {}, ScalarQueue(2), "fifo_queue");
    EXPECT_EQ(two.Output0(two.Add("QueueSizeV2", {other->output(0)}))
                  .scalar<int32_t>(),
              0);
    EXPECT_THAT(one.Output0(q).scalar<ResourceHandle>().name,
                testing::MatchesRegex("_[0-9]+_fifo_queue"));
    EXPECT_EQ(device->resources().List().size(), 2u);
  }
  EXPECT_TRUE(device->resources().List().empty());
}

TEST(FifoQueue, KeepsNoBorrowedMemory) {
  const auto device = MakeTestDevice();
  OpSession session(*device);
  Node* q = session.Add("FIFOQueueV2", {}, ScalarQueue(2));
  int32_t memory = 1;
  SLUICE_ASSERT_OK(session.Run(session.Add(
      "QueueEnqueueV2",
      {q->output(0), session.Value(Tensor::FromBuffer(
                         DType::kInt32, {},
                         Buffer::Borrow(&memory, sizeof(memory), [] {})))})));
  memory = 2;
  Node* dequeue =
      session.Add("QueueDequeueV2", {q->output(0)},
                  {{"component_types", std::vector<DType>{DType::kInt32}}});
  EXPECT_EQ(session.Output0(dequeue).scalar<int32_t>(), 1);
}

TEST(FifoQueue, MovesEveryElementOnceBetweenThreads) {
  const auto device = MakeTestDevice();
  AttrMap attrs = ScalarQueue(3);
  attrs.Set("shared_name", "q");
  constexpr int kThreads = 3;
  constexpr int kElements = 500;
  std::atomic<int64_t> sum{0};
  // Alive until all threads are done, so that the queue is.
  OpSession keeper(*device);
  SLUICE_ASSERT_OK(keeper.Run(keeper.Add("FIFOQueueV2", {}, attrs)));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      OpSession session(*device);
      Node* q = session.Add("FIFOQueueV2", {}, attrs);
      const Output value = session.Value(Tensor::Scalar<int32_t>(0));
      Node* put = session.Add("QueueEnqueueV2", {q->output(0), value});
      for (int i = 0; i < kElements; ++i) {
        session.SetValue(value, Tensor::Scalar<int32_t>(i));
        EXPECT_TRUE(session.Run(put).ok());
      }
    });
    threads.emplace_back([&] {
      OpSession session(*device);
      Node* q = session.Add("FIFOQueueV2", {}, attrs);
      Node* take =
          session.Add("QueueDequeueV2", {q->output(0)},
                      {{"component_types", std::vector<DType>{DType::kInt32}}});
      for (int i = 0; i < kElements; ++i) {
        sum += session.Output0(take).scalar<int32_t>();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum, int64_t{kThreads} * kElements * (kElements - 1) / 2);
}

TEST(RandomShuffleQueue, KeepsSomeElementsWhileItIsOpen) {
  QueueFixture q(10, "RandomShuffleQueueV2", {{"min_after_dequeue", 2}});
  SLUICE_ASSERT_OK(q.EnqueueMany({1, 2, 3})->Wait());
  SLUICE_ASSERT_OK(q.Dequeue()->Wait());
  auto waiting = q.Dequeue();
  EXPECT_FALSE(waiting->finished());
  SLUICE_ASSERT_OK(q.Close()->Wait());
  SLUICE_ASSERT_OK(waiting->Wait());
  SLUICE_ASSERT_OK(q.Dequeue()->Wait());
  EXPECT_THAT(q.Dequeue()->Wait(),
              StatusIs(Kind::kOutOfRange,
                       "RandomShuffleQueue 'q' is closed and has insufficient "
                       "elements (requested 1, current size 0)"));
}

TEST(RandomShuffleQueue, PicksWhatTensorFlowPicks) {
  QueueFixture q(100, "RandomShuffleQueueV2",
                 {{"min_after_dequeue", 5}, {"seed", 42}, {"seed2", 7}});
  SLUICE_ASSERT_OK(q.EnqueueMany({0,  1,  2,  3,  4,  5,  6,  7,  8,  9,
                                  10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
                                  20, 21, 22, 23, 24, 25, 26, 27, 28, 29})
                       ->Wait());
  std::vector<int32_t> taken;
  const auto take = [&](const std::shared_ptr<OpRun>& run) {
    SLUICE_EXPECT_OK(run->Wait());
    for (int32_t value : ValuesOf(*run)) taken.push_back(value);
  };
  for (int i = 0; i < 10; ++i) take(q.Dequeue());
  take(q.DequeueMany(4));
  SLUICE_ASSERT_OK(q.Close()->Wait());
  for (int i = 0; i < 16; ++i) take(q.Dequeue());
  EXPECT_THAT(
      taken, ElementsAre(16, 18, 17, 8, 24, 26, 9, 20, 2, 12, 4, 25, 21, 15, 23,
                         14, 3, 29, 0, 28, 5, 19, 11, 7, 22, 6, 13, 10, 27, 1));
}

TEST(RandomShuffleQueue, ChecksItsReserve) {
  const auto device = MakeTestDevice();
  OpSession session(*device);
  AttrMap attrs = ScalarQueue(2);
  attrs.Set("min_after_dequeue", -1);
  EXPECT_THAT(
      session.Run(session.Add("RandomShuffleQueueV2", {}, attrs)),
      StatusIs(Kind::kInvalidArgument, "min_after_dequeue -1 must be >= 0"));
  attrs.Set("min_after_dequeue", 2);
  EXPECT_THAT(session.Run(session.Add("RandomShuffleQueueV2", {}, attrs)),
              StatusIs(Kind::kInvalidArgument,
                       "min_after_dequeue 2 must be < capacity 2"));
}

TEST(PaddingFifoQueue, PadsBatchesToTheLargestElement) {
  const auto device = MakeTestDevice();
  OpSession session(*device);
  const std::vector<DType> types{DType::kFloat, DType::kString};
  Node* q = session.Add("PaddingFIFOQueueV2", {},
                        {{"component_types", types},
                         {"shapes", std::vector<PartialShape>{{-1, 2}, {-1}}}});
  const auto put = [&](Tensor a, Tensor b) {
    return session.Run(session.Add("QueueEnqueueV2",
                                   {q->output(0), session.Value(std::move(a)),
                                    session.Value(std::move(b))}));
  };
  SLUICE_ASSERT_OK(put(Tensor::Of<float>({1, 2}, {1, 2}),
                       Tensor::Vector<std::string>({"a", "b"})));
  SLUICE_ASSERT_OK(put(Tensor::Of<float>({2, 2}, {3, 4, 5, 6}),
                       Tensor::Of<std::string>({0}, {})));
  EXPECT_THAT(put(Tensor::Of<float>({1, 3}, {1, 2, 3}),
                  Tensor::Vector<std::string>({"a"})),
              StatusIs(Kind::kInvalidArgument,
                       "Shape mismatch in tuple component 0. Expected [?,2], "
                       "got [1,3]"));
  auto outputs = session.Outputs(
      session.Add("QueueDequeueManyV2",
                  {q->output(0), session.Value(Tensor::Scalar<int32_t>(2))},
                  {{"component_types", types}}));
  SLUICE_ASSERT_OK(outputs.status());
  ExpectClose((*outputs)[0],
              Tensor::Of<float>({2, 2, 2}, {1, 2, 0, 0, 3, 4, 5, 6}));
  ExpectClose((*outputs)[1],
              Tensor::Of<std::string>({2, 2}, {"a", "b", "", ""}));
}

TEST(PriorityQueue, GivesTheSmallestFirst) {
  const auto device = MakeTestDevice();
  OpSession session(*device);
  Node* q = session.Add(
      "PriorityQueueV2", {},
      {{"component_types", std::vector<DType>{DType::kString}},
       {"shapes", std::vector<PartialShape>{PartialShape::Scalar()}}});
  SLUICE_ASSERT_OK(session.Run(session.Add(
      "QueueEnqueueManyV2",
      {q->output(0), session.Value(Tensor::Vector<int64_t>({5, -1, 5, 2})),
       session.Value(Tensor::Vector<std::string>({"e", "a", "f", "b"}))})));
  auto outputs = session.Outputs(
      session.Add("QueueDequeueManyV2",
                  {q->output(0), session.Value(Tensor::Scalar<int32_t>(4))},
                  {{"component_types",
                    std::vector<DType>{DType::kInt64, DType::kString}}}));
  SLUICE_ASSERT_OK(outputs.status());
  ExpectClose((*outputs)[0], Tensor::Vector<int64_t>({-1, 2, 5, 5}));
  ExpectClose((*outputs)[1], Tensor::Vector<std::string>({"a", "b", "e", "f"}));
}

TEST(Queues, EndAWaitWhenItsTimeIsOverAndLoseNothing) {
  QueueFixture q(2);
  q.Enqueue(7);
  const auto take = [&](const char* op, int64_t timeout) {
    return q.session().Start(q.session().Add(
        op,
        {q.queue()->output(0), q.session().Value(Tensor::Scalar<int32_t>(2))},
        {{"component_types", std::vector<DType>{DType::kInt32}},
         {"timeout_ms", timeout}}));
  };
  // It has taken the 7 when its time is over, and gives it back.
  EXPECT_THAT(take("QueueDequeueManyV2", 1)->Wait(),
              StatusIs(Kind::kDeadlineExceeded,
                       "The dequeue from FIFOQueue 'q' has waited for "
                       "timeout_ms=1"));
  EXPECT_EQ(q.Size(), 1);
  // Who is served in time has its elements.
  const auto served = take("QueueDequeueManyV2", 100000);
  q.Enqueue(8);
  SLUICE_ASSERT_OK(served->Wait());
  EXPECT_EQ(served->output(0).data<int32_t>()[1], 8);
  EXPECT_THAT(q.session().Run(q.session().Add(
                  "QueueDequeueV2", {q.queue()->output(0)},
                  {{"component_types", std::vector<DType>{DType::kInt32}},
                   {"timeout_ms", 0}})),
              StatusIs(Kind::kDeadlineExceeded, HasSubstr("timeout_ms=0")));
  q.EnqueueMany({1, 2});
  EXPECT_THAT(
      q.session().Run(q.session().Add(
          "QueueEnqueueV2",
          {q.queue()->output(0), q.session().Value(Tensor::Scalar(3))},
          {{"timeout_ms", 1}})),
      StatusIs(Kind::kDeadlineExceeded, HasSubstr("enqueue to FIFOQueue 'q'")));
  EXPECT_EQ(q.Size(), 2);
}

// The queue of the tokens of synchronous training.
AttrMap Tokens() { return {{"shared_name", "sync_token_q"}}; }

int32_t Taken(QueueFixture& queue) {
  const auto run = queue.Dequeue();
  SLUICE_EXPECT_OK(run->Wait());
  return run->output(0).scalar<int32_t>();
}

TEST(TokenQueue, HoldsTokensOfTheNewestStepOnly) {
  QueueFixture queue(-1, "FIFOQueueV2", Tokens());
  queue.EnqueueMany({4, 4, 4});
  EXPECT_EQ(Taken(queue), 4);
  queue.EnqueueMany({5, 5});
  EXPECT_EQ(queue.Size(), 2);
  queue.Enqueue(4);  // Given back too late.
  EXPECT_EQ(queue.Size(), 2);
  queue.Enqueue(5);
  EXPECT_EQ(queue.Size(), 3);
  EXPECT_EQ(Taken(queue), 5);
}

TEST(TokenQueue, ANewChiefMayGoBackToAnEarlierStep) {
  QueueFixture queue(-1, "FIFOQueueV2", Tokens());
  queue.EnqueueMany({35, 35});
  queue.EnqueueMany({30, 30, 30});
  EXPECT_EQ(queue.Size(), 3);
  EXPECT_EQ(Taken(queue), 30);
}

TEST(TokenQueue, OpensAgainForANewChiefAfterTheEndOfATraining) {
  QueueFixture queue(-1, "FIFOQueueV2", Tokens());
  auto waiting = queue.Dequeue();
  queue.Close();
  EXPECT_TRUE(absl::IsOutOfRange(waiting->Wait()));
  EXPECT_TRUE(absl::IsCancelled(queue.Enqueue(3)->Wait()));
  EXPECT_TRUE(queue.IsClosed());
  SLUICE_EXPECT_OK(queue.EnqueueMany({7})->Wait());
  EXPECT_FALSE(queue.IsClosed());
  EXPECT_EQ(Taken(queue), 7);
}

}  // namespace
}  // namespace sluice
