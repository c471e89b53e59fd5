"""Every example, in C++ and in Python, through `sluice run` and real processes.

They are our forms of the programs that Sluice was built for; what is checked
is what those must show.
"""

import math
import os
import re

import pytest

from test_programs import BUILD, ROOT, free_ports, run

FORMS = ["cc", "python"]


def example(form, name):
    if form == "cc":
        return os.path.join(BUILD, "bin", name)
    return os.path.join(ROOT, "examples", "python", name + ".py")


def hosts(count):
    return "--hosts=" + ",".join("localhost:%d" % p for p in free_ports(count))


def numbers(text):
    return [float(x) for x in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", text)]


def printed(form, out, count):
    """Whether the greeting is there, and how many matrices of floats."""
    greeting = "Hello, distributed TensorFlow!"
    lines = out.splitlines()
    texts = lines.count(greeting if form == "cc" else "b'%s'" % greeting)
    rows = [line for line in lines if re.fullmatch(r"[-\d\[\]. e]+", line)
            and len(numbers(line)) == 2]
    return texts == count and len(rows) == 2 and \
        all(math.isfinite(x) for row in rows for x in numbers(row))


@pytest.mark.parametrize("form", FORMS)
def test_three_servers_start_in_one_process(tmp_path, form):
    ports = free_ports(3)
    code, out = run([example(form, "three_servers"), "--hosts=" + ",".join(
        "localhost:%d" % p for p in ports)], tmp_path)
    assert code == 0, out
    for port in ports:
        assert "Started server with target: grpc://localhost:%d" % port in out


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("worker, product", [(0, 12), (1, 40)])
def test_either_worker_multiplies(tmp_path, form, worker, product):
    code, out = run([example(form, "three_servers"), "--run=worker%d" % worker,
                     hosts(3)], tmp_path)
    assert code == 0, out
    assert float(out.splitlines()[-1]) == product


@pytest.mark.parametrize("form", FORMS)
def test_two_tasks_share_a_step(tmp_path, form):
    code, out = run([example(form, "parallel_sums"), hosts(2)], tmp_path)
    assert code == 0, out
    value = re.search(r"^Summed Values:(\S+)$", out, re.MULTILINE)
    assert math.isfinite(float(value.group(1)))


@pytest.mark.parametrize("form", FORMS)
def test_a_local_server_says_hello(tmp_path, form):
    code, out = run([example(form, "hello")], tmp_path)
    assert code == 0, out
    assert "Hello, distributed TensorFlow!" in out


@pytest.mark.parametrize("form", FORMS)
def test_devices_around_a_run_change_nothing(tmp_path, form):
    code, out = run([example(form, "hello_variable")], tmp_path)
    assert code == 0, out
    assert printed(form, out, 4), out


@pytest.mark.parametrize("form", FORMS)
def test_a_variable_lives_on_the_cpu(tmp_path, form):
    code, out = run([example(form, "hello_device")], tmp_path)
    assert code == 0, out
    assert printed(form, out, 1), out


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("device", ["/job:local/task:0/gpu:0", "/gpu:0"])
def test_a_gpu_that_is_not_there_is_named(tmp_path, form, device):
    program = [example(form, "hello_device"), device]
    code, out = run(program, tmp_path)
    assert code == 1
    if form == "python":
        assert "InvalidArgumentError" in out
    else:
        assert "INVALID_ARGUMENT" in out
    assert re.search(r"Cannot assign a device for operation b\b", out), out
    assert "/device:GPU:0" in out
    assert "/job:local/replica:0/task:0/device:CPU:0" in out
    code, out = run(["--soft-placement"] + program, tmp_path)
    assert code == 0, out
    assert printed(form, out, 1), out


@pytest.mark.parametrize("form", FORMS)
def test_a_monitored_trainer_stops_at_its_last_step(tmp_path, form):
    code, out = run(["--ps", "1", "--workers", "2", example(form, "trainer"),
                     "--last_step=300", "--train_dir=logs"], tmp_path)
    assert code == 0, out
    ends = re.findall(r"^\[worker/(\d)\] Stopped at step (\d+), loss (\S+)$",
                      out, re.MULTILINE)
    assert sorted(worker for worker, _, _ in ends) == ["0", "1"], out
    for _, step, loss in ends:
        assert int(step) > 200  # What the last run saw; others go on.
        assert float(loss) < 1
    state = (tmp_path / "logs" / "checkpoint").read_text()
    last = int(re.search(r"model.ckpt-(\d+)", state).group(1))
    assert last >= 300
    assert (tmp_path / "logs" / ("model.ckpt-%d.index" % last)).exists()


@pytest.mark.parametrize("form", FORMS)
def test_a_cluster_learns_to_read_digits(tmp_path, form):
    code, out = run(["--ps", "1", "--workers", "2", example(form, "digits"),
                     "--train_dir=logs"], tmp_path)
    assert code == 0, out
    accuracy = re.search(r"^\[worker/0\] accuracy (\S+) %$", out, re.MULTILINE)
    assert float(accuracy.group(1)) > 95
    assert re.search(r"^\[worker/0\] checkpoint logs/model.ckpt-15\d\d$", out,
                     re.MULTILINE), out


@pytest.mark.parametrize("form", FORMS)
def test_a_supervised_trainer_finds_the_line_of_its_points(tmp_path, form):
    program = ["--ps", "1", "--workers", "2", example(form, "line_fit"),
               "--epochs=40", "--train_dir=logs"]
    code, out = run(program, tmp_path)
    assert code == 0, out
    fits = [[float(x) for x in fit] for fit in re.findall(
        r"Least squares of node: \d, w: (\S+), b0: (\S+)$", out, re.MULTILINE)]
    assert len(fits) == 2, out
    # Who trains alone for a while pulls the line to its own points.
    lowest, highest = [min(x) for x in zip(*fits)], [max(x) for x in zip(*fits)]
    pattern = r"Partial result from node: %d, w: (\S+), b0: (\S+)$"
    for worker in range(2):
        last = re.findall(pattern % worker, out, re.MULTILINE)
        assert len(last) == 40, out
        last = last[-5:]
        for i in range(2):
            mean = sum(float(line[i]) for line in last) / len(last)
            assert lowest[i] - 0.1 < mean < highest[i] + 0.1, out
    # Started again it goes on from its checkpoint: there is little left to do.
    program[-2] = "--epochs=1"
    code, out = run(program, tmp_path)
    assert code == 0, out
    assert "Restoring parameters from logs/model.ckpt-" in out
    first = re.search(pattern % 0, out, re.MULTILINE)
    for i in range(2):
        value = float(first.group(i + 1))
        assert lowest[i] - 0.3 < value < highest[i] + 0.3, out


@pytest.mark.parametrize("form", FORMS)
def test_synchronous_workers_end_together(tmp_path, form):
    code, out = run(["--ps", "1", "--workers", "3",
                     example(form, "sync_trainer"), "--last_step=100",
                     "--train_dir=logs"], tmp_path)
    assert code == 0, out
    ends = re.findall(r"^\[worker/\d\] Stopped at step (\d+) after \d+ runs, "
                      r"loss (\S+)$", out, re.MULTILINE)
    assert len(ends) == 3, out
    assert max(int(step) for step, _ in ends) >= 100
    state = (tmp_path / "logs" / "checkpoint").read_text()
    assert int(re.search(r"model.ckpt-(\d+)", state).group(1)) >= 100


@pytest.mark.parametrize("form", FORMS)
def test_one_client_trains_on_all_workers(tmp_path, form):
    code, out = run(["--ps", "1", "--workers", "2", example(form, "in_graph")],
                    tmp_path)
    assert code == 0, out
    assert "[worker/1] Served" in out
    line = re.search(r"steps of 2 towers: w = (.*), b = (.*), loss", out)
    w, b = numbers(line.group(1)), numbers(line.group(2))
    for got, true in zip(w + b, [3, -2, 0.5]):
        assert abs(got - true) < 0.01, out


@pytest.mark.parametrize("form", FORMS)
def test_a_table_over_two_ps_learns_words(tmp_path, form):
    code, out = run(["--ps", "2", "--workers", "2", example(form, "embeddings"),
                     "--last_step=800", "--train_dir=logs"], tmp_path)
    assert code == 0, out
    parts = re.findall(r"Neighbours of the same topic: (\S+) %", out)
    assert len(parts) == 2, out
    assert all(float(part) > 80 for part in parts), out


@pytest.mark.parametrize("name", ["trainer", "line_fit", "digits",
                                  "sync_trainer", "in_graph", "embeddings"])
def test_a_trainer_without_a_cluster_says_how_to_get_one(tmp_path, name):
    code, out = run([example("cc", name)], tmp_path)
    assert code == 1
    assert "sluice run --ps 1 --workers 2" in out


def test_the_quick_start_fits_a_line(tmp_path):
    code, out = run([example("cc", "quick_start")], tmp_path)
    assert code == 0, out
    w, b = numbers(out)
    assert abs(w - 2) < 0.01 and abs(b - 1) < 0.01


def test_the_readme_shows_the_quick_start():
    with open(os.path.join(ROOT, "README.md")) as readme, \
            open(os.path.join(ROOT, "examples/cc/quick_start.cc")) as program:
        assert "```cpp\n" + program.read() + "```" in readme.read()
