"""The Python classes of results survive saving and loading: sizes, tuples of any length, dtypes, OrderedDicts."""

from __future__ import annotations

import copy
import io
import json
import zipfile
from collections import OrderedDict
from typing import Any, Dict, List

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.errors import CorruptArchiveError
from tests.frontend.outcomes import outcome

X = torch.arange(6.0).reshape(2, 3)
RECORD = "archive/python_results.json"


def classes(x: Tensor):
    sizes = [x.shape, x[0].shape]
    named: Dict[str, torch.Size] = {"x": x.shape}
    ordered = OrderedDict([("a", (x.dtype, x.layout))])
    return x.shape, sizes, named, ordered, tuple(x.flatten().tolist()), x.chunk(2), (x.dtype, [x.stride()]), [1, 2]


class Encoder(nn.Module):
    def forward(self, x: Tensor):
        return x + 1, x.shape

    @rekindle.export
    def dtype_of(self, x: Tensor):
        return x.dtype


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = Encoder()

    def forward(self, x: Tensor):
        y, shape = self.encoder(x)
        return y.shape + shape[:1], len(shape)


def plain(x: Tensor) -> List[int]:
    return [x.size(0)]


def _saved(program: Any) -> bytes:
    file = io.BytesIO()
    rekindle.save(rekindle.script(program), file)
    return file.getvalue()


def _with_record(archive: bytes, record: bytes) -> bytes:
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as before, zipfile.ZipFile(changed, "w", zipfile.ZIP_STORED) as after:
        for name in before.namelist():
            after.writestr(name, record if name == RECORD else before.read(name))
    return changed.getvalue()


def test_a_function() -> None:
    loaded = rekindle.load(_saved(classes))
    for _ in range(2):
        assert outcome(loaded, (X,)) == outcome(classes, (X,))


def test_a_module_and_its_parts() -> None:
    loaded, eager = rekindle.load(_saved(Model())), Model()
    assert outcome(loaded, (X,)) == outcome(eager, (X,))
    assert outcome(loaded.encoder, (X,)) == outcome(eager.encoder, (X,))
    assert loaded.encoder.dtype_of(X) == torch.float32


def test_frozen_after_loading() -> None:
    frozen = rekindle.freeze(rekindle.load(_saved(Model())).eval())
    assert outcome(frozen, (X,)) == outcome(Model(), (X,))
    assert outcome(copy.deepcopy(frozen), (X,)) == outcome(Model(), (X,))
    assert outcome(frozen.to("cpu"), (X,)) == outcome(Model(), (X,))
    assert outcome(frozen.double(), (X.double(),)) == outcome(Model(), (X.double(),))


def test_saved_again() -> None:
    file = io.BytesIO()
    rekindle.save(rekindle.load(_saved(classes)), file)
    file.seek(0)
    assert outcome(rekindle.load(file), (X,)) == outcome(classes, (X,))


def test_torch_jit_ignores_the_record() -> None:
    assert torch.jit.load(io.BytesIO(_saved(Model())))(X) == ([2, 3, 2], 2)


def test_no_record_without_such_results() -> None:
    assert RECORD not in zipfile.ZipFile(io.BytesIO(_saved(plain))).namelist()
    record = zipfile.ZipFile(io.BytesIO(_saved(Model()))).read(RECORD)
    assert json.loads(record) == {
        "encoder.dtype_of": [[[], "torch.dtype"]],
        "encoder.forward": [[[1], "Size"]],
        "forward": [[[0], "Size"]],
    }


@pytest.mark.parametrize("record", [b"{", b"[]", b"\xff", b'{"forward": 3}', b'{"forward": [[1, "Size"]]}'])
def test_a_broken_record(record: bytes) -> None:
    with pytest.raises(CorruptArchiveError) as caught:
        rekindle.load(_with_record(_saved(Model()), record))
    assert str(caught.value) == "The classes of results cannot be read. (in 'python_results.json')"


@pytest.mark.parametrize(
    "marks", [[[[9, 9], "Size"]], [[["a"], "Size"]], [[[1], "Size"]], [[[], "Size"]], [[[0], "torch.dtype"]]]
)
def test_marks_that_do_not_fit_are_ignored(marks: list[Any]) -> None:
    loaded = rekindle.load(_with_record(_saved(Model()), json.dumps({"forward": marks, "nothing": marks}).encode()))
    assert loaded(X) == ([2, 3, 2], 2)
