#include "sluice/io/checkpoint_state.h"

#include <gmock/gmock.h>

#include "sluice/base/memory_file_system.h"
#include "sluice/io/testing/golden.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

TEST(CheckpointState, IsWrittenAsTensorFlowWritesIt) {
  MemoryFileSystem files;
  SLUICE_EXPECT_OK(files.MkDirs("run"));
  SLUICE_EXPECT_OK(WriteCheckpointState(
      files, "run",
      MakeCheckpointState("run", "run/model.ckpt-12",
                          {"run/model.ckpt-8", "run/model.ckpt-12"})));
  EXPECT_EQ(
      Contents(files, "run/checkpoint"),
      Contents(RealFileSystem(), GoldenCheckpoint("training/checkpoint")));
}

TEST(CheckpointState, PathsAreKeptOrMadeRelativeAsTheDirectoryIs) {
  const auto newest = [](const char* dir, const char* path, bool relative) {
    return MakeCheckpointState(dir, path, {}, relative).model_checkpoint_path();
  };
  EXPECT_EQ(newest("/d", "/d/m", false), "/d/m");
  EXPECT_EQ(newest("/d", "/d/m", true), "m");
  EXPECT_EQ(newest("a/b", "a/c/m", false), "../c/m");
  EXPECT_EQ(newest("./a", "a/m", false), "m");
  EXPECT_EQ(newest("a", "/d/m", false), "/d/m");
  EXPECT_EQ(newest("", "m", false), "m");
  EXPECT_THAT(
      MakeCheckpointState("/d", "/d/2", {"/d/1"}).all_model_checkpoint_paths(),
      ElementsAre("/d/1", "/d/2"));
}

TEST(CheckpointState, IsReadWithPathsJoinedToTheDirectory) {
  const auto state =
      ReadCheckpointState(RealFileSystem(), GoldenCheckpoint("training"));
  ASSERT_TRUE(state.ok() && state->has_value());
  EXPECT_THAT((*state)->all_model_checkpoint_paths(),
              ElementsAre(GoldenCheckpoint("training/model.ckpt-8"),
                          GoldenCheckpoint("training/model.ckpt-12")));
  EXPECT_EQ(LatestCheckpoint(RealFileSystem(), GoldenCheckpoint("training")),
            GoldenCheckpoint("training/model.ckpt-12"));
}

TEST(CheckpointState, GarbageIsIgnoredAndAnEmptyPathIsAnError) {
  MemoryFileSystem files;
  EXPECT_EQ(ReadCheckpointState(files, ".").value(), std::nullopt);
  SLUICE_EXPECT_OK(files.WriteFile("checkpoint", "garbage: ["));
  EXPECT_EQ(ReadCheckpointState(files, ".").value(), std::nullopt);
  SLUICE_EXPECT_OK(files.WriteFile("checkpoint", ""));
  EXPECT_EQ(ReadCheckpointState(files, ".").status().message(),
            "Invalid checkpoint state loaded from .");
  EXPECT_EQ(LatestCheckpoint(files, "."), std::nullopt);
}

TEST(CheckpointState, ANamedCheckpointThatIsNotThereIsNone) {
  MemoryFileSystem files;
  SLUICE_EXPECT_OK(
      files.WriteFile("checkpoint", "model_checkpoint_path: \"/m-1\""));
  EXPECT_EQ(LatestCheckpoint(files, ""), std::nullopt);
  SLUICE_EXPECT_OK(files.WriteFile("/m-1.index", ""));
  EXPECT_EQ(LatestCheckpoint(files, ""), "/m-1");
  SLUICE_EXPECT_OK(files.WriteFile("/m-1.data-00000-of-00001", ""));
  SLUICE_EXPECT_OK(files.WriteFile("/m-10.index", ""));
  SLUICE_EXPECT_OK(RemoveCheckpoint(files, "/m-1"));
  EXPECT_EQ(LatestCheckpoint(files, ""), std::nullopt);
  EXPECT_THAT(files.List("/").value(), ElementsAre("m-10.index"));
}

}  // namespace
}  // namespace sluice
