// Every state that a crash can leave a checkpoint directory in.
//
// A writer saves, publishes and deletes as a Saver's ops and the Saver do, on a
// disk that stops at each of its calls in turn; then the power goes in every
// way it can. What was acknowledged must be there, and what the state file
// names must be whole.
#include <gtest/gtest.h>

#include "sluice/base/memory_file_system.h"
#include "sluice/base/testing/faulty_file_system.h"
#include "sluice/io/bundle_writer.h"
#include "sluice/io/checkpoint_reader.h"
#include "sluice/io/checkpoint_state.h"
#include "sluice/io/v1_writer.h"
#include "sluice/train/checkpoint_keeper.h"
#include "sluice/train/testing/fake_clock.h"

namespace sluice {
namespace {
namespace checkpoint_crash {

using PowerCut = MemoryFileSystem::PowerCut;

// How the ops of a step write.
enum class Format { kPlain, kSharded, kV1 };

// Tensors that all hold `value`, so that a mix would show.
absl::Status AddTensors(BundleWriter& writer, int shard, float value) {
  for (int i = 0; i < 4; ++i) {
    Tensor tensor(DType::kFloat, {64});
    std::fill_n(tensor.mutable_data<float>().begin(), 64, value);
    SLUICE_RETURN_IF_ERROR(writer.Add(StrCat("shard", shard, "/t", i), tensor));
  }
  return writer.Finish();
}

absl::Status WriteFiles(FileSystem& files, const std::string& prefix,
                        Format format, float value) {
  if (format == Format::kPlain) {
    BundleWriter writer(files, prefix);
    return AddTensors(writer, 0, value);
  }
  if (format == Format::kV1) {
    V1CheckpointWriter writer(files, prefix);
    SLUICE_RETURN_IF_ERROR(
        writer.Add("v", {}, {}, Tensor::Scalar<float>(value)));
    return writer.Finish();
  }
  std::vector<std::string> parts;
  for (int i = 0; i < 2; ++i) {
    parts.push_back(StrCat(prefix, "_temp_ab/part-0000", i, "-of-00002"));
    BundleWriter writer(files, parts.back());
    SLUICE_RETURN_IF_ERROR(AddTensors(writer, i, value));
  }
  return MergeBundles(files, parts, prefix, /*delete_old=*/true);
}

// A directory with checkpoints, and who keeps it. Values rise with each save.
class Writer {
 public:
  Writer(FileSystem& files, int max_to_keep)
      : files_(files), keeper_(files, clock_, {.max_to_keep = max_to_keep}) {}

  absl::Status Save(const std::string& prefix, Format format, float value) {
    const int64_t turn = keeper_.TakeTurn();
    SLUICE_RETURN_IF_ERROR(WriteFiles(files_, prefix, format, value));
    SLUICE_RETURN_IF_ERROR(
        files_.WriteFileAtomically(StrCat(prefix, ".meta"), "graph"));
    return keeper_.Publish(prefix, turn, "d", "checkpoint");
  }
  void Recover(const std::vector<std::string>& prefixes) {
    keeper_.Recover(prefixes);
  }

 private:
  FileSystem& files_;
  FakeClock clock_;
  CheckpointKeeper keeper_;
};

// The value of all tensors; an error if one cannot be read or they differ.
absl::StatusOr<float> Load(FileSystem& files, const std::string& prefix) {
  SLUICE_ASSIGN_OR_RETURN(auto reader, CheckpointReader::Open(files, prefix));
  SLUICE_ASSIGN_OR_RETURN(const auto list, reader->List());
  std::optional<float> value;
  for (const CheckpointTensor& info : list) {
    SLUICE_ASSIGN_OR_RETURN(const Tensor tensor, reader->Lookup(info.name));
    for (const float element : tensor.data<float>()) {
      if (value && *value != element) return Internal(prefix, " is mixed");
      value = element;
    }
  }
  if (!value) return Internal(prefix, " is empty");
  return *value;
}

// The value of the newest checkpoint, if all that the state file names are
// whole.
absl::StatusOr<float> LoadNewest(FileSystem& files,
                                 std::vector<std::string>* all) {
  SLUICE_ASSIGN_OR_RETURN(const auto state, ReadCheckpointState(files, "d"));
  if (!state) return NotFound("there is no state file");
  all->assign(state->all_model_checkpoint_paths().begin(),
              state->all_model_checkpoint_paths().end());
  for (const std::string& prefix : *all) {
    SLUICE_RETURN_IF_ERROR(Load(files, prefix).status());
  }
  return Load(files, state->model_checkpoint_path());
}

struct Scenario {
  const char* name;
  // Saves that work before the one that is cut off, which is the last.
  std::vector<std::pair<const char*, Format>> saves;
  int max_to_keep;
};

const Scenario kScenarios[] = {
    {"a new checkpoint",
     {{"d/m-1", Format::kPlain}, {"d/m-2", Format::kPlain}},
     5},
    {"a new sharded one",
     {{"d/m-1", Format::kSharded}, {"d/m-2", Format::kSharded}},
     5},
    {"over the same prefix",
     {{"d/m", Format::kPlain}, {"d/m", Format::kPlain}},
     5},
    {"sharded over the same prefix",
     {{"d/m", Format::kSharded}, {"d/m", Format::kSharded}},
     5},
    {"sharded over plain",
     {{"d/m", Format::kPlain}, {"d/m", Format::kSharded}},
     5},
    {"plain over sharded",
     {{"d/m", Format::kSharded}, {"d/m", Format::kPlain}},
     5},
    {"with an old one to delete",
     {{"d/m-1", Format::kPlain},
      {"d/m-2", Format::kSharded},
      {"d/m-3", Format::kPlain}},
     2},
    {"one at a time",
     {{"d/m-1", Format::kSharded}, {"d/m-2", Format::kSharded}},
     1},
    {"over an older one of several",
     {{"d/m-1", Format::kPlain},
      {"d/m-2", Format::kPlain},
      {"d/m-1", Format::kPlain}},
     2},
    {"the V1 format", {{"d/m", Format::kV1}, {"d/m", Format::kV1}}, 5},
};

// All that can happen at a stop: the process ends, or the power goes.
constexpr std::optional<PowerCut> kEnds[] = {
    std::nullopt, PowerCut::kLosesAll, PowerCut::kKeepsNames,
    PowerCut::kKeepsBytes, PowerCut::kTearsBytes};

// Runs the scenario with a stop after `calls` calls of its last save, and a
// second stop after `again` calls of the save that follows the first, if that
// is not negative. Returns whether the last save of all was acknowledged.
bool StopAndCheck(const Scenario& scenario, int64_t calls, int64_t again,
                  std::optional<PowerCut> end) {
  MemoryFileSystem disk;
  EXPECT_TRUE(disk.MkDirs("d").ok());
  FaultyFileSystem files(disk);
  float value = 0, acknowledged = 0;
  std::vector<std::string> all;
  const auto stop = [&] {
    if (end) disk.CutPower(*end);
    const absl::StatusOr<float> newest = LoadNewest(disk, &all);
    EXPECT_TRUE(newest.ok())
        << scenario.name << ", stopped after " << calls << ", then " << again
        << ", power " << (end ? static_cast<int>(*end) : -1) << ": "
        << newest.status();
    if (!newest.ok()) return;
    EXPECT_GE(*newest, acknowledged) << scenario.name << calls;
    EXPECT_LE(*newest, value) << scenario.name << calls;
  };
  bool finished = false;
  {
    Writer writer(files, scenario.max_to_keep);
    for (const auto& [prefix, format] : scenario.saves) {
      const bool last = &prefix == &scenario.saves.back().first;
      if (last) files.StopAfter(calls);
      finished = writer.Save(prefix, format, ++value).ok();
      EXPECT_TRUE(finished || last) << scenario.name;
      if (finished) acknowledged = value;
    }
  }
  stop();
  if (again < 0 || ::testing::Test::HasFailure()) return finished;
  // A new process goes on where this one ended.
  FaultyFileSystem after(disk);
  Writer writer(after, scenario.max_to_keep);
  writer.Recover(all);
  after.StopAfter(again);
  const auto& [prefix, format] = scenario.saves.back();
  finished = writer.Save(prefix, format, ++value).ok();
  if (finished) acknowledged = value;
  stop();
  return finished;
}

TEST(CheckpointCrash, LosesNothingThatWasAcknowledged) {
  int states = 0;
  for (const Scenario& scenario : kScenarios) {
    for (const std::optional<PowerCut>& end : kEnds) {
      bool finished = false;
      for (int64_t calls = 0; !finished; ++calls, ++states) {
        finished = StopAndCheck(scenario, calls, /*again=*/-1, end);
        ASSERT_FALSE(HasFailure());
        ASSERT_LT(calls, 1000);
      }
    }
  }
  std::printf("%d crash states of one stop\n", states);
  EXPECT_GE(states, 1000);
}

TEST(CheckpointCrash, LosesNothingWhenTheNextSaveIsCutOffToo) {
  int states = 0;
  for (const Scenario& scenario : kScenarios) {
    for (const std::optional<PowerCut>& end : kEnds) {
      bool done = false;
      for (int64_t calls = 0; !done; calls += 5) {
        done = StopAndCheck(scenario, calls, /*again=*/-1, end);
        bool finished = false;
        for (int64_t again = calls % 5; !finished; again += 4, ++states) {
          finished = StopAndCheck(scenario, calls, again, end);
          ASSERT_FALSE(HasFailure());
          ASSERT_LT(again, 1000);
        }
      }
    }
  }
  std::printf("%d crash states of two stops\n", states);
  EXPECT_GE(states, 1000);
}

// A disk that is full at any byte is an error, and costs only the new one.
TEST(CheckpointCrash, AFullDiskCostsOnlyTheNewCheckpoint) {
  int states = 0;
  for (const Scenario& scenario : kScenarios) {
    for (int64_t room = 0; room < 6000; room += 97, ++states) {
      MemoryFileSystem disk;
      ASSERT_TRUE(disk.MkDirs("d").ok());
      FaultyFileSystem files(disk);
      Writer writer(files, scenario.max_to_keep);
      float value = 0;
      absl::Status status;
      for (const auto& [prefix, format] : scenario.saves) {
        if (&prefix == &scenario.saves.back().first) files.FillAfter(room);
        status = writer.Save(prefix, format, ++value);
      }
      std::vector<std::string> all;
      const absl::StatusOr<float> newest = LoadNewest(disk, &all);
      ASSERT_TRUE(newest.ok()) << scenario.name << room << newest.status();
      if (status.ok()) {
        EXPECT_EQ(*newest, value);
      } else {
        EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
      }
      files.FillAfter(1 << 20);
      const auto& [prefix, format] = scenario.saves.back();
      ASSERT_TRUE(writer.Save(prefix, format, ++value).ok());
      EXPECT_EQ(LoadNewest(disk, &all).value_or(-1), value);
    }
  }
  std::printf("%d states of a full disk\n", states);
}

}  // namespace checkpoint_crash
}  // namespace
}  // namespace sluice
