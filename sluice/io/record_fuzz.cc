// Any bytes are records, or an error. The first byte chooses the packing and
// whether checksums count, as no fuzzer guesses them.
#include <cstdlib>

#include "sluice/base/memory_file_system.h"
#include "sluice/io/record_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  sluice::MemoryFileSystem files;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (!files.WriteFile("f", bytes.substr(1)).ok()) std::abort();
  auto reader = sluice::RecordReader::Open(
      files, "f", static_cast<sluice::Compression>(data[0] % 3));
  if (!reader.ok()) std::abort();
  (*reader)->set_verify_checksums(data[0] < 128);
  std::string record;
  // A packed file may unpack to a thousand times its size.
  for (int i = 0; i < 1000; ++i) {
    const uint64_t before = (*reader)->offset();
    const absl::StatusOr<bool> found = (*reader)->Read(&record);
    if (!found.ok() || !*found) break;
    if ((*reader)->offset() != before + record.size() + 16) std::abort();
  }
  return 0;
}
