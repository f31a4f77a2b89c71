"""Graphs that ``torch.jit`` prints: scripted and traced programs of every kind, as they are, inlined, frozen.

The programs print, so that their constants are used. Annotations are not postponed here: ``torch.jit`` does not read
them from strings everywhere.
"""

# ruff: noqa: B020, T201

import enum
import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import torch
from torch import Tensor, nn

from tests.support import deprecation


class Color(enum.Enum):
    RED = "r"
    BLUE = "b"


class Point(NamedTuple):
    x: int
    y: float = 2.0


@torch.jit.script
class Counter:
    def __init__(self, start: int):
        self.count = start

    def increase(self, by: int = 1) -> int:
        self.count += by
        return self.count


@torch.jit.interface
class Shape:
    def area(self, scale: float) -> float:
        pass


# --------------------------------------------------------------------------------------------------- scripted functions


def straight_line(x: Tensor, y: Tensor):
    return torch.relu(x * 2 + y).sum(-1, keepdim=True)


def constants_of_every_kind(x: Tensor):
    a, b, c, d, e = 1e-5, float("inf"), 1.0, -0.0, 1e20
    f, g, h = 123456789012.0, 0.1, 12345678901.5
    print(a, b, c, d, e, f, g, h, float("-inf"), float("nan"))
    print(1 + 2j, 1.5j, -3, True, None, torch.float32, torch.device("cuda:1"), torch.strided, torch.channels_last)
    print("a \"quoted\" 'string' with \\ and \n\t\r\a\b\f\v and \x01 \x7f", "")
    print(-9223372036854775807, 9223372036854775807, 1e9, 1e10, 1e16, 2.5e-300, 1.0 / 3.0)
    return x


def constant_containers(x: Tensor):
    print((1, 2.0, "a"), (1,), (), ((1, 2), (True, None)), [1, 2], ["a"], [1.0, 2.5, 1e20], [True, False], [1j])
    empty: List[int] = []
    nested = [[1], empty]
    options: List[Optional[int]] = [None, 1]
    table: Dict[str, int] = {}
    filled = {"a": 1, "b": 2}
    print(empty, nested, options, table, filled, {1: [1.0]}, {"k": (1, 2)}, [(1, "a")])
    return x


def branches(x: Tensor, n: int):
    if n > 3:
        y = x + n
    elif n < 0:
        y = x - n
    else:
        y = x
    return y


def early_returns(x: Tensor, n: int) -> Tensor:
    if n == 0:
        return x
    for i in range(n):
        if i == 2:
            return x + i
    return -x


def loops(x: Tensor, n: int):
    total = 0
    for i in range(n):
        for j in range(i):
            if j == 5:
                continue
            total += i * j
    while total > 10:
        total -= 3
        if total == 7:
            break
    return x * total


def optional_argument(x: Optional[Tensor], scale: Optional[float] = None) -> Tensor:
    if x is None:
        return torch.zeros(2)
    if scale is not None:
        return x * scale
    return x


def union_argument(x: Union[int, str, Tensor]) -> Union[int, str]:
    if isinstance(x, int):
        return x + 1
    if isinstance(x, str):
        return x + "!"
    return 0


def any_argument(x: Any) -> bool:
    return isinstance(x, int) or isinstance(x, List[int]) or isinstance(x, (str, float))


def dictionaries(d: Dict[str, List[int]], key: str):
    total = 0
    for k, v in d.items():
        total += len(k) + v[0]
    if key in d:
        d[key].append(total)
    return d, d.keys(), list(d.values()), d.get(key)


def lists(x: List[Tensor], y: List[int]):
    z = [a + 1 for a in x]
    z.extend(x)
    y.sort()
    a, b = y[0], y[1:]
    return z, sum(y), a, b, len(x), [i for i in range(4)]


def tuples(t: Tuple[int, Tensor, Tuple[str, float]]):
    a, b, (c, d) = t
    return b, t[0], (a, c), t[1:]


def named_tuples(p: Point, q: List[Point]) -> Tuple[Point, int]:
    return Point(p.x + 1, p.y), q[0].x


def strings(s: str, n: int):
    return f"{s} has {n}", s.upper().split(","), "%s-%d" % (s, n), "{}:{}".format(s, n), s[1:3], len(s), ord(s[0])


def slices(x: Tensor, i: Tensor):
    x[0] = 1.0
    x[1:, None, ..., ::2] += 2
    return x[i], x[0, :, 1:-1], x[..., None], x[x > 0]


def enums(c: Color) -> str:
    if c == Color.RED:
        return c.value
    return Color.BLUE.name


def classes(x: Tensor, n: int) -> int:
    counter = Counter(n)
    counter.increase()
    counter.increase(by=3)
    return counter.count


def class_argument(c: Counter, all: List[Counter]) -> int:
    return c.count + all[0].increase(2)


def interface_argument(s: Shape, x: float) -> float:
    return s.area(x) * 2


def assertions(x: Tensor, n: int):
    assert n > 0, "n must be positive"
    if n > 10:
        raise RuntimeError(f"too large: {n}")
    return x


def numbers(a: int, b: float, c: complex, d: bool):
    return a // 2, a / 2, b**2, abs(c), a % 3, a & 1, not d, float(a), int(b), round(b), divmod(a, 3), max(a, 3), a << 2


def casts(x: Tensor):
    return int(x), float(x), bool(x), x.item(), x.tolist() if False else x, complex(x)


def helper(x: Tensor, n: int = 2) -> Tensor:
    return x * n


def calls(x: Tensor):
    return helper(x) + helper(x, 3) + helper(n=4, x=x)


def forks(x: Tensor):
    first = torch.jit.fork(helper, x, 3)
    second = torch.jit.fork(helper, x)
    return torch.jit.wait(first) + torch.jit.wait(second)


def futures(f: torch.jit.Future[Tensor], g: List[torch.jit.Future[int]]):
    return torch.jit.wait(f), [torch.jit.wait(x) for x in g]


def without_grad(x: Tensor):
    with torch.no_grad():
        y = x * 2
    return y


def creation(n: int):
    a = torch.zeros(2, n, dtype=torch.float64, device="cpu")
    return a, torch.arange(n), torch.tensor([1, 2]), torch.tensor(3.5), torch.ones_like(a), torch.rand([2, 3])


def several_results(x: Tensor):
    values, indices = x.max(dim=0)
    a, b, c = torch.unbind(x)
    first, *rest = (x, -x, -x)
    return values, indices, a, b, c, first, rest


def in_place(x: Tensor, y: Tensor):
    x += y
    x.mul_(2).add_(y, alpha=3)
    torch.add(x, y, out=x)
    return x


def devices(x: Tensor, d: torch.device):
    return x.to(d), x.device, x.dtype, x.is_cuda, x.to(torch.int64), d.type, x.shape, x.requires_grad


def generator_argument(x: Tensor, g: Optional[torch.Generator]):
    return torch.rand_like(x) + torch.randn([2], generator=g)


def annotated(x):
    # type: (Tensor) -> Dict[int, Optional[Tensor]]
    out = torch.jit.annotate(Dict[int, Optional[Tensor]], {})
    out[1] = x
    out[2] = None
    return out


def refinement(x: Optional[int], y: Optional[List[int]]) -> int:
    if x is not None and x > 0 and y is not None:
        return x + y[0]
    assert y is not None
    return len(y)


def uninitialized(x: Tensor, n: int) -> Tensor:
    for i in range(n):
        if i > 3:
            y = x + i
        else:
            raise RuntimeError("too few")
        if i > 5:
            return y
    return x


def many_results(x: Tensor) -> Tuple[int, float, bool, str, Optional[int], List[Tuple[int, str]], Dict[str, Tensor]]:
    return 1, 2.0, True, "s", None, [(1, "a")], {"x": x}


def shadowed(x: Tensor):
    y = x
    y_1 = y + 1
    y = y_1 * y
    for y in [y, y_1]:
        x = y
    return x, y


def tensor_conditions(x: Tensor):
    while bool(x.sum() < 10):
        x = x + 1 if x.mean() > 0 else x + 2
    return x


@torch.jit.ignore
def in_python(x: Tensor, n: int) -> Tensor:
    return x * n


def ignored(x: Tensor):
    return in_python(x, 2)


FUNCTIONS: list[Callable[..., Any]] = [
    *(straight_line, constants_of_every_kind, constant_containers, branches, early_returns, loops, optional_argument),
    *(union_argument, any_argument, dictionaries, lists, tuples, named_tuples, strings, slices, enums, classes),
    *(class_argument, interface_argument, assertions, numbers, casts, calls, forks, futures, without_grad, creation),
    *(several_results, in_place, devices, generator_argument, annotated, refinement, uninitialized, many_results),
    *(shadowed, tensor_conditions, ignored),
]


# -------------------------------------------------------------------------------------------------------------- modules


class EveryConstant(nn.Module):
    """What freezing turns into constants."""

    devices: Tuple[int, torch.device]
    empty_list: List[int]
    empty_dict: Dict[str, int]
    options: List[Optional[int]]
    option_dict: Dict[str, Optional[int]]
    nested_empty: Dict[str, List[int]]
    optional_list: Optional[List[int]]
    nothing: Optional[int]
    union_list: List[Union[int, str]]
    optional_tensors: List[Optional[Tensor]]
    tensors_of_tensors: List[List[Tensor]]
    tensor_pairs: List[Tuple[int, Tensor]]

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.scalars = (torch.tensor(3.5), torch.tensor(3), torch.tensor(True), torch.tensor(1 + 2j))
        self.halves = torch.tensor(0.1).half()
        self.double = torch.tensor(1e-5, dtype=torch.float64)
        self.nan = torch.tensor(float("nan"))
        self.zeros = torch.zeros(2, 2)
        self.cube = torch.arange(8.0).view(2, 2, 2)
        self.row = torch.randn(1, 10) * 1000
        self.small = torch.tensor([1e-7, 3e-7])
        self.large = torch.randn(4, 5)
        self.empty = torch.zeros(0, 3)
        self.bytes = torch.tensor([1, 2, 3], dtype=torch.uint8)
        self.complexes = torch.tensor([1 + 2j, 3])
        self.tensor_list = [torch.ones(2), torch.tensor(3.0)]
        self.devices = (1, torch.device("cpu"))
        self.empty_list = []
        self.empty_dict = {}
        self.options = [None, 1]
        self.option_dict = {"a": None}
        self.nested_empty = {"a": []}
        self.optional_list = [1]
        self.nothing = None
        self.union_list = [1, "a"]
        self.optional_tensors = [None, torch.ones(1), torch.ones(20)]
        self.tensors_of_tensors = [[torch.ones(2)]]
        self.tensor_pairs = [(1, torch.ones(20))]
        self.dictionary = {"x": torch.ones(1)}
        self.mixed = (1, "x", torch.ones(2), [1.0, 1e20, float("nan"), -float("inf")])
        self.color = Color.RED
        self.colors = [Color.RED, Color.BLUE]
        self.text = ['a"b', "\n"]
        self.linear = nn.Linear(2, 2)

    def forward(self, x: Tensor):
        print(self.scalars, self.halves, self.double, self.nan, self.zeros, self.cube, self.row, self.small, self.large)
        print(self.empty, self.bytes, self.complexes, self.tensor_list, self.devices, self.empty_list, self.empty_dict)
        print(self.options, self.option_dict, self.nested_empty, self.optional_list, self.nothing, self.union_list)
        print(self.optional_tensors, self.tensors_of_tensors, self.tensor_pairs, self.dictionary, self.mixed)
        print(self.color == Color.RED, self.colors, self.text)
        return self.linear(x)


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.table = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
        self.scale = nn.Parameter(torch.ones(4))
        self.register_buffer("shift", torch.zeros(4))
        self.steps = 3

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + layer(x)
        for name, module in self.table.items():
            x = module(x)
        return self.again(x, 2) * self.scale + self.shift

    @torch.jit.export
    def again(self, x: Tensor, times: int = 2) -> Tensor:
        for _ in range(times):
            x = self.layers[0](x)
        return x


class Stateful(nn.Module):
    calls: int
    last: Optional[Tensor]

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.last = None

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        last = self.last
        if last is not None:
            x = x + last
        self.last = x
        return x


class _Named(nn.Module):
    """Values are called as attributes are, and these as anything."""

    def __init__(self, table: nn.ModuleDict) -> None:
        super().__init__()
        self.table = table

    def forward(self, x: Tensor) -> Tensor:
        for module in self.table.values():
            x = module(x)
        return x


class Gated(nn.Module):
    """Its traced graph takes several inputs and has nested scopes."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Sequential(nn.Linear(4, 4), nn.Sigmoid()))
        self.second = nn.Linear(4, 4)

    def forward(self, x: Tensor, y: Tensor) -> Tuple[Tensor, Dict[str, Tensor]]:
        gate = self.first(x)
        z = gate * self.second(y) + torch.zeros(x.shape[0], 4)
        return z.view(-1, z.size(1)), {"gate": gate}


MODULES: dict[str, Callable[[], nn.Module]] = {
    "every_constant": EveryConstant,
    "residual": Residual,
    "stateful": Stateful,
    "conv": lambda: nn.Sequential(nn.Conv2d(1, 2, 3, padding="same"), nn.BatchNorm2d(2), nn.MaxPool2d(2), nn.Flatten()),
    "lstm": lambda: nn.LSTM(3, 4, 2, bidirectional=True),
    "gru": lambda: nn.GRU(3, 4),
    "lstm_cell": lambda: nn.LSTMCell(3, 4),
    "attention": lambda: nn.MultiheadAttention(4, 2),
    "encoder_layer": lambda: nn.TransformerEncoderLayer(4, 2, 8),
    "decoder_layer": lambda: nn.TransformerDecoderLayer(4, 2, 8),
    "embedding_bag": lambda: nn.EmbeddingBag(4, 3),
    "group_norm": lambda: nn.GroupNorm(2, 4),
    "upsample": lambda: nn.Upsample(scale_factor=2.0, mode="bilinear"),
    "cross_entropy": lambda: nn.CrossEntropyLoss(label_smoothing=0.1),
    "adaptive_pool": lambda: nn.AdaptiveAvgPool2d((2, 3)),
    "pixel_shuffle": lambda: nn.PixelShuffle(2),
    "bilinear": lambda: nn.Bilinear(2, 3, 4),
    "fold": lambda: nn.Unfold(2),
    "ctc": nn.CTCLoss,
    "instance_norm": lambda: nn.InstanceNorm1d(3, track_running_stats=True),
    "names": lambda: _Named(nn.ModuleDict({"my-key": nn.Linear(2, 2), "a/b": nn.ReLU(), "two words": nn.Tanh()})),
    "hardtanh": lambda: nn.Hardtanh(-0.3, 1e-4),
    "conv_transpose": lambda: nn.ConvTranspose2d(1, 2, 3, output_padding=1, stride=2),
    "triplet": lambda: nn.TripletMarginLoss(),
    "pad": lambda: nn.ReflectionPad2d((1, 2, 3, 4)),
}


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float, name: str) -> Tensor:
        return x * factor

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad, None, None


def traced() -> Iterator[tuple[str, Any]]:
    torch.manual_seed(0)
    x, y = torch.ones(2, 4), torch.ones(2, 4)
    gated = torch.jit.trace(Gated(), (x, y), strict=False)
    yield "gated", gated
    yield "gated.first", gated.first
    yield "conv", torch.jit.trace(MODULES["conv"]().eval(), torch.ones(1, 1, 4, 4))
    yield "lstm", torch.jit.trace(nn.LSTM(3, 4), torch.ones(2, 1, 3))
    yield "attention", torch.jit.trace(nn.MultiheadAttention(4, 2), (torch.ones(2, 1, 4),) * 3)
    yield "function", torch.jit.trace(lambda a, b: (a @ b.t(), a[:, 0] * 2.5, a.to(torch.float64)), (x, y))
    yield "nested", torch.jit.trace(lambda a, b: (a[0] + b["k"], [a[1]]), ((x, y), {"k": x}), strict=False)
    yield "autograd_function", torch.jit.trace(lambda a: Scale.apply(a, 1.5, "s") + 1, x)
    yield "scripted_inside", torch.jit.trace(lambda a: torch.jit.script(branches)(a, 4) + 1, x)


# ------------------------------------------------------------------------------------------------------------ optimized


def optimized() -> Iterator[tuple[str, Any]]:
    """Graphs that ran with gradients: profiled types, differentiable sub-graphs, guards."""

    @torch.jit.script
    def chain(x: Tensor, y: Tensor):
        a = x * y
        return a, a * 2 + torch.sigmoid(y), torch.tanh(x) * y

    @torch.jit.script
    def controlled(x: Tensor, y: Tensor, flag: bool):
        z = x * y if flag else x
        for _ in range(3):
            z = z * z + torch.sigmoid(y)
        return z

    x, y = torch.ones(2, 2, requires_grad=True), torch.ones(2)
    for _ in range(3):
        chain(x, y)[1].sum().backward()
        yield_backward = torch.jit.last_executed_optimized_graph()
        controlled(x, y, True).sum().backward()
    yield "chain", chain.graph_for(x, y)
    yield "controlled", controlled.graph_for(x, y, True)
    yield "backward", yield_backward


# ---------------------------------------------------------------------------------------------------------- written out


def _nested_branches(depth: int) -> str:
    lines = ["graph(%a : bool):"]
    for level in range(1, depth):
        lines += [f"{'    ' * (level - 1)}  %{level} : int = prim::If(%a)", f"{'    ' * level}block0():"]
    lines.append(f"{'    ' * (depth - 1)}  %{depth} : int = prim::Constant[value=0]()")
    for level in reversed(range(1, depth)):
        pad = "    " * level
        lines += [f"{pad}  -> (%{level + 1})", f"{pad}block1():"]
        lines += [f"{pad}  %y.{level} : int = prim::Constant[value={level}]()", f"{pad}  -> (%y.{level})"]
    return "\n".join([*lines, "  return (%1)", ""])


WRITTEN = {
    "attributes": """graph(%a : Tensor):
  %1 : int = foo::ints[a=1, b=-2, c=[1, 2], d=[-1]](%a)
  %2 : float = foo::floats[a=1.5, b=10000000000, c=[1., 2.5], d=inf, e=nan, f=1e+20]()
  %3 : str = foo::strings[a="s", b=["s", "t\\"\\n"], c=""]()
  %4 : complex = foo::complexes[a=0.+1.j, b=[0.+1.j]]()
  %5 : int = foo::types[a=int, b=[int, str], c=Float(2, 3, strides=[3, 1], device=cpu), d=Tensor[]?, e=Dict(str, int)]()
  return (%5)
""",
    "types": """graph(%a : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu),
      %b : Float(*, *),
      %c : Double(requires_grad=1),
      %d : Long(2, device=cuda:0),
      %e : Await(int),
      %f : Union(int, NoneType, str)?,
      %g : RRef[int],
      %h : Future[Tensor[]],
      %i : ((int)),
      %j : Scalar,
      %k : Generator,
      %l : Stream,
      %m : Storage,
      %n : QScheme,
      %o : Capsule,
      %p : AnyEnumType,
      %q : AnyClassType,
      %r : BFloat16(*, 2),
      %s : t[],
      %t : Half()):
  return ()
""",
    "multiple_outputs": """graph(%a : int):
  %1 : int, %2 : Tensor[], %3 : (int, str) = foo::bar[x=1](%a, %a)
   = foo::baz(%1)
  return (%1, %2)
""",
    "deep": _nested_branches(40),
}
"""Texts that torch.jit's own parser reads and prints unchanged, for what no program shows."""


@functools.cache
def torch_texts() -> tuple[tuple[str, str], ...]:
    """Names and texts."""
    with warnings.catch_warnings():
        deprecation.silence()
        warnings.simplefilter("ignore", torch.jit.TracerWarning)  # some traces hold only for their example
        return tuple(_texts())


def _texts() -> Iterator[tuple[str, str]]:
    for function in FUNCTIONS:
        scripted = torch.jit.script(function)
        yield function.__name__, str(scripted.graph)
        graph = scripted.graph.copy()
        torch._C._jit_pass_inline(graph)
        torch._C._jit_pass_constant_propagation(graph)
        torch._C._jit_pass_dce(graph)
        yield f"{function.__name__} simplified", str(graph)
    for name, make in MODULES.items():
        scripted = torch.jit.script(make().eval())
        if not hasattr(scripted, "forward"):
            continue
        yield f"module {name}", str(scripted.graph)
        yield f"module {name} inlined", str(scripted.inlined_graph)
        yield (
            f"module {name} frozen",
            str(torch.jit.freeze(scripted).graph) if name != "stateful" else str(scripted.graph),
        )
    for name, program in traced():
        yield f"traced {name}", str(program.graph)
        yield f"traced {name} inlined", str(program.inlined_graph)
    for name, graph in optimized():
        yield f"optimized {name}", str(graph)
    for name, text in WRITTEN.items():
        yield f"written {name}", text
