"""Stars within subscripts, which came with Python 3.11."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

import rekindle
from rekindle.errors import TypeMismatchError, UnsupportedError

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="'x[*place]' came with Python 3.11")

SOURCE = """
from typing import List
import torch
from torch import Tensor

def elements(x: Tensor) -> List[Tensor]:
    place = (0, 1)
    x[*place, 2] = 7.0
    return [x[*place], x[*place, 2], x[..., *place]]

def of_a_call(x: Tensor) -> Tensor:
    return x[*(x.dim(), 1)]

def of_a_list(xs: List[int]) -> int:
    place = (0,)
    return xs[*place]
"""


@pytest.fixture
def programs(tmp_path: Path) -> ModuleType:
    path = tmp_path / "star_subscripts.py"
    path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("star_subscripts", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_are_several_indices(programs: ModuleType) -> None:
    compiled = rekindle.script(programs.elements)
    x = torch.arange(24.0).reshape(2, 3, 4)
    torch.testing.assert_close(compiled(x.clone()), programs.elements(x.clone()), rtol=0, atol=0)


def test_what_is_starred_is_a_name(programs: ModuleType) -> None:
    with pytest.raises(UnsupportedError) as caught:
        rekindle.script(programs.of_a_call)
    assert str(caught.value).startswith("what is starred within a subscript must be a name here\n")


def test_index_tensors_alone(programs: ModuleType) -> None:
    with pytest.raises(TypeMismatchError) as caught:
        rekindle.script(programs.of_a_list)
    assert str(caught.value).startswith("a star within a subscript makes a tuple, which indexes tensors alone\n")
