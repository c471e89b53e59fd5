#include "sluice/base/hash.h"
#include "sluice/executor/run.h"

namespace sluice {

absl::StatusOr<Slot*> ExecutorRun::InputSlot(Iteration& it,
                                             const ProgramNode& node, int i) {
  SLUICE_RETURN_IF_ERROR(ReadVariables(it, node, i));
  return &it.slots[node.slots.inputs[i]];
}

void ExecutorRun::RunControlFlow(Iteration& it, int segment, bool* dead) {
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
  CountKernels(1);
  if (!status.ok()) Fail(AtNode(status, *node.slots.node));
}

absl::Status ExecutorRun::RunSwitch(Iteration& it, const ProgramNode& node) {
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

absl::Status ExecutorRun::RunMerge(Iteration& it, int segment,
                                   const ProgramNode& node, bool* dead) {
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

void ExecutorRun::Propagate(Iteration& it, int segment, bool dead,
                            ReadyQueue* ready) {
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

void ExecutorRun::PropagateTo(Iteration& from, Iteration& to, int segment,
                              bool dead, ReadyQueue* ready) {
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

void ExecutorRun::Deliver(Iteration& it, const SegmentEdge& edge, bool dead,
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

bool ExecutorRun::ArriveAtMerge(Iteration& it, int local,
                                const SegmentEdge& edge, bool dead) {
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

LoopFrame* ExecutorRun::FindOrMakeFrame(Iteration& parent, int def) {
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

Iteration& ExecutorRun::AddIteration(LoopFrame* frame) {
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

void ExecutorRun::DeliverValue(Iteration& it, const LoopFrame::Value& value,
                               ReadyQueue* ready) {
  it.slots[value.slot] = value.value;
  const bool dead = value.value.kind == Slot::Kind::kDead;
  PropagateTo(it, it, value.segment, dead, ready);
}

void ExecutorRun::EnterFrame(Iteration& it, int segment, bool dead,
                             ReadyQueue* ready) {
  const ProgramNode& node = Only(segment);
  LoopFrame* frame = FindOrMakeFrame(it, node.child_frame);
  --frame->enters_left;
  LoopFrame::Value value{segment, node.slots.first_output, {}};
  if (dead) {
    value.value.kind = Slot::Kind::kDead;
  } else {
    value.value = it.slots[node.slots.inputs[0]];
  }
  if (node.is_constant) {
    for (auto& iteration : frame->iterations) {
      DeliverValue(*iteration, value, ready);
    }
    frame->invariants.push_back(std::move(value));
  } else {
    DeliverValue(*frame->iterations.front(), value, ready);
  }
  CleanUpFrame(frame, ready);
}

void ExecutorRun::ExitFrame(Iteration& it, int segment, bool dead,
                            ReadyQueue* ready) {
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

void ExecutorRun::NextIteration(Iteration& it, int segment, ReadyQueue* ready) {
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

void ExecutorRun::MaybeStartIteration(LoopFrame* frame, ReadyQueue* ready) {
  const int limit = program_.frames[frame->def].parallel_iterations;
  if (frame->deferred.empty() ||
      static_cast<int>(frame->iterations.size()) >= limit) {
    return;
  }
  frame->dead_exits.clear();
  Iteration& next = AddIteration(frame);
  for (const auto& value : frame->invariants) DeliverValue(next, value, ready);
  std::vector<LoopFrame::Value> values;
  values.swap(frame->deferred);
  for (const auto& value : values) DeliverValue(next, value, ready);
}

void ExecutorRun::CleanUpFrame(LoopFrame* frame, ReadyQueue* ready) {
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

}  // namespace sluice
