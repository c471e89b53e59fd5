#include "sluice/io/tensor_slice.h"

#include <gmock/gmock.h>

#include "absl/strings/escaping.h"
#include "sluice/io/testing/golden.h"

namespace sluice {
namespace {

TensorSlice SliceOf(const std::string& text) {
  const absl::StatusOr<TensorSlice> slice = TensorSlice::Parse(text);
  EXPECT_TRUE(slice.ok()) << slice.status();
  return slice.ok() ? *slice : TensorSlice();
}

std::string HexKey(const std::string& name, const std::string& slice) {
  return absl::BytesToHexString(SliceKey(name, SliceOf(slice)));
}

// The key of a slice of one dimension, without what comes before its start.
std::string HexStart(int64_t start) {
  TensorSlice slice;
  slice.Add({start, TensorSlice::kFull});
  const std::string key = SliceKey("", slice);
  const std::string_view head("\0\0\1\1\1", 5);
  EXPECT_TRUE(key.starts_with(head));
  EXPECT_TRUE(key.ends_with('\x7f'));
  return absl::BytesToHexString(key.substr(head.size(), key.size() - 6));
}

TEST(TensorSlice, TextAndMessageGoBothWays) {
  for (const char* text : {"", "-", "0,5:0,20", "-:2,4", "1,2:0,1:-"}) {
    const TensorSlice slice = SliceOf(text);
    EXPECT_EQ(slice.DebugString(), text);
    pb::TensorSliceProto proto;
    slice.ToProto(&proto);
    EXPECT_EQ(TensorSlice::FromProto(proto).value(), slice);
  }
}

TEST(TensorSlice, BadTextIsAnError) {
  for (const char* text : {"x", "1", "1,", ",1", "1,2,3", "-1,2", "0,0", "1,-1",
                           "0,5::0,5", "99999999999999999999,1"}) {
    EXPECT_EQ(TensorSlice::Parse(text).status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
}

TEST(TensorSlice, ShapeAndSliceAreParsedTogether) {
  const auto parsed = ParseShapeAndSlice("100 20 0,50:-");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->full, Shape({100, 20}));
  EXPECT_EQ(parsed->part, Shape({50, 20}));
  EXPECT_EQ(parsed->slice.DebugString(), "0,50:-");

  const auto error = [](const char* text) {
    return ParseShapeAndSlice(text).status();
  };
  EXPECT_EQ(error("bad").message(),
            "Need least two elements in shape_and_slice specification: bad");
  EXPECT_EQ(error("2 5,1").message(),
            "Extent in dimension 0 out of bounds: shape = [2], slice = 5,1");
  EXPECT_EQ(error("2 5,1").code(), absl::StatusCode::kInternal);
  EXPECT_FALSE(error("2 2 0,1").ok());
  EXPECT_FALSE(error("x 0,1").ok());
  EXPECT_FALSE(error("-2 -").ok());
  EXPECT_FALSE(error("9 1,9223372036854775807").ok());
}

TEST(TensorSlice, KeysAreThoseOfTheFormat) {
  EXPECT_EQ(HexKey("emb/weights", "1000,500:-"),
            "00656d622f7765696768747300010102c3e8c1f4807f");
  EXPECT_EQ(HexKey("w", "0,5:0,20"), "00770001010280858094");
  EXPECT_EQ(HexKey(std::string("\0\xff", 2), ""), "0000ffff00000100");
  EXPECT_EQ(HexStart(0), "80");
  EXPECT_EQ(HexStart(63), "bf");
  EXPECT_EQ(HexStart(64), "c040");
  EXPECT_EQ(HexStart(8191), "dfff");
  EXPECT_EQ(HexStart(8192), "e02000");
  EXPECT_EQ(HexStart(1000000), "ef4240");
  EXPECT_EQ(HexStart(int64_t{1} << 31), "f880000000");
  EXPECT_EQ(HexStart(0x424242), "f0424242");
  EXPECT_EQ(HexStart(-1), "7f");
  EXPECT_EQ(HexStart(-64), "40");
  EXPECT_EQ(HexStart(-65), "3fbf");
  EXPECT_EQ(HexStart(-0x800), "3800");
  EXPECT_EQ(HexStart(std::numeric_limits<int64_t>::min()),
            "003f8000000000000000");
  EXPECT_EQ(HexStart(std::numeric_limits<int64_t>::max()),
            "ffc07fffffffffffffff");
}

TEST(TensorSlice, IntersectsRangeByRange) {
  EXPECT_EQ(SliceOf("0,5:0,4").Intersect(SliceOf("3,9:1,2"))->DebugString(),
            "3,2:1,2");
  EXPECT_FALSE(SliceOf("0,3").Intersect(SliceOf("3,2")).has_value());
  EXPECT_EQ(SliceOf("-:1,2").Resolved({4, 5}).DebugString(), "0,4:1,2");
  EXPECT_TRUE(SliceOf("-:0,5").Covers({4, 5}));
  EXPECT_FALSE(SliceOf("-:0,4").Covers({4, 5}));
}

TEST(TensorSlice, CopiesARegionBetweenSlices) {
  // A [4,3,2] whole, counted through.
  Tensor whole(DType::kInt32, {4, 3, 2});
  for (int i = 0; i < 24; ++i) whole.mutable_data<int32_t>()[i] = i;
  const TensorSlice all = SliceOf("0,4:0,3:0,2");
  for (const char* text : {"1,2:0,3:0,2", "1,2:1,2:0,2", "0,4:2,1:1,1",
                           "3,1:0,3:0,1", "0,4:0,3:0,2"}) {
    const TensorSlice part = SliceOf(text);
    Tensor target(DType::kInt32, part.ShapeWithin(whole.shape()).value());
    CopyRegion(part, whole, all, part, &target);
    std::vector<int32_t> expected;
    for (int i = 0; i < 24; ++i) {
      TensorSlice element;
      element.Add({i / 6, 1});
      element.Add({i / 2 % 3, 1});
      element.Add({i % 2, 1});
      if (part.Intersect(element)) expected.push_back(i);
    }
    EXPECT_THAT(target.data<int32_t>(), ::testing::ElementsAreArray(expected))
        << text;
    // And back to its place.
    Tensor again = whole.Clone();
    CopyRegion(part, target, part, all, &again);
    EXPECT_TRUE(TensorsEqual(again, whole)) << text;
  }
}

}  // namespace
}  // namespace sluice
