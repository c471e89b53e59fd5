#include "sluice/worker/session_graphs.h"

#include <algorithm>

#include "sluice/base/status.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/passes/inline_functions.h"
#include "sluice/passes/partition.h"

namespace sluice {

Device* WorkerSession::FindDevice(std::string_view name) const {
  for (const auto& device : devices_) {
    if (device->name() == name) return device.get();
  }
  return nullptr;
}

namespace {

// Without those that only the runtime looks at.
AttrMap DefinedAttrs(const Node& node) {
  AttrMap attrs;
  for (const auto& [name, value] : node.attrs()) {
    if (!name.starts_with("_")) attrs.Set(name, value);
  }
  return attrs;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeNamedKernel(const Node& node,
                                                        Device& device) {
  auto kernel = MakeKernel(node, device);
  if (!kernel.ok()) return AtNode(kernel.status(), node);
  return kernel;
}

}  // namespace

absl::StatusOr<std::shared_ptr<Kernel>> WorkerSession::StatefulKernel(
    const Node& node, Device& device) {
  KernelOfNode made{node.type(), device.name(), DefinedAttrs(node), nullptr};
  {
    MutexLock lock(mu_);
    auto it = kernels_.find(node.name());
    if (it != kernels_.end() && it->second.SameNode(made)) {
      return it->second.kernel;
    }
  }
  SLUICE_ASSIGN_OR_RETURN(made.kernel, MakeNamedKernel(node, device));
  MutexLock lock(mu_);
  KernelOfNode& kept = kernels_[node.name()];
  if (kept.kernel == nullptr || !kept.SameNode(made)) kept = std::move(made);
  return kept.kernel;
}

namespace {

bool IsSend(const Node& node) {
  return node.type() == "_Send" || node.type() == "_HostSend";
}

bool IsTransfer(const Node& node) {
  const std::string& type = node.type();
  return IsSend(node) || type == "_Recv" || type == "_HostRecv" ||
         type == "_SluiceRecvGroup";
}

// Tensors leave and enter here, and come from tasks that can be asked: a step
// that is wrong in this would wait for ever.
absl::Status CheckTransfers(const Graph& graph, const WorkerSession& session,
                            std::span<const std::string> cluster_tasks) {
  const std::string own(TaskOf(session.devices()[0]->name()));
  const std::map<std::string, std::string>& cluster = session.request().cluster;
  const auto known = [&](const std::string& task) {
    if (!cluster.empty()) return cluster.contains(task);
    return cluster_tasks.empty() ||
           std::ranges::find(cluster_tasks, task) != cluster_tasks.end();
  };
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = *graph.node(id);
    if (!IsTransfer(node)) continue;
    const char* const end = IsSend(node) ? "send_device" : "recv_device";
    const std::string here = node.attr<std::string>(end);
    if (TaskOf(here) != own) {
      return InvalidArgument("The ", end, " of node ", node.name(), " is ",
                             here, ", which is no device of ", own);
    }
    if (IsSend(node)) continue;
    const std::string from(TaskOf(node.attr<std::string>("send_device")));
    if (from != own && !known(from)) {
      return NotInCluster(StrCat("What node ", node.name(), " receives"), from,
                          own);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<SessionGraph>> SessionGraph::Create(
    const RegisterGraphRequest& request, std::shared_ptr<WorkerSession> session,
    int64_t most_nodes, std::span<const std::string> cluster_tasks) {
  SLUICE_RETURN_IF_ERROR(
      CheckTransfers(*request.graph, *session, cluster_tasks));
  auto result = std::make_shared<SessionGraph>();
  result->graph_ = request.graph;
  if (HasFunctionCalls(*request.graph)) {
    SLUICE_ASSIGN_OR_RETURN(result->graph_,
                            InlineFunctions(*request.graph, most_nodes));
  }
  result->session_ = session;
  result->feeds_ = request.feeds;
  result->fetches_ = request.fetches;
  PartitionOptions options;
  options.part_of = [](std::string_view device) { return std::string(device); };
  options.incarnation = [&](std::string_view name) -> absl::StatusOr<uint64_t> {
    Device* device = session->FindDevice(name);
    if (device == nullptr) return NotFound("Device ", name, " is not found.");
    return device->incarnation();
  };
  options.suffix = "_G";
  SLUICE_ASSIGN_OR_RETURN(std::vector<Part> parts,
                          Partition(*result->graph_, options));
  for (Part& part : parts) {
    Device* device = session->FindDevice(part.name);
    if (device == nullptr) {
      return InvalidArgument("A graph for device ", part.name,
                             " was sent to a task that does not have it");
    }
    result->parts_.emplace_back();
    DevicePart& added = result->parts_.back();
    added.graph = std::move(part.graph);
    SLUICE_RETURN_IF_ERROR(result->AddPart(*added.graph, *device, &added));
  }
  return result;
}

absl::Status SessionGraph::AddPart(const Graph& graph, Device& device,
                                   DevicePart* part) {
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = *graph.node(id);
    has_transfers_ |= IsTransfer(node) && !node.attr<bool>("client_terminated");
  }
  SLUICE_ASSIGN_OR_RETURN(
      std::unique_ptr<Program> program,
      Program::Compile(
          graph, device, feeds_, fetches_,
          [&](const Node& node) -> absl::StatusOr<Kernel*> {
            // The ends of cut edges have no state, and graphs of one session
            // may use one name for the ends of different edges.
            if (node.op().def.stateful && !IsTransfer(node)) {
              SLUICE_ASSIGN_OR_RETURN(std::shared_ptr<Kernel> kernel,
                                      session_->StatefulKernel(node, device));
              part->kernels.push_back(std::move(kernel));
            } else {
              SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel,
                                      MakeNamedKernel(node, device));
              part->kernels.push_back(std::move(kernel));
            }
            return part->kernels.back().get();
          }));
  part->executor = std::make_unique<Executor>(std::move(program));
  return absl::OkStatus();
}

}  // namespace sluice
