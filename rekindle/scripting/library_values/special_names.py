"""Python objects with special semantics in programs: queries of the compiler, and Python's builtins."""

from __future__ import annotations

import bisect
import builtins
import cmath
import collections
import functools
import heapq
import inspect
import itertools
import math
import operator
from typing import Any, Final

import torch
import torch.overrides

from rekindle.frontend.python.library import library_function
from rekindle.frontend.python.result_types import as_python_has_it
from rekindle.frontend.sugared_values.base import CallSite, StaticValue, SugaredValue
from rekindle.frontend.sugared_values.special_forms import (
    ANNOTATE,
    AWAITABLE,
    FORK,
    GLOBALS,
    ISINSTANCE,
    InertContext,
    SpecialForm,
)
from rekindle.frontend.sugared_values.values import BuiltinFunction, SimpleValue
from rekindle.ir.types import INT, ListType
from rekindle.program import asynchrony, torch_jit
from rekindle.scripting.callables import modifiers
from rekindle.scripting.callables.library_calls import LIBRARY_CALLS
from rekindle.scripting.library_values.context_functions import CONTEXT_FUNCTIONS
from rekindle.scripting.library_values.cuda import CUDA_FUNCTIONS
from rekindle.scripting.library_values.math_functions import math_functions
from rekindle.scripting.library_values.tensor_constructor import TensorConstructor


class ConstantFunction(StaticValue):
    """A function whose result is known at compile time, such as ``torch.jit.is_scripting``."""

    def __init__(self, name: str, result: object) -> None:
        self.name = name
        self.result = result

    @property
    def description(self) -> str:
        return f"the function '{self.name}'"

    def call(self, call: CallSite) -> SugaredValue:
        return SimpleValue(call.graph.insert_constant(self.result, range=call.range))


class DefaultDtype(StaticValue):
    """``torch.get_default_dtype``: the dtype of a tensor that is made without one."""

    description = "the function 'get_default_dtype'"

    def call(self, call: CallSite) -> SugaredValue:
        zero = call.graph.insert_constant(0, range=call.range)
        sizes = call.graph.insert_node(
            call.graph.create("prim::ListConstruct", [zero], types=[ListType(INT)], range=call.range)
        )
        made = call.graph.insert("aten::empty", [sizes.output], range=call.range)
        return SimpleValue(as_python_has_it("prim::dtype", call.graph.insert("prim::dtype", [made], range=call.range)))


def _constant_functions() -> list[tuple[Any, object]]:
    """Return functions that are constant in compiled code, each with its value."""
    answers: list[tuple[Any, object]] = [
        *((each, True) for each in torch_jit.IS_SCRIPTING),
        (modifiers.is_scripting, True),
        *((each, False) for each in torch_jit.functions("is_tracing")),
        (modifiers.is_tracing, False),
        (torch.compiler.is_compiling, False),
        (torch.compiler.is_dynamo_compiling, False),
        (torch.compiler.is_exporting, False),
        (torch._C._get_tracing_state, False),
        (vars(torch._C)["_is_tracing"], False),
        (vars(torch._C)["_are_functorch_transforms_active"], False),
    ]
    names = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like")
    answers += [(getattr(torch.overrides, name), False) for name in names[:3]]
    return answers


_ITERTOOLS: Final = (
    *("accumulate", "chain", "product", "combinations", "permutations", "islice", "pairwise", "repeat"),
    *("takewhile", "dropwhile", "combinations_with_replacement", "compress", "count", "cycle", "filterfalse"),
    *("groupby", "starmap", "tee", "zip_longest"),
)

_MATH: Final = ("hypot", "isclose", "ulp", "comb", "perm", "gcd", "lcm", "isqrt")

_SAME: Final = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift", "rshift"),
    *("lt", "le", "eq", "ne", "gt", "ge", "is_", "is_not", "neg", "pos", "invert", "not_", "truth", "abs", "index"),
    *("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior", "ixor", "ilshift", "irshift"),
    *("concat", "contains", "getitem", "setitem", "delitem"),
)
_OPERATOR: Final = {**{name: name for name in _SAME}, "countOf": "count_of", "indexOf": "index_of", "inv": "invert"}
"""Functions of ``operator``, with their names in the prelude."""


def _library() -> dict[str, Any]:
    """Return each function of Python's library that the emitter compiles as a special form, by the name of the form."""
    names = ("heappush", "heappop", "heapify", "heapreplace", "heappushpop", "nlargest", "nsmallest", "merge")
    found = {name: getattr(heapq, name) for name in names}
    found |= {name: getattr(bisect, name) for name in ("bisect_left", "bisect_right", "insort_left", "insort_right")}
    found |= {name: getattr(itertools, name) for name in _ITERTOOLS}
    found |= {name: getattr(collections, name) for name in ("defaultdict", "OrderedDict", "deque", "Counter")}
    found |= {name: getattr(operator, name) for name in ("itemgetter", "attrgetter", "methodcaller")}
    found |= {name: getattr(math, name) for name in ("dist", "prod", "fsum")}
    found |= {"partial": functools.partial, "reduce": functools.reduce, "cmp_to_key": functools.cmp_to_key}
    return found


def _written() -> dict[int, SugaredValue]:
    """Return the sugared values of Python's library functions that the prelude or operators implement, by the identity
    of the function. They may be passed as arguments."""
    found = math_functions()
    found |= {id(getattr(math, name)): library_function(name) for name in _MATH}
    found |= {id(getattr(operator, name)): library_function(f"operator_{text}") for name, text in _OPERATOR.items()}
    found[id(cmath.polar)] = library_function("polar")
    found[id(cmath.isclose)] = library_function("cmath_isclose")
    return found


_OF_TORCH_JIT: Final[dict[str, SugaredValue]] = {
    "annotate": ANNOTATE,
    "isinstance": ISINSTANCE,
    "_unwrap_optional": BuiltinFunction("aten::_unwrap_optional"),
    "fork": FORK,
    "wait": BuiltinFunction("aten::wait"),
    "_awaitable": SpecialForm("_awaitable"),
    "_awaitable_wait": BuiltinFunction("prim::awaitable_wait"),
    "_awaitable_nowait": BuiltinFunction("prim::awaitable_nowait"),
}
"""Functions of ``torch.jit`` by their names."""


def _special() -> dict[int, SugaredValue]:
    table: dict[int, SugaredValue] = {
        id(modifiers.annotate): ANNOTATE,
        id(modifiers.isinstance_): ISINSTANCE,
        id(asynchrony.fork): FORK,
        id(torch.get_default_dtype): DefaultDtype(),
        id(torch.Size): SpecialForm("Size"),
        id(torch.tensor): TensorConstructor("aten::tensor"),
        id(asynchrony.wait): BuiltinFunction("aten::wait"),
        id(asynchrony.awaitable): AWAITABLE,
        id(asynchrony.awaitable_wait): BuiltinFunction("prim::awaitable_wait"),
        id(asynchrony.awaitable_nowait): BuiltinFunction("prim::awaitable_nowait"),
    }
    table |= {id(each): InertContext("_IgnoreContextManager") for each in torch_jit.IGNORE_CONTEXT}
    table |= {id(each): value for name, value in _OF_TORCH_JIT.items() for each in torch_jit.functions(name)}
    table.update(LIBRARY_CALLS)
    table.update(CUDA_FUNCTIONS)
    table.update(CONTEXT_FUNCTIONS)
    table.update(_written())
    for function, answer in _constant_functions():
        table[id(function)] = ConstantFunction(function.__name__, answer)
    for name, value in GLOBALS.items():
        python = getattr(builtins, name, None)
        if python is not None and not inspect.isclass(python):
            table[id(python)] = value
    for name, function in _library().items():
        table[id(function)] = SpecialForm(name)
    for name in (
        "list",
        "dict",
        "tuple",
        "range",
        "zip",
        "enumerate",
        "reversed",
        "map",
        "filter",
        "set",
        "frozenset",
        "slice",
    ):
        table[id(getattr(builtins, name))] = GLOBALS[name]
    return table


SPECIAL: Final[dict[int, SugaredValue]] = _special()
"""Objects with special semantics, by identity."""
