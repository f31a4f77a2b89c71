"""A strategy of whole programs, as source text.

Each variable keeps the type of its first letter: i int, f float, b bool, t Tensor, v List[int], w List[Tensor].
Numbers stay small, loops end (``while`` has fuel), and no list changes while a loop runs over it. What can fail
(division by zero, an index out of range) occurs only where its value is needed: the compiler may drop what is
computed for nothing, and its failure with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hypothesis import strategies as st

Draw = Callable[..., object]

TYPES = {"i": "int", "f": "float", "b": "bool", "t": "Tensor", "v": "List[int]", "w": "List[Tensor]"}
RETURNS = ("i", "f", "t", "v", "ift", "iv", "tw", "bi")
PARAMETERS = ("i0", "i1", "f0", "b0", "t0", "t1", "v0", "w0")
_WRITERS = {"i": "_int", "f": "_float", "b": "_bool", "t": "_tensor", "v": "_ints", "w": "_tensors"}
EXCEPTIONS = ("ValueError", "RuntimeError", "IndexError")


@dataclass(slots=True)
class Scope:
    """The variables that are certain to be defined here, by type, and where a statement may jump."""

    variables: dict[str, list[str]]
    in_loop: bool = False
    lists_frozen: bool = False

    def inner(self, *, loop: bool = False, freeze: bool = False) -> Scope:
        variables = {type: list(names) for type, names in self.variables.items()}
        return Scope(variables, self.in_loop or loop, self.lists_frozen or freeze)


@dataclass(slots=True)
class Writer:
    draw: Draw
    returns: str
    lines: list[str] = field(default_factory=list)
    fresh: int = 2
    budget: int = 28
    writers: Mapping[str, str] = field(default_factory=lambda: _WRITERS)
    """The methods that write expressions, by type."""
    simple_statements: tuple[str, ...] = ("assign", "assign", "augment", "unpack", "mutate", "leave")
    """Statements that hold no others."""
    needed: bool = False
    """Whether the value of the expression that is being written decides about the result, whatever it is."""

    # ----------------------------------------------------------------------------------------------------- expressions

    def pick(self, options: list[str] | tuple[str, ...]) -> str:
        return self.draw(st.sampled_from(options))  # type: ignore[return-value]

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))  # type: ignore[return-value]

    def variable(self, scope: Scope, type: str) -> str:
        return self.pick(scope.variables[type])

    def expression(self, scope: Scope, type: str, depth: int = 2) -> str:
        if depth == 0 or self.number(0, 3) == 0:
            return self.leaf(scope, type)
        return str(getattr(self, self.writers[type])(scope, depth - 1))

    def leaf(self, scope: Scope, type: str) -> str:
        if self.number(0, 2) or type in "tw":
            return self.variable(scope, type)
        if type == "i":
            return str(self.number(-5, 9))
        if type == "f":
            return self.pick(("0.5", "-1.25", "2.0", "0.0", "3.75"))
        if type == "b":
            return self.pick(("True", "False"))
        return f"[{self.number(0, 5)}, {self.number(-3, 3)}]"

    def _int(self, scope: Scope, depth: int) -> str:
        a, b = self.expression(scope, "i", depth), self.expression(scope, "i", depth)
        return self.pick(
            (
                f"({a} + {b})",
                f"({a} - {b})",
                f"({a} * {b})",
                f"({a} // {self.pick(('2', '3', '-3', b if self.needed else '7'))})",
                f"({a} % {self.pick(('2', '5', '-4', b if self.needed else '7'))})",
                f"max({a}, {b})",
                f"abs({a})",
                f"-{a}" if not a.startswith("-") else a,
                f"len({self.variable(scope, 'v')})",
                self.item(scope, a),
                f"({a} if {self.expression(scope, 'b', depth)} else {b})",
                f"int({self.expression(scope, 'b', depth)})",
            )
        )

    def item(self, scope: Scope, index: str) -> str:
        v = self.variable(scope, "v")
        if self.needed:
            return f"{v}[{self.pick(('0', '-1', '1', index))}]"
        return f"({v}[{self.pick(('0', '-1'))}] if len({v}) > 0 else {index})"

    def _float(self, scope: Scope, depth: int) -> str:
        a, b = self.expression(scope, "f", depth), self.expression(scope, "f", depth)
        return self.pick(
            (
                f"({a} + {b})",
                f"({a} - {b})",
                f"({a} * 0.5)",
                f"({a} / {self.pick(('2.0', '-4.0', b if self.needed else '0.3'))})",
                f"min({a}, {b})",
                f"float({self.expression(scope, 'i', depth)})",
                f"({self.expression(scope, 'i', depth)} * 0.25)",
                f"({a} if {self.expression(scope, 'b', depth)} else {b})",
            )
        )

    def _bool(self, scope: Scope, depth: int) -> str:
        type = self.pick(("i", "f"))
        a, b = self.expression(scope, type, depth), self.expression(scope, type, depth)
        p, q = self.expression(scope, "b", depth), self.expression(scope, "b", depth)
        return self.pick(
            (
                f"({a} {self.pick(('<', '<=', '>', '>=', '==', '!='))} {b})",
                f"({p} and {q})",
                f"({p} or {q})",
                f"(not {p})",
                f"({self.expression(scope, 'i', depth)} in {self.variable(scope, 'v')})",
                f"bool(({self.variable(scope, 't')} > {self.pick(('0.0', '1.0'))}).any())",
            )
        )

    def _tensor(self, scope: Scope, depth: int) -> str:
        a, b = self.expression(scope, "t", depth), self.expression(scope, "t", depth)
        return self.pick(
            (
                f"({a} + {b})",
                f"({a} - {b})",
                f"torch.tanh({a} * {b})",
                f"torch.relu({a})",
                f"({a} + {self.expression(scope, 'i', depth)})",
                f"({a} * {self.pick(('0.5', '-1.5'))})",
                f"torch.where({a} > 0.0, {a}, {b})",
                f"{self.variable(scope, 'w')}[{self.pick(('0', '-1'))}]",
                f"({a} if {self.expression(scope, 'b', depth)} else {b})",
                f"torch.full([2], {self.expression(scope, 'f', depth)})",
                f"torch.stack([{a}, {b}])[{self.pick(('0', '1', ':, 1'))}]",
            )
        )

    def _ints(self, scope: Scope, depth: int) -> str:
        v = self.variable(scope, "v")
        name = f"c{self.new()}"
        return self.pick(
            (
                f"[{self.expression(scope, 'i', depth)}, {self.expression(scope, 'i', depth)}]",
                f"{v}[{self.pick(('1:', ':2', '-2:', '::2', ':'))}]",
                f"({v} + {self.variable(scope, 'v')})[:6]",
                f"[({name} * 3 + {self.expression(scope, 'i', depth)}) % 97 for {name} in {v}]",
                f"sorted({v})",
                f"list(range({self.number(0, 4)}))",
            )
        )

    def _tensors(self, scope: Scope, depth: int) -> str:
        w = self.variable(scope, "w")
        name = f"c{self.new()}"
        return self.pick(
            (
                f"[{self.expression(scope, 't', depth)}, {self.expression(scope, 't', depth)}]",
                f"[{name} + {self.expression(scope, 'i', depth)} for {name} in {w}]",
                f"({w} + {self.variable(scope, 'w')})[:4]",
            )
        )

    # ------------------------------------------------------------------------------------------------------ statements

    def new(self) -> int:
        self.fresh += 1
        return self.fresh

    def block(self, scope: Scope, indent: int, depth: int) -> None:
        for _ in range(self.number(1, 3)):
            if self.budget <= 0:
                break
            self.budget -= 1
            self.statement(scope, indent, depth)
        self.put(indent, f"i0 = i0 + {self.number(0, 2)}")

    def put(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def statement(self, scope: Scope, indent: int, depth: int) -> None:
        kinds = self.simple_statements
        if depth > 0:
            kinds += ("branch", "branch", "for_range", "for_list", "while_loop", "jump")
        getattr(self, "_" + self.pick(kinds))(scope, indent, depth)

    def _target(self, scope: Scope, type: str) -> str:
        """A variable to assign to, an old one or a new one; in scope once the right side is written."""
        if self.number(0, 2):
            return self.variable(scope, type)
        return f"{type}{self.new()}"

    def _assign(self, scope: Scope, indent: int, depth: int) -> None:
        type = self.pick(tuple(self.writers))
        value = self.expression(scope, type)
        name = self._target(scope, type)
        self.put(indent, f"{name} = {self._bounded(type, value)}")
        if name not in scope.variables[type]:
            scope.variables[type].append(name)

    @staticmethod
    def _bounded(type: str, value: str) -> str:
        return f"({value}) % 997" if type == "i" else f"torch.tanh({value})" if type == "t" else value

    def _augment(self, scope: Scope, indent: int, depth: int) -> None:
        type = self.pick(("i", "f", "t"))
        name = self.variable(scope, type)
        operator = self.pick(("+=", "-="))
        self.put(indent, f"{name} {operator} {self.expression(scope, type, 1)}")
        if type == "i":
            self.put(indent, f"{name} = {name} % 997")

    def _unpack(self, scope: Scope, indent: int, depth: int) -> None:
        types = [self.pick(("i", "f", "t", "b")) for _ in range(2)]
        values = [self._bounded(type, self.expression(scope, type, 1)) for type in types]
        names = [self._target(scope, type) for type in types]
        if names[0] == names[1]:
            names[1] = f"{types[1]}{self.new()}"
        self.put(indent, f"{names[0]}, {names[1]} = {values[0]}, {values[1]}")
        for type, name in zip(types, names, strict=True):
            if name not in scope.variables[type]:
                scope.variables[type].append(name)

    def _mutate(self, scope: Scope, indent: int, depth: int) -> None:
        name = self.variable(scope, "v")
        value = f"({self.expression(scope, 'i', 1)}) % 97"
        if scope.lists_frozen:
            self.put(indent, f"{self.variable(scope, 't')}.add_({self.pick(('0.5', '-1.0'))})")
            return
        self.put(
            indent,
            self.pick(
                (
                    f"{name}.append({value})",
                    f"{name}.insert(0, {value})",
                    f"{name}.extend([{value}])",
                    f"{name}.reverse()",
                )
            ),
        )

    def _leave(self, scope: Scope, indent: int, depth: int) -> None:
        """A statement that leaves the function, under a condition, so that what follows is reached at times."""
        self.needed = True
        self.put(indent, f"if {self.expression(scope, 'b')}:")
        self.needed = False
        if self.number(0, 3) == 0:
            self.lines.pop()
            self.put(indent, f'assert {self.expression(scope, "b")}, "must hold"')
        elif self.number(0, 2):
            self.put(indent + 1, self.returning(scope))
        else:
            self.put(indent + 1, f'raise {self.pick(EXCEPTIONS)}("stop {self.number(0, 9)}")')

    def _jump(self, scope: Scope, indent: int, depth: int) -> None:
        if not scope.in_loop:
            self._leave(scope, indent, depth)
            return
        self.put(indent, f"if {self.expression(scope, 'b')}:")
        self.put(indent + 1, self.pick(("break", "continue")))

    def _branch(self, scope: Scope, indent: int, depth: int) -> None:
        self.put(indent, f"if {self.expression(scope, 'b')}:")
        self.block(scope.inner(), indent + 1, depth - 1)
        if self.number(0, 3) == 0:
            self.put(indent, f"elif {self.expression(scope, 'b')}:")
            self.block(scope.inner(), indent + 1, depth - 1)
        if self.number(0, 1):
            self.put(indent, "else:")
            self.block(scope.inner(), indent + 1, depth - 1)

    def _for_range(self, scope: Scope, indent: int, depth: int) -> None:
        name = f"i{self.new()}"
        limit = self.pick(("3", "4", f"{self.expression(scope, 'i', 1)} % 4", "1, 4", "3, 0, -1"))
        self.put(indent, f"for {name} in range({limit}):")
        self._loop_body(scope, indent, depth, "i", name)

    def _for_list(self, scope: Scope, indent: int, depth: int) -> None:
        type = self.pick(("i", "t"))
        name = f"{type}{self.new()}"
        values = self.variable(scope, "v" if type == "i" else "w")
        if self.number(0, 2) == 0:
            index = f"i{self.new()}"
            self.put(indent, f"for {index}, {name} in enumerate({values}):")
        else:
            self.put(indent, f"for {name} in {values}:")
        self._loop_body(scope, indent, depth, type, name, freeze=True)

    def _loop_body(self, scope: Scope, indent: int, depth: int, type: str, name: str, freeze: bool = False) -> None:
        inner = scope.inner(loop=True, freeze=freeze)
        inner.variables[type].append(name)
        self.block(inner, indent + 1, depth - 1)

    def _while_loop(self, scope: Scope, indent: int, depth: int) -> None:
        fuel = f"k{self.new()}"
        self.put(indent, f"{fuel} = {self.number(1, 4)}")
        self.put(indent, f"while {fuel} > 0 and {self.expression(scope, 'b')}:")
        self.put(indent + 1, f"{fuel} -= 1")
        self.block(scope.inner(loop=True), indent + 1, depth - 1)

    def returning(self, scope: Scope) -> str:
        self.needed = True
        text = "return " + ", ".join(self.expression(scope, type, 1) for type in self.returns)
        self.needed = False
        return text


@st.composite
def programs(draw: Draw) -> str:
    """The text of a module with one function, ``f``, that takes :data:`PARAMETERS`."""
    writer = Writer(draw, draw(st.sampled_from(RETURNS)))  # type: ignore[arg-type]
    variables: dict[str, list[str]] = {}
    for name in PARAMETERS:
        variables.setdefault(name[0], []).append(name)
    scope = Scope(variables)
    for _ in range(writer.number(1, 5)):
        writer.statement(scope, 1, 3)
    writer.put(1, writer.returning(scope))
    parameters = ", ".join(f"{name}: {TYPES[name[0]]}" for name in PARAMETERS)
    types = [TYPES[type] for type in writer.returns]
    result = types[0] if len(types) == 1 else f"Tuple[{', '.join(types)}]"
    head = "from typing import List, Tuple\n\nimport torch\nfrom torch import Tensor\n\n\n"
    return head + f"def f({parameters}) -> {result}:\n" + "\n".join(writer.lines) + "\n"
