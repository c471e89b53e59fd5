"""Sessions: run steps of a graph, here or on a server."""

import collections
import collections.abc
import threading
import warnings

from sluice.platform.lazy_numpy import np

from sluice import _sluice
from sluice.framework import errors
from sluice.framework import graph as graph_lib
from sluice.framework import ops
from sluice.framework import protos
from sluice.framework import sparse_tensor
from sluice.ops import session_ops
from sluice.platform import tf_logging

# So many handles are dropped together.
_DEAD_HANDLES = 10
# How long a session that is left by an error may take to close.
_CLOSE_SECS = 30


def _is_attrs_class(obj):
    return hasattr(type(obj), "__attrs_attrs__")


def _is_namedtuple(obj):
    return isinstance(obj, tuple) and hasattr(obj, "_fields")


# Types that users registered: (type, fetch, feed, feed for partial runs).
_registered = []


def register_session_run_conversion_functions(
        tensor_type, fetch_function, feed_function=None,
        feed_function_for_partial_run=None):
    for entry in _registered:
        if issubclass(tensor_type, entry[0]):
            raise ValueError("%s has already been registered so ignore it." %
                             tensor_type)
    _registered.insert(0, (tensor_type, fetch_function, feed_function,
                           feed_function_for_partial_run))


class _Fetches(object):
    """A fetch structure taken apart: its leaves, and how to put values back."""

    def __init__(self, graph, fetches):
        self.graph = graph
        self.leaves = []  # Tensors and operations, each once.
        self._index = {}
        self.rebuild = self._take(fetches)

    def _leaf(self, element, original):
        graph = self.graph
        try:
            element = graph.as_graph_element(element, allow_tensor=True,
                                             allow_operation=True)
        except TypeError as e:
            raise TypeError(
                "Fetch argument %r has invalid type %r, must be a string or "
                "Tensor. (%s)" % (original, type(original), e)) from None
        except (ValueError, KeyError) as e:
            raise ValueError("Fetch argument %r cannot be interpreted as a "
                             "Tensor. (%s)" % (original, e)) from None
        if not graph.is_fetchable(element):
            raise errors.InaccessibleTensorError(
                "Operation %r has been marked as not fetchable. Typically this "
                "happens when it is defined in another function or code block. "
                "Use return values,explicit Python locals or TensorFlow "
                "collections to access it." % getattr(element, "op",
                                                      element).name)
        at = self._index.get(element)
        if at is None:
            at = self._index[element] = len(self.leaves)
            self.leaves.append(element)
        return at

    def _take(self, fetch):
        if fetch is None:
            raise TypeError("Fetch argument %r has invalid type %r" %
                            (fetch, type(fetch)))
        if isinstance(fetch, (ops.Tensor, ops.Operation, str, bytes)):
            at = self._leaf(fetch, fetch)
            return lambda values: values[at]
        if _is_namedtuple(fetch) and not isinstance(
                fetch, sparse_tensor.SparseTensor):
            parts = [self._take(f) for f in fetch]
            cls = type(fetch)
            return lambda values: cls(*[p(values) for p in parts])
        if isinstance(fetch, (list, tuple)):
            parts = [self._take(f) for f in fetch]
            if isinstance(fetch, list):
                return lambda values: [p(values) for p in parts]
            return lambda values: tuple([p(values) for p in parts])
        if isinstance(fetch, collections.abc.Mapping):
            parts = [(k, self._take(v)) for k, v in fetch.items()]
            cls = type(fetch)

            def rebuild(values):
                result = cls()
                for key, part in parts:
                    result[key] = part(values)
                return result
            return rebuild
        if _is_attrs_class(fetch):
            fields = [a.name for a in type(fetch).__attrs_attrs__]
            parts = [self._take(getattr(fetch, f)) for f in fields]
            cls = type(fetch)
            return lambda values: cls(*[p(values) for p in parts])
        for tensor_type, fetch_function, _, _ in _registered:
            if isinstance(fetch, tensor_type):
                elements, contract = fetch_function(fetch)
                at = [self._leaf(e, fetch) for e in elements]
                return lambda values: contract([values[i] for i in at])
        at = self._leaf(fetch, fetch)
        return lambda values: values[at]


register_session_run_conversion_functions(
    sparse_tensor.SparseTensor,
    lambda fetch: ([fetch.indices, fetch.values, fetch.dense_shape],
                   lambda v: sparse_tensor.SparseTensorValue(*v)),
    lambda feed, value: list(zip(
        [feed.indices, feed.values, feed.dense_shape], value)),
    lambda feed: [feed.indices, feed.values, feed.dense_shape])
register_session_run_conversion_functions(
    ops.IndexedSlices,
    lambda fetch: (
        [fetch.values, fetch.indices] + (
            [] if fetch.dense_shape is None else [fetch.dense_shape]),
        lambda v: ops.IndexedSlicesValue(
            v[0], v[1], v[2] if len(v) > 2 else None)),
    lambda feed, value: list(zip(
        [feed.values, feed.indices] + (
            [] if feed.dense_shape is None else [feed.dense_shape]), value)),
    lambda feed: [feed.values, feed.indices] + (
        [] if feed.dense_shape is None else [feed.dense_shape]))


def _flatten_feeds(feed_dict):
    if not isinstance(feed_dict, collections.abc.Mapping):
        raise TypeError("input must be a dictionary")
    for key, value in feed_dict.items():
        for pair in _flatten_feed(key, value):
            yield pair


def _flatten_feed(key, value):
    if isinstance(key, tuple) and not _is_namedtuple(key):
        for k, v in zip(key, value):
            for pair in _flatten_feed(k, v):
                yield pair
        return
    for tensor_type, _, feed_function, _ in _registered:
        if isinstance(key, tensor_type) and feed_function is not None:
            for pair in feed_function(key, value):
                yield pair
            return
    yield key, value


def _is_fed_as_it_is(key):
    """Whether the value given for `key` is that of one tensor."""
    return not isinstance(key, tuple) and not any(
        feed_function is not None and isinstance(key, tensor_type)
        for tensor_type, _, feed_function, _ in _registered)


def _parts_of_feed(key):
    """The tensors that are fed for `key`, before their values are known."""
    for tensor_type, _, _, feed_function in _registered:
        if isinstance(key, tensor_type) and feed_function is not None:
            return feed_function(key)
    return [key]


def _holds(kind, value):
    """Whether `value` is the same as an element of type `kind`."""
    try:
        return kind(value) == value
    except OverflowError:
        return False


def _as_array(value, kind):
    try:
        return np.asarray(value, dtype=kind)
    except OverflowError:
        if not np.issubdtype(kind, np.integer):
            raise
        # NumPy 2 refuses numbers in a list that it wraps around in an array;
        # NumPy 1, with which TensorFlow 1 runs, wraps both.
        return np.asarray(value, dtype=np.int64).astype(kind)


def _feed_array(tensor, value):
    """`value` as an array that can be fed for `tensor`."""
    if isinstance(value, ops.Tensor):
        raise TypeError(
            "The value of a feed cannot be a tf.Tensor object. Acceptable "
            "feed values include Python scalars, strings, lists, numpy "
            "ndarrays, or TensorHandles. For reference, the tensor object was "
            "%s which was passed to the feed with key %s." % (value, tensor))
    if isinstance(value, session_ops.TensorHandle):
        value = value.handle if tensor in tensor.graph._handle_holders \
            else value.eval()
    dtype = tensor.dtype.base_dtype
    kind = dtype.as_numpy_dtype
    if isinstance(value, int) and not isinstance(value, bool) and \
            kind not in (np.object_, np.bool_) and not _holds(kind, value):
        raise TypeError(
            "Type of feed value %s with type %s is not compatible with Tensor "
            "type %s. Try explicitly setting the type of the feed tensor to a "
            "larger type (e.g. int64)." % (value, type(value), kind))
    array = _as_array(value, kind)
    if not tensor.shape.is_compatible_with(array.shape):
        raise ValueError("Cannot feed value of shape %r for Tensor %r, which "
                         "has shape %r" % (array.shape, tensor.name,
                                           str(tensor.shape)))
    if not tensor.graph.is_feedable(tensor):
        raise ValueError("Tensor %s may not be fed." % tensor)
    return np.require(array, requirements="C") if array.ndim else array


class BaseSession(object):
    def __init__(self, target="", graph=None, config=None):
        if graph is None:
            graph = ops.get_default_graph()
        elif not isinstance(graph, ops.Graph):
            raise TypeError("graph must be a tf.Graph, but got %s" %
                            type(graph))
        if target is None:
            target = ""
        if isinstance(target, bytes):
            target = target.decode()
        if not isinstance(target, str):
            hint = ""
            if isinstance(target, protos.ConfigProto):
                hint = (' Did you do "Session(config)" instead of '
                        '"Session(config=config)"?')
            raise TypeError("target must be a string, but got %s%s" %
                            (type(target), hint))
        if config is not None and not isinstance(config, protos.ConfigProto):
            raise TypeError("config must be a tf.ConfigProto, but got %s" %
                            type(config))
        self._graph = graph
        self._target = target
        self._config = config
        self._closed = False
        self._plans = {}
        self._dead_handles = []
        config = config or protos.ConfigProto()
        if _soft_placement_by_default():
            merged = protos.ConfigProto()
            merged.CopyFrom(config)
            merged.allow_soft_placement = True
            config = merged
        self._core = _sluice.open_session(target, graph._core,
                                          config.SerializeToString())

    @property
    def graph(self):
        return self._graph

    @property
    def graph_def(self):
        return self._graph.as_graph_def(add_shapes=False)

    @property
    def sess_str(self):
        return self._target

    def as_default(self):
        return ops.default_sessions.entered(self)

    def close(self):
        if self._closed:
            return
        self._closed = True
        # They hold kernels, and kernels what is the session's own.
        self._plans.clear()
        _sluice.session_drop_plans(self._core)
        _sluice.session_of(self._core).close()

    def __del__(self):
        try:
            self.close()
        except Exception:  # Nobody is left to tell.
            pass

    def _interrupt(self):
        _sluice.session_of(self._core).interrupt()

    def list_devices(self):
        return [_DeviceAttributes(*d) for d in
                _sluice.session_to_sync(self._core).list_devices()]

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        if options is None and run_metadata is None and not self._closed:
            try:
                result = self._core.run(fetches, feed_dict)
            except errors.OpError as e:
                raise errors.locate(e, self._graph) from None
            if result is not NotImplemented:
                return result
        return self._run_slowly(fetches, feed_dict, options, run_metadata)

    def _register_dead_handle(self, handle):
        self._dead_handles.append(handle)

    def _drop_dead_handles(self):
        """What nobody can name any more, unless that takes new nodes in a
        finalized graph; then it goes with the session."""
        if len(self._dead_handles) < _DEAD_HANDLES or self._graph.finalized:
            return
        dead, self._dead_handles = self._dead_handles, []
        session_ops.delete(self, dead)

    def _check_open(self):
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        if self._graph.version == 0:
            raise RuntimeError("The Session graph is empty.  Add operations "
                               "to the graph before calling run().")

    def _feed_pairs(self, feed_dict):
        pairs = []
        for key, value in _flatten_feeds(feed_dict or {}):
            try:
                tensor = self._graph.as_graph_element(
                    key, allow_tensor=True, allow_operation=False)
            except Exception as e:
                raise TypeError("Cannot interpret feed_dict key as Tensor: " +
                                (e.args[0] if e.args else str(e))) from None
            pairs.append((tensor, _feed_array(tensor, value)))
        return pairs

    def _prepare(self, feeds, tensors, targets, options):
        key = (tuple(feeds), tuple(tensors), tuple(targets))
        step = self._plans.get(key)
        if step is None:
            signature = _sluice.StepSignature(
                [t.name for t in feeds], [t.name for t in tensors],
                [t.name for t in targets])
            try:
                step = _sluice.session_prepare(self._core, signature,
                                               _serialized(options))
            except errors.OpError as e:
                raise errors.locate(e, self._graph) from None
            self._plans[key] = step
        return step

    def _run_slowly(self, fetches, feed_dict, options, run_metadata):
        self._check_open()
        self._drop_dead_handles()
        wanted = _Fetches(self._graph, fetches)
        pairs = self._feed_pairs(feed_dict)
        fed = dict(pairs)
        tensors = [e for e in wanted.leaves
                   if isinstance(e, ops.Tensor) and e not in fed]
        targets = [e for e in wanted.leaves if isinstance(e, ops.Operation)]
        if not tensors and not targets:
            return wanted.rebuild([fed.get(e) for e in wanted.leaves])
        feeds = [t for t, _ in pairs]
        step = self._prepare(feeds, tensors, targets, options)
        handles = any(session_ops.is_handle(t) for t in tensors)
        if not handles and not fed.keys() & set(wanted.leaves):
            self._remember(fetches, feed_dict, wanted, tensors, feeds, step)
        values, metadata = self._run_step(
            step, [v for _, v in pairs], [t.dtype for t in feeds],
            len(tensors), options, run_metadata)
        if run_metadata is not None and metadata is not None:
            run_metadata.ParseFromString(metadata)
        at = {t: i for i, t in enumerate(tensors)}
        results = []
        for element in wanted.leaves:
            if element in fed:
                results.append(fed[element])
            elif element in at:
                results.append(self._result(element, values[at[element]]))
            else:
                results.append(None)
        return wanted.rebuild(results)

    def _result(self, tensor, value):
        if not session_ops.is_handle(tensor):
            return value
        return session_ops.TensorHandle(value, tensor.op.inputs[0].dtype, self)

    def _run_step(self, step, arrays, types, num_fetches, options,
                  run_metadata):
        tensors = [_sluice.tensor_from_array(a, int(t.base_dtype))
                   for a, t in zip(arrays, types)]
        try:
            return _sluice.run_step(step, tensors, num_fetches,
                                    _serialized(options),
                                    run_metadata is not None)
        except errors.OpError as e:
            raise errors.locate(e, self._graph) from None

    def _remember(self, fetches, feed_dict, wanted, tensors, feeds, step):
        """Lets the fast path serve this kind of run next time."""
        if not isinstance(fetches, (list, tuple)):
            flat = [fetches]
        elif type(fetches) in (list, tuple):
            flat = list(fetches)
        else:
            return
        at = {t: i for i, t in enumerate(tensors)}
        leaf_fetch = []
        for leaf in flat:
            if isinstance(leaf, (str, bytes, list, tuple, dict)) or \
                    leaf is None:
                return
            try:
                element = self._graph.as_graph_element(leaf)
            except (TypeError, ValueError, KeyError):
                return
            leaf_fetch.append(at.get(element, -1))
        keys = list(feed_dict or {})
        if not all(map(_is_fed_as_it_is, keys)):
            return
        specs = [(int(t.dtype.base_dtype), t.shape._core()) for t in feeds]
        _sluice.session_add_plan(self._core, fetches, keys, step, specs,
                                 leaf_fetch, len(tensors),
                                 feed_dict is not None)

    def make_callable(self, fetches, feed_list=None, accept_options=False):
        if feed_list is not None and not isinstance(feed_list, (list, tuple)):
            raise TypeError("`feed_list` must be a list or tuple.")
        feed_list = list(feed_list or [])
        if not feed_list:
            return self._make_plain_callable(fetches, accept_options)

        def call(*args, **kwargs):
            feeds = dict(zip(feed_list, args))
            if len(args) != len(feed_list):
                raise TypeError("Expected %d arguments, got %d" %
                                (len(feed_list), len(args)))
            return self.run(fetches, feeds, **kwargs)

        return call

    def _make_plain_callable(self, fetches, accept_options):
        """A callable without feeds; what is wrong with it shows at once."""
        self._check_open()
        wanted = _Fetches(self._graph, fetches)
        tensors = [e for e in wanted.leaves if isinstance(e, ops.Tensor)]
        targets = [e for e in wanted.leaves if isinstance(e, ops.Operation)]
        if wanted.leaves:
            self._prepare([], tensors, targets, None)

        def call():
            return self.run(fetches)

        def call_with_options(options=None, run_metadata=None):
            return self.run(fetches, None, options, run_metadata)

        return call_with_options if accept_options else call

    def _make_callable_from_options(self, callable_options):
        """A callable of a CallableOptions, as TensorFlow 1.15 has it: feeds by
        position, a list of fetches as the result."""
        self._check_open()
        feeds = [self._graph.as_graph_element(
            name, allow_tensor=True, allow_operation=False)
            for name in callable_options.feed]
        signature = _sluice.StepSignature(
            list(callable_options.feed), list(callable_options.fetch),
            list(callable_options.target),
            [(c.from_tensor, c.to_tensor)
             for c in callable_options.tensor_connection])
        try:
            step = _sluice.session_prepare(
                self._core, signature,
                _serialized(callable_options.run_options))
        except errors.OpError as e:
            raise errors.locate(e, self._graph) from None
        options = callable_options.run_options

        def call(*args, **kwargs):
            self._check_open()
            if len(args) != len(feeds):
                raise TypeError("Expected %d arguments, got %d" %
                                (len(feeds), len(args)))
            run_metadata = kwargs.get("run_metadata")
            values, metadata = self._run_step(
                step, [_feed_array(t, v) for t, v in zip(feeds, args)],
                [t.dtype for t in feeds], len(callable_options.fetch),
                options, run_metadata)
            if run_metadata is not None and metadata is not None:
                run_metadata.ParseFromString(metadata)
            return values

        return call

    def partial_run_setup(self, fetches, feeds=None):
        self._check_open()
        wanted = _Fetches(self._graph, fetches)
        tensors = [e.name for e in wanted.leaves if isinstance(e, ops.Tensor)]
        targets = [e.name for e in wanted.leaves
                   if isinstance(e, ops.Operation)]
        fed = [self._graph.as_graph_element(
            f, allow_tensor=True, allow_operation=False).name
            for feed in feeds or [] for f in _parts_of_feed(feed)]
        signature = _sluice.StepSignature(fed, tensors, targets)
        try:
            return _sluice.session_to_sync(self._core).set_up_partial_run(
                signature)
        except errors.OpError as e:
            raise errors.locate(e, self._graph) from None

    def partial_run(self, handle, fetches, feed_dict=None):
        self._check_open()
        wanted = _Fetches(self._graph, fetches)
        if any(isinstance(e, ops.Operation) for e in wanted.leaves):
            raise RuntimeError("partial_run() requires empty target_list.")
        pairs = self._feed_pairs(feed_dict)
        fed = dict(pairs)
        tensors = [e for e in wanted.leaves if e not in fed]
        feeds = [_sluice.tensor_from_array(v, int(t.dtype.base_dtype))
                 for t, v in pairs]
        try:
            values = _sluice.session_of(self._core).run_partially(
                handle, [t.name for t, _ in pairs], feeds,
                [t.name for t in tensors])
        except errors.OpError as e:
            raise errors.locate(e, self._graph) from None
        at = {t: self._result(t, v) for t, v in zip(tensors, values)}
        at.update(fed)
        return wanted.rebuild([at[e] for e in wanted.leaves])


_DeviceAttributes = collections.namedtuple(
    "_DeviceAttributes",
    ["name", "device_type", "memory_limit_bytes", "incarnation"])


def _serialized(options):
    return b"" if options is None else options.SerializeToString()


def _soft_placement_by_default():
    import os
    return os.environ.get("SLUICE_SOFT_PLACEMENT") == "1"


class Session(BaseSession):
    """Runs operations; as a context manager it is the default session."""

    def __init__(self, target="", graph=None, config=None):
        super().__init__(target, graph, config)
        self._contexts = None

    def __enter__(self):
        if self._contexts is not None:
            raise RuntimeError(
                "Session context managers are not re-entrant. Use "
                "`Session.as_default()` if you want to enter a session "
                "multiple times.")
        graph = self.graph.as_default()
        session = self.as_default()
        graph.__enter__()
        session.__enter__()
        self._contexts = (graph, session)
        return self

    def __exit__(self, exc_type, exc_value, exc_tb):
        graph, session = self._contexts
        self._contexts = None
        session.__exit__(exc_type, exc_value, exc_tb)
        graph.__exit__(exc_type, exc_value, exc_tb)
        if exc_type is None:
            self.close()
            return
        # After an error, closing must not hide it by waiting for the dead.
        closer = threading.Thread(name="SessionCloseThread",
                                  target=self._close_quietly, daemon=True)
        closer.start()
        closer.join(_CLOSE_SECS)
        if closer.is_alive():
            tf_logging.error(
                "Session failed to close after %d seconds. Continuing after "
                "this point may leave your program in an undefined state.",
                _CLOSE_SECS)

    def _close_quietly(self):
        try:
            self.close()
        except errors.OpError:
            pass

    @staticmethod
    def reset(target, containers=None, config=None):
        _sluice.reset(target or "", list(containers or []),
                      (config or protos.ConfigProto()).SerializeToString())


def _interactive(config):
    """What TensorFlow sets for those who try things out."""
    if config is not None and not isinstance(config, protos.ConfigProto):
        return config  # Its error is BaseSession's.
    result = protos.ConfigProto()
    if config is None:
        result.gpu_options.allow_growth = True
    else:
        result.CopyFrom(config)
    result.graph_options.place_pruned_graph = True
    return result


class InteractiveSession(BaseSession):
    """A session that is the default from its construction on."""

    _lock = threading.Lock()
    _num_open = 0
    _counted = False

    def __init__(self, target="", graph=None, config=None):
        super().__init__(target, graph, _interactive(config))
        # These sessions may be closed in any order.
        self._graph_context = None
        if graph is not None:
            self._graph_context = graph_lib._default_graphs.entered(
                graph, enforce_nesting=False)
            self._graph_context.__enter__()
        self._session_context = ops.default_sessions.entered(
            self, enforce_nesting=False)
        self._session_context.__enter__()
        with InteractiveSession._lock:
            others = InteractiveSession._num_open
            InteractiveSession._num_open += 1
        self._counted = True
        if others > 0:
            warnings.warn("An interactive session is already active. This can "
                          "cause out-of-memory errors in some cases. You must "
                          "explicitly call `InteractiveSession.close()` to "
                          "release resources held by the other session(s).")

    def close(self):
        if not self._closed:
            if self._counted:
                with InteractiveSession._lock:
                    InteractiveSession._num_open -= 1
            super().close()
            self._session_context.__exit__(None, None, None)
            if self._graph_context is not None:
                self._graph_context.__exit__(None, None, None)


