"""The attention kernel beside PyTorch's in 64-bit floats: sizes, masks, strides, hostile numbers, guard pages."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

import rekindle
from rekindle.codegen.attention import attention_ir
from rekindle.codegen.attention.attention import MAX_KEYS, Attention
from rekindle.codegen.convolution.workspace import Workspace
from rekindle.codegen.llvm.target import named_target
from rekindle.codegen.selection import Selection
from rekindle.errors import RekindleError
from tests.codegen.test_bounds import Guarded
from tests.versions.differences import RELEASE


def reference(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, **options: Any) -> Tensor:
    if mask is not None and mask.dtype is not torch.bool:
        mask = mask.double()
    wide = (each.double() for each in (query, key, value))
    return F.scaled_dot_product_attention(*wide, attn_mask=mask, **options)


def heads(batch: int, count: int, length: int, width: int, generator: torch.Generator, is_split: bool) -> Tensor:
    """A tensor of heads; ``is_split``: rows of all heads are beside each other in memory."""
    if is_split:
        return torch.randn(batch, length, count, width, generator=generator).transpose(1, 2)
    return torch.randn(batch, count, length, width, generator=generator)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_it_is_attention(data: st.DataObject) -> None:
    batch, groups, group = (data.draw(st.integers(1, 3)) for _ in range(3))
    queries, keys, dimensions, width = (data.draw(st.integers(1, most)) for most in (70, 150, 70, 70))
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 1000)))
    is_split = data.draw(st.booleans())
    query = heads(batch, groups * group, queries, dimensions, generator, is_split)
    key = heads(batch, groups, keys, dimensions, generator, is_split)
    value = heads(batch, groups, keys, width, generator, is_split)
    options: dict[str, Any] = {"scale": data.draw(st.sampled_from([None, 0.3, 0.05]))}
    mask = None
    kind = data.draw(st.sampled_from(["none", "causal", "floats", "bools"]))
    if kind in ("floats", "bools"):
        sizes = [(batch, groups * group, queries, keys), (1, 1, 1, keys), (queries, 1), (batch, 1, queries, keys)]
        mask = torch.randn(data.draw(st.sampled_from(sizes)), generator=generator)
        mask = mask > -0.5 if kind == "bools" else mask
    options["is_causal"] = kind == "causal"
    found = Attention().run(query, key, value, mask, **options)
    assert found is not None
    expected = reference(query, key, value, mask, enable_gqa=True, **options)
    assert found.shape == expected.shape
    assert found.transpose(1, 2).is_contiguous()
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("level", ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"])
def test_older_processors(level: str) -> None:
    try:
        target = named_target(level)
    except RekindleError as error:
        pytest.skip(str(error))
    generator = torch.Generator().manual_seed(1)
    query, key, value = (heads(2, 3, length, 24, generator, True) for length in (37, 45, 45))
    found = Attention(target).run(query, key, value)
    assert found is not None
    torch.testing.assert_close(found.double(), reference(query, key, value), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("level", ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("queries", [1, 3, 4, 5])
def test_few_queries_with_many_keys(level: str, queries: int) -> None:
    try:
        target = named_target(level)
    except RekindleError as error:
        pytest.skip(str(error))
    generator = torch.Generator().manual_seed(queries)
    query = heads(2, 4, queries, 33, generator, True)
    key, value = heads(2, 2, 300, 33, generator, False), heads(2, 2, 300, 70, generator, True)
    mask = torch.randn(queries, 300, generator=generator)
    for options in ({}, {"is_causal": True}, {"mask": mask}, {"mask": mask > 0}):
        found = Attention(target).run(query, key, value, **options)
        assert found is not None
        expected = reference(query, key, value, enable_gqa=True, **options)
        torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=2e-5)
    exact = reference(query, key, value, enable_gqa=True)
    found = Attention(target).run(query, key, value)
    torchs = F.scaled_dot_product_attention(query, key, value, enable_gqa=True)
    error, torchs_error = ((each - exact).square().mean().sqrt() for each in (found, torchs))
    assert error <= 1.5 * torchs_error


@pytest.mark.parametrize("length", [64, 500, 2000])
def test_errors_are_about_those_of_pytorch(length: int) -> None:
    generator = torch.Generator().manual_seed(length)
    query, key, value = (heads(1, 2, length, 64, generator, True) for _ in range(3))
    found = Attention().run(query, key, value)
    assert found is not None
    exact = reference(query, key, value)
    error, torchs_error = (
        (each - exact).square().mean().sqrt() for each in (found, F.scaled_dot_product_attention(query, key, value))
    )
    assert error <= 1.5 * torchs_error


def test_sizes_that_are_not_supported() -> None:
    ones = torch.ones
    assert Attention().run(ones(1, 3, 4, 8), ones(1, 2, 4, 8), ones(1, 2, 4, 8)) is None
    assert Attention().run(ones(1, 1, 4, 8), ones(1, 1, 4, 7), ones(1, 1, 4, 8)) is None
    assert Attention().run(ones(2, 1, 4, 8), ones(1, 1, 4, 8), ones(1, 1, 4, 8)) is None
    many = ones(1, 1, 1, 1).expand(1, 1, MAX_KEYS + 1, 1)
    assert Attention().run(ones(1, 1, 1, 1), many, many) is None


def test_queries_that_see_nothing_give_zeros() -> None:
    generator = torch.Generator().manual_seed(2)
    query, key, value = (heads(1, 2, 5, 8, generator, False) for _ in range(3))
    mask = torch.ones(5, 5, dtype=torch.bool)
    mask[2] = False
    found = Attention().run(query, key, value, mask)
    assert found is not None
    assert torch.equal(found[:, :, 2], torch.zeros(1, 2, 8))
    torch.testing.assert_close(found, F.scaled_dot_product_attention(query, key, value, attn_mask=mask))


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan, 1e30, 1e-42])
@pytest.mark.parametrize("where", ["query", "key", "value", "mask"])
@pytest.mark.parametrize("queries", [3, 40])
def test_hostile_numbers_reach_what_they_reach_in_pytorch(number: float, where: str, queries: int) -> None:
    generator = torch.Generator().manual_seed(3)
    lengths = {"query": queries, "key": 40, "value": 40}
    tensors = {name: heads(1, 2, length, 16, generator, False) for name, length in lengths.items()}
    tensors["mask"] = torch.randn(queries, 40, generator=generator)
    tensors[where][..., min(7, tensors[where].shape[-2] - 1), 3] = number
    *three, mask = tensors.values()
    found = Attention().run(*three, mask)
    assert found is not None
    expected = torch.softmax(three[0] @ three[1].transpose(-2, -1) * 0.25 + mask, -1) @ three[2]
    torch.testing.assert_close(found, expected, equal_nan=True, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("at_end", [False, True])
@pytest.mark.parametrize(
    ("queries", "keys", "dimensions", "width"), [(3, 5, 7, 9), (33, 70, 64, 64), (8, 32, 33, 31), (1, 130, 16, 33)]
)
def test_nothing_beside_the_tensors_is_touched(
    queries: int, keys: int, dimensions: int, width: int, at_end: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = []

    def guarded(like: Tensor) -> Tensor:
        kept.append(Guarded(like.numel() * like.element_size(), at_end))
        return kept[-1].tensor(like)

    generator = torch.Generator().manual_seed(4)
    query, key, value, mask = (
        guarded(torch.randn(sizes, generator=generator))
        for sizes in ((1, 2, queries, dimensions), (1, 2, keys, dimensions), (1, 2, keys, width), (queries, keys))
    )
    monkeypatch.setattr(Workspace, "of", lambda self, size: guarded(torch.empty(-(-size // 4))))
    found = Attention().run(query, key, value, mask)
    assert found is not None
    torch.testing.assert_close(found.double(), reference(query, key, value, mask), rtol=1e-5, atol=2e-5)


def test_threads_share_the_tasks() -> None:
    generator = torch.Generator().manual_seed(5)
    query, key, value = (heads(1, 3, 300, 32, generator, True) for _ in range(3))
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3, 7):
            torch.set_num_threads(threads)
            results.append(Attention().run(query, key, value))
    finally:
        torch.set_num_threads(before)
    first, *others = results
    assert first is not None
    for each in others:
        assert each is not None
        assert torch.equal(each, first), "each number is computed by one thread, in the same order"


class Attending(nn.Module):
    def __init__(self, is_causal: bool = False) -> None:
        super().__init__()
        self.is_causal = is_causal

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, mask, is_causal=self.is_causal)


@pytest.mark.parametrize("name", ["own", "PyTorch"])
def test_every_candidate_gives_the_same_answers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Selection, "_choose", lambda self, kind, arguments: self.candidates[name])
    generator = torch.Generator().manual_seed(6)
    q, k, v = (heads(2, 4, 20, 16, generator, True) for _ in range(3))
    fast = rekindle.optimize_for_inference(rekindle.script(Attending().eval()))
    assert fast.graph.find_nodes("prim::attention")
    with torch.no_grad():
        for mask in (None, torch.randn(20, 20, generator=generator), torch.rand(20, 20, generator=generator) > 0.3):
            torch.testing.assert_close(fast(q, k, v, mask), Attending()(q, k, v, mask))


def test_what_the_kernel_cannot_take_pytorchs_operator_runs() -> None:
    generator = torch.Generator().manual_seed(7)
    q, k, v = (heads(2, 4, 6, 8, generator, False) for _ in range(3))
    fast = rekindle.optimize_for_inference(rekindle.script(Attending(is_causal=True).eval()))
    eager = Attending(is_causal=True)
    with torch.no_grad():
        torch.testing.assert_close(fast(q[0], k[0], v[0]), eager(q[0], k[0], v[0]))
        torch.testing.assert_close(fast(q.double(), k.double(), v.double()), eager(q.double(), k.double(), v.double()))
        torch.testing.assert_close(fast(q[:, :, :0], k, v), eager(q[:, :, :0], k, v))
        torch.testing.assert_close(torch.vmap(fast)(q[None], k[None], v[None]), eager(q, k, v)[None])
        mask = torch.randn(6, 6, generator=generator)
        if RELEASE < (2, 15):
            torch.testing.assert_close(fast(q, k, v, mask), eager(q, k, v, mask))
        else:
            for each in (fast, eager):
                with pytest.raises(RuntimeError, match="attn_mask should not be set when is_causal=True"):
                    each(q, k, v, mask)
        with pytest.raises(RuntimeError, match="Expected size for first two dimensions"):
            fast(q, k[:, :, :, :5], v)
    q.requires_grad_()
    (ours,) = torch.autograd.grad(fast(q, k, v).sum(), q)
    (theirs,) = torch.autograd.grad(eager(q, k, v).sum(), q)
    torch.testing.assert_close(ours, theirs)


def test_long_sums_are_split() -> None:
    assert attention_ir.KEYS_AT_A_TIME <= 256


class Written(nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        width = q.size(-1) ** 0.5
        divided = torch.matmul(torch.softmax(torch.matmul(q, k.transpose(-2, -1)) / width, dim=-1), v)
        multiplied = (q @ k.transpose(2, 3) * 0.25).softmax(dim=-1) @ v
        return divided, multiplied


@pytest.mark.parametrize("name", ["own", "PyTorch"])
@pytest.mark.parametrize("length", [5, 200])
def test_attention_that_is_written_out(name: str, length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Selection, "_choose", lambda self, kind, arguments: self.candidates[name])
    generator = torch.Generator().manual_seed(8)
    q, k, v = (heads(2, 4, length, 16, generator, True) for _ in range(3))
    fast = rekindle.optimize_for_inference(rekindle.script(Written().eval()))
    assert len(fast.graph.find_nodes("prim::written_attention")) == 2
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(fast(q, k, v), Written()(q, k, v))
        torch.testing.assert_close(
            fast(q, k[:1], v[:1]), Written()(q, k[:1], v[:1]), msg="batches of one are broadcast"
        )
        torch.testing.assert_close(
            fast(q.double(), k.double(), v.double()), Written()(q.double(), k.double(), v.double())
        )
    q.requires_grad_()
    (ours,) = torch.autograd.grad(fast(q, k, v)[0].sum(), q)
    (theirs,) = torch.autograd.grad(Written()(q, k, v)[0].sum(), q)
    torch.testing.assert_close(ours, theirs)


class CountsFromStart(nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return (q @ k.transpose(2, 3) * 0.25).softmax(dim=-1) @ v


def test_other_ranks_are_transposed_as_written() -> None:
    generator = torch.Generator().manual_seed(9)
    fast = rekindle.optimize_for_inference(rekindle.script(CountsFromStart().eval()))
    assert fast.graph.find_node("prim::written_attention") is not None
    q, k, v = (torch.randn(2, 32, 32, 32, 32, generator=generator)[:1] for _ in range(3))
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(fast(q, k, v), CountsFromStart()(q, k, v))
        with pytest.raises(IndexError, match="Dimension out of range"):
            fast(q[0, 0], k[0, 0], v[0, 0])
