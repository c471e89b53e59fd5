#include "sluice/kernel/resource.h"

#include <cxxabi.h>

#include <atomic>
#include <map>
#include <set>
#include <tuple>

#include "sluice/kernel/resource_epoch.h"

namespace sluice {
namespace {

std::atomic<uint64_t> epoch{1};

bool IsStepContainer(std::string_view container) {
  return container.starts_with("__per_step_");
}

// After something of `container` went.
void BeginEpoch(std::string_view container) {
  if (IsStepContainer(container)) return;
  epoch.fetch_add(1, std::memory_order_acq_rel);
}

}  // namespace

uint64_t ResourceEpoch() { return epoch.load(std::memory_order_acquire); }

struct ResourceManager::State {
  using Key = std::tuple<std::string, std::string, std::type_index>;
  mutable Mutex mu;
  // std::map: few lookups on a hot path (kernels keep what they found), and
  // a container is a contiguous range.
  std::map<Key, Resource*> resources SLUICE_GUARDED_BY(mu);
};

ResourceManager::ResourceManager(std::string default_container)
    : default_container_(std::move(default_container)),
      state_(std::make_unique<State>()) {}

ResourceManager::~ResourceManager() {
  std::map<State::Key, Resource*> all;
  {
    MutexLock lock(state_->mu);
    all.swap(state_->resources);
  }
  for (auto& [key, resource] : all) resource->Unref();
}

namespace {
std::string TypeText(std::type_index type) {
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), std::free);
  return status == 0 ? text.get() : type.name();
}
}  // namespace

absl::StatusOr<Resource*> ResourceManager::Find(std::string_view container,
                                                std::string_view name,
                                                std::type_index type) {
  container = ContainerOr(container);
  MutexLock lock(state_->mu);
  auto it = state_->resources.find(
      State::Key(std::string(container), std::string(name), type));
  if (it != state_->resources.end()) {
    it->second->Ref();
    return it->second;
  }
  auto first = state_->resources.lower_bound(
      State::Key(std::string(container), "", typeid(void)));
  const bool container_exists = first != state_->resources.end() &&
                                std::get<0>(first->first) == container;
  if (!container_exists) {
    return NotFound("Container ", container,
                    " does not exist. (Could not find resource: ", container,
                    "/", name, ")");
  }
  return NotFound("Resource ", container, "/", name, "/", TypeText(type),
                  " does not exist.");
}

Resource* ResourceManager::Insert(std::string_view container,
                                  std::string_view name, std::type_index type,
                                  Resource* resource) {
  Resource* kept;
  {
    MutexLock lock(state_->mu);
    auto [it, added] = state_->resources.try_emplace(
        State::Key(std::string(ContainerOr(container)), std::string(name),
                   type),
        resource);
    kept = it->second;
    kept->Ref();
    if (added) return kept;
  }
  resource->Unref();
  return kept;
}

absl::Status ResourceManager::Erase(std::string_view container,
                                    std::string_view name,
                                    std::type_index type) {
  Resource* gone = nullptr;
  {
    MutexLock lock(state_->mu);
    auto it = state_->resources.find(State::Key(
        std::string(ContainerOr(container)), std::string(name), type));
    if (it == state_->resources.end()) {
      return NotFound("Resource ", ContainerOr(container), "/", name, "/",
                      TypeText(type), " does not exist.");
    }
    gone = it->second;
    state_->resources.erase(it);
  }
  BeginEpoch(container);
  gone->Unref();
  return absl::OkStatus();
}

void ResourceManager::Cleanup(std::string_view container) {
  std::vector<Resource*> gone;
  std::set<std::string> emptied;
  {
    MutexLock lock(state_->mu);
    std::erase_if(state_->resources, [&](const auto& entry) {
      const std::string& name = std::get<0>(entry.first);
      const bool meant = container == kAll ? !IsStepContainer(name)
                                           : name == ContainerOr(container);
      if (!meant) return false;
      emptied.insert(name);
      gone.push_back(entry.second);
      return true;
    });
  }
  for (const std::string& name : emptied) BeginEpoch(name);
  for (Resource* resource : gone) resource->Unref();
}

std::vector<std::string> ResourceManager::List() const {
  std::vector<std::string> lines;
  MutexLock lock(state_->mu);
  for (const auto& [key, resource] : state_->resources) {
    lines.push_back(StrCat(std::get<0>(key), "/", std::get<1>(key), ": ",
                           resource->DebugString()));
  }
  return lines;
}

std::vector<std::pair<std::string, QueueDepth>> ResourceManager::ListQueues()
    const {
  std::vector<std::pair<std::string, QueueDepth>> queues;
  MutexLock lock(state_->mu);
  for (const auto& [key, resource] : state_->resources) {
    std::optional<QueueDepth> depth = resource->depth();
    if (!depth) continue;
    queues.emplace_back(StrCat(std::get<0>(key), "/", std::get<1>(key)),
                        *std::move(depth));
  }
  return queues;
}

absl::Status CheckContainerName(std::string_view container) {
  for (size_t i = 0; i < container.size(); ++i) {
    const char c = container[i];
    const bool fine = isalnum(static_cast<unsigned char>(c)) || c == '.' ||
                      (i > 0 && (c == '-' || c == '/'));
    if (!fine) {
      return InvalidArgument("container contains invalid characters: ",
                             container);
    }
  }
  return absl::OkStatus();
}

}  // namespace sluice
