// ServiceFuzzer: one fuzz target over the methods of a service. Flags of its
// own, beside those of libFuzzer:
//
//   --methods        prints the names of the methods
//   --method=NAME    sends nothing but requests of this method
//   --history=FILE   keeps the inputs that the task in use has seen in FILE
//   --replay=FILE    runs such inputs again
//
// A task serves many inputs, as making one takes longer than most calls. What
// an input leaves behind can matter to a later one, hence the history.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <span>

#include "sluice/rpc/testing/service_fuzz.h"

namespace sluice {

// `Service` is a task and a client of its service: Run(path, bytes, number)
// sends the request of an input, the first of which has the number 1.
// Thread-compatible.
template <typename Service>
class ServiceFuzzer {
 public:
  explicit ServiceFuzzer(std::span<const FuzzedMethod> methods)
      : methods_(methods), runs_(methods.size()), accepted_(methods.size()) {
    // As where requests come in; so a step that takes long goes on elsewhere.
    Worker::MarkNetworkThread();
    // Only what is wrong should be printed, not what the inputs ask for.
    SetLogSinkForTest([](LogLevel, const std::string&) {});
    google::protobuf::SetLogHandler(nullptr);
  }

  void ReadFlags(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      const std::string flag = argv[i];
      const std::string value = flag.substr(flag.find('=') + 1);
      if (flag == "--methods") {
        for (const FuzzedMethod& method : methods_) {
          std::printf("%s\n", method.name().c_str());
        }
        std::exit(0);
      }
      if (flag.starts_with("--method=")) Pin(value);
      if (flag.starts_with("--history=")) {
        history_ = open(value.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
      }
      if (flag.starts_with("--replay=")) {
        Replay(value);
        std::exit(0);
      }
    }
  }

  // How often each method was called, and how often it had no objection.
  void PrintRuns() const {
    for (size_t i = 0; i < runs_.size(); ++i) {
      if (runs_[i] == 0) continue;
      std::fprintf(stderr, "runs: %s %lld accepted: %lld\n",
                   methods_[i].name().c_str(), static_cast<long long>(runs_[i]),
                   static_cast<long long>(AcceptedCalls()[methods_[i].path]));
    }
  }

  size_t Mutate(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
    if (max_size == 0) return 0;
    if (size == 0) data[0] = 0;
    if (pinned_ >= 0) data[0] = static_cast<uint8_t>(pinned_);
    std::string old(reinterpret_cast<char*>(data) + 1, size > 0 ? size - 1 : 0);
    const std::vector<std::string>& accepted =
        accepted_[data[0] % methods_.size()];
    if (!accepted.empty() && seed / 64 % 2 == 0) {
      old = accepted[seed / 128 % accepted.size()];
    }
    const std::string bytes = MutateRequest(MethodOf(data[0]), old, seed);
    if (bytes.size() + 1 > max_size) return std::max<size_t>(size, 1);
    std::copy(bytes.begin(), bytes.end(), data + 1);
    return bytes.size() + 1;
  }

  // -1 if the input is for another method than the one asked for.
  int Run(const uint8_t* data, size_t size) {
    if (size == 0 && pinned_ < 0) return 0;
    const size_t method =
        size > 0 ? data[0] % methods_.size() : static_cast<size_t>(pinned_);
    if (pinned_ >= 0 && method != static_cast<size_t>(pinned_)) return -1;
    const std::string bytes(reinterpret_cast<const char*>(data) + 1,
                            size > 0 ? size - 1 : 0);
    if (service_ == nullptr || inputs_ == kInputsPerTask) Renew();
    ++inputs_;
    ++runs_[method];
    Remember(static_cast<uint8_t>(method), bytes);
    const int64_t accepted_before = AcceptedCalls()[methods_[method].path];
    service_->Run(methods_[method].path,
                  WithOwnIds(methods_[method], bytes, inputs_), inputs_);
    if (AcceptedCalls()[methods_[method].path] > accepted_before) {
      Keep(bytes, runs_[method], &accepted_[method]);
    }
    return 0;
  }

 private:
  static constexpr int kInputsPerTask = 256;

  // Those that came first, the committed ones among them, are kept for good.
  static void Keep(const std::string& bytes, int64_t run,
                   std::vector<std::string>* accepted) {
    constexpr size_t kMost = 256;
    constexpr size_t kForGood = 32;
    if (accepted->size() < kMost) {
      accepted->push_back(bytes);
    } else {
      (*accepted)[kForGood + run % (kMost - kForGood)] = bytes;
    }
  }

  const FuzzedMethod& MethodOf(uint8_t byte) const {
    return methods_[byte % methods_.size()];
  }

  void Pin(const std::string& name) {
    for (size_t i = 0; i < methods_.size(); ++i) {
      if (methods_[i].name() == name) pinned_ = static_cast<int>(i);
    }
    if (pinned_ >= 0) return;
    std::fprintf(stderr, "There is no method %s\n", name.c_str());
    std::exit(1);
  }

  void Renew() {
    service_ = nullptr;
    service_ = std::make_unique<Service>();
    inputs_ = 0;
    if (history_ < 0) return;
    if (ftruncate(history_, 0) != 0) std::abort();
    lseek(history_, 0, SEEK_SET);
  }

  // Written at once, so that it is there after any kind of end. The size comes
  // first.
  void Remember(uint8_t method, const std::string& bytes) {
    if (history_ < 0) return;
    const auto size = static_cast<uint32_t>(bytes.size() + 1);
    std::string record(reinterpret_cast<const char*>(&size), sizeof(size));
    record += static_cast<char>(method);
    record += bytes;
    if (write(history_, record.data(), record.size()) < 0) std::abort();
  }

  void Replay(const std::string& file) {
    std::ifstream stream(file, std::ios::binary);
    uint32_t size;
    while (stream.read(reinterpret_cast<char*>(&size), sizeof(size))) {
      std::string input(size, '\0');
      stream.read(input.data(), size);
      Run(reinterpret_cast<const uint8_t*>(input.data()), size);
    }
  }

  const std::span<const FuzzedMethod> methods_;
  std::vector<int64_t> runs_;
  // Of each method, requests that were accepted. Half of all mutations begin
  // with one: what is refused for its session says nothing of what it asks.
  std::vector<std::vector<std::string>> accepted_;
  int pinned_ = -1;
  int history_ = -1;
  std::unique_ptr<Service> service_;
  int inputs_ = 0;  // That the service has seen.
};

}  // namespace sluice

// What libFuzzer calls, for a target with a table `kMethods`.
#define SLUICE_FUZZ_SERVICE(SERVICE)                                          \
  namespace sluice {                                                          \
  namespace {                                                                 \
  /* Never deleted: its threads may run until the end. */                     \
  ServiceFuzzer<SERVICE>& TheFuzzer() {                                       \
    static auto* fuzzer = new ServiceFuzzer<SERVICE>(kMethods);               \
    return *fuzzer;                                                           \
  }                                                                           \
  }                                                                           \
  }                                                                           \
  extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {              \
    std::atexit([] { sluice::TheFuzzer().PrintRuns(); });                     \
    sluice::TheFuzzer().ReadFlags(*argc, *argv);                              \
    return 0;                                                                 \
  }                                                                           \
  extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,       \
                                            size_t max_size, unsigned seed) { \
    return sluice::TheFuzzer().Mutate(data, size, max_size, seed);            \
  }                                                                           \
  extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {   \
    return sluice::TheFuzzer().Run(data, size);                               \
  }
