"""tools/check_layers on small trees made for each test."""

import pathlib
import subprocess
import sys

import pytest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/check_layers"
MARKERS = ("<!-- layers: written by tools/check_layers --write-docs -->\n"
           "<!-- layers: end -->\n")


@pytest.fixture
def tree(tmp_path):
    write(tmp_path, {
        "CMakeLists.txt": "foreach(layer base graph ops)\nendforeach()\n",
        "sluice/base/CMakeLists.txt": "sluice_library(DEPS)\n",
        "sluice/base/a.h": "#include <vector>\n",
        "sluice/graph/CMakeLists.txt": "sluice_library(DEPS base LINK z)\n",
        "sluice/graph/a.h": '#include "sluice/base/a.h"\n',
        "docs/architecture.md": "before\n" + MARKERS + "after\n",
    })
    return tmp_path


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def check(root, *args):
    done = subprocess.run([sys.executable, TOOL, "--root", root, *args],
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_a_tree_whose_includes_go_down_passes(tree):
    assert check(tree)[0] == 0


@pytest.mark.parametrize("name, header, reason", [
    ("sluice/base/b.cc", "sluice/graph/a.h", "does not name graph"),
    ("sluice/base/b.cc", "sluice/sluice.h", "for users only"),
    ("sluice/graph/b.cc", "Eigen/Core", "numeric/"),
    ("sluice/graph/b_test.cc", "dnnl.hpp", "numeric/"),
    ("sluice/graph/b.cc", "grpcpp/grpcpp.h", "rpc/"),
    ("sluice/base/b.h", "google/protobuf/message.h", "at the edge"),
    ("sluice/base/b.h", "absl/synchronization/mutex.h", "base/mutex.h"),
    ("tools/b.cc", "pybind11/pybind11.h", "python/src"),
    ("python/src/b.cc", "pybind11/numpy.h", "NumPy 2"),
])
def test_an_include_out_of_place_is_named(tree, name, header, reason):
    write(tree, {name: f'\n  #  include "{header}"\n'})
    code, output = check(tree)
    assert code == 1
    assert f"{name}:2: {header}: " in output
    assert reason in output


def test_ops_ask_their_device_for_files(tree):
    use = "\nRealFileSystem().ReadFile(name);\n"
    write(tree, {"sluice/ops/CMakeLists.txt": "sluice_library(DEPS base)\n",
                 "sluice/ops/io/a.cc": use, "sluice/ops/io/a_test.cc": use})
    code, output = check(tree)
    assert code == 1
    assert "sluice/ops/io/a.cc:2: RealFileSystem: " in output
    assert "a_test.cc" not in output


def test_a_class_is_in_one_header(tree):
    variable = "namespace sluice {\nclass Variable final : public B {\n};\n}\n"
    write(tree, {"sluice/base/b.h": variable, "sluice/graph/b.h": variable,
                 "tools/b.h": variable.replace("sluice", "sluice::tools"),
                 "sluice/base/testing/b.h": variable})
    code, output = check(tree)
    assert code == 1
    assert "sluice/base/b.h has a class sluice::Variable too" in output
    assert "1 problems" in output


def test_tests_may_include_any_folder(tree):
    include = '#include "sluice/graph/a.h"\n#include <grpcpp/grpcpp.h>\n'
    write(tree, {"sluice/base/b_test.cc": include,
                 "sluice/base/testing/b.h": include})
    assert check(tree)[0] == 0


@pytest.mark.parametrize("folder, deps, reason", [
    ("base", "graph", "graph, which is not below base"),
    ("graph", "graph", "graph, which is not below graph"),
    ("graph", "util", "util, which is no layer"),
])
def test_deps_may_only_name_layers_below(tree, folder, deps, reason):
    write(tree, {f"sluice/{folder}/CMakeLists.txt":
                     f"sluice_library(DEPS {deps} # why\n  UNITY)\n"})
    code, output = check(tree)
    assert code == 1
    assert reason in output


def test_a_folder_outside_the_layers_is_named(tree):
    write(tree, {"sluice/util/a.h": "\n"})
    assert "sluice/util: not in foreach(layer ...)" in check(tree)[1]


def test_the_documented_table_is_written_and_then_current(tree):
    assert check(tree, "--check-docs")[0] == 1
    assert check(tree, "--write-docs")[0] == 0
    assert check(tree, "--check-docs")[0] == 0
    text = (tree / "docs/architecture.md").read_text()
    assert "| `graph/` | `base` |" in text
    assert text.startswith("before\n") and text.endswith("after\n")
