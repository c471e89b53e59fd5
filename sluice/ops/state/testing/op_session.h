// OpSession: a graph, its kernels and a device, run node by node. For tests of
// ops that keep state between runs, pass references on, or wait.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/base/mutex.h"
#include "sluice/graph/graph.h"
#include "sluice/kernel/kernel.h"

namespace sluice {

// A device of its own, so tests do not see each other's resources.
std::unique_ptr<Device> MakeTestDevice(std::string_view job = "localhost");

// One run that may still be waiting. Thread-safe.
class OpRun {
 public:
  bool finished() const { return done_.HasBeenNotified(); }
  // Waits for the end; the error of the first node that failed.
  absl::Status Wait() const {
    done_.Wait();
    return status_;
  }
  // Only after a successful end; of the node that was run last.
  const Tensor& output(int i) const { return slots_[first_output_ + i].tensor; }
  const Slot& slot(int i) const { return slots_[first_output_ + i]; }
  Cancellation& cancellation() { return cancellation_; }

 private:
  friend class OpSession;
  Notification done_;
  absl::Status status_;
  Cancellation cancellation_;
  Step step_;
  std::vector<Slot> slots_;
  std::vector<int32_t> inputs_;
  std::unique_ptr<bool[]> last_use_;
  NodeSlots at_;
  std::unique_ptr<KernelContext> context_;
  int first_output_ = 0;
};

// Thread-compatible, but for what runs.
class OpSession {
 public:
  explicit OpSession(Device& device) : device_(device) {}

  Graph& graph() { return graph_; }
  Rendezvous& rendezvous() { return rendezvous_; }

  // Adds a node; ends the test's process on an error, so that tests stay short.
  Node* Add(std::string_view op, const std::vector<Output>& inputs,
            const AttrMap& attrs = {}, std::string_view name = "");
  absl::StatusOr<Node*> TryAdd(std::string_view op,
                               const std::vector<Output>& inputs,
                               const AttrMap& attrs = {},
                               std::string_view name = "");
  // A source of this value whose static shape is unknown, or known.
  Output Value(Tensor value, bool known_shape = false);
  void SetValue(Output source, Tensor value);

  // Runs `node` after everything it takes, each node once. Nodes that wait are
  // waited for, but for `node` itself.
  std::shared_ptr<OpRun> Start(Node* node);
  // The same in a step that has been cancelled.
  std::shared_ptr<OpRun> StartCancelled(Node* node);
  absl::Status Run(Node* node) { return Start(node)->Wait(); }
  // Runs `node` and returns its outputs, refs as their values.
  absl::StatusOr<std::vector<Tensor>> Outputs(Node* node);
  // Output 0 of a run that must succeed.
  Tensor Output0(Node* node);

 private:
  std::shared_ptr<OpRun> StartIn(std::shared_ptr<OpRun> run, Node* node);
  absl::Status StartOne(Node* node, OpRun& run, Done done);
  absl::Status Prepare(Node* node, OpRun& run);

  Device& device_;
  Graph graph_;
  LocalRendezvous rendezvous_;
  std::map<const Node*, std::unique_ptr<Kernel>> kernels_;
  std::map<const Node*, Tensor> values_;
  // What the run under way has computed.
  std::map<const Node*, std::vector<Slot>> results_;
  int next_name_ = 0;
};

}  // namespace sluice
