// How nodes name the resources they make and how kernels find them again: by
// container and name, in a resource tensor or in the older pair of strings.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/kernel/kernel.h"
#include "sluice/kernel/resource.h"

namespace sluice {

// Where a resource is kept.
struct ResourceName {
  std::string container;
  std::string name;
};

// What a resource is called when the node has no shared name.
enum class UnsharedName {
  kNodeName,  // The node's name, so sessions with such a node share it.
  kPrivate,   // A name of its own; the kernel deletes the resource at its end.
};

// The name that attrs `container` and `shared_name` give. A node whose attr
// `use_node_name_sharing` is set has no private resource.
absl::StatusOr<ResourceName> NameResource(const KernelConstruction& node,
                                          UnsharedName unshared);
// Whether NameResource makes a private name for this node.
bool HasPrivateResource(const KernelConstruction& node);

// TensorFlow's names of the kinds of resources, which handles carry.
inline constexpr char kVariableType[] = "N10tensorflow3VarE";
inline constexpr char kQueueType[] = "N10tensorflow14QueueInterfaceE";
inline constexpr char kAccumulatorType[] =
    "N10tensorflow26ConditionalAccumulatorBaseE";

// A scalar that names a resource of `device`.
Tensor MakeHandle(const Device& device, const ResourceName& name,
                  std::string_view type);
// The string form: [container, name] in a variable, as handles of type
// Ref(string) are passed on.
RefPtr<VariableState> MakeStringHandle(const ResourceName& name);

// What input `i` names, whichever form it has; an error if that is a resource
// of another device or kind.
absl::StatusOr<ResourceName> ReadHandle(const KernelContext& ctx, int i,
                                        std::string_view type);
// The resource tensor at input `i`, without a copy.
absl::StatusOr<const ResourceHandle*> HandleAt(const KernelContext& ctx, int i,
                                               std::string_view type);

// The resource that input `i` names.
template <typename T>
absl::StatusOr<RefPtr<T>> LookupResource(const KernelContext& ctx, int i,
                                         std::string_view type) {
  SLUICE_ASSIGN_OR_RETURN(const ResourceName name, ReadHandle(ctx, i, type));
  return ctx.resources().Lookup<T>(name.container, name.name);
}

}  // namespace sluice
