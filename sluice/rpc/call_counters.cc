#include "sluice/rpc/call_counters.h"

#include <algorithm>

#include "sluice/base/strings.h"
#include "sluice/rpc/paths.h"

namespace sluice {

CallCounters::CallCounters() {
  for (const char* path : paths::kAll) {
    owned_.push_back(std::make_unique<Counts>());
    by_path_.emplace(path, owned_.back().get());
  }
}

CallCounters::Counts& CallCounters::Of(std::string_view path) {
  const auto it = by_path_.find(ToAbsl(path));
  return it == by_path_.end() ? others_ : *it->second;
}

std::vector<CallCounters::Method> CallCounters::List() const {
  std::vector<Method> list;
  const auto add = [&](std::string name, const Counts& counts) {
    const int64_t calls = counts.calls.load(std::memory_order_relaxed);
    if (calls == 0) return;
    list.push_back({std::move(name), calls,
                    counts.request_bytes.load(std::memory_order_relaxed),
                    counts.response_bytes.load(std::memory_order_relaxed)});
  };
  for (const auto& [path, counts] : by_path_) {
    add(path.substr(path.rfind('/') + 1), *counts);
  }
  add("others", others_);
  std::ranges::sort(list, {}, &Method::name);
  return list;
}

}  // namespace sluice
