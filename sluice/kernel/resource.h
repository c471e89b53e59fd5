// Resources: state that outlives a step (variables, queues, tables). A device
// keeps them by (container, type, name); kernels hold counted references.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <typeindex>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/base/mutex.h"
#include "sluice/base/status.h"

namespace sluice {

// What is in a resource by which steps hand values to each other, and how many
// of them wait to add one or to take one.
struct QueueDepth {
  std::string kind;
  int64_t elements = 0;
  int64_t adding = 0;
  int64_t taking = 0;
};

// Counted base class. Thread-safe counting.
class Resource {
 public:
  virtual ~Resource() = default;
  // One line for listings.
  virtual std::string DebugString() const = 0;
  // Nothing if steps do not wait here.
  virtual std::optional<QueueDepth> depth() const { return std::nullopt; }

  void Ref() const { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Unref() const {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  mutable std::atomic<int> refs_{1};
};

// A counted pointer to a Resource.
template <typename T>
class RefPtr {
 public:
  RefPtr() = default;
  RefPtr(std::nullptr_t) {}  // NOLINT
  // Takes over the reference that `p` stands for.
  static RefPtr Take(T* p) { return RefPtr(p); }
  // Adds one.
  static RefPtr Share(T* p) {
    if (p != nullptr) p->Ref();
    return RefPtr(p);
  }
  RefPtr(const RefPtr& other) : RefPtr(Share(other.p_)) {}
  RefPtr(RefPtr&& other) noexcept : p_(std::exchange(other.p_, nullptr)) {}
  template <typename U>
  RefPtr(RefPtr<U> other) : p_(other.release()) {}  // NOLINT
  RefPtr& operator=(RefPtr other) noexcept {
    std::swap(p_, other.p_);
    return *this;
  }
  ~RefPtr() {
    if (p_ != nullptr) p_->Unref();
  }
  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  T* release() { return std::exchange(p_, nullptr); }

 private:
  explicit RefPtr(T* p) : p_(p) {}
  T* p_ = nullptr;
};

template <typename T, typename... Args>
RefPtr<T> MakeRef(Args&&... args) {
  return RefPtr<T>::Take(new T(std::forward<Args>(args)...));
}

// The resources of one device. Thread-safe.
class ResourceManager {
 public:
  explicit ResourceManager(std::string default_container);
  ~ResourceManager();

  // Used where a container is not named: the device's job.
  const std::string& default_container() const { return default_container_; }

  template <typename T>
  absl::StatusOr<RefPtr<T>> Lookup(std::string_view container,
                                   std::string_view name) {
    SLUICE_ASSIGN_OR_RETURN(Resource * found, Find(container, name, typeid(T)));
    return RefPtr<T>::Take(static_cast<T*>(found));
  }
  // Calls `create` (under no lock that others wait for) if there is none. If
  // two callers race, one result is used and the other dropped.
  template <typename T>
  absl::StatusOr<RefPtr<T>> LookupOrCreate(
      std::string_view container, std::string_view name,
      absl::FunctionRef<absl::StatusOr<RefPtr<T>>()> create) {
    auto found = Find(container, name, typeid(T));
    if (found.ok()) return RefPtr<T>::Take(static_cast<T*>(*found));
    SLUICE_ASSIGN_OR_RETURN(RefPtr<T> made, create());
    Resource* kept = Insert(container, name, typeid(T), made.release());
    return RefPtr<T>::Take(static_cast<T*>(kept));
  }
  // Replaces nothing: an error if there is one already.
  template <typename T>
  absl::Status Create(std::string_view container, std::string_view name,
                      RefPtr<T> resource) {
    T* added = resource.release();
    Resource* kept = Insert(container, name, typeid(T), added);
    const bool fresh = kept == added;
    kept->Unref();
    if (fresh) return absl::OkStatus();
    return AlreadyExists("Resource ", container, "/", name, " exists already");
  }
  template <typename T>
  absl::Status Delete(std::string_view container, std::string_view name) {
    return Erase(container, name, typeid(T));
  }
  // Drops everything in `container`; empty means the default one, kAll all of
  // them but those of steps under way.
  static constexpr std::string_view kAll = "*";
  void Cleanup(std::string_view container);
  // "container/name: description", sorted.
  std::vector<std::string> List() const;
  // "container/name" and depth of those that have one, sorted.
  std::vector<std::pair<std::string, QueueDepth>> ListQueues() const;

 private:
  struct State;
  absl::StatusOr<Resource*> Find(std::string_view container,
                                 std::string_view name, std::type_index type);
  // Returns what is kept under the name, with a reference for the caller.
  Resource* Insert(std::string_view container, std::string_view name,
                   std::type_index type, Resource* resource);
  absl::Status Erase(std::string_view container, std::string_view name,
                     std::type_index type);
  std::string_view ContainerOr(std::string_view container) const {
    return container.empty() ? std::string_view(default_container_) : container;
  }

  const std::string default_container_;
  std::unique_ptr<State> state_;
};

// A name TensorFlow would accept for a container; an error otherwise.
absl::Status CheckContainerName(std::string_view container);

}  // namespace sluice
