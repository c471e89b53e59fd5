#include "sluice/rpc/grpc_log.h"

#include <grpc/support/log.h>

#include <chrono>
#include <map>
#include <mutex>
#include <string>

#include "sluice/base/logging.h"
#include "sluice/base/mutex.h"

namespace sluice {
namespace {

constexpr auto kRepeatPause = std::chrono::seconds(10);
// Different words remembered; more are forgotten all at once.
constexpr size_t kMost = 100;

// True for words that were not heard of late.
bool IsNews(const std::string& text) {
  struct Heard {
    Mutex mu;
    std::map<std::string, std::chrono::steady_clock::time_point> at
        SLUICE_GUARDED_BY(mu);
  };
  static Heard* const heard = new Heard;
  const auto now = std::chrono::steady_clock::now();
  MutexLock lock(heard->mu);
  if (heard->at.size() >= kMost) heard->at.clear();
  const auto [it, added] = heard->at.try_emplace(text, now);
  if (!added && now - it->second < kRepeatPause) return false;
  it->second = now;
  return true;
}

void Log(gpr_log_func_args* args) {
  if (args->severity != GPR_LOG_SEVERITY_ERROR ||
      MinLogLevel() > LogLevel::kWarning || !IsNews(args->message)) {
    return;
  }
  LogMessage(LogLevel::kWarning, args->file, args->line).stream()
      << "gRPC: " << args->message;
}

}  // namespace

void TakeOverGrpcLog() {
  static std::once_flag once;
  std::call_once(once, [] { gpr_set_log_function(&Log); });
}

}  // namespace sluice
