#include "sluice/base/file.h"
#include "sluice/base/testing/temp_dir.h"
#include "sluice/kernel/testing/op_test.h"

namespace sluice {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

Tensor StringVector(const std::vector<std::string>& values) {
  return Tensor::Of<std::string>({static_cast<int64_t>(values.size())},
                                 std::span<const std::string>(values));
}

absl::Status SaveTensors(const std::string& prefix,
                         const std::vector<std::string>& names,
                         const std::vector<std::string>& slices,
                         const std::vector<Tensor>& tensors) {
  OpTest op("SaveV2");
  op.AddInput(Tensor::Scalar(prefix));
  op.AddInput(StringVector(names)).AddInput(StringVector(slices));
  std::vector<DType> types;
  for (const Tensor& tensor : tensors) {
    op.AddInput(tensor);
    types.push_back(tensor.dtype());
  }
  op.Attr("dtypes", types);
  return op.Run();
}

absl::StatusOr<std::vector<Tensor>> RestoreTensors(
    const std::string& prefix, const std::vector<std::string>& names,
    const std::vector<std::string>& slices, const std::vector<DType>& types) {
  OpTest op("RestoreV2");
  op.AddInput(Tensor::Scalar(prefix));
  op.AddInput(StringVector(names)).AddInput(StringVector(slices));
  op.Attr("dtypes", types);
  SLUICE_RETURN_IF_ERROR(op.Run());
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < types.size(); ++i) tensors.push_back(op.output(i));
  return tensors;
}

void ExpectSameFile(const std::string& got, const std::string& want) {
  const auto got_bytes = RealFileSystem().ReadFile(got);
  const auto want_bytes = RealFileSystem().ReadFile(want);
  ASSERT_TRUE(got_bytes.ok() && want_bytes.ok())
      << got_bytes.status() << want_bytes.status();
  EXPECT_EQ(*got_bytes, *want_bytes) << got << " differs from " << want;
}

// A checkpoint of TensorFlow's with variables in parts and optimizer slots.
constexpr char kPartitioned[] = "tests/golden/checkpoints/partitioned-1";

TEST(Checkpoint, ComesOutAsTensorFlowWroteIt) {
  const std::vector<std::string> names = {
      "global_step",        "part/cols",         "part/cols",
      "part/cols/Adagrad",  "part/cols/Adagrad", "part/emb",
      "part/emb",           "part/emb",          "part/emb/Adagrad",
      "part/emb/Adagrad",   "part/emb/Adagrad",  "part/single",
      "part/single/Adagrad"};
  const std::vector<std::string> slices = {"",
                                           "3 5 0,3:0,3",
                                           "3 5 0,3:3,2",
                                           "3 5 0,3:0,3",
                                           "3 5 0,3:3,2",
                                           "10 4 0,4:0,4",
                                           "10 4 4,3:0,4",
                                           "10 4 7,3:0,4",
                                           "10 4 0,4:0,4",
                                           "10 4 4,3:0,4",
                                           "10 4 7,3:0,4",
                                           "3 0,3",
                                           "3 0,3"};
  std::vector<DType> types(names.size(), DType::kFloat);
  types[0] = DType::kInt64;
  const auto tensors = RestoreTensors(kPartitioned, names, slices, types);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  EXPECT_EQ((*tensors)[6].shape(), Shape({3, 4}));
  const TempDir dir;
  SLUICE_ASSERT_OK(SaveTensors(dir / "m", names, slices, *tensors));
  ExpectSameFile(dir / "m.index", StrCat(kPartitioned, ".index"));
  ExpectSameFile(dir / "m.data-00000-of-00001",
                 StrCat(kPartitioned, ".data-00000-of-00001"));
}

TEST(Checkpoint, RestoresPartsInOtherPartsThanSaved) {
  const auto all =
      RestoreTensors(kPartitioned, {"part/emb"}, {""}, {DType::kFloat});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ((*all)[0].shape(), Shape({10, 4}));
  const auto part = RestoreTensors(kPartitioned, {"part/emb"}, {"10 4 3,5:0,4"},
                                   {DType::kFloat});
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_TRUE(TensorsEqual((*part)[0], (*all)[0].Rows(3, 8).Clone()));
}

TEST(Checkpoint, NamesEveryMissingKey) {
  const auto restored =
      RestoreTensors(kPartitioned, {"z", "global_step", "b"}, {"", "", ""},
                     {DType::kFloat, DType::kInt64, DType::kFloat});
  EXPECT_THAT(restored.status(),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(StartsWith("Key b not found in checkpoint\n"),
                             HasSubstr("2 of 3 keys are missing: b, z"),
                             HasSubstr("global_step, part/cols"))));
  const auto one =
      RestoreTensors(kPartitioned, {"b"}, {""}, {DType::kFloat}).status();
  EXPECT_THAT(one,
              StatusIs(absl::StatusCode::kNotFound,
                       StartsWith("Key b not found in checkpoint\nCheck")));
}

TEST(Checkpoint, FindsVariablesOfObjectCheckpointsByName) {
  constexpr char kObjects[] = "tests/golden/checkpoints/tf2_object";
  const auto restored = RestoreTensors(kObjects, {"step", "w"}, {"", ""},
                                       {DType::kInt64, DType::kFloat});
  ASSERT_TRUE(restored.ok()) << restored.status();
  ExpectClose((*restored)[0], Tensor::Scalar<int64_t>(7));
  EXPECT_EQ((*restored)[1].shape(), Shape({2, 3}));
  EXPECT_THAT(
      RestoreTensors(kObjects, {"w", "model/ww"}, {"", ""},
                     {DType::kFloat, DType::kFloat})
          .status(),
      StatusIs(absl::StatusCode::kNotFound,
               AllOf(StartsWith("Key model/ww not found in checkpoint\n"),
                     HasSubstr("holds 5 tensors"))));
}

TEST(Checkpoint, RefusesOtherTypesAndShapes) {
  EXPECT_THAT(
      RestoreTensors(kPartitioned, {"global_step"}, {""}, {DType::kFloat})
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "tensor_name = global_step; expected dtype float does not "
               "equal original dtype int64\nThe checkpoint is "
               "tests/golden/checkpoints/partitioned-1"));
  EXPECT_THAT(RestoreTensors(kPartitioned, {"part/emb"}, {"9 4 0,9:0,4"},
                             {DType::kFloat})
                  .status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("does not match the shape stored in "
                                 "checkpoint: [10,4]")));
}

TEST(Checkpoint, SaysWhenThereIsNone) {
  const TempDir dir;
  EXPECT_THAT(
      RestoreTensors(dir / "none", {"a"}, {""}, {DType::kFloat}).status(),
      StatusIs(absl::StatusCode::kNotFound,
               StrCat("Unsuccessful TensorSliceReader constructor: Failed to "
                      "find any matching files for ",
                      dir / "none")));
}

TEST(Checkpoint, SaysWhichFileIsMissing) {
  const TempDir dir;
  SLUICE_ASSERT_OK(
      SaveTensors(dir / "m", {"v"}, {""}, {Tensor::Scalar<float>(1)}));
  SLUICE_ASSERT_OK(RealFileSystem().Delete(dir / "m.data-00000-of-00001"));
  EXPECT_THAT(RestoreTensors(dir / "m", {"v"}, {""}, {DType::kFloat}).status(),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("m.data-00000-of-00001; No such file")));
}

TEST(Checkpoint, RefusesSlicesThatDoNotFit) {
  const TempDir dir;
  const Tensor one = Tensor::Vector<float>({1});
  EXPECT_THAT(SaveTensors(dir / "s", {"a"}, {"2 5,1"}, {one}),
              StatusIs(absl::StatusCode::kInternal,
                       "Extent in dimension 0 out of bounds: shape = [2], "
                       "slice = 5,1"));
  EXPECT_THAT(SaveTensors(dir / "s", {"a"}, {"bad"}, {one}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "Need least two elements in shape_and_slice "
                       "specification: bad"));
  EXPECT_THAT(SaveTensors(dir / "s", {"a"}, {"4 0,2"}, {one}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("does not match the shape of the tensor")));
  EXPECT_THAT(SaveTensors(dir / "s", {"a", "b"}, {"", ""}, {one}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "Got 2 tensor names but 1 tensors."));
  EXPECT_FALSE(RealFileSystem().Exists(dir / "s.index"));
}

TEST(Checkpoint, InfersTheShapesOfParts) {
  EXPECT_EQ(InferredShape("RestoreV2", {"[]", "[1]", "[1]"},
                          {{"dtypes", std::vector<DType>{DType::kFloat}}},
                          DType::kString),
            "?");
  EXPECT_THAT(InferredShape("RestoreV2", {"[]", "[1]", "[2]"},
                            {{"dtypes", std::vector<DType>{DType::kFloat}}},
                            DType::kString),
              HasSubstr("must be equal"));
}

TEST(Checkpoint, MergesTheShardsOfASave) {
  const TempDir dir;
  const std::string parts = dir / "m_temp";
  SLUICE_ASSERT_OK(RealFileSystem().MkDirs(parts));
  SLUICE_ASSERT_OK(SaveTensors(parts + "/part-00000-of-00002", {"a"}, {""},
                               {Tensor::Scalar<float>(1)}));
  SLUICE_ASSERT_OK(SaveTensors(parts + "/part-00001-of-00002", {"b"}, {""},
                               {Tensor::Scalar<int32_t>(2)}));
  OpTest merge("MergeV2Checkpoints");
  merge.AddInput(StringVector(
      {parts + "/part-00000-of-00002", parts + "/part-00001-of-00002"}));
  merge.AddInput(Tensor::Scalar(dir / "m"));
  SLUICE_ASSERT_OK(merge.Run());
  EXPECT_FALSE(RealFileSystem().Exists(parts));
  EXPECT_TRUE(RealFileSystem().Exists(dir / "m.data-00001-of-00002"));
  const auto restored = RestoreTensors(dir / "m", {"b", "a"}, {"", ""},
                                       {DType::kInt32, DType::kFloat});
  ASSERT_TRUE(restored.ok()) << restored.status();
  ExpectClose((*restored)[0], Tensor::Scalar<int32_t>(2));
  ExpectClose((*restored)[1], Tensor::Scalar<float>(1));
}

TEST(Checkpoint, OldOpsWriteOldFiles) {
  TempDir dir;
  OpTest op("SaveSlices");
  op.AddInput(Tensor::Scalar<std::string>(dir / "old"));
  op.AddInput(StringVector({"a", "p", "p"}));
  op.AddInput(StringVector({"", "3 0,1", "3 1,2"}));
  op.AddInput(Tensor::Scalar<int64_t>(5));
  op.AddInput<float>({1}, {1}).AddInput<float>({2}, {2, 3});
  op.Attr("T", std::vector<DType>{DType::kInt64, DType::kFloat, DType::kFloat});
  SLUICE_ASSERT_OK(op.Run());
  const auto restored = RestoreTensors(dir / "old", {"a", "p"}, {"", ""},
                                       {DType::kInt64, DType::kFloat});
  ASSERT_TRUE(restored.ok()) << restored.status();
  ExpectClose((*restored)[0], Tensor::Scalar<int64_t>(5));
  ExpectClose((*restored)[1], Tensor::Of<float>({3}, {1, 2, 3}));
  EXPECT_EQ(RealFileSystem().List(dir.path())->size(), 1u);

  OpTest short_list("Save");
  short_list.AddInput(Tensor::Scalar<std::string>(dir / "no"));
  short_list.AddInput(StringVector({"a", "b"}));
  short_list.AddInput<float>({1}, {1});
  short_list.Attr("T", std::vector<DType>{DType::kFloat});
  EXPECT_THAT(short_list.Run(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("got 2 names and 1 tensors")));
}

TEST(Checkpoint, OldOpsReadOldFiles) {
  OpTest whole("Restore");
  whole.AddInput(
      Tensor::Scalar<std::string>("tests/golden/checkpoints/v1_legacy.ckpt"));
  whole.AddInput(Tensor::Scalar<std::string>("no such tensor"));
  whole.Attr("dt", DType::kFloat);
  EXPECT_THAT(whole.Run(), StatusIs(absl::StatusCode::kNotFound,
                                    HasSubstr("Key no such tensor not found")));
  OpTest slice("RestoreSlice");
  slice.AddInput(Tensor::Scalar<std::string>(kPartitioned));
  slice.AddInput(Tensor::Scalar<std::string>("part/emb"));
  slice.AddInput(Tensor::Scalar<std::string>("10 4 3,5:0,4"));
  slice.Attr("dt", DType::kFloat);
  SLUICE_ASSERT_OK(slice.Run());
  EXPECT_EQ(slice.output(0).shape(), Shape({5, 4}));
}

}  // namespace
}  // namespace sluice
