// Any file is the state of a directory, is ignored, or is an error; and what is
// read from it can be written and read again.
#include <cstdlib>

#include "sluice/base/memory_file_system.h"
#include "sluice/io/checkpoint_state.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sluice::MemoryFileSystem files;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (!files.MkDirs("d").ok() || !files.WriteFile("d/checkpoint", bytes).ok()) {
    std::abort();
  }
  const auto state = sluice::ReadCheckpointState(files, "d");
  sluice::LatestCheckpoint(files, "d");
  if (!state.ok() || !state->has_value()) return 0;
  const std::vector<std::string> all(
      (*state)->all_model_checkpoint_paths().begin(),
      (*state)->all_model_checkpoint_paths().end());
  const auto again = sluice::MakeCheckpointState(
      "d", (*state)->model_checkpoint_path(), all, /*relative=*/true);
  if (!sluice::WriteCheckpointState(files, "d", again, "other").ok()) {
    std::abort();
  }
  const auto reread = sluice::ReadCheckpointState(files, "d", "other");
  if (!reread.ok() || !reread->has_value()) std::abort();
  return 0;
}
