"""tf.contrib.slim.learning: a training loop on a Supervisor."""

import os
import time

from sluice.client import timeline
from sluice.contrib import training
from sluice.contrib.training import (  # noqa: F401
    add_gradients_summaries, clip_gradient_norms, multiply_gradients)
from sluice.framework import constant_op
from sluice.framework import errors
from sluice.framework import ops
from sluice.framework import protos
from sluice.ops import math_ops
from sluice.ops import variables
from sluice.platform import gfile
from sluice.platform import tf_logging as logging
from sluice.training import optimizer as optimizer_lib
from sluice.training import supervisor
from sluice.training import training_util

_USE_DEFAULT = 0


def create_train_op(total_loss, optimizer, global_step=_USE_DEFAULT,
                    update_ops=None, variables_to_train=None,
                    clip_gradient_norm=0, summarize_gradients=False,
                    gate_gradients=optimizer_lib.Optimizer.GATE_OP,
                    aggregation_method=None,
                    colocate_gradients_with_ops=False,
                    gradient_multipliers=None, check_numerics=True):
    def transform(pairs):
        if gradient_multipliers:
            pairs = multiply_gradients(pairs, gradient_multipliers)
        if clip_gradient_norm > 0:
            pairs = clip_gradient_norms(pairs, clip_gradient_norm)
        return pairs
    return training.create_train_op(
        total_loss, optimizer, global_step, update_ops, variables_to_train,
        transform, summarize_gradients, gate_gradients, aggregation_method,
        colocate_gradients_with_ops, check_numerics)


def train_step(sess, train_op, global_step, train_step_kwargs):
    """One step: (loss, whether to stop)."""
    began = time.time()
    options = metadata = None
    if "should_trace" in train_step_kwargs and \
            sess.run(train_step_kwargs["should_trace"]):
        options = protos.RunOptions(trace_level=protos.RunOptions.FULL_TRACE)
        metadata = protos.RunMetadata()
    loss, step = sess.run([train_op, global_step], options=options,
                          run_metadata=metadata)
    taken = time.time() - began
    if metadata is not None:
        _write_trace(train_step_kwargs["logdir"], step, metadata)
    if "should_log" in train_step_kwargs and \
            sess.run(train_step_kwargs["should_log"]):
        logging.info("global step %d: loss = %.4f (%.3f sec/step)", step, loss,
                     taken)
    should_stop = False
    if "should_stop" in train_step_kwargs:
        should_stop = sess.run(train_step_kwargs["should_stop"])
    return loss, should_stop


def _write_trace(logdir, step, metadata):
    steps = timeline.Timeline(metadata.step_stats)
    path = os.path.join(logdir, "tf_trace-%d.json" % step)
    logging.info("Writing trace to %s", path)
    with gfile.Open(path, "w") as f:
        f.write(steps.generate_chrome_trace_format())


def _default_kwargs(global_step, number_of_steps, log_every_n_steps,
                    trace_every_n_steps, logdir):
    with ops.name_scope("train_step"):
        kwargs = {}
        if number_of_steps:
            kwargs["should_stop"] = math_ops.greater_equal(global_step,
                                                           number_of_steps)
        else:
            kwargs["should_stop"] = constant_op.constant(False)
        if log_every_n_steps > 0:
            kwargs["should_log"] = math_ops.equal(
                math_ops.mod(global_step, log_every_n_steps), 0)
        if trace_every_n_steps is not None and logdir:
            kwargs["should_trace"] = math_ops.equal(
                math_ops.mod(global_step, trace_every_n_steps), 0)
            kwargs["logdir"] = logdir
    return kwargs


def _check(train_op, logdir, is_chief, startup_delay_steps, number_of_steps):
    if train_op is None:
        raise ValueError("train_op cannot be None.")
    if number_of_steps is not None and number_of_steps <= 0:
        raise ValueError("`number_of_steps` must be either None or a positive "
                         "number.")
    if startup_delay_steps > 0 and is_chief:
        raise ValueError("startup_delay_steps must be zero for chief "
                         "supervisor.")


def train(train_op, logdir, train_step_fn=train_step,
          train_step_kwargs=_USE_DEFAULT, log_every_n_steps=1, graph=None,
          master="", is_chief=True, global_step=None, number_of_steps=None,
          init_op=_USE_DEFAULT, init_feed_dict=None,
          local_init_op=_USE_DEFAULT, init_fn=None, ready_op=_USE_DEFAULT,
          summary_op=_USE_DEFAULT, save_summaries_secs=600,
          summary_writer=_USE_DEFAULT, startup_delay_steps=0, saver=None,
          save_interval_secs=600, sync_optimizer=None, session_config=None,
          session_wrapper=None, trace_every_n_steps=None,
          ignore_live_threads=False):
    """Runs `train_op` until a step says stop; the last loss."""
    _check(train_op, logdir, is_chief, startup_delay_steps, number_of_steps)
    graph = graph or ops.get_default_graph()
    with graph.as_default():
        if global_step is None:
            global_step = training_util.get_or_create_global_step()
        if init_op == _USE_DEFAULT:
            init_op = variables.global_variables_initializer()
        if local_init_op == _USE_DEFAULT:
            local_init_op = supervisor.Supervisor.USE_DEFAULT
        ready_for_local_init_op = None
        if sync_optimizer is not None:
            with ops.control_dependencies([init_op]):
                init_tokens = sync_optimizer.get_init_tokens_op()
            local_init_op = (sync_optimizer.chief_init_op if is_chief else
                             sync_optimizer.local_step_init_op)
            ready_for_local_init_op = sync_optimizer.ready_for_local_init_op
            queue_runners = [sync_optimizer.get_chief_queue_runner()]
        if train_step_kwargs == _USE_DEFAULT:
            train_step_kwargs = _default_kwargs(global_step, number_of_steps,
                                                log_every_n_steps,
                                                trace_every_n_steps, logdir)
        sv = supervisor.Supervisor(
            graph=graph, is_chief=is_chief, logdir=logdir, init_op=init_op,
            init_feed_dict=init_feed_dict, local_init_op=local_init_op,
            ready_for_local_init_op=ready_for_local_init_op,
            ready_op=ready_op, summary_op=summary_op,
            summary_writer=summary_writer, global_step=global_step,
            saver=saver or supervisor.Supervisor.USE_DEFAULT,
            save_summaries_secs=save_summaries_secs,
            save_model_secs=save_interval_secs, init_fn=init_fn)
    loss = None
    should_retry = True
    while should_retry:
        try:
            should_retry = False
            with sv.managed_session(master, start_standard_services=False,
                                    config=session_config) as sess:
                logging.info("Starting Session.")
                if session_wrapper is not None:
                    sess = session_wrapper(sess)
                if is_chief:
                    if logdir:
                        sv.start_standard_services(sess)
                elif startup_delay_steps > 0:
                    _wait_for_step(sess, global_step, min(
                        startup_delay_steps, number_of_steps or
                        startup_delay_steps))
                sv.start_queue_runners(sess)
                logging.info("Starting Queues.")
                if is_chief and sync_optimizer is not None:
                    sv.start_queue_runners(sess, queue_runners)
                    sess.run(init_tokens)
                try:
                    while not sv.should_stop():
                        loss, should_stop = train_step_fn(
                            sess, train_op, global_step, train_step_kwargs)
                        if should_stop:
                            logging.info("Stopping Training.")
                            sv.request_stop()
                            break
                except errors.OutOfRangeError as e:
                    logging.info("Caught OutOfRangeError. Stopping Training. "
                                 "%s", e)
                if logdir and sv.is_chief:
                    logging.info("Finished training! Saving model to disk.")
                    sv.saver.save(sess, sv.save_path,
                                  global_step=sv.global_step)
                    sv.stop(threads=None,
                            close_summary_writer=True,
                            ignore_live_threads=ignore_live_threads)
        except errors.AbortedError:
            logging.info("Retrying training!")
            should_retry = True
    return loss


def _wait_for_step(sess, global_step, step):
    while True:
        if training_util.global_step(sess, global_step) >= step:
            return
        logging.info("Waiting for step %d before starting training.", step)
        time.sleep(1)
