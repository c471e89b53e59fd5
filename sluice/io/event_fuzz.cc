// Any bytes are events, or an error. The first byte says whether checksums
// count, as no fuzzer guesses them.
#include <cstdlib>

#include "sluice/base/memory_file_system.h"
#include "sluice/io/event_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  sluice::MemoryFileSystem files;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (!files.WriteFile("f", bytes.substr(1)).ok()) std::abort();
  auto records = sluice::RecordReader::Open(files, "f");
  if (!records.ok()) std::abort();
  (*records)->set_verify_checksums(data[0] < 128);
  sluice::EventReader reader(*std::move(records));
  sluice::pb::Event event;
  for (int i = 0; i < 1000; ++i) {
    const absl::StatusOr<bool> found = reader.Read(&event);
    if (!found.ok() || !*found) break;
  }
  return 0;
}
