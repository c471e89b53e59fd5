#include "sluice/executor/run.h"

#include <unistd.h>

#include <chrono>
#include <new>
#include <stdexcept>

#include "absl/strings/str_join.h"
#include "sluice/base/patience.h"
#include "sluice/base/simulation.h"
#include "sluice/base/thread_pool.h"

namespace sluice {
namespace {

std::atomic<int64_t> kernels_run{0};
thread_local bool is_network_thread = false;

// Work predicted to take longer than this leaves a thread that others need.
constexpr float kHeavyNanos = 20e3f;
// So does what follows light work that took this long.
constexpr int64_t kGuestNanos = 100'000;
// A run that wakes another one carries it on its own stack, up to so many.
constexpr int kDeepest = 32;

}  // namespace

// The runs on a thread's stack: a kernel of one may bring the news that another
// one waits for, as a Send or an enqueue does. The other goes on inside of that
// kernel, unless the stack is deep; then it waits for its turn.
class ExecutorRun::Nest {
 public:
  explicit Nest(const Step& step) : outermost_(thread_.depth++ == 0) {
    if (outermost_) thread_.step = step.id;
  }
  ~Nest() {
    RunDeferred();
    --thread_.depth;
  }
  Nest(const Nest&) = delete;
  Nest& operator=(const Nest&) = delete;

  static bool IsInside() { return thread_.depth > 0; }
  static bool IsDeep() { return thread_.depth >= kDeepest; }
  // Whether this thread is needed for something else than `step`: the network,
  // or another step. In a simulation there is no other thread.
  static bool IsGuest(const Step& step) {
    if (is_network_thread) return true;
    return thread_.depth > 0 && thread_.step != step.id &&
           TheSimulation() == nullptr;
  }
  // What runs inside of others on this thread has taken so far.
  static int64_t& nested_nanos() { return thread_.nested_nanos; }

  static void Defer(ExecutorRun* run, AsyncCall* call) {
    call->run = run;
    call->next_deferred = std::exchange(thread_.deferred, call);
  }
  void RunDeferred() {
    if (!outermost_) return;
    while (AsyncCall* call = thread_.deferred) {
      thread_.deferred = call->next_deferred;
      call->run->FinishAsync(call);
    }
    // The outermost run has its turn now.
    thread_.nested_nanos = 0;
  }

 private:
  struct Thread {
    int depth = 0;
    int64_t step = 0;  // Of the outermost run.
    int64_t nested_nanos = 0;
    AsyncCall* deferred = nullptr;  // A list.
  };
  static constinit thread_local Thread thread_;
  const bool outermost_;
};

constinit thread_local ExecutorRun::Nest::Thread ExecutorRun::Nest::thread_;

int64_t KernelsRun() { return kernels_run.load(std::memory_order_relaxed); }
void CountKernels(int64_t count) {
  kernels_run.fetch_add(count, std::memory_order_relaxed);
}
void MarkNetworkThread() { is_network_thread = true; }

void ExecutorRun::Start(Executor::Args args, Executor::Done done) {
  args_ = std::move(args);
  done_ = std::move(done);
  failed_.store(false, std::memory_order_relaxed);
  more_to_start_ = args_.more_to_start;
  if (!is_network_thread) {
    Begin(/*measure=*/false);
  } else if (HeavyStart()) {
    ComputePool().Schedule([this] { Begin(/*measure=*/true); });
  } else {
    Begin(/*measure=*/true);
  }
}

void ExecutorRun::Begin(bool measure) {
  if (program_.straight()) {
    const Nest nest(*args_.step);
    if (measure) {
      Measure(root_, 0);
    } else {
      RunPlain(root_, 0, false);
    }
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

void ExecutorRun::Reset() {
  root_.Reset(program_, program_.frames[0]);
  if (program_.frames.size() == 1) return;
  MutexLock lock(loop_mu_);
  frames_.clear();
  spare_.clear();
}

void ExecutorRun::Fail(const absl::Status& status) {
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

void ExecutorRun::Complete() {
  absl::Status status;
  {
    MutexLock lock(mu_);
    status = std::exchange(status_, absl::OkStatus());
  }
  Executor::Done done = std::move(done_);
  args_ = {};
  Executor& owner = owner_;
  owner.has_run_.store(true, std::memory_order_relaxed);
  Reset();
  owner.GiveRun(std::unique_ptr<ExecutorRun>(this));
  done(std::move(status));
}

void ExecutorRun::MakeReady(Iteration& it, int segment, ReadyQueue* ready) {
  active_.fetch_add(1, std::memory_order_relaxed);
  if (it.frame != nullptr) ++it.outstanding;
  ready->Push({&it, segment}, StartsWaiting(program_.segments[segment].kind));
}

void ExecutorRun::Process(ReadyQueue* ready) {
  if (ready->empty()) return;
  // A loop may be endless, so now and then others have their say.
  constexpr int kRound = 512;
  const bool guest = Nest::IsGuest(*args_.step);
  // A loop may wait for what only this thread can do next.
  const bool long_loops_go = (guest || Nest::IsInside() || more_to_start_) &&
                             TheSimulation() == nullptr;
  Nest nest(*args_.step);
  int64_t spent = 0;
  for (int left = kRound; !ready->empty(); --left) {
    // Only while something is ready the run is not over, and still ours.
    if (left == 0 && !stopped()) Cancelled();
    const bool others_turn = left == 0 && long_loops_go;
    if (others_turn ||
        (guest && (spent > kGuestNanos ||
                   owner_.Cost(ready->Next().segment) > kHeavyNanos))) {
      more_to_start_ = false;
      ComputePool().Schedule(
          [this, rest = std::move(*ready)]() mutable { Process(&rest); });
      return;
    }
    if (left == 0) left = kRound;
    spent += RunOne(ready->Pop(), ready);
    nest.RunDeferred();
    Patience::Check();
  }
}

int64_t ExecutorRun::Measure(Iteration& it, int segment) {
  const int64_t nested = Nest::nested_nanos();
  const SteadyTime start = std::chrono::steady_clock::now();
  RunPlain(it, segment, false);
  const int64_t nanos =
      std::chrono::nanoseconds(std::chrono::steady_clock::now() - start)
          .count() -
      (Nest::nested_nanos() - nested);
  owner_.Measured(segment, nanos);
  return nanos;
}

int64_t ExecutorRun::RunOne(const Ready& item, ReadyQueue* ready) {
  const Segment& segment = program_.segments[item.segment];
  Iteration& it = *item.iteration;
  if (stopped()) {
    Done(it, ready);
    return 0;
  }
  const bool dead =
      it.dead[Local(item.segment)].load(std::memory_order_relaxed);
  if (StartsWaiting(segment.kind) &&
      (!dead || segment.kind == NodeKind::kRecv)) {
    StartAsync(it, item.segment, ready);
    return 0;
  }
  bool now_dead = dead;
  int64_t nanos = 0;
  if (segment.kind == NodeKind::kPlain && !dead) {
    nanos = Measure(it, item.segment);
  } else if (segment.kind == NodeKind::kPlain) {
    RunPlain(it, item.segment, dead);
  } else if (!dead || segment.kind == NodeKind::kMerge) {
    RunControlFlow(it, item.segment, &now_dead);
  }
  if (!stopped()) Propagate(it, item.segment, now_dead, ready);
  Done(it, ready);
  return nanos;
}

void ExecutorRun::Done(Iteration& it, ReadyQueue* ready) {
  if (it.frame != nullptr) {
    MutexLock lock(loop_mu_);
    --it.outstanding;
    if (!stopped()) CleanUpFrame(it.frame, ready);
  }
  Finish();
}

absl::Status ExecutorRun::ReadVariables(Iteration& it, const ProgramNode& node,
                                        int only) {
  for (int r = node.reads_begin; r < node.reads_end; ++r) {
    const AliasRead& read = program_.reads[r];
    if (only >= 0 && read.input != only) continue;
    Slot& from = it.slots[read.from];
    const Node& op = *node.slots.node;
    if (from.variable.get() == nullptr) {
      return Internal("Input ", static_cast<int>(read.input), " of ", op.name(),
                      " holds no variable");
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

absl::Status ExecutorRun::RunNode(Iteration& it, KernelContext& ctx,
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
      args_.fetches[node.io_index] = ctx.input(0).Owned();
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

void ExecutorRun::RunPlain(Iteration& it, int index, bool dead) {
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
  // The nodes of a segment became ready together.
  const int64_t scheduled = traced ? NowNanos() : 0;
  try {
    for (; node != end; ++node) {
      const int64_t start = traced ? NowNanos() : 0;
      absl::Status status = RunNode(it, ctx, *node);
      if (__builtin_expect(!status.ok(), 0)) {
        Fail(AtNode(status, *node->slots.node));
        return;
      }
      if (traced) Trace(it, *node, scheduled, start);
      for (int r = node->release_begin; r < node->release_end; ++r) {
        it.slots[program_.releases[r]].Clear();
      }
      if ((&*node - &program_.nodes[0]) % 64 == 63 && Cancelled()) return;
    }
  } catch (const std::bad_alloc&) {
    Fail(AtNode(ResourceExhausted("Out of memory"), *node->slots.node));
    return;
  } catch (const std::length_error&) {  // More than any memory has.
    Fail(AtNode(ResourceExhausted("Out of memory"), *node->slots.node));
    return;
  }
  kernels_run.fetch_add(segment.end - segment.begin, std::memory_order_relaxed);
}

bool ExecutorRun::Cancelled() {
  Cancellation* cancellation = args_.step->cancellation;
  if (cancellation == nullptr || !cancellation->cancelled()) return false;
  Fail(cancellation->status());
  return true;
}

void ExecutorRun::SendDead(Iteration& it, const Segment& segment) {
  KernelContext ctx(*args_.step, *program_.device, it.slots.data());
  ctx.set_frame_and_iter(it.frame_and_iter);
  ctx.set_input_dead(true);
  for (int n = segment.begin; n < segment.end; ++n) {
    const ProgramNode& node = program_.nodes[n];
    absl::Status status;
    if (node.kind == NodeKind::kSend) {
      ctx.Enter(node.slots);
      status =
          node.function != nullptr ? node.function(ctx) : node.kernel->Run(ctx);
    } else if (node.kind == NodeKind::kFetch) {
      Fail(DeadFetch(node.io_index));
      return;
    }
    if (!status.ok()) {
      Fail(AtNode(status, *node.slots.node));
      return;
    }
  }
}

void ExecutorRun::StartAsync(Iteration& it, int segment, ReadyQueue* ready) {
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
  const auto done = [this, call](absl::Status s) {
    call->status = std::move(s);
    if (call->state.exchange(1, std::memory_order_acq_rel) == 0) return;
    // Start has returned: go on here, on the thread that brought the news.
    FinishAsync(call);
  };
  // A kernel takes what memory it needs before it waits for anything.
  try {
    node.kernel->AsAsync()->Start(call->ctx, done);
  } catch (const std::bad_alloc&) {
    done(ResourceExhausted("Out of memory"));
  } catch (const std::length_error&) {
    done(ResourceExhausted("Out of memory"));
  }
  if (call->state.exchange(2, std::memory_order_acq_rel) == 1) {
    EndAsync(call, ready);
  }
}

void ExecutorRun::FinishAsync(AsyncCall* call) {
  if (Nest::IsGuest(*args_.step) &&
      (Nest::IsDeep() || Nest::nested_nanos() > kGuestNanos ||
       Heavy(call->segment))) {
    ComputePool().Schedule([this, call] { GoOn(call); });
  } else if (Nest::IsDeep()) {
    Nest::Defer(this, call);
  } else if (Nest::IsInside()) {
    const int64_t nested = Nest::nested_nanos();
    const SteadyTime start = std::chrono::steady_clock::now();
    GoOn(call);
    Nest::nested_nanos() =
        nested +
        std::chrono::nanoseconds(std::chrono::steady_clock::now() - start)
            .count();
  } else {
    GoOn(call);
  }
}

void ExecutorRun::GoOn(AsyncCall* call) {
  ReadyQueue ready;
  EndAsync(call, &ready);
  Process(&ready);
}

// What has not run yet may be anything.
bool ExecutorRun::Heavy(int segment) const {
  if (!owner_.has_run_.load(std::memory_order_relaxed)) return true;
  float nanos = 0;
  const Segment& from = program_.segments[segment];
  for (int e = from.edges_begin; e < from.edges_end; ++e) {
    nanos += owner_.Cost(program_.edges[e].dst);
  }
  return nanos > kHeavyNanos;
}

bool ExecutorRun::HeavyStart() const {
  if (!owner_.has_run_.load(std::memory_order_relaxed)) return true;
  float nanos = 0;
  for (int32_t segment : program_.roots) nanos += owner_.Cost(segment);
  return nanos > kHeavyNanos;
}

void ExecutorRun::EndAsync(AsyncCall* call, ReadyQueue* ready) {
  Iteration& it = *call->iteration;
  const int segment = call->segment;
  const ProgramNode& node = Only(segment);
  const absl::Status status = std::move(call->status);
  const int64_t start = call->start_nanos;
  delete call;
  CountKernels(1);
  if (!status.ok()) {
    Fail(AtNode(status, *node.slots.node));
  } else {
    if (args_.step->stats != nullptr) Trace(it, node, start, start);
    for (int r = node.release_begin; r < node.release_end; ++r) {
      it.slots[program_.releases[r]].Clear();
    }
    if (!stopped()) Propagate(it, segment, false, ready);
  }
  Done(it, ready);
}

namespace {

// What the end of a transfer sends or receives, and whom it deals with. The
// parenthesis stays open, as in TensorFlow.
std::string TransferLabel(const Node& op) {
  std::string tensors;
  if (const auto* names = op.attrs().Find<AttrList>("tensor_names")) {
    tensors = absl::StrJoin(names->strings, ", ");
  } else {
    tensors = op.attr<std::string>("tensor_name");
  }
  const bool sends = op.num_outputs() == 0;
  return StrCat(op.name(), " = ", op.type(), "(", tensors, " @",
                op.attr<std::string>(sends ? "recv_device" : "send_device"));
}

// `name = Op(input, input:1, ^control)`.
std::string TraceLabel(const Node& op) {
  if (op.attrs().Find<std::string>("recv_device") != nullptr) {
    return TransferLabel(op);
  }
  std::string label = StrCat(op.name(), " = ", op.type(), "(");
  const char* comma = "";
  for (int i = 0; i < op.num_inputs(); ++i) {
    const Output input = op.input(i);
    StrAppend(&label, comma, input.node->name());
    if (input.index > 0) StrAppend(&label, ":", input.index);
    comma = ", ";
  }
  for (const Node* first : op.control_inputs()) {
    StrAppend(&label, comma, "^", first->name());
    comma = ", ";
  }
  return label + ")";
}

}  // namespace

void ExecutorRun::Trace(Iteration& it, const ProgramNode& node,
                        int64_t scheduled, int64_t start) {
  if (args_.step->stats->full()) {
    args_.step->stats->Add(program_.device->name(), {});
    return;
  }
  NodeStats stats;
  const Node& op = *node.slots.node;
  stats.node = op.name();
  stats.label = TraceLabel(op);
  stats.scheduled_nanos = scheduled;
  stats.start_nanos = start;
  stats.end_nanos = NowNanos();
  thread_local const auto thread = static_cast<uint32_t>(gettid());
  stats.thread_id = thread;
  for (int o = 0; o < op.num_outputs(); ++o) {
    const Slot& slot = it.slots[node.slots.first_output + o];
    if (slot.kind != Slot::Kind::kValue) continue;
    stats.outputs.push_back({o, slot.tensor.dtype(), slot.tensor.shape(),
                             static_cast<int64_t>(slot.tensor.bytes())});
  }
  args_.step->stats->Add(program_.device->name(), std::move(stats));
}

}  // namespace sluice
