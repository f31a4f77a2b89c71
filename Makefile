# Every target sets up what it needs: a fresh clone needs `make demo` or `make test` and nothing before it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-stamp
# Processes that run tests side by side, and what `make test` runs. `make test TESTS=tests/ir JOBS=0`
JOBS ?= auto
TESTS ?= tests

# Tests start dozens of processes: each would compile the package's files again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all test-packages test-models test-cuda bench-cuda test-versions test-matrix test-browser lint lint-code lint-format lint-types lint-order format bench bench-modules sweep-ops sweep-modules sweep-traces sweep-gradients sweep-vmap sweep-archives sweep-execution sweep-inferred-types sweep-memory sweep-fusion sweep-fusion-emulated sweep-fusion-cuda sweep-exports sweep-libraries sweep-compiled sweep-imports sweep-real-modules fuzz fuzz-programs fuzz-operators golden pages site site-check clean

help: ## say what there is to make
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-15s %s\n", $$1, $$2 }'
	@echo "PYTHON=... picks the interpreter of a new environment, TESTS=... the tests, JOBS=... how many processes run them, SHARES=... the seed of shares."

setup: $(STAMP) ## create .venv with the pinned versions (does nothing when it is up to date)

# Two steps, because the package is built with the environment's own setuptools: no second copy is fetched to build it.
$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] < (3, 15))' \
		|| { echo "This needs Python 3.10 to 3.14, and $(PYTHON) is another: make setup PYTHON=python3.12"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt setuptools
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-build-isolation -e '.[dev]'
	@touch $@

demo: setup ## the compiler in under a minute: graphs, a kernel, times, an archive, an export, an edit
	$(BIN)/python examples/demo.py

test: setup ## the tests; of the largest families a share, another one for each commit
	$(if $(filter tests,$(TESTS)),REKINDLE_SHARES=$(or $(SHARES),commit)) $(BIN)/python -m pytest -n $(JOBS) $(TESTS)

test-all: setup ## all tests, some twenty minutes on two cores
	$(BIN)/python -m pytest -n $(JOBS) tests

# Environments of their own, which see what .venv has: torch is not installed twice.
PACKAGES := .venv-packages
MODELS := .venv-models
CUDA := .venv-cuda
TORCH ?= 2.11.0

# mace-torch needs e3nn 0.4 beside the one that others use; torchvision and torchaudio need libraries of CUDA to load.
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

test-packages: $(PACKAGES)/.setup-stamp ## packages that script, run through the drop-in (installs them into .venv-packages)
	$(PACKAGES)/bin/python -m pytest -p no:xdist tests/packages/package_tests.py

test-models: $(MODELS)/.setup-stamp ## models of transformers, traced, saved and loaded (installs it into .venv-models)
	$(MODELS)/bin/python -m pytest -p no:xdist tests/packages/architecture_tests.py

test-cuda: $(CUDA)/.setup-stamp ## kernels for GPUs by NVIDIA's assembler; on a GPU where there is one (installs it into .venv-cuda)
	$(CUDA)/bin/python -m pytest -p no:xdist tests/codegen/cuda

bench-cuda: setup ## programs on a GPU, beside torch.jit and Inductor; writes benchmarks/results/cuda.json
	$(BIN)/python -m benchmarks.cuda

# An environment for versions other than the pinned ones takes up to 6 GB, and is removed afterwards.
MATRIX = $(PYTHON) -m tests.versions.matrix --jobs $(JOBS) --share $(or $(SHARES),commit)

test-versions: ## a share of the tests on other versions: make test-versions PYTHON=python3.10 TORCH=2.11.0
	$(MATRIX) --python $(PYTHON) --torch $(TORCH) $(filter-out tests,$(TESTS))

test-matrix: ## the same on every version of Python on the path and of PyTorch, one after another; writes tests/versions/results.md
	$(MATRIX) $(filter-out tests,$(TESTS))

test-browser: setup ## the page of rekindle.show in headless Chromium, which has to be on the path; screenshots in build/
	$(BIN)/python -m pytest -p no:xdist tests/viz/browser_tests.py

lint: lint-code lint-format lint-types lint-order ## ruff, mypy and the layer order

lint-code: setup
	$(BIN)/ruff check .

lint-format: setup
	$(BIN)/ruff format --check .

lint-types: setup
	$(BIN)/mypy

lint-order: setup
	$(BIN)/lint-imports

format: setup ## put the code into the form that lint asks for
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup ## time of calls, to compile, to trace, to interpret, to load and to save, beside eager and torch.jit
	$(BIN)/python -m benchmarks

bench-modules: setup ## others' modules, one by one (where installed: pip install -e .[modules]); goes on where it was
	$(BIN)/python -m benchmarks --only modules --resume

sweep-ops: setup ## every entry of PyTorch's operator database against eager and torch.jit
	$(BIN)/python -m tests.sweeps.op_db --full --jobs 2
	$(BIN)/python -m tests.sweeps.op_db --every --full --jobs 2

sweep-modules: setup ## every entry of PyTorch's module database against eager
	$(BIN)/python -m tests.sweeps.module_db --full --jobs 2

sweep-traces: setup ## both databases, traced, on other sizes too
	$(BIN)/python -m tests.sweeps.op_db --traces --full --jobs 2
	$(BIN)/python -m tests.sweeps.module_db --traces --full --jobs 2

sweep-gradients: setup ## gradients, and theirs, of PyTorch's operator database against eager's
	$(BIN)/python -m tests.sweeps.gradients --full --jobs 2

sweep-vmap: setup ## batches of PyTorch's operator database, by rules, against loops
	$(BIN)/python -m tests.sweeps.vmap --full --jobs 2

sweep-archives: setup ## every program of the tests through files, here and in torch.jit
	$(BIN)/python -m tests.sweeps.archives --full --jobs 2

sweep-execution: setup ## every way of executing against the interpreter, on all kinds of arguments
	$(BIN)/python -m tests.sweeps.execution --full --jobs 2

sweep-inferred-types: setup ## inferred types of PyTorch's operator database against what its operators return
	$(BIN)/python -m tests.sweeps.inferred_types --full --jobs 2

sweep-memory: setup ## a thousand programs compiled, run and dropped, ten thousand calls: no growth
	REKINDLE_CYCLES=1000 $(BIN)/python -m pytest -p no:xdist tests/runtime/test_memory.py

sweep-exports: setup ## programs that leave for Export IR, beside PyTorch's converter
	$(BIN)/python -m tests.sweeps.exports --full

sweep-libraries: setup ## every program of the tests as a native library, called from C
	$(BIN)/python -m tests.sweeps.libraries --full

sweep-imports: setup ## programs of torch.export, imported, saved, and exported again
	$(BIN)/python -m tests.sweeps.imports --full

sweep-compiled: setup ## PyTorch's operator database through torch.compile with our backend
	$(BIN)/python -m tests.sweeps.compiled --full --jobs 2

sweep-fusion: setup ## every sample of the operators that fuse, in every dtype, by its kernel
	$(BIN)/python -m tests.sweeps.fusion --full

sweep-fusion-emulated: setup ## the same for GPUs, whose kernels are emulated on the host
	$(BIN)/python -m tests.sweeps.fusion --full --device emulated --jobs $(JOBS)

sweep-fusion-cuda: setup ## the same on a GPU
	$(BIN)/python -m tests.sweeps.fusion --full --device cuda --jobs $(JOBS)

# How many mutants, how long at most, and which ones: a number for each set of them.
MUTANTS ?= 200000
MINUTES ?= 60
RUN ?= 20260

sweep-real-modules: setup ## script modules of libraries (where installed: pip install -e .[real-modules])
	$(BIN)/python -m tests.sweeps.real_modules

fuzz: setup ## archives changed at random: loaded, or refused with an error that says why (MUTANTS=, MINUTES=, RUN=)
	$(BIN)/python -m tests.archive.hostile.fuzz --count $(MUTANTS) --minutes $(MINUTES) --run $(RUN) --write

# How many programs, and which ones: another number, others.
PROGRAMS ?= 20000
SEED ?= 1

fuzz-programs: setup ## random programs against eager Python; what fails is shrunk (PROGRAMS=, MINUTES=, SEED=)
	$(BIN)/python -m tests.fuzzing --count $(PROGRAMS) --minutes $(MINUTES) --seed $(SEED) --write

fuzz-operators: setup ## every operator of PyTorch's database through script, grad, jvp and vmap, in processes of their own
	$(BIN)/python -m tests.fuzzing.operators --write

golden: setup ## write the golden texts anew; review them with `git diff tests/golden`
	$(BIN)/python -m pytest -p no:xdist --regenerate-golden $(TESTS)

pages: setup ## write the generated pages of docs/ anew
	$(BIN)/python -m tests.language.page
	$(BIN)/python -m tests.ops.page
	$(BIN)/python -m tests.ops.support_page
	$(BIN)/python -m tests.cli.sessions
	$(BIN)/python -m benchmarks.page
	$(BIN)/python -m tests.support.notebooks

# The site's tools are no part of .venv until a site is built: tests and lint do without them.
DOCS_STAMP := $(VENV)/.docs-stamp
SPHINX = $(BIN)/python -m sphinx --jobs auto --quiet -b html -c docs/site build/site-source build/site

$(DOCS_STAMP): pyproject.toml constraints.txt $(STAMP)
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "The site needs Python 3.11 or later"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-build-isolation -e '.[docs]'
	@touch $@

site: $(DOCS_STAMP) ## build the documentation site in build/site
	$(BIN)/python docs/site/staging.py
	$(SPHINX)
	@echo "The site is in build/site: open build/site/index.html"

site-check: $(DOCS_STAMP) ## build the site anew; warnings are errors, invalid links and undocumented names among them
	rm -rf build/site build/site-source
	$(BIN)/python docs/site/staging.py
	$(SPHINX) --fail-on-warning --keep-going

clean: ## remove what was made, the environment too
	rm -rf $(VENV) $(PACKAGES) $(MODELS) $(CUDA) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
