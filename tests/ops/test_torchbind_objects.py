"""Objects of classes that libraries write in C++: what is known of their methods."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from rekindle.ir.text.schema_parser import parse_schema
from rekindle.ir.text.type_parser import custom_class
from rekindle.ir.types import LIBRARY_CLASSES
from rekindle.ops.python.values import script_class
from rekindle.ops.tensor.torchbind_objects import class_of_library_object, methods_of

pytestmark = pytest.mark.filterwarnings("ignore:torch.quantize_per_")
CLASSES = ("LinearPackedParamsBase", "Conv2dPackedParamsBase", "Conv3dPackedParamsBase", "EmbeddingPackedParamsBase")


def packed() -> Any:
    weight = torch.quantize_per_tensor(torch.ones(3, 4), 0.1, 0, torch.qint8)
    return torch.ops.quantized.linear_prepack(weight, None)


@pytest.mark.parametrize("name", CLASSES)
def test_pytorchs_own_have_the_methods_that_pytorch_tells(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    type = custom_class(f"{LIBRARY_CLASSES}quantized.{name}")
    monkeypatch.setattr(type, "library_methods", None)
    theirs = {
        schema.name: parse_schema(str(schema))
        for schema in torch._C._jit_get_custom_class_schemas()
        if str(schema.arguments[0].type) == type.name and schema.name != "__setstate__"
    }
    ours = methods_of(type) or {}
    assert set(ours) == set(theirs)
    for method, schema in ours.items():
        assert [item.type for item in schema.arguments] == [item.type for item in theirs[method].arguments]
        assert [item.type for item in schema.returns] == [item.type for item in theirs[method].returns]


def test_an_object_tells_its_class_and_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    type = custom_class(f"{LIBRARY_CLASSES}quantized.LinearPackedParamsBase")
    monkeypatch.setattr(type, "library_methods", None)
    assert class_of_library_object(packed()) is type
    assert script_class(packed()) is type
    assert set(methods_of(type) or ()) == {"__getstate__", "__setstate__", "bias", "unpack"}
    assert methods_of(custom_class(f"{LIBRARY_CLASSES}nobody.Knows")) is None
