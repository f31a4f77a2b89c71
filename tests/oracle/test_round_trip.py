"""Every program of the corpus, printed as an archive holds it and read back, is the same program."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import rekindle
from rekindle.errors import RekindleError
from rekindle.ir.graph import Graph
from rekindle.ir.types import ClassType, FunctionType
from tests.oracle.corpus import Program, corpus
from tests.support.oracle import normalise
from tests.support.texts import archive_name, texts_of

PROGRAMS = corpus()

_FORK = "constants that a fork uses are computed outside of it, or within: the text does not tell"
_UNION = "a value of one class or another, of which a method is called: only an interface could be read back"
KNOWN_GAPS: dict[str, str] = {
    "concurrency.defaults_and_keywords": _FORK,
    "concurrency.operators": _FORK,
    "concurrency.in_branches": _FORK,
    "concurrency.on_one_path": _FORK,
    "concurrency.futures_as_arguments": _FORK,
    "concurrency.in_a_dict": _FORK,
    "concurrency.optional_arguments": _FORK,
    "concurrency.waits_twice": _FORK,
    "interfaces.interface_branch": _UNION,
    "interfaces.interface_reassigned": _UNION,
    "optionals.continue_with_none": "the variables of a loop come in another order",
}
"""Programs that come back otherwise, and why."""


@pytest.mark.parametrize("program", PROGRAMS, ids=[program.name for program in PROGRAMS])
def test_text_is_read_back_as_the_same_program(program: Program) -> None:
    try:
        difference = "\n".join(_differences(rekindle.script(program.subject())))
    except RekindleError as error:
        difference = str(error)
    if program.name in KNOWN_GAPS:
        assert difference, f"{program.name} comes back as it was: take it off the list"
        return
    if "calls the Python function" in difference:
        return  # what is left to Python is in no archive
    assert not difference, difference


def test_list_names_programs_and_is_short() -> None:
    assert set(KNOWN_GAPS) <= {program.name for program in PROGRAMS}
    assert len(KNOWN_GAPS) <= 0.03 * len(PROGRAMS)


def _differences(compiled: Any) -> Iterator[str]:
    if not isinstance(compiled, torch.nn.Module):
        type = FunctionType(compiled._record)
        again = texts_of(type).importer().load_type(archive_name(type))
        assert isinstance(again, FunctionType)
        yield from _difference(type.function.graph, again.function.graph)
        return
    types: dict[str, ClassType] = {}
    for module in compiled.modules():
        types.setdefault(module.script_type.name, module.script_type)
    importer = texts_of(*types.values()).importer()
    for name, before in types.items():
        after = importer.load_type(name)
        assert isinstance(after, ClassType)
        assert _slots(after) == _slots(before)
        assert list(after.constants.items()) == list(before.constants.items())
        for method, record in before.methods.items():
            yield from _difference(record.graph, after.methods[method].graph)


def _slots(type: ClassType) -> list[tuple[str, str, str]]:
    return [(slot.name, slot.type.annotation, slot.kind) for slot in type.attributes.values()]


def _difference(before: Graph, after: Graph) -> Iterator[str]:
    yield from difflib.unified_diff(_lines(before), _lines(after), "before", "after", lineterm="", n=1)


def _lines(graph: Graph) -> list[str]:
    """The graph in normal form; of a None, what else it might have been does not count."""
    return [re.sub(r"[^ ,(]+ None(?=[,)])", "None", line) for line in normalise(str(graph))]
