#include "sluice/io/event_queue.h"

#include <gmock/gmock.h>

#include <thread>

#include "sluice/base/memory_file_system.h"
#include "sluice/base/mutex.h"
#include "sluice/base/testing/faulty_file_system.h"
#include "sluice/io/event_file.h"
#include "sluice/io/testing/golden.h"

namespace sluice {
namespace {
namespace event_queue {

using ::testing::ElementsAre;

pb::Event EventOfStep(int64_t step) {
  pb::Event event;
  event.set_step(step);
  return event;
}

// The steps of the events in a file, without the first record.
std::vector<int64_t> Steps(FileSystem& files, const std::string& path) {
  auto reader = EventReader::Open(files, path);
  EXPECT_TRUE(reader.ok()) << reader.status();
  std::vector<int64_t> steps;
  pb::Event event;
  while (reader.ok() && (*reader)->Read(&event).value_or(false)) {
    if (event.file_version().empty()) steps.push_back(event.step());
  }
  return steps;
}

// Writes wait until the test opens the gate.
class GatedFiles : public MemoryFileSystem {
 public:
  absl::StatusOr<std::unique_ptr<WritableFile>> NewExclusive(
      const std::string& path) override {
    entered.Notify();
    gate.Wait();
    return MemoryFileSystem::NewExclusive(path);
  }
  Notification entered, gate;
};

TEST(EventQueue, KeepsTheOrderAndIsCompleteWhenFlushed) {
  MemoryFileSystem files;
  EventQueue queue(files, RealClock(), "logs");
  EXPECT_EQ(queue.path(), "");
  SLUICE_EXPECT_OK(queue.Flush());  // Nothing: no file.
  EXPECT_FALSE(files.Exists("logs"));
  std::vector<int64_t> expected;
  for (int i = 0; i < 100; ++i) {
    queue.Add(EventOfStep(i));
    expected.push_back(i);
  }
  SLUICE_ASSERT_OK(queue.Flush());
  EXPECT_EQ(Steps(files, queue.path()), expected);
}

TEST(EventQueue, AddWaitsWhenTheQueueIsFull) {
  GatedFiles files;
  EventQueue queue(files, RealClock(), "logs", {.max_queue = 2});
  queue.Add(EventOfStep(1));
  files.entered.Wait();  // The writer holds the first.
  queue.Add(EventOfStep(2));
  queue.Add(EventOfStep(3));
  Notification added;
  std::thread fourth([&] {
    queue.Add(EventOfStep(4));
    added.Notify();
  });
  EXPECT_FALSE(added.WaitFor(std::chrono::milliseconds(50)));
  files.gate.Notify();
  EXPECT_TRUE(added.WaitFor(std::chrono::seconds(30)));
  fourth.join();
  SLUICE_ASSERT_OK(queue.Close());
  EXPECT_THAT(Steps(files, queue.path()), ElementsAre(1, 2, 3, 4));
}

TEST(EventQueue, TheLastEventsAreFlushedInTimeWithoutFurtherOnes) {
  MemoryFileSystem files;
  EventQueue queue(files, RealClock(), "logs", {.flush_secs = 0.01});
  queue.Add(EventOfStep(1));
  queue.Add(EventOfStep(2));
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (queue.path().empty() || Steps(files, queue.path()).size() < 2) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::yield();
  }
}

TEST(EventQueue, ClosedItTakesNothingUntilItIsReopened) {
  MemoryFileSystem files;
  EventQueue queue(files, RealClock(), "logs");
  queue.Add(EventOfStep(1));
  SLUICE_ASSERT_OK(queue.Close());
  const std::string first = queue.path();
  queue.Add(EventOfStep(2));
  SLUICE_EXPECT_OK(queue.Flush());
  queue.Reopen();
  queue.Add(EventOfStep(3));
  SLUICE_ASSERT_OK(queue.Close());
  EXPECT_THAT(Steps(files, first), ElementsAre(1));
  EXPECT_NE(queue.path(), first);
  EXPECT_THAT(Steps(files, queue.path()), ElementsAre(3));
}

TEST(EventQueue, TellsOfAFullDiskOnceAndGoesOn) {
  MemoryFileSystem disk;
  FaultyFileSystem files(disk);
  EventQueue queue(files, RealClock(), "logs");
  queue.Add(EventOfStep(1));
  SLUICE_ASSERT_OK(queue.Flush());
  files.FillAfter(5);
  queue.Add(EventOfStep(2));
  EXPECT_EQ(queue.Flush().code(), absl::StatusCode::kResourceExhausted);
  files.FillAfter(1 << 20);
  queue.Add(EventOfStep(3));
  SLUICE_EXPECT_OK(queue.Close());
  EXPECT_THAT(Steps(disk, queue.path()), ElementsAre(3));
}

}  // namespace event_queue
}  // namespace
}  // namespace sluice
