"""Initial values that are made of other variables."""

from sluice.framework import ops

GraphKeys = ops.GraphKeys


def _has_cycle(op, state):
    """Whether following inputs from `op` comes back to where it was."""
    seen = state.get(op)
    if seen is not None:
        return seen == "open"
    state[op] = "open"
    if any(_has_cycle(o, state) for o in
           [i.op for i in op.inputs] + list(op.control_inputs)):
        return True
    state[op] = "done"
    return False


def _variable_of(op):
    for key in (GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES):
        for variable in op.graph.get_collection(key):
            if variable.name in (op.name, op.name + ":0"):
                return variable
    return None


def safe_initial_value(name, initial_value):
    """`initial_value`, made of initial values of the variables it reads."""
    if _has_cycle(initial_value.op, {}):
        return initial_value
    safe = {}

    def of_tensor(tensor):
        if tensor.op not in safe:
            safe[tensor.op] = of_op(tensor.op)
        return safe[tensor.op].outputs[tensor.value_index]

    def of_op(op):
        if op.type in ("IsVariableInitialized", "VarIsInitializedOp",
                       "ReadVariableOp", "If"):
            return op
        if op.type in ("Variable", "VariableV2", "VarHandleOp"):
            variable = _variable_of(op)
            return op if variable is None else variable.initialized_value().op
        inputs = [of_tensor(t) for t in op.inputs]
        if all(new is old for new, old in zip(inputs, op.inputs)):
            return op
        return op.graph.create_op(
            "Switch" if op.type == "RefSwitch" else op.type, inputs,
            name=(op.name + "_" + name).replace(":", "_"),
            attrs=dict(op.node_def.attr))

    return of_tensor(initial_value)
