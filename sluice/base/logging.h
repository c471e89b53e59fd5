// Logging in TensorFlow's line shape, to stderr:
//   2026-11-16 09:00:00.123456: I sluice/server/server.cc:42] text
// TF_CPP_MIN_LOG_LEVEL (0 info … 3 fatal) and TF_CPP_MIN_VLOG_LEVEL choose what
// is shown. SLUICE_CHECK is for our own bugs only: nothing a user, a file or a
// peer sends may reach one.
#pragma once

#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace sluice {

enum class LogLevel { kInfo = 0, kWarning = 1, kError = 2, kFatal = 3 };

// The lowest level shown; read once from the environment.
LogLevel MinLogLevel();
int MaxVlogLevel();

// Replaces stderr as the place lines go to, for tests; an empty function puts
// stderr back. The sink gets the whole line without its newline.
void SetLogSinkForTest(std::function<void(LogLevel, const std::string&)> sink);

// The newest `count` warning and error lines of this process, oldest first.
std::vector<std::string> RecentWarnings(int count);

class LogMessage {
 public:
  LogMessage(LogLevel level, const char* file, int line);
  ~LogMessage();
  std::ostream& stream() { return stream_; }

 private:
  const LogLevel level_;
  const char* const file_;
  const int line_;
  std::ostringstream stream_;
};

struct LogVoidify {
  void operator&(std::ostream&) {}
};

#define SLUICE_LOG_INFO ::sluice::LogLevel::kInfo
#define SLUICE_LOG_WARNING ::sluice::LogLevel::kWarning
#define SLUICE_LOG_ERROR ::sluice::LogLevel::kError
#define SLUICE_LOG_FATAL ::sluice::LogLevel::kFatal

#define SLUICE_LOG(level)                                                \
  SLUICE_LOG_##level < ::sluice::MinLogLevel()                           \
      ? (void)0                                                          \
      : ::sluice::LogVoidify() &                                         \
            ::sluice::LogMessage(SLUICE_LOG_##level, __FILE__, __LINE__) \
                .stream()

#define SLUICE_VLOG(n)           \
  (n) > ::sluice::MaxVlogLevel() \
      ? (void)0                  \
      : ::sluice::LogVoidify() & \
            ::sluice::LogMessage(SLUICE_LOG_INFO, __FILE__, __LINE__).stream()

#define SLUICE_CHECK(condition)                                        \
  __builtin_expect(!!(condition), 1)                                   \
      ? (void)0                                                        \
      : ::sluice::LogVoidify() &                                       \
            ::sluice::LogMessage(SLUICE_LOG_FATAL, __FILE__, __LINE__) \
                    .stream()                                          \
                << "Check failed: " #condition " "

}  // namespace sluice
