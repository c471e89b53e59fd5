#include "sluice/kernel/testing/op_test.h"
#include "sluice/ops/state/testing/op_session.h"

namespace sluice {
namespace {
namespace staging_test {

using ::testing::HasSubstr;
using Code = absl::StatusCode;

// An area of (float, string) pairs.
class StagingFixture {
 public:
  explicit StagingFixture(int64_t capacity = 0, int64_t memory_limit = 0)
      : attrs_{{"dtypes", Types{DType::kFloat, DType::kString}},
               {"capacity", capacity},
               {"memory_limit", memory_limit},
               {"shared_name", "area"}},
        device_(MakeTestDevice()),
        session_(*device_) {}

  std::shared_ptr<OpRun> Put(float value, const std::string& text) {
    return session_.Start(session_.Add("Stage",
                                       {session_.Value(Tensor::Scalar(value)),
                                        session_.Value(Tensor::Scalar(text))},
                                       attrs_));
  }
  std::shared_ptr<OpRun> Take() {
    return session_.Start(session_.Add("Unstage", {}, attrs_));
  }
  std::shared_ptr<OpRun> Peek(int32_t index) {
    return session_.Start(session_.Add(
        "StagePeek", {session_.Value(Tensor::Scalar(index))}, attrs_));
  }
  absl::Status TakeAs(const std::vector<DType>& types) {
    AttrMap attrs = attrs_;
    attrs.Set("dtypes", types);
    return session_.Run(session_.Add("Unstage", {}, attrs));
  }
  absl::Status Clear() {
    return session_.Run(session_.Add("StageClear", {}, attrs_));
  }
  int32_t Size() {
    return session_.Output0(session_.Add("StageSize", {}, attrs_))
        .scalar<int32_t>();
  }
  std::shared_ptr<OpRun> TakeTooLate() {
    return session_.StartCancelled(session_.Add("Unstage", {}, attrs_));
  }

 private:
  using Types = std::vector<DType>;

  const AttrMap attrs_;
  std::unique_ptr<Device> device_;
  OpSession session_;
};

void ExpectTaken(const std::shared_ptr<OpRun>& run, float value,
                 const std::string& text) {
  SLUICE_ASSERT_OK(run->Wait());
  EXPECT_EQ(run->output(0).scalar<float>(), value);
  EXPECT_EQ(run->output(1).scalar<std::string>(), text);
}

TEST(Staging, GivesOutInOrderAndLetsTakersWait) {
  StagingFixture area;
  const auto first = area.Take();
  const auto second = area.Take();
  EXPECT_FALSE(first->finished());
  SLUICE_ASSERT_OK(area.Put(1, "one")->Wait());
  ExpectTaken(first, 1, "one");
  EXPECT_FALSE(second->finished());
  SLUICE_ASSERT_OK(area.Put(2, "two")->Wait());
  ExpectTaken(second, 2, "two");
  EXPECT_EQ(area.Size(), 0);
}

TEST(Staging, PeeksWithoutTakingAndWaitsForItsElement) {
  StagingFixture area;
  const auto later = area.Peek(1);
  SLUICE_ASSERT_OK(area.Put(1, "one")->Wait());
  EXPECT_FALSE(later->finished());
  SLUICE_ASSERT_OK(area.Put(2, "two")->Wait());
  ExpectTaken(later, 2, "two");
  ExpectTaken(area.Peek(0), 1, "one");
  EXPECT_EQ(area.Size(), 2);
  EXPECT_THAT(area.Peek(-1)->Wait(),
              StatusIs(Code::kInvalidArgument, HasSubstr("negative, got -1")));
}

TEST(Staging, APeekKeepsNobodyFromTaking) {
  StagingFixture area;
  const auto later = area.Peek(5);
  const auto take = area.Take();
  SLUICE_ASSERT_OK(area.Put(1, "one")->Wait());
  ExpectTaken(take, 1, "one");
  later->cancellation().Cancel(absl::CancelledError("enough"));
  EXPECT_THAT(later->Wait(),
              StatusIs(Code::kCancelled, HasSubstr("cancelled")));
}

TEST(Staging, PutsWaitForRoomInElements) {
  StagingFixture area(/*capacity=*/1);
  SLUICE_ASSERT_OK(area.Put(1, "one")->Wait());
  const auto waiting = area.Put(2, "two");
  EXPECT_FALSE(waiting->finished());
  ExpectTaken(area.Take(), 1, "one");
  SLUICE_ASSERT_OK(waiting->Wait());
  const auto third = area.Put(3, "three");
  SLUICE_ASSERT_OK(area.Clear());
  SLUICE_ASSERT_OK(third->Wait());
  EXPECT_EQ(area.Size(), 1);
  ExpectTaken(area.Take(), 3, "three");
}

TEST(Staging, PutsWaitForRoomInBytesAndTooLargeOnesFail) {
  // A float and a string object; the text comes on top.
  const int64_t limit = sizeof(float) + sizeof(std::string) + 10;
  StagingFixture area(/*capacity=*/0, limit);
  EXPECT_THAT(
      area.Put(1, "more than ten")->Wait(),
      StatusIs(Code::kResourceExhausted,
               StrCat("Attempted to insert tensors with combined size of '",
                      limit + 3,
                      "' bytes into Staging Area with a memory limit of '",
                      limit, "'.")));
  SLUICE_ASSERT_OK(area.Put(1, "ten chars!")->Wait());
  const auto waiting = area.Put(2, "");
  EXPECT_FALSE(waiting->finished());
  ExpectTaken(area.Take(), 1, "ten chars!");
  SLUICE_ASSERT_OK(waiting->Wait());
}

TEST(Staging, CancellingAStepEndsItsWaitAndFreesThoseBehind) {
  StagingFixture area;
  const auto take = area.Take();
  take->cancellation().Cancel(absl::CancelledError("enough"));
  EXPECT_THAT(take->Wait(),
              StatusIs(Code::kCancelled, HasSubstr("was cancelled")));
  const int64_t limit = 2 * (sizeof(float) + sizeof(std::string)) + 10;
  StagingFixture bounded(0, limit);
  SLUICE_ASSERT_OK(bounded.Put(1, "five5")->Wait());
  const auto large = bounded.Put(2, std::string(20, 'x'));
  const auto small = bounded.Put(3, "");
  EXPECT_FALSE(small->finished());
  large->cancellation().Cancel(absl::CancelledError("enough"));
  EXPECT_THAT(large->Wait(),
              StatusIs(Code::kCancelled, HasSubstr("cancelled")));
  SLUICE_EXPECT_OK(small->Wait());
}

TEST(Staging, AStepThatIsOverTakesNothing) {
  StagingFixture area;
  SLUICE_ASSERT_OK(area.Put(1, "one")->Wait());
  EXPECT_THAT(area.TakeTooLate()->Wait(),
              StatusIs(Code::kCancelled, HasSubstr("cancelled")));
  EXPECT_EQ(area.Size(), 1);
}

TEST(Staging, RefusesWhatTheNodeWasNotBuiltForAndKeepsIt) {
  StagingFixture area;
  SLUICE_ASSERT_OK(area.Put(1, "one")->Wait());
  EXPECT_THAT(
      area.TakeAs({DType::kFloat}),
      StatusIs(Code::kInvalidArgument, "Mismatch stage/unstage: 2 vs. 1"));
  EXPECT_THAT(area.TakeAs({DType::kFloat, DType::kInt32}),
              StatusIs(Code::kInvalidArgument,
                       "Mismatch stage/unstage: component 1 is string vs. "
                       "int32"));
  ExpectTaken(area.Take(), 1, "one");
}

}  // namespace staging_test
}  // namespace
}  // namespace sluice
