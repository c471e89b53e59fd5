# The commands of this repository. `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := build

JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 30
FUZZ_RUNS ?= 1000000
SEEDS ?= 1..10000
KILLS ?= 100
CMAKE_ARGS ?=

python := build/venv/bin/python
clang := -DCMAKE_C_COMPILER=clang-16 -DCMAKE_CXX_COMPILER=clang++-16
ctest := ctest --output-on-failure --timeout 600 -j$(JOBS)
# C++ only: a Python that is not instrumented cannot load the library.
cpp_only := -G Ninja -DSLUICE_PYTHON=OFF
code_folders := $(wildcard sluice python tools examples bench tests cmake dashboard)
code_files = find $(code_folders) -name '*.h' -o -name '*.cc'

.PHONY: help setup build build-asan test run bench format lint asan tsan fuzz \
        messages simulate kills interop rival clean layers pytest formatted tidy

help:  ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | \
	  sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 10

setup:
	@tools/setup

build: setup  ## set up this machine, configure and build into build/
	@$(MAKE) --no-print-directory build/build.ninja
	@ninja -C build -j$(JOBS)

# Once; after that ninja runs cmake itself when it must.
build/build.ninja: build/python.path
	@cmake -S . -B build -G Ninja \
	  -DPython3_EXECUTABLE=$(CURDIR)/$(python) \
	  -Dpybind11_DIR=$$($(python) -m pybind11 --cmakedir) $(CMAKE_ARGS)
	@touch $@

layers: setup
	@$(python) tools/check_layers --check-docs

test: layers build  ## everything that must be green: layers, build, all tests
	@$(python) tools/size
	@$(ctest) --test-dir build
	@$(MAKE) --no-print-directory pytest

# Real TensorFlow (tests/interop) and unchanged programs (tests/scripts/programs)
# are no test modules of ours.
pytest:
	@mapfile -t modules < <(find python/tests tests -name 'test_*.py' \
	    -not -path '*/interop/*' -not -path '*/programs/*' 2>/dev/null | sort); \
	if (($${#modules[@]})); then \
	  PYTHONPATH=build/python $(python) -m pytest -q "$${modules[@]}"; \
	fi

simulate: build  ## SEEDS (1..10000) of the cluster simulation
	@build/bin/simulate --seeds $(SEEDS)

run: build  ## train on a local cluster of 1 ps and 2 workers
	@examples/run

bench: build  ## our benchmarks, beside the committed baseline
	@bench/run

kills: build  ## KILLS (100) of each role of a cluster at random points
	@PYTHONPATH=build/python $(python) tests/cluster/kills --count $(KILLS)

interop: build  ## against real TensorFlow, in environments under build/real
	@tests/interop/run

rival: build  ## side-by-side benchmarks with TensorFlow
	@bench/rival/run

asan: build-asan  ## C++ tests with the address and undefined-behaviour sanitizers
	@ninja -C build-asan -j$(JOBS)
	@UBSAN_OPTIONS=print_stacktrace=1 LSAN_OPTIONS=suppressions=$(CURDIR)/tests/lsan.supp \
	  $(ctest) --test-dir build-asan

fuzz: build-asan  ## every fuzz target for FUZZ_SECONDS (30)
	@ninja -C build-asan -j$(JOBS) sluice_fuzzers
	@tools/fuzz $(FUZZ_SECONDS)

# Without the sanitizers, with which it takes several times as long.
messages: setup  ## every request of both services FUZZ_RUNS (1000000) times
	@tools/setup --with-clang
	@cmake -S . -B build-fuzz $(cpp_only) $(clang) -DSLUICE_SANITIZE=fuzzer $(CMAKE_ARGS)
	@ninja -C build-fuzz -j$(JOBS) sluice_fuzzers
	@FUZZ_BUILD=build-fuzz JOBS=$(JOBS) tools/fuzz --messages --runs $(FUZZ_RUNS)

build-asan: setup
	@tools/setup --with-clang
	@cmake -S . -B build-asan $(cpp_only) $(clang) -DSLUICE_SANITIZE=address $(CMAKE_ARGS)

# With address randomisation of more than 28 bits (Ubuntu 24.04) the runtime of
# clang 16 finds its shadow memory taken, so it is switched off where allowed.
tsan: setup  ## C++ tests with the thread sanitizer
	@tools/setup --with-clang
	@cmake -S . -B build-tsan $(cpp_only) $(clang) -DSLUICE_SANITIZE=thread $(CMAKE_ARGS)
	@ninja -C build-tsan -j$(JOBS)
	@fixed=(); if setarch -R true 2>/dev/null; then fixed=(setarch -R); fi; \
	TSAN_OPTIONS=second_deadlock_stack=1$(if $(wildcard tests/tsan.supp),:suppressions=$(CURDIR)/tests/tsan.supp) \
	  "$${fixed[@]}" $(ctest) --test-dir build-tsan

format:  ## clang-format all C++ files in place
	@tools/setup --with-clang
	@$(code_files) | xargs -r clang-format-16 -i

lint: layers formatted tidy  ## formatting, layers, clang-tidy (-k lint: all of them)

formatted: setup
	@tools/setup --with-clang
	@$(code_files) | xargs -r clang-format-16 --dry-run --Werror

# clang-tidy runs as part of a clang build of its own, so that ninja knows what
# a change touches; clang's thread-safety analysis comes with it.
tidy: setup
	@tools/setup --with-clang
	@if [[ .clang-tidy -nt build-lint/.clang-tidy ]]; then rm -rf build-lint; fi
	@cmake -S . -B build-lint $(cpp_only) $(clang) -DCMAKE_BUILD_TYPE=None \
	  -DCMAKE_CXX_CLANG_TIDY='clang-tidy-16;--quiet' $(CMAKE_ARGS)
	@cp -p .clang-tidy build-lint/
	@ninja -C build-lint -k 0 -j$(JOBS) | { grep -v ' warnings generated' || true; }

clean:  ## remove every build folder
	rm -rf build build-asan build-tsan build-lint build-fuzz
