// Program: the part of a step that runs on one device, compiled once and run
// many times.
//
// A program is a graph of *segments*. A segment is a straight list of kernel
// calls without any counting between them. Nodes share a segment exactly if
// they wait for the same things: the same async kernels, receives and branches.
// So running a segment in one go never makes a node wait for something it does
// not need, and all nodes of a segment are live or dead together.
//
// Values travel in numbered slots. Each loop frame has its own slots and
// segments, one set per running iteration.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "sluice/kernel/kernel.h"
#include "sluice/kernel/kernel_registry.h"

namespace sluice {

enum class NodeKind : uint8_t {
  kPlain,         // A kernel that runs to its end.
  kFeed,          // Takes a tensor of the caller.
  kFetch,         // Gives one to the caller.
  kForwardAlias,  // Identity of a variable: hands the alias on.
  kSend,          // Plain, but also runs dead.
  // The kinds below are alone in their segment.
  kAsync,
  kRecv,  // Async, runs even when dead.
  kSwitch,
  kMerge,
  kEnter,
  kExit,
  kNextIteration,
  kControlTrigger,
};

// An input of a plain node that comes from a variable: before the kernel runs,
// the variable's current value is read into a slot of the node's own.
struct AliasRead {
  int32_t from;  // The ref or alias slot.
  int32_t to;    // A slot only this node uses; -1: only check initialization.
  int16_t input;
};

struct ProgramNode {
  NodeKind kind = NodeKind::kPlain;
  KernelFn function = nullptr;  // Called when set, `kernel` otherwise.
  Kernel* kernel = nullptr;
  NodeSlots slots;
  int32_t io_index = -1;  // Of the feed or fetch.
  // Ranges of Program's flat arrays.
  int32_t reads_begin = 0, reads_end = 0;
  int32_t release_begin = 0, release_end = 0;
  // For loops.
  int32_t child_frame = -1;  // kEnter: the frame it enters.
  bool is_constant = false;  // kEnter.
};

// From a segment to one that waits for it.
struct SegmentEdge {
  int32_t dst;          // Segment.
  int32_t src_slot;     // Dead if this slot is; -1: dead if the segment is.
  int32_t merge_input;  // For a kMerge destination, else -1. -2: control.
  bool from_enter = false;
  bool always_live = false;  // Control edges out of transfers and triggers.
};

struct Segment {
  int32_t frame = 0;
  int32_t begin = 0, end = 0;  // Of Program::nodes.
  int32_t edges_begin = 0, edges_end = 0;
  int32_t pending = 0;               // Edges that must arrive before it runs.
  int32_t merge_controls = 0;        // For a merge: its control inputs,
  int32_t merge_data = 0;            // and its data inputs.
  NodeKind kind = NodeKind::kPlain;  // Of its only node, or kPlain.
  bool has_transfers = false;  // Holds Sends or fetches that matter when dead.
};

struct ProgramFrame {
  int32_t parent = -1;
  std::string name;
  int parallel_iterations = 10;
  int num_enters = 0;
  int num_slots = 0;
  std::vector<int32_t> segments;  // Global ids; position = local index.
};

// How to get a node's kernel; the caller keeps it alive as long as the program.
using KernelSource = absl::FunctionRef<absl::StatusOr<Kernel*>(const Node&)>;

// Immutable once compiled. Borrows the graph's nodes and the kernels.
class Program {
 public:
  // `feeds` and `fetches` are the tensor names of client-terminated receives
  // and sends, in the order the caller passes and gets tensors.
  static absl::StatusOr<std::unique_ptr<Program>> Compile(
      const Graph& graph, Device& device, const std::vector<std::string>& feeds,
      const std::vector<std::string>& fetches, KernelSource kernels);

  std::vector<ProgramNode> nodes;
  std::vector<Segment> segments;
  std::vector<SegmentEdge> edges;
  std::vector<ProgramFrame> frames;    // 0 is the root.
  std::vector<int32_t> segment_local;  // Index within its frame.
  std::vector<int32_t> roots;          // Segments with nothing to wait for.
  std::vector<AliasRead> reads;
  std::vector<int32_t> releases;
  Device* device = nullptr;
  int num_feeds = 0;
  int num_fetches = 0;

  // One segment, no waiting, no loops: run it on the spot.
  bool straight() const { return segments.size() == 1 && straight_; }

 private:
  friend class ProgramCompiler;
  std::vector<int32_t> input_slots_;  // Storage behind NodeSlots.
  std::unique_ptr<bool[]> last_use_;
  std::vector<DType> output_types_;
  bool straight_ = false;
};

}  // namespace sluice
