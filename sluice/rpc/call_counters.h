// CallCounters: how many calls of which method, and how many bytes, went one
// way. For people; relaxed, so that counting costs the calls next to nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace sluice {

// Thread-safe.
class CallCounters {
 public:
  struct Counts {
    std::atomic<int64_t> calls{0};
    std::atomic<int64_t> request_bytes{0};
    std::atomic<int64_t> response_bytes{0};
  };

  CallCounters();
  CallCounters(const CallCounters&) = delete;
  CallCounters& operator=(const CallCounters&) = delete;

  // Those of a path ("/tensorflow.WorkerService/RunGraph"). Paths that are not
  // served share one, so that strangers cannot make the table grow.
  Counts& Of(std::string_view path);

  struct Method {
    std::string name;  // "RunGraph"
    int64_t calls = 0;
    int64_t request_bytes = 0;
    int64_t response_bytes = 0;
  };
  // The methods that were called, by name.
  std::vector<Method> List() const;

 private:
  // Never changes after construction.
  absl::flat_hash_map<std::string, Counts*> by_path_;
  std::vector<std::unique_ptr<Counts>> owned_;
  Counts others_;
};

}  // namespace sluice
