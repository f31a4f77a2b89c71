"""Programs that ``torch.export.export`` itself exports: what they are made from, examples, other inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch._higher_order_ops.map import map as torch_map
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.export import Dim, ExportedProgram, export
from torch.nn import functional as F

from tests.importing.models import MODELS

Inputs = tuple[Any, ...]


@dataclass(slots=True)
class Program:
    """A module, an example of its arguments, and further ones. ``refused`` are arguments for which both raise, and
    ``shapes`` what :func:`torch.export.export` calls ``dynamic_shapes``. ``has_gradients`` is False where the exported
    program itself has none: PyTorch raises."""

    make: Callable[[], nn.Module]
    args: Inputs
    others: Sequence[Inputs] = ()
    refused: Sequence[Inputs] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    shapes: Any = None
    strict: bool = False
    decompose: bool = False
    has_gradients: bool = True

    def export(self) -> ExportedProgram:
        """The exported program."""
        torch.manual_seed(0)
        made = export(self.make(), self.args, dict(self.kwargs), dynamic_shapes=self.shapes, strict=self.strict)
        return made.run_decompositions() if self.decompose else made


def of(function: Callable[..., Any]) -> Callable[[], nn.Module]:
    """What makes a module of a function, with the function's own parameters."""

    def make() -> nn.Module:
        cls = type("Module", (nn.Module,), {"forward": staticmethod(function)})
        return cls()

    return make


def r(*sizes: int) -> Tensor:
    return torch.randn(*sizes)


ROWS = Dim("rows", min=2, max=16)
N = Dim("n")


class Pair(NamedTuple):
    first: Tensor
    second: Tensor


# ------------------------------------------------------------------------------------------------------- control flow


def cond_of_data(x: Tensor) -> Tensor:
    return torch.cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x - 1, (x,))


def cond_of_size(x: Tensor) -> Tensor:
    return torch.cond(x.shape[0] > 4, lambda x: x * 2, lambda x: x + 2, (x,))


def cond_nested(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    def inner(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return torch.cond(y.sum() > 0, lambda x, y: (x + y, y.exp()), lambda x, y: (x - y, y.cos()), (x, y))

    return torch.cond(x.sum() > 0, inner, lambda x, y: (x * y, y.clone()), (x, y))


class CondOfParameters(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.yes, self.no = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda x: self.yes(x), lambda x: self.no(x).relu(), (x,)) + x


def while_of_data(x: Tensor) -> tuple[Tensor, Tensor]:
    count, y = while_loop(
        lambda count, y: y.abs().sum() < 50, lambda count, y: (count + 1, y * 1.5 + 0.1), (torch.zeros(()), x)
    )
    return count, y


def while_of_ints(x: Tensor) -> Tensor:
    turns, y = while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, y + i), (0, x))
    return y * turns


def scan_of_sums(x: Tensor) -> tuple[Tensor, Tensor]:
    return scan(lambda carry, row: (carry + row, carry * row), torch.zeros(3), x)


class ScanCell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        def step(h: Tensor, row: Tensor) -> tuple[Tensor, Tensor]:
            h = torch.tanh(self.cell(torch.cat([h, row], -1)))
            return h, h.clone()

        return scan(step, torch.zeros(2, 3), x)[1]


def map_rows(x: Tensor, y: Tensor) -> Tensor:
    return torch_map(lambda row, y: row.sin() + y.sum(), x, y)


# ----------------------------------------------------------------------------------------------------- dynamic shapes


def reshaped(x: Tensor) -> Tensor:
    return x.reshape(x.shape[0] * 2, -1) + torch.arange(x.shape[0] * 2).unsqueeze(1)


def derived(x: Tensor, y: Tensor) -> Tensor:
    return x + y[1:]


def halved(x: Tensor) -> Tensor:
    return x.view(x.shape[0] // 2, 2, -1).mean(1)


def same_sizes(x: Tensor, y: Tensor) -> Tensor:
    return x @ y


def padded(x: Tensor) -> Tensor:
    return F.pad(x, (0, 8 - x.shape[1] % 8)).view(x.shape[0], -1, 8).amax(-1)


def of_an_int(x: Tensor, n: int) -> Tensor:
    return x[:n] * n


def unbacked(x: Tensor) -> Tensor:
    return x.nonzero().sum(0)


def item(x: Tensor) -> Tensor:
    n = x.item()
    torch._check(n >= 2)
    torch._check(n < 100)
    return torch.ones(n).cumsum(0)


def checked(x: Tensor) -> Tensor:
    torch._check(x.shape[0] % 3 == 0, lambda: "threes")
    return x.view(-1, 3)


# ----------------------------------------------------------------------------------------------- arguments and results


def nested(x: tuple[Tensor, list[Tensor]], more: dict[str, Tensor]) -> dict[str, Tensor]:
    first, (second, third) = x
    return {"a": first + second, "b": third * more["w"]}


def named(pair: Pair) -> tuple[Pair, Tensor]:
    return Pair(pair.second, pair.first + 1), pair.first


def keywords(x: Tensor, *, scale: Tensor, shift: Tensor) -> Tensor:
    return x * scale + shift


def constants(x: Tensor, n: int, f: float, flag: bool, mode: str, y: Tensor | None) -> Tensor:
    return (x * n + f) if flag and mode == "up" and y is None else x


def results(x: Tensor) -> tuple[Tensor, list[Tensor], int, None]:
    return x, [x + 1, x * 2], 3, None


# --------------------------------------------------------------------------------------------------------------- state


class Counts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.register_buffer("last", torch.zeros(3), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.last.copy_(x[0])
        return x * self.calls


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


def writes(x: Tensor) -> Tensor:
    x.add_(1)
    return x * 2


def writes_to_views(x: Tensor) -> Tensor:
    y = x.clone()
    y[:, 0] = 0
    y[1:].mul_(2)
    return y


class Shares(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.scale = torch.tensor([1.0, 2.0, 3.0])

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x)) * self.scale


class CalledTwice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])

    def forward(self, x: Tensor) -> Tensor:
        for layer in (*self.layers, self.layers[0]):
            x = layer(x).tanh()
        return x


class WithoutGradients(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            y = self.linear(x).softmax(-1)
        return self.linear(x) * y


# ------------------------------------------------------------------------------------------------------------ operators


def numbers(x: Tensor) -> Tensor:
    y = torch.where(x > 0, x, 0.5)
    return torch.maximum(y, torch.tensor(0.1)) + 2 * y // 0.3 + (3 - y) ** 2


def indexed(x: Tensor, i: Tensor) -> Tensor:
    return x[i, :2] + x[:, None].sum(1)[i][:, :2]


def pieces(x: Tensor) -> tuple[Tensor, Tensor]:
    a, b = x.split([1, 2], 1)
    values, _ = x.sort(-1)
    c, d = x.unbind(0)[:2]
    return a * b + values[:, :1], torch.stack([c, d]).flip(0)


def products(x: Tensor, y: Tensor) -> Tensor:
    return torch.einsum("bij,bjk->bik", x, y) + torch.baddbmm(x @ y, x, y, alpha=2)


def complexes(x: Tensor) -> Tensor:
    return torch.fft.irfft(torch.fft.rfft(x) * 2j, n=x.shape[-1])


def images(x: Tensor) -> Tensor:
    y = F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
    return F.avg_pool2d(F.pad(y, (1, 1, 1, 1), mode="reflect"), 2)


def conversions(x: Tensor) -> Tensor:
    return (x.to(torch.float64) + x.to(torch.int32)).to(x.dtype) + torch.full_like(x, 2)


PROGRAMS: dict[str, Program] = {
    "cond.data": Program(of(cond_of_data), (torch.ones(3),), [(-torch.ones(3),)]),
    "cond.size": Program(of(cond_of_size), (r(6, 2),), [(r(3, 2),)], shapes={"x": {0: ROWS}}),
    "cond.nested": Program(
        of(cond_nested), (torch.ones(2), torch.ones(2)), [(-torch.ones(2), r(2)), (torch.ones(2), -torch.ones(2))]
    ),
    "cond.parameters": Program(CondOfParameters, (torch.ones(2, 3),), [(-torch.ones(2, 3),)]),
    "while.data": Program(of(while_of_data), (r(4),), [(torch.ones(4) * 100,), (torch.ones(4),)]),
    "while.ints": Program(of(while_of_ints), (r(4),), [(r(4),)], has_gradients=False),
    "scan.sums": Program(of(scan_of_sums), (r(5, 3),), [(r(5, 3),)]),
    "scan.cell": Program(ScanCell, (r(4, 2, 3),), [(r(4, 2, 3),)]),
    "map.rows": Program(of(map_rows), (r(4, 3), r(2)), [(r(4, 3), r(2))]),
    "sizes.reshape": Program(
        of(reshaped), (r(3, 4),), [(r(5, 4),)], [(r(17, 4),), (r(3, 5),)], shapes={"x": {0: ROWS}}
    ),
    "sizes.derived": Program(
        of(derived), (r(3), r(4)), [(r(6), r(7))], [(r(6), r(6))], shapes={"x": {0: N}, "y": {0: N + 1}}
    ),
    "sizes.half": Program(of(halved), (r(4, 3),), [(r(8, 3),)], [(r(5, 3),)], shapes={"x": {0: 2 * N}}),
    "sizes.same": Program(
        of(same_sizes),
        (r(3, 4), r(4, 5)),
        [(r(2, 6), r(6, 5))],
        [(r(2, 6), r(5, 5))],
        shapes={"x": {0: Dim("m"), 1: N}, "y": {0: N}},
    ),
    "sizes.padded": Program(of(padded), (r(2, 11),), [(r(2, 17),)], [(r(2, 3),)], shapes={"x": {1: Dim.DYNAMIC}}),
    "sizes.int": Program(of(of_an_int), (r(9), 4), [(r(9), 6)], shapes={"x": None, "n": Dim.DYNAMIC}),
    "sizes.unbacked": Program(of(unbacked), (torch.tensor([1.0, 0, 2]),), [(torch.tensor([0.0, 0, 3]),)]),
    "sizes.item": Program(of(item), (torch.tensor(4),), [(torch.tensor(7),)], [(torch.tensor(1),)]),
    "sizes.check": Program(of(checked), (r(6),), [(r(9),)], [(r(7),)], shapes={"x": {0: Dim.DYNAMIC}}),
    "sizes.auto": Program(
        of(same_sizes), (r(3, 4), r(4, 5)), [(r(2, 6), r(6, 7))], shapes={"x": (Dim.AUTO,) * 2, "y": (Dim.AUTO,) * 2}
    ),
    "tree.nested": Program(
        of(nested),
        ((r(2), [r(2), r(2)]), {"w": r(2), "v": r(1)}),
        [((r(2), [r(2), r(2)]), {"w": r(2), "v": r(1)})],
        [((r(2), [r(2), r(2), r(2)]), {"w": r(2), "v": r(1)}), ((r(2), [r(2), r(2)]), {"w": r(2)})],
    ),
    "tree.named": Program(of(named), (Pair(r(2), r(3)),), [(Pair(r(2), r(3)),)]),
    "tree.keywords": Program(of(keywords), (r(3),), kwargs={"scale": r(3), "shift": r(1)}),
    "tree.constants": Program(
        of(constants),
        (r(2), 3, 0.5, True, "up", None),
        [(r(2), 3, 0.5, True, "up", None)],
        [(r(2), 4, 0.5, True, "up", None), (r(2), 3, 0.6, True, "up", None), (r(2), 3, 0.5, True, "down", None)],
    ),
    "tree.results": Program(of(results), (r(2),), [(r(2),)]),
    "state.buffers": Program(Counts, (r(2, 3),), [(r(2, 3),), (r(2, 3),)], has_gradients=False),
    "state.batch_norm": Program(Normed, (r(4, 3),), [(r(6, 3),), (r(5, 3),)], shapes={"x": {0: ROWS}}),
    "state.argument": Program(of(writes), (r(3),), [(r(3),)]),
    "state.views": Program(of(writes_to_views), (r(3, 3),), [(r(3, 3),)]),
    "state.shared": Program(Shares, (r(2, 3),), [(r(2, 3),)]),
    "modules.twice": Program(CalledTwice, (r(2, 3),), [(r(5, 3),)], shapes={"x": {0: ROWS}}),
    "modules.strict": Program(CalledTwice, (r(2, 3),), [(r(2, 3),)], strict=True),
    "modules.no_grad": Program(WithoutGradients, (r(2, 3),), [(r(2, 3),)]),
    "modules.lstm": Program(lambda: nn.LSTM(4, 3, batch_first=True), (r(2, 5, 4),), [(r(2, 5, 4),)]),
    "modules.attention": Program(
        lambda: nn.MultiheadAttention(8, 2, batch_first=True), (r(2, 3, 8),) * 3, [(r(2, 3, 8),) * 3]
    ),
    "modules.transformer": Program(
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), 2),
        (r(2, 3, 8),),
        [(r(4, 3, 8),)],
        shapes={"src": {0: ROWS}},
    ),
    "operators.numbers": Program(of(numbers), (r(3),), [(r(3),)], has_gradients=False),
    "operators.index": Program(of(indexed), (r(4, 3), torch.tensor([0, 2])), [(r(4, 3), torch.tensor([1, 1]))]),
    "operators.pieces": Program(of(pieces), (r(3, 3),), [(r(3, 3),)]),
    "operators.products": Program(of(products), (r(2, 3, 4), r(2, 4, 5)), [(r(2, 3, 4), r(2, 4, 5))]),
    "operators.complex": Program(of(complexes), (r(8),), [(r(8),)]),
    "operators.images": Program(of(images), (r(1, 2, 4, 4),), [(r(1, 2, 4, 4),)]),
    "operators.conversions": Program(of(conversions), (r(3),), [(r(3),)]),
    "decomposed.batch_norm": Program(
        Normed, (r(4, 3),), [(r(6, 3),)], shapes={"x": {0: ROWS}}, decompose=True, has_gradients=False
    ),
    "decomposed.transformer": Program(
        lambda: nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True).eval(),
        (r(2, 3, 8),),
        [(r(2, 3, 8),)],
        decompose=True,
    ),
    **{
        f"models.{name.replace(' ', '_')}": Program(
            subject.make,
            subject.inputs(3),
            [subject.inputs(3)],
        )
        for name, subject in MODELS.items()
    },
}
