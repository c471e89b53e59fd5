"""A few of the kills of tests/cluster/kills, which says what is promised."""

import os
import subprocess
import sys

import pytest

from conftest import BUILD


@pytest.mark.parametrize("role", ["ps", "worker", "peer", "client"])
def test_a_killed_process_costs_what_is_promised(role, way):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kills")
    ended = subprocess.run(
        [sys.executable, script, "--count", "3", "--role", role],
        env=dict(os.environ, SLUICE_BUILD=BUILD), stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, universal_newlines=True, timeout=500)
    assert ended.returncode == 0, ended.stdout
    assert role + ": 3 kills" in ended.stdout
