// PartialRun: a step whose feeds and fetches come in several calls. It is an
// ordinary step that waits: its client edges are transfers through the
// rendezvous of the master's own task, and each call sends some and takes some.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "sluice/base/mutex.h"
#include "sluice/graph/graph.h"
#include "sluice/kernel/device.h"
#include "sluice/kernel/rendezvous.h"
#include "sluice/passes/step_graph.h"

namespace sluice {

// What one call brings and wants. The spans are valid until it is done.
struct PartialRunArgs {
  std::vector<std::string> feed_names;
  std::span<const Tensor> feeds;
  std::vector<std::string> fetch_names;
  std::span<Tensor> fetches;  // Filled before done.
};

// Which of the declared feeds and fetches are still to come. Thread-compatible.
class PartialRunProgress {
 public:
  explicit PartialRunProgress(const StepSignature& signature);

  // Ticks off a call's names; an error if one was not declared or came before,
  // or if a fetch needs a feed of `graph` that has not come yet.
  absl::Status Advance(const Graph& graph, const PartialRunArgs& args);
  // Nothing is left to come.
  bool complete() const;

 private:
  absl::Status CheckComputable(const Graph& graph,
                               const std::string& fetch) const;

  // True: it has come.
  absl::flat_hash_map<std::string, bool> feeds_;
  absl::flat_hash_map<std::string, bool> fetches_;
};

// For a name that no open partial run has; scripts know both texts.
absl::Status NoSuchPartialRun(bool local_session);

// The tensors of one call on their way: calls `done` with the first error, or
// OK when all fetches are there.
void ExchangeTensors(const std::shared_ptr<Rendezvous>& tensors,
                     const DeviceInfo& client, const PartialRunArgs& args,
                     absl::AnyInvocable<void(absl::Status)> done);

}  // namespace sluice
