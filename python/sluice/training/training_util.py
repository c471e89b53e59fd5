"""The global step."""

from sluice.framework import dtypes
from sluice.framework import ops
from sluice.ops import init_ops
from sluice.ops import variable_scope
from sluice.ops import variables
from sluice.platform import tf_logging as logging

# The tensor through which hooks read the step; one per graph.
GLOBAL_STEP_READ_KEY = "global_step_read_op_cache"


def global_step(sess, global_step_tensor):
    """The value of the step, as an int."""
    return int(sess.run(global_step_tensor))


def get_global_step(graph=None):
    """The step of the graph, or None."""
    graph = graph or ops.get_default_graph()
    found = graph.get_collection(ops.GraphKeys.GLOBAL_STEP)
    if len(found) == 1:
        step = found[0]
    elif found:
        logging.error("Multiple tensors in global_step collection.")
        return None
    else:
        try:
            step = graph.get_tensor_by_name("global_step:0")
        except KeyError:
            return None
    assert_global_step(step)
    return step


def create_global_step(graph=None):
    graph = graph or ops.get_default_graph()
    if get_global_step(graph) is not None:
        raise ValueError('"global_step" already exists.')
    with graph.as_default() as g, g.name_scope(None):
        return variable_scope.get_variable(
            ops.GraphKeys.GLOBAL_STEP, shape=[], dtype=dtypes.int64,
            initializer=init_ops.zeros_initializer(), trainable=False,
            collections=[ops.GraphKeys.GLOBAL_VARIABLES,
                         ops.GraphKeys.GLOBAL_STEP])


def get_or_create_global_step(graph=None):
    graph = graph or ops.get_default_graph()
    step = get_global_step(graph)
    return create_global_step(graph) if step is None else step


def assert_global_step(global_step_tensor):
    """Raises TypeError unless it is an integer scalar."""
    if not isinstance(global_step_tensor, (variables.Variable, ops.Tensor)):
        raise TypeError('Existing "global_step" must be a Variable or '
                        "Tensor: %s." % global_step_tensor)
    if not global_step_tensor.dtype.base_dtype.is_integer:
        raise TypeError('Existing "global_step" does not have integer type: '
                        "%s" % global_step_tensor.dtype)
    shape = global_step_tensor.get_shape()
    if shape.ndims != 0 and (shape.ndims is not None):
        raise TypeError('Existing "global_step" is not scalar: %s' % shape)


def _get_global_step_read(graph=None):
    graph = graph or ops.get_default_graph()
    found = graph.get_collection(GLOBAL_STEP_READ_KEY)
    if len(found) > 1:
        raise RuntimeError(
            "There are multiple items in collection %s. There should be only "
            "one." % GLOBAL_STEP_READ_KEY)
    return found[0] if found else None


def _get_or_create_global_step_read(graph=None):
    """A copy of the step that can be read before it is initialized."""
    graph = graph or ops.get_default_graph()
    read = _get_global_step_read(graph)
    if read is not None:
        return read
    step = get_global_step(graph)
    if step is None:
        return None
    with graph.as_default() as g, g.name_scope(None):
        with g.name_scope(step.op.name + "/"):
            value = step.initialized_value() if isinstance(
                step, variables.Variable) else step
            read = value + 0
            ops.add_to_collection(GLOBAL_STEP_READ_KEY, read)
    return read


def _increment_global_step(increment, graph=None):
    graph = graph or ops.get_default_graph()
    step = get_global_step(graph)
    if step is None:
        raise ValueError("Global step tensor should be created by "
                         "tf.train.get_or_create_global_step before calling "
                         "increment.")
    with graph.as_default() as g, g.name_scope(None):
        with g.name_scope(step.op.name + "/"):
            return step.assign_add(increment)
