"""A strategy of programs over objects, containers, strings, exceptions and with statements, as source text.

A variable's first letter is its type: i int, f float, b bool, s str, v List[int], d Dict[str, int],
m Dict[str, List[int]], p Tuple[int, str], w List[Tensor], t Tensor, c Cell, h Holder. Cells and holders are classes of
the program; Hypothesis writes the body of a method. The caller's containers are attributes of the caller's objects at
times, so that what a program writes under one name, it reads under another.

Numbers stay small, strings and lists short, and loops run over copies. What can fail occurs only where its value is
needed: the compiler may drop what is computed for nothing, and its failure with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import strategies as st

Draw = Callable[..., object]

TYPES = {
    "i": "int",
    "f": "float",
    "b": "bool",
    "s": "str",
    "v": "List[int]",
    "d": "Dict[str, int]",
    "m": "Dict[str, List[int]]",
    "p": "Tuple[int, str]",
    "w": "List[Tensor]",
    "t": "Tensor",
    "c": "Cell",
    "h": "Holder",
}
PARAMETERS = ("i0", "f0", "b0", "s0", "v0", "d0", "m0", "p0", "w0", "c0", "c1", "h0")
RETURNS = ("i", "s", "v", "is", "dv", "mp", "c", "tb", "fsv")
EXCEPTIONS = ("ValueError", "RuntimeError", "KeyError", "NotImplementedError")

PRELUDE = """\
from typing import Any, Dict, List, Tuple

import torch
from torch import Tensor


class Cell:
    def __init__(self, n: int, tag: str):
        self.n = n
        self.tag = tag
        self.log: List[int] = []
        self.depth = 0

    def add(self, k: int) -> int:
        self.n = (self.n + k) % 997
        self.log.append(self.n)
        return self.n

    @property
    def size(self) -> int:
        return len(self.log)

    @staticmethod
    def join(a: str, b: str) -> str:
        return (a + b)[:9]

    def __lt__(self, other: "Cell") -> bool:
        return self.n < other.n

    def __len__(self) -> int:
        return len(self.tag)

    def __enter__(self) -> int:
        self.depth += 1
        return self.depth

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        self.depth -= 1
        self.log.append(-self.depth)
"""

HOLDER = """

class Holder:
    def __init__(self, left: Cell, right: Cell, shared: List[int]):
        self.left = left
        self.right = right
        self.shared = shared

    def swap(self) -> Cell:
        self.left, self.right = self.right, self.left
        return self.left
"""

MAKE = '''

def make(choice: int):
    """Arguments, of which some are parts of others."""
    cells = [Cell(choice, "ab"), Cell(-3, "")]
    numbers = [[], [1, -2, 3], [5]][choice % 3]
    if choice % 2:
        cells[0].log = numbers
    named = {"a": numbers, "k": [7]} if choice % 4 else {}
    holder = Holder(cells[choice % 2], cells[0], numbers if choice > 2 else [4])
    tensors = [torch.ones(2) * k for k in range(1 + choice % 2)]
    scalars = (choice - 2, [0.5, -1.25, 2.0][choice % 3], choice > 1, ["", "abc", "a-b"][choice % 3])
    return (*scalars, numbers, {"a": 1, "abc": choice}, named, (choice, "ab"), tensors, *cells, holder)
'''


@dataclass(slots=True)
class _Scope:
    """What is certain to be defined here, by type, and where a statement may jump."""

    variables: dict[str, list[str]]
    in_loop: bool = False

    def inner(self, *, loop: bool = False) -> _Scope:
        return _Scope({type: list(names) for type, names in self.variables.items()}, self.in_loop or loop)


@dataclass(slots=True)
class _Writer:
    draw: Draw
    returns: str
    methods: bool
    """Whether the methods that Hypothesis writes can be called: not within themselves."""
    lines: list[str] = field(default_factory=list)
    fresh: int = 2
    budget: int = 22
    needed: bool = False
    fixed: frozenset[str] = frozenset()
    """What is read only."""

    # ----------------------------------------------------------------------------------------------------- expressions

    def pick(self, options: tuple[str, ...] | list[str]) -> str:
        return self.draw(st.sampled_from(options))  # type: ignore[return-value]

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))  # type: ignore[return-value]

    def new(self) -> int:
        self.fresh += 1
        return self.fresh

    def places(self, scope: _Scope, type: str) -> list[str]:
        """Variables and attributes of a type; all can be assigned to."""
        cells, holders = scope.variables.get("c", []), scope.variables.get("h", [])
        cells = [*cells, *(f"{h}.{side}" for h in holders for side in ("left", "right"))]
        attributes = {"i": [f"{c}.n" for c in cells], "s": [f"{c}.tag" for c in cells]}
        attributes["v"] = [*(f"{c}.log" for c in cells), *(f"{h}.shared" for h in holders)]
        attributes["c"] = cells[len(scope.variables.get("c", [])) :]
        return scope.variables.get(type, []) + attributes.get(type, [])

    def place(self, scope: _Scope, type: str) -> str:
        return self.pick(self.places(scope, type))

    def expression(self, scope: _Scope, type: str, depth: int = 2) -> str:
        places = self.places(scope, type)
        if type in "ch" or (places and (depth == 0 or self.number(0, 3) == 0)):
            return self.pick(places)
        if depth == 0:
            return self.literal(type)
        return getattr(self, f"_{type}")(scope, depth - 1)

    def literal(self, type: str) -> str:
        literals = {"i": ("0", "3", "-2"), "f": ("0.5", "-1.25"), "b": ("True", "False"), "s": ('""', '"ab"', '"k"')}
        literals |= {"v": ("[2, 1]",), "d": ('{"a": 3}',), "m": ('{"k": [1]}',), "p": ('(1, "x")',)}
        literals |= {"t": ("torch.ones(2)",), "w": ("[torch.ones(2)]",)}
        return self.pick(literals[type])

    def _i(self, scope: _Scope, depth: int) -> str:
        a, b, s = (self.expression(scope, type, depth) for type in "iis")
        v, d, c = self.place(scope, "v"), self.expression(scope, "d", 0), self.place(scope, "c")
        options = [f"({a} + {b})", f"({a} - {b})", f"({a} * 3)", f"({a} // 4)", f"({a} % 5)", f"max({a}, {b})"]
        options += [f"len({s})", f"len({v})", f"len({d})", f"len({c})", f"{c}.size", f"{s}.count('a')"]
        options += [f"{s}.find({self.expression(scope, 's', 0)})", f"{d}.get({s}, {a})", f"sum({v})", f"{c}.add({a})"]
        options += [f"({v}[-1] if len({v}) > 0 else {a})", f"({a} if {self.expression(scope, 'b', depth)} else {b})"]
        options += [f"{self.expression(scope, 'p', 0)}[0]", f"int({self.expression(scope, 'b', 0)})", f"{c}.depth"]
        if self.methods:
            options.append(f"{c}.step({a}, {s})")
        if self.needed:
            options += [f"({a} // {b})", f"({a} % {b})", f"{v}[{b}]", f"{d}[{s}]", f"{s}.index('b')", f"int({s})"]
            options += [f"ord({s})", f"min({v})"]
        return self.pick(options)

    def _f(self, scope: _Scope, depth: int) -> str:
        a, b = self.expression(scope, "f", depth), self.expression(scope, "f", depth)
        i = self.expression(scope, "i", depth)
        return self.pick((f"({a} + {b})", f"({a} * 0.5)", f"float({i})", f"({i} / 4)", f"min({a}, {b})", f"abs({a})"))

    def _b(self, scope: _Scope, depth: int) -> str:
        type = self.pick(("i", "s", "f"))
        a, b = self.expression(scope, type, depth), self.expression(scope, type, depth)
        p, q = self.expression(scope, "b", depth), self.expression(scope, "b", depth)
        s, c = self.expression(scope, "s", 0), (self.place(scope, "c"), self.place(scope, "c"))
        tuples = self.expression(scope, "p", 0), self.expression(scope, "p", 0)
        options = [f"({a} {self.pick(('<', '<=', '==', '!='))} {b})", f"({p} and {q})", f"({p} or {q})", f"(not {p})"]
        options += [f"({s} in {self.expression(scope, 'd', 0)})", f"({s} in {self.expression(scope, 's', 0)})"]
        options += [
            f"({c[0]} is {c[1]})",
            f"({c[0]} < {c[1]})",
            f"({self.place(scope, 'v')} == {self.place(scope, 'v')})",
        ]
        options += [f"({tuples[0]} {self.pick(('<', '==', '>='))} {tuples[1]})"]
        options += [f"({self.expression(scope, 'i', 0)} in {self.place(scope, 'v')})", f"{s}.startswith('a')"]
        return self.pick(options)

    def _s(self, scope: _Scope, depth: int) -> str:
        a, b, i = (self.expression(scope, type, depth) for type in "ssi")
        options = [f"({a} + {b})[:9]", f"{a}.upper()", f"{a}.replace('a', 'xy')[:9]", f"{a}[::-1]", f"{a}[1:3]"]
        options += [f"str({i})", f'f"{{{i}}}-{{{b}}}"[:9]' if '"' not in i + b else f"str({i})"]
        options += [f"'-'.join([{a}, {b}])[:9]", f"'{{}}:{{:3d}}'.format({b}, {i})[:9]", f"Cell.join({a}, {b})"]
        options += [f"str({self.expression(scope, 'f', 0)})", f"({a} if {self.expression(scope, 'b', 0)} else {b})"]
        options += [f"{self.expression(scope, 'p', 0)}[1]", f"{a}.strip('a').center(5, '*')", f"('%d|%s' % ({i}, {b}))"]
        options += [f"','.join([str(e) for e in {self.place(scope, 'v')}])[:9]", f"{a}.split('-')[0]"]
        if self.needed:
            options += [f"{a}[{i}]", f"{a}.split({b})[0]"]
        return self.pick(options)

    def _v(self, scope: _Scope, depth: int) -> str:
        a, b = self.expression(scope, "i", depth), self.expression(scope, "i", depth)
        v, e = self.place(scope, "v"), f"e{self.new()}"
        options = [f"[{a}, {b}]", f"{v}[1:]", f"{v}[::-1]", f"{v}[-2:]", f"sorted({v})", f"({v} + [{a}])[:6]"]
        options += [f"[{e} * 2 % 97 for {e} in {v}]", f"[{e} for {e} in {v} if {e} > {self.pick(('0', '2'))}]"]
        options += [f"list({self.expression(scope, 'd', 0)}.values())", f"{v}.copy()", f"([{a}] * 2)"]
        options += [f"[len({e}) for {e} in {self.expression(scope, 's', 0)}]"]
        if self.needed and "m" in scope.variables:
            options.append(f"{self.place(scope, 'm')}[{self.expression(scope, 's', 0)}]")
        return self.pick(options)

    def _d(self, scope: _Scope, depth: int) -> str:
        s, i, v, e = (
            self.expression(scope, "s", depth),
            self.expression(scope, "i", depth),
            self.place(scope, "v"),
            self.new(),
        )
        return self.pick((f"{{{s}: {i}}}", f"{{str(e{e}): e{e} for e{e} in {v}}}", f"{{{s}: {i}, 'z': 1}}"))

    def _m(self, scope: _Scope, depth: int) -> str:
        return f"{{{self.expression(scope, 's', depth)}: {self.expression(scope, 'v', depth)}}}"

    def _p(self, scope: _Scope, depth: int) -> str:
        return f"({self.expression(scope, 'i', depth)}, {self.expression(scope, 's', depth)})"

    def _t(self, scope: _Scope, depth: int) -> str:
        a, i = self.expression(scope, "t", depth), self.expression(scope, "i", depth)
        options = [f"({a} + {i})", f"torch.relu({a})", f"({a} * 0.5)", f"torch.full([2], float({i}))"]
        return self.pick(options + ([f"{self.place(scope, 'w')}[-1]"] if "w" in scope.variables else []))

    def _w(self, scope: _Scope, depth: int) -> str:
        return f"[{self.expression(scope, 't', depth)}, {self.expression(scope, 't', depth)}]"

    # ------------------------------------------------------------------------------------------------------ statements

    def put(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def block(self, scope: _Scope, indent: int, depth: int) -> None:
        self.put(indent, f"i0 = i0 + {self.number(0, 2)}")
        for _ in range(self.number(1, 3)):
            if self.budget <= 0:
                return
            self.budget -= 1
            self.statement(scope, indent, depth)

    def statement(self, scope: _Scope, indent: int, depth: int) -> None:
        kinds = ["assign", "assign", "mutate", "mutate", "mutate", "leave", "print_"]
        if depth > 0:
            kinds += ["branch", "branch", "loop", "loop", "with_", "with_", "jump"]
        getattr(self, "_" + self.pick(kinds))(scope, indent, depth)

    def _assign(self, scope: _Scope, indent: int, depth: int) -> None:
        type = self.pick([type for type in TYPES if type != "h" and self.places(scope, type)])
        value = self.expression(scope, type)
        new = self.number(0, 2) == 0
        name = f"{type}{self.new()}" if new else self.place(scope, type)
        new = new or name in self.fixed
        name = f"{type}{self.new()}" if name in self.fixed else name
        bounded = f"({value}) % 997" if type == "i" else f"({value})[:9]" if type == "s" else value
        self.put(indent, f"{name} = {bounded}")
        if new:
            scope.variables.setdefault(type, []).append(name)

    def _mutate(self, scope: _Scope, indent: int, depth: int) -> None:
        i, s, v, c = (
            self.expression(scope, "i", 1),
            self.expression(scope, "s", 1),
            self.place(scope, "v"),
            self.place(scope, "c"),
        )
        i = f"({i}) % 97"
        options = [
            f"{v}.append({i})",
            f"{v}.insert(0, {i})",
            f"{v}.reverse()",
            f"{v}.sort()",
            f"{c}.add({i})",
            f"{c}.n += {i}",
        ]
        options += [
            f"if len({v}) > 0:\n {v}.pop()",
            f"if len({v}) > 1:\n {v}[1] = {i}",
            f"{v} += [{i}]",
            f"{c}.tag = ({s})[:9]",
        ]
        options += [f"if len({v}) > 4:\n {v}.clear()", f"{c}.log = {v}"]
        for d in scope.variables.get("d", []):
            options += [f"{d}[{s}] = {i}", f"{d}.pop({s}, 0)", f"{d}.setdefault({s}, {i})", f"{d}.update({{{s}: {i}}})"]
            options += [f"if {s} in {d}:\n del {d}[{s}]"]
        for m in scope.variables.get("m", []):
            options += [f"{m}[{s}] = {v}", f"if {s} in {m}:\n {m}[{s}].append({i})"]
        for h in scope.variables.get("h", []):
            options += [f"{h}.swap()", f"{h}.swap().add({i})", f"{h}.left = {c}", f"{h}.shared = {v}"]
        for w in scope.variables.get("w", []):
            options += [f"{w}.append(torch.ones(2) * {i})", f"{w}[0].add_({i})", f"{w}[-1] = {w}[0]"]
        self._put_lines(indent, self.pick(options))

    def _put_lines(self, indent: int, text: str) -> None:
        for line in text.split("\n"):
            self.put(indent + line.startswith(" "), line.strip())

    def _print_(self, scope: _Scope, indent: int, depth: int) -> None:
        self.put(indent, f"print({self.expression(scope, 'i', 1)}, {self.expression(scope, 's', 1)})")

    def _leave(self, scope: _Scope, indent: int, depth: int) -> None:
        """A statement that leaves the function, under a condition, so that what follows is reached at times."""
        self.needed = True
        condition = self.expression(scope, "b")
        text = f'"stop " + str({self.expression(scope, "i", 1)})'
        self.needed = False
        if self.number(0, 3) == 0:
            self.put(indent, f"assert {condition}, {text}")
            return
        self.put(indent, f"if {condition}:")
        leaves = self.number(0, 2) == 0
        self.put(indent + 1, self.returning(scope) if leaves else f"raise {self.pick(EXCEPTIONS)}({text})")

    def _jump(self, scope: _Scope, indent: int, depth: int) -> None:
        if not scope.in_loop:
            self._leave(scope, indent, depth)
            return
        self.put(indent, f"if {self.expression(scope, 'b')}:")
        self.put(indent + 1, self.pick(("break", "continue")))

    def _branch(self, scope: _Scope, indent: int, depth: int) -> None:
        self.put(indent, f"if {self.expression(scope, 'b')}:")
        self.block(scope.inner(), indent + 1, depth - 1)
        if self.number(0, 1):
            self.put(indent, "else:")
            self.block(scope.inner(), indent + 1, depth - 1)

    def _loop(self, scope: _Scope, indent: int, depth: int) -> None:
        inner, number = scope.inner(loop=True), self.new()
        kind = self.pick(("range", "list", "letters", "items", "while"))
        if kind == "while":
            self.put(indent, f"k{number} = {self.number(1, 4)}")
            self.put(indent, f"while k{number} > 0 and {self.expression(scope, 'b')}:")
            self.put(indent + 1, f"k{number} -= 1")
        elif kind == "items" and "d" in scope.variables:
            self.put(indent, f"for s{number}, i{number} in list({self.place(scope, 'd')}.items())[:4]:")
            inner.variables["s"].append(f"s{number}")
            inner.variables["i"].append(f"i{number}")
        elif kind == "letters":
            self.put(indent, f"for s{number} in ({self.expression(scope, 's', 1)})[:4]:")
            inner.variables["s"].append(f"s{number}")
        else:
            over = (
                f"{self.place(scope, 'v')}[:4]" if kind == "list" else f"range({self.pick(('3', '1, 4', '3, 0, -1'))})"
            )
            self.put(indent, f"for i{number} in {over}:")
            inner.variables["i"].append(f"i{number}")
        self.block(inner, indent + 1, depth - 1)

    def _with_(self, scope: _Scope, indent: int, depth: int) -> None:
        inner = scope.inner()
        if self.number(0, 1):
            name = f"i{self.new()}"
            self.put(indent, f"with {self.place(scope, 'c')} as {name}:")
            inner.variables["i"].append(name)
        else:
            self.put(indent, f"with {self.place(scope, 'c')}:")
        self.block(inner, indent + 1, depth - 1)

    def returning(self, scope: _Scope) -> str:
        self.needed = True
        text = "return " + ", ".join(self.expression(scope, type, 1) for type in self.returns)
        self.needed = False
        return text

    def body(self, scope: _Scope, indent: int, statements: int) -> list[str]:
        for _ in range(self.number(1, statements)):
            self.statement(scope, indent, 3 - indent // 2)
        self.put(indent, self.returning(scope))
        return self.lines


def _method(draw: Draw) -> str:
    variables = {"i": ["i0", "self.n"], "s": ["s0", "self.tag"], "v": ["self.log"], "c": ["self"], "p": ["(i0, s0)"]}
    writer = _Writer(draw, "i", methods=False, budget=5, fixed=frozenset({"self", "(i0, s0)"}))
    return "\n    def step(self, i0: int, s0: str) -> int:\n" + "\n".join(writer.body(_Scope(variables), 2, 2)) + "\n"


@st.composite
def object_programs(draw: Draw) -> str:
    """The text of a module with a function ``f`` that takes what ``make(choice)`` gives."""
    method = _method(draw)
    writer = _Writer(draw, draw(st.sampled_from(RETURNS)), methods=True)  # type: ignore[arg-type]
    variables: dict[str, list[str]] = {}
    for name in PARAMETERS:
        variables.setdefault(name[0], []).append(name)
    lines = writer.body(_Scope(variables), 1, 5)
    parameters = ", ".join(f"{name}: {TYPES[name[0]]}" for name in PARAMETERS)
    types = [TYPES[type] for type in writer.returns]
    result = types[0] if len(types) == 1 else f"Tuple[{', '.join(types)}]"
    return PRELUDE + method + HOLDER + MAKE + f"\n\ndef f({parameters}) -> {result}:\n" + "\n".join(lines) + "\n"
