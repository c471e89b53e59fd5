"""A few of the kills of tests/cluster/training_kills, which says what is
promised."""

import os
import subprocess
import sys

import pytest

from conftest import BUILD


@pytest.mark.parametrize("mode", ["async", "sync"])
def test_a_killed_task_costs_a_training_what_is_promised(mode):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                          "training_kills")
    ended = subprocess.run(
        [sys.executable, script, "--count", "1", "--mode", mode],
        env=dict(os.environ, SLUICE_BUILD=BUILD), stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, universal_newlines=True, timeout=600)
    assert ended.returncode == 0, ended.stdout
    for role in ("worker", "ps", "chief"):
        assert "%s, %s: 1 kills" % (mode, role) in ended.stdout
