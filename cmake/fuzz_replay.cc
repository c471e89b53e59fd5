// The main function of a fuzz target in an ordinary build: calls the target
// once for each file in the folders given, and once with no bytes at all.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

// A failing target aborts, so the name printed last is the culprit.
void Replay(const std::filesystem::path& file) {
  std::fprintf(stderr, "%s\n", file.c_str());
  std::ifstream stream(file, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(stream)),
                          std::istreambuf_iterator<char>());
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()),
                         bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  LLVMFuzzerTestOneInput(nullptr, 0);
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    std::error_code error;
    std::filesystem::recursive_directory_iterator it(argv[i], error), end;
    for (; !error && it != end; it.increment(error)) {
      if (!it->is_regular_file()) continue;
      Replay(it->path());
      ++files;
    }
    if (error) {
      std::fprintf(stderr, "%s: %s\n", argv[i], error.message().c_str());
      return 1;
    }
  }
  std::fprintf(stderr, "%d inputs replayed\n", files);
  return files > 0 ? 0 : 1;
}
