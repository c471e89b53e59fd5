"""The chief's thread of synchronous training, and the one that watches it."""

import time

from sluice import _sluice
from sluice.framework import errors
from sluice.framework import ops
from sluice.ops import array_ops
from sluice.platform import tf_logging as logging
from sluice.training import coordinator
from sluice.training import queue_runner_impl

# A step is late when it takes so many times as long as they usually do, and
# longer than this; that is said, and said again.
_LATE_TIMES = 10
_LATE_SECS = 5.0
_AGAIN_SECS = 10.0
# Between looks whether a step is late.
_LOOK_SECS = 0.5
# An update that is under way may finish before the thread is interrupted.
_UPDATE_SECS = 0.05
_MOST_INTERRUPTS = 100


class TokenOps(object):
    """What is done with tokens beside training itself, as operations that a
    graph gets when they are needed: no program sees them."""

    def __init__(self, queue, global_step, accumulators):
        self._queue = queue
        self._global_step = global_step
        self._accumulators = accumulators
        self._built = False

    def build(self):
        """Adds the operations, also to a graph that is finalized."""
        if self._built:
            return
        self._built = True
        graph = self._queue.queue_ref.graph
        finalized = graph.finalized
        if finalized:
            graph._unsafe_unfinalize()
        try:
            with graph.as_default(), ops.control_dependencies(None), \
                    ops.device(None), ops.name_scope("sync_replicas_care/"):
                self._add()
        finally:
            if finalized:
                graph.finalize()

    def _add(self):
        with ops.device(self._global_step.device):
            # One by one: a batch would take the place of newer tokens.
            self.hand_out = self._queue.enqueue(
                (array_ops.identity(self._global_step),), name="hand_out")
            self.close = self._queue.close(name="close")
        self.counts = []
        for i, (accumulator, device) in enumerate(self._accumulators):
            with ops.device(device):
                self.counts.append(accumulator.num_accumulated(
                    name="num_accumulated_%d" % i))
        self.names = [a.accumulator_ref.op.get_attr("shared_name").decode()
                      for a, _ in self._accumulators]


class TokenWait(coordinator.LooperThread):
    """Says so when a worker waits long for its chief."""

    def __init__(self, sess, coord):
        super().__init__(coord, _LOOK_SECS)
        self._target = sess.sess_str
        self._said = 0.0
        # When the step under way began; None: there is none.
        self.began = None

    def run_loop(self):
        began, now = self.began, time.time()
        if began is None or now - began < _LATE_SECS or \
                now - self._said < _AGAIN_SECS:
            return
        self._said = now
        logging.info("This worker has waited %.0f s for a step of synchronous "
                     "training.%s", now - began,
                     _sluice.late_tasks(self._target))


class ChiefQueueRunner(queue_runner_impl.QueueRunner):
    """Runs updates until training ends. When one waits too long for gradients,
    as a worker died with its token, it hands out tokens to the others. The end
    of training closes the queue of tokens, so that no worker waits for more.
    """

    # Whether training has ended rather than this session; None: look at the
    # coordinator.
    training_ended = None

    def __init__(self, queue, sync_op, tokens, takes, replicas,
                 step_timeout_secs, least_replicas):
        super().__init__(queue, [sync_op])
        self._tokens = tokens
        # The numbers of gradients that the update asks for, as tensors.
        self._required_inputs = takes
        self._replicas = replicas
        self._required = replicas
        self._step_timeout_secs = step_timeout_secs
        self._least_replicas = least_replicas

    def create_threads(self, sess, coord=None, daemon=False, start=False):
        self._tokens.build()
        self._required = self._replicas
        self._typical_secs = 0.0
        self._began = self._acted = time.time()
        self._said = 0.0
        return super().create_threads(sess, coord=coord, daemon=daemon,
                                      start=start)

    def _make_enqueue(self, sess, enqueue_op, index):
        update = super()._make_enqueue(sess, enqueue_op, index)

        def run():
            if self._required == self._replicas:
                update()
            else:
                sess.run(enqueue_op, {t: self._required
                                      for t in self._required_inputs})
            now = time.time()
            self._typical_secs += 0.1 * (now - self._began -
                                         self._typical_secs)
            self._began = self._acted = now
        return run

    def _close_on_stop(self, sess, cancel_op, coord, threads):
        while not coord.wait_for_stop(_LOOK_SECS):
            try:
                self._look(sess)
            except errors.OpError as e:
                # The training meets it too, and knows what to do.
                logging.vlog(1, "Ignored exception: %s", str(e))
        self._run_ignoring_errors(sess, cancel_op)
        for _ in range(_MOST_INTERRUPTS):
            for thread in threads:
                thread.join(_UPDATE_SECS)
            if not any(thread.is_alive() for thread in threads):
                break
            # It waits for gradients that no worker sends any more.
            sess._interrupt()
        ended = self.training_ended
        if ended is None:
            ended = coord._exc_info_to_raise is None
        if ended:
            self._run_ignoring_errors(sess, self._tokens.close)

    def _look(self, sess):
        """Does something about a step that waits too long for gradients."""
        now = time.time()
        late = _LATE_TIMES * self._typical_secs
        say = now - self._began >= max(_LATE_SECS, late) and \
            now - self._said >= _AGAIN_SECS
        act = self._step_timeout_secs is not None and \
            now - self._acted >= max(self._step_timeout_secs, late)
        if not say and not act:
            return
        began = self._began
        counts, step = sess.run([self._tokens.counts,
                                 self._tokens._global_step])
        missing = self._required - min(counts)
        if missing <= 0 or began != self._began:
            return  # It moves, or moved.
        self._said = now
        text = "Step %d has waited %.0f s for gradients of %d workers: %s." % (
            step, now - began, self._required, ", ".join(
                "'%s' has %d" % pair for pair in zip(self._tokens.names,
                                                     counts)))
        text += _sluice.late_tasks(sess.sess_str)
        if not act:
            logging.info(text)
            return
        self._acted = now
        logging.warning("%s Other workers compute the %d that are missing.",
                        text, missing)
        for _ in range(missing):
            sess.run(self._tokens.hand_out)
        fewer = max(self._least_replicas, self._required - missing)
        if fewer < self._required:
            logging.warning("From now on a step is made of %d gradients in "
                            "place of %d.", fewer, self._required)
            self._required = fewer
