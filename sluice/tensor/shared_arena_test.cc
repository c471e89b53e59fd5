#include "sluice/tensor/shared_arena.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "sluice/tensor/tensor.h"

namespace sluice {
namespace {

constexpr int kSize = 300'000;

Tensor Numbers() {
  Tensor tensor(DType::kInt32, {kSize});
  int next = 0;
  for (int& x : tensor.mutable_data<int>()) x = next++;
  return tensor;
}

const int* Read(const MappedArena& arena, size_t at, size_t size) {
  return reinterpret_cast<const int*>(arena.Find(at, size));
}

TEST(ShareMemory, OthersReadWhatTheTensorHolds) {
  Tensor tensor = Numbers();
  const void* const before = tensor.raw();
  const auto at = ShareMemory(tensor.raw(), tensor.bytes());
  ASSERT_TRUE(at.has_value());
  EXPECT_EQ(tensor.raw(), before);
  const MappedArena arena(dup(SharedArena::Get()->reader_fd()));
  const int* const shared = Read(arena, *at, tensor.bytes());
  ASSERT_NE(shared, nullptr);
  for (int i = 0; i < kSize; ++i) {
    ASSERT_EQ(shared[i], i);
    ASSERT_EQ(tensor.data<int>()[i], i);
  }
  // It is the same memory from now on.
  tensor.mutable_data<int>()[kSize - 1] = -1;
  EXPECT_EQ(shared[kSize - 1], -1);
  EXPECT_EQ(ShareMemory(tensor.raw(), tensor.bytes()), at);
}

TEST(ShareMemory, APartIsFoundWhereItIs) {
  const Tensor tensor = Numbers();
  const Tensor rows = tensor.Rows(100'000, 250'000);
  const auto whole = ShareMemory(tensor.raw(), tensor.bytes());
  const auto part = ShareMemory(rows.raw(), rows.bytes());
  ASSERT_TRUE(whole && part);
  EXPECT_EQ(*part, *whole + 400'000);
}

TEST(ShareMemory, WhatIsSmallOrNotOursIsNotShared) {
  const Tensor small(DType::kInt32, {100});
  EXPECT_EQ(ShareMemory(small.raw(), small.bytes()), std::nullopt);
  const std::vector<int> foreign(kSize);
  EXPECT_EQ(ShareMemory(foreign.data(), foreign.size() * sizeof(int)),
            std::nullopt);
  const Tensor tensor = Numbers();
  EXPECT_EQ(ShareMemory(tensor.raw(), tensor.bytes() * 10), std::nullopt);
}

TEST(ShareMemory, ManyMayShareTheSameAtOnce) {
  const Tensor tensor = Numbers();
  std::vector<std::thread> threads;
  std::vector<std::optional<size_t>> places(8);
  for (auto& place : places) {
    threads.emplace_back([&] {
      place = ShareMemory(tensor.raw(), tensor.bytes());
      for (int i = 0; i < kSize; i += 1000) {
        EXPECT_EQ(tensor.data<int>()[i], i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& place : places) EXPECT_EQ(place, places[0]);
}

// Whether `child`, which is called in a process that is forked, returns true.
template <typename Child>
bool HoldsInAChild(const Child& child) {
  const pid_t pid = fork();
  if (pid == 0) _exit(child() ? 0 : 1);
  int status = -1;
  return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

TEST(ShareMemory, WhatAForkedChildWritesIsItsOwn) {
  Tensor tensor = Numbers();
  ASSERT_TRUE(ShareMemory(tensor.raw(), tensor.bytes()).has_value());
  EXPECT_TRUE(IsShared(tensor.raw(), tensor.bytes()));
  {
    // Waits in the pool for whoever asks first.
    const Tensor pooled = Numbers();
    ASSERT_TRUE(ShareMemory(pooled.raw(), pooled.bytes()).has_value());
  }
  EXPECT_TRUE(HoldsInAChild([&] {
    if (IsShared(tensor.raw(), tensor.bytes())) return false;
    for (int i = 0; i < kSize; ++i) {
      if (tensor.data<int>()[i] != i) return false;
    }
    tensor.mutable_data<int>()[0] = -1;
    tensor = Tensor();
    for (int i = 0; i < 3; ++i) {
      Tensor again(DType::kInt32, {kSize});
      for (int& x : again.mutable_data<int>()) x = -2;
    }
    const Tensor fresh = Numbers();
    return !ShareMemory(fresh.raw(), fresh.bytes()).has_value();
  }));
  for (int i = 0; i < kSize; ++i) ASSERT_EQ(tensor.data<int>()[i], i);
  EXPECT_TRUE(IsShared(tensor.raw(), tensor.bytes()));
}

TEST(SharedArena, AForkedChildGivesNothingBack) {
  SharedArena& arena = *SharedArena::Get();
  constexpr size_t kBytes = 1 << 20;
  const size_t at = *arena.Take(kBytes);
  ASSERT_EQ(pwrite(arena.fd(), "x", 1, static_cast<off_t>(at)), 1);
  EXPECT_TRUE(HoldsInAChild([&] {
    arena.Give(at, kBytes);
    return !arena.Take(kBytes).has_value();
  }));
  char byte = 'y';
  ASSERT_EQ(pread(arena.fd(), &byte, 1, static_cast<off_t>(at)), 1);
  EXPECT_EQ(byte, 'x');
  arena.Give(at, kBytes);
}

TEST(SharedArena, WhatIsGivenBackIsTakenAgainAndEmpty) {
  SharedArena& arena = *SharedArena::Get();
  constexpr size_t kBytes = 12345 << 12;
  const size_t first = *arena.Take(kBytes);
  ASSERT_EQ(pwrite(arena.fd(), "x", 1, static_cast<off_t>(first)), 1);
  arena.Give(first, kBytes);
  EXPECT_EQ(arena.Take(kBytes), first);
  char byte = 'y';
  ASSERT_EQ(pread(arena.fd(), &byte, 1, static_cast<off_t>(first)), 1);
  EXPECT_EQ(byte, 0);
  EXPECT_EQ(arena.Take(SharedArena::kBytes + 1), std::nullopt);
}

TEST(SharedArena, WhoReadsItCannotWriteToIt) {
  const int fd = SharedArena::Get()->reader_fd();
  ASSERT_GE(fd, 0);
  EXPECT_EQ(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
            MAP_FAILED);
}

// Whether a process whose files may not be that large goes on without an arena.
bool GoesOnWithoutAnArena() {
  constexpr rlimit kSmall = {1 << 20, 1 << 20};
  setrlimit(RLIMIT_FSIZE, &kSmall);
  signal(SIGXFSZ, SIG_DFL);
  const Tensor tensor = Numbers();
  return SharedArena::Get() == nullptr &&
         !ShareMemory(tensor.raw(), tensor.bytes()).has_value();
}

TEST(SharedArena, ThereIsNoneWhereFilesMayNotBeThatLarge) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // It has no arena yet.
  EXPECT_EXIT(_exit(GoesOnWithoutAnArena() ? 0 : 1), testing::ExitedWithCode(0),
              "");
}

// A file like an arena, with these seals.
int FileWithSeals(int seals) {
  const int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  EXPECT_EQ(ftruncate(fd, SharedArena::kBytes), 0);
  EXPECT_EQ(fcntl(fd, F_ADD_SEALS, seals), 0);
  return fd;
}

TEST(MappedArena, MayHaveMoreSealsThanItNeedsButNotFewer) {
  constexpr int kNeeded = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  const auto maps = [](int seals) {
    return MappedArena(FileWithSeals(seals)).Find(0, 1) != nullptr;
  };
  EXPECT_TRUE(maps(kNeeded));
  EXPECT_TRUE(maps(kNeeded | F_SEAL_FUTURE_WRITE));
  EXPECT_FALSE(maps(F_SEAL_GROW | F_SEAL_SEAL));
}

TEST(MappedArena, WhatIsNoArenaHasNoMemory) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[1]);
  EXPECT_EQ(MappedArena(ends[0]).Find(0, 1), nullptr);
  const MappedArena arena(dup(SharedArena::Get()->reader_fd()));
  EXPECT_NE(arena.Find(0, 1), nullptr);
  EXPECT_EQ(arena.Find(SharedArena::kBytes, 1), nullptr);
  EXPECT_EQ(arena.Find(1, SharedArena::kBytes), nullptr);
}

}  // namespace
}  // namespace sluice
