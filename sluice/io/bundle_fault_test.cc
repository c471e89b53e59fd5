// Checkpoints that are damaged, cut short, or written while the disk fills up
// or the machine stops.
#include <gmock/gmock.h>

#include "sluice/base/memory_file_system.h"
#include "sluice/base/testing/faulty_file_system.h"
#include "sluice/base/testing/temp_dir.h"
#include "sluice/io/bundle_reader.h"
#include "sluice/io/bundle_writer.h"
#include "sluice/io/testing/golden.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// A checkpoint whose tensors all hold `value`, so that a mix would show.
absl::Status Save(FileSystem& files, const std::string& prefix, float value) {
  BundleWriter writer(files, prefix);
  Tensor large(DType::kFloat, {500});
  std::fill_n(large.mutable_data<float>().begin(), 500, value);
  SLUICE_RETURN_IF_ERROR(writer.Add("large", large));
  SLUICE_RETURN_IF_ERROR(
      writer.Add("name", Tensor::Scalar<std::string>(std::to_string(value))));
  SLUICE_RETURN_IF_ERROR(writer.Add("small", Tensor::Scalar<float>(value)));
  return writer.Finish();
}

// The same by a sharded save of two parts and a merge.
absl::Status SaveSharded(FileSystem& files, const std::string& prefix,
                         float value) {
  const std::string temp = prefix + "_temp_ab";
  SLUICE_RETURN_IF_ERROR(Save(files, temp + "/part-00000-of-00002", value));
  BundleWriter writer(files, temp + "/part-00001-of-00002");
  SLUICE_RETURN_IF_ERROR(writer.Add("other", Tensor::Scalar<float>(value)));
  SLUICE_RETURN_IF_ERROR(writer.Finish());
  return MergeBundles(
      files, {temp + "/part-00000-of-00002", temp + "/part-00001-of-00002"},
      prefix, /*delete_old=*/true);
}

// The value of all tensors; an error if one cannot be read or they differ.
absl::StatusOr<float> Load(FileSystem& files, const std::string& prefix) {
  SLUICE_ASSIGN_OR_RETURN(auto reader, CheckpointReader::Open(files, prefix));
  SLUICE_ASSIGN_OR_RETURN(const auto list, reader->List());
  SLUICE_ASSIGN_OR_RETURN(const Tensor small, reader->Lookup("small"));
  const float value = small.scalar<float>();
  for (const CheckpointTensor& info : list) {
    SLUICE_ASSIGN_OR_RETURN(const Tensor tensor, reader->Lookup(info.name));
    if (tensor.dtype() == DType::kString) {
      if (tensor.scalar<std::string>() != std::to_string(value)) {
        return Internal("mixed");
      }
    } else {
      for (float element : tensor.data<float>()) {
        if (element != value) return Internal("mixed");
      }
    }
  }
  return value;
}

TEST(BundleFault, AFullDiskLeavesThePreviousCheckpoint) {
  TempDir dir;
  FaultyFileSystem files(RealFileSystem());
  SLUICE_ASSERT_OK(Save(files, dir / "m-1", 1));
  for (int64_t room : {0, 10, 2000, 2015, 2100}) {
    files.FillAfter(room);
    for (const char* name : {"m-1", "m-2"}) {
      EXPECT_EQ(Save(files, dir / name, 2).code(),
                absl::StatusCode::kResourceExhausted)
          << room;
    }
    EXPECT_EQ(Load(files, dir / "m-1").value(), 1);
    EXPECT_FALSE(RealFileSystem().Exists(dir / "m-2.index"));
  }
  // Nothing but the first checkpoint takes room.
  EXPECT_EQ(RealFileSystem().List(dir.path())->size(), 2u);
  files.FillAfter(1 << 20);
  SLUICE_EXPECT_OK(Save(files, dir / "m-2", 2));
  EXPECT_EQ(Load(files, dir / "m-2").value(), 2);
}

// Stops the writer at each of its calls in turn, with or without the power.
template <typename SaveFunction>
void StopEverywhere(SaveFunction save) {
  for (const bool power_goes : {false, true}) {
    int64_t calls = 0;
    bool finished = false;
    while (!finished) {
      ++calls;
      MemoryFileSystem disk;
      FaultyFileSystem files(disk);
      SLUICE_ASSERT_OK(save(files, "m", 1));
      files.StopAfter(calls);
      finished = save(files, "m", 2).ok();
      if (power_goes) disk.CutPower();
      const absl::StatusOr<float> value = Load(disk, "m");
      ASSERT_TRUE(value.ok())
          << "stopped after " << calls << " calls: " << value.status();
      if (finished) {
        EXPECT_EQ(*value, 2);
      }
      // What comes after a crash works, and leaves nothing of the old.
      SLUICE_ASSERT_OK(save(disk, "m", 3));
      EXPECT_EQ(Load(disk, "m").value(), 3);
    }
    EXPECT_GT(calls, 10);
  }
}

TEST(BundleFault, AWriterThatStopsAnywhereLeavesTheOldOrTheNew) {
  StopEverywhere(Save);
}

TEST(BundleFault, AMergeThatStopsAnywhereLeavesTheOldOrTheNew) {
  StopEverywhere(SaveSharded);
}

TEST(BundleFault, OverwritingLeavesNoFilesOfTheOldCheckpoint) {
  MemoryFileSystem files;
  for (int i = 0; i < 3; ++i) {
    SLUICE_ASSERT_OK(Save(files, "m", 1));
    EXPECT_EQ(files.List(".")->size(), 2u);
  }
  SLUICE_ASSERT_OK(SaveSharded(files, "m", 2));
  EXPECT_EQ(files.List(".")->size(), 3u);
  SLUICE_ASSERT_OK(Save(files, "m", 3));
  EXPECT_EQ(files.List(".")->size(), 2u);
  EXPECT_EQ(Load(files, "m").value(), 3);
}

TEST(BundleFault, ARenameThatFailsLeavesThePreviousCheckpoint) {
  for (const char* target : {".index", ".data-00000-of-00001"}) {
    MemoryFileSystem disk;
    FaultyFileSystem files(disk);
    SLUICE_ASSERT_OK(Save(files, "m", 1));
    files.FailRenamesTo(target);
    EXPECT_FALSE(Save(files, "m", 2).ok());
    EXPECT_EQ(Load(disk, "m").value(), 1) << target;
  }
}

TEST(BundleFault, EveryBitFlipIsFoundOrDoesNotMatter) {
  MemoryFileSystem files;
  SLUICE_ASSERT_OK(Save(files, "m", 1));
  for (const char* name : {"m.index", "m.data-00000-of-00001"}) {
    const std::string good = Contents(files, name);
    const size_t step = good.size() > 1000 ? 101 : 1;
    for (size_t bit = 0; bit < 8 * good.size(); bit += step) {
      std::string bad = good;
      bad[bit / 8] ^= static_cast<char>(1 << (bit % 8));
      SLUICE_ASSERT_OK(files.WriteFile(name, bad));
      const absl::StatusOr<float> value = Load(files, "m");
      if (value.ok()) {
        EXPECT_EQ(*value, 1);
        EXPECT_STREQ(name, "m.index");  // Its metaindex is not used.
      } else {
        EXPECT_EQ(value.status().code(), absl::StatusCode::kDataLoss)
            << name << bit << value.status();
      }
    }
    SLUICE_ASSERT_OK(files.WriteFile(name, good));
  }
}

TEST(BundleFault, EveryCutIsAnError) {
  MemoryFileSystem files;
  SLUICE_ASSERT_OK(Save(files, "m", 1));
  for (const char* name : {"m.index", "m.data-00000-of-00001"}) {
    const std::string good = Contents(files, name);
    for (size_t n = 0; n<good.size(); n += good.size()> 1000 ? 7 : 1) {
      SLUICE_ASSERT_OK(files.WriteFile(name, good.substr(0, n)));
      const absl::Status status = Load(files, "m").status();
      // TensorFlow's code for data that end early.
      EXPECT_EQ(status.code(), name[2] == 'i' ? absl::StatusCode::kDataLoss
                                              : absl::StatusCode::kOutOfRange)
          << status;
    }
    SLUICE_ASSERT_OK(files.WriteFile(name, good));
  }
}

TEST(BundleFault, MessagesAreTensorFlows) {
  MemoryFileSystem files;
  const auto error = [&](const std::string& prefix) {
    const absl::StatusOr<float> value = Load(files, prefix);
    return std::string(value.ok() ? "no error" : value.status().message());
  };
  EXPECT_EQ(error("m"),
            "Unsuccessful TensorSliceReader constructor: Failed to find any "
            "matching files for m");
  EXPECT_EQ(error("no/m"),
            "Unsuccessful TensorSliceReader constructor: Failed to get "
            "matching files on no/m: Not found: no; No such file or directory");
  SLUICE_ASSERT_OK(files.WriteFile("m", std::string(200, 'x')));
  EXPECT_EQ(error("m"),
            "Unable to open table file m: Data loss: not an sstable (bad magic "
            "number): perhaps your file is in a different file format and you "
            "need to use a different restore operator?");
  SLUICE_ASSERT_OK(Save(files, "m", 1));
  std::string data = Contents(files, "m.data-00000-of-00001");
  data[0] ^= 1;
  SLUICE_ASSERT_OK(files.WriteFile("m.data-00000-of-00001", data));
  EXPECT_THAT(error("m"), StartsWith("Checksum does not match: stored "));
  EXPECT_THAT(error("m"), HasSubstr("Tensor large at offset 0 of "
                                    "m.data-00000-of-00001 is damaged"));
  SLUICE_ASSERT_OK(files.WriteFile("m.data-00000-of-00001", data.substr(9)));
  EXPECT_THAT(error("m"), StartsWith("Read less bytes than requested\n"));
  SLUICE_ASSERT_OK(files.Delete("m.data-00000-of-00001"));
  EXPECT_EQ(error("m"), "m.data-00000-of-00001; No such file or directory");
  std::string index = Contents(files, "m.index");
  index[5] ^= 1;
  SLUICE_ASSERT_OK(files.WriteFile("m.index", index));
  EXPECT_EQ(error("m"),
            "Unable to read file (m.index). Perhaps the file is corrupt or was "
            "produced by a newer version of TensorFlow with format changes "
            "(failed to seek to header entry): block checksum mismatch");
}

}  // namespace
}  // namespace sluice
