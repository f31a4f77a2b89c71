"""What is reported of an archive without loading it."""

import json
from enum import Enum
from typing import Dict, List, NamedTuple, Optional, Tuple

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.archive.limits import ArchiveLimits
from rekindle.archive.summary import (
    AttributeSummary,
    ClassSummary,
    MethodSummary,
    ModuleSummary,
    OperatorSummary,
    TensorSummary,
)
from rekindle.errors import ArchiveLimitError, CorruptArchiveError, ParseError, UnsupportedArchiveError
from tests.archive.archives import members_of, with_members, written_by_torch
from tests.archive.golden_archives import golden_archives


class Color(Enum):
    RED = 1
    BLUE = 2


class Pair(NamedTuple):
    first: Tensor
    second: int


class Counter:
    def __init__(self, start: int):
        self.count = start


@torch.jit.interface
class Layer(nn.Module):
    def forward(self, input: Tensor) -> Tensor:
        pass


_CPU = torch.device("cpu")


class Net(nn.Module):
    names: Dict[str, List[int]]
    layer: Layer

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 3)
        self.tied = self.linear.weight
        self.register_buffer("steps", torch.arange(4, dtype=torch.int16).view(2, 2))
        self.frozen = nn.Parameter(torch.ones(2, dtype=torch.float64), requires_grad=False)
        self.names = {"a": [1]}
        self.color = Color.RED
        self.counter = Counter(1)
        self.layer = nn.Sequential(nn.ReLU())

    def forward(self, x: Tensor, color: Color, pair: Optional[Pair] = None, scale: float = float("inf")) -> Tensor:
        return self.layer.forward(self.linear(x))

    @torch.jit.export
    def other(self, counter: Counter, layer: Layer, device: torch.device = _CPU) -> Tuple[Pair, int]:
        return Pair(torch.ones(1, device=device), 2), counter.count


def inspected(program, **extra_files):
    return rekindle.inspect(written_by_torch(program, extra_files))


def test_methods_have_the_schemas_that_the_loaded_module_tells():
    archive = written_by_torch(Net())
    loaded = rekindle.load(archive)
    assert rekindle.inspect(archive).methods == tuple(
        MethodSummary(name, str(getattr(loaded, name).schema)) for name in ("forward", "other")
    )


def test_modules_parameters_and_buffers_have_their_names_in_the_module():
    archive = rekindle.script(Net()).save_to_buffer()
    loaded, found = rekindle.load(archive), rekindle.inspect(archive)
    assert [module.path for module in found.modules] == [name for name, _ in loaded.named_modules()]
    assert found.modules[0] == ModuleSummary("", "__torch__.tests.archive.test_inspect.Net")
    assert found.root == "__torch__.tests.archive.test_inspect.Net"
    assert found.parameters == (
        TensorSummary("tied", (3, 2), "float32", "cpu", 24, True),
        TensorSummary("frozen", (2,), "float64", "cpu", 16, False),
        TensorSummary("linear.bias", (3,), "float32", "cpu", 12, True),
    )
    assert [tensor.name for tensor in found.parameters] == [name for name, _ in loaded.named_parameters()]
    assert (found.parameter_count, found.parameter_bytes) == (11, 52)
    assert found.buffers == (TensorSummary("steps", (2, 2), "int16", "cpu", 8, False),)


def test_constants():
    traced = rekindle.trace(lambda x: x + torch.tensor([1.0, 2.0, 3.0]), (torch.ones(3),))
    assert rekindle.inspect(traced.save_to_buffer()).constants == (
        TensorSummary("c0", (3,), "float32", "cpu", 12, False),
    )


def test_other_attributes_have_their_types():
    found = inspected(Net())
    assert [item for item in found.attributes if item.name != "_is_full_backward_hook"][:4] == [
        AttributeSummary("training", "bool"),
        AttributeSummary("names", "Dict[str, List[int]]"),
        AttributeSummary("color", "__torch__.tests.archive.test_inspect.Color"),
        AttributeSummary("counter", "__torch__.tests.archive.test_inspect.Counter"),
    ]


def test_operators_are_counted():
    class Small(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.relu(torch.relu(x)) + torch.ops.quantized.add_scalar(x, 1.0)

    assert inspected(Small()).operators == (
        OperatorSummary("aten::add", 1, None, False),
        OperatorSummary("aten::relu", 2, None, False),
        OperatorSummary("quantized::add_scalar", 1, None, False),
    )


def test_the_rest():
    archive = written_by_torch(nn.ReLU(), {"a.txt": "hello"})
    found = rekindle.inspect(archive)
    assert (found.size, found.version, found.older_than, found.byte_order) == (len(archive), 3, None, "little")
    assert found.extra_files == {"a.txt": 5}
    assert {member.name: member.size for member in found.members} == {
        name: len(content) for name, content in members_of(archive).items()
    }
    assert all(member.stored_size <= member.size for member in found.members)


def test_it_is_plain_data():
    found = inspected(Net(), **{"a.txt": "hello"})
    told = json.loads(json.dumps(found.as_dict()))
    assert told["parameters"][1] == {
        "name": "frozen",
        "shape": [2],
        "dtype": "float64",
        "device": "cpu",
        "nbytes": 16,
        "requires_grad": False,
    }
    assert told["extra_files"] == {"a.txt": 5}


def test_its_text():
    lines = str(rekindle.inspect(rekindle.script(nn.Linear(2, 1)).save_to_buffer({"a.txt": "hello"}))).splitlines()
    assert lines[0].startswith("__torch__.torch.nn.modules.linear.Linear: format 3, ")
    assert lines[1:] == [
        "  forward(__torch__.torch.nn.modules.linear.Linear self, Tensor input) -> Tensor",
        "1 modules, 2 parameters of 3 elements (12 bytes), 0 buffers",
        "  weight: float32[1, 2] on cpu",
        "  bias: float32[1] on cpu",
        "operators: aten::linear (1)",
        "extra file: a.txt, 5 bytes",
    ]


def with_text(archive, old, new):
    (name,) = (name for name in members_of(archive) if name.endswith("test_inspect.py"))
    text = members_of(archive)[name].decode()
    assert old in text
    return with_members({**members_of(archive), name: text.replace(old, new).encode(), f"{name}.debug_pkl": None})


class Plain(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x)


def test_what_is_missing_here():
    archive = with_text(
        written_by_torch(Plain()), "return torch.relu(x)", "return ops.torchvision.nms(ops.unheard.of(x), x, 0.5)"
    )
    found = rekindle.inspect(archive)
    assert found.missing_operators == (
        OperatorSummary("torchvision::nms", 1, "torchvision", True),
        OperatorSummary("unheard::of", 1, None, True),
    )
    archive = with_text(
        written_by_torch(Plain()),
        "class Plain(Module):",
        "class Plain(Module):\n  sox : __torch__.torch.classes.torchaudio.Sox",
    )
    found = rekindle.inspect(archive)
    assert found.missing_classes == (ClassSummary("__torch__.torch.classes.torchaudio.Sox", "torchaudio"),)
    assert "missing: __torch__.torch.classes.torchaudio.Sox, from the package 'torchaudio'" in str(found)


def test_nothing_is_compiled_or_run(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("something was made")

    archive = rekindle.script(Net()).save_to_buffer()
    monkeypatch.setattr("rekindle.program.sources.source_importer.define_function", refuse)
    monkeypatch.setattr("rekindle.program.sources.source_importer.execute", refuse)
    monkeypatch.setattr("rekindle.archive.pickles.tensors.TensorLoader.tensor", refuse)
    with pytest.raises(AssertionError, match="something was made"):
        rekindle.load(archive)
    assert len(rekindle.inspect(archive).methods) == 2


def test_tensors_are_not_read():
    archive = written_by_torch(nn.Linear(100, 100))
    weights = members_of(archive)["data/0"]
    broken = archive.replace(weights, bytes(len(weights)))
    assert rekindle.inspect(broken).parameter_count == 10_100
    with pytest.raises(CorruptArchiveError, match="does not have its checksum"):
        rekindle.load(broken)


@pytest.mark.parametrize("archive", golden_archives()[::3], ids=lambda archive: archive.name)
def test_old_archives(archive):
    found, loaded = rekindle.inspect(archive.path), rekindle.load(archive.path)
    assert [module.path for module in found.modules] == [name for name, _ in loaded.named_modules()]
    assert [tensor.name for tensor in found.parameters] == [name for name, _ in loaded.named_parameters()]
    methods = loaded.script_type.methods
    assert {item.name: item.schema for item in found.methods} == {name: str(methods[name].schema) for name in methods}
    assert set(found.extra_files) >= set(archive.extra_files)


def test_what_is_no_program(tmp_path):
    torch.save({}, tmp_path / "a.pt")
    with pytest.raises(UnsupportedArchiveError, match=r"read it with torch\.load"):
        rekindle.inspect(tmp_path / "a.pt")
    with pytest.raises(CorruptArchiveError):
        rekindle.inspect(b"PK")
    with pytest.raises(ParseError):
        rekindle.inspect(with_text(written_by_torch(Plain()), "class Plain", "class class Plain"))
    with pytest.raises(ArchiveLimitError, match="nest deeper than 2"):
        rekindle.inspect(
            written_by_torch(nn.Sequential(nn.Sequential(nn.Sequential(nn.Sequential())))),
            limits=ArchiveLimits(nesting=2),
        )
