#include "sluice/kernel/kernel_registry.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_join.h"
#include "sluice/base/logging.h"
#include "sluice/base/mutex.h"

namespace sluice {
namespace {

class FunctionKernel : public Kernel {
 public:
  explicit FunctionKernel(KernelFn fn) : fn_(fn) {}
  absl::Status Run(KernelContext& ctx) override { return fn_(ctx); }
  KernelFn fn() const { return fn_; }

 private:
  const KernelFn fn_;
};

std::string AttrsText(const Node& node) {
  std::string text;
  for (const auto& [name, value] : node.attrs()) {
    if (!text.empty()) text += ", ";
    StrAppend(&text, name, "=", value.DebugString());
  }
  return text;
}

}  // namespace

bool KernelEntry::Fits(const Node& node) const {
  for (const auto& [attr, type] : constraints) {
    const DType* value = node.attrs().Find<DType>(attr);
    if (value == nullptr || *value != type) return false;
  }
  return true;
}

struct KernelRegistry::State {
  mutable Mutex mu;
  absl::flat_hash_map<std::string, std::vector<std::unique_ptr<KernelEntry>>>
      by_op SLUICE_GUARDED_BY(mu);
};

KernelRegistry& KernelRegistry::Global() {
  static KernelRegistry* registry = new KernelRegistry;
  return *registry;
}

KernelRegistry::State& KernelRegistry::state() {
  static State* state = new State;
  return *state;
}

void KernelRegistry::Add(KernelEntry entry) {
  MutexLock lock(state().mu);
  auto& entries = state().by_op[entry.op];
  entries.push_back(std::make_unique<KernelEntry>(std::move(entry)));
}

const KernelEntry* KernelRegistry::Find(const Node& node,
                                        std::string_view device_type) const {
  MutexLock lock(state().mu);
  auto it = state().by_op.find(node.type());
  if (it == state().by_op.end()) return nullptr;
  for (const auto& entry : it->second) {
    if (entry->device == device_type && entry->Fits(node)) return entry.get();
  }
  return nullptr;
}

std::string KernelRegistry::Describe(std::string_view op) const {
  MutexLock lock(state().mu);
  auto it = state().by_op.find(ToAbsl(op));
  if (it == state().by_op.end()) return "  <no registered kernels>\n";
  std::string text;
  for (const auto& entry : it->second) {
    StrAppend(&text, "  device='", entry->device, "'");
    for (const auto& [attr, type] : entry->constraints) {
      StrAppend(&text, "; ", attr, " in [", AttrValue(type).DebugString(), "]");
    }
    text += "\n";
  }
  return text;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(const Node& node,
                                                   Device& device) {
  const KernelEntry* entry = KernelRegistry::Global().Find(node, device.type());
  if (entry == nullptr) {
    return InvalidArgument("No OpKernel was registered to support Op '",
                           node.type(), "' used by {{node ", node.name(),
                           "}}with these attrs: [", AttrsText(node),
                           "]\nRegistered devices: [", device.type(),
                           "]\nRegistered kernels:\n",
                           KernelRegistry::Global().Describe(node.type()));
  }
  if (entry->function != nullptr) {
    return std::make_unique<FunctionKernel>(entry->function);
  }
  return entry->factory(KernelConstruction(node, device));
}

KernelFn PlainFunction(const Kernel& kernel) {
  const auto* plain = dynamic_cast<const FunctionKernel*>(&kernel);
  return plain == nullptr ? nullptr : plain->fn();
}

void KernelBuilder::Add(KernelFn fn, KernelFactory factory,
                        const Constraints& constraints) {
  KernelEntry entry = entry_;
  entry.function = fn;
  entry.factory = factory;
  entry.constraints.insert(entry.constraints.end(), constraints.begin(),
                           constraints.end());
  KernelRegistry::Global().Add(std::move(entry));
}

}  // namespace sluice
