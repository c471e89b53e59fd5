// simulate: runs seeds of the cluster simulation (docs/simulation.md).
//
//   simulate --seeds 1..10000     a line for each violation, a summary at last
//   simulate --seed 17            one seed, with everything that happened
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "sluice/base/logging.h"
#include "tests/simulation/run.h"

namespace sluice::sim {
namespace {

bool ParseNumber(std::string_view text, uint64_t* number) {
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

int RunOne(uint64_t seed) {
  RunOptions options;
  options.seed = seed;
  options.keep_trace = true;
  const RunReport report = RunSeed(options);
  for (const std::string& line : report.trace) std::puts(line.c_str());
  std::printf("seed %lu: trace %016lx, %zu violations\n", seed, report.hash,
              report.violations.size());
  for (const std::string& what : report.violations) std::puts(what.c_str());
  return report.violations.empty() ? 0 : 1;
}

int RunMany(const char* program, uint64_t first, uint64_t last) {
  uint64_t bad = 0;
  RunReport sum;
  for (uint64_t seed = first; seed <= last; ++seed) {
    RunOptions options;
    options.seed = seed;
    const RunReport report = RunSeed(options);
    sum.attempted += report.attempted;
    sum.acknowledged += report.acknowledged;
    sum.sessions += report.sessions;
    sum.deaths += report.deaths;
    sum.restarts += report.restarts;
    sum.taken_in += report.taken_in;
    sum.messages += report.messages;
    sum.faults += report.faults;
    sum.seconds += report.seconds;
    sum.longest_step = std::max(sum.longest_step, report.longest_step);
    if (report.violations.empty()) continue;
    ++bad;
    std::printf("seed %lu: %s\n  all of it: %s --seed %lu\n", seed,
                report.violations[0].c_str(), program, seed);
    std::fflush(stdout);
  }
  std::printf(
      "%lu seeds, %lu with violations: %d of %d updates acknowledged, %d "
      "sessions, %d deaths of clients, %d restarts, %d of them borne by "
      "a session, %ld messages, %ld faults, "
      "%.0f virtual hours, "
      "longest step %.1f s\n",
      last - first + 1, bad, sum.acknowledged, sum.attempted, sum.sessions,
      sum.deaths, sum.restarts, sum.taken_in, sum.messages, sum.faults,
      sum.seconds / 3600, sum.longest_step);
  return bad == 0 ? 0 : 1;
}

int Main(int argc, char** argv) {
  SetLogSinkForTest([](LogLevel, const std::string&) {});
  uint64_t first = 0;
  uint64_t last = 0;
  if (argc == 3 && std::string_view(argv[1]) == "--seed" &&
      ParseNumber(argv[2], &first)) {
    return RunOne(first);
  }
  const std::string_view range = argc == 3 ? argv[2] : "";
  const size_t dots = range.find("..");
  if (argc == 3 && std::string_view(argv[1]) == "--seeds" &&
      dots != range.npos && ParseNumber(range.substr(0, dots), &first) &&
      ParseNumber(range.substr(dots + 2), &last) && first <= last) {
    return RunMany(argv[0], first, last);
  }
  std::fprintf(stderr, "usage: simulate --seeds FIRST..LAST | --seed NUMBER\n");
  return 2;
}

}  // namespace
}  // namespace sluice::sim

int main(int argc, char** argv) { return sluice::sim::Main(argc, argv); }
