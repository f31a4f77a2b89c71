"""Thirty rules, and programs that each fits, that differ, and that share memory in a way that matters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch  # noqa: F401 (the programs see it)

import rekindle
from rekindle.rewriting.matching import Match
from rekindle.transforms.rewriting.rewrite_rules import RewriteRule, rewrite


def compiled(parameters: str, body: str) -> rekindle.Function:
    """A function of a program text."""
    lines = "\n".join(f"    {line}" for line in body.split("\n"))
    return rekindle.CompilationUnit(f"def f({parameters}):\n{lines}\n").f  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class Case:
    """``patterns`` and ``replacement`` are bodies of functions of ``takes``. Programs are bodies of functions of
    ``x, y, w, n: int``; each that fits does so ``times`` times."""

    name: str
    takes: str
    patterns: list[str]
    replacement: Any
    fits: list[str]
    differs: list[str]
    aliasing: list[tuple[str, int]]
    """Programs that write to memory that is shared, and how often the rule may be applied to each."""
    times: int = 1
    options: dict[str, Any] = field(default_factory=dict)

    def rule(self) -> RewriteRule:
        patterns = [text if text.startswith("graph") else compiled(self.takes, text) for text in self.patterns]
        found = self.replacement
        if isinstance(found, str) and not found.startswith("graph"):
            found = compiled(self.takes, found)
        return rewrite(*patterns, name=self.name, **self.options)(found)


def _is(name: str, wanted: object) -> Callable[[Match], Any]:
    return lambda match: match.constant(name) == wanted or f"'{name}' is {match.constant(name)}"


def _product(build: Any, match: Match, x: Any, n: Any) -> Any:
    result = x
    for _ in range(match.constant("n") - 1):  # type: ignore[operator]
        result = result * x
    return result


CASES = [
    Case(
        "times one", "x", ["return x * 1"], "return x",
        ["return x * 1 + y", "if n > 1:\n    x = (x * 1).exp()\nreturn x"],
        ["return x * 2", "return x * 1.0"],
        [
            ("a = x * 1\na.add_(1)\nreturn a + x", 0),
            ("a = x * 1\nx.view(-1).add_(1)\nreturn a + x", 0),
            ("return x * 1", 0),
            ("t = x + y\nreturn t * 1", 1),
        ],
    ),
    Case(
        "negated twice", "x", ["return -(-x)"], "return x",
        ["return (-(-x)).exp()"], ["return -x.exp()", "return -(-n) * x"],
        [("a = -x\nv = a.view(-1)\nv.add_(1)\nreturn (-a).exp()", 0), ("return -(-x)", 0)],
    ),
    Case(
        "log of exp", "x", ["return torch.log(torch.exp(x))"], "return x",
        ["return y * x.exp().log()"], ["return y * x.exp().log2()"],
        [("e = x.exp()\ne[0].zero_()\nreturn e.log() + 1", 0), ("a = x.exp().log()\nreturn a.add_(1), x", 0)],
    ),
    Case(
        "doubled", "x", ["return x * 2"], "return x + x",
        ["return x * 2", "return 2 * x"], ["return x * 2.5", "return x / 2"],
        [("v = x.view(-1)\nv.add_(1)\na = x * 2\nv.add_(1)\nreturn a", 1)],
    ),
    Case(
        "factored out", "x, y, z", ["return x * y + x * z"], "return x * (y + z)",
        ["return x * y + x * w", "return y * x + w * x", "return x * y + w * x"],
        ["return x * y + y.exp() * w", "return x * y - x * w", "a = x * y\nreturn a + x * w + a"],
        [
            ("v = x.view(-1)\na = x * y\nv.add_(1)\nreturn a + x * w", 0),
            ("v = y.t()\na = x * y\nv.add_(1)\nreturn a + x * w", 0),
            ("a = x * y\nb = a.exp()\nb.add_(1)\nreturn x * w + a, b", 0),
            ("u = x.exp()\na = x * y\nu.add_(1)\nreturn (a + x * w) + u", 1),
        ],
    ),
    Case(
        "squared", "x", ["return x * x", "return torch.square(x)"], "return x.pow(2)",
        ["return x * x", "return y + torch.square(x.exp())"], ["return x * y", "return x * x.exp()"],
        [("a = x.detach()\nb = x * x\na.zero_()\nreturn b", 1)],
    ),
    Case(
        "minus itself", "x", ["return x - x"], "return torch.zeros_like(x)",
        ["return x - x", "t = x.exp()\nreturn t - t"], ["return x - y", "return x - x.clone()"],
        [("a = x - x\na.add_(1)\nreturn a", 1)],
    ),
    Case(
        "t twice", "x", ["return x.t().t()"], "return x",
        ["return x.t().t() + 1"], ["return x.t() + 1", "return x.t().exp().t()"],
        [("a = x.t().t()\na.add_(1)\nreturn a + x", 0), ("return x.t().t()", 0)],
    ),
    Case(
        "relu twice", "x", ["return torch.relu(torch.relu(x))"], "return torch.relu(x)",
        ["return x.relu().relu()"], ["return x.relu().exp().relu()"],
        [("a = x.relu()\na.view(-1).sub_(1)\nreturn a.relu()", 0)],
    ),
    Case(
        "clamped twice", "x, low: float", ["return torch.clamp(torch.clamp(x, min=low), min=low)"],
        "return torch.clamp(x, min=low)",
        ["return x.clamp(min=0.5).clamp(min=0.5)"],
        ["return x.clamp(min=0.5).clamp(min=0.25)", "return x.clamp(max=0.5).clamp(max=0.5)"],
        [("a = x.clamp(min=0.5)\na[:, 1].zero_()\nreturn a.clamp(min=0.5)", 0)],
    ),
    Case(
        "addmm", "x, w, b", ["return torch.mm(x, w) + b"], "return torch.addmm(b, x, w)",
        ["return torch.mm(x, w) + y", "return y + torch.mm(x, w)"], ["return torch.add(torch.mm(x, w), y, alpha=2)"],
        [("p = torch.mm(x, w)\nw.select(0, 0).zero_()\nreturn p + y", 0), ("w.zero_()\nreturn torch.mm(x, w) + y", 1)],
    ),
    Case(
        "optional bias", "x, w, b: Optional[Tensor]", ["return torch.relu(torch.nn.functional.linear(x, w, b))"],
        "return torch.clamp(torch.nn.functional.linear(x, w, b), min=0)",
        [
            "return torch.relu(torch.nn.functional.linear(x, w))",
            "return torch.relu(torch.nn.functional.linear(x, w, y[0]))",
        ],
        ["return torch.tanh(torch.nn.functional.linear(x, w))"],
        [("a = torch.nn.functional.linear(x, w)\nw.zero_()\nreturn a.relu()", 0)],
    ),
    Case(
        "smallest and largest", "x", ["return x.amin(1), x.amax(1)"],
        "a, b = torch.aminmax(x, dim=1)\nreturn a, b",
        ["a = x.amin(1)\nb = x.amax(1)\nreturn a + b", "b = x.amax(1)\nc = b + 1\nreturn c + x.amin(1)"],
        ["return x.amin(1) + y.amax(1)", "return x.amin(1) + x.amax(0)"],
        [("a = x.amin(1)\nx.view(-1).add_(1)\nreturn a + x.amax(1)", 0)],
    ),
    Case(
        "a result that another is made of", "x, y", ["return x + 1, y * 2"], "return x - -1, y + y",
        ["return (x + 1) * (y * 2)", "a = y * 2\nreturn (x + 1) * a"],
        ["return (x + 1) * 2", "return (x + 1) * 2 + y", "a = x + 1\nreturn a.exp() * 2"],
        [
            ("a = x + 1\ny.zero_()\nreturn a + y * 2", 0),
            ("a = y * 2\ny.add_(1)\nreturn a + (x + 1)", 0),
            ("t = y.exp()\na = x + 1\nt.add_(1)\nreturn a + y * 2 + t", 1),
        ],
    ),
    Case(
        "a result within another", "x, y", ["a = x * y\nreturn a, a + 1"], "b = x * y * 1\nreturn b, b + 1",
        ["a = x * y\nreturn a, a + 1"], ["return x * y, x + 1", "a = x * y\nreturn a, a + 2"],
        [("a = x * y\na.add_(1)\nreturn a, a + 1", 0)],
    ),
    Case(
        "a condition on a constant", "x, s: float", ["return x * s"], "return x / 2.0",
        ["return x * 0.5"], ["return x * 0.25", "return x * (0.5 * n)"],
        [("a = x * 0.5\nx.zero_()\nreturn a", 1)],
        options={"when": _is("s", 0.5)},
    ),
    Case(
        "a list", "x, shape: List[int]", ["return torch.relu(x.reshape(shape))"], "return torch.relu(x).reshape(shape)",
        ["return x.reshape([4, 4]).relu()", "return x.reshape([n, 8]).relu()"], ["return x.view([4, 4]).relu()"],
        [
            ("r = x.reshape([16])\nx.add_(1)\nreturn r.relu()", 0),
            ("r = x.reshape([16])\nr.add_(1)\nreturn r.relu(), x", 0),
        ],
    ),
    Case(
        "numbers", "n: int", ["return n * 2"], "return n + n",
        ["return x + n * 2", "return x + 2 * n"], ["return x + n * 3", "return x * 2"],
        [("x.add_(n * 2)\nreturn x", 1)],
    ),
    Case(
        "softmax by hand", "x", ["e = torch.exp(x)\nreturn e / e.sum(-1, keepdim=True)"], "return torch.softmax(x, -1)",
        ["e = x.exp()\nreturn e / e.sum(-1, keepdim=True)"],
        ["return x.exp() / y.exp().sum(-1, keepdim=True)", "e = x.exp()\nreturn e / e.sum(0, keepdim=True)"],
        [("e = x.exp()\nv = e.t()\nv.add_(1)\nreturn e / e.sum(-1, keepdim=True)", 0)],
    ),
    Case(
        "in place", "x, y", ["t = x + y\nreturn t.relu_()"], "return torch.relu(x + y)",
        ["return (x + y).relu_()"], ["return (x - y).relu_()", "t = x + y\nt.relu_()\nreturn t"],
        [("t = x + y\nu = t.exp()\nreturn t.relu_() + u", 0), ("t = x + y\nx.add_(1)\nreturn t.relu_()", 0)],
    ),
    Case(
        "written to by both", "x, y", ["return x.add_(y).add_(y)"], "return x.add_(y, alpha=2)",
        ["x.add_(y).add_(y)\nreturn x.exp()", "return x.clone().add_(y).add_(y)"],
        ["return x.add_(y).add_(w)", "x.add_(y)\nz = x.exp()\nreturn x.add_(y) + z"],
        [
            ("a = x.add_(y)\ny.view(-1).zero_()\nreturn a.add_(y)", 0),
            ("v = x[0]\na = x.add_(y)\nv.zero_()\nreturn a.add_(y)", 0),
        ],
        options={"shares_alike": True},
    ),
    Case(
        "modes", "x, y, z", ["return x * y + z"], "return torch.addcmul(z, x, y)",
        ["return x * y + w", "with torch.no_grad():\n    r = x * y + w\nreturn r"],
        ["with torch.no_grad():\n    a = x * y\nreturn a + w"],
        [
            ("a = x * y\nw.select(0, 1).zero_()\nreturn a + w", 0),
            ("a = x * y\ny.select(0, 1).zero_()\nreturn a + w", 0),
            ("a = x * y\nb = y.exp()\nb.zero_()\nreturn a + w", 1),
        ],
    ),
    Case(
        "within blocks", "x, y", ["return torch.tanh(x) * y"], "return y * torch.tanh(x)",
        ["if n > 1:\n    x = x.tanh() * y\nreturn x", "for i in range(n):\n    x = x.tanh() * y\nreturn x"],
        ["a = x.tanh()\nif n > 1:\n    a = a * y\nreturn a"],
        [("for i in range(n):\n    a = x.tanh()\n    x.add_(1)\n    y = a * y\nreturn y", 0)],
        options={"when": lambda match: match.node.inputs[0].node.kind == "aten::tanh"},
    ),
    Case(
        "built", "x, n: int", ["return x ** n"], _product,
        ["return x ** 3 + 1"], ["return x ** n", "return x ** 7", "return x ** 2.0"],
        [("a = x ** 3\nx.zero_()\nreturn a", 1), ("a = x ** 1\na.add_(1)\nreturn a + x", 0)],
        options={"builds": True, "when": lambda match: match.constant("n", 9) <= 4 or "the power is not small"},
    ),
    Case(
        "again and again", "x", ["return x + 0"], "return x",
        ["return (x + 0 + 0 + 0).exp()"], ["return x + 1", "return x - 0"],
        [("return (x + 0).add_(1)", 0)],
        times=3,
    ),
    Case(
        "cat of one", "x, dim: int", ["return torch.cat([x], dim)"], "return x",
        ["return torch.cat([x], 0) * 2"], ["return torch.cat([x, y], 0) * 2"],
        [
            ("c = torch.cat([x], 0)\nx.add_(1)\nreturn c * 2", 0),
            ("c = torch.cat([x], 0)\nc[0].zero_()\nreturn x * c", 0),
        ],
    ),
    Case(
        "squeezed again", "x, dim: int", ["return x.unsqueeze(dim).squeeze(dim)"], "return x",
        ["return x.unsqueeze(0).squeeze(0).exp()"], ["return x.unsqueeze(0).squeeze(1).exp()"],
        [("s = x.unsqueeze(0).squeeze(0)\ns.zero_()\nreturn x * s", 0)],
    ),
    Case(
        "lists that change", "x, y", ["return torch.stack([x, y]).sum(0)"], "return x + y",
        ["return torch.stack([x, y]).sum(0)"], ["return torch.stack([x, y, w]).sum(0)"],
        [
            ("t = x.reshape([16])\nt.add_(1)\nreturn torch.stack([t, t.exp()]).sum(0)", 1),
            ("l = [x, y]\nl[0] = y\nreturn torch.stack(l).sum(0)", 0),
            ("l = [x, y]\nl.append(w)\nreturn torch.stack(l).sum(0)", 0),
        ],
    ),
    Case(
        "a cast to its own dtype", "x", ["return x.to(x.dtype)"], "return x",
        ["return x.to(x.dtype) + 1", "return x.to(x.dtype)"], ["return x.to(y.dtype) + 1"],
        [("a = x.to(x.dtype)\na.add_(1)\nreturn x * a", 1)],
        options={"shares_alike": True},
    ),
    Case(
        "IR text with any number", "", ["""graph(%x : Tensor, %n : Scalar):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::add(%x, %n, %one)
  %b : Tensor = aten::add(%a, %n, %one)
  return (%b)
"""], """graph(%x : Tensor, %n : Scalar):
  %two : int = prim::Constant[value=2]()
  %b : Tensor = aten::add(%x, %n, %two)
  return (%b)
""",
        ["return x + n + n", "return x + 0.5 + 0.5"], ["return x + n + 0.5", "return x + y + y"],
        [("a = x + n\na.view(-1).zero_()\nreturn a + n", 0)],
    ),
    Case(
        "attributes that are captured", "", ["""graph(%x : Tensor):
  %r : Tensor = aten::relu(%x)
  %a : Tensor, %b : Tensor = prim::ConstantChunk[chunks=2, dim="$dim"](%r)
  return (%a, %b)
"""], """graph(%x : Tensor):
  %c : Tensor, %d : Tensor = prim::ConstantChunk[chunks=2, dim="$dim"](%x)
  %a : Tensor = aten::relu(%c)
  %b : Tensor = aten::relu(%d)
  return (%a, %b)
""",
        ["a, b = torch.chunk(x.relu(), 2, 1)\nreturn a * b"], ["a, b = torch.chunk(x.exp(), 2, 1)\nreturn a * b"],
        [
            ("r = x.relu()\na, b = torch.chunk(r, 2, 1)\nr.add_(1)\nreturn a * b", 0),
            ("a, b = torch.chunk(x.relu(), 2, 1)\na.add_(1)\nreturn a * b", 0),
        ],
    ),
]  # fmt: skip
