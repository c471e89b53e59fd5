"""Contexts of cond and while_loop, which live in the engine."""

from sluice import _sluice
from sluice.framework import ops
from sluice.framework import protos


class ControlFlowContext(object):
    """A branch of a cond or a loop, as collections of a graph hold it."""

    def __init__(self, core):
        self._core = core

    @property
    def name(self):
        return self._core.name

    def to_proto(self, export_scope=None):
        """A CondContextDef or WhileContextDef; None if it is not in scope."""
        if export_scope is not None and not self.name.startswith(
                export_scope):
            return None
        proto = protos.ControlFlowContextDef.FromString(self._core.to_bytes())
        _rename(proto, lambda name: ops.strip_name_scope(name, export_scope))
        return getattr(proto, proto.WhichOneof("ctxt"))

    @classmethod
    def from_proto(cls, context_def, import_scope=None):
        proto = protos.ControlFlowContextDef()
        field = "while_ctxt" if hasattr(context_def, "loop_exit_names") else \
            "cond_ctxt"
        getattr(proto, field).CopyFrom(context_def)
        graph = ops.get_default_graph()
        return cls(_sluice.import_control_flow(
            graph._core, proto.SerializeToString(), import_scope or ""))


def _rename(proto, rename):
    """Applies `rename` to all names of nodes and values in a context."""
    content = getattr(proto, proto.WhichOneof("ctxt"))
    for field, value in content.ListFields():
        if field.name.endswith("_name"):
            setattr(content, field.name, rename(value))
        elif field.name.endswith("_names"):
            value[:] = [rename(v) for v in value]
    values = content.values_def
    values.values[:] = [rename(v) for v in values.values]
    external = {rename(k): rename(v)
                for k, v in values.external_values.items()}
    values.external_values.clear()
    values.external_values.update(external)
    for nested in content.nested_contexts:
        _rename(nested, rename)
