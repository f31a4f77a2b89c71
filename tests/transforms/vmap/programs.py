"""Programs in which batches and derivatives are nested: a table of what each computes, by which steps,
from the innermost to the outermost, and of which arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

Dims = Any


@dataclass(frozen=True, slots=True)
class Step:
    """One transformation: ``word`` names it, as ``rekindle`` and ``torch.func`` do."""

    word: str
    in_dims: Dims = 0
    out_dims: Dims = 0
    argnums: int | tuple[int, ...] = 0


def v(in_dims: Dims = 0, out_dims: Dims = 0) -> Step:
    """A batch."""
    return Step("vmap", in_dims, out_dims)


def d(argnums: int | tuple[int, ...] = 0) -> Step:
    """The gradient."""
    return Step("grad", argnums=argnums)


def step(word: str, argnums: int = 0) -> Step:
    """Any other derivative."""
    return Step(word, argnums=argnums)


@dataclass(frozen=True, slots=True)
class Program:
    """``arguments`` are sizes of tensors of random numbers, or tensors, or tuples, lists and dicts of both, or other
    values. With ``asks``, the program asks for numbers in tensors, which ``torch.func.vmap`` refuses. ``loops`` are the
    kinds of nodes that are computed in loops over the examples."""

    name: str
    function: Callable[..., Any]
    steps: tuple[Step, ...]
    arguments: tuple[Any, ...]
    asks: bool = False
    loops: tuple[str, ...] = ()


# ----------------------------------------------------------------------------------------------------- what is computed


def distance(a: Tensor, b: Tensor) -> Tensor:
    return (a - b).norm()


def product(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum()


def two_layers(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    w1 = w1.sigmoid()
    x = x @ w1 + b1
    x = x.tanh()
    w2 = w2.sigmoid()
    return x @ w2 + b2


def two_layers_summed(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    return two_layers(x, w1, b1, w2, b2).sum()


def several(x: Tensor, y: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    values, places = (x * y).topk(2, -1)
    return values, (places, y.cumsum(-1))


def pair(both: tuple[Tensor, Tensor], factor: float) -> Tensor:
    a, b = both
    return (a * factor - b).exp()


def linear_by_name(parameters: dict[str, Tensor], x: Tensor) -> Tensor:
    return F.linear(x, parameters["weight"], parameters["bias"]).tanh()


def loss_of_layer(parameters: tuple[Tensor, Tensor], x: Tensor) -> Tensor:
    weight, bias = parameters
    return F.linear(x, weight, bias).tanh().pow(2).sum()


def stacked(parts: list[Tensor], x: Tensor) -> Tensor:
    return torch.stack([part * x for part in parts]).amax(0)


def as_dict(x: Tensor, y: Tensor) -> dict[str, Tensor]:
    return {"sum": x + y, "product": (x * y).sum()}


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.t() / 2.0, -1) @ v


def attention_summed(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v).pow(2).sum()


def filtered(x: Tensor, kernel: Tensor) -> Tensor:
    return F.conv2d(x, kernel, padding=1).relu()


def picked(x: Tensor, index: Tensor) -> Tensor:
    return x[index].cumsum(0)


def gathered(x: Tensor, index: Tensor) -> Tensor:
    return x.gather(0, index).pow(2).sum()


def solved(a: Tensor, b: Tensor) -> Tensor:
    return torch.linalg.solve(a @ a.t() + 3 * torch.eye(3), b).sum()


def determinant(a: Tensor) -> Tensor:
    return torch.linalg.slogdet(a @ a.t() + torch.eye(3))[1]


def normalized(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(x, [4], weight, bias).pow(3).sum()


def chosen(x: Tensor, y: Tensor) -> Tensor:
    return torch.where(x > y, x * 2, y.clamp(-0.5, 0.5))


def contracted(a: Tensor, b: Tensor) -> Tensor:
    return torch.einsum("ij,jk->ik", a, b)


def spectrum(x: Tensor) -> Tensor:
    return torch.fft.rfft(x).abs().sum()


def constant_beside(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return x * 2, y.exp()


def cross_entropy(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy((x @ w).unsqueeze(0), y.unsqueeze(0))


def regression(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return F.mse_loss((x @ w).tanh(), y)


def huber(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return F.huber_loss(x @ w, y) + F.smooth_l1_loss(x @ w, y)


def logistic(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return F.binary_cross_entropy_with_logits(x @ w, y.sigmoid())


def pooled(kernel: Tensor, x: Tensor) -> Tensor:
    hidden = F.max_pool2d(F.conv2d(x.unsqueeze(0), kernel).relu(), 2)
    return F.avg_pool2d(hidden, 2).pow(2).sum()


def pooled_adaptively(x: Tensor) -> Tensor:
    return F.adaptive_avg_pool2d(x, 2).pow(2).sum()


def convolved(kernel: Tensor, x: Tensor) -> Tensor:
    return F.conv_transpose1d(F.conv1d(x, kernel), kernel.flip(2)).pow(2).sum()


def embedded(table: Tensor, words: Tensor) -> Tensor:
    return F.embedding(words, table).mean(0).pow(2).sum()


def activations(x: Tensor) -> Tensor:
    smooth = F.gelu(x) + F.silu(x) + F.softplus(x) + F.mish(x)
    return (smooth + F.elu(x) + F.leaky_relu(x) + F.hardtanh(x) + x.sigmoid()).sum()


def elementary(x: Tensor) -> Tensor:
    y = x.abs() + 0.5
    return (y.log() + y.sqrt() + y.rsqrt() + y.reciprocal() + x.sin() * x.cos() + x.exp() / y + y**1.5).sum()


def statistics(x: Tensor) -> Tensor:
    return x.var() + x.std(0).sum() + x.logsumexp(0).sum() + x.norm(dim=1).sum() + x.mean()


def products(x: Tensor) -> Tensor:
    return x.prod() + x.cumprod(0).sum() + x.prod(1).sum()


def extremes(x: Tensor) -> Tensor:
    return x.max(0).values.sum() + x.min() + x.amax(1).prod() + x.sort(0).values[1].sum() + x.median()


def assembled(x: Tensor) -> Tensor:
    wide = torch.cat([x, x.flip(0), x.roll(1, 0)], 1)
    return (wide.unfold(1, 2, 1).sum(-1).t() @ F.pad(x, (1, 1))).tril().diagonal().sum()


def written(x: Tensor) -> Tensor:
    y = torch.zeros_like(x)
    y[0] = x[1] * x[2]
    y[1:] += x[:-1].exp()
    return (y * y).sum()


def put_in_place(x: Tensor, index: Tensor) -> Tensor:
    y = x * 2
    y[index] = x.sum()
    return (y * x).sum()


def accumulated(x: Tensor, index: Tensor) -> Tensor:
    return torch.zeros(4).scatter_add(0, index, x).pow(2).sum() + x.index_select(0, index).prod()


def recurrent(h: Tensor, steps: Tensor, w: Tensor) -> Tensor:
    for i in range(steps.size(0)):
        h = torch.tanh(h @ w + steps[i])
    return h.sum()


def listed(x: Tensor) -> Tensor:
    kept: list[Tensor] = []
    for i in range(x.size(0)):
        kept.append(x[i] * i)
    return torch.stack(kept).exp().sum()


def turned_off(x: Tensor, enabled: bool) -> Tensor:
    if enabled:
        x = x.tanh()
    else:
        x = x.exp()
    return x.sum()


def by_sign(x: Tensor) -> Tensor:
    if bool(x.sum() > 0):
        y = x.exp()
    else:
        y = x * x
    return y.sum()


def halved(x: Tensor) -> Tensor:
    while bool(x.abs().max() > 1):
        x = x / 2
    return (x * x).sum()


def root(x: Tensor) -> tuple[Tensor, int]:
    guess = x
    count = 0
    while bool((guess * guess - x).abs() > 1e-4) and count < 30:
        guess = (guess + x / guess) / 2
        count += 1
    return guess, count


def clipped(x: Tensor, limit: Tensor) -> Tensor:
    norm = x.norm()
    if bool(norm > limit):
        x = x * (limit / norm)
    return x.pow(3).sum()


def leaves_early(x: Tensor) -> Tensor:
    total = torch.zeros(())
    for i in range(x.size(0)):
        total = total + x[i] * x[i]
        if bool(total > 1.0):
            break
    return total


def polynomial(x: Tensor) -> Tensor:
    return (x**3).sum() + (x[0] * x[1]).exp()


def vector(x: Tensor) -> Tensor:
    return torch.stack([x[0] * x[1], x.sin().sum(), x.norm()])


def upsampled(x: Tensor) -> Tensor:
    return F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False).pow(2).sum()


def similarity(x: Tensor, y: Tensor) -> Tensor:
    return F.cosine_similarity(x, y, 0) + F.pairwise_distance(x, y)


def of_batches(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.batch_norm(x, None, None, weight, bias, True).pow(3).sum()


def grouped(x: Tensor, weight: Tensor) -> Tensor:
    return (F.group_norm(x, 2, weight) + F.instance_norm(x)).pow(3).sum()


def exponential(x: Tensor) -> Tensor:
    return torch.linalg.matrix_exp(x).sum() + torch.linalg.inv(x + 4 * torch.eye(3)).sum()


# ------------------------------------------------------------------------------------------------------------ the table

_ = None
WORDS = torch.tensor([[0, 2, 1], [3, 3, 0], [1, 1, 2], [2, 0, 3]])
CLASSES = torch.tensor([0, 2, 1, 2])
LAYER = {"weight": (4, 5, 3), "bias": (4, 5)}

PROGRAMS = [
    # Batches within batches.
    Program("table of distances", distance, (v((_, 0)), v((0, _))), ((4, 3), (5, 3))),
    Program("three dimensions", product, (v((0, _)), v((1, 0)), v((_, 0), 1)), ((2, 3, 4), (5, 3, 4))),
    Program("other dimensions", chosen, (v((1, 0), 1), v((2, 0), -1)), ((2, 3, 4), (4, 3, 2))),
    Program(
        "two layers",
        two_layers,
        (v((0, _, _, _, _)), v((0, 0, 0, 0, 0))),
        ((2, 5, 1), (2, 1, 6), (2, 6), (2, 6, 1), (2, 1)),
    ),
    Program("several results", several, (v((0, 0), (0, (1, 0))), v((0, _), (1, (0, 0)))), ((2, 3, 4), (3, 4))),
    Program("tuples", pair, (v(((0, _), _)), v(((1, 0), _))), (((2, 3, 4), (3, 4)), 0.5)),
    Program("dicts", linear_by_name, (v(({"weight": _, "bias": _}, 0)), v((0, _))), (LAYER, (2, 3))),
    Program(
        "dicts of their own",
        linear_by_name,
        (v((_, 0)), v(({"weight": 1, "bias": 0}, 0), 1)),
        ({"weight": (5, 4, 3), "bias": (4, 5)}, (4, 2, 3)),
    ),
    Program(
        "some entries",
        linear_by_name,
        (v(({"weight": 0, "bias": _}, _)),),
        ({"weight": (4, 5, 3), "bias": (5,)}, (2, 3)),
    ),
    Program("lists", stacked, (v(([0, _], 0)), v((0, _))), ([(2, 3, 4), (2, 4)], (3, 4))),
    Program("a dict as result", as_dict, (v((0, _), {"sum": 1, "product": 0}), v((_, 0))), ((3, 4), (2, 4))),
    Program("heads of attention", attention, (v(1, 1), v()), ((2, 3, 4, 5), (2, 6, 4, 5), (2, 6, 4, 5))),
    Program("filters of each", filtered, (v((0, _)), v((_, 0))), ((2, 1, 2, 5, 5), (3, 4, 2, 3, 3))),
    Program("indices", picked, (v((_, 0)), v((0, _))), ((2, 4, 3), WORDS)),
    Program("contractions", contracted, (v((0, _)), v((_, 0), 1)), ((2, 3, 4), (5, 4, 2))),
    Program("the same for all", constant_beside, (v((0, _), (0, _)),), ((3, 4), (4,))),
    Program(
        "numbers of iterations",
        root,
        (v(), v(1, 1)),
        (torch.tensor([[1.0, 4.0, 9.0], [100.0, 0.25, 2.0]]),),
        asks=True,
        loops=("prim::vmap",),
    ),
    Program(
        "branches within branches",
        clipped,
        (v((_, 0)), v((0, _))),
        ((3, 4), torch.tensor([0.1, 1.0, 5.0])),
        asks=True,
        loops=("prim::vmap",),
    ),
    # Gradients for each example.
    Program("regression", regression, (d(), v((_, 0, 0))), ((3, 2), (4, 3), (4, 2))),
    Program("classes", cross_entropy, (d((0, 1)), v((_, 0, 0))), ((5, 3), (4, 5), CLASSES)),
    Program("losses of Huber", huber, (d(), v((_, 0, 0))), ((3, 2), (4, 3), (4, 2))),
    Program("logistic regression", logistic, (d((0, 1)), v((_, 0, 0))), ((3, 2), (4, 3), (4, 2))),
    Program("parameters in a tuple", loss_of_layer, (d(), v((_, 0))), (((5, 3), (5,)), (4, 3))),
    Program("an ensemble", loss_of_layer, (d(), v((_, 0)), v((0, _))), (((4, 5, 3), (4, 5)), (2, 3))),
    Program("attention", attention_summed, (d((0, 1, 2)), v()), ((2, 3, 4), (2, 5, 4), (2, 5, 4))),
    Program("pools", pooled, (d((0, 1)), v((_, 0))), ((3, 2, 3, 3), (2, 2, 11, 11))),
    Program("adaptive pools", pooled_adaptively, (d(), v()), ((3, 2, 6, 6),)),
    Program("convolutions back and forth", convolved, (d((0, 1)), v((_, 0))), ((2, 2, 3), (3, 2, 7))),
    Program("convolutions of each", convolved, (d((0, 1)), v()), ((3, 2, 2, 3), (3, 2, 7))),
    Program("embeddings", embedded, (d(), v((_, 0))), ((4, 3), WORDS)),
    Program("embeddings of each", embedded, (d(), v()), ((4, 4, 3), WORDS)),
    Program("activations", activations, (d(), v()), ((3, 4),)),
    Program("elementary functions", elementary, (d(), v(1, 1)), ((4, 3),)),
    Program("statistics", statistics, (d(), v()), ((3, 4, 2),), loops=("autodiff::backward_of_call",)),
    Program("products", products, (d(), v()), ((3, 4, 2),)),
    Program("extremes", extremes, (d(), v()), ((3, 5, 2),)),
    Program("parts concatenated", assembled, (d(), v()), ((3, 4, 2),)),
    Program("writes", written, (d(), v()), ((3, 4),)),
    Program("writes at indices", put_in_place, (d(), v((0, _))), ((3, 4), torch.tensor([0, 2]))),
    Program("writes at indices of each", put_in_place, (d(), v((0, 0))), ((4, 4), WORDS[:, :2])),
    Program("sums at indices", accumulated, (d(), v((0, _))), ((2, 3), WORDS[1] // 2)),
    Program("gathered", gathered, (d(), v()), ((4, 4), WORDS)),
    Program("layer norm", normalized, (d((0, 1, 2)), v((0, _, _))), ((3, 2, 4), (4,), (4,))),
    Program("batch norm", of_batches, (d((0, 1, 2)), v((0, _, _))), ((3, 4, 2, 5), (2,), (2,))),
    Program("batch norm of each", of_batches, (d((0, 1, 2)), v()), ((3, 4, 2, 5), (3, 2), (3, 2))),
    Program("layer norm of each", normalized, (d((0, 1, 2)), v()), ((3, 2, 4), (3, 4), (3, 4))),
    Program("group norm", grouped, (d((0, 1)), v((0, _))), ((3, 2, 4, 5), (4,))),
    Program("linear systems", solved, (d((0, 1)), v((0, 0))), ((4, 3, 3), (4, 3))),
    Program("determinants", determinant, (d(), v()), ((4, 3, 3),)),
    Program("exponentials of matrices", exponential, (d(), v()), ((2, 3, 3),), loops=("autodiff::backward_of_call",)),
    Program("spectra", spectrum, (d(), v()), ((3, 6),), loops=("autodiff::backward_of_call",)),
    Program("similarities", similarity, (d((0, 1)), v((0, _))), ((3, 4), (4,))),
    Program("pictures made larger", upsampled, (d(), v()), ((2, 1, 2, 3, 3),)),
    Program("recurrence", recurrent, (d((0, 2)), v((0, 1, _))), ((2, 3), (4, 2, 3), (3, 3))),
    Program("lists that grow", listed, (d(), v()), ((2, 3, 4),)),
    Program("branches on numbers", turned_off, (d(), v((0, _))), ((3, 4), True)),
    Program(
        "branches on tensors", by_sign, (d(), v()), (torch.tensor([[1.0, 2.0], [-1.0, -2.0], [0.5, -0.1]]),), asks=True
    ),
    Program("loops on tensors", halved, (d(), v()), (torch.tensor([[1.0, 7.0], [0.1, 0.2], [30.0, 2.0]]),), asks=True),
    Program(
        "loops that are left",
        leaves_early,
        (d(), v()),
        (torch.tensor([[0.1, 0.9, 3.0], [2.0, 1.0, 1.0], [0.1, 0.2, 0.3]]),),
        asks=True,
        loops=("prim::vmap",),
    ),
    # Gradients of batches.
    Program(
        "a sum over a batch",
        two_layers_summed,
        (v((0, _, _, _, _)), step("sum"), d((1, 2, 3, 4))),
        ((5, 1), (1, 6), (6,), (6, 1), (1,)),
    ),
    Program("a loss over a batch", regression, (v((_, 0, 0)), step("sum"), d()), ((3, 2), (4, 3), (4, 2))),
    Program("a batch of attention", attention_summed, (v(), step("sum"), d((0, 2))), ((2, 3, 4), (2, 5, 4), (2, 5, 4))),
    Program("a batch of convolutions", pooled, (v((_, 0)), step("sum"), d((0, 1))), ((3, 2, 3, 3), (2, 2, 11, 11))),
    Program("a batch of rows", written, (v(), step("sum"), d()), ((3, 4),)),
    Program("a batch of a layer", loss_of_layer, (v((_, 0)), step("sum"), d()), (((5, 3), (5,)), (4, 3))),
    Program(
        "a batch with branches",
        by_sign,
        (v(), step("sum"), d()),
        (torch.tensor([[1.0, 2.0], [-1.0, -2.0], [0.5, -0.1]]),),
        asks=True,
    ),
    Program(
        "a batch with loops",
        halved,
        (v(), step("sum"), d()),
        (torch.tensor([[1.0, 7.0], [0.1, 0.2], [30.0, 2.0]]),),
        asks=True,
    ),
    Program("batches of batches", distance, (v((_, 0)), v((0, _)), step("sum"), d((0, 1))), ((4, 3), (5, 3))),
    # Gradients of batches of gradients, and others.
    Program(
        "penalties on gradients",
        regression,
        (d(1), v((_, 0, 0)), step("sum of squares"), d()),
        ((3, 2), (4, 3), (4, 2)),
    ),
    Program("second derivatives", polynomial, (d(), step("sum"), d(), v()), ((3, 4),)),
    Program("Hessians for each", polynomial, (step("hessian"), v()), ((3, 4),), loops=("autodiff::backward_of_call",)),
    Program("a Jacobian for each", vector, (step("jacrev"), v(0, 1)), ((3, 4),)),
    Program("the Jacobian of a batch", vector, (v(), step("jacrev")), ((3, 4),)),
    Program("tangents for each", vector, (step("jvp"), v()), ((3, 4), (3, 4))),
    Program("tangents of one example", vector, (step("jvp"), v((_, 0))), ((4,), (3, 4))),
    Program("as many tangents as dimensions", vector, (step("jvp"), v((_, 0))), ((4,), (4, 4))),
    Program("the tangent of a batch", vector, (v(), step("jvp")), ((3, 4), (3, 4))),
    Program("cotangents for each", vector, (step("vjp"), v()), ((3, 4), (3, 3))),
    Program("rows of a Jacobian", vector, (step("vjp"), v((_, 0), (_, 0))), ((4,), (3, 3))),
    Program("the cotangent of a batch", vector, (v(), step("vjp")), ((3, 4), (3, 3))),
    Program("values and gradients", polynomial, (step("value_and_grad"), v()), ((3, 4),)),
    Program("gradients in two batches", regression, (d(), v((_, 0, 0)), v((0, _, _))), ((2, 3, 2), (4, 3), (4, 2))),
]
