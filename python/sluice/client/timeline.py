"""Timeline: the trace of a step in the form that trace viewers read."""

import json
import re

_LABEL = re.compile(r"^(?:\[.*\] )?(.*) = (.*)\((.*)\)$", re.DOTALL)
# Both ends of a transfer name its tensors and the other device, without closing
# the parenthesis.
_TRANSFER = re.compile(
    r"^(?:\[.*\] )?(.*) = (_(?:Host)?Send|_(?:Host)?Recv|_SluiceRecvGroup)"
    r"\((.*) @(.*)$", re.DOTALL)
# A tensor on its way is named after the node that makes it.
_EDGE = re.compile(r"^edge_\d+_(.*)$", re.DOTALL)


class _Node(object):
    """One execution of a node."""

    def __init__(self, stats, pid):
        self.pid = pid
        self.tid = 0
        self.start = stats.all_start_micros
        self.duration = max(stats.all_end_rel_micros, 1)
        self.sends = []  # Tensors to other devices.
        self.name, self.op, self.inputs = _parse(stats)
        if self.op in ("_Send", "_HostSend"):
            self.sends = self.inputs
            self.inputs = [_maker(tensor) for tensor in self.sends]
        self.outputs = stats.output

    @property
    def end(self):
        return self.start + self.duration


def _parse(stats):
    """(name, op, inputs) as the label of an execution tells them."""
    label = stats.timeline_label
    if stats.node_name == "RecvTensor":  # Its label tells sizes and devices.
        return stats.node_name, stats.node_name, []
    match = _TRANSFER.match(label)
    if match:
        return match.group(1), match.group(2), match.group(3).split(", ")
    match = _LABEL.match(label)
    if match:
        inputs = [i.strip() for i in match.group(3).split(",") if i.strip()]
        return match.group(1), match.group(2), inputs
    return stats.node_name, label or stats.node_name, []


def _maker(tensor):
    match = _EDGE.match(tensor)
    return match.group(1) if match else tensor


def _process(pid, name):
    return {"name": "process_name", "ph": "M", "pid": pid,
            "args": {"name": name}}


class Timeline(object):
    """The executions of a step by device and thread."""

    def __init__(self, step_stats, graph=None):
        self._step_stats = step_stats
        self._graph = graph

    def generate_chrome_trace_format(self, show_dataflow=True,
                                     show_memory=False):
        """The trace as JSON text."""
        events = [_process(0, "Allocators")]
        nodes = []
        for i, device in enumerate(self._step_stats.dev_stats):
            compute, tensors = 2 * i + 1, 2 * i + 2
            events.append(_process(compute, device.device + " Compute"))
            events.append(_process(tensors, device.device + " Tensors"))
            ran = sorted((_Node(s, compute) for s in device.node_stats),
                         key=lambda n: n.start)
            _assign_lanes(ran)
            nodes += ran
        events += [_execution(n) for n in nodes]
        if show_dataflow:
            events += _flows(nodes)
        if show_memory:
            events += _memory(nodes)
        return json.dumps({"traceEvents": events}, indent=4, sort_keys=False)


def _assign_lanes(nodes):
    """What overlaps in time stands in different lanes."""
    ends = []
    for node in nodes:
        for lane, end in enumerate(ends):
            if end < node.start:
                break
        else:
            lane = len(ends)
            ends.append(0)
        node.tid = lane
        ends[lane] = node.end


def _execution(node):
    arguments = {"name": node.name, "op": node.op}
    for i, name in enumerate(node.inputs):
        arguments["input%d" % i] = name
    return {"name": node.op, "ph": "X", "cat": "Op", "pid": node.pid,
            "tid": node.tid, "ts": node.start, "dur": node.duration,
            "args": arguments}


def _flows(nodes):
    """Arrows from who makes a tensor to who uses it in another lane."""
    by_name = {}
    senders = {}
    for node in nodes:
        by_name.setdefault(node.name, node)
        for tensor in node.sends:
            senders.setdefault(tensor, node)
    events = []
    for node in nodes:
        for name in node.inputs:
            if name.startswith("^"):
                continue
            source = senders.get(name) or by_name.get(name.split(":")[0])
            if source is None or (source.pid, source.tid) == (node.pid,
                                                              node.tid):
                continue
            flow = len(events)
            common = {"name": name, "cat": "DataFlow", "id": flow}
            events.append(dict(common, ph="s", pid=source.pid,
                               tid=source.tid, ts=source.end))
            events.append(dict(common, ph="t", pid=node.pid, tid=node.tid,
                               ts=node.start))
    return events


def _memory(nodes):
    """The bytes that outputs take up, allocator by allocator: from the start of
    the node that makes them to the end of the last one that uses them."""
    ends = {}
    for node in nodes:
        for name in node.inputs:
            ends[name] = max(ends.get(name, 0), node.end)
    steps = []
    for node in nodes:
        for output in node.outputs:
            used = output.tensor_description.allocation_description
            if not used.allocated_bytes:
                continue
            name = node.name
            if output.slot:
                name += ":%d" % output.slot
            allocator = used.allocator_name or "cpu"
            steps.append((node.start, allocator, used.allocated_bytes))
            steps.append((max(ends.get(name, 0), node.end), allocator,
                          -used.allocated_bytes))
    totals, events = {}, []
    for time, allocator, size in sorted(steps):
        totals[allocator] = totals.get(allocator, 0) + size
        events.append({"name": allocator, "ph": "C", "cat": "Memory",
                       "pid": 0, "tid": 0, "ts": time,
                       "args": {allocator: totals[allocator]}})
    return events
