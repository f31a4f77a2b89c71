"""``nn.MultiheadAttention`` and the encoder layers of transformers, whose fast paths are operators of PyTorch's own."""

from __future__ import annotations

from pathlib import Path
from typing import List

import pytest
import torch
from torch import Tensor, nn

import rekindle
from tests.building.c_process import compiler, run


class Attention(nn.Module):
    def __init__(self, need_weights: bool, average: bool = True, has_mask: bool = False) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.need_weights = need_weights
        self.average = average
        self.has_mask = has_mask

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        mask = torch.ones(x.size(1), x.size(1)).triu(1) > 0 if self.has_mask else None
        return self.attention(
            x, x, x, need_weights=self.need_weights, average_attn_weights=self.average, attn_mask=mask
        )


CASES = {
    "no weights": (False,),
    "averaged weights": (True,),
    "weights of each head": (True, False),
    "a mask and no weights": (False, True, True),
    "a mask and averaged weights": (True, True, True),
}


@pytest.mark.parametrize("case", CASES)
def test_the_fast_path_of_attention(case: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = Attention(*CASES[case]).eval()
    x = torch.randn(3, 5, 8)
    rekindle.build(rekindle.script(module), tmp_path, [(x,)], dynamic={"x": [0, 1]})
    library = rekindle.NativeLibrary(tmp_path)
    for each in (x, torch.randn(2, 7, 8)):
        with torch.no_grad():
            expected, weights = module(each)
        found, its_weights = library(each)
        torch.testing.assert_close(found, expected)
        assert (its_weights is None) == (weights is None)
        if weights is not None:
            torch.testing.assert_close(its_weights, weights)


def test_attention_without_pytorch(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = Attention(True).eval()
    x = torch.randn(2, 5, 8)
    built = rekindle.build(rekindle.script(module), tmp_path, [(x,)], freestanding=True)
    assert built.is_freestanding
    with torch.no_grad():
        torch.testing.assert_close(rekindle.NativeLibrary(tmp_path)(x), module(x))


@rekindle.script
def unflattened(x: Tensor, sizes: List[int]) -> Tensor:
    return x.unflatten(1, sizes)


@pytest.mark.parametrize("shape", [(2, 6, 3), (0, 6, 3), (2, 0, 3)])
@pytest.mark.parametrize(
    "sizes", [[2, 3], [-1, 2], [2, -1, 1], [6], [0, 5], [0, -1], [4, 2], [-1, 4], [], [-1, -1], [2, -3]]
)
def test_unflatten(shape: tuple[int, ...], sizes: list[int], unflatten_library: rekindle.NativeLibrary) -> None:
    x = torch.randn(shape)
    try:
        expected = x.unflatten(1, sizes)
    except RuntimeError:
        with pytest.raises(RuntimeError):
            unflatten_library(x, sizes)
    else:
        assert torch.equal(unflatten_library(x, sizes), expected)


@pytest.fixture(scope="module")
def unflatten_library(tmp_path_factory: pytest.TempPathFactory) -> rekindle.NativeLibrary:
    folder = tmp_path_factory.mktemp("unflatten")
    built = rekindle.build(unflattened, folder, [(torch.randn(2, 6, 3), [2, 3])], freestanding=True)
    assert built.is_freestanding
    return rekindle.NativeLibrary(folder)


@rekindle.script
def summed_weights(x: Tensor, w: Tensor, b: Tensor, v: Tensor, c: Tensor) -> Tensor:
    _, weights = torch._native_multi_head_attention(x, x, x, 8, 2, w, b, v, c, None, False, True, None)
    return weights.sum()


def test_weights_that_are_not_computed(tmp_path: Path) -> None:
    with pytest.raises(rekindle.NotBuildable, match=r"^the program uses weights of an attention that are not computed"):
        rekindle.build(summed_weights, tmp_path, [])


@pytest.mark.skipif(compiler() is None, reason="this machine has no C compiler")
def test_an_encoder_of_a_transformer(tmp_path: Path) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
    module = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    x = torch.randn(2, 5, 8)
    built = rekindle.build(rekindle.script(module), tmp_path, [(x,)], dynamic={"src": [0, 1]})
    other = torch.randn(3, 4, 8)
    calls = [(each, None, None, None) for each in (x, other)]
    for given, answer in zip((x, other), run(built, "forward", calls, tmp_path), strict=True):
        assert answer.code == 0, answer.message
        with torch.no_grad():
            torch.testing.assert_close(answer.value, module(given))
