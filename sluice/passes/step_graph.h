// BuildStepGraph: the part of a session's graph that one kind of step needs,
// with the feeds and fetches cut out.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/graph/graph.h"
#include "sluice/kernel/device.h"

namespace sluice {

// Which step: tensor names fed, tensor names fetched, nodes to run.
struct StepSignature {
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
  // Pairs (from, to) of tensor names: what takes `to` gets `from` instead.
  std::vector<std::pair<std::string, std::string>> connections = {};
  // Feeds and fetches come in several calls: they are transfers like others.
  bool partial = false;

  bool operator==(const StepSignature&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const StepSignature& s) {
    return H::combine(std::move(h), s.feeds, s.fetches, s.targets,
                      s.connections, s.partial);
  }
};

// A fed tensor becomes a client-terminated `_Recv`, a fetched one a `_Send`,
// both on `client` (not client-terminated in a partial run); their tensor_name
// is the name given in the signature. A connection becomes an Identity. Nodes
// that neither fetches nor targets depend on are left out.
absl::StatusOr<std::unique_ptr<Graph>> BuildStepGraph(
    const Graph& graph, const StepSignature& signature,
    const DeviceInfo& client);

// The attributes of a send/receive pair (docs/protocol).
AttrMap TransferAttrs(std::string_view tensor_name, std::string_view src_device,
                      uint64_t src_incarnation, std::string_view dst_device,
                      bool client_terminated);

}  // namespace sluice
