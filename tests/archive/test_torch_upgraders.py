"""Every operator change that PyTorch's own loader upgrades is upgraded here, to the same answers."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from rekindle.archive.upgraders import upgraders_of
from rekindle.errors import Source
from rekindle.ir.operators.schema import FunctionSchema
from rekindle.ir.text.schema_parser import parse_schema
from rekindle.ir.types import FunctionType
from rekindle.program.function import Function
from rekindle.program.sources.source_importer import SourceImporter
from tests.support.equality import assert_same

ENTRIES = {
    entry.upgrader_name: (entry.bumped_at_version, entry.old_schema)
    for entries in torch._C._get_operator_version_map().values()
    for entry in entries
}
"""By the name of PyTorch's function: the version that an operator changed in, and its schema before."""

UPGRADERS = torch._C._get_upgraders_entry_map()
"""The texts of PyTorch's functions."""

INTS, FLOATS = torch.tensor([7, -7, 9]), torch.tensor([7.0, -7.0, 9.0])
SAMPLES: dict[tuple[str, str], list[Any]] = {
    ("self", "Tensor"): [INTS, FLOATS],
    ("other", "Tensor"): [torch.tensor([2, 2, -2]), torch.tensor([2.0, 2.0, -2.0])],
    ("out", "Tensor"): [torch.zeros(3), torch.zeros(3, dtype=torch.int64)],
    ("other", "number"): [2, -2, 2.5],
    ("size", "List[int]"): [[3]],
    ("fill_value", "number"): [3, 2.5],
    ("start", "number"): [0, 0.5],
    ("end", "number"): [2],
    ("steps", "Optional[int]"): [None, 3],
    ("base", "float"): [10.0],
    ("dtype", "Optional[int]"): [None, torch.float64, torch.int64],
    ("rounding_mode", "Optional[str]"): [None, "floor", "trunc"],
}
"""What to call with, by name and type of a parameter; None where there is nothing."""


def test_every_one_is_known() -> None:
    assert len(ENTRIES) == 18
    # Of an operator that today's PyTorch does not list.
    assert {*UPGRADERS} - {*ENTRIES} == {"full_names_0_4"}


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_answers_are_pytorchs(name: str) -> None:
    version, text = ENTRIES[name]
    schema = parse_schema(text)
    ours = archive_function(schema, version - 1)
    # A script knows the operator by the name that it has in Python.
    theirs = getattr(torch.jit.CompilationUnit(UPGRADERS[name].replace("torch.gelu", "torch._C._nn.gelu")), name)
    answered = 0
    for values in itertools.product(
        *(samples(argument.name, argument.type.annotation) for argument in schema.arguments)
    ):
        expected, found = called(theirs, schema, values), called(ours, schema, values)
        assert_same(found, expected, f"{name}{values}")
        answered += expected is not None
    assert answered


def test_names_of_dimensions() -> None:
    full = Function(upgraders_of(4)("aten::full")[1])
    assert_same(full([2], 3, names=None), torch.tensor([3.0, 3.0]))
    assert_same(full([2], 3, names=None, dtype=torch.int64), torch.tensor([3, 3]))


def samples(name: str, type: str) -> list[Any]:
    return SAMPLES.get((name, type), [None])


def called(function: Any, schema: FunctionSchema, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The answer, and what became of the arguments; None where they are refused."""
    values = tuple(value.clone() if isinstance(value, torch.Tensor) else value for value in values)
    by_name = {argument.name: value for argument, value in zip(schema.arguments, values, strict=True)}
    try:
        return function(**by_name), values
    except RuntimeError:
        return None


def archive_function(schema: FunctionSchema, version: int) -> Function:
    """The function of an archive of a version that calls the operator with all arguments."""
    parameters = ", ".join(f"{argument.name}: {argument.type.annotation}" for argument in schema.arguments)
    passed = [f"{a.name}={a.name}" if a.kwarg_only else a.name for a in schema.arguments]
    operator = schema.name.replace("aten::", "torch.")
    source = f"def f({parameters}) -> Tensor:\n  return {operator}({', '.join(passed)})\n"
    texts = {"__torch__": Source(source, "code/__torch__.py")}
    found = SourceImporter(texts.get, preferred=upgraders_of(version)).load_type("__torch__.f")
    assert isinstance(found, FunctionType)
    return Function(found.function)
