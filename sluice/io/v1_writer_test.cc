#include "sluice/io/v1_writer.h"

#include <gmock/gmock.h>

#include "sluice/base/memory_file_system.h"
#include "sluice/base/testing/faulty_file_system.h"
#include "sluice/io/checkpoint_reader.h"
#include "sluice/io/table.h"
#include "sluice/io/testing/golden.h"
#include "sluice/tensor/codec.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

TEST(V1Writer, WritesTheBytesTensorFlowWrites) {
  const std::string golden = GoldenCheckpoint("v1_legacy.ckpt");
  auto table = Table::Open(RealFileSystem().NewRandomAccess(golden).value());
  ASSERT_TRUE(table.ok()) << table.status();
  pb::SavedTensorSlices list;
  ASSERT_TRUE(list.ParseFromString((*table)->Find("").value().value()));
  auto reader = CheckpointReader::Open(RealFileSystem(), golden);
  ASSERT_TRUE(reader.ok()) << reader.status();
  MemoryFileSystem files;
  V1CheckpointWriter writer(files, "c");
  for (const pb::SavedSliceMeta& tensor : list.meta().tensor()) {
    const Shape full = ShapeFromProto(tensor.shape()).value();
    for (const pb::TensorSliceProto& proto : tensor.slice()) {
      const TensorSlice slice = TensorSlice::FromProto(proto).value();
      const auto part = (*reader)->LookupSlice(tensor.name(), slice);
      ASSERT_TRUE(part.ok()) << tensor.name() << part.status();
      SLUICE_ASSERT_OK(writer.Add(tensor.name(), full, slice, *part));
    }
  }
  SLUICE_ASSERT_OK(writer.Finish());
  EXPECT_TRUE(Contents(files, "c") == Contents(RealFileSystem(), golden));
  EXPECT_EQ(files.List(".")->size(), 1u);
}

TEST(V1Writer, RefusesWhatDoesNotFit) {
  MemoryFileSystem files;
  V1CheckpointWriter writer(files, "c");
  const Tensor two = Tensor::Vector<float>({1, 2});
  const TensorSlice first = TensorSlice::Parse("0,2").value();
  SLUICE_EXPECT_OK(writer.Add("v", {4}, first, two));
  const auto error = [&](const Shape& full, const TensorSlice& slice,
                         const Tensor& part) {
    return std::string(writer.Add("v", full, slice, part).message());
  };
  EXPECT_THAT(error({4}, first, two), HasSubstr("duplicate key: v 0,2"));
  EXPECT_THAT(error({5}, TensorSlice::Parse("2,2").value(), two),
              HasSubstr("Slices of v disagree: float [4] and float [5]"));
  EXPECT_THAT(error({4}, TensorSlice::Parse("1,3").value(), two),
              HasSubstr("has shape [3], its tensor has [2]"));
  EXPECT_THAT(error({4}, first, Tensor()), HasSubstr("no value"));
}

TEST(V1Writer, AFullDiskLeavesTheOldFile) {
  MemoryFileSystem disk;
  FaultyFileSystem files(disk);
  const auto save = [&](float value) {
    V1CheckpointWriter writer(files, "c");
    SLUICE_EXPECT_OK(writer.Add("v", {}, {}, Tensor::Scalar<float>(value)));
    return writer.Finish();
  };
  SLUICE_ASSERT_OK(save(1));
  files.FillAfter(10);
  EXPECT_EQ(save(2).code(), absl::StatusCode::kResourceExhausted);
  auto reader = CheckpointReader::Open(disk, "c");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->Lookup("v")->scalar<float>(), 1);
  EXPECT_EQ(disk.List(".")->size(), 1u);
}

}  // namespace
}  // namespace sluice
