#include "sluice/kernel/testing/op_test.h"
#include "sluice/ops/state/testing/op_session.h"

namespace sluice {
namespace {
namespace sparse_test {

using ::testing::HasSubstr;
using Code = absl::StatusCode;

TEST(SparseToDense, PutsValuesAtIndices) {
  OpTest op("SparseToDense");
  op.AddInput<int64_t>({2, 2}, {0, 1, 1, 0}).AddInput<int64_t>({2}, {2, 3});
  op.AddInput<float>({2}, {5, 6}).AddInput(Tensor::Scalar<float>(-1));
  SLUICE_ASSERT_OK(op.Run());
  ExpectClose(op.output(0), Tensor::Of<float>({2, 3}, {-1, 5, -1, 6, -1, -1}));
  OpTest one("SparseToDense");
  one.AddInput(Tensor::Scalar<int32_t>(1)).AddInput<int32_t>({1}, {3});
  one.AddInput(Tensor::Scalar<std::string>("x"));
  one.AddInput(Tensor::Scalar<std::string>(""));
  SLUICE_ASSERT_OK(one.Run());
  ExpectClose(one.output(0), Tensor::Vector<std::string>({"", "x", ""}));
}

TEST(SparseToDense, NamesIndicesThatAreWrong) {
  const auto error = [](std::initializer_list<int64_t> indices) {
    OpTest op("SparseToDense");
    op.AddInput(Tensor::Vector<int64_t>(indices)).AddInput<int64_t>({1}, {3});
    op.AddInput(Tensor::Scalar<float>(1)).AddInput(Tensor::Scalar<float>(0));
    return std::string(op.Run().message());
  };
  EXPECT_EQ(error({5}),
            "indices[0] = [5] is out of bounds: need 0 <= index < [3]");
  EXPECT_THAT(error({1, 0}), HasSubstr("indices[1] = [0] is out of order. Many "
                                       "sparse ops require sorted indices."));
  EXPECT_EQ(error({1, 1}), "indices[1] = [1] is repeated");
}

TEST(SparseReorder, SortsRowsWithTheirValues) {
  OpTest op("SparseReorder");
  op.AddInput<int64_t>({3, 2}, {1, 0, 0, 1, 0, 0});
  op.AddInput<float>({3}, {1, 2, 3}).AddInput<int64_t>({2}, {2, 2});
  SLUICE_ASSERT_OK(op.Run());
  ExpectClose(op.output(0), Tensor::Of<int64_t>({3, 2}, {0, 0, 0, 1, 1, 0}));
  ExpectClose(op.output(1), Tensor::Vector<float>({3, 2, 1}));
  OpTest bad("SparseReorder");
  bad.AddInput<int64_t>({1, 2}, {0, 0}).AddInput<float>({2}, {1, 2});
  bad.AddInput<int64_t>({2}, {2, 2});
  EXPECT_THAT(bad.Run(), StatusIs(Code::kInvalidArgument,
                                  HasSubstr("Number of values must match")));
}

TEST(TensorsMap, GivesBackABatchOfWhatWasAdded) {
  const auto device = MakeTestDevice();
  OpSession session(*device);
  const auto add = [&](const char* op, Tensor indices, Tensor values,
                       Tensor shape) {
    return session.Output0(session.Add(
        op,
        {session.Value(std::move(indices)), session.Value(std::move(values)),
         session.Value(std::move(shape))},
        {{"shared_name", "map"}}));
  };
  const Tensor first =
      add("AddSparseToTensorsMap", Tensor::Of<int64_t>({1, 1}, {2}),
          Tensor::Vector<float>({7}), Tensor::Vector<int64_t>({4}));
  const Tensor rows = add(
      "AddManySparseToTensorsMap", Tensor::Of<int64_t>({2, 2}, {1, 0, 1, 5}),
      Tensor::Vector<float>({8, 9}), Tensor::Vector<int64_t>({2, 6}));
  EXPECT_EQ(rows.shape(), Shape({2}));
  const auto take = [&](Tensor handles, DType dtype) {
    return session.Outputs(session.Add(
        "TakeManySparseFromTensorsMap", {session.Value(std::move(handles))},
        {{"shared_name", "map"}, {"dtype", dtype}}));
  };
  const int64_t a = first.scalar<int64_t>();
  const int64_t c = rows.data<int64_t>()[1];
  auto taken = take(Tensor::Vector<int64_t>({a, c}), DType::kFloat);
  ASSERT_TRUE(taken.ok()) << taken.status();
  ExpectClose((*taken)[0], Tensor::Of<int64_t>({3, 2}, {0, 2, 1, 0, 1, 5}));
  ExpectClose((*taken)[1], Tensor::Vector<float>({7, 8, 9}));
  ExpectClose((*taken)[2], Tensor::Vector<int64_t>({2, 6}));
  // They are gone now.
  EXPECT_THAT(
      take(Tensor::Vector<int64_t>({a}), DType::kFloat).status(),
      StatusIs(Code::kInvalidArgument,
               StrCat("Unable to find SparseTensor: ", a, " in map: map")));
  EXPECT_THAT(
      take(Tensor::Vector<int64_t>({rows.data<int64_t>()[0]}), DType::kInt64)
          .status(),
      StatusIs(Code::kInvalidArgument,
               HasSubstr("Requested SparseTensor of type int64")));
}

TEST(SerializeSparse, ComesBackAsABatch) {
  OpTest many("SerializeManySparse");
  many.AddInput<int64_t>({3, 2}, {0, 1, 2, 0, 2, 3});
  many.AddInput<float>({3}, {1, 2, 3}).AddInput<int64_t>({2}, {3, 4});
  SLUICE_ASSERT_OK(many.Run());
  EXPECT_EQ(many.output(0).shape(), Shape({3, 3}));
  for (const char* op : {"DeserializeManySparse", "DeserializeSparse"}) {
    OpTest back(op);
    back.AddInput(many.output(0)).Attr("dtype", DType::kFloat);
    SLUICE_ASSERT_OK(back.Run());
    ExpectClose(back.output(0),
                Tensor::Of<int64_t>({3, 2}, {0, 1, 2, 0, 2, 3}));
    ExpectClose(back.output(1), Tensor::Vector<float>({1, 2, 3}));
    ExpectClose(back.output(2), Tensor::Vector<int64_t>({3, 4}));
    OpTest type(op);
    type.AddInput(many.output(0)).Attr("dtype", DType::kString);
    EXPECT_THAT(type.Run(), StatusIs(Code::kInvalidArgument,
                                     HasSubstr("values to be string")));
    OpTest garbage(op);
    garbage.AddInput<std::string>({1, 3}, {"\xff", "", ""});
    garbage.Attr("dtype", DType::kFloat);
    EXPECT_THAT(garbage.Run(),
                StatusIs(Code::kInvalidArgument, HasSubstr("Could not parse")));
  }
  OpTest one("SerializeSparse");
  one.AddInput<int64_t>({1, 1}, {0}).AddInput<float>({1}, {1});
  one.AddInput<int64_t>({1}, {3});
  SLUICE_ASSERT_OK(one.Run());
  OpTest back("DeserializeSparse");
  back.AddInput(one.output(0)).Attr("dtype", DType::kFloat);
  SLUICE_ASSERT_OK(back.Run());
  ExpectClose(back.output(2), Tensor::Vector<int64_t>({3}));
}

TEST(HashBuckets, AreTensorFlows) {
  OpTest fast("StringToHashBucketFast");
  fast.AddInput(Tensor::Vector<std::string>({"hello", ""}));
  fast.Attr("num_buckets", int64_t{1000});
  SLUICE_ASSERT_OK(fast.Run());
  ExpectClose(fast.output(0),
              Tensor::Vector<int64_t>(
                  {static_cast<int64_t>(0xb48be5a931380ce8 % 1000),
                   static_cast<int64_t>(0x9ae16a3b2f90404f % 1000)}));
  OpTest strong("StringToHashBucketStrong");
  strong.AddInput(Tensor::Scalar<std::string>("hello"));
  strong.Attr("num_buckets", (int64_t{1} << 62) - 57);
  strong.Attr("key", std::vector<int64_t>{1, 2});
  SLUICE_ASSERT_OK(strong.Run());
  EXPECT_EQ(strong.output(0).scalar<int64_t>(), 2957200328589801622);
  OpTest key("StringToHashBucketStrong");
  key.AddInput(Tensor::Scalar<std::string>("hello"));
  key.Attr("num_buckets", int64_t{5}).Attr("key", std::vector<int64_t>{1});
  EXPECT_THAT(key.Run(),
              StatusIs(Code::kInvalidArgument, "Key must have 2 elements"));
}

}  // namespace sparse_test
}  // namespace
}  // namespace sluice
