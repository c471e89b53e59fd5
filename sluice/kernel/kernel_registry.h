// The registry of kernels.
//
//   SLUICE_KERNEL(Neg, kCpu).ForTypes<NumberTypes>("T",
//       []<typename T>(KernelContext& ctx) { return Neg<T>(ctx); });
//   SLUICE_KERNEL(NoOp, kCpu).Function([](KernelContext&) { return
//   absl::OkStatus(); }); SLUICE_KERNEL(FIFOQueueV2,
//   kCpu).Class<FifoQueueKernel>();
//
// A class has `static absl::StatusOr<std::unique_ptr<Kernel>> Create(
// const KernelConstruction&)`.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/kernel/kernel.h"

namespace sluice {

inline constexpr char kCpu[] = "CPU";

template <typename... Ts>
struct TypeList {};
using FloatTypes = TypeList<float, double>;
using RealTypes = TypeList<float, double, int32_t, int64_t>;
// Every type whose kernels exist.
using AllTypes = TypeList<float, double, int32_t, int64_t, bool, std::string>;
using IndexTypes = TypeList<int32_t, int64_t>;

using KernelFn = absl::Status (*)(KernelContext&);
using KernelFactory =
    absl::StatusOr<std::unique_ptr<Kernel>> (*)(const KernelConstruction&);

// A registration: an op on a device type, for given values of type attributes.
struct KernelEntry {
  const char* op = nullptr;
  const char* device = nullptr;
  std::vector<std::pair<const char*, DType>> constraints;
  KernelFn function = nullptr;  // Exactly one of these two.
  KernelFactory factory = nullptr;
  std::vector<const char*> host_memory;  // Arguments that stay in host memory.

  bool Fits(const Node& node) const;
};

// Thread-safe; filled before main.
class KernelRegistry {
 public:
  static KernelRegistry& Global();
  void Add(KernelEntry entry);
  // The kernel for `node` on a device of this type, or nullptr.
  const KernelEntry* Find(const Node& node, std::string_view device_type) const;
  // All registrations of an op, for messages: "  device='CPU'; T in
  // [DT_FLOAT]\n".
  std::string Describe(std::string_view op) const;

 private:
  struct State;
  static State& state();
};

// Makes the kernel, or says in TensorFlow's words that there is none.
absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(const Node& node,
                                                   Device& device);

// The function behind a kernel that is only a function; executors call it
// without the virtual hop. nullptr otherwise.
KernelFn PlainFunction(const Kernel& kernel);

class KernelBuilder {
 public:
  KernelBuilder(const char* op, const char* device) {
    entry_.op = op;
    entry_.device = device;
  }
  // Restricts a type attribute; may be repeated.
  KernelBuilder&& Type(const char* attr, DType type) && {
    entry_.constraints.emplace_back(attr, type);
    return std::move(*this);
  }
  KernelBuilder&& HostMemory(const char* arg) && {
    entry_.host_memory.push_back(arg);
    return std::move(*this);
  }
  KernelBuilder&& Function(KernelFn fn) && {
    Add(fn, nullptr, {});
    return std::move(*this);
  }
  template <typename K>
  KernelBuilder&& Class() && {
    Add(nullptr, &K::Create, {});
    return std::move(*this);
  }
  // One registration per type, with the body instantiated for it.
  template <typename List, typename Body>
  KernelBuilder&& ForTypes(const char* attr, Body) && {
    AddEach<Body>(attr, List());
    return std::move(*this);
  }
  // Two type attributes, every combination.
  template <typename ListA, typename ListB, typename Body>
  KernelBuilder&& ForTypePairs(const char* a, const char* b, Body) && {
    AddPairs<Body, ListB>(a, b, ListA());
    return std::move(*this);
  }
  // As ForTypes for classes: K<T>::Create.
  template <typename List, template <typename> class K>
  KernelBuilder&& ClassForTypes(const char* attr) && {
    AddClasses<K>(attr, List());
    return std::move(*this);
  }

 private:
  using Constraints = std::vector<std::pair<const char*, DType>>;

  template <typename Body, typename T>
  static absl::Status Call(KernelContext& ctx) {
    return Body{}.template operator()<T>(ctx);
  }
  template <typename Body, typename A, typename B>
  static absl::Status CallPair(KernelContext& ctx) {
    return Body{}.template operator()<A, B>(ctx);
  }
  template <typename Body, typename... Ts>
  void AddEach(const char* attr, TypeList<Ts...>) {
    (Add(&Call<Body, Ts>, nullptr, {{attr, DTypeOf<Ts>::value}}), ...);
  }
  template <typename Body, typename ListB, typename... As>
  void AddPairs(const char* a, const char* b, TypeList<As...>) {
    (AddPairRow<Body, As>(a, b, ListB()), ...);
  }
  template <typename Body, typename A, typename... Bs>
  void AddPairRow(const char* a, const char* b, TypeList<Bs...>) {
    (Add(&CallPair<Body, A, Bs>, nullptr,
         {{a, DTypeOf<A>::value}, {b, DTypeOf<Bs>::value}}),
     ...);
  }
  template <template <typename> class K, typename... Ts>
  void AddClasses(const char* attr, TypeList<Ts...>) {
    (Add(nullptr, &K<Ts>::Create, {{attr, DTypeOf<Ts>::value}}), ...);
  }
  void Add(KernelFn fn, KernelFactory factory, const Constraints& constraints);

  KernelEntry entry_;
};

struct KernelRegistration {
  KernelRegistration(KernelBuilder&&) {}  // NOLINT: SLUICE_KERNEL reads better.
};

#define SLUICE_KERNEL(OP, DEVICE)                                           \
  [[maybe_unused]] static const ::sluice::KernelRegistration SLUICE_CONCAT( \
      sluice_kernel_, __COUNTER__) = ::sluice::KernelBuilder(#OP, DEVICE)

}  // namespace sluice
