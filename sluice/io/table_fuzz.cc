// Any bytes are a table, or an error. Checksums do not count here.
#include <cstdlib>

#include "sluice/base/memory_file_system.h"
#include "sluice/io/table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sluice::MemoryFileSystem files;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (!files.WriteFile("t", bytes).ok()) std::abort();
  auto file = files.NewRandomAccess("t");
  if (!file.ok()) std::abort();
  auto table =
      sluice::Table::Open(*std::move(file), /*verify_checksums=*/false);
  if (!table.ok()) return 0;
  std::string last;
  (*table)
      ->Scan("",
             [&](std::string_view key, std::string_view value) {
               last.assign(key);
               last.append(value);
               return true;
             })
      .IgnoreError();  // Most inputs are broken.
  (*table)->Find(last).status().IgnoreError();
  return 0;
}
