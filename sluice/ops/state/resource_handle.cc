#include "sluice/ops/state/resource_handle.h"

#include <atomic>

#include "sluice/base/hash.h"
#include "sluice/base/status.h"

namespace sluice {
namespace {

// Private names hold a number, so that two sessions with equal graphs differ.
std::string NextPrivateName(std::string_view node) {
  static std::atomic<int64_t> next{0};
  return StrCat("_", next.fetch_add(1, std::memory_order_relaxed), "_", node);
}

absl::StatusOr<ResourceName> ReadStringHandle(const KernelContext& ctx, int i) {
  const Tensor handle = ctx.variable(i).Read();
  if (handle.dtype() != DType::kString || handle.size() != 2) {
    return InvalidArgument(
        "Resource handle must have two elements, but has shape: ",
        handle.shape().DebugString());
  }
  return ResourceName{handle.data<std::string>()[0],
                      handle.data<std::string>()[1]};
}

}  // namespace

bool HasPrivateResource(const KernelConstruction& node) {
  const bool* by_node = node.node().attrs().Find<bool>("use_node_name_sharing");
  if (by_node != nullptr && *by_node) return false;
  const std::string* shared =
      node.node().attrs().Find<std::string>("shared_name");
  return shared == nullptr || shared->empty();
}

absl::StatusOr<ResourceName> NameResource(const KernelConstruction& node,
                                          UnsharedName unshared) {
  ResourceName name{node.attr<std::string>("container"),
                    node.attr<std::string>("shared_name")};
  SLUICE_RETURN_IF_ERROR(CheckContainerName(name.container));
  if (name.container.empty()) {
    name.container = node.device().resources().default_container();
  }
  if (name.name.starts_with('_')) {
    return InvalidArgument("shared_name cannot start with '_':", name.name);
  }
  if (name.name.empty()) {
    name.name = unshared == UnsharedName::kNodeName || !HasPrivateResource(node)
                    ? node.node().name()
                    : NextPrivateName(node.node().name());
  }
  return name;
}

Tensor MakeHandle(const Device& device, const ResourceName& name,
                  std::string_view type) {
  ResourceHandle handle;
  handle.device = device.name();
  handle.container = name.container;
  handle.name = name.name;
  handle.type_hash = Hash64(type);
  handle.type_name = std::string(type);
  return Tensor::Scalar<ResourceHandle>(std::move(handle));
}

RefPtr<VariableState> MakeStringHandle(const ResourceName& name) {
  auto variable = MakeRef<VariableState>(DType::kString);
  variable->Assign(Tensor::Vector<std::string>({name.container, name.name}));
  return variable;
}

absl::StatusOr<const ResourceHandle*> HandleAt(const KernelContext& ctx, int i,
                                               std::string_view type) {
  const Tensor& tensor = ctx.input(i);
  if (tensor.dtype() != DType::kResource || tensor.size() < 1) {
    return InvalidArgument("Input ", i, " of ", ctx.node().name(),
                           " must name a resource, but is ",
                           tensor.DebugString());
  }
  const ResourceHandle& handle = tensor.data<ResourceHandle>()[0];
  if (handle.device != ctx.device().name()) {
    return InvalidArgument("Trying to access resource ", handle.name,
                           " located in device ", handle.device,
                           " from device ", ctx.device().name());
  }
  if (handle.type_name != type) {
    return InvalidArgument(
        "Trying to access resource using the wrong type. Expected ",
        handle.type_name, " got ", type);
  }
  return &handle;
}

absl::StatusOr<ResourceName> ReadHandle(const KernelContext& ctx, int i,
                                        std::string_view type) {
  if (IsRef(ctx.node().input_type(i))) return ReadStringHandle(ctx, i);
  SLUICE_ASSIGN_OR_RETURN(const ResourceHandle* handle, HandleAt(ctx, i, type));
  return ResourceName{handle->container, handle->name};
}

}  // namespace sluice
