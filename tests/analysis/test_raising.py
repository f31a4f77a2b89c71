"""Operators that raise for values of their arguments' types are known to."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterator
from typing import Any, Dict, Final, List, Union

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.analysis.raising import may_raise
from rekindle.ir.operators.schema import FunctionSchema
from rekindle.ir.text.parser import parse_graph
from rekindle.ops.registration.declare import declared_kinds, declared_operators

_KEYS: Final[dict[str, Any]] = {"str": "ab", "int": 5, "float": 2.5, "complex": 1j, "bool": True, "k": (1, 2)}
_VALUES: Final[dict[str, list[Any]]] = {
    "int": [0, -1, 5, 64],
    "float": [0.0, -0.5, 2.5, math.inf, math.nan, 1e308],
    "complex": [0j, 1j, complex(0.0, math.inf), complex(1.5e308, 1.5e308)],
    "bool": [True, False],
    "str": ["", "ab"],
    "Scalar": [0, True, -1, 2.5, math.inf, math.nan, 1j],
    "int[]": [[], [1, 2], [3]],
    "float[]": [[], [1e308, 1e308], [math.inf, -math.inf]],
    "bool[]": [[], [True]],
    "str[]": [[], ["a"]],
    "int?": [None, -3],
    "str?": [None, "", "a"],
    "t": [1],
    "t[]": [[], [1, 2]],
    **{f"Dict({key}, t)": [{}, {value: 1}] for key, value in _KEYS.items()},
    "k": [(0, 1), (1, 2)],
}
_TYPES: Final = {"t": "int", "t[]": "int[]", "k": "(int, int)"}

_NOT_LOOKED_FOR: Final = {
    "aten::_infer_size": "sizes of Tensors, that the compiler reads",
    "prim::ReductionSizes": "sizes of Tensors, that the compiler reads",
}


def _raises(kind: str, schema: FunctionSchema, operation: Any) -> Exception | None:
    """What some arguments of the schema's types make the operation raise."""
    for given in itertools.product(*(_VALUES[str(argument.type)] for argument in schema.arguments)):
        try:
            operation(*copy.deepcopy(given))
        except (ArithmeticError, LookupError, TypeError, ValueError, RuntimeError) as error:
            return error
    return None


def _operators() -> Iterator[tuple[str, FunctionSchema, Any]]:
    for kind in sorted(declared_kinds()):
        if not kind.startswith(("aten::", "prim::", "python::")):  # what the compiler makes for itself
            continue
        for operator in declared_operators(kind):
            schema = operator.schema
            known = all(str(argument.type) in _VALUES for argument in schema.arguments)
            if known and operator.operation is not None and not operator.has_side_effects and not schema.is_vararg:
                yield kind, schema, operator.operation


def _text(kind: str, schema: FunctionSchema) -> str:
    def spelled(type: object) -> str:
        text = str(type)
        return _TYPES.get(text, text.replace("(k, t)", "((int, int), t)").replace(", t)", ", int)"))

    inputs = ", ".join(f"%a{i} : {spelled(argument.type)}" for i, argument in enumerate(schema.arguments))
    outputs = ", ".join(f"%r{i} : {spelled(result.type)}" for i, result in enumerate(schema.returns))
    given = ", ".join(f"%a{i}" for i in range(len(schema.arguments)))
    return f"graph({inputs}):\n  {outputs} = {kind}({given})\n  %none : NoneType = prim::Constant()\n  return (%none)\n"


def test_every_operator_that_raises_for_some_values_is_known_to() -> None:
    asked, missing = 0, []
    for kind, schema, operation in _operators():
        asked += 1
        error = _raises(kind, schema, operation)
        if error is None or kind in _NOT_LOOKED_FOR:
            continue
        if not may_raise(next(iter(parse_graph(_text(kind, schema)).nodes))):
            missing.append(f"{schema}: {error!r}")
    assert missing == []
    assert asked > 300


# ---------------------------------------------------------------------------------------------------------- programs


def outside_its_domain(s: Dict[str, int], u: float) -> int:
    math.fmod(u, 2.5)
    return s["a"]


def of_tensors_or_numbers(x: Tensor) -> int:
    top = 0
    for row in x:
        top = row.sum()
    math.fmod(top, 2.5)
    return 1


def rest_of_a_division(u: float) -> int:
    math.remainder(u, 2.0)
    return 1


def scaled(n: int) -> int:
    math.ldexp(1.0, n)
    return 1


def exact_sum(u: float) -> int:
    math.fsum([u, -math.inf])
    return 1


def absolute_value(z: complex) -> int:
    abs(z)
    return 1


def complex_only(z: Union[int, float, complex]) -> int:
    math.erf(z)
    return 1


def greater(x: Tensor) -> int:
    max(x.item(), 2)
    return 1


def in_order(x: Tensor) -> int:
    sorted([x.item(), 1])
    return 1


def parts(separator: str) -> int:
    "a b".split(separator)
    return 1


def padded(fill: str) -> int:
    "a".center(5, fill)
    return 1


def every_other(l: List[int], step: int) -> int:
    l[::step]
    return 1


def letter(n: int) -> int:
    "abc"[n]
    return 1


def device(name: str) -> int:
    torch.device(name)
    return 1


_UNUSED: Final[list[tuple[Any, list[Any], list[Any]]]] = [
    (outside_its_domain, [{"a": 1}, 1.0], [{}, math.inf]),
    (of_tensors_or_numbers, [torch.ones(2, 2)], [torch.tensor([[math.inf]])]),
    (rest_of_a_division, [3.0], [math.inf]),
    (scaled, [3], [5000]),
    (exact_sum, [1.0], [math.inf]),
    (absolute_value, [1j], [complex(1.5e308, 1.5e308)]),
    (complex_only, [1], [1j]),
    (greater, [torch.tensor(1)], [torch.tensor(1j)]),
    (in_order, [torch.tensor(1)], [torch.tensor(1j)]),
    (parts, [" "], [""]),
    (padded, ["-"], ["--"]),
    (every_other, [[1], 1], [[1], 0]),
    (letter, [-3], [3]),
    (device, ["cpu"], ["processor"]),
]


@pytest.mark.parametrize(("function", "works", "raises"), _UNUSED, ids=lambda each: getattr(each, "__name__", ""))
def test_what_nobody_uses_raises_as_in_python(function: Any, works: list[Any], raises: list[Any]) -> None:
    compiled = rekindle.script(function)
    with pytest.raises(Exception) as expected:  # noqa: PT011 - eager Python says which
        function(*raises)
    for _ in range(3):
        assert compiled(*works) == 1
        with pytest.raises(type(expected.value)) as caught:
            compiled(*raises)
        assert str(caught.value) == str(expected.value)


def test_what_cannot_raise_is_dead() -> None:
    def all_dead(u: float, n: int, s: str) -> int:
        math.tanh(u), math.atan2(u, u), abs(u), max(u, u), u % 2.5, n // 2
        s.split(), s.split(","), s.center(5), s[::2], sorted([u, u]), (n, u)[1]
        return n

    assert list(rekindle.script(all_dead).graph.nodes) == []
