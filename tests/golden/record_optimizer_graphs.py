"""Prints the nodes that optimizers add, for tests/golden/optimizer_graphs.txt.

Run by TensorFlow 1.15.5. A record is a line `== CONFIG VARIANT`, then one line
for each node below the train op, in the order of creation: name, op, inputs,
control inputs sorted, and after `|` the attributes that matter.
"""

import json
import os
import sys

import tensorflow as tf

CONFIGS = [
    "sgd", "momentum", "adagrad", "adagrad_da", "adadelta", "adam", "rmsprop",
    "rmsprop_centered", "ftrl", "ftrl_shrinkage", "proximal_adagrad",
    "proximal_sgd", "contrib_adamax", "contrib_adamw", "contrib_add_sign",
    "contrib_lazy_adam", "contrib_momentumw", "contrib_nadam",
    "contrib_power_sign"]
VARIANTS = ["%s_%s_%s" % (d, k, t) for d in ("dense", "sparse")
            for k in ("ref", "resource") for t in ("float32", "float64")]


def optimizer(config):
    arguments = dict(config["args"])
    if config["class"] == "AdagradDAOptimizer":
        arguments["global_step"] = tf.train.get_or_create_global_step()
    for module in (tf.train, getattr(tf.contrib, "opt", None)):
        if hasattr(module, config["class"]):
            return getattr(module, config["class"])(**arguments)


def build(config, variant):
    """The train op of a fresh graph."""
    density, kind, dtype = variant.split("_")
    shape = [5] if density == "dense" else [6, 2]
    with tf.variable_scope("model"):
        v = tf.get_variable("v", shape, dtype, tf.zeros_initializer(),
                            use_resource=kind == "resource")
    values = tf.placeholder(dtype, shape[:1] if density == "dense" else
                            [None, 2], name="values")
    grad = values
    if density == "sparse":
        indices = tf.placeholder(tf.int64, [None], name="indices")
        grad = tf.IndexedSlices(values, indices,
                                tf.constant([6, 2], name="shape"))
    step = None
    if config["class"] == "AdagradDAOptimizer":
        step = tf.train.get_or_create_global_step()
    return optimizer(config).apply_gradients([(grad, v)], step)


def lines(graph_def, below):
    for node in graph_def.node:
        if node.name != below and not node.name.startswith(below + "/"):
            continue
        words = [node.name, node.op]
        words += [i for i in node.input if not i.startswith("^")]
        words += sorted(i for i in node.input if i.startswith("^"))
        words.append("|")
        if node.device:
            words.append("device=" + node.device)
        for key in ("use_locking", "use_nesterov"):
            if key in node.attr:
                words.append("%s=%s" % (key, str(node.attr[key].b).lower()))
        for s in node.attr["_class"].list.s if "_class" in node.attr else ():
            words.append(s.decode())
        yield " ".join(words)


def main():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)),
                           "optimizers", "index.json")) as f:
        index = json.load(f)
    for name in CONFIGS:
        for variant in VARIANTS:
            if "error" in index[name]["variants"][variant]:
                continue
            with tf.Graph().as_default() as graph:
                train = build(index[name], variant)
                print("==", name, variant)
                for line in lines(graph.as_graph_def(), train.name):
                    print(line)


if __name__ == "__main__":
    sys.exit(main())
