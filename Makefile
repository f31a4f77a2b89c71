# Every target installs what it needs, so that `make demo` and `make test` work in a fresh clone.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-stamp
# The number of test processes, and the tests of `make test`: `make test TESTS=tests/ir JOBS=0`
JOBS ?= auto
TESTS ?= tests

# Tests start dozens of processes, each of which would compile the package's files to bytecode again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all test-packages test-models test-cuda bench-cuda test-versions test-matrix dist test-wheel test-browser lint lint-code lint-format lint-types lint-order lint-prose format bench bench-start bench-modules sweep-ops sweep-modules sweep-traces sweep-gradients sweep-vmap sweep-archives sweep-execution sweep-inferred-types sweep-memory sweep-fusion sweep-fusion-emulated sweep-fusion-cuda sweep-exports sweep-libraries sweep-torchvision-libraries sweep-compiled sweep-imports sweep-real-modules fuzz fuzz-programs fuzz-operators golden pages site site-check clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-15s %s\n", $$1, $$2 }'
	@echo "PYTHON=... is the interpreter of a new environment, TESTS=... the tests, JOBS=... the number of test processes, SHARES=... the seed that selects shares."

setup: $(STAMP) ## create .venv with the pinned versions, unless it is up to date

# Two steps: the package is built with the environment's setuptools, so that no second copy is downloaded.
$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] < (3, 15))' \
		|| { echo "This needs Python 3.10 to 3.14, and $(PYTHON) is another: make setup PYTHON=python3.12"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt setuptools
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-build-isolation -e '.[dev]'
	@touch $@

demo: setup ## the compiler in under a minute: graphs, a kernel, times, an archive, an export, an edit
	$(BIN)/python examples/demo.py

# The lint of prose has a target of its own.
test: setup ## run the tests; of the largest families a share, which depends on the commit
	$(if $(filter tests,$(TESTS)),REKINDLE_SHARES=$(or $(SHARES),commit)) $(BIN)/python -m pytest -n $(JOBS) $(if $(filter tests,$(TESTS)),$(PROSE:%=--ignore=%)) $(TESTS)

test-all: setup ## run all tests, about twenty minutes on two cores
	$(BIN)/python -m pytest -n $(JOBS) tests

# Separate environments, which import the packages of .venv too, so that torch is installed once.
PACKAGES := .venv-packages
MODELS := .venv-models
CUDA := .venv-cuda
TORCH ?= 2.11.0

# mace-torch needs e3nn 0.4 besides the version of the other packages; torchvision and torchaudio need CUDA libraries to load.
$(PACKAGES)/.setup-stamp: tests/packages/requirements.txt tests/packages/requirements-e3nn-0.4.txt $(STAMP)
	$(call environment,$(PACKAGES),$<)
	$(PACKAGES)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade -r tests/packages/requirements-e3nn-0.4.txt \
		--target $$($(PACKAGES)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/e3nn-0.4.4
	$(PACKAGES)/bin/python -m benchmarks.modules.cuda_stubs
	touch $@

$(MODELS)/.setup-stamp: tests/packages/requirements-models.txt $(STAMP)
	$(call environment,$(MODELS),$<)

$(CUDA)/.setup-stamp: tests/codegen/cuda/requirements.txt $(STAMP)
	$(call environment,$(CUDA),$<)

define environment
	test -x $(1)/bin/python || $(BIN)/python -m venv $(1)
	$(1)/bin/python -c 'import sysconfig; from pathlib import Path; \
		Path(sysconfig.get_path("purelib"), "of_venv.pth").write_text("import site; site.addsitedir(\"" + \
		"$(shell $(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")" + "\")\n")'
	$(1)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r $(2)
	touch $(1)/.setup-stamp
endef

test-packages: $(PACKAGES)/.setup-stamp ## test packages that use torch.jit, through the drop-in (installs them into .venv-packages)
	$(PACKAGES)/bin/python -m pytest -p no:xdist tests/packages/package_tests.py

test-models: $(MODELS)/.setup-stamp ## trace, save and load models of transformers (installs it into .venv-models)
	$(MODELS)/bin/python -m pytest -p no:xdist tests/packages/architecture_tests.py

test-cuda: $(CUDA)/.setup-stamp ## assemble GPU kernels with NVIDIA's assembler, and run them if there is a GPU (installs it into .venv-cuda)
	$(CUDA)/bin/python -m pytest -p no:xdist tests/codegen/cuda

bench-cuda: setup ## time programs on a GPU, beside torch.jit and Inductor; writes benchmarks/results/cuda.json
	$(BIN)/python -m benchmarks.cuda

# An environment for other versions than the pinned ones takes up to 6 GB, and is removed afterwards.
MATRIX = $(PYTHON) -m tests.versions.matrix --jobs $(JOBS) $(if $(SHARES),--share $(SHARES)) --one-in $(or $(ONE_IN),1) $(if $(AGAIN),--again)

test-versions: ## run a share of the tests on other versions: make test-versions PYTHON=python3.10 TORCH=2.11.0
	$(MATRIX) --python $(PYTHON) --torch $(TORCH) $(filter-out tests,$(TESTS))

test-matrix: ## run test-versions for every Python on the path or in pyenv, and every PyTorch; writes tests/versions/results.md (ONE_IN=8: one test in eight; AGAIN=1: those that failed)
	$(MATRIX) $(filter-out tests,$(TESTS))

dist: setup ## build the wheel and the source distribution in dist/
	rm -rf dist build
	$(BIN)/python -c 'from setuptools import build_meta; build_meta.build_sdist("dist"); build_meta.build_wheel("dist")'
	$(BIN)/python -m tests.wheel contents dist

# An environment with the wheel and what it depends on, and nothing else: about 2 GB, which is removed afterwards;
# with the newest PyTorch and its CUDA libraries, 6 GB.
test-wheel: dist ## run README's examples and a share of the tests with the wheel alone, in a clean environment (NEWEST=1: with the newest PyTorch)
	$(BIN)/python -m tests.wheel try dist $(if $(NEWEST),--newest)

test-browser: setup ## test the page of rekindle.show in headless Chromium, which must be on the path; screenshots in build/
	$(BIN)/python -m pytest -p no:xdist tests/viz/browser_tests.py

lint: lint-code lint-format lint-types lint-order lint-prose ## run ruff, mypy, import-linter and the lint of prose

lint-code: setup
	$(BIN)/ruff check .

lint-format: setup
	$(BIN)/ruff format --check .

lint-types: setup
	$(BIN)/mypy

lint-order: setup
	$(BIN)/lint-imports

PROSE := tests/test_vocabulary.py tests/test_sentences.py
lint-prose: setup
	$(BIN)/python -m pytest -q -p no:xdist $(PROSE)

format: setup ## format the code, and fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup ## time calls, compiling, tracing, interpreting, loading and saving, beside eager and torch.jit
	$(BIN)/python -m benchmarks

bench-start: setup ## time and memory of start-up: imports, the first program, the command line
	$(BIN)/python -m benchmarks --only imports

bench-modules: setup ## time modules of installed libraries (pip install -e .[modules]); resumes an interrupted run
	$(BIN)/python -m benchmarks --only modules --resume

sweep-ops: setup ## compare every entry of PyTorch's operator database with eager and torch.jit
	$(BIN)/python -m tests.sweeps.op_db --full --jobs 2
	$(BIN)/python -m tests.sweeps.op_db --every --full --jobs 2

sweep-modules: setup ## compare every entry of PyTorch's module database with eager
	$(BIN)/python -m tests.sweeps.module_db --full --jobs 2

sweep-traces: setup ## compare traces of both databases with eager, on other sizes too
	$(BIN)/python -m tests.sweeps.op_db --traces --full --jobs 2
	$(BIN)/python -m tests.sweeps.module_db --traces --full --jobs 2

sweep-gradients: setup ## compare first and second gradients of PyTorch's operator database with eager's
	$(BIN)/python -m tests.sweeps.gradients --full --jobs 2

sweep-vmap: setup ## compare batching rules on PyTorch's operator database with loops over the examples
	$(BIN)/python -m tests.sweeps.vmap --full --jobs 2

sweep-archives: setup ## save and load every program of the tests, here and in torch.jit
	$(BIN)/python -m tests.sweeps.archives --full --jobs 2

sweep-execution: setup ## compare every execution path with the interpreter, on all kinds of arguments
	$(BIN)/python -m tests.sweeps.execution --full --jobs 2

sweep-inferred-types: setup ## compare inferred types with the results of PyTorch's operator database
	$(BIN)/python -m tests.sweeps.inferred_types --full --jobs 2

sweep-memory: setup ## compile, run and delete a thousand programs, ten thousand calls, and check that memory does not grow
	REKINDLE_CYCLES=1000 $(BIN)/python -m pytest -p no:xdist tests/runtime/test_memory.py

sweep-exports: setup ## export programs to Export IR, beside PyTorch's converter
	$(BIN)/python -m tests.sweeps.exports --full

sweep-libraries: setup ## build every program of the tests as a native library, and call it from C
	$(BIN)/python -m tests.sweeps.libraries --full

sweep-torchvision-libraries: setup ## build torchvision's classification models as native libraries (pip install -e .[modules])
	$(BIN)/python -m tests.sweeps.torchvision_libraries --full

sweep-imports: setup ## import programs of torch.export, save them, and export them again
	$(BIN)/python -m tests.sweeps.imports --full

sweep-compiled: setup ## run PyTorch's operator database through torch.compile with the backend rekindle
	$(BIN)/python -m tests.sweeps.compiled --full --jobs 2

sweep-fusion: setup ## run the kernel of every sample of the fusible operators, in every dtype
	$(BIN)/python -m tests.sweeps.fusion --full

sweep-fusion-emulated: setup ## run sweep-fusion for GPU kernels, emulated on the host
	$(BIN)/python -m tests.sweeps.fusion --full --device emulated --jobs $(JOBS)

sweep-fusion-cuda: setup ## run sweep-fusion on a GPU
	$(BIN)/python -m tests.sweeps.fusion --full --device cuda --jobs $(JOBS)

# The number of mutants, the time limit in minutes, and the seed.
MUTANTS ?= 200000
MINUTES ?= 60
RUN ?= 20260

sweep-real-modules: setup ## compile modules of installed libraries (pip install -e .[real-modules])
	$(BIN)/python -m tests.sweeps.real_modules

fuzz: setup ## load randomly corrupted archives, which must load or be rejected with a reason (MUTANTS=, MINUTES=, RUN=)
	$(BIN)/python -m tests.archive.hostile.fuzz --count $(MUTANTS) --minutes $(MINUTES) --run $(RUN) --write

# The number of programs, and the seed.
PROGRAMS ?= 20000
SEED ?= 1

fuzz-programs: setup ## compare random programs with eager Python, and shrink failures (PROGRAMS=, MINUTES=, SEED=)
	$(BIN)/python -m tests.fuzzing --count $(PROGRAMS) --minutes $(MINUTES) --seed $(SEED) --write

fuzz-operators: setup ## run every operator of PyTorch's database through script, grad, jvp and vmap, in separate processes
	$(BIN)/python -m tests.fuzzing.operators --write

golden: setup ## regenerate the golden texts; review them with `git diff tests/golden`
	$(BIN)/python -m pytest -p no:xdist --regenerate-golden $(TESTS)

pages: setup ## regenerate the generated pages of docs/
	$(BIN)/python -m tests.language.page
	$(BIN)/python -m tests.ops.page
	$(BIN)/python -m tests.ops.support_page
	$(BIN)/python -m tests.cli.sessions
	$(BIN)/python -m benchmarks.page
	$(BIN)/python -m tests.support.notebooks

# The site's tools are installed when a site is built: tests and lint do not need them.
DOCS_STAMP := $(VENV)/.docs-stamp
SPHINX = $(BIN)/python -m sphinx --quiet -b html -c docs/site build/site-source build/site

$(DOCS_STAMP): pyproject.toml constraints.txt $(STAMP)
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "The site needs Python 3.11 or later"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-build-isolation -e '.[docs]'
	@touch $@

site: $(DOCS_STAMP) ## build the documentation site in build/site
	$(BIN)/python docs/site/staging.py
	$(SPHINX)
	@echo "The site is in build/site: open build/site/index.html"

site-check: $(DOCS_STAMP) ## build the site from scratch, and fail on warnings, invalid links included
	rm -rf build/site build/site-source
	$(BIN)/python docs/site/staging.py
	$(SPHINX) --fail-on-warning --keep-going

clean: ## remove all build output and the environments
	rm -rf $(VENV) $(PACKAGES) $(MODELS) $(CUDA) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
