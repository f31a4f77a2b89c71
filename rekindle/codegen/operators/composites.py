"""Composite operators: kernels compute them as the operators that they consist of.

A composite remains one node of a fused group. When a kernel is generated, and the layouts of its inputs are known, the
composite is expanded. If there is no kernel (another dtype, matrices that BLAS multiplies), PyTorch runs it as one
operator. The strides of a result follow from the expansion, and must be PyTorch's. An expansion raises ``Unsupported``
for arguments that PyTorch rejects.

.. code-block:: text

    aten::glu(x, dim)        a, b = the halves of x along dim        a * sigmoid(b)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import torch

from rekindle.codegen.layout import is_contiguous
from rekindle.codegen.loop_ir.builder import Unsupported
from rekindle.ir.scalar_types import DTYPE_NUMBERS

Tensor = Any
"""A value of :mod:`rekindle.codegen.value_descriptors`, which has a ``layout``."""


class Emitter(Protocol):
    """Function that applies operators to values of a kernel."""

    def __call__(self, operator: str, *arguments: Any) -> Any:
        """Apply an operator, named without its namespace, or a check of
        :data:`~rekindle.codegen.operators.pointwise_ops.CHECKS`. Arguments that are left out have their defaults."""


@dataclass(frozen=True, slots=True)
class Composite:
    """A composite operator. ``expand`` is called with an emitter and the arguments of the schema, and returns the
    output, or a tuple of several. Tensors are values of the kernel; other arguments are Python constants. All tensors
    but those named in ``indices`` have one dtype, float32 or float64. With ``multiplies``, it contains matrix
    products."""

    expand: Callable[..., Any]
    indices: frozenset[str]
    multiplies: bool


COMPOSITES: Final[dict[str, Composite]] = {}
"""By qualified name."""

Rule = Callable[..., Any]


def composite(*operators: str, indices: str = "", multiplies: bool = False) -> Callable[[Rule], Rule]:
    """Register the decorated expansion of operators. They are of ``aten``, or named with their namespace. See
    :class:`Composite` for ``indices``, names of parameters in one string, and ``multiplies``."""

    def register(expand: Rule) -> Rule:
        for operator in operators:
            name = operator if "::" in operator else f"aten::{operator}"
            COMPOSITES[name] = Composite(expand, frozenset(indices.split()), multiplies)
        return expand

    return register


class _Arithmetic:
    """Arithmetic on tensors and numbers, in terms of an emitter."""

    def __init__(self, emit: Emitter) -> None:
        self.emit = emit

    def _binary(self, name: str, a: Tensor, b: Any) -> Tensor:
        return self.emit(f"{name}.{'Scalar' if isinstance(b, int | float) else 'Tensor'}", a, b)

    def add(self, a: Tensor, b: Any) -> Tensor:
        return self._binary("add", a, b)

    def sub(self, a: Tensor, b: Any) -> Tensor:
        return self._binary("sub", a, b)

    def mul(self, a: Tensor, b: Any) -> Tensor:
        return self._binary("mul", a, b)

    def div(self, a: Tensor, b: Any) -> Tensor:
        return self._binary("div", a, b)

    def one_minus(self, a: Tensor) -> Tensor:
        return self.emit("rsub.Scalar", a, 1)

    def reduced(self, loss: Tensor, reduction: int) -> Tensor:
        """Apply the reduction of a loss: 0 none, 1 the mean, 2 the sum."""
        return loss if reduction == 0 else self.emit("mean" if reduction == 1 else "sum", loss)


# ---------------------------------------------------------------------------------------------------------- activations


@composite("glu")
def glu(emit: Emitter, self: Tensor, dim: int) -> Tensor:
    sizes = self.layout.sizes
    if not -len(sizes) <= dim < len(sizes) or sizes[dim] % 2:
        raise Unsupported("halves that do not exist")
    half = sizes[dim] // 2
    first, second = (emit("narrow", self, dim, start, half) for start in (0, half))
    return emit("mul.Tensor", first, emit("sigmoid", second))


@composite("softshrink")
def softshrink(emit: Emitter, self: Tensor, lambd: float) -> Tensor:
    if not lambd >= 0:
        raise Unsupported("a threshold that is an error")
    ops = _Arithmetic(emit)
    inner = emit("where.self", emit("lt.Scalar", self, -lambd), ops.add(self, lambd), ops.mul(self, 0))
    return emit("where.self", emit("gt.Scalar", self, lambd), ops.sub(self, lambd), inner)


@composite("hardshrink")
def hardshrink(emit: Emitter, self: Tensor, lambd: float) -> Tensor:
    return emit("where.ScalarSelf", emit("le.Scalar", emit("abs", self), lambd), 0, self)


@composite("prelu")
def prelu(emit: Emitter, self: Tensor, weight: Tensor) -> Tensor:
    rank, sizes = self.layout.rank, weight.layout.sizes
    if len(sizes) != 1 or rank == 0:
        raise Unsupported("weights of other than one dimension")
    if sizes[0] != 1:
        if rank < 2 or sizes[0] != self.layout.sizes[1]:
            raise Unsupported("weights of another number than the channels")
        for _ in range(rank - 2):
            weight = emit("unsqueeze", weight, -1)
    return emit("where.self", emit("gt.Scalar", self, 0), self, emit("mul.Tensor", self, weight))


@composite("rms_norm")
def rms_norm(
    emit: Emitter, input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, eps: float | None
) -> Tensor:
    layout, count = input.layout, len(normalized_shape)
    if not is_contiguous(layout):
        raise Unsupported("rows in another order than those of the result")
    if count == 0 or layout.sizes[-count:] != tuple(normalized_shape):
        raise Unsupported("rows of another shape")
    if weight is not None and weight.layout.sizes != tuple(normalized_shape):
        raise Unsupported("weights of another shape than the rows")
    epsilon = torch.finfo(layout.dtype).eps if eps is None else eps
    mean = emit("mean.dim", emit("mul.Tensor", input, input), list(range(-count, 0)), True)
    scaled = emit("mul.Tensor", input, emit("rsqrt", emit("add.Scalar", mean, epsilon)))
    return scaled if weight is None else emit("mul.Tensor", scaled, weight)


# ---------------------------------------------------------------------------------------------------- recurrent cells


def _check_state(input: Tensor, state: Tensor, w_hh: Tensor) -> None:
    """Check that the state of a recurrent cell has one row for each row of the input, of the length of the rows of
    ``w_hh``.

    Raises:
        Unsupported: it has other sizes, for which PyTorch raises its own error.
    """
    if state.layout.sizes != (input.layout.sizes[0], w_hh.layout.sizes[-1]):
        raise Unsupported("a state of another size than the cell's")


def _gates(emit: Emitter, x: Tensor, w: Tensor, b: Tensor | None, count: int) -> list[Tensor]:
    """Return the ``count`` equal parts of ``linear(x, w, b)`` along the last dimension, the gates of a recurrent
    cell.

    Raises:
        Unsupported: ``x`` or ``w`` is not a matrix.
    """
    if x.layout.rank != 2 or w.layout.rank != 2:
        raise Unsupported("a cell without a batch")
    whole = emit("linear", x, w, b)
    width = whole.layout.sizes[1] // count
    return [emit("narrow", whole, 1, number * width, width) for number in range(count)]


@composite("lstm_cell", multiplies=True)
def lstm_cell(
    emit: Emitter,
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None,
    b_hh: Tensor | None,
) -> tuple[Tensor, Tensor]:
    if len(hx) != 2:
        raise Unsupported("a state of other than two tensors")
    ops = _Arithmetic(emit)
    pairs = zip(_gates(emit, input, w_ih, b_ih, 4), _gates(emit, hx[0], w_hh, b_hh, 4), strict=True)
    for each in hx:
        _check_state(input, each, w_hh)
    ingate, forget, cell, out = (ops.add(a, b) for a, b in pairs)
    kept = ops.mul(emit("sigmoid", forget), hx[1])
    state = ops.add(kept, ops.mul(emit("sigmoid", ingate), emit("tanh", cell)))
    return ops.mul(emit("sigmoid", out), emit("tanh", state)), state


@composite("gru_cell", multiplies=True)
def gru_cell(
    emit: Emitter, input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None
) -> Tensor:
    ops = _Arithmetic(emit)
    (ir, iz, inew), (hr, hz, hnew) = (_gates(emit, *each, 3) for each in ((input, w_ih, b_ih), (hx, w_hh, b_hh)))
    _check_state(input, hx, w_hh)
    reset, update = emit("sigmoid", ops.add(hr, ir)), emit("sigmoid", ops.add(hz, iz))
    new = emit("tanh", ops.add(inew, ops.mul(hnew, reset)))
    return ops.add(ops.mul(ops.sub(hx, new), update), new)


def _simple_cell(activation: str) -> Rule:
    def expand(
        emit: Emitter, input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None
    ) -> Tensor:
        (first,), (second,) = _gates(emit, input, w_ih, b_ih, 1), _gates(emit, hx, w_hh, b_hh, 1)
        _check_state(input, hx, w_hh)
        return emit(activation, emit("add.Tensor", first, second))

    return expand


composite("rnn_tanh_cell", multiplies=True)(_simple_cell("tanh"))
composite("rnn_relu_cell", multiplies=True)(_simple_cell("relu"))


# --------------------------------------------------------------------------------------------------------------- losses


@composite("mse_loss")
def mse_loss(emit: Emitter, self: Tensor, target: Tensor, reduction: int) -> Tensor:
    ops = _Arithmetic(emit)
    difference = ops.sub(self, target)
    return ops.reduced(ops.mul(difference, difference), reduction)


@composite("l1_loss")
def l1_loss(emit: Emitter, self: Tensor, target: Tensor, reduction: int) -> Tensor:
    ops = _Arithmetic(emit)
    return ops.reduced(emit("abs", ops.sub(self, target)), reduction)


@composite("smooth_l1_loss")
def smooth_l1_loss(emit: Emitter, self: Tensor, target: Tensor, reduction: int, beta: float) -> Tensor:
    if beta <= 0:
        raise Unsupported("a loss without a quadratic part")
    ops = _Arithmetic(emit)
    gap = emit("abs", ops.sub(self, target))
    near = ops.div(ops.mul(ops.mul(gap, gap), 0.5), beta)
    return ops.reduced(emit("where.self", emit("lt.Scalar", gap, beta), near, ops.sub(gap, 0.5 * beta)), reduction)


@composite("huber_loss")
def huber_loss(emit: Emitter, self: Tensor, target: Tensor, reduction: int, delta: float) -> Tensor:
    if delta <= 0:
        raise Unsupported("a loss that is an error")
    ops = _Arithmetic(emit)
    gap = emit("abs", ops.sub(self, target))
    near, far = ops.mul(ops.mul(gap, gap), 0.5), ops.mul(ops.sub(gap, 0.5 * delta), delta)
    return ops.reduced(emit("where.self", emit("lt.Scalar", gap, delta), near, far), reduction)


@composite("soft_margin_loss")
def soft_margin_loss(emit: Emitter, self: Tensor, target: Tensor, reduction: int) -> Tensor:
    ops = _Arithmetic(emit)
    product = ops.mul(self, target)
    if product.layout.sizes != self.layout.sizes:
        raise Unsupported("targets that are wider than what they are compared with")
    return ops.reduced(emit("log1p", emit("exp", emit("neg", product))), reduction)


@composite("binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(
    emit: Emitter,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    pos_weight: Tensor | None,
    reduction: int,
) -> Tensor:
    ops = _Arithmetic(emit)
    loss = emit("log_sigmoid", self)
    if pos_weight is not None:
        loss = ops.mul(loss, ops.add(ops.mul(ops.sub(pos_weight, 1), target), 1))
    fits = loss.layout.sizes == self.layout.sizes
    loss = ops.sub(ops.mul(ops.one_minus(target), self), loss)
    loss = loss if weight is None else ops.mul(loss, weight)
    if not fits or loss.layout.sizes != target.layout.sizes:
        raise Unsupported("operands that do not fit into those that PyTorch multiplies in place")
    return ops.reduced(loss, reduction)


@composite("binary_cross_entropy")
def binary_cross_entropy(emit: Emitter, self: Tensor, target: Tensor, weight: Tensor | None, reduction: int) -> Tensor:
    if target.layout.sizes != self.layout.sizes:
        raise Unsupported("targets of another shape than the probabilities")
    ops = _Arithmetic(emit)
    self, target = (emit("check_between", each, 0.0, 1.0) for each in (self, target))
    of_one, of_zero = (emit("clamp_min", each, -100) for each in (emit("log", self), emit("log1p", emit("neg", self))))
    loss = ops.sub(ops.mul(of_zero, ops.sub(target, 1)), ops.mul(of_one, target))
    if weight is not None:
        loss = ops.mul(loss, weight)
        if loss.layout.sizes != self.layout.sizes:
            raise Unsupported("weights that do not fit into the loss, which PyTorch multiplies in place")
    return ops.reduced(loss, reduction)


@composite("kl_div")
def kl_div(emit: Emitter, self: Tensor, target: Tensor, reduction: int, log_target: bool) -> Tensor:
    ops = _Arithmetic(emit)
    if log_target:
        return ops.reduced(ops.mul(emit("exp", target), ops.sub(target, self)), reduction)
    entropy = ops.mul(target, emit("log", target))
    entropy = emit("where.ScalarSelf", emit("eq.Scalar", target, 0), 0, entropy)
    return ops.reduced(ops.sub(entropy, ops.mul(target, self)), reduction)


@composite("poisson_nll_loss")
def poisson_nll_loss(
    emit: Emitter, input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int
) -> Tensor:
    ops = _Arithmetic(emit)
    if log_input:
        loss = ops.sub(emit("exp", input), ops.mul(target, input))
    else:
        loss = ops.sub(input, ops.mul(target, emit("log", ops.add(input, eps))))
    if full:
        logarithm = emit("log", target)
        stirling = ops.add(ops.sub(ops.mul(target, logarithm), target), ops.mul(logarithm, 0.5))
        stirling = ops.add(stirling, 0.5 * math.log(2 * math.pi))
        loss = ops.add(loss, emit("where.ScalarSelf", emit("le.Scalar", target, 1), 0, stirling))
    return ops.reduced(loss, reduction)


@composite("hinge_embedding_loss")
def hinge_embedding_loss(emit: Emitter, self: Tensor, target: Tensor, margin: float, reduction: int) -> Tensor:
    ops = _Arithmetic(emit)
    far = emit("clamp_min", emit("rsub.Scalar", self, margin), 0)
    far = emit("where.ScalarOther", emit("ne.Scalar", target, 1), far, 0)
    near = emit("where.ScalarOther", emit("ne.Scalar", target, -1), self, 0)
    return ops.reduced(ops.add(far, near), reduction)


@composite("margin_ranking_loss")
def margin_ranking_loss(
    emit: Emitter, input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: int
) -> Tensor:
    ops = _Arithmetic(emit)
    gap = ops.mul(emit("neg", target), ops.sub(input1, input2))
    return ops.reduced(emit("clamp_min", ops.add(gap, margin), 0), reduction)


@composite("pairwise_distance")
def pairwise_distance(emit: Emitter, x1: Tensor, x2: Tensor, p: float, eps: float, keepdim: bool) -> Tensor:
    ops = _Arithmetic(emit)
    gap = ops.add(ops.sub(x1, x2), eps)
    if gap.layout.rank == 0:
        raise Unsupported("vectors without a dimension")
    return emit("norm.ScalarOpt_dim", gap, p, [-1], keepdim)


@composite("cosine_similarity")
def cosine_similarity(emit: Emitter, x1: Tensor, x2: Tensor, dim: int, eps: float) -> Tensor:
    if eps < 0:
        raise Unsupported("an epsilon that is an error")
    if x1.layout.sizes != x2.layout.sizes or x1.layout.rank == 0:
        raise Unsupported("vectors of several sizes")
    ops = _Arithmetic(emit)
    lengths = [emit("sqrt", emit("sum.dim_IntList", ops.mul(x, x), [dim], True)) for x in (x1, x2)]
    first, second = (ops.div(x, emit("clamp_min", length, eps)) for x, length in zip((x1, x2), lengths, strict=True))
    return emit("sum.dim_IntList", ops.mul(first, second), [dim])


@composite("cosine_embedding_loss")
def cosine_embedding_loss(
    emit: Emitter, input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: int
) -> Tensor:
    rank = target.layout.rank
    if not input1.layout.rank == input2.layout.rank == rank + 1 <= 2:
        raise Unsupported("tensors of other ranks")
    ops = _Arithmetic(emit)
    product, first, second = (
        emit("sum.dim_IntList", ops.mul(a, b), [rank])
        for a, b in ((input1, input2), (input1, input1), (input2, input2))
    )
    tiny = 1e-12  # keeps the lengths from being 0, as in PyTorch
    cosine = ops.div(product, emit("sqrt", ops.mul(ops.add(first, tiny), ops.add(second, tiny))))
    near = emit("where.ScalarOther", emit("eq.Scalar", target, 1), ops.one_minus(cosine), 0)
    far = emit("clamp_min", ops.sub(cosine, margin), 0)
    far = emit("where.ScalarOther", emit("eq.Scalar", target, -1), far, 0)
    return ops.reduced(ops.add(near, far), reduction)


@composite("triplet_margin_loss")
def triplet_margin_loss(
    emit: Emitter,
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float,
    p: float,
    eps: float,
    swap: bool,
    reduction: int,
) -> Tensor:
    if not anchor.layout.rank == positive.layout.rank == negative.layout.rank:
        raise Unsupported("tensors of several ranks")
    ops = _Arithmetic(emit)
    near, far = (pairwise_distance(emit, anchor, other, p, eps, False) for other in (positive, negative))
    if swap:
        far = emit("minimum", far, pairwise_distance(emit, positive, negative, p, eps, False))
    return ops.reduced(emit("clamp_min", ops.add(ops.sub(near, far), margin), 0), reduction)


@composite("cross_entropy_loss", indices="target")
def cross_entropy_loss(
    emit: Emitter,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    label_smoothing: float,
) -> Tensor:
    if weight is not None or label_smoothing != 0:
        raise Unsupported("classes with weights, or smoothed labels")
    return nll_loss_nd(emit, emit("log_softmax.int", self, self.layout.rank - 1), target, None, reduction, ignore_index)


@composite("nll_loss_nd", indices="target")
def nll_loss_nd(
    emit: Emitter, self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> Tensor:
    layout, labels = self.layout, target.layout
    is_batch = layout.rank == 2 and labels.rank == 1 and layout.sizes[0] == labels.sizes[0]
    if weight is not None or not is_batch or labels.dtype != torch.int64:
        raise Unsupported("classes with weights, or other than a batch of labels")
    ops = _Arithmetic(emit)
    ignored = emit("eq.Scalar", target, ignore_index)
    label = emit("masked_fill.Scalar", target, ignored, 0)
    found = emit("squeeze.dim", emit("gather", self, 1, emit("unsqueeze", label, 1)), 1)
    loss = emit("masked_fill.Scalar", emit("neg", found), ignored, 0)
    if reduction != 1:
        return ops.reduced(loss, reduction)
    return ops.div(
        emit("sum", loss), emit("sum", emit("to.dtype", emit("logical_not", ignored), DTYPE_NUMBERS[layout.dtype]))
    )
