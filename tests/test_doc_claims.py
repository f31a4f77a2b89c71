"""The lists and numbers of the documentation are those of the code. Each is derived here, and compared with a page."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import click
import pytest
import torch

import rekindle
import rekindle.passes
from rekindle.api.drop_in.graph_views.passes import FUNCTIONS_OF_GRAPHS
from rekindle.archive.limits import ArchiveLimits
from rekindle.archive.summary import ArchiveSummary
from rekindle.autodiff.reverse_mode.gradient_accumulation import MAX_ELEMENTS
from rekindle.cli.main import cli
from rekindle.codegen import fusion_executor
from rekindle.codegen.attention import attention, attention_ir
from rekindle.codegen.convolution import activations, direct, winograd
from rekindle.codegen.cuda import geometry, nest_launches, ptx
from rekindle.codegen.differentiation_profit import LARGE
from rekindle.codegen.fusion import MAX_PRODUCTS
from rekindle.codegen.llvm import call_sites, disk_cache, launch_ir, optimization
from rekindle.codegen.native import region_executor
from rekindle.codegen.operators import composites, concat, matmul
from rekindle.doctor.recording import MAX_CALLS
from rekindle.errors import Cause
from rekindle.errors.diagnostics import MAX_ALIKE, MAX_REPORTED
from rekindle.importing.backend import BackendOptions
from rekindle.passes import LoopUnrolling
from rekindle.passes.frozen_modules import pack_weights
from rekindle.runtime.cuda_graphs import captured_function
from rekindle.runtime.native_plans.aten_calls import UNLOCKING_SIZE
from rekindle.runtime.native_plans.self_test import TESTED
from rekindle.runtime.strategies import graph_cache
from rekindle.training.update_rules import RULES
from rekindle.transforms.rewriting.builtin_rules import LIBRARY
from tests.archive.hostile.test_mutants import COUNT as MUTANTS
from tests.codegen.samples import DTYPES
from tests.importing.models import MODELS

ROOT: Final = Path(__file__).parent.parent
PACKAGE: Final = ROOT / "rekindle"
DOCS: Final = ROOT / "docs"
PAGES: Final = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
WORDS: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
).split()


def spelled(number: int) -> str:
    """Return a number as prose has it: up to twenty as a word."""
    return WORDS[number] if number < len(WORDS) else f"{number:,}"


RELEASES_WITH_ARCHIVES: Final = len([*(ROOT / "tests" / "archive" / "golden").glob("torch-*")])

OF_COMPOSITES: Final = [name.removeprefix("aten::") for name in composites.COMPOSITES if name.startswith("aten::")]
OTHER_LOSSES: Final = {
    *(name for name in OF_COMPOSITES if name.endswith("_loss") and name not in ("cross_entropy_loss", "mse_loss")),
    *("binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div"),
}

NUMBERS: Final = [
    ("errors", "occurs in more than {} places", spelled(MAX_ALIKE)),
    ("errors", "the first {} problems", MAX_REPORTED),
    ("execution", "A group compiles at most {}.", fusion_executor.MAX_KERNELS),
    (
        "execution",
        "or in a loop when its operators have taken some {:.0f} ms",
        fusion_executor.COMPILE_THRESHOLD_US / 1000,
    ),
    ("execution", "is compiled when it has taken {:.0f} ms", region_executor.PATIENCE * 1000),
    ("execution", "has at least {:,} elements", LARGE),
    ("execution", "of at least {} nodes", graph_cache.MIN_NODES),
    ("execution", "at most {} MB", disk_cache.LIMIT >> 20),
    ("kernels", "`cat` and `stack` of up to {} tensors", spelled(concat.MAX_PARTS)),
    ("kernels", "A group has at most {} products", spelled(MAX_PRODUCTS)),
    ("kernels", "A group has at most {} kernels", fusion_executor.MAX_KERNELS),
    ("kernels", "`mse_loss` and {} other losses", spelled(len(OTHER_LOSSES))),
    ("kernels", "until they have taken about {:.0f} ms", fusion_executor.COMPILE_THRESHOLD_US / 1000),
    ("kernels", "LLVM then runs only {} passes", spelled(len(optimization._CHEAP_PASSES))),
    ("kernels", "Sums of more than {} products are computed in chunks", direct.LONGEST_SUM),
    ("kernels", "Images of up to {} channels", spelled(direct._MAX_PLANES)),
    ("kernels", "of stride 1 with at least {} channels", winograd.MIN_CHANNELS),
    ("kernels", "Sums of more than {} products are computed in parts", winograd.LONGEST_SUM),
    (
        "kernels",
        "weights take more than {} MiB",
        winograd._MAX_WEIGHTS * 16 * 4 >> 20,
    ),  # 16 points of a tile, each a float
    ("kernels", "A call site keeps {} launches", spelled(call_sites.MAX_LAUNCHES)),
    ("kernels", "up to {:,} keys", attention.MAX_KEYS),
    ("kernels", "Then {} queries at a time", attention._BLOCK),
    ("kernels", "{} keys at a time", attention_ir.KEYS_AT_A_TIME),
    ("freezing", "The weights of linear maps of {:,} weights or more", pack_weights.SMALLEST_LINEAR),
    ("archives", "Archives of {} releases are part of the tests", spelled(RELEASES_WITH_ARCHIVES)),
    ("safety", "Archives of {} releases of PyTorch", spelled(RELEASES_WITH_ARCHIVES)),
    ("safety", "a fixed set of {:,} mutants", MUTANTS),
    ("doctor", "The first {} calls of each program", spelled(MAX_CALLS)),
    ("kernels", "in {} dtypes, with PyTorch", spelled(len(DTYPES))),
    ("torch_compile", "The tests also compare {} small models", spelled(len(MODELS))),
    ("scaling", "if an input has {:,} elements or more", launch_ir.UNLOCKED_ELEMENTS),
    ("scaling", "from {:,} on", UNLOCKING_SIZE),
    ("training", "products of more than 2^{} multiplications", matmul.MAX_MULTIPLICATIONS.bit_length() - 1),
    ("training", "up to 2^{} elements", MAX_ELEMENTS.bit_length() - 1),
    ("training", "a constant trip count of at most {} is unrolled", LoopUnrolling().most_iterations),
    ("gpu", "has at most {} captures", captured_function.MAX_CAPTURES),
    ("gpu", "The {} call of a kind is captured", ("first", "second", "third", "fourth")[captured_function.WARM_UP]),
    ("gpu", "reductions of fewer than {} rows", nest_launches.MANY_ROWS),
    ("gpu", "of more than {:,} elements each", nest_launches.LONG_ROW),
    (
        "gpu",
        "Rows of up to {:,} floats stay in registers",
        geometry.MAX_ROW_THREADS * max(geometry.REGISTER_VECTORS) * geometry.VECTOR_BYTES // 4,
    ),
    ("gpu", "compute capability below {}", ".".join(map(str, ptx.MIN_CAPABILITY))),
    ("execution", f"[{TESTED[0].rstrip('.')} to {{}}](versions.md)", TESTED[-1].rstrip(".")),
    ("versions", f"runs on PyTorch {TESTED[0].rstrip('.')} to {{}} with", TESTED[-1].rstrip(".")),
    ("drop_in", f"in PyTorch {TESTED[0].rstrip('.')} to {{}}.", TESTED[-1].rstrip(".")),
]
"""Pages, a part of a sentence in each, and the number in it."""


def page(name: str) -> str:
    """The text of a page, with single blanks for line breaks."""
    return " ".join((DOCS / f"{name}.md").read_text(encoding="utf-8").split())


def rows(name: str, head: str) -> Iterator[list[str]]:
    """The rows of the table of a page that begins with ``head``: the cells of each."""
    text = (ROOT / f"{name}.md").read_text(encoding="utf-8")
    assert text.count(f"\n{head}") == 1, head
    lines = text.partition(f"\n{head}")[2].splitlines()[2:]
    for line in itertools.takewhile(lambda line: line.startswith("|"), lines):
        yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def first_names(name: str, head: str) -> list[str]:
    """The names in the first column of a table."""
    return [each for row in rows(name, head) for each in names(row[0])]


@pytest.mark.parametrize(("name", "sentence", "value"), NUMBERS, ids=[f"{each[0]}-{each[1]}" for each in NUMBERS])
def test_numbers(name: str, sentence: str, value: object) -> None:
    assert sentence.format(value) in page(name)


def test_causes_and_classes_of_compile_errors() -> None:
    assert first_names("docs/errors", "| cause | when |") == [cause.name for cause in Cause]
    public = vars(rekindle.errors).values()
    classes = {
        each.__name__ for each in public if isinstance(each, type) and issubclass(each, rekindle.errors.CompileError)
    }
    listed = first_names("docs/errors", "| class | what it reports |")
    assert sorted(listed) == sorted(classes - {"CompileError", "ProgramErrors"})


def test_limits_of_archives() -> None:
    found = {}
    for row in rows("docs/safety", "| limit | default | what it bounds |"):
        found.update(zip(names(row[0]), [count(each) for each in row[1].split(", ")], strict=True))
    assert found == dataclasses.asdict(ArchiveLimits())


def count(text: str) -> int:
    """Return the number of ``16 MiB`` or ``2,000``."""
    number, _, unit = text.partition(" ")
    return int(number.replace(",", "")) << {"": 0, "MiB": 20, "GiB": 30, "TiB": 40}[unit]


def test_classes_of_archive_errors() -> None:
    classes = {each.__name__ for each in rekindle.errors.ArchiveError.__subclasses__()}
    line = page("safety").partition("A broken file is an `ArchiveError` (")[2].partition(")")[0]
    assert {*names(line)} == classes


def test_fields_of_archive_summaries() -> None:
    fields = {each.name for each in dataclasses.fields(ArchiveSummary)}
    computed = {name for name, value in vars(ArchiveSummary).items() if isinstance(value, property)}
    assert {*first_names("docs/archives", "| field | content |")} == fields | computed
    sentence = page("archives").partition("computed from others: ")[2].partition(". ")[0]
    assert {*names(sentence)} == computed


def test_every_public_pass_is_in_the_table() -> None:
    public = {
        name
        for name, value in vars(rekindle.passes).items()
        if not name.startswith("_") and isinstance(getattr(value, "name", None), str)
    }
    assert {*first_names("docs/passes", "| pass | what it does |")} == public


def test_built_in_rules() -> None:
    listed = first_names("docs/rewriting", "| name | what it does |")
    assert sorted(listed) == sorted(each.name for each in LIBRARY)
    assert {*listed} <= {*rekindle.known_passes()}


def test_options_of_the_backend() -> None:
    defaults = {}
    for row in rows("docs/torch_compile", "| option | what it does |"):
        (default,) = re.findall(r"The default is `(\w+)`", row[1])
        defaults[names(row[0])[0]] = default == "True"
    assert defaults == dataclasses.asdict(BackendOptions())


def test_optimizers_with_kernels() -> None:
    sentence = re.search(r"(SGD, [^.]*) have such kernels", page("training"))
    assert sentence is not None
    assert re.findall(r"\w+", sentence[1].replace(" and ", " ")) == [each.__name__ for each in RULES]


def test_activations_of_packed_operators() -> None:
    known = {each.name.removesuffix("_tanh") for each in activations._ALL if each.name != "none"}
    for name, pattern in (
        ("kernels", r"`activations.py`: ([^:]*) are applied to a tile"),
        ("freezing", r"a following addition and activation \(([^)]*)\)"),
    ):
        sentence = re.search(pattern, page(name))
        assert sentence is not None
        assert {*names(sentence[1])} == known


def test_composites() -> None:
    sentence = page("kernels").partition("**Composites**: ")[2].partition("`mse_loss`")[0]
    listed = {each.replace("nll_loss", "nll_loss_nd") for each in names(sentence)}
    assert listed == {*OF_COMPOSITES} - OTHER_LOSSES - {"mse_loss"}


def test_passes_that_take_views() -> None:
    sentence = page("drop_in").partition("These functions of `torch._C` take views too")[2].partition("Others raise")[0]
    assert {*names(sentence)} == {*FUNCTIONS_OF_GRAPHS}


def test_commands() -> None:
    (row,) = [row for row in rows("README", "| feature | what it is |") if "[The command line]" in row[0]]
    assert sorted(names(row[1])) == sorted(cli.commands)
    context = click.Context(cli)
    json = {
        name
        for name in cli.commands
        if (command := cli.get_command(context, name)) and any("--json" in each.opts for each in command.params)
    }
    sentence = page("command_line").partition("- With `--json`, ")[2].partition(" write JSON")[0]
    assert {*names(sentence)} == json


def test_every_environment_variable_is_documented_and_read() -> None:
    pattern = re.compile(r"\b(?:REKINDLE|PYTORCH_JIT)_[A-Z_]*[A-Z]\b")
    documented = {name for path in PAGES for name in pattern.findall(path.read_text(encoding="utf-8"))}
    code = re.compile(rf"[\"'`]({pattern.pattern})")
    read = {name for path in PACKAGE.rglob("*.py") for name in code.findall(path.read_text(encoding="utf-8"))}
    internal = {
        "REKINDLE_INTERNAL_FRAMES",  # for who debugs the compiler: frames of the package in tracebacks
        "REKINDLE_DOCTOR_EVENTS",  # the doctor sets these two for its own processes
        "REKINDLE_DOCTOR_PACKAGE",
    }
    assert documented == read - internal
    assert internal <= read


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib came with Python 3.11")
def test_tables_of_folders() -> None:
    """Each folder once, after those that it may import from; those that the contract puts side by side in any order."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = [each for each in project["tool"]["importlinter"]["contracts"] if each["id"] == "layers"]
    layers = [layer.split(" | ") for layer in reversed(contract["layers"]) if layer != "__main__"]
    # What analysis may import is restricted by a contract of its own, so that it may come before or after the frontend.
    level = {name: number for number, layer in enumerate(layers) for name in layer}
    assert {*level} == {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    line = re.search(
        r"^errors, syntax, .*\n.*cli$", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert line is not None
    assert sorted(re.split(r", | \| ", line[0].replace("\n", " "))) == sorted(level)
    for name, head in (("docs/architecture", "| folder | question |"), ("README", "| folder | what it does |")):
        listed = [each.rstrip("/") for each in first_names(name, head)]
        assert [level[each] for each in listed] == sorted(level.values())


def test_files_of_the_architecture_exist() -> None:
    """Paths are of the package, or of a folder that the sentence or the row before them names."""
    text = re.sub(
        r"^```.*?^```$", "", (DOCS / "architecture.md").read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    listed = {each for each in names(text) if re.fullmatch(r"[\w/]+(\.py|/)", each)}
    assert len(listed) > 80
    everything = {f"/{path.relative_to(PACKAGE).as_posix()}{'/' * path.is_dir()}" for path in PACKAGE.rglob("*")}
    assert [each for each in sorted(listed) if not any(path.endswith(f"/{each}") for path in everything)] == []


def test_modules_of_libraries() -> None:
    listed = [each for row in rows("docs/real_modules", "| module | what it needed |") for each in names(row[0])]
    results = (ROOT / "tests" / "sweeps" / "results" / "real_modules.md").read_text(encoding="utf-8")
    assert sorted(listed) == sorted(re.findall(r"^\| \w+ `([\w.]+)`", results, re.MULTILINE))


def test_what_sweeps_counted() -> None:
    results = ROOT / "tests" / "sweeps" / "results"
    imports = re.findall(r"^\| transformers\.", (results / "imports.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert f"{spelled(len(imports))} of its models are among them" in page("import")
    compiled = re.findall(r"\*\*(\d+)\*\*", (results / "compiled.md").read_text(encoding="utf-8"))
    assert "Of the {} entries that Dynamo captures, {} agree with eager.".format(*compiled[:2]) in page("torch_compile")
    support = re.search(r"(\d+) have a batching rule", page("operator_support"))
    assert support is not None
    assert round(int(support[1]), -2) == 600
    assert "for some 600 operators" in page("graph_surgery")
    packages = {
        path.stem.rpartition("-")[0].removesuffix("-run") for path in (ROOT / "tests/doctor/results").glob("*-*.md")
    }
    packages = {re.sub(r"-[\d.]+$", "", each) for each in packages}
    sentence = page("doctor").partition(f"has the reports on {spelled(len(packages))} packages: ")[2]
    assert len(re.split(r", | and ", sentence.partition(". ")[0].rstrip("."))) == len(packages)


def test_measured_and_counted_figures() -> None:
    """Those outside of tables, of results that the repository has."""
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    frozen = json.loads((ROOT / "benchmarks" / "results" / "frozen_models.json").read_text(encoding="utf-8"))
    ratios = [row["optimized"] for row in rows_with(frozen, "optimized")]
    assert (
        f"{len(ratios)} models of torchvision and timm take {statistics.geometric_mean(ratios):.2f} of eager's time "
        f"(geometric mean), from {min(ratios):.2f} to {max(ratios):.2f}"
    ) in readme
    sweeps = ROOT / "tests" / "sweeps" / "results"
    counted = re.findall(r"\*\*(\d+)\*\*", (sweeps / "op_db_all.md").read_text(encoding="utf-8"))
    sentence = "Of all {} whose sample can be written as source, whatever `torch.jit` does with them, {} do"
    assert sentence.format(*counted[:2]) in readme
    exports = (sweeps / "exports.md").read_text(encoding="utf-8")
    programs = re.search(r"^(\d+) programs;", exports, re.MULTILINE)
    hard = {each.partition(" |")[0] for each in re.findall(r"^\| (hard\.\w+ \|)", exports, re.MULTILINE)}
    assert programs is not None
    assert f"exports {programs[1]} programs." in page("export")
    assert len(hard) == 51
    assert "fifty-one were written to break the export" in page("export")


def rows_with(data: Any, key: str) -> Iterator[dict[str, Any]]:
    """Yield the dicts in JSON data that have ``key``."""
    if isinstance(data, dict) and key in data:
        yield data
    elif isinstance(data, (dict, list)):
        for each in data.values() if isinstance(data, dict) else data:
            yield from rows_with(each, key)


def test_programs_of_packages() -> None:
    """What the table of packages says was compiled is what the runs of the packages have to compile."""
    listed = [int(row[-1]) for row in rows("docs/drop_in", "| package | what it scripts | compiled |")]
    text = (ROOT / "tests" / "packages" / "package_tests.py").read_text(encoding="utf-8")
    assert sum(listed) == sum(map(int, re.findall(r": \"(\d+) programs? compiled here", text)))


@pytest.mark.parametrize(
    ("spelling", "use"),
    [
        ("the index of a list", lambda x: x * [1, 2, 3, 4][x.size(0)]),
        ("`1j * x.size(0)`", lambda x: x * (1j * x.size(0))),
        ("`x.shape.numel()`", lambda x: x.reshape(x.shape.numel())),
        ("`torch.finfo(x.dtype)`", lambda x: x.clamp(max=torch.finfo(x.dtype).max)),
    ],
    ids=["list", "complex", "numel", "finfo"],
)
def test_what_traces_do_not_detect(spelling: str, use: Callable[[torch.Tensor], torch.Tensor]) -> None:
    sentence = page("tracing").partition("are fixed, but not detected, and so not reported: ")[2].partition(". ")[0]
    assert spelling in sentence
    assert sentence.count(", ") == 3
    assert not rekindle.trace(use, (torch.ones(2),)).report
