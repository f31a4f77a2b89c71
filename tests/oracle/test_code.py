"""The source text of every program of the corpus is torch.jit's."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import rekindle
from rekindle.program.function import Method
from tests.oracle.corpus import Program, corpus
from tests.oracle.known_code_differences import KNOWN_CODE_DIFFERENCES
from tests.oracle.known_differences import KNOWN_DIFFERENCES
from tests.support.oracle import CONTAINER_METHODS, script_with_torch

PROGRAMS = [program for program in corpus() if program.name not in KNOWN_DIFFERENCES]
_MANGLED = re.compile(r"\.___torch_mangle_\d+")


@pytest.mark.parametrize("program", PROGRAMS, ids=[program.name for program in PROGRAMS])
def test_code_is_that_of_torch_jit(program: Program) -> None:
    ours = dict(_texts(rekindle.script(program.subject())))
    try:
        theirs = dict(_texts(script_with_torch(program.subject())))
    except RuntimeError as error:
        difference = f"torch.jit prints nothing: {error}"
    else:
        difference = "\n".join(
            line
            for name in theirs.keys() & ours.keys()
            for line in difflib.unified_diff(theirs[name], ours[name], "torch.jit", "rekindle", lineterm="")
        )
    assert "forward" in ours or not isinstance(program.source, type)
    if program.name in KNOWN_CODE_DIFFERENCES:
        assert difference, f"{program.name} has torch.jit's text now: take it off the list"
        return
    assert not difference, difference


def test_list_names_programs_and_is_short() -> None:
    names = {program.name for program in PROGRAMS}
    assert set(KNOWN_CODE_DIFFERENCES) <= names
    assert len(KNOWN_CODE_DIFFERENCES) <= 0.02 * len(names)


def _texts(compiled: Any) -> Iterator[tuple[str, list[str]]]:
    """The text of a function, or those of all methods of a module and of what is in it, by path, without mangling."""
    if not isinstance(compiled, torch.nn.Module):
        yield "", _lines(compiled.code)
        return
    for path, module in compiled.named_modules():
        for name, code in _methods(module):
            yield f"{path}.{name}".strip("."), _lines(code)


def _methods(module: Any) -> Iterator[tuple[str, str]]:
    """What is compiled of a module; not what Python calls on its own account."""
    if isinstance(module, torch.jit.ScriptModule):
        found = [(name, module._c._get_method(name).code) for name in module._c._method_names()]
    else:
        found = [(name, Method(module, record).code) for name, record in module.script_type.methods.items()]
    return iter([item for item in found if item[0] not in CONTAINER_METHODS])


def _lines(text: str) -> list[str]:
    return _MANGLED.sub("", text).splitlines()
