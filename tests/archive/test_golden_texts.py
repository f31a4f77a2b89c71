"""The texts of archives that past releases wrote: every class is read, every method compiles."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from rekindle.archive.producer_version import older_than
from rekindle.archive.upgraders import upgraders_of
from rekindle.archive.zip_files.container import ArchiveReader
from rekindle.errors import CompileError, Source
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.types import ClassType, FunctionType
from rekindle.program.sources.source_importer import SourceImporter

FOLDER = Path(__file__).parent / "golden"
ARCHIVES = [
    path
    for path in sorted(FOLDER.glob("*/*.pt"))
    if not any(n.endswith("model.json") for n in zipfile.ZipFile(path).namelist())
]

KNOWN_GAPS: dict[str, str] = {}
"""Archives with a text that does not compile, and why."""


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.parametrize("path", ARCHIVES, ids=_name)
def test_every_function_of_an_archive_compiles(path: Path) -> None:
    problem = ""
    try:
        for record in _functions(path):
            record.ensure_defined()
    except CompileError as error:
        problem = str(error)
    if _name(path) in KNOWN_GAPS:
        assert problem, f"{_name(path)} compiles now: take it off the list"
        return
    assert not problem, problem


def test_list_names_archives() -> None:
    assert set(KNOWN_GAPS) <= {_name(path) for path in ARCHIVES}
    assert len(ARCHIVES) >= 200


def _functions(path: Path) -> Iterator[GraphFunction]:
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    root = next(iter(members)).partition("/")[0]
    texts = {
        found.group(1).replace("/", "."): Source(data.decode(), name)
        for name, data in members.items()
        if (found := re.fullmatch(re.escape(root) + r"/code/(.*)\.py", name)) is not None
    }
    reader = ArchiveReader(path)
    version = reader.version()
    # Their values mean nothing to the compiler, only whether they are Tensors or strings.
    constants: list[object] = ["é"] * 2 if path.stem == "constants_unicode" else [torch.ones(2)] * 50
    importer = SourceImporter(texts.get, constants, preferred=upgraders_of(version, older_than(reader, version)))
    for qualifier, source in texts.items():
        for name in re.findall(r"^(?:class|def) (\w+)", source.text, re.MULTILINE):
            found = importer.load_type(f"{qualifier}.{name}")
            if isinstance(found, FunctionType):
                yield found.function
            elif isinstance(found, ClassType):
                yield from found.methods.values()
