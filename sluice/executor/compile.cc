// Program::Compile: order, frames, segments, slots, edges.
#include <algorithm>
#include <map>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "sluice/executor/program.h"
#include "sluice/graph/frames.h"

namespace sluice {
namespace {

// Beyond this many different things to wait for, a node starts a set of its
// own, so that the sets stay cheap to compare.
constexpr size_t kMaxWaits = 16;

bool IsOneOf(const std::string& type,
             std::initializer_list<const char*> names) {
  return std::ranges::any_of(names, [&](const char* n) { return type == n; });
}

// Ops whose output is their input and nothing else.
bool PassesAlias(const Node& node) {
  return IsOneOf(node.type(), {"Identity", "StopGradient", "PreventGradient"});
}

}  // namespace

class ProgramCompiler {
 public:
  ProgramCompiler(const Graph& graph, Device& device, Program* out)
      : graph_(graph), out_(*out) {
    out_.device = &device;
  }

  absl::Status Compile(const std::vector<std::string>& feeds,
                       const std::vector<std::string>& fetches,
                       KernelSource kernels) {
    SLUICE_RETURN_IF_ERROR(FindOrderAndFrames());
    SLUICE_RETURN_IF_ERROR(Classify(feeds, fetches, kernels));
    SLUICE_RETURN_IF_ERROR(CheckVariables());
    MakeSegments();
    LayOutNodes();
    AssignSlots();
    Connect();
    out_.num_feeds = static_cast<int>(feeds.size());
    out_.num_fetches = static_cast<int>(fetches.size());
    out_.straight_ = out_.segments.size() == 1 && out_.frames.size() == 1 &&
                     out_.segments[0].kind == NodeKind::kPlain;
    return absl::OkStatus();
  }

 private:
  struct Info {
    NodeKind kind = NodeKind::kPlain;
    Kernel* kernel = nullptr;
    int io_index = -1;
    int frame = 0;         // Where it runs; for Enter the frame outside.
    int child_frame = -1;  // Enter only.
    int waits = 0;         // Id of its wait set.
    int segment = -1;
    int position = -1;  // In out_.nodes.
    int first_output = 0;
  };

  static bool Alone(NodeKind kind) { return kind >= NodeKind::kAsync; }

  absl::Status FindOrderAndFrames() {
    SLUICE_ASSIGN_OR_RETURN(LoopFrames loops, FindFrames(graph_));
    info_.resize(graph_.num_nodes());
    for (int id = 0; id < graph_.num_nodes(); ++id) {
      info_[id].frame = loops.frame[id];
      info_[id].child_frame = loops.entered[id];
    }
    for (LoopFrames::Frame& frame : loops.frames) {
      ProgramFrame& added = out_.frames.emplace_back();
      added.parent = frame.parent;
      added.name = std::move(frame.name);
      added.parallel_iterations = frame.parallel_iterations;
      added.num_enters = frame.num_enters;
    }
    order_ = std::move(loops.order);
    return absl::OkStatus();
  }

  absl::Status Classify(const std::vector<std::string>& feeds,
                        const std::vector<std::string>& fetches,
                        KernelSource kernels) {
    for (const Node* node : order_) {
      Info& info = info_[node->id()];
      const std::string& type = node->type();
      const bool client = node->attr<bool>("client_terminated");
      if (client && IsOneOf(type, {"_Recv", "_HostRecv"})) {
        SLUICE_RETURN_IF_ERROR(SetIndex(*node, feeds, NodeKind::kFeed, &info));
        continue;
      }
      if (client && IsOneOf(type, {"_Send", "_HostSend"})) {
        SLUICE_RETURN_IF_ERROR(
            SetIndex(*node, fetches, NodeKind::kFetch, &info));
        continue;
      }
      if (IsOneOf(type, {"Switch", "RefSwitch"})) {
        info.kind = NodeKind::kSwitch;
      } else if (IsMerge(*node)) {
        info.kind = NodeKind::kMerge;
      } else if (IsEnter(*node)) {
        info.kind = NodeKind::kEnter;
      } else if (IsExit(*node)) {
        info.kind = NodeKind::kExit;
      } else if (IsNextIteration(*node)) {
        info.kind = NodeKind::kNextIteration;
      } else if (type == "ControlTrigger") {
        info.kind = NodeKind::kControlTrigger;
      } else if (PassesAlias(*node) && IsAlias(node->input(0))) {
        info.kind = NodeKind::kForwardAlias;
      } else {
        SLUICE_ASSIGN_OR_RETURN(info.kernel, kernels(*node));
        if (IsOneOf(type, {"_Recv", "_HostRecv", "_SluiceRecvGroup"})) {
          info.kind = NodeKind::kRecv;
        } else if (info.kernel->AsAsync() != nullptr) {
          info.kind = NodeKind::kAsync;
        } else if (IsOneOf(type, {"_Send", "_HostSend"})) {
          info.kind = NodeKind::kSend;
        }
      }
    }
    return absl::OkStatus();
  }

  static absl::Status SetIndex(const Node& node,
                               const std::vector<std::string>& names,
                               NodeKind kind, Info* info) {
    const std::string name = node.attr<std::string>("tensor_name");
    const auto it = std::ranges::find(names, name);
    if (it == names.end()) {
      return InvalidArgument("Node ", node.name(), " names the unknown ",
                             kind == NodeKind::kFeed ? "feed " : "fetch ",
                             name);
    }
    info->kind = kind;
    info->io_index = static_cast<int>(it - names.begin());
    return absl::OkStatus();
  }

  // Whether the slot of this output holds a variable instead of a value.
  bool IsAlias(Output output) const {
    if (IsRef(TypeOf(output))) return true;
    const Node& node = *output.node;
    const NodeKind kind = info_[node.id()].kind;
    if (kind == NodeKind::kForwardAlias) return true;
    return HandsOn(kind) && IsAlias(node.input(0));
  }

  // Ops that have one value to hand on, whose slot goes on as it is.
  static bool HandsOn(NodeKind kind) {
    return kind == NodeKind::kSwitch || kind == NodeKind::kEnter;
  }

  // What is fed or received in place of a variable is none.
  absl::Status CheckVariables() const {
    for (const Node* node : order_) {
      for (int i = 0; i < node->num_inputs(); ++i) {
        if (!IsRef(node->input_type(i)) || IsAlias(node->input(i))) continue;
        return InvalidArgument(i, "-th input expects a ref type: node '",
                               node->name(), "' gets the value of '",
                               node->input(i).node->name(), "'");
      }
    }
    return absl::OkStatus();
  }

  // Wait sets: sorted lists of tokens, interned.
  int Intern(std::vector<int> set) {
    auto [it, added] =
        set_ids_.try_emplace(set, static_cast<int>(sets_.size()));
    if (added) sets_.push_back(std::move(set));
    return it->second;
  }
  int Token(const Node& node, int output) {
    return tokens_
        .try_emplace({node.id(), output}, static_cast<int>(tokens_.size()))
        .first->second;
  }

  void MakeSegments() {
    Intern({});
    std::map<std::pair<int, int>, int> by_waits;
    for (const Node* node : order_) {
      Info& info = info_[node->id()];
      std::vector<int> waits;
      const auto add = [&](const Node& input, int output) {
        const Info& from = info_[input.id()];
        if (from.segment >= 0 && segment_alone_[from.segment]) {
          waits.push_back(Token(input, output));
        } else {
          const std::vector<int>& set = sets_[from.waits];
          waits.insert(waits.end(), set.begin(), set.end());
        }
      };
      for (const Output& input : node->inputs()) {
        if (IsMerge(*node) && IsNextIteration(*input.node)) continue;
        add(*input.node, input.index);
      }
      for (const Node* input : node->control_inputs()) add(*input, -1);
      std::ranges::sort(waits);
      waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
      const bool alone = Alone(info.kind) || waits.size() > kMaxWaits;
      info.waits = Intern(std::move(waits));
      if (alone) {
        info.segment = NewSegment(info.frame, info.kind, true);
        continue;
      }
      auto [it, added] = by_waits.try_emplace({info.frame, info.waits}, -1);
      if (added) it->second = NewSegment(info.frame, NodeKind::kPlain, false);
      info.segment = it->second;
    }
  }

  int NewSegment(int frame, NodeKind kind, bool alone) {
    const int id = static_cast<int>(out_.segments.size());
    Segment segment;
    segment.frame = frame;
    segment.kind = Alone(kind) ? kind : NodeKind::kPlain;
    out_.segments.push_back(segment);
    segment_alone_.push_back(alone);
    out_.segment_local.push_back(
        static_cast<int32_t>(out_.frames[frame].segments.size()));
    out_.frames[frame].segments.push_back(id);
    return id;
  }

  // Nodes of a segment side by side, in order.
  void LayOutNodes() {
    std::vector<std::vector<const Node*>> members(out_.segments.size());
    for (const Node* node : order_) {
      members[info_[node->id()].segment].push_back(node);
    }
    out_.nodes.reserve(order_.size());
    for (size_t s = 0; s < members.size(); ++s) {
      Segment& segment = out_.segments[s];
      segment.begin = static_cast<int32_t>(out_.nodes.size());
      for (const Node* node : members[s]) {
        Info& info = info_[node->id()];
        info.position = static_cast<int>(out_.nodes.size());
        ProgramNode compiled;
        compiled.kind = info.kind;
        compiled.kernel = info.kernel;
        if (info.kernel != nullptr && !Alone(info.kind)) {
          compiled.function = PlainFunction(*info.kernel);
        }
        compiled.io_index = info.io_index;
        compiled.child_frame = info.child_frame;
        compiled.is_constant = node->attr<bool>("is_constant");
        compiled.slots.node = node;
        out_.nodes.push_back(compiled);
        segment.has_transfers |=
            info.kind == NodeKind::kSend || info.kind == NodeKind::kFetch;
      }
      segment.end = static_cast<int32_t>(out_.nodes.size());
    }
  }

  // The last member of `node`'s own segment that reads output `o`, or -1 if
  // someone outside reads it too.
  int LastReader(const Node& node, int o) const {
    const Info& info = info_[node.id()];
    int last = info.position;
    for (const OutEdge& edge : node.out_edges()) {
      if (edge.src_output != o) continue;
      const Info& reader = info_[edge.dst->id()];
      if (reader.segment != info.segment) return -1;
      last = std::max(last, reader.position);
    }
    return last;
  }

  void AssignSlots() {
    size_t inputs = 0, outputs = 0;
    for (const Node* node : order_) {
      inputs += node->num_inputs();
      outputs += node->num_outputs();
    }
    out_.output_types_.reserve(outputs);  // Nodes point into it.
    out_.input_slots_.resize(inputs);
    out_.last_use_ = std::make_unique<bool[]>(inputs);
    // Slots that die inside a segment are used again by later nodes of it.
    std::vector<std::vector<int32_t>> free_after(out_.nodes.size());
    for (const Segment& segment : out_.segments) {
      std::map<int, std::vector<int32_t>> free;  // By number of outputs.
      for (int p = segment.begin; p < segment.end; ++p) {
        const Node& node = *out_.nodes[p].slots.node;
        Info& info = info_[node.id()];
        const int frame = OutputFrame(node, info);
        int last = -1;
        bool local = !Alone(segment.kind);
        for (int o = 0; o < node.num_outputs(); ++o) {
          const int reader = LastReader(node, o);
          local &= reader >= 0;
          last = std::max(last, reader);
        }
        const int count = node.num_outputs();
        std::vector<int32_t>& reusable = free[count];
        if (count > 0 && local && !reusable.empty()) {
          info.first_output = reusable.back();
          reusable.pop_back();
        } else {
          info.first_output = out_.frames[frame].num_slots;
          out_.frames[frame].num_slots += count;
        }
        if (count > 0 && local)
          pending_free_[last].push_back({count, info.first_output});
        // What died with this node may serve the next one.
        for (const auto& [n, slot] : pending_free_[p]) free[n].push_back(slot);
        pending_free_.erase(p);
      }
      pending_free_.clear();
    }
    size_t next = 0;
    for (ProgramNode& compiled : out_.nodes) FillNode(&compiled, &next);
  }

  int OutputFrame(const Node& node, const Info& info) const {
    if (info.kind == NodeKind::kEnter) return info.child_frame;
    if (info.kind == NodeKind::kExit)
      return std::max(0, out_.frames[info.frame].parent);
    (void)node;
    return info.frame;
  }

  void FillNode(ProgramNode* compiled, size_t* next) {
    const Node& node = *compiled->slots.node;
    const Info& info = info_[node.id()];
    compiled->slots.first_output = info.first_output;
    compiled->slots.output_types =
        out_.output_types_.data() + out_.output_types_.size();
    out_.output_types_.insert(out_.output_types_.end(),
                              node.output_types().begin(),
                              node.output_types().end());
    compiled->slots.inputs = out_.input_slots_.data() + *next;
    compiled->slots.last_use = out_.last_use_.get() + *next;
    compiled->reads_begin = static_cast<int32_t>(out_.reads.size());
    compiled->release_begin = static_cast<int32_t>(out_.releases.size());
    for (int i = 0; i < node.num_inputs(); ++i, ++*next) {
      const Output input = node.input(i);
      const Info& from = info_[input.node->id()];
      int32_t slot = from.first_output + input.index;
      const bool ends_here =
          LastReader(*input.node, input.index) == info.position;
      bool last = ends_here && CountUses(node, input) == 1;
      if (IsAlias(input)) {
        last = false;
        slot = ReadVariable(node, i, slot);
      } else if (ends_here && FirstUse(node, i)) {
        out_.releases.push_back(slot);
      }
      out_.input_slots_[*next] = slot;
      out_.last_use_[*next] = last;
    }
    compiled->reads_end = static_cast<int32_t>(out_.reads.size());
    // Outputs nobody reads go at once.
    for (int o = 0; o < node.num_outputs(); ++o) {
      if (!Alone(info.kind) && LastReader(node, o) == info.position) {
        out_.releases.push_back(info.first_output + o);
      }
    }
    compiled->release_end = static_cast<int32_t>(out_.releases.size());
  }

  // Control-flow ops hand slots on as they are.
  static bool ForwardsSlot(NodeKind kind) {
    return kind == NodeKind::kSwitch || kind == NodeKind::kMerge ||
           kind == NodeKind::kEnter || kind == NodeKind::kExit ||
           kind == NodeKind::kNextIteration;
  }

  // Input i holds a variable. Returns the slot the node shall look at.
  int32_t ReadVariable(const Node& node, int i, int32_t slot) {
    const Info& info = info_[node.id()];
    // What is sent is read when it is taken (kernel/rendezvous.h).
    const bool is_sent =
        info.kind == NodeKind::kSend && IsRef(TypeOf(node.input(i)));
    const bool wants_variable = IsRef(node.input_type(i)) || is_sent ||
                                info.kind == NodeKind::kForwardAlias ||
                                (HandsOn(info.kind) && i == 0);
    if (!wants_variable) {
      const int32_t own = out_.frames[info.frame].num_slots++;
      out_.reads.push_back({slot, own, static_cast<int16_t>(i)});
      out_.releases.push_back(own);
      return own;
    }
    if (!node.op().def.allows_uninitialized_input && !ForwardsSlot(info.kind)) {
      out_.reads.push_back({slot, -1, static_cast<int16_t>(i)});
    }
    return slot;
  }

  static bool FirstUse(const Node& node, int i) {
    for (int j = 0; j < i; ++j) {
      if (node.input(j) == node.input(i)) return false;
    }
    return true;
  }

  static int CountUses(const Node& node, Output input) {
    return static_cast<int>(std::ranges::count(node.inputs(), input));
  }

  // One edge per pair of segments and thing that can be dead.
  void Connect() {
    std::vector<std::vector<SegmentEdge>> out(out_.segments.size());
    for (const Node* node : order_) {
      const Info& info = info_[node->id()];
      for (int i = 0; i < node->num_inputs(); ++i) {
        AddEdge(*node->input(i).node, node->input(i).index, info, i, &out);
      }
      for (const Node* input : node->control_inputs()) {
        AddEdge(*input, -1, info, -1, &out);
      }
    }
    for (size_t s = 0; s < out.size(); ++s) {
      Segment& segment = out_.segments[s];
      segment.edges_begin = static_cast<int32_t>(out_.edges.size());
      for (const SegmentEdge& edge : out[s]) {
        out_.edges.push_back(edge);
        Segment& dst = out_.segments[edge.dst];
        if (dst.kind != NodeKind::kMerge) {
          ++dst.pending;
        } else if (edge.merge_input == -2) {
          ++dst.merge_controls;
        } else {
          ++dst.merge_data;
        }
      }
      segment.edges_end = static_cast<int32_t>(out_.edges.size());
    }
    for (size_t s = 0; s < out_.segments.size(); ++s) {
      const Segment& segment = out_.segments[s];
      if (segment.pending == 0 && segment.kind != NodeKind::kMerge) {
        out_.roots.push_back(static_cast<int32_t>(s));
      }
    }
  }

  void AddEdge(const Node& src, int output, const Info& to, int dst_input,
               std::vector<std::vector<SegmentEdge>>* out) {
    const Info& from = info_[src.id()];
    if (from.segment == to.segment) return;
    const bool src_alone = segment_alone_[from.segment] && Alone(from.kind);
    SegmentEdge edge;
    edge.dst = to.segment;
    edge.src_slot = src_alone && output >= 0 ? from.first_output + output : -1;
    edge.merge_input = -1;
    if (to.kind == NodeKind::kMerge)
      edge.merge_input = dst_input >= 0 ? dst_input : -2;
    edge.from_enter = from.kind == NodeKind::kEnter;
    edge.always_live = from.kind == NodeKind::kControlTrigger ||
                       (from.kind == NodeKind::kRecv && output < 0);
    // One arrival is enough, but each input of a merge counts.
    if (edge.merge_input < 0 &&
        !edges_.emplace(from.segment, edge.dst, edge.src_slot, edge.merge_input)
             .second) {
      return;
    }
    (*out)[from.segment].push_back(edge);
  }

  const Graph& graph_;
  Program& out_;
  std::vector<const Node*> order_;
  std::vector<Info> info_;
  std::vector<bool> segment_alone_;
  // Source and destination segment, source slot, input of a merge.
  absl::flat_hash_set<std::tuple<int32_t, int32_t, int32_t, int32_t>> edges_;
  std::map<std::vector<int>, int> set_ids_;
  std::vector<std::vector<int>> sets_;
  std::map<std::pair<int, int>, int> tokens_;
  std::map<int, std::vector<std::pair<int, int32_t>>> pending_free_;
};

absl::StatusOr<std::unique_ptr<Program>> Program::Compile(
    const Graph& graph, Device& device, const std::vector<std::string>& feeds,
    const std::vector<std::string>& fetches, KernelSource kernels) {
  auto program = std::make_unique<Program>();
  ProgramCompiler compiler(graph, device, program.get());
  SLUICE_RETURN_IF_ERROR(compiler.Compile(feeds, fetches, kernels));
  return program;
}

}  // namespace sluice
