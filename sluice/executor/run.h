// One step's run through a Program. Private to executor/.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "sluice/base/mutex.h"
#include "sluice/executor/executor.h"

namespace sluice {

void CountKernels(int64_t count);

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

// Used again by later steps. Belongs to itself while it is under way.
class ExecutorRun {
 public:
  explicit ExecutorRun(Executor& owner)
      : owner_(owner),
        program_(*owner.program_),
        root_(program_, program_.frames[0]) {}

  void Start(Executor::Args args, Executor::Done done);

 private:
  class Nest;

  void Begin(bool measure);

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
    const Ready& Next() const {
      return waiting_.empty() ? others_[next_] : waiting_.back();
    }
    Ready Pop() {
      if (!waiting_.empty()) {
        const Ready item = waiting_.back();
        waiting_.pop_back();
        return item;
      }
      const Ready item = others_[next_++];
      // A loop may go on for ever without a moment when nothing is ready.
      if (next_ == others_.size() ||
          (next_ >= kKept && next_ > others_.size() / 2)) {
        others_.erase(others_.begin(),
                      others_.begin() + static_cast<ptrdiff_t>(next_));
        next_ = 0;
      }
      return item;
    }

   private:
    static constexpr size_t kKept = 1024;
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
    // Only while it is deferred.
    ExecutorRun* run = nullptr;
    AsyncCall* next_deferred = nullptr;
  };

  int Local(int segment) const { return program_.segment_local[segment]; }
  const ProgramNode& Only(int segment) const {
    return program_.nodes[program_.segments[segment].begin];
  }

  // ---- Life of the run (run.cc) ----

  void Reset();
  void Fail(const absl::Status& status);
  bool stopped() const { return failed_.load(std::memory_order_acquire); }
  void Finish() {
    if (active_.fetch_sub(1, std::memory_order_acq_rel) == 1) Complete();
  }
  void Complete();

  // ---- Scheduling ----

  void MakeReady(Iteration& it, int segment, ReadyQueue* ready);
  static bool StartsWaiting(NodeKind kind) {
    return kind == NodeKind::kAsync || kind == NodeKind::kRecv;
  }
  // Runs everything in `ready` and what that makes ready, or has the compute
  // pool go on with it when that takes a thread too long that others need.
  void Process(ReadyQueue* ready);
  // Returns how many nanoseconds its kernels took.
  int64_t RunOne(const Ready& item, ReadyQueue* ready);
  // Runs a plain segment and notes how long it took, without what others did
  // meanwhile inside of it.
  int64_t Measure(Iteration& it, int segment);
  // One ready thing of `it` is over.
  void Done(Iteration& it, ReadyQueue* ready);

  // ---- Kernels ----

  // Reads the variables that the node takes by value, and checks the others.
  absl::Status ReadVariables(Iteration& it, const ProgramNode& node, int only);
  absl::Status RunNode(Iteration& it, KernelContext& ctx,
                       const ProgramNode& node);
  void RunPlain(Iteration& it, int index, bool dead);
  bool Cancelled();
  // A dead segment still tells its receivers, and the caller of a fetch.
  void SendDead(Iteration& it, const Segment& segment);
  void StartAsync(Iteration& it, int segment, ReadyQueue* ready);
  // When the call is over: goes on here, on the thread that brought the news,
  // if that has the time.
  void FinishAsync(AsyncCall* call);
  void GoOn(AsyncCall* call);
  // Whether what follows this node is likely to take long.
  bool Heavy(int segment) const;
  bool HeavyStart() const;
  void EndAsync(AsyncCall* call, ReadyQueue* ready);

  // ---- Tracing ----

  int64_t NowNanos() const { return args_.step->clock->WallMicros() * 1000; }
  void Trace(Iteration& it, const ProgramNode& node, int64_t scheduled,
             int64_t start);

  // ---- Control flow (control_flow.cc) ----

  // Value of input i of a control-flow node, variables read where asked for.
  absl::StatusOr<Slot*> InputSlot(Iteration& it, const ProgramNode& node,
                                  int i);
  void RunControlFlow(Iteration& it, int segment, bool* dead);
  absl::Status RunSwitch(Iteration& it, const ProgramNode& node);
  absl::Status RunMerge(Iteration& it, int segment, const ProgramNode& node,
                        bool* dead);
  void Propagate(Iteration& it, int segment, bool dead, ReadyQueue* ready);
  // Delivers every edge of `segment` into `to`; slots are looked up in `from`.
  void PropagateTo(Iteration& from, Iteration& to, int segment, bool dead,
                   ReadyQueue* ready);
  void Deliver(Iteration& it, const SegmentEdge& edge, bool dead,
               ReadyQueue* ready);
  // True when the merge can run.
  bool ArriveAtMerge(Iteration& it, int local, const SegmentEdge& edge,
                     bool dead);

  // ---- Loops ----

  LoopFrame* FindOrMakeFrame(Iteration& parent, int def)
      SLUICE_REQUIRES(loop_mu_);
  Iteration& AddIteration(LoopFrame* frame) SLUICE_REQUIRES(loop_mu_);
  void DeliverValue(Iteration& it, const LoopFrame::Value& value,
                    ReadyQueue* ready) SLUICE_REQUIRES(loop_mu_);
  void EnterFrame(Iteration& it, int segment, bool dead, ReadyQueue* ready)
      SLUICE_REQUIRES(loop_mu_);
  void ExitFrame(Iteration& it, int segment, bool dead, ReadyQueue* ready)
      SLUICE_REQUIRES(loop_mu_);
  void NextIteration(Iteration& it, int segment, ReadyQueue* ready)
      SLUICE_REQUIRES(loop_mu_);
  void MaybeStartIteration(LoopFrame* frame, ReadyQueue* ready)
      SLUICE_REQUIRES(loop_mu_);
  // Ends iterations and the frame itself when nothing runs in them any more.
  void CleanUpFrame(LoopFrame* frame, ReadyQueue* ready)
      SLUICE_REQUIRES(loop_mu_);

  Executor& owner_;
  const Program& program_;
  Executor::Args args_;
  Executor::Done done_;
  std::atomic<int> active_{0};
  std::atomic<bool> failed_{false};
  // Until this run has left the thread that starts it (see Executor::Args).
  std::atomic<bool> more_to_start_{false};
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

}  // namespace sluice
