#include "sluice/executor/executor.h"

#include <chrono>
#include <deque>
#include <new>

#include "sluice/base/hash.h"
#include "sluice/base/logging.h"
#include "sluice/base/thread_pool.h"

namespace sluice {
namespace {

std::atomic<int64_t> kernels_run{0};
thread_local bool is_network_thread = false;

// Work predicted to take longer than this leaves a network thread.
constexpr float kHeavyNanos = 20e3f;

}  // namespace

int64_t KernelsRun() { return kernels_run.load(std::memory_order_relaxed); }
void MarkNetworkThread() { is_network_thread = true; }

absl::Status AtNode(const absl::Status& status, const Node& node) {
  const std::string text(status.message());
  const bool tagged = text.find("{{node") != std::string::npos;
  if (text.find("\n\t [[") != std::string::npos) return status;
  return WithMessage(status, StrCat(text, "\n\t [[", tagged ? "" : "{{node ",
                                    node.name(), tagged ? "" : "}}", "]]"));
}

namespace {

struct LoopFrame;

// One set of slots and counters: the root, or an iteration of a loop.
struct Iteration {
  struct MergeState {
    int controls_left = 0;
    int dead_left = 0;
    int live_input = -1;
    bool fired = false;
  };

  Iteration(const Program& program, const ProgramFrame& def)
      : slots(def.num_slots),
        pending(std::make_unique<std::atomic<int32_t>[]>(def.segments.size())),
        dead(std::make_unique<std::atomic<bool>[]>(def.segments.size())),
        merges(def.segments.size()) {
    Reset(program, def);
  }

  void Reset(const Program& program, const ProgramFrame& def) {
    for (size_t i = 0; i < def.segments.size(); ++i) {
      const Segment& segment = program.segments[def.segments[i]];
      pending[i].store(segment.pending, std::memory_order_relaxed);
      dead[i].store(false, std::memory_order_relaxed);
      if (segment.kind == NodeKind::kMerge) {
        merges[i] = {segment.merge_controls, segment.merge_data, -1, false};
      }
    }
    for (Slot& slot : slots) slot.Clear();
    outstanding = 0;
    child_frames = 0;
  }

  std::vector<Slot> slots;
  std::unique_ptr<std::atomic<int32_t>[]> pending;
  std::unique_ptr<std::atomic<bool>[]> dead;
  std::vector<MergeState> merges;
  LoopFrame* frame = nullptr;  // Null for the root.
  int64_t number = 0;
  std::string frame_and_iter = "0:0";
  // Loops only, under the run's loop lock.
  int outstanding = 0;
  int child_frames = 0;
};

// A running loop.
struct LoopFrame {
  int def = 0;
  Iteration* parent = nullptr;
  std::string full_name;
  uint64_t id = 0;
  std::deque<std::unique_ptr<Iteration>> iterations;  // The active ones.
  int64_t newest = -1;
  int enters_left = 0;
  struct Value {
    int segment;  // Of the node whose edges carry it.
    int slot;
    Slot value;
  };
  std::vector<Value> invariants;
  std::vector<Value> deferred;  // For the next iteration, when it may start.
  std::vector<int> dead_exits;  // Segments.
};

}  // namespace

class ExecutorRun {
 public:
  explicit ExecutorRun(Executor& owner)
      : owner_(owner),
        program_(*owner.program_),
        root_(program_, program_.frames[0]) {}

  void Start(Executor::Args args, Executor::Done done) {
    args_ = std::move(args);
    done_ = std::move(done);
    failed_.store(false, std::memory_order_relaxed);
    status_ = absl::OkStatus();
    if (program_.straight()) {
      RunPlain(root_, 0, false);
      Complete();
      return;
    }
    // One extra unit of activity keeps the run from ending while it starts.
    active_.store(1, std::memory_order_relaxed);
    ReadyQueue ready;
    for (int32_t segment : program_.roots) MakeReady(root_, segment, &ready);
    Process(&ready);
    Finish();
  }

  void Reset() {
    root_.Reset(program_, program_.frames[0]);
    frames_.clear();
    spare_.clear();
  }

 private:
  struct Ready {
    Iteration* iteration;
    int segment;
  };
  // What can run now. Kernels that wait come first, so that they wait while
  // others compute; the rest in the order it became ready.
  class ReadyQueue {
   public:
    void Push(const Ready& item, bool waits) {
      (waits ? waiting_ : others_).push_back(item);
    }
    bool empty() const { return waiting_.empty() && next_ == others_.size(); }
    Ready Pop() {
      if (!waiting_.empty()) {
        const Ready item = waiting_.back();
        waiting_.pop_back();
        return item;
      }
      const Ready item = others_[next_++];
      if (next_ == others_.size()) {
        others_.clear();
        next_ = 0;
      }
      return item;
    }

   private:
    std::vector<Ready> waiting_;
    std::vector<Ready> others_;
    size_t next_ = 0;
  };
  // What an async kernel needs until it is done.
  struct AsyncCall {
    AsyncCall(Step& step, Device& device, Iteration& it)
        : ctx(step, device, it.slots.data()), iteration(&it) {}
    KernelContext ctx;
    Iteration* iteration;
    int segment = 0;
    absl::Status status;
    // 0 while Start runs, 1 finished before it returned, 2 it returned first.
    std::atomic<int> state{0};
    int64_t start_nanos = 0;
  };

  int Local(int segment) const { return program_.segment_local[segment]; }
  const ProgramNode& Only(int segment) const {
    return program_.nodes[program_.segments[segment].begin];
  }

  // ---- Life of the run ----

  void Fail(const absl::Status& status) {
    bool first = false;
    {
      MutexLock lock(mu_);
      if (status_.ok()) {
        status_ = status;
        first = true;
      }
    }
    failed_.store(true, std::memory_order_release);
    if (first && args_.on_error) args_.on_error(status);
  }

  bool stopped() const { return failed_.load(std::memory_order_acquire); }

  void Finish() {
    if (active_.fetch_sub(1, std::memory_order_acq_rel) == 1) Complete();
  }

  void Complete() {
    absl::Status status;
    {
      MutexLock lock(mu_);
      status = status_;
    }
    Executor::Done done = std::move(done_);
    args_ = {};
    Executor& owner = owner_;
    Reset();
    owner.GiveRun(std::unique_ptr<ExecutorRun>(this));
    done(std::move(status));
  }

  // ---- Scheduling ----

  void MakeReady(Iteration& it, int segment, ReadyQueue* ready) {
    active_.fetch_add(1, std::memory_order_relaxed);
    if (it.frame != nullptr) ++it.outstanding;
    ready->Push({&it, segment}, StartsWaiting(program_.segments[segment].kind));
  }

  static bool StartsWaiting(NodeKind kind) {
    return kind == NodeKind::kAsync || kind == NodeKind::kRecv;
  }

  // Runs everything in `ready` and what that makes ready.
  void Process(ReadyQueue* ready) {
    while (!ready->empty()) RunOne(ready->Pop(), ready);
  }

  void RunOne(const Ready& item, ReadyQueue* ready) {
    const Segment& segment = program_.segments[item.segment];
    Iteration& it = *item.iteration;
    if (stopped()) {
      Done(it, ready);
      return;
    }
    const bool dead =
        it.dead[Local(item.segment)].load(std::memory_order_relaxed);
    if (StartsWaiting(segment.kind) &&
        (!dead || segment.kind == NodeKind::kRecv)) {
      StartAsync(it, item.segment, ready);
      return;
    }
    bool now_dead = dead;
    if (segment.kind == NodeKind::kPlain) {
      const SteadyTime start = std::chrono::steady_clock::now();
      RunPlain(it, item.segment, dead);
      if (!dead) owner_.Measured(item.segment, start);
    } else if (!dead || segment.kind == NodeKind::kMerge) {
      RunControlFlow(it, item.segment, &now_dead);
    }
    if (!stopped()) Propagate(it, item.segment, now_dead, ready);
    Done(it, ready);
  }

  // One ready thing of `it` is over.
  void Done(Iteration& it, ReadyQueue* ready) {
    if (it.frame != nullptr) {
      MutexLock lock(loop_mu_);
      --it.outstanding;
      if (!stopped()) CleanUpFrame(it.frame, ready);
    }
    Finish();
  }

  // ---- Kernels ----

  // Reads the variables that the node takes by value, and checks the others.
  absl::Status ReadVariables(Iteration& it, const ProgramNode& node, int only) {
    for (int r = node.reads_begin; r < node.reads_end; ++r) {
      const AliasRead& read = program_.reads[r];
      if (only >= 0 && read.input != only) continue;
      Slot& from = it.slots[read.from];
      const Node& op = *node.slots.node;
      if (from.variable.get() == nullptr) {
        return Internal("Input ", static_cast<int>(read.input), " of ",
                        op.name(), " holds no variable");
      }
      Tensor value = from.variable->Read();
      if (!value.initialized() && !op.op().def.allows_uninitialized_input) {
        return FailedPrecondition("Attempting to use uninitialized value ",
                                  op.input(read.input).node->name());
      }
      if (read.to >= 0) {
        it.slots[read.to].tensor = std::move(value);
        it.slots[read.to].kind = Slot::Kind::kValue;
      }
    }
    return absl::OkStatus();
  }

  absl::Status RunNode(Iteration& it, KernelContext& ctx,
                       const ProgramNode& node) {
    if (node.reads_begin != node.reads_end) {
      SLUICE_RETURN_IF_ERROR(ReadVariables(it, node, -1));
    }
    ctx.Enter(node.slots);
    switch (node.kind) {
      case NodeKind::kFeed: {
        // It may come from another process.
        const Tensor& fed = args_.feeds[node.io_index];
        const DType expected = node.slots.node->output_type(0);
        if (fed.dtype() != expected) {
          return InvalidArgument(
              "The value fed for ",
              node.slots.node->attr<std::string>("tensor_name"), " is of type ",
              DTypeName(fed.dtype()), ", but ", DTypeName(expected),
              " is expected");
        }
        ctx.set_output(0, fed);
        return absl::OkStatus();
      }
      case NodeKind::kFetch:
        // What leaves the step must not lie in memory that others give back.
        args_.fetches[node.io_index] = ctx.input(0);
        return absl::OkStatus();
      case NodeKind::kForwardAlias: {
        Slot& to = ctx.output_slot(0);
        to.variable = ctx.input_slot(0).variable;
        to.kind = Slot::Kind::kAlias;
        return absl::OkStatus();
      }
      default:
        return node.function != nullptr ? node.function(ctx)
                                        : node.kernel->Run(ctx);
    }
  }

  void RunPlain(Iteration& it, int index, bool dead) {
    const Segment& segment = program_.segments[index];
    if (dead) {
      if (segment.has_transfers) SendDead(it, segment);
      return;
    }
    KernelContext ctx(*args_.step, *program_.device, it.slots.data());
    ctx.set_frame_and_iter(it.frame_and_iter);
    const ProgramNode* node = &program_.nodes[segment.begin];
    const ProgramNode* const end = &program_.nodes[0] + segment.end;
    const bool traced = args_.step->stats != nullptr;
    try {
      for (; node != end; ++node) {
        const int64_t start = traced ? NowNanos() : 0;
        absl::Status status = RunNode(it, ctx, *node);
        if (__builtin_expect(!status.ok(), 0)) {
          Fail(AtNode(status, *node->slots.node));
          return;
        }
        if (traced) Trace(it, *node, start);
        for (int r = node->release_begin; r < node->release_end; ++r) {
          it.slots[program_.releases[r]].Clear();
        }
        if ((&*node - &program_.nodes[0]) % 64 == 63 && Cancelled()) return;
      }
    } catch (const std::bad_alloc&) {
      Fail(AtNode(ResourceExhausted("Out of memory"), *node->slots.node));
      return;
    }
    kernels_run.fetch_add(segment.end - segment.begin,
                          std::memory_order_relaxed);
  }

  bool Cancelled() {
    Cancellation* cancellation = args_.step->cancellation;
    if (cancellation == nullptr || !cancellation->cancelled()) return false;
    Fail(cancellation->status());
    return true;
  }

  // A dead segment still tells its receivers, and the caller of a fetch.
  void SendDead(Iteration& it, const Segment& segment) {
    KernelContext ctx(*args_.step, *program_.device, it.slots.data());
    ctx.set_frame_and_iter(it.frame_and_iter);
    ctx.set_input_dead(true);
    for (int n = segment.begin; n < segment.end; ++n) {
      const ProgramNode& node = program_.nodes[n];
      absl::Status status;
      if (node.kind == NodeKind::kSend) {
        ctx.Enter(node.slots);
        status = node.function != nullptr ? node.function(ctx)
                                          : node.kernel->Run(ctx);
      } else if (node.kind == NodeKind::kFetch) {
        status =
            InvalidArgument("Retval[", node.io_index, "] does not have value");
      }
      if (!status.ok()) {
        Fail(AtNode(status, *node.slots.node));
        return;
      }
    }
  }

  void StartAsync(Iteration& it, int segment, ReadyQueue* ready) {
    const ProgramNode& node = Only(segment);
    absl::Status status = ReadVariables(it, node, -1);
    if (!status.ok()) {
      Fail(AtNode(status, *node.slots.node));
      Done(it, ready);
      return;
    }
    AsyncCall* call = new AsyncCall(*args_.step, *program_.device, it);
    call->segment = segment;
    call->ctx.set_frame_and_iter(it.frame_and_iter);
    call->ctx.Enter(node.slots);
    if (args_.step->stats != nullptr) call->start_nanos = NowNanos();
    node.kernel->AsAsync()->Start(call->ctx, [this, call](absl::Status s) {
      call->status = std::move(s);
      if (call->state.exchange(1, std::memory_order_acq_rel) == 0) return;
      // Start has returned: go on here, on the thread that brought the news.
      FinishAsync(call);
    });
    if (call->state.exchange(2, std::memory_order_acq_rel) == 1) {
      EndAsync(call, ready);
    }
  }

  void FinishAsync(AsyncCall* call) {
    if (is_network_thread && Heavy(call->segment)) {
      ComputePool().Schedule([this, call] {
        ReadyQueue ready;
        EndAsync(call, &ready);
        Process(&ready);
      });
      return;
    }
    ReadyQueue ready;
    EndAsync(call, &ready);
    Process(&ready);
  }

  // Whether what follows this node is likely to take long.
  bool Heavy(int segment) const {
    float nanos = 0;
    const Segment& from = program_.segments[segment];
    for (int e = from.edges_begin; e < from.edges_end; ++e) {
      nanos +=
          owner_.costs_[program_.edges[e].dst].load(std::memory_order_relaxed);
    }
    return nanos > kHeavyNanos;
  }

  void EndAsync(AsyncCall* call, ReadyQueue* ready) {
    Iteration& it = *call->iteration;
    const int segment = call->segment;
    const ProgramNode& node = Only(segment);
    const absl::Status status = std::move(call->status);
    const int64_t start = call->start_nanos;
    delete call;
    kernels_run.fetch_add(1, std::memory_order_relaxed);
    if (!status.ok()) {
      Fail(AtNode(status, *node.slots.node));
    } else {
      if (args_.step->stats != nullptr) Trace(it, node, start);
      for (int r = node.release_begin; r < node.release_end; ++r) {
        it.slots[program_.releases[r]].Clear();
      }
      if (!stopped()) Propagate(it, segment, false, ready);
    }
    Done(it, ready);
  }

  // ---- Control flow ----

  // Value of input i of a control-flow node, variables read where asked for.
  absl::StatusOr<Slot*> InputSlot(Iteration& it, const ProgramNode& node,
                                  int i) {
    SLUICE_RETURN_IF_ERROR(ReadVariables(it, node, i));
    return &it.slots[node.slots.inputs[i]];
  }

  void RunControlFlow(Iteration& it, int segment, bool* dead) {
    const ProgramNode& node = Only(segment);
    absl::Status status;
    switch (node.kind) {
      case NodeKind::kSwitch:
        status = RunSwitch(it, node);
        break;
      case NodeKind::kMerge:
        status = RunMerge(it, segment, node, dead);
        break;
      default:  // Enter, Exit, NextIteration hand on in Propagate.
        status = ReadVariables(it, node, -1);
        break;
    }
    kernels_run.fetch_add(1, std::memory_order_relaxed);
    if (!status.ok()) Fail(AtNode(status, *node.slots.node));
  }

  absl::Status RunSwitch(Iteration& it, const ProgramNode& node) {
    SLUICE_ASSIGN_OR_RETURN(Slot * pred, InputSlot(it, node, 1));
    if (pred->tensor.rank() != 0) {
      return InvalidArgument(
          "The second input must be a scalar, but it has shape ",
          pred->tensor.shape().DebugString());
    }
    const int taken = pred->tensor.scalar<bool>() ? 1 : 0;
    SLUICE_ASSIGN_OR_RETURN(Slot * data, InputSlot(it, node, 0));
    it.slots[node.slots.first_output + taken] = *data;
    Slot& other = it.slots[node.slots.first_output + 1 - taken];
    other.Clear();
    other.kind = Slot::Kind::kDead;
    return absl::OkStatus();
  }

  absl::Status RunMerge(Iteration& it, int segment, const ProgramNode& node,
                        bool* dead) {
    const int live = it.merges[Local(segment)].live_input;
    *dead = live < 0;
    for (int o = 0; o < 2; ++o) {
      Slot& out = it.slots[node.slots.first_output + o];
      out.Clear();
      if (*dead) out.kind = Slot::Kind::kDead;
    }
    if (*dead) return absl::OkStatus();
    SLUICE_ASSIGN_OR_RETURN(Slot * value, InputSlot(it, node, live));
    it.slots[node.slots.first_output] = *value;
    Slot& index = it.slots[node.slots.first_output + 1];
    index.tensor = Tensor::Scalar<int32_t>(live);
    index.kind = Slot::Kind::kValue;
    return absl::OkStatus();
  }

  // ---- Propagation ----

  void Propagate(Iteration& it, int segment, bool dead, ReadyQueue* ready) {
    const NodeKind kind = program_.segments[segment].kind;
    if (it.frame == nullptr && kind != NodeKind::kEnter) {
      PropagateTo(it, it, segment, dead, ready);
      return;
    }
    MutexLock lock(loop_mu_);
    switch (kind) {
      case NodeKind::kEnter:
        EnterFrame(it, segment, dead, ready);
        break;
      case NodeKind::kExit:
        ExitFrame(it, segment, dead, ready);
        break;
      case NodeKind::kNextIteration:
        if (!dead) NextIteration(it, segment, ready);
        break;
      default:
        PropagateTo(it, it, segment, dead, ready);
    }
  }

  // Delivers every edge of `segment` into `to`; slots are looked up in `from`.
  void PropagateTo(Iteration& from, Iteration& to, int segment, bool dead,
                   ReadyQueue* ready) {
    const Segment& source = program_.segments[segment];
    for (int e = source.edges_begin; e < source.edges_end; ++e) {
      const SegmentEdge& edge = program_.edges[e];
      bool edge_dead = dead && !edge.always_live;
      if (edge.src_slot >= 0 &&
          from.slots[edge.src_slot].kind == Slot::Kind::kDead) {
        edge_dead = true;
      }
      Deliver(to, edge, edge_dead, ready);
    }
  }

  void Deliver(Iteration& it, const SegmentEdge& edge, bool dead,
               ReadyQueue* ready) {
    const Segment& dst = program_.segments[edge.dst];
    const int local = Local(edge.dst);
    if (dst.kind == NodeKind::kMerge) {
      if (ArriveAtMerge(it, local, edge, dead)) MakeReady(it, edge.dst, ready);
      return;
    }
    if (dead && dst.kind != NodeKind::kControlTrigger) {
      it.dead[local].store(true, std::memory_order_relaxed);
    }
    if (it.pending[local].fetch_sub(1, std::memory_order_acq_rel) == 1) {
      MakeReady(it, edge.dst, ready);
    }
  }

  // True when the merge can run.
  bool ArriveAtMerge(Iteration& it, int local, const SegmentEdge& edge,
                     bool dead) {
    MutexLock lock(merge_mu_);
    Iteration::MergeState& merge = it.merges[local];
    if (edge.merge_input == -2) {
      --merge.controls_left;
    } else if (!dead) {
      if (merge.live_input < 0) merge.live_input = edge.merge_input;
    } else {
      // A loop that is not entered gives its merge nothing more to wait for.
      merge.dead_left = edge.from_enter ? 0 : merge.dead_left - 1;
    }
    if (merge.fired || merge.controls_left > 0) return false;
    if (merge.live_input < 0 && merge.dead_left > 0) return false;
    merge.fired = true;
    return true;
  }

  // ---- Loops (all under loop_mu_) ----

  LoopFrame* FindOrMakeFrame(Iteration& parent, int def) {
    for (const auto& frame : frames_) {
      if (frame->def == def && frame->parent == &parent) return frame.get();
    }
    auto frame = std::make_unique<LoopFrame>();
    frame->def = def;
    frame->parent = &parent;
    // docs/protocol: the hashed name is what both ends of a transfer compute.
    frame->full_name =
        StrCat(parent.frame == nullptr ? "" : parent.frame->full_name, ";",
               parent.number, ";", program_.frames[def].name);
    frame->id = Hash64(frame->full_name);
    frame->enters_left = program_.frames[def].num_enters;
    ++parent.child_frames;
    frames_.push_back(std::move(frame));
    LoopFrame* added = frames_.back().get();
    AddIteration(added);
    return added;
  }

  Iteration& AddIteration(LoopFrame* frame) {
    const ProgramFrame& def = program_.frames[frame->def];
    std::unique_ptr<Iteration> it;
    auto& spare = spare_[frame->def];
    if (!spare.empty()) {
      it = std::move(spare.back());
      spare.pop_back();
    } else {
      it = std::make_unique<Iteration>(program_, def);
    }
    it->frame = frame;
    it->number = ++frame->newest;
    it->frame_and_iter = StrCat(frame->id, ":", it->number);
    frame->iterations.push_back(std::move(it));
    return *frame->iterations.back();
  }

  void DeliverValue(Iteration& it, const LoopFrame::Value& value,
                    ReadyQueue* ready) {
    it.slots[value.slot] = value.value;
    PropagateTo(it, it, value.segment, false, ready);
  }

  void EnterFrame(Iteration& it, int segment, bool dead, ReadyQueue* ready) {
    const ProgramNode& node = Only(segment);
    LoopFrame* frame = FindOrMakeFrame(it, node.child_frame);
    --frame->enters_left;
    LoopFrame::Value value{segment, node.slots.first_output, {}};
    if (!dead) value.value = it.slots[node.slots.inputs[0]];
    if (node.is_constant && !dead) {
      for (auto& iteration : frame->iterations) {
        DeliverValue(*iteration, value, ready);
      }
      frame->invariants.push_back(std::move(value));
    } else {
      Iteration& first = *frame->iterations.front();
      if (!dead) {
        DeliverValue(first, value, ready);
      } else {
        first.slots[value.slot].kind = Slot::Kind::kDead;
        PropagateTo(first, first, segment, true, ready);
      }
    }
    CleanUpFrame(frame, ready);
  }

  void ExitFrame(Iteration& it, int segment, bool dead, ReadyQueue* ready) {
    LoopFrame* frame = it.frame;
    if (dead) {
      if (it.number == frame->newest) frame->dead_exits.push_back(segment);
      return;
    }
    const ProgramNode& node = Only(segment);
    frame->parent->slots[node.slots.first_output] =
        it.slots[node.slots.inputs[0]];
    PropagateTo(*frame->parent, *frame->parent, segment, false, ready);
  }

  void NextIteration(Iteration& it, int segment, ReadyQueue* ready) {
    const ProgramNode& node = Only(segment);
    LoopFrame* frame = it.frame;
    LoopFrame::Value value{segment, node.slots.first_output,
                           it.slots[node.slots.inputs[0]]};
    if (it.number < frame->newest) {
      Iteration& next =
          *frame->iterations[it.number + 1 - frame->iterations.front()->number];
      DeliverValue(next, value, ready);
      return;
    }
    frame->deferred.push_back(std::move(value));
    MaybeStartIteration(frame, ready);
  }

  void MaybeStartIteration(LoopFrame* frame, ReadyQueue* ready) {
    const int limit = program_.frames[frame->def].parallel_iterations;
    if (frame->deferred.empty() ||
        static_cast<int>(frame->iterations.size()) >= limit) {
      return;
    }
    frame->dead_exits.clear();
    Iteration& next = AddIteration(frame);
    for (const auto& value : frame->invariants)
      DeliverValue(next, value, ready);
    std::vector<LoopFrame::Value> values;
    values.swap(frame->deferred);
    for (const auto& value : values) DeliverValue(next, value, ready);
  }

  // Ends iterations and the frame itself when nothing runs in them any more.
  void CleanUpFrame(LoopFrame* frame, ReadyQueue* ready) {
    while (!frame->iterations.empty()) {
      Iteration& oldest = *frame->iterations.front();
      if (oldest.outstanding > 0 || oldest.child_frames > 0) return;
      if (oldest.number == 0 && frame->enters_left > 0) return;
      // The newest may still be continued by what runs in an older one, but
      // none is older than this. What waits to follow it can start now.
      std::unique_ptr<Iteration> over = std::move(frame->iterations.front());
      frame->iterations.pop_front();
      MaybeStartIteration(frame, ready);
      over->Reset(program_, program_.frames[frame->def]);
      spare_[frame->def].push_back(std::move(over));
    }
    if (frame->enters_left > 0 || !frame->deferred.empty()) return;
    Iteration& parent = *frame->parent;
    for (int segment : frame->dead_exits) {
      parent.slots[Only(segment).slots.first_output].kind = Slot::Kind::kDead;
      PropagateTo(parent, parent, segment, true, ready);
    }
    --parent.child_frames;
    std::erase_if(frames_, [&](const auto& f) { return f.get() == frame; });
    if (parent.frame != nullptr) CleanUpFrame(parent.frame, ready);
  }

  // ---- Tracing ----

  int64_t NowNanos() const { return args_.step->clock->WallMicros() * 1000; }

  void Trace(Iteration& it, const ProgramNode& node, int64_t start) {
    NodeStats stats;
    const Node& op = *node.slots.node;
    stats.node = op.name();
    stats.label = StrCat(op.name(), " = ", op.type(), "(");
    for (int i = 0; i < op.num_inputs(); ++i) {
      StrAppend(&stats.label, i > 0 ? ", " : "", op.input(i).node->name());
    }
    stats.label += ")";
    stats.scheduled_nanos = start;
    stats.start_nanos = start;
    stats.end_nanos = NowNanos();
    for (int o = 0; o < op.num_outputs(); ++o) {
      const Slot& slot = it.slots[node.slots.first_output + o];
      if (slot.kind != Slot::Kind::kValue) continue;
      stats.outputs.push_back({o, slot.tensor.dtype(), slot.tensor.shape(),
                               static_cast<int64_t>(slot.tensor.bytes())});
    }
    args_.step->stats->Add(program_.device->name(), std::move(stats));
  }

  Executor& owner_;
  const Program& program_;
  Executor::Args args_;
  Executor::Done done_;
  std::atomic<int> active_{0};
  std::atomic<bool> failed_{false};
  Mutex mu_;
  absl::Status status_ SLUICE_GUARDED_BY(mu_);
  Mutex merge_mu_;
  Iteration root_;

  Mutex loop_mu_;
  std::vector<std::unique_ptr<LoopFrame>> frames_ SLUICE_GUARDED_BY(loop_mu_);
  // Iterations that ended, by frame, for the next ones.
  absl::flat_hash_map<int, std::vector<std::unique_ptr<Iteration>>> spare_
      SLUICE_GUARDED_BY(loop_mu_);
};

Executor::Executor(std::unique_ptr<Program> program)
    : program_(std::move(program)),
      costs_(
          std::make_unique<std::atomic<float>[]>(program_->segments.size())) {}
Executor::~Executor() = default;

std::unique_ptr<ExecutorRun> Executor::TakeRun() {
  {
    MutexLock lock(mu_);
    if (!idle_.empty()) {
      std::unique_ptr<ExecutorRun> run = std::move(idle_.back());
      idle_.pop_back();
      return run;
    }
  }
  return std::make_unique<ExecutorRun>(*this);
}

void Executor::GiveRun(std::unique_ptr<ExecutorRun> run) {
  MutexLock lock(mu_);
  idle_.push_back(std::move(run));
}

void Executor::Measured(int segment, SteadyTime start) {
  const float nanos = std::chrono::duration<float, std::nano>(
                          std::chrono::steady_clock::now() - start)
                          .count();
  std::atomic<float>& cost = costs_[segment];
  const float old = cost.load(std::memory_order_relaxed);
  // A moving average; lost updates between threads do not matter.
  cost.store(old == 0 ? nanos : old + 0.125f * (nanos - old),
             std::memory_order_relaxed);
}

void Executor::Run(Args args, Done done) {
  if (program_->segments.empty()) {
    done(absl::OkStatus());
    return;
  }
  // The run owns itself while it is under way and returns in Complete().
  TakeRun().release()->Start(std::move(args), std::move(done));
}

}  // namespace sluice
