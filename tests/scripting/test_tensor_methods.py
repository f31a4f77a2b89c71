"""Methods of tensors that are functions of Python in eager mode."""

from __future__ import annotations

from typing import Any, List, Tuple

import pytest
import torch
from torch import Tensor

import rekindle
from tests.support.equality import assert_same
from tests.support.oracle import compare, normalize_program


def stft(x: Tensor) -> Tensor:
    return x.stft(8, return_complex=True)


def stft_that_does_not_pad(x: Tensor) -> Tensor:
    return x.stft(8, hop_length=2, center=False, return_complex=True, align_to_window=True)


def there_and_back(x: Tensor) -> Tensor:
    return x.stft(8, return_complex=True).istft(8)


def unique_consecutive(x: Tensor) -> Tensor:
    return x.unique_consecutive()


def unique_consecutive_with_inverse(x: Tensor) -> Tuple[Tensor, Tensor]:
    found, inverse = x.unique_consecutive(return_inverse=True)
    return found, inverse


def unique(x: Tensor) -> Tensor:
    return x.unique()


def unique_with_all(x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    return x.unique(sorted=True, return_inverse=True, return_counts=True, dim=0)


def lu(x: Tensor) -> Tuple[Tensor, Tensor]:
    return x[:16].view(4, 4).lu()


def norm_of_a_name(x: Tensor) -> Tensor:
    return x.norm("fro", dim=0) + x[:16].view(4, 4).norm("nuc")


def norm_in_another_dtype(x: Tensor) -> Tensor:
    return x.norm(dtype=torch.float64)


def of_another_type(x: Tensor) -> Tuple[Tensor, Tensor]:
    return x.type(torch.int32), x.type(x.int().dtype, non_blocking=True)


def sparse(x: Tensor) -> Tensor:
    return x.to_sparse_coo().to_dense()


def norm(x: Tensor) -> Tensor:
    return x.norm() + x.norm(p=1, dim=[0], keepdim=True)


def new_tensors(x: Tensor) -> List[Tensor]:
    data = [1, 2]
    made = [x.new_tensor(2.5), x.new_tensor(data), x.new_tensor([[True]]), x.long().new_tensor([2.7])]
    return [*made, x.new_tensor((1, 2), dtype=torch.int16), x.new_tensor([x.sum()], requires_grad=True)]


def number_of_elements(x: Tensor) -> int:
    return x.nelement() + x.ndimension()


PROGRAMS = (
    *(new_tensors, number_of_elements),
    *(stft, stft_that_does_not_pad, there_and_back, unique_consecutive, unique_consecutive_with_inverse, unique),
    *(unique_with_all, lu, norm_of_a_name, norm_in_another_dtype, of_another_type, sparse, norm),
)


@pytest.mark.filterwarnings("ignore:A window was not provided:UserWarning", "ignore:torch.lu is deprecated:UserWarning")
@pytest.mark.parametrize("program", PROGRAMS)
def test_results_are_those_of_eager(program: Any) -> None:
    compiled = rekindle.script(program)
    for x in (torch.arange(16.0) // 2, torch.arange(24.0) % 5):
        for _ in range(3):
            assert_same(compiled(x), program(x))


def test_norm_is_the_operator_where_that_is_enough() -> None:
    comparison = compare(norm, rekindle.script)
    assert comparison.equal, comparison.differences


def test_the_method_calls_what_the_function_is() -> None:
    def function(x: Tensor) -> Tensor:
        return torch.stft(x, 8, return_complex=True)

    ours, theirs = (normalize_program(rekindle.script(program)) for program in (stft, function))
    assert ours == theirs


def wrong(x: Tensor) -> Tensor:
    return x.norm([1])


def test_arguments_that_fit_neither() -> None:
    with pytest.raises(rekindle.errors.SchemaError, match=r"no overload of 'aten::norm' can be called with"):
        rekindle.script(wrong)
