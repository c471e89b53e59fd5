// _Send, _Recv and their host-memory forms: the two ends of an edge that was
// cut between devices or tasks. They meet in the step's rendezvous.

#include <algorithm>
#include <atomic>
#include <memory>

#include "absl/strings/str_format.h"
#include "sluice/base/status.h"
#include "sluice/graph/device_name.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/kernel/rendezvous.h"

namespace sluice {
namespace {
namespace sendrecv {

// The frame and iteration outside of all loops.
constexpr std::string_view kRoot = "0:0";

// The key of a node's edge. Outside of loops it is always the same, so a step
// builds no strings.
class EdgeKey {
 public:
  explicit EdgeKey(const KernelConstruction& node)
      : prefix_(RendezvousKeyPrefix(node.attr<std::string>("send_device"),
                                    static_cast<uint64_t>(node.attr<int64_t>(
                                        "send_device_incarnation")),
                                    node.attr<std::string>("recv_device"),
                                    node.attr<std::string>("tensor_name"))),
        root_(StrCat(prefix_, kRoot)) {}

  // Calls `use` with the key of the loop iteration that `ctx` runs in.
  template <typename Use>
  auto With(const KernelContext& ctx, Use use) const {
    if (ctx.frame_and_iter() == kRoot) return use(std::string_view(root_));
    const std::string key = StrCat(prefix_, ctx.frame_and_iter());
    return use(std::string_view(key));
  }

 private:
  const std::string prefix_;
  const std::string root_;
};

absl::Status NoRendezvous(const KernelContext& ctx) {
  return Internal("Op ", ctx.node().name(),
                  " needs a rendezvous, but the step has none");
}

class SendKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& node) {
    return std::make_unique<SendKernel>(node);
  }
  explicit SendKernel(const KernelConstruction& node) : key_(node) {}

  absl::Status Run(KernelContext& ctx) override {
    Rendezvous* rendezvous = ctx.step().rendezvous;
    if (rendezvous == nullptr) return NoRendezvous(ctx);
    Parcel parcel;
    parcel.dead = ctx.input_dead();
    if (parcel.dead) {
      // Nothing else is told.
    } else if (ctx.input_slot(0).kind == Slot::Kind::kRef) {
      parcel.variable = ctx.input_slot(0).variable;
    } else {
      parcel.tensor = ctx.input(0).Owned();
    }
    return key_.With(ctx, [&](std::string_view key) {
      return rendezvous->Send(key, std::move(parcel));
    });
  }

 private:
  const EdgeKey key_;
};

// What the wait table says of a Recv. Apart from the kernel, which may be gone
// when a Recv that was just started writes it there.
struct WaitText {
  std::string what;
  std::string where;
  std::string owed_by;
};

// Enters a wait into the table, unless its end comes first.
class WaitEntry {
 public:
  // Called once, when the call that may wait has returned.
  void Begin(const WaitText& text, int64_t step_id, Clock* clock) {
    if (state_.load(std::memory_order_acquire) == kDone) return;
    WaitInfo info{text.what, text.where, step_id, {}, text.owed_by};
    if (clock != nullptr) info.since = clock->Now();
    token_ = WaitTable::Global().Add(std::move(info));
    int expected = kNew;
    if (!state_.compare_exchange_strong(expected, kEntered)) {
      WaitTable::Global().Remove(token_);
    }
  }
  // Called once, by whoever ends the wait.
  void End() {
    if (state_.exchange(kDone) == kEntered) WaitTable::Global().Remove(token_);
  }

 private:
  enum : int { kNew, kEntered, kDone };
  std::atomic<int> state_{kNew};
  WaitTable::Token token_ = 0;
};

absl::Status Deliver(KernelContext& ctx, int i, absl::StatusOr<Parcel> parcel) {
  if (!parcel.ok()) return parcel.status();
  if (parcel->dead) {
    ctx.set_output_dead(i);
    return absl::OkStatus();
  }
  // It may come from another process.
  const DType expected = ctx.node().output_type(i);
  if (parcel->tensor.dtype() != expected) {
    return Internal("Received a tensor of type ",
                    DTypeName(parcel->tensor.dtype()), " for output ", i,
                    " of ", ctx.node().name(), ", which is declared as ",
                    DTypeName(expected));
  }
  ctx.set_output(i, std::move(parcel->tensor));
  return absl::OkStatus();
}

// The transfer itself in a trace, as TensorFlow writes it. The call began at
// `start` and ended at `end`; most of the time between may have been waiting.
NodeStats TransferStats(const Node& recv, std::string_view name,
                        const Parcel& parcel, int64_t start, int64_t end) {
  // The sender has its own clock.
  if (parcel.sent_micros > 0) {
    start = std::clamp(parcel.sent_micros, start, std::max(start, end - 1));
  }
  const auto bytes = static_cast<int64_t>(parcel.tensor.bytes());
  const double mega_bytes = static_cast<double>(bytes) / (1 << 20);
  const double rate =
      8.0 * static_cast<double>(bytes) /
      static_cast<double>(std::max<int64_t>(1, end - start));  // Mb/s.
  NodeStats stats;
  stats.node = "RecvTensor";
  stats.label =
      StrCat(mega_bytes >= 0.1 ? absl::StrFormat("[%.1fMB] ", mega_bytes)
                               : StrCat("[", bytes, "B] "),
             rate >= 1000 ? absl::StrFormat("[%.1fGb/s] ", rate / 1000)
                          : absl::StrFormat("[%fMb/s] ", rate),
             name, " from ", recv.attr<std::string>("send_device"), " to ",
             recv.attr<std::string>("recv_device"));
  stats.scheduled_nanos = stats.start_nanos = start * 1000;
  stats.end_nanos = end * 1000;
  if (!parcel.dead) {
    stats.outputs.push_back(
        {0, parcel.tensor.dtype(), parcel.tensor.shape(), bytes});
  }
  return stats;
}

class RecvKernel : public AsyncKernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& node) {
    return std::make_unique<RecvKernel>(node);
  }
  explicit RecvKernel(const KernelConstruction& node)
      : key_(node),
        text_(std::make_shared<WaitText>(WaitText{
            StrCat("tensor ", node.attr<std::string>("tensor_name"), " from ",
                   node.attr<std::string>("send_device")),
            StrCat(node.node().name(), " on ", node.device().name()),
            std::string(TaskOf(node.attr<std::string>("send_device")))})),
        from_elsewhere_(TaskOf(node.attr<std::string>("send_device")) !=
                        TaskOf(node.attr<std::string>("recv_device"))) {}

  void Start(KernelContext& ctx, Done done) override {
    Rendezvous* rendezvous = ctx.step().rendezvous;
    if (rendezvous == nullptr) return done(NoRendezvous(ctx));
    // Once the value is there the context and this kernel may go, so what is
    // needed after RecvAsync is kept here.
    const std::shared_ptr<const WaitText> text = text_;
    const int64_t step_id = ctx.step().id;
    Clock* clock = ctx.step().clock;
    auto wait = std::make_shared<WaitEntry>();
    const bool traced = from_elsewhere_ && ctx.step().stats != nullptr;
    const int64_t start = traced ? clock->WallMicros() : 0;
    key_.With(ctx, [&](std::string_view key) {
      rendezvous->RecvAsync(
          key, [&ctx, wait, traced, start,
                done = std::move(done)](absl::StatusOr<Parcel> parcel) mutable {
            wait->End();
            if (traced && parcel.ok()) {
              ctx.step().stats->Add(
                  ctx.device().name(),
                  TransferStats(
                      ctx.node(), ctx.node().attr<std::string>("tensor_name"),
                      *parcel, start, ctx.step().clock->WallMicros()));
            }
            done(Deliver(ctx, 0, std::move(parcel)));
          });
    });
    wait->Begin(*text, step_id, clock);
  }

 private:
  const EdgeKey key_;
  const std::shared_ptr<const WaitText> text_;
  const bool from_elsewhere_;
};

// Several values of one source device, in one message if they come from another
// task (passes/transfer_groups.h). Never inside of a loop.
class RecvGroupKernel : public AsyncKernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& node) {
    const AttrList names = node.attr<AttrList>("tensor_names");
    if (static_cast<int>(names.strings.size()) != node.node().num_outputs() ||
        names.strings.empty()) {
      return InvalidArgument(node.node().name(), " has ", names.strings.size(),
                             " tensor_names for ", node.node().num_outputs(),
                             " outputs");
    }
    return std::make_unique<RecvGroupKernel>(node, names.strings);
  }
  RecvGroupKernel(const KernelConstruction& node,
                  const std::vector<std::string>& names)
      : text_(std::make_shared<WaitText>()) {
    const std::string src = node.attr<std::string>("send_device");
    const std::string dst = node.attr<std::string>("recv_device");
    const auto incarnation =
        static_cast<uint64_t>(node.attr<int64_t>("send_device_incarnation"));
    text_->what = "tensors";
    for (const std::string& name : names) {
      keys_.push_back(
          StrCat(RendezvousKeyPrefix(src, incarnation, dst, name), kRoot));
      text_->what += StrCat(" ", name);
    }
    text_->what += StrCat(" from ", src);
    text_->where = StrCat(node.node().name(), " on ", node.device().name());
    text_->owed_by = TaskOf(src);
  }

  void Start(KernelContext& ctx, Done done) override {
    Rendezvous* rendezvous = ctx.step().rendezvous;
    if (rendezvous == nullptr) return done(NoRendezvous(ctx));
    const std::shared_ptr<const WaitText> text = text_;
    const int64_t step_id = ctx.step().id;
    Clock* clock = ctx.step().clock;
    auto wait = std::make_shared<WaitEntry>();
    const int64_t start = ctx.step().stats ? clock->WallMicros() : 0;
    rendezvous->RecvGroupAsync(
        keys_, [&ctx, wait, start, done = std::move(done)](
                   absl::StatusOr<std::vector<Parcel>> parcels) mutable {
          wait->End();
          done(DeliverAll(ctx, start, std::move(parcels)));
        });
    wait->Begin(*text, step_id, clock);
  }

 private:
  static absl::Status DeliverAll(KernelContext& ctx, int64_t start,
                                 absl::StatusOr<std::vector<Parcel>> parcels) {
    if (!parcels.ok()) return parcels.status();
    if (static_cast<int>(parcels->size()) != ctx.num_outputs()) {
      return Internal("Received ", parcels->size(), " tensors for ",
                      ctx.num_outputs());
    }
    if (ctx.step().stats != nullptr) {
      const AttrList names = ctx.node().attr<AttrList>("tensor_names");
      const int64_t end = ctx.step().clock->WallMicros();
      for (size_t i = 0; i < parcels->size(); ++i) {
        ctx.step().stats->Add(ctx.device().name(),
                              TransferStats(ctx.node(), names.strings[i],
                                            (*parcels)[i], start, end));
      }
    }
    for (int i = 0; i < ctx.num_outputs(); ++i) {
      SLUICE_RETURN_IF_ERROR(Deliver(ctx, i, std::move((*parcels)[i])));
    }
    return absl::OkStatus();
  }

  std::vector<std::string> keys_;
  const std::shared_ptr<WaitText> text_;
};

// The executor moves the values of _Arg and _Retval itself.
absl::Status NotRun(KernelContext& ctx) {
  return Internal("Op ", ctx.node().name(), " of type ", ctx.node().type(),
                  " ran outside of a function call");
}

}  // namespace sendrecv
}  // namespace

#define SLUICE_SEND_OP(NAME)                   \
  SLUICE_OP(NAME)                              \
      .Input("tensor: T")                      \
      .Attr("T: type")                         \
      .Attr("tensor_name: string")             \
      .Attr("send_device: string")             \
      .Attr("send_device_incarnation: int")    \
      .Attr("recv_device: string")             \
      .Attr("client_terminated: bool = false") \
      .Stateful()                              \
      .Shape(shapes::NoOutputs);               \
  SLUICE_KERNEL(NAME, kCpu).Class<sendrecv::SendKernel>()
#define SLUICE_RECV_OP(NAME)                   \
  SLUICE_OP(NAME)                              \
      .Output("tensor: tensor_type")           \
      .Attr("tensor_type: type")               \
      .Attr("tensor_name: string")             \
      .Attr("send_device: string")             \
      .Attr("send_device_incarnation: int")    \
      .Attr("recv_device: string")             \
      .Attr("client_terminated: bool = false") \
      .Stateful()                              \
      .Shape(shapes::Unknown);                 \
  SLUICE_KERNEL(NAME, kCpu).Class<sendrecv::RecvKernel>()

SLUICE_SEND_OP(_Send);
SLUICE_SEND_OP(_HostSend);
SLUICE_RECV_OP(_Recv);
SLUICE_RECV_OP(_HostRecv);

SLUICE_OP(_SluiceRecvGroup)
    .Output("tensors: tensor_types")
    .Attr("tensor_types: list(type)")
    .Attr("tensor_names: list(string)")
    .Attr("send_device: string")
    .Attr("send_device_incarnation: int")
    .Attr("recv_device: string")
    .Stateful()
    .Shape(shapes::Unknown);
SLUICE_KERNEL(_SluiceRecvGroup, kCpu).Class<sendrecv::RecvGroupKernel>();

#undef SLUICE_SEND_OP
#undef SLUICE_RECV_OP

SLUICE_OP(_Arg)
    .Output("output: T")
    .Attr("T: type")
    .Attr("index: int >= 0")
    .Stateful()
    .Shape(shapes::Unknown);

SLUICE_OP(_Retval)
    .Input("input: T")
    .Attr("T: type")
    .Attr("index: int >= 0")
    .Stateful()
    .Shape(shapes::NoOutputs);

SLUICE_KERNEL(_Arg, kCpu).Function(sendrecv::NotRun);
SLUICE_KERNEL(_Retval, kCpu).Function(sendrecv::NotRun);

}  // namespace sluice
