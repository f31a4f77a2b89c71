"""Which of TorchScript's own operators exist here, with the same schema, and in the same order."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest
import torch

import rekindle.runtime.executor  # noqa: F401 (with all floors below it that have operators of their own)
from rekindle.ir.operators.registry import REGISTRY, Operator
from rekindle.ops.registration.declare import declared_kinds
from tests.versions.differences import not_yet_in_torchscript

LIST = Path(__file__).parent / "missing_operators.txt"
OWN = frozenset({"prim::RaiseException.caught", "prim::RaiseException.arguments"})
"""Overloads of this package of a kind that TorchScript has too."""


@cache
def _dispatcher() -> frozenset[str]:
    return frozenset(torch._C._dispatch_get_all_op_names())


@cache
def _torchscript() -> dict[str, dict[str, str]]:
    """The schemas of every aten and prim kind in TorchScript: overload name -> text, in order."""
    kinds: dict[str, dict[str, str]] = {}
    for schema in torch._C._jit_get_all_schemas():
        if schema.name.startswith(("aten::", "prim::")) and schema.name not in kinds:
            known = torch._C._jit_get_schemas_for_operator(schema.name)
            kinds[schema.name] = {other.overload_name: str(other) for other in known}
    return kinds


def _qualified(kind: str, overload: str) -> str:
    return f"{kind}.{overload}" if overload else kind


@cache
def ours_to_define() -> dict[str, str]:
    """Schema texts that the dispatcher does not have, by qualified name."""
    return {
        name: text
        for kind, overloads in _torchscript().items()
        for overload, text in overloads.items()
        if (name := _qualified(kind, overload)) not in _dispatcher()
    }


def _overloads(kind: str) -> list[Operator]:
    return [operator for operator in REGISTRY.overloads(kind) if operator.schema.qualified_name not in OWN]


@cache
def listed() -> dict[str, str]:
    """The operators that are listed as missing, with the reason."""
    found: dict[str, str] = {}
    reason = ""
    for line in LIST.read_text().splitlines():
        if line.startswith("# "):
            reason = line[2:]
        elif line:
            found[line] = reason
    return found


def test_how_many_there_are_to_define() -> None:
    namespaces: dict[str, int] = defaultdict(int)
    for name in ours_to_define():
        namespaces[name.partition("::")[0]] += 1
    if torch.__version__.startswith("2.13."):
        assert namespaces == {"aten": 644, "prim": 128}


def test_missing_operators_are_those_listed() -> None:
    missing = {name for name in ours_to_define() if REGISTRY.find(name) is None}
    assert missing == set(listed())
    assert all(listed().values())


def test_at_least_98_percent_of_those_that_programs_can_hold() -> None:
    """What only TorchScript's own passes insert, for runtimes of its own, no program holds."""
    inserted = {name for name, reason in listed().items() if reason.startswith("inserted")}
    wanted = set(ours_to_define()) - inserted
    found = [name for name in wanted if REGISTRY.find(name) is not None]
    assert len(found) >= 0.98 * len(wanted)


@pytest.mark.parametrize("letter", sorted({name.partition("::")[2][0].lower() for name in ours_to_define()}))
def test_schemas_are_torchscripts(letter: str) -> None:
    """The declared texts, parsed and printed, are TorchScript's to the letter."""
    for name, text in ours_to_define().items():
        if name.partition("::")[2][0].lower() == letter and (found := REGISTRY.find(name)) is not None:
            assert str(found.schema) == text


def test_overloads_stand_in_torchscripts_order() -> None:
    """Over every aten and prim kind, those of the dispatcher included; a kind has no overload twice."""
    for kind, overloads in _torchscript().items():
        ours = [operator.schema.overload for operator in _overloads(kind)]
        assert len(set(ours)) == len(ours), kind
        there = [overload for overload in overloads if _qualified(kind, overload) not in listed()]
        assert ours == there, kind


def test_dispatcher_schemas_read_and_print_as_torch_prints_them() -> None:
    for kind, overloads in _torchscript().items():
        for operator in _overloads(kind):
            assert str(operator.schema) == overloads[operator.schema.overload]


def test_declared_kinds_without_a_schema_in_torchscript() -> None:
    """These are nodes in TorchScript too, but no operators: its interpreter implements them."""
    without = {
        kind for kind in declared_kinds() if kind not in _torchscript() and kind.startswith(("aten::", "prim::"))
    }
    assert without == {
        *("prim::CreateObject", "prim::DictConstruct", "prim::Enter", "prim::Exit", "prim::GetAttr"),
        *("prim::ListConstruct", "prim::ListUnpack", "prim::SetAttr", "prim::TupleConstruct", "prim::TupleSlice"),
        "prim::isinstance",
        # Made by the frontend for what TorchScript lacks, and by passes:
        *("prim::Try", "prim::exception_name", "prim::is_exception"),
        *("prim::NativeRegion", "prim::packed_convolution", "prim::packed_convolution_add", "prim::packed_linear"),
        *("prim::attention", "prim::image_order", "prim::packed_transposed_convolution"),
        "prim::written_attention",
        *not_yet_in_torchscript(),
    }


def test_operators_of_archives_have_the_schemas_of_their_twins() -> None:
    twins = {name: f"aten::{name}" for name in ("str", "format", "percentFormat")} | {"Print": "prim::Print"}
    # Loading counts steps by an operator of its own.
    kinds = {kind for kind in declared_kinds() if kind.startswith("archive::")} - {"archive::count"}
    for kind in kinds - {f"archive::{name}" for name in twins}:
        schemas = [str(twin.schema).partition("::")[2] for twin in REGISTRY.overloads(f"aten::{kind[9:]}")]
        for operator in REGISTRY.overloads(kind):
            assert str(operator.schema).partition("::")[2] in schemas
    for name, kind in twins.items():
        (operator,) = REGISTRY.overloads(f"archive::{name}")
        (twin,) = REGISTRY.overloads(kind)
        assert str(operator.schema).partition("::")[2] == str(twin.schema).partition("::")[2]


def test_nothing_is_declared_that_the_dispatcher_has() -> None:
    for kind in declared_kinds():
        names = [operator.schema.qualified_name for operator in REGISTRY.overloads(kind)]
        assert len(set(names)) == len(names)
