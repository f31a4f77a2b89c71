"""What every test starts from: the same seeds, one thread, and the golden files."""

from __future__ import annotations

import gc
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
import torch

from rekindle.ir import subgraph_execution
from tests.support.golden import REGENERATE, GoldenTexts
from tests.support.independence import forbidden_torchscript
from tests.support.seeds import SEED, seed_everything
from tests.support.shares import VARIABLE, keep_shares, share_number, share_seed
from tests.versions import matrix

# Every graph is verified after it is made and after each pass.
os.environ["REKINDLE_VERIFY"] = "1"
# For every second commit first calls run what later calls run: backward graphs, and products measured beside BLAS.
subgraph_execution.DEFER_FIRST_CALLS = share_number(2) == 1

# "fixed" derives the examples of a test from the test itself, so that a run repeats the one before.
# `--hypothesis-profile=explore` looks elsewhere each time, and `--hypothesis-seed=N` beside it where you choose.
hypothesis.settings.register_profile("fixed", derandomize=True, deadline=None, print_blob=True)
hypothesis.settings.register_profile("explore", derandomize=False, deadline=None, print_blob=True)
hypothesis.settings.load_profile("fixed")

CACHE_DIRECTORY = "REKINDLE_CACHE_DIR"
HYPOTHESIS_SEED = "--hypothesis-seed"

GOLDEN_TEXTS = pytest.StashKey[GoldenTexts]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rekindle")
    group.addoption(
        REGENERATE,
        action="store_true",
        help="rewrite the golden texts; runs just the tests that use them",
    )
    group.addoption(
        "--independence",
        action="store_true",
        help="run every test with traps that spring when the package calls PyTorch's own TorchScript",
    )


def pytest_configure(config: pytest.Config) -> None:
    share_seed()
    regenerate = config.getoption(REGENERATE)
    if regenerate and config.getoption("numprocesses", None):
        raise pytest.UsageError(f"{REGENERATE} writes files, so it wants one process: leave -n out")
    config.stash[GOLDEN_TEXTS] = GoldenTexts(Path(__file__).parent / "golden", regenerate)
    # Compiled objects: a folder for each run, which its processes share.
    if not hasattr(config, "workerinput"):
        folder = tempfile.mkdtemp(prefix="rekindle-tests-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        os.environ[CACHE_DIRECTORY] = folder
    # One thread: sums are added up in the same order on every machine, and workers do not fight for the cores.
    torch.set_num_threads(1)
    seed_everything()  # some modules of tests draw while they are imported


def pytest_report_header(config: pytest.Config) -> list[str]:
    profile = hypothesis.settings.get_current_profile_name()
    seed = config.getoption(HYPOTHESIS_SEED, None)
    if profile == "fixed":
        told = "each test's own (derandomized)"
    else:
        told = str(seed) if seed is not None else "random; printed with a failure"
    shares = share_seed()
    return [
        f"versions: Python {platform.python_version()}, PyTorch {torch.__version__}; {_matrix()}",
        f"seeds: random, numpy, torch {SEED} before collection and each test; hypothesis {told}, profile {profile!r}",
        "all tests of every family" if shares is None else f"shares of families: {VARIABLE}={shares}",
    ]


def _matrix() -> str:
    """Return what is committed of other versions: this run is one combination of the matrix."""
    rows = matrix.load()
    listed = ", ".join(
        f"Python {row.python} and PyTorch {row.torch.partition('+')[0]}: {row.passed} passed, {row.failed} failed"
        for row in rows
    )
    return f"others in tests/versions/results.md: {listed}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    keep_shares(config, items)
    if not config.getoption(REGENERATE):
        return
    others = [item for item in items if "golden" not in getattr(item, "fixturenames", ())]
    items[:] = [item for item in items if "golden" in getattr(item, "fixturenames", ())]
    config.hook.pytest_deselected(items=others)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    texts = config.stash[GOLDEN_TEXTS]
    if not texts.regenerate:
        return
    terminalreporter.section("golden texts")
    for name in texts.written:
        terminalreporter.line(f"written: {name}.txt")
    terminalreporter.line(f"{len(texts.asked_for)} asked for, {len(texts.written)} written")
    if config.args == config.getini("testpaths"):
        for name in texts.not_asked_for():
            terminalreporter.line(f"no test asked for: {name}.txt")


def pytest_collection_finish() -> None:
    # Hundreds of thousands of objects of imported modules and collected tests live until the end. The collector need
    # not traverse them in each of its thousands of runs, which took a quarter of the time of the tests.
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _seeds() -> None:
    seed_everything()


@pytest.fixture(autouse=True)
def _independence(request: pytest.FixtureRequest) -> Iterator[None]:
    if not request.config.getoption("--independence") or request.node.get_closest_marker("sets_traps"):
        yield
        return
    with forbidden_torchscript():
        yield


@pytest.fixture
def golden(pytestconfig: pytest.Config) -> GoldenTexts:
    """Compares a text with ``tests/golden/<name>.txt``: ``golden("passes/inline", str(graph))``."""
    return pytestconfig.stash[GOLDEN_TEXTS]


_MODULES_OF_LIMIT = ("fusion_executor", "product_estimates")


@pytest.fixture
def blas_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large matrix products are left to BLAS, as on machines where it is faster than kernels."""
    for module in _MODULES_OF_LIMIT:
        monkeypatch.setattr(f"rekindle.codegen.{module}.max_multiplications", lambda needed: 0)


@pytest.fixture
def kernels_are_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels compute matrix products of any size, as on machines where BLAS is slower."""
    for module in _MODULES_OF_LIMIT:
        monkeypatch.setattr(f"rekindle.codegen.{module}.max_multiplications", lambda needed: 1 << 40)
