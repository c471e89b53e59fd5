#include "sluice/base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "sluice/base/memory_file_system.h"
#include "sluice/base/path.h"
#include "sluice/base/testing/faulty_file_system.h"
#include "sluice/base/testing/temp_dir.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Path, IsJoinedAndTakenApart) {
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
  EXPECT_EQ(JoinPath("a", "/b"), "/b");
  EXPECT_EQ(DirName("a/b/c"), "a/b");
  EXPECT_EQ(DirName("a"), "");
  EXPECT_EQ(DirName("/a"), "/");
  EXPECT_EQ(BaseName("a/b"), "b");
  EXPECT_EQ(BaseName("b"), "b");
}

// What every file system must do, run on each.
class FileSystemTest : public ::testing::TestWithParam<bool> {
 protected:
  FileSystem& files() {
    return GetParam() ? static_cast<FileSystem&>(memory_) : RealFileSystem();
  }
  std::string Path(const std::string& name) { return root_ / name; }
  void SetUp() override { ASSERT_TRUE(files().MkDirs(root_.path()).ok()); }

  TempDir root_;
  MemoryFileSystem memory_;
};
INSTANTIATE_TEST_SUITE_P(All, FileSystemTest, ::testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "Memory" : "Real";
                         });

TEST_P(FileSystemTest, ReadsBackWhatWasWritten) {
  const std::string large(200'000, 'x');
  {
    auto file = files().NewWritable(Path("f"));
    ASSERT_TRUE(file.ok());
    EXPECT_TRUE((*file)->Append("one ").ok());
    EXPECT_TRUE((*file)->Append(large).ok());
    EXPECT_TRUE((*file)->Append(" two").ok());
    EXPECT_TRUE((*file)->Sync().ok());
    EXPECT_TRUE((*file)->Close().ok());
  }
  EXPECT_EQ(files().ReadFile(Path("f")).value(), "one " + large + " two");
  {
    auto file = files().NewAppendable(Path("f"));
    ASSERT_TRUE(file.ok());
    EXPECT_TRUE((*file)->Append("!").ok());
    EXPECT_TRUE((*file)->Flush().ok());
    EXPECT_EQ(files().Stat(Path("f"))->size, 200'009);
  }
  ASSERT_TRUE(files().WriteFile(Path("f"), "short").ok());
  EXPECT_EQ(files().ReadFile(Path("f")).value(), "short");
}

TEST_P(FileSystemTest, OneOfManyMakesANewFile) {
  constexpr int kThreads = 8;
  std::atomic<int> made{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      auto file = files().NewExclusive(Path("f"));
      if (file.ok()) {
        ++made;
        EXPECT_TRUE((*file)->Append("mine").ok());
        EXPECT_TRUE((*file)->Close().ok());
      } else {
        EXPECT_EQ(file.status().code(), absl::StatusCode::kAlreadyExists);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 1);
  EXPECT_EQ(files().ReadFile(Path("f")).value(), "mine");
}

TEST_P(FileSystemTest, ReadsAnyPartOfAFile) {
  ASSERT_TRUE(files().WriteFile(Path("f"), "0123456789").ok());
  auto file = files().NewRandomAccess(Path("f"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->size(), 10);
  char scratch[10];
  EXPECT_EQ((*file)->Read(4, 3, scratch).value(), 3u);
  EXPECT_EQ(std::string(scratch, 3), "456");
  EXPECT_EQ((*file)->Read(8, 5, scratch).value(), 2u);
  EXPECT_EQ((*file)->Read(80, 5, scratch).value(), 0u);
  EXPECT_TRUE(ReadExactly(**file, 5, 5, scratch).ok());
  EXPECT_EQ(ReadExactly(**file, 6, 5, scratch).code(),
            absl::StatusCode::kOutOfRange);
}

// Large ones may go past the system's cache, which has rules of its own.
TEST_P(FileSystemTest, LargeFilesKeepEveryByte) {
  std::string all(30'000'000, 0);
  for (size_t i = 0; i < all.size(); ++i) {
    all[i] = static_cast<char>((i * 2654435761u) >> 13);
  }
  // Pieces of all sizes, some seen by readers before the next comes.
  auto file = files().NewWritable(Path("large"));
  ASSERT_TRUE(file.ok()) << file.status();
  size_t at = 0;
  for (size_t n = 1; at < all.size(); n = n * 5 % 4'999'999 + 3) {
    const std::string_view piece = std::string_view(all).substr(at, n);
    ASSERT_TRUE((*file)->Append(piece).ok());
    at += piece.size();
    if (n % 4 > 1) continue;
    ASSERT_TRUE((n % 4 == 0 ? (*file)->Flush() : (*file)->Sync()).ok());
    EXPECT_EQ(files().Stat(Path("large"))->size, static_cast<int64_t>(at));
  }
  ASSERT_TRUE((*file)->Sync().ok());
  ASSERT_TRUE((*file)->Close().ok());
  EXPECT_TRUE(files().ReadFile(Path("large")).value() == all);
  auto reader = files().NewRandomAccess(Path("large"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::string part(9'000'000, 0);
  for (const size_t offset : {0, 1, 4095, 4096, 12'345'678, 29'999'999}) {
    const size_t n = (*reader)->Read(offset, part.size(), part.data()).value();
    EXPECT_TRUE(std::string_view(part).substr(0, n) ==
                std::string_view(all).substr(offset, part.size()))
        << offset;
  }
}

TEST_P(FileSystemTest, ErrorsNameThePathAndCarryTheSystemsCode) {
  const std::string missing = Path("missing");
  const absl::Status status = files().ReadFile(missing).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), missing + "; No such file or directory");
  EXPECT_EQ(files().Delete(missing).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(files().Rename(missing, Path("b")).code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(files().List(missing).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(files().DeleteRecursively(missing).code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(files().NewWritable(Path("no/dir")).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(files().NewWritable(root_.path()).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(files().ReadFile(root_.path()).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_P(FileSystemTest, ALargeFileIsGoneWhenItIsDeleted) {
  const std::string bytes(5'000'000, 'x');
  ASSERT_TRUE(files().WriteFile(Path("large"), bytes).ok());
  ASSERT_TRUE(files().Link(Path("large"), Path("second")).ok());
  ASSERT_TRUE(files().Delete(Path("large")).ok());
  EXPECT_FALSE(files().Exists(Path("large")));
  EXPECT_EQ(files().Delete(Path("large")).code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(files().ReadFile(Path("second")).value() == bytes);
}

TEST_P(FileSystemTest, RenameReplacesWhatWasThere) {
  ASSERT_TRUE(files().WriteFile(Path("a"), "a").ok());
  ASSERT_TRUE(files().WriteFile(Path("b"), "b").ok());
  ASSERT_TRUE(files().Rename(Path("a"), Path("b")).ok());
  EXPECT_FALSE(files().Exists(Path("a")));
  EXPECT_EQ(files().ReadFile(Path("b")).value(), "a");
}

TEST_P(FileSystemTest, ALinkIsASecondNameOfOneFile) {
  ASSERT_TRUE(files().WriteFile(Path("a"), "a").ok());
  ASSERT_TRUE(files().Link(Path("a"), Path("b")).ok());
  EXPECT_EQ(files().Link(Path("a"), Path("b")).code(),
            absl::StatusCode::kAlreadyExists);
  ASSERT_TRUE(files().WriteFileAtomically(Path("a"), "new").ok());
  EXPECT_EQ(files().ReadFile(Path("b")).value(), "a");
}

TEST_P(FileSystemTest, MakesAndRemovesTrees) {
  ASSERT_TRUE(files().MkDirs(Path("x/y/z")).ok());
  ASSERT_TRUE(files().MkDirs(Path("x/y")).ok());
  ASSERT_TRUE(files().WriteFile(Path("x/y/f"), "").ok());
  EXPECT_TRUE(files().Stat(Path("x/y"))->is_dir);
  EXPECT_THAT(files().List(Path("x/y")).value(), ElementsAre("f", "z"));
  EXPECT_FALSE(files().MkDirs(Path("x/y/f/g")).ok());
  ASSERT_TRUE(files().DeleteRecursively(Path("x")).ok());
  EXPECT_FALSE(files().Exists(Path("x")));
}

TEST_P(FileSystemTest, GlobFindsPathsThatMatch) {
  for (const char* dir : {"d1", "d2", "e"}) {
    ASSERT_TRUE(files().MkDirs(Path(dir)).ok());
  }
  for (const char* name : {"d1/a.1", "d1/b.1", "d2/a.2", "e/a.1", "d3"}) {
    ASSERT_TRUE(files().WriteFile(Path(name), "").ok());
  }
  EXPECT_THAT(files().Glob(Path("d?/a.*")).value(),
              ElementsAre(Path("d1/a.1"), Path("d2/a.2")));
  EXPECT_THAT(files().Glob(Path("d1/[ab].1")).value(),
              ElementsAre(Path("d1/a.1"), Path("d1/b.1")));
  EXPECT_THAT(files().Glob(Path("*/a.1")).value(),
              ElementsAre(Path("d1/a.1"), Path("e/a.1")));
  EXPECT_THAT(files().Glob(Path("e/a.1")).value(), ElementsAre(Path("e/a.1")));
  EXPECT_THAT(files().Glob(Path("e/a.2")).value(), IsEmpty());
  EXPECT_EQ(files().Glob(Path("nowhere/*")).status().message(),
            Path("nowhere") + "; No such file or directory");
}

TEST_P(FileSystemTest, AtomicWritesLeaveTheOldFileWhenTheyFail) {
  FaultyFileSystem faulty(files());
  ASSERT_TRUE(faulty.WriteFileAtomically(Path("f"), "old").ok());
  faulty.FillAfter(2);
  EXPECT_EQ(faulty.WriteFileAtomically(Path("f"), "new").code(),
            absl::StatusCode::kResourceExhausted);
  faulty.FillAfter(100);
  faulty.FailRenamesTo("/f");
  EXPECT_FALSE(faulty.WriteFileAtomically(Path("f"), "new").ok());
  EXPECT_EQ(files().ReadFile(Path("f")).value(), "old");
  EXPECT_THAT(files().List(root_.path()).value(), ElementsAre("f"));
}

TEST(MemoryFileSystem, LosesWhatWasNotSyncedWhenThePowerGoes) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.WriteFileAtomically("/kept", "kept").ok());
  auto file = files.NewAppendable("/kept");
  ASSERT_TRUE((*file)->Append(" lost").ok());
  ASSERT_TRUE(files.WriteFile("/unnamed", "x").ok());
  ASSERT_TRUE(files.Delete("/kept").ok());
  files.CutPower();
  EXPECT_EQ(files.ReadFile("/kept").value(), "kept");
  EXPECT_FALSE(files.Exists("/unnamed"));
}

TEST(RealFileSystem, SaysWhenTheDiskIsFull) {
  auto file = RealFileSystem().NewWritable("/dev/full");
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE((*file)->Append("x").ok());
  const absl::Status status = (*file)->Close();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "/dev/full; No space left on device");
}

}  // namespace
}  // namespace sluice
