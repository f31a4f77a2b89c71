"""Programs of which traces are compared with those of torch.jit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(slots=True, frozen=True)
class Traced:
    """``make`` gives the function or the module, ``inputs`` examples of its arguments."""

    name: str
    make: Callable[[], Any]
    inputs: Callable[[], tuple[Any, ...]]


PROGRAMS: list[Traced] = []


def program(*shapes: Any) -> Callable[[Any], Any]:
    """Register a function, or a class of modules, with its example: tensors, or shapes of random ones."""

    def register(subject: Any) -> Any:
        make = subject if isinstance(subject, type) else lambda: subject
        PROGRAMS.append(Traced(subject.__name__, make, lambda: tuple(map(_tensor, shapes))))
        return subject

    return register


def module(name: str, make: Callable[[], nn.Module], *shapes: Any) -> None:
    PROGRAMS.append(Traced(name, make, lambda: tuple(map(_tensor, shapes))))


def _tensor(shape: Any) -> Any:
    if isinstance(shape, torch.Tensor):
        return shape.clone()
    if isinstance(shape, tuple) and all(isinstance(size, int) for size in shape):
        return torch.randn(shape)
    return type(shape)(_tensor(part) for part in shape)


WHOLE = torch.tensor([[1, 2, 3], [0, 4, 5]])

# ------------------------------------------------------------------------------------------------------------ operators


@program((2, 3), (2, 3))
def arithmetic(x, y):
    return (x + y) * 2 - y / 3 + x**2


@program((2, 3))
def numbers_on_the_left(x):
    return 2 - x + 3 * x - 1 / (x.abs() + 1)


@program((2, 3), (2, 3))
def comparisons(x, y):
    return (x > y) & (x <= 2) | (y == x)


@program((2, 3))
def unary(x):
    return -x.abs().sqrt() + (~(x > 0)).float()


@program(WHOLE)
def whole_numbers(x):
    return x // 2 + x % 3 - (x << 1)


@program((2, 3))
def activations(x):
    return F.gelu(F.silu(F.relu(x)) + torch.sigmoid(x) * torch.tanh(x))


@program((2, 3), (4, 3), (4,))
def linear(x, w, b):
    return F.linear(x, w, b)


@program((2, 3), (3, 4))
def products(x, y):
    return x @ y + torch.mm(x, y) + torch.matmul(x, y)


@program((2, 3, 4), (2, 4, 5), (2, 3, 5))
def batched_products(x, y, z):
    return torch.baddbmm(z, x, y) + torch.bmm(x, y)


@program((2, 3))
def reductions(x):
    return x.sum() + x.mean(dim=1).max() - x.norm() + x.var(dim=0, keepdim=True).sum()


@program((2, 3))
def pairs(x):
    values, places = x.max(dim=1)
    ordered, order = torch.sort(x, dim=-1, descending=True)
    return values, places, ordered, order


@program((4, 6))
def several_results(x):
    first, second, third = x.chunk(3, dim=1)
    top, rest = torch.split(x, [1, 3])
    return first + second * third, top, rest


@program((2, 3), (2, 3))
def joined(x, y):
    return torch.cat([x, y], dim=1), torch.stack((x, y))


@program((2, 3), (2, 3))
def chosen(x, y):
    return torch.where(x > 0, x, y).masked_fill(y > 1, 0.5)


@program((2, 3))
def clamped(x):
    return torch.clamp(x, -1, 1) + x.clamp(min=0)


@program((2, 3, 4))
def softmaxes(x):
    return F.softmax(x, dim=-1) + F.log_softmax(x, 1) + x.softmax(0, dtype=torch.float64)


@program((2, 3), (4, 3))
def normalized_rows(x, y):
    return F.cosine_similarity(x, y[:2]) + F.normalize(x).sum(1)


@program((2, 3), (3,), (3,))
def layer_norm(x, w, b):
    return F.layer_norm(x, (3,), w, b, 1e-6)


@program((1, 3, 8, 8), (4, 3, 3, 3), (4,))
def convolution(x, w, b):
    return F.max_pool2d(F.conv2d(x, w, b, padding=1), 2)


@program((1, 2, 8, 8))
def pooling(x):
    return F.adaptive_avg_pool2d(F.avg_pool2d(x, 2, stride=1), (2, 2))


@program((1, 2, 5, 5))
def resized(x):
    return F.interpolate(x, scale_factor=2.0, mode="nearest")


@program((2, 3))
def padded(x):
    return F.pad(x, (1, 2), value=0.5)


@program(WHOLE, (7, 4))
def embedded(x, w):
    return F.embedding(x, w)


@program((2, 3, 4), (2, 5, 4), (2, 5, 4))
def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


@program((2, 3), torch.tensor([0, 2]))
def losses(x, y):
    return F.cross_entropy(x, y) + F.mse_loss(x, x.detach()) + F.nll_loss(F.log_softmax(x, 1), y)


@program((2, 3), (2, 3))
def in_place(x, y):
    z = x * 2
    z.add_(y).mul_(3)
    z += 1
    return z.relu_()


@program((3, 4))
def created(x):
    return x + torch.ones(3, 4) + torch.zeros_like(x) + torch.full_like(x, 2.0) + torch.arange(4.0)


@program((2, 3))
def to_dtypes(x):
    return x.to(torch.float64), x.int(), x.type_as(x), x.bool(), x.to(dtype=torch.float16)


@program((2, 3), (3, 4))
def einsum(x, y):
    return torch.einsum("ij,jk->ik", x, y)


@program((2, 3))
def copies(x):
    return x.clone().detach().contiguous()


@program((3, 4), torch.tensor([2, 0]))
def gathered(x, i):
    return x.index_select(0, i) + x.gather(0, i[:, None].expand(2, 4))


@program((3, 3))
def triangles(x):
    return torch.tril(x) + x.triu(1) + torch.eye(3)


@program((4, 4))
def scanned(x):
    return torch.cumsum(x, 0), x.cumprod(dim=1), torch.flip(x, [0]), x.roll(1, 0)


@program((5, 2), (4, 2))
def distances(x, y):
    return torch.cdist(x, y), F.pairwise_distance(x[:4], y)


# ---------------------------------------------------------------------------------------------- views and subscripts


@program((2, 3, 4))
def views(x):
    return x.view(6, 4).t().reshape(2, 2, 6).permute(2, 0, 1).transpose(0, 1).flatten(1)


@program((2, 1, 4))
def thinner_and_wider(x):
    return x.squeeze(1).unsqueeze(0).expand(3, 2, 4) + x.squeeze()


@program((4, 5))
def slices(x):
    return x[1:3], x[:, 2], x[..., ::2], x[-1], x[None, 0:2, 1:]


@program((4, 5), torch.tensor([3, 1]))
def indexed(x, i):
    return x[i], x[:, i], x[x > 0]


@program((4, 5))
def assigned(x):
    y = x.clone()
    y[0] = 1.0
    y[1:3, 2] = x[0, :2]
    return y


@program((4, 5))
def written_through_a_view(x):
    y = x * 1
    y[:, 0].zero_()
    y.view(-1)[3:5].add_(2)
    return y


# ---------------------------------------------------------------------------------------------------------------- sizes


@program((2, 3, 4))
def flattened_rows(x):
    return x.view(x.size(0), -1)


@program((2, 3, 4))
def heads(x):
    batch, length, width = x.shape
    return x.view(batch, length, 2, width // 2).transpose(1, 2)


@program((2, 3))
def sizes_in_arithmetic(x):
    return x * x.size(0) + x.shape[1] - x.dim()


@program((2, 3))
def zeros_of_a_size(x):
    return torch.cat([x, torch.zeros(x.size(0), 2)], 1)


@program((2, 3))
def positions(x):
    return x + torch.arange(x.size(1), device=x.device)


@program((2, 5))
def half(x):
    return x[:, : x.size(1) // 2]


@program((2, 3))
def scaled_by_the_root_of_a_size(x):
    return x / x.size(-1) ** 0.5


@program((2, 3), (4, 3))
def expanded_to_another(x, y):
    return x[0].expand(y.size(0), -1) + y


# -------------------------------------------------------------------------------------------------- structures, control


@program(((2, 3), (2, 3)), (2, 3))
def nested_inputs(pair, z):
    return pair[0] + pair[1] * z


@program((2, 3))
def nested_outputs(x):
    return x + 1, (x * 2, x - 1)


@program([(2, 3), (2, 3)])
def a_list(xs):
    return xs[0] + xs[1]


@program((2, 3))
def unrolled(x):
    for i in range(3):
        x = x + i
    return x


@program((2, 3))
def without_dead_code(x):
    x.sin()
    return x.cos()


@program((2, 3))
def same_twice(x):
    return x.exp() + x.exp()


@program((2, 3))
def returned_as_given(x):
    return x


# -------------------------------------------------------------------------------------------------------------- modules

module("Linear", lambda: nn.Linear(3, 4), (2, 3))
module("Conv2d", lambda: nn.Conv2d(3, 4, 3, padding=1, stride=2), (1, 3, 8, 8))
module("Conv1d", lambda: nn.Conv1d(3, 4, 3, groups=1, bias=False), (1, 3, 8))
module("ConvTranspose2d", lambda: nn.ConvTranspose2d(3, 4, 2, stride=2), (1, 3, 4, 4))
module("BatchNorm2d, training", lambda: nn.BatchNorm2d(3), (2, 3, 4, 4))
module("BatchNorm2d, evaluation", lambda: nn.BatchNorm2d(3).eval(), (2, 3, 4, 4))
module("LayerNorm", lambda: nn.LayerNorm(4), (2, 3, 4))
module("GroupNorm", lambda: nn.GroupNorm(2, 4), (2, 4, 3))
module("Dropout, training", lambda: nn.Dropout(0.5), (2, 3))
module("Embedding", lambda: nn.Embedding(7, 4), WHOLE)
module("EmbeddingBag", lambda: nn.EmbeddingBag(7, 4), WHOLE)
module("LSTM", lambda: nn.LSTM(3, 4, batch_first=True), (2, 5, 3))
module("GRU", lambda: nn.GRU(3, 4), (5, 2, 3))
module("LSTMCell", lambda: nn.LSTMCell(3, 4), (2, 3))
module("MultiheadAttention", lambda: nn.MultiheadAttention(4, 2, batch_first=True), (2, 3, 4), (2, 3, 4), (2, 3, 4))
module("TransformerEncoderLayer", lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), (2, 3, 4))
module("Flatten and Linear", lambda: nn.Sequential(nn.Flatten(), nn.Linear(12, 2), nn.Softmax(-1)), (2, 3, 4))
module("PixelShuffle", lambda: nn.Sequential(nn.PixelShuffle(2), nn.Upsample(scale_factor=2)), (1, 4, 3, 3))
module("CrossEntropyLoss", lambda: nn.CrossEntropyLoss(), (2, 3), torch.tensor([0, 2]))
module(
    "convolutional net",
    lambda: nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 3), nn.Dropout()
    ),
    (2, 1, 8, 8),
)


@program((2, 4, 6))
class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(6)
        self.up = nn.Linear(6, 12)
        self.down = nn.Linear(12, 6)
        self.scale = nn.Parameter(torch.ones(6))

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x)))) * self.scale


@program((2, 4, 6))
class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(6, 18)
        self.out = nn.Linear(6, 6)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, 2, c // 2).permute(2, 0, 3, 1, 4).unbind(0)
        weights = (q @ k.transpose(-2, -1) * 0.5).softmax(dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(b, n, c))


@program((2, 3))
class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return x * self.calls


@program((2, 3))
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.there = nn.Linear(3, 4, bias=False)
        self.back = nn.Linear(4, 3, bias=False)
        self.back.weight = nn.Parameter(self.there.weight.detach().t().clone())

    def forward(self, x):
        return self.back(torch.relu(self.there(x)))


@program((2, 3))
class Repeated(nn.Module):
    """One part, called several times."""

    def __init__(self):
        super().__init__()
        self.step = nn.Linear(3, 3)

    def forward(self, x):
        for _ in range(3):
            x = torch.tanh(self.step(x))
        return x


@program((1, 3, 8, 8))
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 3, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(3).eval()
        self.second = nn.Conv2d(3, 3, 1)

    def forward(self, x):
        return F.relu(self.second(F.relu(self.norm(self.first(x)))) + x, inplace=True)
