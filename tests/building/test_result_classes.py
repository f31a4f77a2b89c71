"""Tuples of data-dependent length, and sizes, in results of libraries."""

from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.building.result_classes import classes_of
from rekindle.ir.types import INT, STRING, TENSOR, DictType, ListType, TupleType, optional


def tuples_in_a_list(n: int) -> List[Tuple[int, ...]]:
    found: List[Tuple[int, ...]] = []
    for i in range(n):
        found.append(tuple(range(i)))
    return found


def everywhere(
    x: Tensor, wanted: bool
) -> Tuple[torch.Size, List[Tuple[int, ...]], Dict[str, Tuple[int, ...]], Optional[Tuple[int, ...]], List[int]]:
    return x.shape, [tuple(x.shape)], {"a": tuple(x.shape)}, tuple(x.shape) if wanted else None, list(x.shape)


def shown(value: Any) -> Any:
    if isinstance(value, dict):
        return [(key, shown(item)) for key, item in value.items()]
    return (type(value), [shown(item) for item in value]) if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize(
    ("function", "calls"),
    [(tuples_in_a_list, [(0,), (3,)]), (everywhere, [(torch.ones(2, 3), True), (torch.ones(2, 3), False)])],
)
def test_results_have_the_classes_of_python(function: Any, calls: List[Tuple[Any, ...]], tmp_path: Path) -> None:
    rekindle.build(rekindle.script(function), tmp_path / "net", calls)
    library = rekindle.NativeLibrary(tmp_path / "net")
    for arguments in calls:
        assert shown(library(*arguments)) == shown(function(*arguments))


def test_classes_of_types() -> None:
    size, open_tuple = ListType(INT, "Size"), ListType(INT, "tuple")
    assert classes_of(TupleType((TENSOR, DictType(STRING, size)))) == ["items", [None, ["dict", ["Size", None]]]]
    assert classes_of(ListType(optional(open_tuple))) == ["list", ["tuple", None]]
    assert classes_of(ListType(ListType(INT))) is None
