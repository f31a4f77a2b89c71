"""Small programs that use what TorchScript programs are made of, each with calls that take other branches and trip
counts than the example does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Dict, Final, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.export import Dim


@dataclass(frozen=True)
class Probe:
    """A program, arguments of an example call, those of other calls, and which sizes differ between them."""

    name: str
    make: Callable[[], Any]
    args: Sequence[Any]
    others: Sequence[Sequence[Any]] = ()
    dynamic: Any = None
    method: str = "forward"


PROBES: Final[dict[str, Probe]] = {}


def _t(*sizes: int, by: float = 1.0) -> Tensor:
    count = 1
    for size in sizes:
        count *= size
    return (torch.arange(count, dtype=torch.float32).reshape(sizes) % 7 - 3) * 0.25 * by


POSITIVE: Final = _t(3, 4).abs() + 0.5
NEGATIVE: Final = -POSITIVE


def probe(
    name: str,
    args: Sequence[Any] = (POSITIVE,),
    others: Sequence[Sequence[Any]] = ((NEGATIVE,),),
    dynamic: Any = None,
) -> Callable[[Any], Any]:
    """Register a function or a class of modules as a probe."""

    def register(program: Any) -> Any:
        def make() -> Any:
            torch.manual_seed(0)
            return program().eval() if isinstance(program, type) else program

        PROBES[name] = Probe(name, make, args, others, dynamic)
        return program

    return register


def module(
    name: str, make: Callable[[], nn.Module], args: Sequence[Any], others: Sequence[Any] = (), dynamic: Any = None
) -> None:
    """Register a module of torch.nn as a probe."""

    def made() -> nn.Module:
        torch.manual_seed(0)
        return make().eval()

    PROBES[name] = Probe(name, made, args, others, dynamic)


_LONG: Final = Dim("n", min=2, max=64)
BATCH: Final = ({0: _LONG},)

# ---------------------------------------------------------------------------------------------------------- branches


@probe("straight.function")
def straight(x: Tensor) -> Tensor:
    return torch.relu(x) * 2 + x.sin()


@probe("if.tensor")
def if_tensor(x: Tensor) -> Tensor:
    if x.sum() > 0:
        y = x.sin()
    else:
        y = x.cos() * 2
    return y + 1


@probe("if.nested", others=((NEGATIVE,), (NEGATIVE * 9,)))
def if_nested(x: Tensor) -> Tensor:
    if x.sum() > 0:
        y = x + 1
    else:
        if x.min() < -5:
            y = x * 2
        else:
            y = x - 1
    return y


@probe("if.elif", others=((NEGATIVE,), (POSITIVE * 0,), (POSITIVE * 9,)))
def if_elif(x: Tensor) -> Tensor:
    if x.max() > 5:
        return x / 2
    elif x.sum() > 0:
        return x
    elif x.sum() == 0:
        return x + 1
    return -x


@probe("if.early_return")
def early_return(x: Tensor) -> Tensor:
    if x.mean() > 0:
        return x.exp()
    y = x * x
    if y.sum() > 100:
        return y.sqrt()
    return y


@probe("if.and_or", others=((NEGATIVE,), (POSITIVE * 20,), (NEGATIVE * 20,)))
def and_or(x: Tensor) -> Tensor:
    if (x.sum() > 0 and x.max() < 5) or not (x.min() > -9):
        return x + 1
    return x - 1


@probe("if.mutates")
def if_mutates(x: Tensor) -> Tensor:
    y = x.clone()
    if x.sum() > 0:
        y.add_(3)
    else:
        y[0] = 7
    return y


@probe("if.none_or_tensor")
def none_or_tensor(x: Tensor) -> Tensor:
    mask: Optional[Tensor] = None
    if x.sum() > 0:
        mask = x > 1
    y = x * 2
    if mask is not None:
        y = y.masked_fill(mask, 0.0)
    return y


@probe("if.numbers")
def if_numbers(x: Tensor) -> Tensor:
    n = 2
    f = 0.5
    if x.sum() > 0:
        n = 3
        f = 1.5
    return x * n + f


@probe("if.returns_number")
def returns_number(x: Tensor) -> int:
    if x.sum() > 0:
        return 3
    return x.size(0) + 4


@probe("if.lists", others=((NEGATIVE,),))
def if_lists(x: Tensor) -> Tensor:
    parts = [x]
    if x.sum() > 0:
        parts.append(x * 2)
        parts.append(x * 3)
    return torch.cat(parts).sum(0)


@probe("if.different_shapes")
def different_shapes(x: Tensor) -> Tensor:
    if x.sum() > 0:
        y = torch.cat([x, x])
    else:
        y = x
    return y * 2


@probe("if.on_size", (_t(3, 4),), ((_t(8, 4),), (_t(2, 4),)), BATCH)
def on_size(x: Tensor) -> Tensor:
    if x.size(0) > 4:
        return x * 2
    return x - 1


@probe("if.ternary")
def ternary(x: Tensor) -> Tensor:
    scale = 2.0 if bool(x.sum() > 0) else 0.5
    return x * scale


@probe("if.dict_entry")
def dict_entry(x: Tensor) -> Tensor:
    d: Dict[str, Tensor] = {"a": x}
    if x.sum() > 0:
        d["a"] = x * 3
    d["b"] = d["a"] + 1
    return d["b"]


@probe("if.constant_flag", (POSITIVE, True), ((NEGATIVE, True),))
def constant_flag(x: Tensor, flag: bool) -> Tensor:
    if flag:
        return x * 2
    return x


# ------------------------------------------------------------------------------------------------------------- loops


@probe("for.constant")
def for_constant(x: Tensor) -> Tensor:
    for i in range(5):
        x = x * 0.5 + i
    return x


@probe("for.argument", (POSITIVE, 3), ((NEGATIVE, 3),))
def for_argument(x: Tensor, n: int) -> Tensor:
    for i in range(n):
        x = x + i
    return x


@probe("for.dynamic_argument", (POSITIVE, 3), ((NEGATIVE, 7), (NEGATIVE, 2)), (None, Dim.DYNAMIC))
def for_dynamic_argument(x: Tensor, n: int) -> Tensor:
    for i in range(n):
        x = x * 0.5 + i
    return x


@probe("for.static_size", (_t(4, 3),), ((_t(4, 3) * 2,),))
def for_static_size(x: Tensor) -> Tensor:
    total = torch.zeros(3)
    for i in range(x.size(0)):
        total = total + x[i] * i
    return total


@probe("for.dynamic_size", (_t(4, 3),), ((_t(9, 3),), (_t(2, 3),)), BATCH)
def for_dynamic_size(x: Tensor) -> Tensor:
    total = torch.zeros(3)
    for i in range(x.size(0)):
        total = total * 0.5 + x[i]
    return total


@probe("for.break", others=((NEGATIVE,), (POSITIVE * 0.1,)))
def for_break(x: Tensor) -> Tensor:
    y = x
    for i in range(6):
        if y.sum() > 20:
            break
        y = y * 2 + 0.1
    return y


@probe("for.long_break", others=((NEGATIVE,), (POSITIVE * 0.01,)))
def for_long_break(x: Tensor) -> Tensor:
    y = x
    for i in range(100):
        if y.sum() > 20:
            break
        y = y * 1.5 + 0.1
    return y


@probe("for.continue", others=((NEGATIVE,),))
def for_continue(x: Tensor) -> Tensor:
    y = torch.zeros(4)
    for i in range(3):
        if x[i].sum() < 0:
            continue
        y = y + x[i]
    return y


@probe("for.return_inside", others=((NEGATIVE,), (POSITIVE * 0.1,)))
def for_return_inside(x: Tensor) -> Tensor:
    for i in range(4):
        x = x * 2
        if x.sum() > 30:
            return x - 100
    return x


@probe("for.over_tensor", (_t(3, 4),), ((_t(3, 4) * 2,),))
def over_tensor(x: Tensor) -> Tensor:
    total = torch.zeros(4)
    for row in x:
        total = total + row.abs()
    return total


@probe("for.over_list", ([_t(2), _t(3), _t(4)],), (([_t(2) * 2, _t(3), _t(4)],),))
def over_list(xs: List[Tensor]) -> Tensor:
    total = torch.zeros(())
    for x in xs:
        total = total + x.sum()
    return total


@probe("for.enumerate_zip", ([_t(2), _t(2)], [_t(2), _t(2)]), (([_t(2) * 3, _t(2)], [_t(2), _t(2)]),))
def enumerate_zip(xs: List[Tensor], ys: List[Tensor]) -> List[Tensor]:
    out: List[Tensor] = []
    for i, (x, y) in enumerate(zip(xs, ys)):
        out.append(x * i + y)
    return out


@probe("for.append_static", (_t(4, 3),), ((_t(4, 3) * 2,),))
def append_static(x: Tensor) -> Tensor:
    out: List[Tensor] = []
    h = torch.zeros(3)
    for t in range(x.size(0)):
        h = torch.tanh(x[t] + h)
        out.append(h)
    return torch.stack(out)


@probe("for.write_row", (_t(4, 3),), ((_t(9, 3),), (_t(2, 3),)), BATCH)
def write_row(x: Tensor) -> Tensor:
    out = torch.zeros_like(x)
    h = torch.zeros(3)
    for t in range(x.size(0)):
        h = torch.tanh(x[t] + h)
        out[t] = h
    return out


@probe("for.nested", (_t(3, 4),), ((_t(6, 4),), (_t(2, 4),)), BATCH)
def for_nested(x: Tensor) -> Tensor:
    total = torch.zeros(())
    for i in range(x.size(0)):
        for j in range(x.size(1)):
            total = total * 0.9 + x[i, j]
    return total


@probe("while.tensor", others=((NEGATIVE,), (POSITIVE * 0.01,)))
def while_tensor(x: Tensor) -> Tensor:
    while x.sum() < 100:
        x = x * 2 + 1
    return x


@probe("while.counter")
def while_counter(x: Tensor) -> Tensor:
    i = 0
    while i < 4:
        x = x + i
        i += 1
    return x


@probe("while.both", others=((NEGATIVE,), (POSITIVE * 0.001,)))
def while_both(x: Tensor) -> Tuple[Tensor, int]:
    i = 0
    while x.sum() < 50 and i < 20:
        x = x * 1.5 + 0.1
        i += 1
    return x, i


@probe("while.true_break", others=((NEGATIVE,), (POSITIVE * 0.001,)))
def while_true_break(x: Tensor) -> Tensor:
    n = 0
    while True:
        x = x * 2 + 1
        n += 1
        if x.sum() > 200:
            break
    return x * n


@probe("while.float", others=((NEGATIVE,), (POSITIVE * 3,)))
def while_float(x: Tensor) -> Tensor:
    error = 1.0
    y = x.abs() + 1
    while error > 0.001:
        new = 0.5 * (y + (x.abs() + 2) / y)
        error = float((new - y).abs().max())
        y = new
    return y


@probe("while.if_inside", others=((NEGATIVE,), (POSITIVE * 0.01,)))
def while_if_inside(x: Tensor) -> Tensor:
    k = 0
    while x.abs().sum() < 60:
        if x.sum() > 0:
            x = x * 2 + 0.5
        else:
            x = x * 3 - 0.5
            k += 1
    return x + k


@probe("while.in_place", others=((NEGATIVE,), (POSITIVE * 0.01,)))
def while_in_place(x: Tensor) -> Tensor:
    y = x.clone()
    while y.abs().sum() < 60:
        y.mul_(2).add_(0.1)
    return y


# ----------------------------------------------------------------------------------------------- arguments and results


@probe("args.optional_none", (POSITIVE, None), ((NEGATIVE, None),))
def optional_none(x: Tensor, y: Optional[Tensor] = None) -> Tensor:
    if y is not None:
        return x + y
    return x


@probe("args.optional_given", (POSITIVE, NEGATIVE), ((NEGATIVE, NEGATIVE),))
def optional_given(x: Tensor, y: Optional[Tensor] = None) -> Tensor:
    if y is not None:
        return x * y
    return x


@probe("args.tuple", ((POSITIVE, NEGATIVE),), (((NEGATIVE, POSITIVE),),))
def tuple_argument(pair: Tuple[Tensor, Tensor]) -> Tuple[Tensor, Tensor]:
    a, b = pair
    return a + b, a * b


@probe("args.dict", ({"a": POSITIVE, "b": NEGATIVE},), (({"a": NEGATIVE, "b": NEGATIVE},),))
def dict_argument(d: Dict[str, Tensor]) -> Dict[str, Tensor]:
    out: Dict[str, Tensor] = {}
    for key, value in d.items():
        out[key + "_out"] = value * 2
    return out


class Point(NamedTuple):
    x: Tensor
    y: Tensor


@probe("args.named_tuple", (Point(POSITIVE, NEGATIVE),), ((Point(NEGATIVE, NEGATIVE),),))
def named_tuple(p: Point) -> Point:
    return Point(p.x + p.y, p.x * p.y)


@probe("args.nested", ([(POSITIVE, {"k": NEGATIVE})],), (([(NEGATIVE, {"k": POSITIVE})],),))
def nested_argument(xs: List[Tuple[Tensor, Dict[str, Tensor]]]) -> Tensor:
    total = torch.zeros(3, 4)
    for x, d in xs:
        total = total + x * d["k"]
    return total


@probe("args.string", (POSITIVE, "max"), ((NEGATIVE, "max"),))
def string_argument(x: Tensor, how: str) -> Tensor:
    if how == "max":
        return x.amax(0)
    elif how == "min":
        return x.amin(0)
    raise ValueError("how?")


@probe("args.numbers", (POSITIVE, 2, 0.5, True), ((NEGATIVE, 2, 0.5, True),))
def number_arguments(x: Tensor, n: int, f: float, b: bool) -> Tensor:
    y = x * n + f
    return y if b else x


@probe("args.mutated", (POSITIVE.clone(),), ((NEGATIVE.clone(),),))
def mutated_argument(x: Tensor) -> Tensor:
    x.add_(1)
    return x * 2


@probe("results.structure")
def structure(x: Tensor) -> Tuple[Tensor, List[Tensor], Dict[str, Tensor], int]:
    return x, [x + 1, x + 2], {"k": x * 2}, x.dim()


@probe("results.none")
def returns_none(x: Tensor) -> Optional[Tensor]:
    if x.dim() > 5:
        return x
    return None


@probe("results.views")
def views(x: Tensor) -> Tuple[Tensor, Tensor]:
    y = x * 2
    return y, y[0]


# ----------------------------------------------------------------------------------------------------------- attributes


@probe("state.buffer_in_place")
class BufferInPlace(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:
        self.total.add_(x.sum(0))
        return x + self.total


@probe("state.buffer_assigned")
class BufferAssigned(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("last", torch.zeros(3, 4))

    def forward(self, x: Tensor) -> Tensor:
        before = self.last
        self.last = x * 2
        return before + x


@probe("state.buffer_returned")
class BufferReturned(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("last", torch.zeros(3, 4))

    def forward(self, x: Tensor) -> Tensor:
        before = self.last
        self.last = x * 2
        return before


@probe("state.int_counter")
class IntCounter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x * self.calls


@probe("state.int_decides")
class IntDecides(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        if self.calls > 2:
            return x * 10
        return x


@probe("state.flag")
class Flag(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.is_first = True
        self.scale = 1.0

    def forward(self, x: Tensor) -> Tensor:
        if self.is_first:
            self.is_first = False
            self.scale = float(x.abs().max())
        return x / self.scale


@probe("state.tensor_attribute")
class TensorAttribute(nn.Module):
    memory: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.memory = torch.ones(4)

    def forward(self, x: Tensor) -> Tensor:
        self.memory = self.memory * 0.5 + x.mean(0)
        return x + self.memory


@probe("state.changed_in_branch")
class ChangedInBranch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("best", torch.zeros(()))
        self.hits = 0

    def forward(self, x: Tensor) -> Tensor:
        if x.max() > self.best:
            self.best = x.max()
            self.hits += 1
        return self.best * self.hits


@probe("state.changed_in_loop")
class ChangedInLoop(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        while x.abs().sum() < 50:
            x = x * 2 + 0.25
            self.steps += 1
        return x + self.steps


@probe("state.list_of_tensors")
class ListOfTensors(nn.Module):
    memory: List[Tensor]

    def __init__(self) -> None:
        super().__init__()
        self.memory = [torch.zeros(4), torch.ones(4)]

    def forward(self, x: Tensor) -> Tensor:
        self.memory[0] = self.memory[0] + x.sum(0)
        return x + self.memory[0] * self.memory[1]


@probe("state.batch_norm_training", (POSITIVE,), ((NEGATIVE,),))
class BatchNormTraining(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4)

    def eval(self) -> BatchNormTraining:
        return self.train()

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x)


@probe("state.batch_norm_in_branch", (POSITIVE,), ((NEGATIVE,),))
class BatchNormInBranch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4)

    def eval(self) -> BatchNormInBranch:
        return self.train()

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        if x.sum() > 0:
            x = self.norm(x)
        mean = self.norm.running_mean
        assert mean is not None
        return x, mean * 1


# ------------------------------------------------------------------------------------------------------------- errors


@probe("raise.assert_tensor", others=((NEGATIVE,),))
def assert_tensor(x: Tensor) -> Tensor:
    assert x.sum() > 0, "x must be positive"
    return x.sqrt()


@probe("raise.in_branch", others=((NEGATIVE,), (POSITIVE * 0,)))
def raise_in_branch(x: Tensor) -> Tensor:
    if x.sum() < 0:
        raise ValueError("negative")
    return x * 2


@probe("raise.nested", others=((NEGATIVE,), (POSITIVE * 50,)))
def raise_nested(x: Tensor) -> Tensor:
    if x.max() > 10:
        assert x.min() < 0, "too big"
    return x + 1


@probe("raise.size", (_t(4, 4),), ((_t(8, 4),),), BATCH)
def raise_size(x: Tensor) -> Tensor:
    assert x.size(1) == 4
    assert x.dim() == 2, "two dimensions"
    return x.view(x.size(0), 2, 2)


# ------------------------------------------------------------------------------------------------ futures and classes


def _double(x: Tensor) -> Tensor:
    return x * 2


@probe("fork.wait")
def fork_wait(x: Tensor) -> Tensor:
    future = torch.jit.fork(_double, x)
    y = x + 1
    return y + torch.jit.wait(future)


@probe("fork.list")
def fork_list(x: Tensor) -> Tensor:
    futures: List[torch.jit.Future[Tensor]] = []
    for i in range(3):
        futures.append(torch.jit.fork(_double, x * i))
    total = torch.zeros(3, 4)
    for future in futures:
        total = total + torch.jit.wait(future)
    return total


class Accumulator:
    def __init__(self, start: Tensor) -> None:
        self.total = start
        self.count = 0

    def add(self, x: Tensor) -> None:
        self.total = self.total + x
        self.count += 1

    def mean(self) -> Tensor:
        return self.total / self.count


@probe("class.local")
def class_local(x: Tensor) -> Tensor:
    acc = Accumulator(torch.zeros(4))
    for i in range(3):
        acc.add(x[i])
    return acc.mean()


@probe("class.in_branch")
def class_in_branch(x: Tensor) -> Tensor:
    acc = Accumulator(torch.zeros(4))
    acc.add(x[0])
    if x.sum() > 0:
        acc.add(x[1])
    return acc.mean()


@probe("class.in_while", others=((NEGATIVE,), (POSITIVE * 0.1,)))
def class_in_while(x: Tensor) -> Tensor:
    acc = Accumulator(torch.zeros(4))
    acc.add(x[0])
    while acc.total.abs().sum() < 20:
        acc.add(x[1].abs() + 0.1)
    return acc.mean()


@probe("with.no_grad")
def with_no_grad(x: Tensor) -> Tensor:
    with torch.no_grad():
        y = x * 2
    return y + x


# ------------------------------------------------------------------------------------------------------------ torch.nn

module(
    "nn.Linear", lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), (_t(3, 4),), ((_t(9, 4),),), BATCH
)
module(
    "nn.Conv",
    lambda: nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 3)
    ),
    (_t(2, 1, 8, 8),),
    ((_t(5, 1, 8, 8),),),
    BATCH,
)
module(
    "nn.LSTM",
    lambda: nn.LSTM(4, 8, num_layers=2, batch_first=True, bidirectional=True),
    (_t(3, 5, 4),),
    ((_t(3, 5, 4) * 2,),),
)
module("nn.GRU", lambda: nn.GRU(4, 8, num_layers=2), (_t(5, 3, 4),), ((_t(5, 3, 4) * 2,),))
module("nn.RNN", lambda: nn.RNN(4, 8), (_t(5, 3, 4),), ((_t(5, 3, 4) * 2,),))
module("nn.LSTMCell", lambda: nn.LSTMCell(4, 8), (_t(3, 4),), ((_t(3, 4) * 2,),))
module(
    "nn.MultiheadAttention",
    lambda: nn.MultiheadAttention(8, 2, batch_first=True),
    (_t(2, 5, 8), _t(2, 5, 8) * 2, _t(2, 5, 8)),
    ((_t(2, 5, 8) * 3, _t(2, 5, 8), _t(2, 5, 8)),),
)
module(
    "nn.TransformerEncoder",
    lambda: nn.TransformerEncoder(
        nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2, enable_nested_tensor=False
    ),
    (_t(2, 5, 8),),
    ((_t(2, 5, 8) * 2,),),
)
module(
    "nn.Embedding",
    lambda: nn.Sequential(nn.Embedding(10, 4), nn.LayerNorm(4)),
    (torch.tensor([[1, 2], [3, 4]]),),
    ((torch.tensor([[9, 0], [3, 3]]),),),
)


class Beam(nn.Module):
    """A greedy decoder: a loop that stops at a token that the model chooses."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(6, 8)
        self.cell = nn.GRUCell(8, 8)
        self.out = nn.Linear(8, 6)

    def forward(self, start: Tensor, most: int = 12) -> Tensor:
        tokens = torch.zeros(1, most, dtype=torch.int64)
        h = torch.zeros(1, 8)
        token = start
        i = 0
        while i < most:
            h = self.cell(self.embed(token), h)
            token = self.out(h).argmax(1)
            tokens[:, i] = token
            i += 1
            if bool(token == 0):
                break
        return tokens


module("model.greedy_decoder", Beam, (torch.tensor([1]),), ((torch.tensor([2]),), (torch.tensor([5]),)))


class Cell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ih = nn.Linear(4, 8)
        self.hh = nn.Linear(8, 8)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return torch.tanh(self.ih(x) + self.hh(h))


class Rnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = Cell()

    def forward(self, x: Tensor, h: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
        if h is None:
            h = torch.zeros(x.size(1), 8)
        out: List[Tensor] = []
        for t in range(x.size(0)):
            h = self.cell(x[t], h)
            out.append(h)
        return torch.stack(out), h


module("model.rnn_static", Rnn, (_t(5, 3, 4),), ((_t(5, 3, 4) * 2,),))
module("model.rnn_dynamic", Rnn, (_t(5, 3, 4),), ((_t(9, 3, 4),), (_t(2, 3, 4),)), {"x": {0: _LONG}})
