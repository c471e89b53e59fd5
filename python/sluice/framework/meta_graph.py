"""Meta graphs: a graph with its collections and its saver."""

import os

from google.protobuf import text_format

from sluice import _sluice
from sluice.framework import control_flow_context
from sluice.framework import importer
from sluice.framework import ops
from sluice.framework import protos
from sluice.platform import gfile
from sluice.platform import tf_logging as logging

_VERSION = "1.15.5"
# Inputs of an exported scope that come from outside of it.
_UNBOUND_PREFIX = "$unbound_inputs_"
_UNBOUND_COLLECTION = "unbound_inputs"


def _registered(key):
    """(message, from_proto) of the items in a collection, if they have one."""
    from sluice.ops import variables
    from sluice.training import queue_runner_impl
    from sluice.training import saver
    keys = ops.GraphKeys
    if key in (keys.GLOBAL_VARIABLES, keys.LOCAL_VARIABLES,
               keys.TRAINABLE_VARIABLES, keys.MODEL_VARIABLES,
               keys.MOVING_AVERAGE_VARIABLES, keys.GLOBAL_STEP,
               keys.EVAL_STEP, keys.METRIC_VARIABLES,
               keys.CONCATENATED_VARIABLES,
               keys.TRAINABLE_RESOURCE_VARIABLES):
        return protos.VariableDef, variables.Variable.from_proto
    if key == keys.QUEUE_RUNNERS:
        return (protos.QueueRunnerDef,
                queue_runner_impl.QueueRunner.from_proto)
    if key == keys.SAVERS:
        return protos.SaverDef, saver.Saver.from_proto
    contexts = control_flow_context.ControlFlowContext
    if key == keys.COND_CONTEXT:
        return protos.CondContextDef, contexts.from_proto
    if key == keys.WHILE_CONTEXT:
        return protos.WhileContextDef, contexts.from_proto
    return None


def add_collection_def(meta_graph_def, key, graph=None, export_scope=None,
                       exclude_nodes=None, override_contents=None):
    graph = graph or ops.get_default_graph()
    items = override_contents or graph.get_collection(key)
    if not items:
        return
    collection = protos.CollectionDef()
    try:
        if _registered(key) and all(hasattr(i, "to_proto") for i in items):
            for item in items:
                message = item.to_proto(export_scope=export_scope)
                if message is not None:
                    collection.bytes_list.value.append(
                        message.SerializeToString())
        elif all(isinstance(i, (ops.Tensor, ops.Operation)) or
                 hasattr(i, "_as_graph_element") for i in items):
            collection.node_list.value.extend(
                ops.strip_name_scope(i.name, export_scope) for i in items
                if not export_scope or i.name.startswith(export_scope))
        elif all(isinstance(i, (str, bytes)) for i in items):
            collection.bytes_list.value.extend(
                i.encode() if isinstance(i, str) else i for i in items)
        elif all(isinstance(i, int) for i in items):
            collection.int64_list.value.extend(items)
        elif all(isinstance(i, (int, float)) for i in items):
            collection.float_list.value.extend(items)
        else:
            raise TypeError("Type is unsupported, or the types of the items "
                            "don't match field type in CollectionDef.")
    except Exception as e:  # A collection that does not fit is left out.
        logging.warning("Issue encountered when serializing %s.\n%s", key,
                        str(e))
        return
    meta_graph_def.collection_def[key].CopyFrom(collection)


def stripped_op_list_for_graph(graph_def):
    used = {node.op for node in graph_def.node}
    for function in graph_def.library.function:
        used.update(node.op for node in function.node_def)
    ops_used = protos.OpList()
    for name in sorted(used):
        definition = _sluice.op_def(name)
        if definition is not None:
            ops_used.op.add().MergeFromString(definition)
    return ops_used


def strip_default_attrs_of(graph_def):
    """Takes away what a reader knows: attributes that have their default."""
    def strip(nodes):
        for node in nodes:
            definition = _sluice.op_def(node.op)
            if definition is None:
                continue
            for attr in protos.OpDef.FromString(definition).attr:
                if attr.HasField("default_value") and attr.name in node.attr \
                        and node.attr[attr.name] == attr.default_value:
                    del node.attr[attr.name]
    strip(graph_def.node)
    for function in graph_def.library.function:
        strip(function.node_def)


def create_meta_graph_def(meta_info_def=None, graph_def=None, saver_def=None,
                          collection_list=None, graph=None, export_scope=None,
                          exclude_nodes=None, clear_extraneous_savers=False,
                          strip_default_attrs=False):
    graph = graph or ops.get_default_graph()
    meta = protos.MetaGraphDef()
    if meta_info_def is not None:
        meta.meta_info_def.MergeFrom(meta_info_def)
    meta.meta_info_def.tensorflow_version = _VERSION
    meta.meta_info_def.tensorflow_git_version = "sluice"
    if graph_def is None:
        graph_def = graph.as_graph_def(add_shapes=True)
    meta.graph_def.MergeFrom(graph_def)
    if not meta.meta_info_def.HasField("stripped_op_list"):
        meta.meta_info_def.stripped_op_list.MergeFrom(
            stripped_op_list_for_graph(meta.graph_def))
    if strip_default_attrs:
        strip_default_attrs_of(meta.graph_def)
        meta.meta_info_def.stripped_default_attrs = True
    if saver_def:
        meta.saver_def.MergeFrom(saver_def)
    keys = graph.get_all_collection_keys() if collection_list is None else \
        collection_list
    for key in keys:
        if clear_extraneous_savers and key == ops.GraphKeys.SAVERS:
            savers = [s for s in graph.get_collection(key)
                      if s.saver_def == saver_def]
            if savers:
                add_collection_def(meta, key, graph, export_scope,
                                   override_contents=savers)
            continue
        add_collection_def(meta, key, graph, export_scope)
    return meta


def export_scoped_meta_graph(filename=None, graph_def=None, graph=None,
                             export_scope=None, as_text=False,
                             clear_devices=False, meta_info_def=None,
                             saver_def=None, collection_list=None,
                             clear_extraneous_savers=False,
                             strip_default_attrs=False,
                             unbound_inputs_col_name=_UNBOUND_COLLECTION,
                             **unused):
    graph = graph or ops.get_default_graph()
    if graph_def is None:
        graph_def = graph.as_graph_def(add_shapes=True)
    unbound = set()
    if export_scope:
        graph_def = _scoped(graph_def, export_scope, unbound)
    if clear_devices:
        for node in graph_def.node:
            node.device = ""
    if graph_def.ByteSize() >= 2**31:
        raise ValueError("GraphDef cannot be larger than 2GB.")
    meta = create_meta_graph_def(
        meta_info_def, graph_def, saver_def, collection_list, graph,
        export_scope, clear_extraneous_savers=clear_extraneous_savers,
        strip_default_attrs=strip_default_attrs)
    if unbound and unbound_inputs_col_name:
        meta.collection_def[unbound_inputs_col_name].bytes_list.value.extend(
            name.encode() for name in sorted(unbound))
    if filename:
        data = text_format.MessageToString(meta).encode() if as_text else \
            meta.SerializeToString()
        os.makedirs(os.path.dirname(filename) or ".", exist_ok=True)
        _sluice.write_file_atomically(filename, data)
    return meta


def _scoped(graph_def, scope, unbound):
    """The nodes below a scope, with names as seen from inside. Inputs from
    outside get a mark and are added to `unbound`."""
    def inside(name):
        plain = name.lstrip("^")
        if plain.startswith(scope.rstrip("/") + "/"):
            return ops.strip_name_scope(name, scope.rstrip("/"))
        marked = name[:len(name) - len(plain)] + _UNBOUND_PREFIX + plain
        unbound.add(marked)
        return marked

    scoped = protos.GraphDef()
    scoped.versions.CopyFrom(graph_def.versions)
    scoped.library.CopyFrom(graph_def.library)
    for node in graph_def.node:
        if not node.name.startswith(scope.rstrip("/") + "/"):
            continue
        copy = scoped.node.add()
        copy.CopyFrom(node)
        copy.name = ops.strip_name_scope(node.name, scope.rstrip("/"))
        for i, name in enumerate(node.input):
            copy.input[i] = inside(name)
        if "_class" in copy.attr:
            names = copy.attr["_class"].list.s
            for i, name in enumerate(names):
                names[i] = ops.strip_name_scope(
                    name.decode(), scope.rstrip("/")).encode()
    return scoped


def read_meta_graph_file(filename):
    meta = protos.MetaGraphDef()
    if not gfile.exists(filename):
        raise IOError("File %s does not exist." % filename)
    data = _sluice.read_file(filename)
    try:
        meta.ParseFromString(data)
        return meta
    except Exception:  # Not binary; it may be text.
        pass
    try:
        text_format.Parse(data.decode("utf-8"), meta)
    except (text_format.ParseError, UnicodeDecodeError) as e:
        raise IOError("Cannot parse file %s: %s." % (filename, str(e)))
    return meta


def import_scoped_meta_graph(meta_graph_or_file, clear_devices=False,
                             graph=None, import_scope=None, input_map=None,
                             restore_collections_predicate=(lambda key: True),
                             unbound_inputs_col_name=_UNBOUND_COLLECTION,
                             **unused):
    """Adds the nodes and fills the collections; {name: variable}."""
    meta = meta_graph_or_file
    if not isinstance(meta, protos.MetaGraphDef):
        meta = read_meta_graph_file(meta)
    if unbound_inputs_col_name in meta.collection_def:
        unbound = [v.decode() for v in meta.collection_def[
            unbound_inputs_col_name].bytes_list.value]
        if sorted(unbound) != sorted(input_map or {}):
            raise ValueError(
                "Graph contains unbound inputs: %s. Must provide these inputs "
                "through input_map." % ",".join(unbound))
    graph = graph or ops.get_default_graph()
    graph_def = meta.graph_def
    if clear_devices:
        graph_def = protos.GraphDef()
        graph_def.CopyFrom(meta.graph_def)
        for node in graph_def.node:
            node.device = ""
    with graph.as_default():
        scope = ""
        if import_scope:
            scope = graph.unique_name(import_scope, mark_as_used=False)
        importer.import_graph_def(graph_def, name=(import_scope or scope),
                                  input_map=input_map)
        imported = {}
        # A variable may be in several collections; it is one object.
        known = {}
        for key, collection in sorted(meta.collection_def.items()):
            if not restore_collections_predicate(key):
                continue
            kind = collection.WhichOneof("kind")
            if kind is None:
                logging.error("Cannot identify data type for collection %s. "
                              "Skipping.", key)
                continue
            registered = _registered(key)
            if kind == "bytes_list" and registered:
                message_class, from_proto = registered
                for value in collection.bytes_list.value:
                    if (message_class, value) not in known:
                        message = message_class()
                        message.ParseFromString(value)
                        known[message_class, value] = from_proto(
                            message, import_scope=scope or None)
                    item = known[message_class, value]
                    graph.add_to_collection(key, item)
                    if message_class is protos.VariableDef:
                        imported[ops.strip_name_scope(
                            item.name, scope or None)] = item
            elif kind == "node_list":
                for value in collection.node_list.value:
                    graph.add_to_collection(key, graph.as_graph_element(
                        ops.prepend_name_scope(value, scope or None)))
            elif kind == "int64_list":
                for value in collection.int64_list.value:
                    graph.add_to_collection(key, int(value))
            else:
                for value in getattr(collection, kind).value:
                    graph.add_to_collection(key, value)
    return imported
