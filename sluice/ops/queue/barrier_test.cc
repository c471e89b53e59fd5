#include "sluice/kernel/testing/op_test.h"
#include "sluice/ops/state/testing/op_session.h"

namespace sluice {
namespace {
namespace barrier_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Code = absl::StatusCode;

// A barrier of (float scalar, int32 scalar).
class BarrierFixture {
 public:
  BarrierFixture() : device_(MakeTestDevice()), session_(*device_) {
    barrier_ = session_.Add(
        "Barrier", {},
        {{"component_types", std::vector<DType>{DType::kFloat, DType::kInt32}},
         {"shapes", std::vector<PartialShape>{PartialShape::Scalar(),
                                              PartialShape::Scalar()}},
         {"shared_name", "b"}});
  }

  std::shared_ptr<OpRun> Insert(int64_t component, Tensor keys, Tensor values) {
    return session_.Start(
        session_.Add("BarrierInsertMany",
                     {barrier_->output(0), session_.Value(std::move(keys)),
                      session_.Value(std::move(values))},
                     {{"component_index", component}}));
  }
  // In a step that has been cancelled.
  std::shared_ptr<OpRun> InsertIntsTooLate(
      std::initializer_list<std::string> keys,
      std::initializer_list<int32_t> values) {
    return session_.StartCancelled(session_.Add(
        "BarrierInsertMany",
        {barrier_->output(0), session_.Value(Tensor::Vector<std::string>(keys)),
         session_.Value(Tensor::Vector<int32_t>(values))},
        {{"component_index", int64_t{1}}}));
  }
  std::shared_ptr<OpRun> InsertFloats(std::initializer_list<std::string> keys,
                                      std::initializer_list<float> values) {
    return Insert(0, Tensor::Vector<std::string>(keys),
                  Tensor::Vector<float>(values));
  }
  std::shared_ptr<OpRun> InsertInts(std::initializer_list<std::string> keys,
                                    std::initializer_list<int32_t> values) {
    return Insert(1, Tensor::Vector<std::string>(keys),
                  Tensor::Vector<int32_t>(values));
  }
  std::shared_ptr<OpRun> Take(int32_t n, bool small = false) {
    return session_.Start(session_.Add(
        "BarrierTakeMany",
        {barrier_->output(0), session_.Value(Tensor::Scalar(n))},
        {{"component_types", std::vector<DType>{DType::kFloat, DType::kInt32}},
         {"allow_small_batch", small}}));
  }
  absl::Status Close(bool cancel = false) {
    return session_.Run(session_.Add("BarrierClose", {barrier_->output(0)},
                                     {{"cancel_pending_enqueues", cancel}}));
  }
  int32_t Size(const char* op) {
    return session_.Output0(session_.Add(op, {barrier_->output(0)}))
        .scalar<int32_t>();
  }

 private:
  std::unique_ptr<Device> device_;
  OpSession session_;
  Node* barrier_;
};

std::vector<std::string> KeysOf(const OpRun& run) {
  const auto keys = run.output(1).data<std::string>();
  return {keys.begin(), keys.end()};
}

TEST(Barrier, JoinsComponentsByKeyInTheOrderTheyWereBegun) {
  BarrierFixture b;
  SLUICE_ASSERT_OK(b.InsertFloats({"x", "y"}, {1, 2})->Wait());
  SLUICE_ASSERT_OK(b.InsertFloats({"z"}, {3})->Wait());
  EXPECT_EQ(b.Size("BarrierIncompleteSize"), 3);
  SLUICE_ASSERT_OK(b.InsertInts({"z", "y"}, {30, 20})->Wait());
  EXPECT_EQ(b.Size("BarrierIncompleteSize"), 1);
  EXPECT_EQ(b.Size("BarrierReadySize"), 2);
  auto take = b.Take(2);
  SLUICE_ASSERT_OK(take->Wait());
  EXPECT_THAT(KeysOf(*take), ElementsAre("y", "z"));
  constexpr int64_t kFirst = std::numeric_limits<int64_t>::min();
  ExpectClose(take->output(0), Tensor::Vector<int64_t>({kFirst, kFirst + 1}));
  ExpectClose(take->output(2), Tensor::Vector<float>({2, 3}));
  ExpectClose(take->output(3), Tensor::Vector<int32_t>({20, 30}));
}

TEST(Barrier, TakeWaitsUntilEnoughIsReadyOrTheStepIsCancelled) {
  BarrierFixture b;
  auto take = b.Take(1);
  EXPECT_FALSE(take->finished());
  SLUICE_ASSERT_OK(b.InsertFloats({"x"}, {1})->Wait());
  EXPECT_FALSE(take->finished());
  SLUICE_ASSERT_OK(b.InsertInts({"x"}, {10})->Wait());
  SLUICE_ASSERT_OK(take->Wait());
  EXPECT_THAT(KeysOf(*take), ElementsAre("x"));
  auto cancelled = b.Take(1);
  cancelled->cancellation().Cancel(absl::CancelledError("enough"));
  EXPECT_THAT(cancelled->Wait(),
              StatusIs(Code::kCancelled, HasSubstr("cancelled")));
}

// Other steps have had their part in the tuple.
TEST(Barrier, KeepsWhatACancelledStepHasCompleted) {
  BarrierFixture b;
  SLUICE_ASSERT_OK(b.InsertFloats({"x"}, {1})->Wait());
  b.InsertIntsTooLate({"x"}, {10})->Wait().IgnoreError();
  EXPECT_EQ(b.Size("BarrierReadySize"), 1);
}

TEST(Barrier, RefusesAComponentTwiceAndTakesTheKeyAgainWhenItIsComplete) {
  BarrierFixture b;
  SLUICE_ASSERT_OK(b.InsertFloats({"x"}, {1})->Wait());
  EXPECT_THAT(b.InsertFloats({"x"}, {2})->Wait(),
              StatusIs(Code::kInvalidArgument,
                       "Key x already has a value for component 0 in barrier "
                       "b"));
  SLUICE_ASSERT_OK(b.InsertInts({"x"}, {10})->Wait());
  SLUICE_ASSERT_OK(b.InsertFloats({"x"}, {2})->Wait());
  EXPECT_EQ(b.Size("BarrierReadySize"), 1);
  EXPECT_EQ(b.Size("BarrierIncompleteSize"), 1);
}

TEST(Barrier, CompletesWhatWasBegunAfterItIsClosed) {
  BarrierFixture b;
  SLUICE_ASSERT_OK(b.InsertFloats({"x", "y"}, {1, 2})->Wait());
  SLUICE_ASSERT_OK(b.Close());
  EXPECT_THAT(b.InsertFloats({"new"}, {3})->Wait(),
              StatusIs(Code::kCancelled,
                       "Barrier b is closed, but attempted to insert a brand "
                       "new key: new.  Pending enqueues cancelled: 0.  "
                       "Insertion index: 0.  Number of incomplete keys: 2."));
  auto waiting = b.Take(2);
  EXPECT_FALSE(waiting->finished());
  SLUICE_ASSERT_OK(b.InsertInts({"x", "y"}, {10, 20})->Wait());
  SLUICE_ASSERT_OK(waiting->Wait());
  EXPECT_THAT(b.InsertInts({"z"}, {1})->Wait(),
              StatusIs(Code::kCancelled,
                       "Barrier b is closed.  Pending enqueues cancelled: 0.  "
                       "Number of new insertions: 1.  Number of incomplete "
                       "keys: 0."));
  EXPECT_THAT(b.Take(1)->Wait(),
              StatusIs(Code::kOutOfRange,
                       "Barrier 'b' is closed and has insufficient elements "
                       "(requested 1, total size 0)"));
  EXPECT_THAT(b.Close(),
              StatusIs(Code::kCancelled, "Barrier 'b' is already closed."));
  SLUICE_EXPECT_OK(b.Close(/*cancel=*/true));
  EXPECT_THAT(b.Close(/*cancel=*/true),
              StatusIs(Code::kCancelled, "Barrier 'b' is already closed."));
}

TEST(Barrier, GivesSmallBatchesWhenClosedAndCancelDropsTheRest) {
  BarrierFixture b;
  SLUICE_ASSERT_OK(b.InsertFloats({"x", "y"}, {1, 2})->Wait());
  SLUICE_ASSERT_OK(b.InsertInts({"x"}, {10})->Wait());
  auto waiting = b.Take(3);
  SLUICE_ASSERT_OK(b.Close(/*cancel=*/true));
  EXPECT_THAT(waiting->Wait(),
              StatusIs(Code::kOutOfRange, HasSubstr("closed")));
  EXPECT_EQ(b.Size("BarrierIncompleteSize"), 0);
  auto small = b.Take(5, /*small=*/true);
  SLUICE_ASSERT_OK(small->Wait());
  EXPECT_THAT(KeysOf(*small), ElementsAre("x"));
  EXPECT_THAT(b.Take(5, /*small=*/true)->Wait(),
              StatusIs(Code::kOutOfRange, HasSubstr("total size 0")));
}

TEST(Barrier, SaysWhatIsWrongWithAnInsert) {
  BarrierFixture b;
  EXPECT_THAT(b.InsertFloats({"x", "y"}, {1})->Wait(),
              StatusIs(Code::kInvalidArgument, HasSubstr("There are 2 keys")));
  EXPECT_THAT(b.Insert(0, Tensor::Vector<std::string>({"x"}),
                       Tensor::Vector<int32_t>({1}))
                  ->Wait(),
              StatusIs(Code::kInvalidArgument,
                       "Signature mismatch, have: string_ref, string, int32-> "
                       "expected: string_ref, string, float->"));
  EXPECT_THAT(b.Insert(2, Tensor::Vector<std::string>({"x"}),
                       Tensor::Vector<int32_t>({1}))
                  ->Wait(),
              StatusIs(Code::kInvalidArgument, HasSubstr("out of range 2")));
  EXPECT_THAT(b.Insert(0, Tensor::Vector<std::string>({"x"}),
                       Tensor::Of<float>({1, 2}, {1, 2}))
                  ->Wait(),
              StatusIs(Code::kInvalidArgument, HasSubstr("Shape mismatch")));
}

TEST(Barrier, HasNoBound) {
  const auto device = MakeTestDevice();
  OpSession session(*device);
  Node* barrier =
      session.Add("Barrier", {},
                  {{"component_types", std::vector<DType>{DType::kFloat}},
                   {"capacity", int64_t{3}}});
  EXPECT_THAT(
      session.Run(barrier),
      StatusIs(Code::kInvalidArgument, HasSubstr("only accepts capacity=-1")));
}

}  // namespace barrier_test
}  // namespace
}  // namespace sluice
