"""Differences that docs/differences.md lists, and how a program that shows one is recognised.

The list is strict: each entry names the row by its beginning, and a test fails where the row is gone. A row is found by
executing the program again without what the row is about: where it then agrees with eager Python, the row is the cause.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import re
import typing
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol

import torch

from rekindle.autodiff import CreateDifferentiableGraphs
from rekindle.codegen.fusion import FuseGraph
from rekindle.ir.graph import Node
from rekindle.ir.types import TensorType
from rekindle.passes import Peephole, RemoveMutation, dead_code_elimination
from tests.fuzzing.comparison import Difference

UNUSED: Final = "an operator on Tensors whose result nobody uses"
NOT_DECLARED: Final = "`x.item()` where an int is declared"
DECLARED: Final = "an int given to a parameter, a variable or a result that is declared a float"
REORDERED: Final = "an operator on Tensors that raises, and what stands after it"
TENSOR_GIVEN: Final = "a Tensor given to a parameter that is declared a number"
OTHER_ELEMENTS: Final = "`v: List[float] = x.tolist()` of a Tensor of ints"
COMPLEX_POWER: Final = "`float ** float` without a real result"
NEGATIVE_POWER: Final = "`2 ** n` of ints, `n` negative"
NO_RESULT: Final = "None passed to a parameter or returned as a result that is declared as something else"
WRITTEN: Final = "a Tensor that a derivative needs, and which is written to afterwards"
ROWS_WRITTEN: Final = "`for row in x: row *= 2` of an `x` that requires grad"

ROWS: Final = (
    TENSOR_GIVEN,
    OTHER_ELEMENTS,
    ROWS_WRITTEN,
    UNUSED,
    REORDERED,
    NOT_DECLARED,
    DECLARED,
    COMPLEX_POWER,
    NEGATIVE_POWER,
    NO_RESULT,
    WRITTEN,
)

Agrees = Callable[[str], bool]
"""Whether a text, executed in the same way, does what eager Python does with it."""


class Evidence(Protocol):
    """What eager Python shows of a program."""

    deviates: bool
    """Whether an argument is a number of another kind than its parameter is declared."""

    def undeclared(self, source: str) -> set[str]:
        """What ``repr`` shows of the numbers that stand where another kind of number is declared."""
        ...


_CONVERTED: Final = ("float instead of int", "int instead of bool", "float instead of bool", "str value")
"""What a declared float makes of an int, and an int of a bool."""


@contextmanager
def _never(*passes: Any) -> Iterator[None]:
    """Leave some passes out."""
    before = [each.run for each in passes]
    for each in passes:
        each.run = lambda self, graph: False
    try:
        yield
    finally:
        for each, run in zip(passes, before, strict=True):
            each.run = run


@contextmanager
def without_dead_code_elimination() -> Iterator[None]:
    """Keep every operator on Tensors, whether anybody uses its result or not; backward graphs are not made, since they
    leave out what no gradient needs."""
    elimination = dead_code_elimination._Elimination
    before = elimination._is_needed

    def is_needed(self: Any, node: Node) -> bool:
        return any(isinstance(each.type, TensorType) for each in (*node.inputs, *node.outputs)) or before(self, node)

    elimination._is_needed = is_needed  # type: ignore[method-assign]
    try:
        with _never(CreateDifferentiableGraphs):
            yield
    finally:
        elimination._is_needed = before  # type: ignore[method-assign]


@contextmanager
def rows_by_index() -> Iterator[None]:
    """Have Python go over the rows of a Tensor by index: ``unbind``, which it calls, forbids writes to its results."""
    before = torch.Tensor.__iter__

    def rows(self: torch.Tensor) -> Iterator[torch.Tensor]:
        return (self[index] for index in range(len(self))) if self.dim() else before(self)

    torch.Tensor.__iter__ = rows  # type: ignore[method-assign]
    try:
        yield
    finally:
        torch.Tensor.__iter__ = before  # type: ignore[method-assign]


def row_of(failure: str, what: Difference, source: str, agrees: Agrees, evidence: Evidence) -> str:
    """The row that describes a failure, or an empty text."""
    if "is not a real number; make one of them complex" in what.text:
        return COMPLEX_POWER
    if "is not an int: write float(base) ** exponent where it may be negative" in what.text:
        return NEGATIVE_POWER
    if failure in ("missing error", "other error") and " is a view and " in what.text:
        with rows_by_index():
            if agrees(source):
                return ROWS_WRITTEN
    return declared_row(failure, what, source, agrees, evidence) or order_row(failure, source, agrees)


def declared_row(failure: str, what: Difference, source: str, agrees: Agrees, evidence: Evidence) -> str:
    """The row on declared types that describes a failure."""
    if _NOT_A_NUMBER.search(what.text) and any(each.startswith("tensor(") for each in evidence.undeclared(source)):
        return TENSOR_GIVEN
    if "tolist() is annotated to give elements of type" in what.text and evidence.undeclared(source):
        return OTHER_ELEMENTS
    refused = _NOT_AS_DECLARED.search(what.text)
    if refused is not None and refused[1] in evidence.undeclared(source):
        return NOT_DECLARED
    if failure in ("error instead", "other error") and "is declared to return" in what.text:
        if any(map(agrees, widened(source, "None"))):
            return NO_RESULT
    if evidence.deviates or (failure.removesuffix(_AFTER) in _WRONG and what.kind in _CONVERTED):
        if any(map(agrees, widened(source))):
            return DECLARED
    if evidence.undeclared(source) and any(map(agrees, widened(source))):
        return NOT_DECLARED  # what it raises may be caught
    return ""


def order_row(failure: str, source: str, agrees: Agrees) -> str:
    """The row on what runs, and in which order, that describes a failure."""
    if failure in _OF_AN_ERROR:
        with _never(FuseGraph):
            if agrees(source):
                return REORDERED
    if failure in _OF_AN_ERROR or failure == "missing error":
        with _never(FuseGraph), without_dead_code_elimination():
            if agrees(source):
                return UNUSED
    if failure == "other error of backward":
        with _never(FuseGraph, RemoveMutation, Peephole), without_dead_code_elimination():
            if agrees(source):
                return WRITTEN
    return ""


_NOT_A_NUMBER: Final = re.compile(r"must be (bool|int|float|complex), not Tensor")
_NOT_AS_DECLARED: Final = re.compile(r"TypeError: expected an? \w+, got (\S+?)(, not |\n|$)")
_AFTER: Final = " after an error"
_WRONG: Final = ("wrong answer", "wrong state", "wrong arguments")
_OF_AN_ERROR: Final = ("other error", "other text", "wrong state after an error", "wrong arguments after an error")


def widened(source: str, *others: str) -> Iterator[str]:
    """Programs with annotations that take every number where one kind of number is declared: all annotations, then
    those with one text, then each alone. A list of ints is not a list of numbers, and all may be too many.
    ``others`` are types that are taken, too."""
    texts = _AnyNumber(set(), others).rewritten(source)[1]
    everything = range(len(texts))
    alike = ([number for number in everything if texts[number] == text] for text in dict.fromkeys(texts))
    tried = {_AnyNumber(set(), others).rewritten(source)[0]}
    for group in map(set, (everything, *alike, *([number] for number in everything))):
        rewritten = _AnyNumber(group, others).rewritten(source)[0]
        if rewritten not in tried:
            yield rewritten
        tried.add(rewritten)


class _AnyNumber(ast.NodeTransformer):
    """Rewrites the annotations whose numbers, counted from 0, are in ``wanted``."""

    def __init__(self, wanted: set[int], others: tuple[str, ...]) -> None:
        self.wanted = wanted
        self.number = f"Union[{', '.join(['bool', 'int', 'float', 'complex', *others])}]"
        self.texts: list[str] = []

    def rewritten(self, source: str) -> tuple[str, list[str]]:
        """The text, and those of all its annotations."""
        tree = self.visit(ast.parse(source))
        imports = "from typing import Union\n"
        text = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
        return text if text.startswith(imports) else imports + text, self.texts

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = self._wider(node.annotation)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = self._wider(node.annotation)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = self._wider(node.returns)
        return self.generic_visit(node)

    def _wider(self, annotation: Any) -> Any:
        if annotation is None:
            return None
        self.texts.append(ast.unparse(annotation))
        return _wider(annotation, self.number) if len(self.texts) - 1 in self.wanted else annotation


def _wider(annotation: Any, number: str) -> Any:
    match annotation:
        case ast.Name(id="bool" | "int" | "float" | "complex"):
            return ast.parse(number, mode="eval").body
        case ast.Subscript(value=ast.Name(id="Dict" | "Tuple" | "Union"), slice=ast.Tuple(elts=parts)):
            return ast.Subscript(annotation.value, ast.Tuple([_wider(each, number) for each in parts]))
        case ast.Subscript(value=ast.Name(id="List" | "Optional"), slice=inner):
            return ast.Subscript(annotation.value, _wider(inner, number))
        case _:
            return annotation


def deviating(value: Any, annotation: Any) -> Iterator[Any]:
    """The numbers in ``value`` that are of another kind than ``annotation`` declares, or Tensors in their place."""
    parts = typing.get_args(annotation)
    if annotation in (bool, int, float, complex):
        if isinstance(value, (int, float, complex, torch.Tensor)) and type(value) is not annotation:
            yield value
    elif isinstance(value, dict) and len(parts) == 2:
        for key in value:
            yield from itertools.chain(deviating(key, parts[0]), deviating(value[key], parts[1]))
    elif isinstance(value, (list, tuple)):
        wanted = parts if len(parts) == len(value) and isinstance(value, tuple) else parts[:1] * len(value)
        yield from itertools.chain.from_iterable(map(deviating, value, wanted))


class Undeclared:
    """Traces a program and notes every number that stands where another kind of number is declared: in a variable, a
    parameter, a field of an object, a result."""

    def __init__(self, source: str, names: dict[str, Any], path: str) -> None:
        self.path = path
        self.names = names
        self.seen: set[str] = set()
        """What ``repr`` shows of them."""
        self.fields: dict[str, Any] = {}
        self.variables: dict[int, dict[str, Any]] = {}
        """The annotations of a function, by its first line."""
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ClassDef):
                self.fields |= self._declared(node.body)
            if isinstance(node, ast.FunctionDef):
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                own = {each.arg: self._evaluated(each.annotation) for each in node.args.args if each.annotation}
                self.variables[first] = own | self._declared(ast.walk(node)) | {"return": self._evaluated(node.returns)}
                if node.name == "__init__":
                    self.fields |= own

    def _declared(self, nodes: Iterable[ast.AST]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for node in nodes:
            match node:
                case ast.AnnAssign(target=ast.Name(id=name) | ast.Attribute(attr=name)):
                    found[name] = self._evaluated(node.annotation)
        return found

    def _evaluated(self, annotation: ast.expr | None) -> Any:
        with contextlib.suppress(Exception):
            return None if annotation is None else eval(ast.unparse(annotation), self.names)  # noqa: S307 - generated here

    def __call__(self, frame: Any, event: str, result: Any) -> Any:
        if frame.f_code.co_filename != self.path:
            return None
        declared = self.variables.get(frame.f_code.co_firstlineno, {})
        if event == "return":
            self._note(result, declared.get("return"))
        for name, value in frame.f_locals.items():
            self._note(value, declared.get(name))
            if type(value).__module__ == frame.f_globals["__name__"]:
                for field, annotation in self.fields.items():
                    self._note(getattr(value, field, None), annotation)
        return self

    def _note(self, value: Any, annotation: Any) -> None:
        self.seen.update(map(repr, deviating(value, annotation)))
