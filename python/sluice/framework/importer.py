"""import_graph_def: adds the nodes of a GraphDef to the default graph."""

from sluice.framework import errors
from sluice.framework import ops
from sluice.framework import protos


def import_graph_def(graph_def, input_map=None, return_elements=None,
                     name=None, op_dict=None, producer_op_list=None):
    """Returns the elements named in `return_elements`, or None."""
    if not isinstance(graph_def, protos.GraphDef):
        try:
            parsed = protos.GraphDef()
            parsed.MergeFrom(graph_def)
            graph_def = parsed
        except TypeError:
            raise TypeError("graph_def must be a GraphDef proto.") from None
    input_map = dict(input_map or {})
    if not all(isinstance(key, str) for key in input_map):
        raise TypeError("input_map must be a dictionary mapping strings to "
                        "Tensor objects.")
    elements = list(return_elements or [])
    if not all(isinstance(e, str) for e in elements):
        raise TypeError("return_elements must be a list of strings.")
    graph = ops.get_default_graph()
    first = graph._core.num_nodes()
    with ops.name_scope(name, "import", list(input_map.values())) as scope:
        prefix = scope[:-1] if scope else ""
        mapped = {}
        for key, value in input_map.items():
            tensor = ops.convert_to_tensor(value)
            mapped[key] = (tensor._op._id, tensor._index)
        tensors = [e for e in elements if ":" in e]
        nodes = [e for e in elements if ":" not in e]
        # The nodes' own names stand below the prefix, not below the scope
        # that is open here.
        with graph.name_scope(None):
            try:
                result = graph._core.import_graph_def(
                    graph_def.SerializeToString(), prefix, True, mapped,
                    tensors, nodes)
            except errors.InvalidArgumentError as e:
                raise ValueError(e.message) from None
            except errors.NotFoundError as e:
                if e.message.startswith("Op type not registered"):
                    raise
                raise ValueError(e.message) from None
    _set_devices(graph, first)
    if return_elements is None:
        return None
    found_tensors, found_nodes = iter(result["tensors"]), iter(result["nodes"])
    return [graph._tensor(next(found_tensors)) if ":" in e
            else graph._op(next(found_nodes)) for e in elements]


def _set_devices(graph, first):
    """The blocks around an import hold for what it brings. Ops that are to stand
    with others ask for the device of the first of those that asks for one, and
    not for their own."""
    colocated = []
    for i in range(first, graph._core.num_nodes()):
        op = graph._op(i)
        names = [group[5:].decode() for group in op.colocation_groups()]
        if names == [op.name]:
            graph._core.apply_devices(i)
        else:
            op._set_device("")
            colocated.append((op, names))
    for op, names in colocated:
        asked = (graph.get_operation_by_name(name).device for name in names)
        op._set_device(next(filter(None, asked), ""))
