"""Which nodes must be in a differentiable graph: a line for each operator with a formula.

    nodes: expression

``nodes`` are kinds, without ``aten::``, that the graph of ``expression * 2`` must hold within differentiable graphs
after splitting; the ones in brackets are such that kernels can be generated for, so that with fusion they are in a
fusion group of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

_TABLE: Final = """
[add]: x + y
[add]: x + 3
[add]: torch.add(x, y, alpha=3)
[sub]: x - y
[sub]: torch.rsub(x, y)
[mul]: x * y
[mul]: x * 2.5
[div]: x / y
[div]: torch.div(x, y, rounding_mode="floor") + x
[neg]: -x
[reciprocal]: x.reciprocal()
[square]: x.square()
[abs]: x.abs()
[exp]: x.exp()
[expm1]: x.expm1()
[log]: p.log()
[log1p]: p.log1p()
[log2]: p.log2()
[log10]: p.log10()
[sqrt]: p.sqrt()
[rsqrt]: p.rsqrt()
[sin]: x.sin()
[cos]: x.cos()
[tan]: x.tan()
[asin]: (x * 0.1).asin()
[acos]: (x * 0.1).acos()
[atan]: x.atan()
[sinh]: x.sinh()
[cosh]: x.cosh()
[tanh]: x.tanh()
[sigmoid]: x.sigmoid()
[erf]: x.erf()
[erfc]: x.erfc()
lgamma: p.lgamma()
[floor]: x.floor()
[ceil]: x.ceil()
[round]: x.round()
[trunc]: x.trunc()
[frac]: x.frac()
[fmod]: x.fmod(2)
[remainder]: x.remainder(y)
[pow]: x.pow(2)
[pow]: p.pow(2.5)
[pow]: p.pow(y)
[pow]: torch.pow(2.0, x)
[maximum]: torch.maximum(x, y)
[minimum]: torch.minimum(x, y)
[clamp]: x.clamp(-0.5, 0.5)
[where]: torch.where(x > 0, x, y)
[lerp]: torch.lerp(x, y, 0.3)
[addcmul]: torch.addcmul(x, y, p, value=2)
[addcdiv]: torch.addcdiv(x, y, p, value=2)
[atan2]: torch.atan2(x, p)
xlogy: torch.xlogy(x, p)
logaddexp: torch.logaddexp(x, y)
[hypot]: torch.hypot(x, y)
[relu]: x.relu()
[hardtanh]: torch.nn.functional.hardtanh(x)
[relu6]: torch.nn.functional.relu6(x)
[leaky_relu]: torch.nn.functional.leaky_relu(x)
[elu]: torch.nn.functional.elu(x)
[gelu]: torch.nn.functional.gelu(x)
[silu]: torch.nn.functional.silu(x)
[mish]: torch.nn.functional.mish(x)
[softplus]: torch.nn.functional.softplus(x)
[hardswish]: torch.nn.functional.hardswish(x)
[hardsigmoid]: torch.nn.functional.hardsigmoid(x)
glu: torch.nn.functional.glu(x)
[log_sigmoid]: torch.nn.functional.logsigmoid(x)
[softmax]: x.softmax(1)
[log_softmax]: x.log_softmax(1)
dropout: torch.nn.functional.dropout(x, 0.5, True)
t, mm: x.mm(y.t())
matmul: x.matmul(y.t())
bmm: b.bmm(b.transpose(1, 2))
mv: x.mv(v)
dot: v.dot(v)
addmm: torch.addmm(v, x, s)
baddbmm: torch.baddbmm(b, b, q)
linear: torch.nn.functional.linear(x, s, v)
outer: torch.outer(v, v)
sum: x.sum()
sum: x.sum(1)
mean: x.mean()
mean: x.mean(0, keepdim=True)
amax: x.amax(1)
max: x.max(1)[0]
max: x.max()
var: x.var(1)
std: x.std(1)
norm: x.norm(3.0, [1])
linalg_vector_norm: torch.linalg.vector_norm(x, 2.0)
prod: x.prod(1)
logsumexp: x.logsumexp(1)
cumsum: x.cumsum(1)
topk: x.topk(2)[0]
sort: x.sort(1)[0]
view: x.view(3, 8)
reshape: x.reshape(3, 8)
flatten: b.flatten(1)
[transpose]: x.transpose(0, 1)
permute: b.permute(2, 0, 1)
expand: v.expand(4, 6)
[unsqueeze]: x.unsqueeze(1)
[squeeze]: x.squeeze(0)
contiguous: x.t().contiguous()
clone: x.clone()
[to]: x.to(torch.float32).to(torch.float64)
cat: torch.cat([x, y], 1)
stack: torch.stack([x, y], 1)
chunk: x.chunk(2, 1)[0] * 2 + x.chunk(2, 1)[1]
split: x.split(3, 1)[0] * 2 + x.split(3, 1)[1]
unbind: x.unbind(0)[0] * x.unbind(0)[1]
repeat: x.repeat(2, 1)
flip: x.flip([1])
roll: x.roll([1], [0])
tril: x.tril()
triu: x.triu()
diagonal: x.diagonal()
constant_pad_nd: torch.constant_pad_nd(x, [1, 1])
[select]: x.select(0, 1)
[slice]: x[1:3]
index: x[i]
index_select: x.index_select(0, i)
gather: x.gather(1, j)
scatter_add: x.scatter_add(1, j, y)
[masked_fill]: x.masked_fill(y > 0, 0.5)
embedding: torch.nn.functional.embedding(i, x)
layer_norm: torch.nn.functional.layer_norm(x, [6], v, v)
batch_norm: torch.nn.functional.batch_norm(x, None, None, v, v, True)
group_norm: torch.nn.functional.group_norm(x, 2, v, v)
conv1d: torch.nn.functional.conv1d(b, w)
conv2d: torch.nn.functional.conv2d(m, k, padding=1)
conv_transpose2d: torch.nn.functional.conv_transpose2d(m, k.transpose(0, 1))
max_pool2d: torch.nn.functional.max_pool2d(m, 2)
avg_pool2d: torch.nn.functional.avg_pool2d(m, 2)
adaptive_avg_pool2d: torch.nn.functional.adaptive_avg_pool2d(m, [2, 2])
mse_loss: torch.nn.functional.mse_loss(x, y)
l1_loss: torch.nn.functional.l1_loss(x, y)
smooth_l1_loss: torch.nn.functional.smooth_l1_loss(x, y)
huber_loss: torch.nn.functional.huber_loss(x, y)
binary_cross_entropy: torch.nn.functional.binary_cross_entropy(x.sigmoid(), y.sigmoid())
binary_cross_entropy_with_logits: torch.nn.functional.binary_cross_entropy_with_logits(x, y)
cross_entropy_loss: torch.nn.functional.cross_entropy(x, i)
nll_loss_nd: torch.nn.functional.nll_loss(x.log_softmax(1), i)
kl_div: torch.nn.functional.kl_div(x, y.softmax(1), reduction="sum")
margin_ranking_loss: torch.nn.functional.margin_ranking_loss(x, y, x.sign())
hinge_embedding_loss: torch.nn.functional.hinge_embedding_loss(x, y.sign())
poisson_nll_loss: torch.nn.functional.poisson_nll_loss(x, p)
scaled_dot_product_attention: torch.nn.functional.scaled_dot_product_attention(b, b, b)
scaled_dot_product_attention: torch.nn.functional.scaled_dot_product_attention(b, b, b, dropout_p=0.2)
einsum: torch.einsum("bij,bkj->bik", b, b)
inner: torch.inner(x, v)
tensordot: torch.tensordot(x, s, 1)
kron: torch.kron(x, v)
cosine_similarity: torch.nn.functional.cosine_similarity(x, y)
pairwise_distance: torch.nn.functional.pairwise_distance(x, y)
cdist: torch.cdist(x, y)
instance_norm: torch.nn.functional.instance_norm(m)
max_pool1d: torch.nn.functional.max_pool1d(b, 2)
adaptive_max_pool1d: torch.nn.functional.adaptive_max_pool1d(b, 2)
prelu: torch.nn.functional.prelu(x, v)
feature_dropout: torch.feature_dropout(m, 0.5, True)
alpha_dropout: torch.nn.functional.alpha_dropout(x, 0.5, True)
scatter: x.scatter(1, j, y)
scatter_reduce: x.scatter_reduce(1, j, y, "amax")
scatter_reduce: x.scatter_reduce(1, j, y, "mean")
index_add: x.index_add(0, i, y)
take_along_dim: x.take_along_dim(j, 1)
hstack: torch.hstack([x, y])
vstack: torch.vstack([x, y])
diff: x.diff(dim=1)
linalg_solve: torch.linalg.solve(s, s.t())
linalg_cholesky: torch.linalg.cholesky(s @ s.t())
linalg_slogdet: torch.linalg.slogdet(s)[1]
[min]: torch.min(x, y)
nanmean: x.nanmean()
_safe_softmax: torch._safe_softmax(x, 1)
_softmax_backward_data: torch._softmax_backward_data(x, y, 1, torch.float64)
hardshrink: torch.nn.functional.hardshrink(x)
meshgrid: torch.meshgrid([v, v], indexing="ij")[0] * v
split_with_sizes: torch.split_with_sizes(x, [2, 4], 1)[1] * 2
unsafe_split: torch.unsafe_split(x, 3, 1)[0] * 2
permute_copy: torch.permute_copy(x, [1, 0])
squeeze_copy: torch.squeeze_copy(x, 0)
unsqueeze_copy: torch.unsqueeze_copy(x, 0)
t_copy: torch.t_copy(x)
"""


@dataclass(slots=True, frozen=True)
class Check:
    """``fusible`` and ``nonfusible`` nodes must be in differentiable graphs."""

    expression: str
    nonfusible: tuple[str, ...]
    fusible: tuple[str, ...]

    @property
    def source(self) -> str:
        parameters = ", ".join(name for name in INPUTS if name in self.names)
        return f"def f({parameters}):\n    return ({self.expression}) * 2\n"

    @property
    def names(self) -> list[str]:
        """The parameters of the program, in order."""
        tree = compile(self.expression, "<check>", "eval")
        return [name for name in INPUTS if name in tree.co_names]

    def __str__(self) -> str:
        return self.expression.replace("torch.nn.functional.", "F.")


def _inputs() -> dict[str, Tensor]:
    torch.manual_seed(8)
    sizes = {"x": (4, 6), "y": (4, 6), "v": (6,), "s": (6, 6), "b": (2, 3, 4), "q": (2, 4, 4), "m": (2, 3, 8, 8)}
    found = {name: torch.randn(size, dtype=torch.float64, requires_grad=True) for name, size in sizes.items()}
    found["q"] = torch.randn(2, 4, 4, dtype=torch.float64, requires_grad=True)
    found["w"] = torch.randn(5, 3, 2, dtype=torch.float64, requires_grad=True)
    found["k"] = torch.randn(4, 3, 3, 3, dtype=torch.float64, requires_grad=True)
    found["p"] = torch.rand(4, 6, dtype=torch.float64).add(0.5).requires_grad_()
    found["i"] = torch.tensor([0, 3, 1, 1])
    found["j"] = torch.randint(0, 6, (4, 6))
    return found


INPUTS: Final = _inputs()


def checks() -> list[Check]:
    found = []
    for line in _TABLE.strip().splitlines():
        nodes, _, expression = line.partition(": ")
        kinds = [kind.strip() for kind in nodes.split(",")]
        fusible = tuple(f"aten::{kind[1:-1]}" for kind in kinds if kind.startswith("["))
        found.append(Check(expression, tuple(f"aten::{kind}" for kind in kinds if not kind.startswith("[")), fusible))
    return found
