// Saving and restoring checkpoints. Restores come from the page cache.
#include <benchmark/benchmark.h>

#include <cstring>

#include "sluice/base/crc32c.h"
#include "sluice/base/testing/temp_dir.h"
#include "sluice/io/bundle_reader.h"
#include "sluice/io/bundle_writer.h"

namespace sluice {
namespace {

constexpr int64_t kTensors = 4;

Tensor Filled(int64_t bytes) {
  Tensor tensor(DType::kUint8, {bytes});
  std::memset(tensor.mutable_raw(), 7, bytes);
  return tensor;
}

absl::Status Save(const std::string& prefix, const Tensor& tensor, bool sync) {
  BundleWriter writer(RealFileSystem(), prefix, {.sync = sync});
  for (int64_t i = 0; i < kTensors; ++i) {
    const absl::Status status = writer.Add("t" + std::to_string(i), tensor);
    if (!status.ok()) return status;
  }
  return writer.Finish();
}

// Arguments: megabytes in all, whether the disk is waited for.
void BM_Save(benchmark::State& state) {
  TempDir dir;
  const int64_t bytes = state.range(0) << 20;
  const Tensor tensor = Filled(bytes / kTensors);
  for (auto _ : state) {
    const absl::Status status = Save(dir / "m", tensor, state.range(1) != 0);
    if (!status.ok()) state.SkipWithError(status.ToString().c_str());
  }
  state.SetBytesProcessed(state.iterations() * bytes);
}
BENCHMARK(BM_Save)
    ->Args({1, 0})
    ->Args({1, 1})
    ->Args({400, 0})
    ->Args({400, 1})
    ->UseRealTime();

void BM_Restore(benchmark::State& state) {
  TempDir dir;
  const int64_t bytes = state.range(0) << 20;
  Tensor tensor = Filled(bytes / kTensors);
  if (!Save(dir / "m", tensor, false).ok()) std::abort();
  for (auto _ : state) {
    auto reader = BundleReader::Open(RealFileSystem(), dir / "m");
    for (int64_t i = 0; i < kTensors; ++i) {
      const absl::Status status =
          (*reader)->ReadInto("t" + std::to_string(i), &tensor);
      if (!status.ok()) state.SkipWithError(status.ToString().c_str());
    }
  }
  state.SetBytesProcessed(state.iterations() * bytes);
}
BENCHMARK(BM_Restore)->Args({400})->UseRealTime();

void BM_Crc32c(benchmark::State& state) {
  const std::string bytes(state.range(0), 'x');
  for (auto _ : state) benchmark::DoNotOptimize(Crc32c(bytes));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_Crc32c)->Arg(64)->Arg(4096)->Arg(1 << 20);

}  // namespace
}  // namespace sluice

BENCHMARK_MAIN();
