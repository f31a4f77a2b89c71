"""The documentation says what is so: its graphs are graphs, its programs run."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import rekindle
import rekindle.ops  # the operators
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.text.type_parser import parse_type
from rekindle.ir.verifier import verify
from tests.support.seeds import SEED

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in FENCED.findall(page.read_text(encoding="utf-8")) if kind == language]


def name_of(page: Path) -> str:
    """``start/export`` of ``docs/start/export.md``."""
    return page.relative_to(ROOT).with_suffix("").as_posix().removeprefix("docs/")


GRAPHS = [
    pytest.param(text, id=f"{name_of(page)}-{index}") for page in PAGES for index, text in enumerate(blocks(page, "ir"))
]
PROGRAMS = [pytest.param(page, id=name_of(page)) for page in PAGES if blocks(page, "python")]
MIGRATIONS = blocks(ROOT / "docs" / "start" / "torch_jit.md", "diff")


def test_there_is_something_to_check() -> None:
    assert len(GRAPHS) >= 5
    assert sum(len(blocks(page, "output")) for page in PAGES) >= 5
    assert {parameter.id for parameter in PROGRAMS} >= {
        "README",
        "ir",
        "adding_an_operator",
        "adding_a_pass",
        "tutorial",
        *(f"start/{page}" for page in ("archive", "torch_jit", "speed", "export", "graphs", "compilers")),
    }
    assert len(MIGRATIONS) >= 5


@pytest.mark.parametrize("text", GRAPHS)
def test_graphs_are_valid_and_come_back(text: str) -> None:
    graph = parse_graph(text)
    verify(graph)
    assert str(graph) == text


def test_types_come_back() -> None:
    """Those in the first column of the table of types."""
    section = (ROOT / "docs" / "ir.md").read_text(encoding="utf-8").partition("### Types")[2].partition("###")[0]
    rows = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    spellings = [spelling for row in rows for spelling in re.findall(r"`([^`]+)`", row)]
    assert len(spellings) >= 20
    assert [str(parse_type(spelling)) for spelling in spellings] == spellings


@pytest.mark.parametrize("page", PROGRAMS)
def test_programs_run(page: Path, tmp_path: Path) -> None:
    """All of a page in one process of its own, one after the other: they may declare operators."""
    seeded = f"import torch; torch.manual_seed({SEED})"
    printed = run("\n".join([seeded, *blocks(page, "python")]), tmp_path / f"{page.stem}.py", "-W", "error")
    rest = printed
    for picture in blocks(page, "mermaid"):  # those that the programs print, in this order
        assert picture in rest
        rest = rest.partition(picture)[2]
    for shown in blocks(page, "output"):  # of which an ellipsis leaves out the rest
        assert without_places(shown).removesuffix("…\n") in without_places(printed)


def without_places(text: str) -> str:
    """The text without names of files and numbers of lines: a page's programs are run as one file."""
    text = re.sub(r"[^\s\"]+\.py:\d+(:\d+)?", "FILE", text)
    return re.sub(r'(?:File "[^"]+\.py", )?line \d+', "LINE", text)


@pytest.mark.parametrize("index", range(len(MIGRATIONS)))
@pytest.mark.parametrize("side", ["-", "+"])
def test_both_sides_of_migrations_run(index: int, side: str, tmp_path: Path) -> None:
    """A diff of the guide is the whole program: it runs before, under torch.jit, and after."""
    lines = [line[1:] for line in MIGRATIONS[index].splitlines() if not line or line[0] in (" ", side)]
    program = "\n".join(lines) + "\n"
    assert ("torch.jit" in program, "rekindle" in program) == (side == "-", side == "+")
    run(program, tmp_path / "program.py")


def run(program: str, path: Path, *options: str) -> str:
    """Run a program in a process and a folder of its own; return what it prints."""
    path.write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, *options, str(path)],
        cwd=path.parent,  # some save programs
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_readme_tells_what_the_sweeps_found() -> None:
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    for stem, sentence in (
        (
            "op_db",
            "Of the {0} entries of PyTorch's operator database that `torch.jit.script` compiles, all {1} compile",
        ),
        ("module_db", "Of the {0} modules of its module database that `torch.jit.script` compiles, all {1} do"),
        (
            "op_db_traces",
            "Of the {0} entries of the operator database that `torch.jit.trace` traces with the results of eager, {1} ",
        ),
        ("module_db_traces", "of {0} modules, all {1} "),
    ):
        results = (ROOT / "tests" / "sweeps" / "results" / f"{stem}.md").read_text(encoding="utf-8")
        assert sentence.format(*re.findall(r"\*\*(\d+)\*\*", results)[:2]) in readme


def test_the_page_on_export_has_what_the_sweep_found() -> None:
    results = (ROOT / "tests" / "sweeps" / "results" / "exports.md").read_text(encoding="utf-8")
    assert results.split("\n\n")[2] in (ROOT / "docs" / "export.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=map(name_of, PAGES))
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"`[^`]*`", "", FENCED.sub("", page.read_text(encoding="utf-8")))
    for target in re.findall(r"\]\(([^)#\s]+)\)", prose):
        assert target.startswith(("http://", "https://")) or (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=map(name_of, PAGES))
def test_names_and_files_that_are_mentioned_exist(page: Path) -> None:
    """Names of the package, and files of the repository, between backticks."""
    mentioned = re.findall(r"`([^`\n]+)`", FENCED.sub("", page.read_text(encoding="utf-8")))
    names = {found[1] for each in mentioned if (found := re.match(r"(rekindle(\.\w+)+)(?![\w*])", each))}
    files = {each for each in mentioned if re.fullmatch(r"(rekindle|tests|benchmarks|examples|docs)/[\w./-]*", each)}
    assert [name for name in sorted(names) if not is_name(name)] == []
    assert [file for file in sorted(files) if not (ROOT / file).exists()] == []


def is_name(dotted: str) -> bool:
    """Return whether a module, or an attribute of one or of a class in one, has this name."""
    value: object = rekindle
    path = "rekindle"
    for name in dotted.split(".")[1:]:
        path = f"{path}.{name}"
        if not hasattr(value, name) and (not isinstance(value, ModuleType) or not is_module(path)):
            return False
        value = importlib.import_module(path) if is_module(path) else getattr(value, name)
    return True


def is_module(path: str) -> bool:
    try:
        return importlib.util.find_spec(path) is not None
    except ModuleNotFoundError:  # its parent is not a package
        return False
