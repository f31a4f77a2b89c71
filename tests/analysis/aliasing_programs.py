"""Random programs that write through views, containers and objects, as source text.

A variable's first letter is its type: t Tensor of shape [2, 2], r Tensor of shape [2], w List[Tensor], n
List[List[Tensor]], d Dict[str, Tensor], p Tuple[Tensor, List[Tensor]], o Optional[Tensor], c Box, f Future[Tensor].
Lists and dicts are never empty, so that nothing fails, and every shape fits.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

TYPES = {
    "t": "Tensor",
    "r": "Tensor",
    "w": "List[Tensor]",
    "n": "List[List[Tensor]]",
    "d": "Dict[str, Tensor]",
    "p": "Tuple[Tensor, List[Tensor]]",
    "o": "Optional[Tensor]",
    "c": "Box",
    "f": "Future[Tensor]",
}
PARAMETERS = ("b0", "t0", "t1", "r0", "w0", "w1", "n0", "d0", "c0", "c1")

PRELUDE = """\
from typing import Dict, List, Optional, Tuple

import torch
from torch import Tensor


class Box:
    def __init__(self, t: Tensor, w: List[Tensor]):
        self.t = t
        self.w = w

    def swap(self) -> Tensor:
        old = self.t
        self.t = self.w[0]
        self.w[0] = old
        return old


def write(t: Tensor, w: List[Tensor]) -> Tensor:
    w[0].add_(t.clone())
    w.append(t)
    return w[0]


def choose(t: Tensor, u: Tensor) -> Tensor:
    return t if bool(t.sum() > 0.0) else u


def make(t: Tensor) -> Tensor:
    return t.neg().relu_()


"""

EXPRESSIONS: dict[str, tuple[str, ...]] = {
    "t": (
        *("t + t", "torch.tanh(t)", "torch.matmul(t, t)", "torch.relu(t)", "torch.cat(w)[0:2]", "torch.stack([r, r])"),
        *("t.t()", "t.view(2, 2)", "t[:]", "t.detach()", "t.contiguous()", "t.transpose(0, 1)", "t.reshape(2, 2)"),
        *("t.type_as(t)", "t.to(torch.float32)", "torch.nn.functional.dropout(t, 0.5, False)", "t.clone()"),
        *("t.narrow(0, 0, 2)", "t.split(2)[0]", "t.chunk(1)[0]", "torch.atleast_2d(t)", "t.expand(2, 2)"),
        *("torch.einsum('ij->ji', t)", "torch.where(t > 0.0, t, t)", "torch.broadcast_tensors(t, t)[1]"),
        *("w[0]", "w[-1]", "n[0][0]", "d['a']", "p[0]", "p[1][0]", "c.t", "c.w[0]", "(t if b else t)", "c.swap()"),
        *("o if o is not None else t", "write(t, w)", "choose(t, t)", "make(t)", "d.setdefault('b', t)"),
        *("torch.jit.wait(f)", "t.add_(t.clone())", "t.relu_()", "n[-1][-1]"),
    ),
    "r": ("t[0]", "t[1]", "t.diagonal()", "t.unbind()[1]", "t.select(1, 0)", "r + r", "t.sum(0)", "r", "c.t[0]"),
    "w": (
        *("[t]", "[t, t]", "list(w)", "w + w", "w[0:1]", "n[0]", "p[1]", "c.w", "list(t.split(2))", "[t.t(), t]"),
        *("list(d.values())", "w[:]", "[x + 1.0 for x in w]", "[x for x in w]", "(w if b else w)", "w"),
    ),
    "n": ("[w]", "[w, w]", "list(n)", "n + [w]", "n", "[[t]]"),
    "d": ("{'a': t}", "{'a': t, 'b': t}", "dict(d)", "d", "d.copy()"),
    "p": ("(t, w)", "p", "(p[0], n[0])", "(c.t, c.w)", "(p if b else p)"),
    "o": ("d.get('b')", "o", "(o if b else None)"),
    "c": ("Box(t, w)", "c", "(c if b else c)"),
    "f": ("torch.jit.fork(write, t, w)", "torch.jit.fork(choose, t, t)", "torch.jit.fork(make, t)", "f"),
}
"""What stands for a value of each type; a letter stands for a variable of its type."""

WRITES = (
    *(
        "t.add_(t.clone())",
        "t.mul_(0.5)",
        "t.copy_(t.clone())",
        "t[0] = r.clone()",
        "t.zero_()",
        "t += t.clone()",
        "torch.add(t.clone(), 1.0, out=t)",
    ),
    *(
        "r.add_(r.clone())",
        "t.t().add_(t.clone())",
        "t[0].mul_(2.0)",
        "w[0].add_(t.clone())",
        "d['a'].sub_(t.clone())",
        "r.copy_(t[1].clone())",
    ),
    *("w.append(t)", "w[0] = t", "w.insert(0, t)", "w.extend(w)", "w.reverse()", "w += [t]", "n.append(w)"),
    *("n[0] = w", "n[0].append(t)", "n[0][0] = t", "d['a'] = t", "d['b'] = t", "d.update(d)", "p[1].append(t)"),
    *(
        "c.t = t",
        "c.w = w",
        "c.w.append(t)",
        "c.t.add_(t.clone())",
        "c.swap()",
        "write(t, w)",
        "for y in n:\n    y.append(t)\n    y.pop(0)",
    ),
    *("for x in w:\n    x.add_(1.0)", "w[-1] = w[0] + 1.0", "o = None"),
)


@dataclass(slots=True)
class _Writer:
    random: random.Random
    lines: list[str] = field(default_factory=list)
    fresh: int = 2
    budget: int = 22

    def pick(self, options: tuple[str, ...] | list[str]) -> str:
        return self.random.choice(options)

    def number(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def fill(self, template: str, scope: dict[str, list[str]]) -> str:
        """``template`` with every letter that stands alone replaced by a variable of that type."""
        found = ""
        for index, char in enumerate(template):
            before = template[index - 1] if index else " "
            after = template[index + 1] if index + 1 < len(template) else " "
            stands_alone = not (before.isalnum() or before in "_.'") and not (after.isalnum() or after in "_'")
            found += self.pick(scope[char]) if char in scope and stands_alone else char
        return found

    def put(self, indent: int, text: str) -> None:
        self.lines += ["    " * indent + line for line in text.split("\n")]

    def block(self, scope: dict[str, list[str]], indent: int, depth: int) -> None:
        inner = {type: list(names) for type, names in scope.items()}
        for _ in range(self.number(1, 4)):
            if self.budget > 0:
                self.budget -= 1
                self.statement(inner, indent, depth)
        self.put(indent, "pass")

    def statement(self, scope: dict[str, list[str]], indent: int, depth: int) -> None:
        kind = self.number(0, 9)
        if kind <= 4 or (kind >= 8 and depth == 0):
            type = self.pick(tuple(TYPES))
            value = self.fill(self.pick(EXPRESSIONS[type]), scope)
            name = self.pick(scope[type])
            if self.number(0, 1):
                self.fresh += 1
                name = f"{type}{self.fresh}"
            is_new = name not in scope[type]
            self.put(indent, f"{name}: Optional[Tensor] = {value}" if type == "o" and is_new else f"{name} = {value}")
            if is_new:
                scope[type].append(name)
        elif kind <= 7:
            self.put(indent, self.fill(self.pick(WRITES), scope))
        elif kind == 8:
            self.put(indent, f"if {self.pick(['b0', 'not b0', 'bool(t0.sum() > 0.0)'])}:")
            self.block(scope, indent + 1, depth - 1)
            if self.number(0, 1):
                self.put(indent, "else:")
                self.block(scope, indent + 1, depth - 1)
        else:
            self.put(indent, f"for k{self.fresh} in range({self.number(1, 3)}):")
            self.block(scope, indent + 1, depth - 1)


def aliasing_program(seed: int) -> str:
    """The text of a module with one function, ``f``, that takes :data:`PARAMETERS`."""
    writer = _Writer(random.Random(seed))
    scope: dict[str, list[str]] = {}
    for name in PARAMETERS:
        scope.setdefault(name[0], []).append(name)
    scope["p"], scope["o"], scope["f"] = ["p0"], ["o0"], ["f0"]
    writer.put(1, "p0 = (t0, w1)\no0 = d0.get('c')\nf0 = torch.jit.fork(make, t0)")
    for _ in range(writer.number(2, 8)):
        writer.statement(scope, 1, 2)
    names = [writer.pick(scope[type]) for type in ("t", "w", "d", "c")]
    writer.put(1, f"return {', '.join(names)}")
    types = {**TYPES, "b": "bool"}
    parameters = ", ".join(f"{name}: {types[name[0]]}" for name in PARAMETERS)
    result = ", ".join(types[name[0]] for name in names)
    return PRELUDE + f"def f({parameters}) -> Tuple[{result}]:\n" + "\n".join(writer.lines) + "\n"
