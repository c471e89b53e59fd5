#include "sluice/tensor/shared_arena.h"

#include <gtest/gtest.h>
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
  const MappedArena arena(dup(SharedArena::Get()->fd()));
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

TEST(MappedArena, WhatIsNoArenaHasNoMemory) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[1]);
  EXPECT_EQ(MappedArena(ends[0]).Find(0, 1), nullptr);
  const MappedArena arena(dup(SharedArena::Get()->fd()));
  EXPECT_NE(arena.Find(0, 1), nullptr);
  EXPECT_EQ(arena.Find(SharedArena::kBytes, 1), nullptr);
  EXPECT_EQ(arena.Find(1, SharedArena::kBytes), nullptr);
}

}  // namespace
}  // namespace sluice
