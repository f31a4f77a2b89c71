"""Every operator of dicts, for every type of key, beside Python's dict."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

import rekindle.ops  # noqa: F401  (registers the operators)
from rekindle.ir.operators.registry import REGISTRY
from tests.ops.calling import call

KEYS: dict[str, tuple[Any, Any]] = {
    "str": ("x", "y"),
    "int": (1, -2),
    "bool": (True, False),
    "float": (0.5, -1.5),
    "complex": (1j, 2 + 0j),
    "Tensor": (torch.tensor(1.0), torch.tensor(2.0)),
}
"""A key that the dict ``d`` holds, ``a``, and one that it does not, ``b``."""

# Kind -> what Python says, with the arguments of the operator.
EXPRESSIONS: dict[str, list[tuple[str, str]]] = {
    "aten::__contains__": [("a in d", "d, a"), ("b in d", "d, b")],
    "aten::__getitem__": [("d[a]", "d, a"), ("d[b]", "d, b")],
    "aten::_set_item": [("d.__setitem__(a, 5)", "d, a, 5"), ("d.__setitem__(b, 5)", "d, b, 5")],
    "aten::Delete": [("d.__delitem__(a)", "d, a"), ("d.__delitem__(b)", "d, b")],
    "aten::clear": [("d.clear()", "d")],
    "aten::copy": [("d.copy()", "d")],
    "aten::dict": [("dict(d)", "d"), ("dict(e)", "e")],
    "aten::get": [("d.get(a)", "d, a"), ("d.get(b)", "d, b")],
    "aten::get.default": [("d.get(a, 9)", "d, a, 9"), ("d.get(b, 9)", "d, b, 9")],
    "aten::items": [("list(d.items())", "d"), ("list(e.items())", "e")],
    "aten::keys": [("list(d)", "d"), ("list(e)", "e")],
    "aten::len": [("len(d)", "d"), ("len(e)", "e")],
    "aten::pop": [("d.pop(a)", "d, a"), ("d.pop(b)", "d, b")],
    "aten::pop.default": [("d.pop(a, 9)", "d, a, 9"), ("d.pop(b, 9)", "d, b, 9")],
    "aten::popitem": [("d.popitem()", "d"), ("e.popitem()", "e"), ("{}.popitem()", "{}")],
    "aten::setdefault": [("d.setdefault(a, 9)", "d, a, 9"), ("d.setdefault(b, 9)", "d, b, 9")],
    "aten::update": [("d.update(e)", "d, e"), ("e.update(d)", "e, d")],
    "aten::values": [("list(d.values())", "d"), ("list(e.values())", "e")],
}
OF_PAIRS = [("dict(list(e.items()))", "list(e.items())"), ("dict([(a, 1), (a, 2)])", "[(a, 1), (a, 2)]")]


def operators_of_dicts() -> dict[str, tuple[str, list[tuple[str, str]]]]:
    """The type of the keys and the expressions, for every operator that takes a dict or makes one of pairs."""
    found: dict[str, tuple[str, list[tuple[str, str]]]] = {}
    for kind in sorted({name.removesuffix(".default") for name in EXPRESSIONS}):
        for operator in REGISTRY.overloads(kind):
            key = re.search(r"\(Dict\((\w+), t\)|\(\((\w+), tVal\)\[\]", str(operator.schema))
            if key is None:
                continue
            default = ".default" if "default_value" in str(operator.schema) and kind != "aten::setdefault" else ""
            expressions = EXPRESSIONS[kind + default] if key[1] else OF_PAIRS
            found[operator.schema.qualified_name] = (key[1] or key[2], expressions)
    return found


OPERATORS = operators_of_dicts()


def _run(function: Any) -> tuple[Any, str | None]:
    try:
        return function(), None
    except KeyError as error:
        return None, f"KeyError: {error}"


@pytest.mark.parametrize("name", OPERATORS)
def test_as_pythons_dict(name: str) -> None:
    type, expressions = OPERATORS[name]
    a, b = KEYS[type]
    for expression, arguments in expressions:
        ours, theirs = ({"a": a, "b": b, "d": {a: 1}, "e": {b: 2, a: 3}} for _ in range(2))
        answer = _run(lambda ours=ours, arguments=arguments: call(name, *eval(f"({arguments},)", ours)))  # noqa: S307
        expected = _run(lambda theirs=theirs, expression=expression: eval(expression, theirs))  # noqa: S307
        assert repr(answer) == repr(expected), expression
        assert repr((ours["d"], ours["e"])) == repr((theirs["d"], theirs["e"])), expression


def test_all_are_found() -> None:
    types = [type for type, _ in OPERATORS.values()]
    assert {type: types.count(type) for type in KEYS} == dict.fromkeys(KEYS, 19)
