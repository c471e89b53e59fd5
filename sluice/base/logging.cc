#include "sluice/base/logging.h"

#include <sys/time.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <deque>

#include "sluice/base/mutex.h"

namespace sluice {
namespace {

constexpr size_t kRecentKept = 128;

int IntFromEnvironment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : std::atoi(text);
}

struct Sink {
  Mutex mu;
  std::function<void(LogLevel, const std::string&)> replacement
      SLUICE_GUARDED_BY(mu);
  std::deque<std::string> recent SLUICE_GUARDED_BY(mu);
};

Sink& TheSink() {
  static Sink* sink = new Sink;  // Never destroyed: threads log at exit.
  return *sink;
}

// Paths in log lines start at the project's own root.
const char* ShortPath(const char* file) {
  const std::string_view path(file);
  const size_t at = path.rfind("sluice/");
  return at == std::string_view::npos ? file : file + at;
}

std::string TimeText() {
  timeval now;
  gettimeofday(&now, nullptr);
  tm parts;
  localtime_r(&now.tv_sec, &parts);
  char date[32];
  strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &parts);
  char text[48];
  std::snprintf(text, sizeof(text), "%s.%06d", date,
                static_cast<int>(now.tv_usec));
  return text;
}

}  // namespace

LogLevel MinLogLevel() {
  static const LogLevel level =
      static_cast<LogLevel>(IntFromEnvironment("TF_CPP_MIN_LOG_LEVEL"));
  return level;
}

int MaxVlogLevel() {
  static const int level = IntFromEnvironment("TF_CPP_MIN_VLOG_LEVEL");
  return level;
}

void SetLogSinkForTest(std::function<void(LogLevel, const std::string&)> sink) {
  MutexLock lock(TheSink().mu);
  TheSink().replacement = std::move(sink);
}

std::vector<std::string> RecentWarnings(int count) {
  Sink& sink = TheSink();
  MutexLock lock(sink.mu);
  const size_t n = std::min<size_t>(count, sink.recent.size());
  return {sink.recent.end() - n, sink.recent.end()};
}

LogMessage::LogMessage(LogLevel level, const char* file, int line)
    : level_(level), file_(file), line_(line) {}

LogMessage::~LogMessage() {
  std::string text = TimeText();
  text += ": ";
  text += "IWEF"[static_cast<int>(level_)];
  text += ' ';
  text += ShortPath(file_);
  text += ':' + std::to_string(line_) + "] " + stream_.str();
  std::function<void(LogLevel, const std::string&)> replacement;
  {
    Sink& sink = TheSink();
    MutexLock lock(sink.mu);
    if (level_ >= LogLevel::kWarning) {
      sink.recent.push_back(text);
      if (sink.recent.size() > kRecentKept) sink.recent.pop_front();
    }
    replacement = sink.replacement;
  }
  if (replacement) {
    replacement(level_, text);
  } else {
    text += '\n';
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  }
  if (level_ == LogLevel::kFatal) std::abort();
}

}  // namespace sluice
