"""Gradients registered from Python."""

gradients = {}


class RegisterGradient(object):
    """@RegisterGradient("OpType"): the function is that op's gradient."""

    def __init__(self, op_type):
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string")
        self._op_type = op_type

    def __call__(self, f):
        if self._op_type in gradients:
            raise KeyError(
                "Registering two gradient with name '%s'! (Previous "
                "registration was in %s)" % (self._op_type, "gradient"))
        gradients[self._op_type] = f
        return f


def NotDifferentiable(op_type):
    if not isinstance(op_type, str):
        raise TypeError("op_type must be a string")
    gradients[op_type] = None


NoGradient = NotDifferentiable


class RegisterShape(object):
    """Old programs register shape functions; shapes come from the engine."""

    def __init__(self, op_type):
        self._op_type = op_type

    def __call__(self, f):
        return f
