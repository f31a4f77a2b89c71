"""A strategy of programs that write to tensors under many names: views, elements of containers, attributes of a module.

Beside the variables of :mod:`tests.property.programs`, of which t are vectors of four here, and w holds such: m is a
matrix of four by four, d Dict[str, Tensor], p Tuple[Tensor, Tensor]. All may be one memory: rows, columns and diagonals
of matrices, what is in containers, what the caller holds, what the module keeps. ``self.t``, ``self.m``, ``self.w`` …
are variables as others are, and ``self.helper`` is a method that writes to its arguments too.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from tests.property.programs import Draw, Scope, Writer

TYPES = {
    "i": "int",
    "f": "float",
    "b": "bool",
    "t": "Tensor",
    "m": "Tensor",
    "v": "List[int]",
    "w": "List[Tensor]",
    "d": "Dict[str, Tensor]",
    "p": "Tuple[Tensor, Tensor]",
}
PARAMETERS = ("i0", "f0", "b0", "t0", "t1", "m0", "m1", "v0", "w0", "d0")
ATTRIBUTES = ("self.i", "self.t", "self.m", "self.w")
RETURNS = ("t", "m", "w", "tm", "tdw", "itm", "pt", "wm")
SLICES = ("0", "-1", "1:3", "::2", ":", "2:")
MOST_TENSORS = 8

HEAD = """\
from typing import Dict, List, Tuple

import torch
from torch import Tensor, nn


class Program(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.i = 1
        self.register_buffer("t", torch.tensor([0.5, -1.0, 2.0, 0.0]))
        self.register_buffer("m", torch.linspace(-1.0, 1.0, 16).view(4, 4))
        self.w: List[Tensor] = [torch.tensor([1.0, 2.0, -1.0, 0.5])]

    @torch.jit.export
    def kept(self) -> Tuple[int, Tensor, Tensor, List[Tensor]]:
        return self.i, self.t, self.m, self.w

"""


@dataclass(slots=True)
class ViewWriter(Writer):
    """Writes the bodies of ``forward`` and of ``helper``; ``has_helper`` is whether ``helper`` can be called."""

    has_helper: bool = False
    simple_statements: tuple[str, ...] = (
        "assign",
        "view",
        "view",
        "write",
        "write",
        "write",
        "contain",
        "contain",
        "augment",
        "mutate",
        "leave",
        "call_helper",
    )
    writers: dict[str, str] = field(
        default_factory=lambda: {
            "i": "_int",
            "f": "_float",
            "b": "_bool",
            "t": "_tensor",
            "m": "_matrix",
            "v": "_ints",
            "w": "_tensors",
            "d": "_dict",
            "p": "_pair",
        }
    )

    # ------------------------------------------------------------------------------------------------------ expressions

    def leaf(self, scope: Scope, type: str) -> str:
        return self.variable(scope, type) if type in "mdp" else Writer.leaf(self, scope, type)

    @staticmethod
    def _bounded(type: str, value: str) -> str:
        return f"({value}) % 997" if type == "i" else value

    def view(self, scope: Scope) -> str:
        """A vector that is a part of something."""
        m, w, d = self.variable(scope, "m"), self.variable(scope, "w"), self.variable(scope, "d")
        number = self.number(0, 3)
        return self.pick(
            (
                f"{m}[{number}]",
                f"{m}[:, {number}]",
                f"{m}.select({self.number(0, 1)}, {number})",
                f"{m}.t()[{number}]",
                f"{m}.diagonal()",
                f"{m}.view(-1)[{number}:{number + 4}]" if m == "m0" else f"{m}.unbind(1)[{number}]",
                f"{m}.chunk(2)[{number % 2}][0]",
                f"{m}.split(1, 1)[{number}].squeeze(1)",
                f"{w}[{self.pick(('0', '-1'))}]",
                f'{d}["a"]',
                f"{self.variable(scope, 'p')}[{number % 2}]",
                f"{self.variable(scope, 't')}.view(2, 2).t().t().view(-1)",
                f"{self.variable(scope, 't')}.unsqueeze(0).expand(2, 4)[1]",
                f"{self.variable(scope, 't')}[:]",
            )
        )

    def _tensor(self, scope: Scope, depth: int) -> str:
        a, b = self.expression(scope, "t", depth), self.expression(scope, "t", depth)
        return self.pick(
            (
                self.view(scope),
                f"torch.tanh({a} + {b})",
                f"torch.tanh({a} - {b})",
                f"torch.relu({a})",
                f"torch.tanh({a} + {self.expression(scope, 'f', depth)})",
                f"{a}.clone()",
                f"{a}.contiguous()",
                f"({a} * 0.5)",
                f"torch.where({a} > 0.0, {a}, {b})",
                f"({a} if {self.expression(scope, 'b', depth)} else {b})",
                f"torch.tanh({self.expression(scope, 'm', depth)}.sum({self.pick(('0', '1'))}))",
                f"torch.tanh(torch.mv({self.expression(scope, 'm', depth)}, {a}))",
            )
        )

    def _matrix(self, scope: Scope, depth: int) -> str:
        a, b = self.expression(scope, "m", depth), self.expression(scope, "m", depth)
        t = self.expression(scope, "t", depth)
        return self.pick(
            (
                f"{a}.t()",
                f"torch.tanh({a} + {t})",
                f"torch.tanh({a} * {b})",
                f"torch.tanh(torch.mm({a}, {b}))",
                f"{t}.expand(4, 4)",
                f"{t}.unsqueeze(1).expand(4, 4)",
                f"torch.stack([{t}, {self.variable(scope, 't')}, {self.view(scope)}, {t}])",
                f"{a}.clone()",
                f"torch.cat([{a}[2:], {b}[:2]])",
                f"({a} if {self.expression(scope, 'b', depth)} else {b})",
            )
        )

    def _tensors(self, scope: Scope, depth: int) -> str:
        w = self.variable(scope, "w")
        name = f"c{self.new()}"
        return self.pick(
            (
                w,
                f"[{self.expression(scope, 't', depth)}, {self.view(scope)}]",
                f"[{name} + 1.0 for {name} in {w}]",
                f"[{name} for {name} in {w}][:4]",
                f"({w} + {self.variable(scope, 'w')})[:4]",
                f"list({self.variable(scope, 'm')}.unbind({self.number(0, 1)}))",
            )
        )

    def _dict(self, scope: Scope, depth: int) -> str:
        d = self.variable(scope, "d")
        return self.pick((d, f'{{"a": {self.expression(scope, "t", depth)}, "b": {self.view(scope)}}}'))

    def _pair(self, scope: Scope, depth: int) -> str:
        return f"({self.expression(scope, 't', depth)}, {self.expression(scope, 't', depth)})"

    # ------------------------------------------------------------------------------------------------------- statements

    def _put_assignment(self, scope: Scope, indent: int, type: str, value: str) -> None:
        name = self._target(scope, type)
        self.put(indent, f"{name} = {value}")
        if name not in scope.variables[type]:
            scope.variables[type].append(name)

    def _view(self, scope: Scope, indent: int, depth: int) -> None:
        """Another name for a part of something, or for all of it."""
        if self.number(0, 1):
            self._put_assignment(scope, indent, "t", self.view(scope))
        else:
            m = self.variable(scope, "m")
            self._put_assignment(scope, indent, "m", self.pick((m, f"{m}.t()", f"{m}[:]", f"{m}.transpose(0, 1)")))

    def _write(self, scope: Scope, indent: int, depth: int) -> None:
        t, m = self.variable(scope, "t"), self.variable(scope, "m")
        value, part = self.expression(scope, "t", 1), self.pick(SLICES)
        self.put(
            indent,
            self.pick(
                (
                    f"{t}.add_({value})",
                    f"{t}.mul_(0.5)",
                    f"{t}.copy_({value})",
                    f"{t}[{part}] = {self.expression(scope, 'f', 1)}",
                    f"{t}[{part}] *= 0.5",
                    f"{t}[:2] = {t}[2:]",
                    f"{t}.tanh_()",
                    f"{t}.masked_fill_({value} > 0.0, 0.25)",
                    f"torch.add({value}, {self.variable(scope, 't')}, out={t})",
                    f"{m}[{part}] = {value}.clone()",  # whose elements are written first is not said where they overlap
                    f"{m}[{part}].mul_(0.5)",
                    f"{m}[:, {part}] -= 1.0",
                    f"{m}[:, {self.number(0, 3)}].copy_({value})",
                    f"{m}.t()[{part}].fill_({self.pick(('0.5', '-1.0'))})",
                    f"{m}.diagonal().add_({value})",
                    f"{m}.chunk(2, {self.number(0, 1)})[{self.number(0, 1)}].neg_()",
                    f"{m}.tanh_()",
                    f"{m}[{self.variable(scope, 't')} > 0.0] = 0.75",
                    f"{self.view(scope)}.add_({self.pick(('0.5', '-1.0', value))})",
                )
            ),
        )

    def _contain(self, scope: Scope, indent: int, depth: int) -> None:
        """A container is changed, or what is in it is written to."""
        w, d = self.variable(scope, "w"), self.variable(scope, "d")
        value = self.expression(scope, "t", 1)
        options = [
            f"{w}[{self.pick(('0', '-1'))}] = {value}",
            f"{w}[0].mul_(0.5)",
            f'{d}["{self.pick(("a", "b"))}"] = {value}',
            f'{d}["a"].add_({value})',
            f"{d}.update({self.variable(scope, 'd')})",
            f"{self.variable(scope, 'p')}[{self.number(0, 1)}].add_(0.5)",
        ]
        if not scope.lists_frozen:
            options += [f"{w}.reverse()"]
            if not scope.in_loop:
                options += [f"{w}.append({value})", f"{w}.insert(0, {self.view(scope)})"]
        self.put(indent, self.pick(tuple(options)))
        if not scope.lists_frozen and self.number(0, 3) == 0:
            self.put(indent, f"if len({w}) > 1:")
            self.put(indent + 1, self.pick((f"{w}.pop()", f"{w}.pop(0).neg_()", f"del {w}[0]")))

    def _call_helper(self, scope: Scope, indent: int, depth: int) -> None:
        if not self.has_helper:
            self._write(scope, indent, depth)
            return
        names = [self.variable(scope, type) for type in "tmw"]
        if scope.lists_frozen:
            names[2] = f"list({names[2]})"
        self._put_assignment(scope, indent, "t", f"self.helper({', '.join(names)})")


@st.composite
def view_programs(draw: Draw) -> str:
    """The text of a module with a class ``Program`` of modules, whose ``forward`` takes :data:`PARAMETERS`."""
    helper = ViewWriter(draw, "t", fresh=20, budget=4)
    names = {"i": ["self.i"], "t": ["t0", "self.t"], "m": ["m0", "self.m"], "w": ["w0", "self.w"]}
    for line in ("i0 = 1", "f0 = 0.5", "b0 = True", "v0 = [1, 2]", 'd0 = {"a": t0, "b": m0[0]}', "p0 = (t0, m0[1])"):
        helper.put(2, line)
        names.setdefault(line[0], []).append(line[:2])
    method = _method(helper, "helper", ("t0", "m0", "w0"), Scope(names), 1)
    writer = ViewWriter(draw, draw(st.sampled_from(RETURNS)), has_helper=True)  # type: ignore[call-overload]
    variables: dict[str, list[str]] = {}
    for name in PARAMETERS:
        variables.setdefault(name[0], []).append(name)
    for name in ATTRIBUTES:
        variables[name[5]].append(name)
    variables["p"] = ["p0"]
    writer.put(2, "p0 = (t0, m0[1])")
    return HEAD + method + "\n" + _method(writer, "forward", PARAMETERS, Scope(variables), 3)


def _method(writer: ViewWriter, name: str, takes: tuple[str, ...], scope: Scope, depth: int) -> str:
    for _ in range(writer.number(1, 5)):
        writer.statement(scope, 2, depth)
    writer.put(2, writer.returning(scope))
    parameters = "".join(f", {each}: {TYPES[each[0]]}" for each in takes)
    types = [TYPES[type] for type in writer.returns]
    result = types[0] if len(types) == 1 else f"Tuple[{', '.join(types)}]"
    return f"    def {name}(self{parameters}) -> {result}:\n" + "\n".join(writer.lines) + "\n"
