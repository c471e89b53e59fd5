// Any two files are a checkpoint, or an error. The input is four bytes with the
// size of the index file, the index file and the data file. Checksums do not
// count here.
#include <cstdlib>

#include "sluice/base/coding.h"
#include "sluice/base/memory_file_system.h"
#include "sluice/io/bundle_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const uint32_t index_size = sluice::LoadFixed32(bytes.data());
  bytes.remove_prefix(4);
  if (index_size > bytes.size()) return 0;
  sluice::MemoryFileSystem files;
  if (!files.WriteFile("c.index", bytes.substr(0, index_size)).ok() ||
      !files.WriteFile("c.data-00000-of-00001", bytes.substr(index_size))
           .ok()) {
    std::abort();
  }
  auto reader = sluice::BundleReader::Open(files, "c",
                                           /*verify_checksums=*/false);
  if (!reader.ok()) return 0;
  const auto list = (*reader)->List();
  if (!list.ok()) return 0;
  for (const sluice::CheckpointTensor& info : *list) {
    // Slices may claim to cover a huge tensor; the memory for it would be
    // taken, though not touched.
    if (info.shape.size() > 1 << 20) continue;
    const auto tensor = (*reader)->Lookup(info.name);
    if (tensor.ok() &&
        (tensor->dtype() != info.dtype || tensor->shape() != info.shape)) {
      std::abort();
    }
  }
  return 0;
}
