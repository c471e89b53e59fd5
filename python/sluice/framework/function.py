"""Functions in graphs: @Defun makes one of a Python function.

A call is one node; the body is in the library of the graph.
"""

import hashlib
import inspect

from sluice.framework import dtypes
from sluice.framework import errors
from sluice.framework import graph as graph_lib
from sluice.framework import ops
from sluice.framework import protos


class _FuncGraph(graph_lib.Graph):
    """The body of a function while it is built.

    Tensors of other graphs become further arguments; variables are made in the
    graph outside.
    """

    def __init__(self, name, capture_by_value, capture_resource_var_by_value):
        super().__init__()
        self.name = name
        self.building_function = True
        self._outer_graph = ops.get_default_graph()
        from sluice.ops import variable_scope
        self._vscope = variable_scope.get_variable_scope()
        self._capture_by_value = capture_by_value
        self._capture_resource_var_by_value = capture_resource_var_by_value
        self._captured = {}
        self._copied = {}
        self.inputs = []
        self.outputs = []
        self.extra_inputs = []
        self.extra_args = []
        self.extra_vars = []
        self.seed = self._outer_graph.seed

    @property
    def captures(self):
        return dict(zip(self.extra_inputs, self.extra_args))

    def getvar(self, getter, name, **kwargs):
        """Variables belong to the graph outside."""
        with self._outer_graph.as_default():
            var = self._vscope.get_variable(None, name, **kwargs)
            self.extra_vars.append(var)
            if self._capture_resource_var_by_value and hasattr(var, "handle"):
                return var.value()
            return var

    def capture(self, tensor, name=None):
        """The tensor of this graph that stands for one of another."""
        if tensor in self._captured:
            return self._captured[tensor]
        if self._capture_by_value:
            return self._copy_with_inputs(tensor.op).outputs[tensor._index]
        from sluice.ops import array_ops
        self.extra_inputs.append(tensor)
        with self.as_default(), ops.control_dependencies(None):
            arg = array_ops.placeholder(tensor.dtype.base_dtype,
                                        shape=tensor.get_shape(), name=name)
        self.inputs.append(arg)
        self.extra_args.append(arg)
        self._captured[tensor] = arg
        return arg

    def _copy_with_inputs(self, op):
        if op in self._copied:
            return self._copied[op]
        if op.node_def.op == "Placeholder" or _is_stateful(op.type):
            raise ValueError("Cannot capture a placeholder (name:%s, type:%s) "
                             "by value." % (op.name, op.type)
                             if op.type == "Placeholder" else
                             "Cannot capture a stateful node (name:%s, "
                             "type:%s) by value." % (op.name, op.type))
        with self.as_default(), ops.control_dependencies(None):
            inputs = [self._copy_with_inputs(t.op).outputs[t._index]
                      for t in op.inputs]
            copy = self.create_op(op.type, inputs, name=op.name,
                                  attrs=dict(op.node_def.attr))
        self._copied[op] = copy
        return copy

    def _add_op(self, op_type, name, inputs, attrs, control_inputs=()):
        inputs = [t if t.graph is self else self.capture(t) for t in inputs]
        return super()._add_op(op_type, name, inputs, attrs, control_inputs)

    @property
    def outer_graph(self):
        return self._outer_graph


def _is_stateful(op_type):
    from sluice.framework import op_builder
    try:
        return op_builder.signature(op_type).stateful
    except RuntimeError:
        return False  # A function.


def _call_attrs(func_name, noinline=None, compiled=None,
                separate_compiled_gradients=None, **kwargs):
    attrs = {}
    if noinline is not None:
        attrs["_noinline"] = bool(noinline)
    # Shapes do not come through calls of functions, as they never did.
    attrs["_disable_call_shape_inference"] = True
    if compiled is not None:
        attrs["_XlaCompile"] = bool(compiled)
        attrs["_XlaSeparateCompiledGradients"] = bool(
            separate_compiled_gradients)
        attrs["_XlaScope"] = ("function_%s" % func_name).encode()
    for key in list(kwargs):
        if key.startswith("experimental_") or key in ("_implements",
                                                      "_reference"):
            attrs[key] = kwargs.pop(key)
    if kwargs:
        raise ValueError("Unknown keyword arguments: %s" % kwargs.keys())
    return attrs


def _call(signature, *inputs, **kwargs):
    """(tensors or operation, operation) of a call node."""
    if len(inputs) != len(signature.input_arg):
        raise ValueError("Expected number of arguments: %d, received: %d" %
                         (len(signature.input_arg), len(inputs)))
    name = kwargs.pop("name", None) or signature.name
    attrs = _call_attrs(signature.name, **kwargs)
    for given, arg in zip(inputs, signature.input_arg):
        if given.dtype.base_dtype != dtypes.as_dtype(arg.type):
            raise ValueError(
                "Input '%s' of function %s is of type %s, but expects %s" %
                (arg.name, signature.name, given.dtype.base_dtype.name,
                 dtypes.as_dtype(arg.type).name))
    op = ops.get_default_graph()._add_op(signature.name, name, list(inputs),
                                         attrs)
    if not op.outputs:
        return op, op
    if len(op.outputs) == 1:
        return op.outputs[0], op
    return tuple(op.outputs), op


def _python_name(func):
    if hasattr(func, "__name__"):
        return "lambda" if func.__name__ == "<lambda>" else func.__name__
    if hasattr(func, "func"):
        return _python_name(func.func)
    return type(func).__name__


class _DefinedFunction(object):
    """A function of fixed types; its body is built when it is first needed."""

    def __init__(self, func, argnames, input_types, func_name=None,
                 grad_func=None, python_grad_func=None, out_names=None,
                 shape_func=None, capture_by_value=False,
                 whitelisted_stateful_ops=None,
                 capture_resource_var_by_value=True, **kwargs):
        self._func = func
        self._input_types = [dtypes.as_dtype(t) for t in input_types]
        self._func_name = func_name
        self._grad_func = grad_func
        self._python_grad_func = python_grad_func
        self._out_names = out_names
        self._shape_func = shape_func
        self._capture_by_value = capture_by_value
        self._capture_resource_var_by_value = capture_resource_var_by_value
        self._extra_kwargs = kwargs
        self._definition = None
        self._graph = None
        self._args = []
        for i, dtype in enumerate(self._input_types):
            argname = argnames[i] if i < len(argnames) else "arg%d" % i
            self._args.append((argname, dtype))

    # ---- What programs ask for ----

    @property
    def name(self):
        if self._func_name is None:
            self._build()
        return self._func_name

    @property
    def definition(self):
        self._build()
        return self._definition

    @property
    def declared_input_types(self):
        return list(self._input_types)

    @property
    def captured_inputs(self):
        self._build()
        return self._graph.extra_inputs

    @property
    def graph(self):
        self._build()
        return self._graph

    @property
    def grad_func_name(self):
        return self._grad_func.name if self._grad_func else None

    @property
    def python_grad_func(self):
        return self._python_grad_func

    @property
    def stateful_ops(self):
        self._build()
        return [(op.name, op.type) for op in self._graph.get_operations()
                if _is_stateful(op.type)]

    def set_grad_func(self, grad_func):
        if self._grad_func is not None:
            assert self._grad_func is grad_func
            return
        self._grad_func = grad_func

    # ---- The body ----

    def _build(self):
        if self._definition is not None:
            return
        graph = _FuncGraph(self._func_name, self._capture_by_value,
                           self._capture_resource_var_by_value)
        self._fill(graph)
        base = self._func_name or _python_name(self._func)
        if self._func_name is None and self._grad_func is not None:
            base += "_%s" % self._grad_func.name

        def flat(tensors):
            return [part for t in tensors for part in t._key]

        attrs = _call_attrs(base, **self._extra_kwargs)
        definition = protos.FunctionDef.FromString(graph._core.to_function(
            base, flat(graph.inputs), flat(graph.outputs),
            list(self._out_names or []), attrs))
        if self._func_name is None:
            digest = hashlib.sha256(definition.SerializeToString(
                deterministic=True)).hexdigest()
            self._func_name = "%s_%s" % (base, digest[:11])
            definition.signature.name = self._func_name
        if self._func.__doc__:
            definition.signature.description = self._func.__doc__
        self._graph = graph
        self._definition = definition

    def _fill(self, graph):
        from sluice.ops import array_ops
        from sluice.ops import variable_scope
        with graph.as_default():
            args = [array_ops.placeholder(dtype, name=name)
                    for name, dtype in self._args]
            graph.inputs.extend(args)
            with variable_scope.variable_scope("",
                                               custom_getter=graph.getvar):
                outputs = self._func(*args)
            if outputs is None:
                outputs = []
            elif not isinstance(outputs, (list, tuple)):
                outputs = (outputs,)
            if any(o is None for o in outputs):
                raise ValueError("Function %s can not return None." %
                                 (self._func_name or
                                  _python_name(self._func)))
            outputs = [ops.convert_to_tensor(o) for o in outputs]
            graph.outputs = [o if o.graph is graph else graph.capture(o)
                             for o in outputs]

    def add_to_graph(self, graph):
        """Puts the function, and those it calls, into the graph's library."""
        self._build()
        known = graph._functions
        if known.get(self._func_name) is self:
            return
        if self.grad_func_name is not None and \
                self.python_grad_func is not None:
            raise ValueError("Gradient defined twice for function %s" %
                             self._func_name)
        known[self._func_name] = self
        library = protos.FunctionDefLibrary()
        library.function.add().CopyFrom(self._definition)
        if self._grad_func is not None:
            self._grad_func.add_to_graph(graph)
            library.gradient.add(function_name=self._func_name,
                                 gradient_func=self._grad_func.name)
        try:
            graph._core.add_functions(library.SerializeToString())
        except errors.InvalidArgumentError as e:
            del known[self._func_name]
            raise ValueError(e.message) from None
        for inner in self._graph._functions.values():
            inner.add_to_graph(graph)

    def __call__(self, *args, **kwargs):
        self.add_to_graph(ops.get_default_graph())
        args = [ops.convert_to_tensor(a) for a in args] + \
            self._graph.extra_inputs
        result, op = _call(self._definition.signature, *args, **kwargs)
        op.__dict__["__defun"] = self
        if self._shape_func is not None:
            shapes = self._shape_func(op)
            if len(shapes) != len(op.outputs):
                raise ValueError("shape_func produced %d shapes for %d "
                                 "outputs" % (len(shapes), len(op.outputs)))
            for tensor, shape in zip(op.outputs, shapes):
                tensor.set_shape(shape)
        return result


class _OverloadedFunction(object):
    """A function whose types are those of its calls."""

    def __init__(self, func, argnames, func_name=None, grad_func=None,
                 python_grad_func=None, out_names=None, **kwargs):
        self._func = func
        self._argnames = argnames
        self._func_name = func_name
        assert grad_func is None or isinstance(grad_func, _OverloadedFunction)
        self._grad_func = grad_func
        self._python_grad_func = python_grad_func
        self._out_names = out_names
        self._extra_kwargs = kwargs
        self._overload = {}

    def instantiate(self, input_types):
        key = "_".join(dtypes.as_dtype(t).name for t in input_types)
        defined = self._overload.get(key)
        if defined is None:
            name = self._func_name
            if name is not None:
                name = "_".join([name, key])
            defined = _DefinedFunction(
                self._func, self._argnames, input_types, name, None,
                self._python_grad_func, out_names=self._out_names,
                **self._extra_kwargs)
            defined.name  # The gradient needs the types of the results.
            if self._grad_func:
                results = [dtypes.as_dtype(a.type) for a in
                           defined.definition.signature.output_arg]
                defined._grad_func = self._grad_func.instantiate(
                    list(input_types) + results)
            self._overload[key] = defined
        return defined

    def __call__(self, *args, **kwargs):
        args = [ops.convert_to_tensor(a) for a in args]
        return self.instantiate([a.dtype.base_dtype for a in args])(
            *args, **kwargs)


class Defun(object):
    """Decorator: makes a function of the graph of a Python function."""

    def __init__(self, *input_types, **kwargs):
        self._input_types = input_types
        self._func_name = kwargs.pop("func_name", None)
        self._grad_func = kwargs.pop("grad_func", None)
        self._python_grad_func = kwargs.pop("python_grad_func", None)
        self._out_names = kwargs.pop("out_names", None)
        self._extra_kwargs = kwargs

    def __call__(self, func):
        if not callable(func):
            raise ValueError("function %s must be callable" % func)
        spec = inspect.getfullargspec(func)
        if spec.varkw or spec.defaults:
            raise ValueError(
                "Functions with argument defaults or keywords arguments are "
                "not supported. {} has defaults {} and keywords {}.".format(
                    func, spec.defaults, spec.varkw))
        argnames = spec.args
        if inspect.ismethod(func):
            argnames = argnames[1:]
        least = len(argnames)
        if self._input_types:
            if len(self._input_types) < least or (
                    not spec.varargs and len(self._input_types) > least):
                raise ValueError("The function has fewer arguments than the "
                                 "number of specified input types.")
            return self._defined(func, argnames, self._input_types)
        if least == 0 and not spec.varargs:
            return self._defined(func, [], [])
        return _OverloadedFunction(
            func, argnames, self._func_name, self._grad_func,
            self._python_grad_func, out_names=self._out_names,
            **self._extra_kwargs)

    def _defined(self, func, argnames, types):
        return _DefinedFunction(
            func, argnames, types, self._func_name, self._grad_func,
            self._python_grad_func, out_names=self._out_names,
            **self._extra_kwargs)


class Declare(object):
    """A function that is defined elsewhere, by its name and types."""

    def __init__(self, func_name, inputs, outputs):
        self._signature = protos.OpDef(name=func_name)

        def add(args, named):
            if len({name for name, _ in named}) != len(named):
                raise ValueError("Expected names to all be unique: %s" %
                                 [name for name, _ in named])
            for name, dtype in named:
                args.add(name=name, type=int(dtypes.as_dtype(dtype)))

        add(self._signature.input_arg, inputs)
        add(self._signature.output_arg, outputs)

    def __call__(self, *inputs, **kwargs):
        inputs = [ops.convert_to_tensor(i) for i in inputs]
        return _call(self._signature, *inputs, **kwargs)[0]


def get_extra_vars():
    graph = ops.get_default_graph()
    return graph.extra_vars if isinstance(graph, _FuncGraph) else []


def get_extra_inputs():
    graph = ops.get_default_graph()
    return graph.extra_inputs if isinstance(graph, _FuncGraph) else []


def get_extra_args():
    graph = ops.get_default_graph()
    return graph.extra_args if isinstance(graph, _FuncGraph) else []
