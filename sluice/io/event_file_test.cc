#include "sluice/io/event_file.h"

#include <gmock/gmock.h>

#include "sluice/base/memory_file_system.h"
#include "sluice/base/path.h"
#include "sluice/io/testing/golden.h"

namespace sluice {
namespace {

class FixedClock : public Clock {
 public:
  SteadyTime Now() override { return {}; }
  int64_t WallMicros() override { return 1'700'000'001'500'000; }
};

std::vector<pb::Event> ReadEvents(FileSystem& files, const std::string& path) {
  std::vector<pb::Event> events;
  auto reader = EventReader::Open(files, path);
  EXPECT_TRUE(reader.ok()) << reader.status();
  pb::Event event;
  while (true) {
    const absl::StatusOr<bool> found = (*reader)->Read(&event);
    EXPECT_TRUE(found.ok()) << found.status();
    if (!found.ok() || !*found) return events;
    events.push_back(event);
  }
}

TEST(EventFile, ReadsWhatTensorFlowWrote) {
  const std::vector<pb::Event> events = ReadEvents(
      RealFileSystem(), GoldenEvents("events.out.tfevents.1700000001.host"));
  ASSERT_EQ(events.size(), 13u);
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  EXPECT_EQ(events[1].graph_def().size(), 6450u);
  EXPECT_EQ(events[3].session_log().status(), pb::SessionLog::START);
  EXPECT_EQ(events[5].step(), 1);
  EXPECT_EQ(events[5].summary().value(0).tag(), "train/loss");
  EXPECT_EQ(events[5].summary().value(0).simple_value(), 10.0f);
  EXPECT_EQ(events[6].tagged_run_metadata().tag(), "step_1");
  EXPECT_EQ(events[10].session_log().checkpoint_path(), "model.ckpt-4");
  EXPECT_EQ(events[11].wall_time(), 5.5);

  const std::vector<pb::Event> v2 =
      ReadEvents(RealFileSystem(),
                 GoldenEvents("events.out.tfevents.1700000002.host.1.0.v2"));
  ASSERT_EQ(v2.size(), 12u);
  EXPECT_EQ(v2[1].summary().value(0).metadata().plugin_data().plugin_name(),
            "scalars");
}

TEST(EventFile, RewritesTensorFlowsFileByteForByte) {
  const std::string golden =
      GoldenEvents("events.out.tfevents.1700000001.host");
  MemoryFileSystem files;
  auto writer = RecordWriter::Open(files, "f");
  for (const pb::Event& event : ReadEvents(RealFileSystem(), golden)) {
    SLUICE_EXPECT_OK((*writer)->Write(event.SerializeAsString()));
  }
  SLUICE_EXPECT_OK((*writer)->Close());
  EXPECT_EQ(Contents(files, "f"), Contents(RealFileSystem(), golden));
}

TEST(EventFile, StartsWithItsVersionAndIsMadeByTheFirstEvent) {
  MemoryFileSystem files;
  FixedClock clock;
  EventWriter writer(files, clock, "logs/run", ".v2");
  EXPECT_FALSE(files.Exists("logs"));
  pb::Event event;
  event.set_step(7);
  SLUICE_EXPECT_OK(writer.Write(event));
  SLUICE_EXPECT_OK(writer.Flush());
  EXPECT_THAT(writer.path(),
              ::testing::MatchesRegex("logs/run/events\\.out\\.tfevents\\."
                                      "1700000001\\..+\\.v2"));
  const std::vector<pb::Event> events = ReadEvents(files, writer.path());
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].wall_time(), 1'700'000'001.0);
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  EXPECT_EQ(events[1].step(), 7);
}

TEST(EventFile, TwoWritersOfOneSecondDoNotShareAFile) {
  MemoryFileSystem files;
  FixedClock clock;
  EventWriter a(files, clock, "logs"), b(files, clock, "logs");
  SLUICE_EXPECT_OK(a.Flush());
  SLUICE_EXPECT_OK(b.Flush());
  EXPECT_NE(a.path(), b.path());
}

TEST(EventFile, AFileThatDisappearsIsReportedAndReplaced) {
  MemoryFileSystem files;
  FixedClock clock;
  EventWriter writer(files, clock, "logs");
  pb::Event event;
  SLUICE_EXPECT_OK(writer.Write(event));
  SLUICE_EXPECT_OK(files.Delete(writer.path()));
  EXPECT_THAT(std::string(writer.Flush().message()),
              ::testing::HasSubstr("has disappeared"));
  SLUICE_EXPECT_OK(writer.Write(event));
  SLUICE_EXPECT_OK(writer.Close());
  EXPECT_EQ(ReadEvents(files, writer.path()).size(), 2u);
}

}  // namespace
}  // namespace sluice
