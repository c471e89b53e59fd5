#include "sluice/passes/place.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_join.h"
#include "sluice/base/logging.h"
#include "sluice/base/status.h"
#include "sluice/graph/functions.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/passes/colocation.h"

namespace sluice {
namespace {

int TypePriority(std::string_view type) { return type == "GPU" ? 210 : 60; }

// Ops that take references or resources along without standing beside them.
bool ExemptFromEdges(const Node& node) {
  return node.type() == "IdentityN" || node.type() == "PartitionedCall" ||
         node.type() == "StatefulPartitionedCall";
}

// Makes state: no inputs and one output that names it.
bool IsResourceGenerator(const Node& node) {
  return node.num_inputs() == 0 && node.num_outputs() == 1 &&
         (IsRef(node.output_type(0)) ||
          node.output_type(0) == DType::kResource);
}

bool IsGenerator(const Node& node) {
  return node.num_inputs() == 0 && node.num_outputs() == 1 &&
         !IsRef(node.output_type(0));
}

bool IsMetadata(const Node& node) {
  return node.type() == "Shape" || node.type() == "Size" ||
         node.type() == "Rank";
}

class Placer {
 public:
  Placer(Graph& graph, std::span<const DeviceInfo> devices,
         const PlaceOptions& options, PlaceErrors* errors)
      : graph_(graph),
        options_(options),
        errors_(*errors),
        groups_(graph.num_nodes(),
                [this](int root) { return DebugInfo(root); }) {
    for (const DeviceInfo& device : devices) devices_.push_back(&device);
    for (const DeviceInfo& device : options.absent) {
      devices_.push_back(&device);
      absent_.insert(device.text);
    }
    std::ranges::sort(devices_, [&](const DeviceInfo* a, const DeviceInfo* b) {
      const int x = TypePriority(*a->name.type),
                y = TypePriority(*b->name.type);
      if (x != y) return x > y;
      if (options.prefer_own_task) {
        const bool own_a = a->name.SameTask(options.own_task);
        const bool own_b = b->name.SameTask(options.own_task);
        if (own_a != own_b) return own_a;
      }
      return a->text < b->text;
    });
    for (const DeviceInfo* device : devices_) {
      if (std::ranges::count(types_, *device->name.type) == 0) {
        types_.push_back(*device->name.type);
      }
    }
  }

  absl::Status Run() {
    if (devices_.empty()) {
      return FailedPrecondition("No devices are registered");
    }
    for (int id = 0; id < graph_.num_nodes(); ++id) {
      Note(id, StartGroup(*graph_.node(id)));
    }
    for (int id = 0; id < graph_.num_nodes(); ++id) {
      Note(id, FollowReferences(*graph_.node(id)));
    }
    FollowClasses();
    grouped_ = true;
    std::vector<Node*> later;
    for (int id = 0; id < graph_.num_nodes(); ++id) {
      Node* node = graph_.node(id);
      if (!node->assigned_device().empty() || errors_.contains(id)) continue;
      if (IsGenerator(*node)) {
        later.push_back(node);
      } else {
        Note(id, Assign(node, node->num_inputs() > 0 && IsMetadata(*node)
                                  ? node->input(0).node->assigned_device()
                                  : ""));
      }
    }
    for (Node* node : later) {
      Note(node->id(), Assign(node, ConsumersDevice(*node)));
    }
    if (!absent_.empty()) RefuseAbsent();
    return absl::OkStatus();
  }

 private:
  // Last, as nodes follow each other also to where they cannot be.
  void RefuseAbsent() {
    for (int id = 0; id < graph_.num_nodes(); ++id) {
      Node* node = graph_.node(id);
      if (!absent_.contains(node->assigned_device())) continue;
      Note(id, options_.refuse(*node, groups_.of(id).assigned));
      node->set_assigned_device("");
    }
  }

  void Note(int id, const absl::Status& status) {
    if (!status.ok()) errors_.try_emplace(id, status);
  }

  absl::StatusOr<DeviceName> Parsed(const std::string& device,
                                    const Node& node) {
    auto it = parsed_.find(device);
    if (it != parsed_.end()) return it->second;
    absl::StatusOr<DeviceName> name = DeviceName::Parse(device);
    if (!name.ok()) {
      return InvalidArgument("Malformed device specification '", device,
                             "' in node: {{node ", node.name(),
                             "}}\n\t [[{{node ", node.name(), "}}]]");
    }
    parsed_.emplace(device, *name);
    return name;
  }

  absl::Status StartGroup(const Node& node) {
    ColocationGroup& group = groups_.of(node.id());
    for (const std::string& type : types_) {
      if (KernelRegistry::Global().Find(node, type) != nullptr) {
        group.types.push_back(type);
      }
    }
    if (!node.assigned_device().empty()) {
      SLUICE_ASSIGN_OR_RETURN(group.assigned,
                              Parsed(node.assigned_device(), node));
      group.requested = group.assigned;
      if (group.types.empty()) group.types.push_back(*group.assigned.type);
      return absl::OkStatus();
    }
    DeviceName wanted;
    if (!node.device().empty()) {
      SLUICE_ASSIGN_OR_RETURN(wanted, Parsed(node.device(), node));
    }
    group.requested = wanted;
    if (IsResourceGenerator(node)) group.resource = wanted;
    if (!group.types.empty()) return absl::OkStatus();
    // Another task may know a kernel that this process does not.
    const DeviceName& own = options_.own_task;
    const bool elsewhere = (wanted.job && wanted.job != own.job) ||
                           (wanted.replica && wanted.replica != own.replica) ||
                           (wanted.task && wanted.task != own.task);
    // What a function needs is known when it runs; only CPUs are there now.
    if (elsewhere || node.IsControlFlow() || CallsFunction(node)) {
      group.types =
          wanted.type ? std::vector<std::string>{*wanted.type} : types_;
      return absl::OkStatus();
    }
    group.types = types_;  // So that its neighbours are not blamed.
    return InvalidArgument(
        "No OpKernel was registered to support Op '", node.type(),
        "' used by {{node ", node.name(), "}}with these attrs: [",
        AttrsText(node), "]\nRegistered devices: [",
        absl::StrJoin(types_, ", "), "]\nRegistered kernels:\n",
        KernelRegistry::Global().Describe(node.type()), "\n\t [[{{node ",
        node.name(), "}}]]");
  }

  static std::string AttrsText(const Node& node) {
    std::string text;
    for (const auto& [name, value] : node.attrs()) {
      StrAppend(&text, text.empty() ? "" : ", ", name, "=",
                value.DebugString());
    }
    return text;
  }

  // A reference or resource is used where it is.
  absl::Status FollowReferences(const Node& node) {
    if (ExemptFromEdges(node)) return absl::OkStatus();
    for (int i = 0; i < node.num_inputs(); ++i) {
      const bool tied =
          IsRef(node.input_type(i)) || node.input_type(i) == DType::kResource;
      if (!tied || !node.input(i)) continue;
      const Node& src = *node.input(i).node;
      ColocationGroup& from = groups_.of(src.id());
      ColocationGroup& to = groups_.of(node.id());
      if (&from == &to) continue;
      SLUICE_RETURN_IF_ERROR(
          CheckEdge("assigned", from.assigned, to.assigned, src, node));
      SLUICE_RETURN_IF_ERROR(
          CheckEdge("resource", from.resource, to.resource, src, node));
      if (!from.requested.Covers(to.requested)) {
        if (options_.log) {
          SLUICE_LOG(INFO) << "Ignoring device specification "
                           << to.requested.ToString() << " for node '"
                           << node.name() << "' because the input edge from '"
                           << src.name()
                           << "' is a reference connection and already has a "
                              "device field set to "
                           << from.requested.ToString();
        }
        to.requested = from.requested;
        to.KeepSpecific();
      }
      absl::Status united = groups_.Unite(src, node, options_.allow_soft);
      if (!united.ok()) {
        return InvalidArgument(
            "Nodes were connected by a reference connection (requiring them to "
            "be on the same device), but the two nodes were assigned two "
            "different devices: ",
            united.message());
      }
    }
    return absl::OkStatus();
  }

  static absl::Status CheckEdge(const char* what, const DeviceName& from,
                                DeviceName to, const Node& src,
                                const Node& dst) {
    if (MergeDeviceNames(from, false, &to).ok()) return absl::OkStatus();
    return InvalidArgument(
        "Cannot place the graph because a reference or resource edge connects "
        "colocation groups with incompatible ",
        what, " devices: ", from.ToString(), " vs ", to.ToString(),
        ". The edge src node is ", src.name(), " , and the dst node is ",
        dst.name());
  }

  void FollowClasses() {
    absl::flat_hash_map<std::string, const Node*> first;
    for (int id = 0; id < graph_.num_nodes(); ++id) {
      const Node& node = *graph_.node(id);
      const AttrList* classes = node.attrs().Find<AttrList>("_class");
      if (classes == nullptr) continue;
      for (const std::string& text : classes->strings) {
        if (!text.starts_with("loc:@")) continue;
        const std::string name = text.substr(5);
        auto [it, added] = first.try_emplace(name, graph_.FindNode(name));
        if (it->second == nullptr) it->second = &node;
        const absl::Status united =
            groups_.Unite(node, *it->second, options_.allow_soft);
        if (united.ok() || options_.allow_soft) continue;
        Note(id, InvalidArgument(united.message(), "\n\t [[{{node ",
                                 node.name(), "}}]]"));
      }
    }
  }

  static absl::Status Cannot(const Node& node, const absl::Status& why) {
    return InvalidArgument("Cannot assign a device for operation ", node.name(),
                           ": ", why.message(), "\n\t [[{{node ", node.name(),
                           "}}]]");
  }

  std::vector<const DeviceInfo*> Candidates(const ColocationGroup& group,
                                            const DeviceName& wanted) const {
    std::vector<const DeviceInfo*> result;
    for (const DeviceInfo* device : devices_) {
      if (!wanted.Covers(device->name)) continue;
      if (std::ranges::count(group.types, *device->name.type) == 0) continue;
      result.push_back(device);
    }
    return result;
  }

  // Candidates for all that the group asks for. Most nodes ask for one of a few
  // things, and often for the same as the one before.
  const std::vector<const DeviceInfo*>& Hard(const ColocationGroup& group) {
    if (last_ == nullptr || group.requested != last_requested_ ||
        group.types != last_types_) {
      auto [it, added] = candidates_.try_emplace(StrCat(
          group.requested.ToString(), "|", absl::StrJoin(group.types, ",")));
      if (added) {
        it->second = std::make_unique<std::vector<const DeviceInfo*>>(
            Candidates(group, group.requested));
      }
      last_ = it->second.get();
      last_requested_ = group.requested;
      last_types_ = group.types;
    }
    return *last_;
  }

  absl::Status Assign(Node* node, const std::string& preferred) {
    ColocationGroup& group = groups_.of(node->id());
    const std::vector<const DeviceInfo*>* candidates = &Hard(group);
    std::vector<const DeviceInfo*> found;
    if (candidates->empty() && options_.allow_soft) {
      bool moves_state = false;
      found = SoftCandidates(group, &moves_state);
      candidates = &found;
      if (moves_state && !warned_) {
        warned_ = true;
        SLUICE_LOG(WARNING)
            << "Failed to place the graph without changing the devices of some "
               "resources. Some of the operations (that had to be colocated "
               "with resource generating operations) are not supported on the "
               "resources' devices.";
      }
    }
    if (candidates->empty()) return Cannot(*node, WhyNot(*node, group));
    const DeviceInfo* chosen = candidates->front();
    for (const DeviceInfo* candidate : *candidates) {
      if (candidate->text == preferred) chosen = candidate;
    }
    if (options_.strayed && IsResourceGenerator(*node) &&
        !group.requested.job && chosen->text != preferred &&
        chosen->name.job != options_.own_task.job) {
      options_.strayed(*node, *chosen);
    }
    node->set_assigned_device(chosen->text);
    group.assigned = chosen->name;
    group.requested = chosen->name;
    if (options_.log) {
      const std::string line =
          StrCat(node->name(), ": (", node->type(), "): ", chosen->text);
      std::printf("%s\n", line.c_str());
      SLUICE_LOG(INFO) << line;
    }
    return absl::OkStatus();
  }

  std::vector<const DeviceInfo*> SoftCandidates(const ColocationGroup& group,
                                                bool* moves_state) const {
    DeviceName wanted = group.requested;
    wanted.type = group.resource.type;
    wanted.id = group.resource.id;
    std::vector<const DeviceInfo*> result = Candidates(group, wanted);
    if (!result.empty()) return result;
    wanted.type.reset();
    wanted.id.reset();
    result = Candidates(group, wanted);
    *moves_state = !result.empty() && group.resource.type;
    return result;
  }

  absl::Status WhyNot(const Node& node, const ColocationGroup& group) {
    std::string text = WhyNotText(node, group);
    bool moves_state = false;
    if (!options_.allow_soft && !SoftCandidates(group, &moves_state).empty()) {
      StrAppend(&text,
                " To run on another device of the same task instead, set "
                "allow_soft_placement=True in tf.ConfigProto, or use sluice "
                "run --soft-placement.");
    }
    return InvalidArgument(text);
  }

  std::string WhyNotText(const Node& node, const ColocationGroup& group) {
    std::vector<std::string> names;
    for (const DeviceInfo* device : devices_) {
      if (!absent_.contains(device->text)) names.push_back(device->text);
    }
    std::ranges::sort(names);
    const std::string all = absl::StrJoin(names, ", ");
    const std::string wanted =
        node.device().empty() ? group.requested.ToString() : node.device();
    const auto debug = [&] { return DebugInfo(groups_.Find(node.id())); };
    if (wanted.empty()) {
      return StrCat(
          "Node had no OpKernel registered to support this operation: "
          "Operation was ",
          node.type(), " and inputs were [", InputTypes(node), "].\n", debug());
    }
    const absl::StatusOr<DeviceName> asked = DeviceName::Parse(wanted);
    const std::string could_not =
        StrCat("Could not satisfy explicit device specification '", wanted);
    if (asked.ok() && *asked != group.requested) {
      return StrCat(could_not, "' because the node {{colocation_node ",
                    node.name(),
                    "}} was colocated with a group of nodes that required "
                    "incompatible device '",
                    group.requested.ToString(), "'. All available devices [",
                    all, "]. ", debug());
    }
    const bool exists = std::ranges::any_of(
        devices_, [&](const DeviceInfo* d) { return asked->Covers(d->name); });
    if (!exists) {
      return StrCat(
          "{{node ", node.name(), "}} was explicitly assigned to ", wanted,
          " but available devices are [ ", all,
          " ]. Make sure the device specification refers to a valid device.",
          asked->type == "GPU" ? " The requested device appears to be a GPU, "
                                 "but CUDA is not enabled."
                               : "");
    }
    // As in TensorFlow, which does not close the quote.
    if (!asked->type) return StrCat(could_not, debug());
    return StrCat(could_not, "' because no supported kernel for ", *asked->type,
                  " devices is available.", debug(), "\nOp: ", node.type(),
                  "\nNode attrs: ", AttrsText(node), "\nRegistered kernels:\n",
                  KernelRegistry::Global().Describe(node.type()));
  }

  static std::string InputTypes(const Node& node) {
    std::string text;
    for (int i = 0; i < node.num_inputs(); ++i) {
      StrAppend(&text, i == 0 ? "" : ", ", DTypeName(node.input_type(i)));
    }
    return text;
  }

  const std::vector<int>& Members(int root) {
    if (members_.empty() || !grouped_) {
      members_.clear();
      for (int id = 0; id < graph_.num_nodes(); ++id) {
        members_[groups_.Find(id)].push_back(id);
      }
    }
    return members_[root];
  }

  // What a group is made of, in TensorFlow's words. Members beyond some are
  // counted only, as each of them may have an error of its own.
  std::string DebugInfo(int root) {
    constexpr int kMostMembers = 100;
    const ColocationGroup& group = groups_.of(root);
    std::map<std::string, std::string> types;  // By op.
    std::string members;
    int count = 0;
    for (int id : Members(root)) {
      if (++count > kMostMembers) continue;
      const Node& node = *graph_.node(id);
      StrAppend(&members, "  ", node.name(), " (", node.type(), ") ",
                node.device());
      if (!node.assigned_device().empty()) {
        StrAppend(&members,
                  " framework assigned device=", node.assigned_device());
      }
      StrAppend(&members, "\n");
      std::string& of_op = types[node.type()];
      if (!of_op.empty()) continue;
      for (const std::string& type : types_) {
        if (KernelRegistry::Global().Find(node, type) != nullptr) {
          StrAppend(&of_op, type, " ");
        }
      }
    }
    if (count > kMostMembers) {
      StrAppend(&members, "  and ", count - kMostMembers, " more\n");
    }
    std::string ops;
    for (const auto& [op, of_op] : types)
      StrAppend(&ops, op, ": ", of_op, "\n");
    return StrCat(
        "\nColocation Debug Info:\nColocation group had the following types "
        "and "
        "supported devices: \nRoot Member(assigned_device_name_index_=",
        group.assigned.empty() ? "-1" : "1", " requested_device_name_='",
        group.requested.ToString(), "' assigned_device_name_='",
        group.assigned.ToString(), "' resource_device_name_='",
        group.resource.ToString(), "' supported_device_types_=[",
        absl::StrJoin(group.types, ", "), "] possible_devices_=[]\n", ops,
        "\nColocation members, user-requested devices, and framework assigned "
        "devices, if any:\n",
        members);
  }

  // The one device that all consumers are on, or "". Nodes that only wait for
  // it count too.
  static std::string ConsumersDevice(const Node& node) {
    std::string device;
    for (const OutEdge& edge : node.out_edges()) {
      const std::string& consumer = edge.dst->assigned_device();
      if (consumer.empty() || (!device.empty() && device != consumer))
        return "";
      device = consumer;
    }
    return device;
  }

  Graph& graph_;
  const PlaceOptions& options_;
  PlaceErrors& errors_;
  ColocationGroups groups_;
  std::vector<const DeviceInfo*> devices_;  // Best first.
  std::vector<std::string> types_;          // Best first.
  absl::flat_hash_set<std::string> absent_;
  absl::flat_hash_map<std::string, DeviceName> parsed_;
  absl::flat_hash_map<std::string,
                      std::unique_ptr<std::vector<const DeviceInfo*>>>
      candidates_;
  const std::vector<const DeviceInfo*>* last_ = nullptr;  // Into candidates_,
  DeviceName last_requested_;                             // for this
  std::vector<std::string> last_types_;                   // and this.
  bool grouped_ = false;  // The groups do not change any more.
  absl::flat_hash_map<int, std::vector<int>> members_;  // By root, if needed.
  bool warned_ = false;
};

}  // namespace

absl::Status Place(Graph& graph, std::span<const DeviceInfo> devices,
                   const PlaceOptions& options, PlaceErrors* errors) {
  return Placer(graph, devices, options, errors).Run();
}

}  // namespace sluice
