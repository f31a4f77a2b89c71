"""Attributes that are objects of classes written in C++: packed weights, in what PyTorch quantises and elsewhere."""

from __future__ import annotations

import io
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.errors import MissingLibraryError, UndefinedNameError, UnsupportedError
from rekindle.ops.tensor.torchbind_objects import class_of_wrapper
from rekindle.scripting import annotations
from rekindle.scripting.library_values import torchbind_classes
from tests.archive.archives import members_of, with_members
from tests.support.messages import message_of

pytestmark = [
    pytest.mark.filterwarnings("ignore:torch.ao.quantization is deprecated"),
    pytest.mark.filterwarnings("ignore:torch.quantize_per_"),
    pytest.mark.filterwarnings("ignore:Please use quant_min and quant_max"),
]


class Packed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        weight = torch.quantize_per_tensor(torch.arange(-6.0, 6).view(3, 4), 0.1, 0, torch.qint8)
        self.packed: Any = torch.ops.quantized.linear_prepack(weight, torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        weight, bias = self.packed.unpack()
        assert bias is not None
        return torch.ops.quantized.linear_dynamic(x, self.packed) + weight.dequantize().sum() + bias


def test_methods_of_an_object() -> None:
    module, x = Packed(), torch.ones(2, 4)
    scripted = rekindle.script(module)
    assert torch.equal(scripted(x), module(x))
    assert 'prim::CallMethod[name="unpack"](%packed' in str(scripted.graph)
    assert "(packed).unpack()" in scripted.code
    archive = scripted.save_to_buffer()
    assert torch.equal(rekindle.load(archive)(x), module(x))
    assert torch.equal(torch.jit.load(io.BytesIO(archive))(x), module(x))


def test_methods_that_there_are_not() -> None:
    class Wrong(Packed):
        def forward(self, x: Tensor) -> Tensor:
            return self.packed.pack(x)

    with pytest.raises(UndefinedNameError) as caught:
        rekindle.script(Wrong())
    assert caught.value.message == "'LinearPackedParamsBase' has no method or property 'pack'"
    assert caught.value.hint == "its methods are __getstate__, __setstate__, bias, unpack"


def _renamed(content: bytes) -> bytes:
    return content.replace(b"classes.quantized", b"classes.fbgemm").replace(b"ops.quantized", b"ops.fbgemm")


def test_the_library_is_missing() -> None:
    members = members_of(rekindle.script(Packed()).save_to_buffer())
    archive = with_members(
        {name: None if name.endswith(".debug_pkl") else _renamed(content) for name, content in members.items()}
    )
    loaded = rekindle.load(archive)
    assert 'prim::CallMethod[name="unpack"]' in str(loaded.graph)
    assert message_of(MissingLibraryError, lambda: loaded(torch.ones(2, 4))) == (
        "The class 'torch.classes.fbgemm.LinearPackedParamsBase' is not there: the package 'fbgemm-gpu' brings it.\n"
        "Hint: Install 'fbgemm-gpu' and import it, then call this again."
    )
    assert members_of(loaded.save_to_buffer())["data.pkl"].count(b"classes.fbgemm") == 1


def test_what_pytorch_quantises() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    quantised = torch.ao.quantization.quantize_dynamic(net, dtype=torch.qint8)
    x = torch.randn(3, 4)
    scripted = rekindle.script(quantised)
    assert torch.equal(scripted(x), quantised(x))
    archive = scripted.save_to_buffer()
    assert torch.equal(rekindle.load(archive)(x), quantised(x))
    assert torch.equal(torch.jit.load(io.BytesIO(archive))(x), quantised(x))


def test_static_quantisation() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(
        torch.ao.quantization.QuantStub(), nn.Conv2d(1, 2, 3), nn.ReLU(), torch.ao.quantization.DeQuantStub()
    ).eval()
    net.qconfig = torch.ao.quantization.get_default_qconfig("fbgemm")  # type: ignore[assignment]
    prepared = torch.ao.quantization.prepare(net)
    x = torch.randn(1, 1, 5, 5)
    prepared(x)
    quantised = torch.ao.quantization.convert(prepared)
    scripted = rekindle.script(quantised)
    assert torch.equal(scripted(x), quantised(x))
    archive = scripted.save_to_buffer()
    assert torch.equal(rekindle.load(archive)(x), quantised(x))
    assert torch.equal(torch.jit.load(io.BytesIO(archive))(x), quantised(x))


Weights = torch.classes.quantized.LinearPackedParamsBase
Compilation = torch.classes._nnapi.Compilation


def test_classes_are_annotations() -> None:
    def unpacked(weights: Weights, more: list[Weights]) -> Tensor:
        return torch.ops.quantized.linear_unpack(weights)[0].dequantize() + len(more)

    def named(weights: torch.classes.quantized.LinearPackedParamsBase) -> bool:
        return isinstance(weights, Weights)

    packed = Packed().packed
    scripted = rekindle.script(unpacked)
    assert torch.equal(scripted(packed, [packed]), unpacked(packed, [packed]))
    assert rekindle.script(named)(packed)
    with pytest.raises(TypeError, match=r"takes __torch__\.torch\.classes\.quantized\.LinearPackedParamsBase"):
        scripted(Compilation(), [])


def test_objects_are_made() -> None:
    def made() -> Compilation:
        return Compilation()

    assert isinstance(rekindle.script(made)(), torch.ScriptObject)


def test_arguments_by_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a class of which no schemas are known."""
    monkeypatch.setattr(torchbind_classes, "methods_of", lambda type: None)

    def made() -> Compilation:
        return Compilation(x=1)

    assert message_of(UnsupportedError, lambda: rekindle.script(made)).splitlines()[0] == (
        "the class 'torch.classes._nnapi.Compilation' takes no arguments by name in a program"
    )


class _Unnamed:
    """A wrapper whose errors do not name its class."""

    def __call__(self, **kwargs: object) -> None:
        raise TypeError("no constructor takes this")


def test_the_name_of_a_class_is_that_in_its_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    def direct(weights: torch.classes.quantized.LinearPackedParamsBase) -> bool:
        return isinstance(weights, torch.classes.quantized.LinearPackedParamsBase)

    def fails(wrapper: object) -> None:
        raise AssertionError("the wrapper was called")

    for module in (torchbind_classes, annotations):
        monkeypatch.setattr(module, "class_of_wrapper", fails)
    assert rekindle.script(direct)(Packed().packed)


def test_an_alias_of_which_pytorch_does_not_report_the_class_is_refused() -> None:
    assert message_of(UnsupportedError, lambda: class_of_wrapper(_Unnamed())) == (
        "PyTorch does not report which class of torch.classes this is an alias of\n"
        "Hint: write torch.classes.space.Name where the alias is used"
    )
