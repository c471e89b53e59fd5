#include "sluice/ops/io/shard_stream.h"

#include "sluice/kernel/testing/op_test.h"

namespace sluice {
namespace {
namespace shard_stream {

using testing::HasSubstr;

StreamedTensor Described(const std::string& name, DType dtype,
                         const Shape& shape) {
  return {name, "", dtype, shape};
}

TEST(ShardStream, CutsLargeTensorsAndPacksSmallOnes) {
  const int64_t before = SetStreamPieceBytesForTest(100);
  const StreamPlan plan = PlanStream(
      {Described("large", DType::kFloat, {60}),
       Described("a", DType::kFloat, {5}), Described("b", DType::kFloat, {5}),
       Described("text", DType::kString, {2}),
       Described("c", DType::kUint8, {1}),
       Described("empty", DType::kFloat, {0, 3})});
  SetStreamPieceBytesForTest(before);
  std::vector<std::string> pieces;
  for (const StreamPiece& piece : plan.pieces) {
    pieces.push_back(StrCat(piece.tensor, "@", piece.offset));
  }
  EXPECT_THAT(pieces, testing::ElementsAre("0@0", "0@100", "0@200", "1@0",
                                           "2@0", "3@0", "4@0", "5@0"));
  // Strings and tensors without bytes travel alone.
  EXPECT_THAT(plan.batches, testing::ElementsAre(0, 1, 2, 5, 6, 7, 8));
  EXPECT_THAT(PlanStream({}).batches, testing::ElementsAre(0));
}

TEST(ShardStream, HeadersComeBackAndBrokenOnesAreRefused) {
  std::vector<StreamedTensor> tensors = {
      Described("a", DType::kBfloat16, {2, 3}),
      Described("b", DType::kString, {})};
  tensors[0].shape_and_slice = "4 3 0,2:0,3";
  const auto read = DecodeStreamHeader(EncodeStreamHeader(tensors));
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ((*read)[0].shape_and_slice, "4 3 0,2:0,3");
  EXPECT_EQ((*read)[0].shape, Shape({2, 3}));
  EXPECT_EQ((*read)[1].dtype, DType::kString);
  EXPECT_FALSE(DecodeStreamHeader(Tensor::Scalar<float>(1)).ok());
  Tensor broken = EncodeStreamHeader(tensors);
  broken.mutable_data<std::string>()[2] = "\xff";
  EXPECT_FALSE(DecodeStreamHeader(broken).ok());
}

TEST(ShardStream, KeysFollowFromTheTickets) {
  const std::string a = "/job:ps/replica:0/task:0/device:CPU:0|17|5";
  const std::string b = "/job:worker/replica:0/task:0/device:CPU:0|18|6";
  const auto keys = StreamKeys::Create(a, b);
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(keys->sender(), "/job:ps/replica:0/task:0/device:CPU:0");
  EXPECT_TRUE(keys->Piece(3).starts_with(
      "/job:ps/replica:0/task:0/device:CPU:0;0000000000000011;"));
  EXPECT_THAT(keys->Taken(3), HasSubstr("taken_3;0:0"));
  EXPECT_NE(keys->Piece(1), keys->Piece(2));
  for (const char* bad : {"", "device", "d|x|5", "d|1|2|3"}) {
    EXPECT_FALSE(StreamKeys::Create(a, bad).ok()) << bad;
  }
}

}  // namespace shard_stream
}  // namespace
}  // namespace sluice
