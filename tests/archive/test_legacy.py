"""The archives of PyTorch 1.0 to 1.2, read as what later archives have."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import pytest

from rekindle.archive.legacy import read_legacy
from rekindle.archive.pickles.records import PickledObject, TensorRecord
from rekindle.archive.zip_files.container import ArchiveReader
from rekindle.errors import CorruptArchiveError
from tests.archive.golden_archives import FOLDER


def golden(name: str) -> ArchiveReader:
    return ArchiveReader(str(FOLDER / f"torch-{name}.pt"))


def test_modules_become_classes_and_objects() -> None:
    program = read_legacy(golden("1.0/legacy_affine"))
    assert program.root.name == "__torch__.legacy_affine"
    assert list(program.texts) == ["__torch__"]
    text = program.texts["__torch__"]
    assert text.startswith(
        'class legacy_affine(Module):\n  __parameters__ = ["weight", ]\n  weight : Tensor\n  offset : Tensor\n'
        "  def forward(self,\n      x_1: Tensor) -> Tensor:\n"
    )
    assert isinstance(program.root.state, dict)
    assert sorted(program.root.state) == ["offset", "weight"]
    weight = program.root.state["weight"]
    assert isinstance(weight, TensorRecord)
    assert (weight.sizes, weight.strides, weight.requires_grad) == ((3, 3), (3, 1), True)


def test_parts_stand_below_their_module_and_numbers_become_names() -> None:
    program = read_legacy(golden("1.1/legacy_layers"))
    assert sorted(program.texts) == ["__torch__", "__torch__.legacy_layers", "__torch__.legacy_layers.layers"]
    layers = program.texts["__torch__.legacy_layers"]
    assert '  __annotations__["0"] = __torch__.legacy_layers.layers._0\n' in layers
    assert isinstance(program.root.state, dict)
    part: Any = program.root.state["layers"]
    assert isinstance(part, PickledObject)
    assert list(part.state) == ["0", "1", "2"]


def test_attributes_come_from_their_pickle_and_tensors_from_the_table() -> None:
    attributes: Any = read_legacy(golden("1.1/legacy_attributes")).root.state
    assert attributes["sizes"].value == [3, 4, 5]
    assert (attributes["pair"], attributes["name"]) == ((1.5, "two"), "holder")
    buffers: Any = read_legacy(golden("1.2/legacy_buffers")).root.state
    assert buffers["matrix"].storage is buffers["part"].storage
    assert (buffers["part"].offset, buffers["part"].sizes) == (2, (2,))


def changed(archive: str, member: str, change: Callable[[bytes], bytes]) -> ArchiveReader:
    """An archive with another content of one member."""
    source = zipfile.ZipFile(FOLDER / f"torch-{archive}.pt")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        for name in source.namelist():
            data = source.read(name)
            made.writestr(name, change(data) if name.endswith(member) else data)
    return ArchiveReader(buffer.getvalue())


def broken(change: Any) -> ArchiveReader:
    """The archive of 1.0's affine module with another description."""

    def of(data: bytes) -> bytes:
        model = json.loads(data)
        change(model)
        return json.dumps(model).encode()

    return changed("1.0/legacy_affine", "model.json", of)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.pop("mainModule"), "The description of the model is broken: 'mainModule'."),
        (
            lambda m: m["tensors"][0].update(dims=["300", "3"]),
            "The description of the model is broken: a tensor that reaches beyond its storage.",
        ),
        (
            lambda m: m["tensors"][0].update(strides=["-3", "1"]),
            "The description of the model is broken: a number that is negative or has more than 64 bits.",
        ),
        (
            lambda m: m["tensors"][0].update(dataType="FLOAT8"),
            "The description of the model is broken: tensors of FLOAT8 are not known.",
        ),
        (
            lambda m: m["tensors"][0].update(device=1000),
            "The description of the model is broken: a device that has no name.",
        ),
        (
            lambda m: m["mainModule"]["parameters"][0].update(tensorId="7"),
            "The description of the model is broken: list index out of range.",
        ),
        (
            lambda m: m["mainModule"].update(name="a b"),
            "The description of the model is broken: a module is called 'a b'.",
        ),
        (
            lambda m: m["tensors"][0].update(data={"key": "code/legacy_affine.py"}),
            "The description of the model is broken: a tensor is in 'code/legacy_affine.py'.",
        ),
    ],
)
def test_broken_descriptions_are_refused(change: Any, message: str) -> None:
    with pytest.raises(CorruptArchiveError) as caught:
        read_legacy(broken(change))
    assert str(caught.value).startswith(message)


def test_descriptions_are_utf_8() -> None:
    """No codec is looked for: that would import modules that the file chooses."""
    with pytest.raises(CorruptArchiveError) as caught:
        read_legacy(changed("1.0/legacy_affine", "model.json", lambda data: data.decode().encode("utf-32-be")))
    assert str(caught.value).startswith("The description of the model is broken: ")


def test_a_part_of_many_wholes_is_gone_through_once() -> None:
    """A pickle of a few hundred bytes holds a tuple of two equal tuples, sixty times over."""
    doubled = b"\x80\x02()q\x00" + b"h\x00\x86q\x00" * 60 + b"h\x00" * 9 + b"t."
    program = read_legacy(changed("1.2/legacy_attributes", "attributes.pkl", lambda _: doubled))
    assert program.root.name == "__torch__.legacy_attributes"
