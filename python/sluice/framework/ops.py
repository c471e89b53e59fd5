"""What programs and the package know of graphs, and functions on the default
graph.
"""

import contextlib
import re

from sluice.framework.conversion import (  # noqa: F401
    convert_n_to_tensor, convert_to_tensor,
    convert_to_tensor_or_indexed_slices, internal_convert_to_tensor,
    is_dense_tensor_like, register_tensor_conversion_function)
from sluice.framework.default_session import (  # noqa: F401
    default_sessions, get_default_session)
from sluice.framework.gradient_registry import (  # noqa: F401
    NoGradient, NotDifferentiable, RegisterGradient, RegisterShape)
from sluice.framework.graph import (  # noqa: F401
    Graph, get_default_graph, reset_default_graph)
from sluice.framework.graph_keys import GraphKeys  # noqa: F401
from sluice.framework.indexed_slices import (  # noqa: F401
    IndexedSlices, IndexedSlicesValue)
from sluice.framework.operation import Operation, Tensor  # noqa: F401

@contextlib.contextmanager
def device(device_name_or_function):
    with get_default_graph().device(device_name_or_function):
        yield


@contextlib.contextmanager
def control_dependencies(control_inputs):
    with get_default_graph().control_dependencies(control_inputs):
        yield


@contextlib.contextmanager
def colocate_with(op, ignore_existing=False):
    graph = op.graph if hasattr(op, "graph") else get_default_graph()
    with graph.colocate_with(op, ignore_existing):
        yield


@contextlib.contextmanager
def container(container_name):
    with get_default_graph().container(container_name):
        yield container_name


def init_scope():
    """Lifts out of control dependencies; there is no other context to leave."""
    return control_dependencies(None)


def add_to_collection(name, value):
    get_default_graph().add_to_collection(name, value)


def add_to_collections(names, value):
    get_default_graph().add_to_collections(names, value)


def get_collection(key, scope=None):
    return get_default_graph().get_collection(key, scope)


def get_collection_ref(key):
    return get_default_graph().get_collection_ref(key)


def get_all_collection_keys():
    return get_default_graph().get_all_collection_keys()


def _graph_of(values):
    # The body of a function takes tensors of graphs around it.
    if get_default_graph().building_function:
        return get_default_graph()
    for value in _flat(values):
        graph = getattr(value, "graph", None)
        if isinstance(graph, Graph):
            return graph
    return None


def _flat(values):
    for value in values or ():
        if isinstance(value, (list, tuple)):
            for v in _flat(value):
                yield v
        else:
            yield value


class name_scope(object):
    """Names operations built inside; also switches to the graph of `values`."""

    def __init__(self, name, default_name=None, values=None):
        if not (default_name is None or isinstance(default_name, str)):
            raise TypeError("`default_name` type (%s) is not a string type. "
                            "You likely meant to pass this into the `values` "
                            "kwarg." % type(default_name))
        self._name = default_name if name is None else name
        self._values = values
        self._given = name

    @property
    def name(self):
        return self._name

    def __enter__(self):
        if self._name is None and self._values is not None:
            raise ValueError(
                "At least one of name (%s) and default_name (%s) must be "
                "provided." % (self._given, None))
        self._exits = contextlib.ExitStack()
        graph = _graph_of(self._values)
        if graph is not None and graph is not get_default_graph():
            self._exits.enter_context(graph.as_default())
        graph = get_default_graph()
        return self._exits.enter_context(graph.name_scope(self._name))

    def __exit__(self, *args):
        return self._exits.__exit__(*args)


def op_scope(values, name, default_name=None):
    return name_scope(name, default_name=default_name, values=values)


def strip_name_scope(name, export_scope):
    if export_scope:
        return re.sub(r"^(\^|loc:@|)%s[\/](.*)" % export_scope, r"\1\2", name)
    return name


def prepend_name_scope(name, import_scope):
    if import_scope:
        scope = import_scope[:-1] if import_scope.endswith("/") else \
            import_scope
        return re.sub(r"^(\^|loc:@|)(.*)", r"\1%s/\2" % scope, name)
    return name
