"""metatensor and metatomic are classes in C++ (``torch.classes``), with operations that are scripted at import."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Dict, List, Optional

import torch
from keeping import assert_close, compared, detached, main, tell_torchbind_classes
from torch import Tensor

tell_torchbind_classes()

import metatensor.torch  # noqa: E402
import metatomic.torch  # noqa: E402
from metatensor.torch import Labels, TensorBlock, TensorMap  # noqa: E402
from metatomic.torch import ModelCapabilities, ModelMetadata, ModelOutput, System  # noqa: E402


def labels(name: str, *numbers: int) -> Any:
    return Labels([name], torch.tensor([[number] for number in numbers]))


def made_map(keys: int = 2, scale: float = 1.0) -> Any:
    """A map of blocks of three samples and two properties, of different values."""
    samples, properties = labels("sample", 0, 2, 4), labels("property", 0, 1)
    values = [scale * torch.arange(-3.0, 3.0).view(3, 2) + key for key in range(keys)]
    blocks = [TensorBlock(each, samples, [], properties) for each in values]
    return TensorMap(labels("key", *range(keys)), blocks)


def contents(tensors: Any) -> Any:
    """What a map holds, as tensors and lists."""
    blocks = [
        (block.values, block.samples.names, block.samples.values, block.properties.values) for block in tensors.blocks()
    ]
    return [tensors.keys.names, tensors.keys.values, blocks]


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "abs": lambda operations: operations.abs(made_map()),
    "add": lambda operations: operations.add(made_map(), made_map(scale=2.0)),
    "subtract": lambda operations: operations.subtract(made_map(), 1.5),
    "multiply": lambda operations: operations.multiply(made_map(), made_map()),
    "divide": lambda operations: operations.divide(made_map(), 2.0),
    "pow": lambda operations: operations.pow(made_map(), 2.0),
    "dot": lambda operations: operations.dot(made_map(), made_map()),
    "join": lambda operations: operations.join([made_map(), made_map(scale=2.0)], axis="samples", add_dimension="map"),
    "slice": lambda operations: operations.slice(made_map(), "samples", labels("sample", 0, 4)),
    "split": lambda operations: operations.split(made_map(), "samples", [labels("sample", 0), labels("sample", 2, 4)])[
        1
    ],
    "sort": lambda operations: operations.sort(made_map(), "all", True),
    "sum_over_samples": lambda operations: operations.sum_over_samples(made_map(), ["sample"]),
    "mean_over_properties": lambda operations: operations.mean_over_properties(made_map(), ["property"]),
    "drop_blocks": lambda operations: operations.drop_blocks(made_map(), labels("key", 1)),
    "filter_blocks": lambda operations: operations.filter_blocks(made_map(), labels("key", 1)),
    "empty_like and zeros_like": lambda operations: operations.zeros_like(made_map()),
    "ones_like": lambda operations: operations.ones_like(made_map()),
    "detach": lambda operations: operations.detach(made_map()),
    "append_dimension": lambda operations: operations.append_dimension(made_map(), "keys", "other", 3),
    "rename_dimension": lambda operations: operations.rename_dimension(made_map(), "keys", "key", "other"),
    "lstsq": lambda operations: operations.lstsq(made_map(), made_map(scale=2.0), rcond=1e-6),
}


def operation(name: str) -> Any:
    return contents(OPERATIONS[name](metatensor.torch))


def questions() -> Any:
    """Operations that answer with bools and labels."""
    one, other = made_map(), made_map(scale=2.0)
    return [
        metatensor.torch.equal(one, one),
        metatensor.torch.equal(one, other),
        metatensor.torch.allclose(one, other),
        metatensor.torch.equal_metadata(one, other),
        metatensor.torch.unique_metadata(one, "samples", "sample").values,
        metatensor.torch.is_contiguous(one),
    ]


class Built(torch.nn.Module):
    """Makes objects of classes in C++, uses their properties, operators and static methods, and returns tensors."""

    def forward(self, values: Tensor, positions: Tensor, name: str) -> List[Tensor]:
        samples = Labels([name], positions, assume_unique=False)
        properties = Labels(["property"], torch.arange(values.size(1)).view(-1, 1))
        blocks: List[TensorBlock] = []
        for step in range(3):
            blocks.append(TensorBlock(values * step, samples, [], properties))
        keys = Labels(["key"], torch.arange(3).view(-1, 1))
        tensors = TensorMap(keys=keys, blocks=blocks)
        total = torch.zeros_like(values)
        for key, block in tensors.items():
            total += block.values * key.values[0]
        first = tensors[0]
        entry = samples[0]
        if torch.jit.is_scripting():
            assert isinstance(entry, metatensor.torch.LabelsEntry)  # it is Any; Python's isinstance does not take it
        place = samples.position(entry)
        found = -1 if place is None else place
        if samples != properties and name in samples.names and len(samples) == len(first):
            total = total + len(tensors)
        joined = samples.union(Labels([name], torch.tensor([[99]])))
        powers = metatensor.torch.pow(tensors, 2.0)
        return [total, joined.values, torch.tensor(found), powers.block({"key": 2}).values]


class Statics(torch.nn.Module):
    """Static methods, which programs with them are not saved with, by ``torch.jit`` neither."""

    def forward(self, x: Tensor) -> Tensor:
        both = Labels.range("a", 3).union(Labels.range("a", int(x.size(0))))
        return both.values + len(Labels.empty("b")) + Labels.single().values[0]


def layers() -> Any:
    """The layers of metatensor, through an archive."""
    nn = metatensor.torch.learn.nn
    keys = made_map().keys
    torch.manual_seed(1)
    net = nn.Sequential(keys, nn.Linear(keys, 2, 4), nn.Tanh(keys), nn.LayerNorm(keys, 4), nn.Linear(keys, 4, 3))
    expected = contents(net(made_map()))
    compiled = torch.jit.script(net)
    for _ in range(3):
        assert_same(contents(compiled(made_map())), expected)
    return expected


def assert_same(found: Any, expected: Any) -> None:
    assert_close(detached(found), detached(expected))


class Spring(torch.nn.Module):
    """A model of atoms in springs, as metatomic takes it."""

    def __init__(self) -> None:
        super().__init__()
        self.stiffness = torch.nn.Parameter(torch.tensor(0.5, dtype=torch.float64))

    def forward(
        self,
        systems: List[System],
        outputs: Dict[str, ModelOutput],
        selected_atoms: Optional[Labels] = None,
    ) -> Dict[str, TensorMap]:
        results: Dict[str, TensorMap] = {}
        if "energy" in outputs:
            energies: List[Tensor] = []
            for system in systems:
                kept = system.positions
                if selected_atoms is not None:
                    kept = kept[selected_atoms.column("atom")]
                energies.append(self.stiffness * kept.square().sum())
            block = TensorBlock(
                values=torch.stack(energies).view(-1, 1),
                samples=Labels(["system"], torch.arange(len(systems)).view(-1, 1)),
                components=torch.jit.annotate(List[Labels], []),
                properties=Labels(["energy"], torch.tensor([[0]])),
            )
            results["energy"] = TensorMap(Labels(["_"], torch.tensor([[0]])), [block])
        return results


Spring.forward.__annotations__ = {
    "systems": List[System],
    "outputs": Dict[str, ModelOutput],
    "selected_atoms": Optional[Labels],
    "return": Dict[str, TensorMap],
}
"""Types, which metatomic compares; the texts of annotations are none."""


def atomistic_model() -> Any:
    """A model of metatomic, saved as one and loaded."""
    output = ModelOutput(unit="eV", sample_kind="system", explicit_gradients=[])
    capabilities = ModelCapabilities(
        outputs={"energy": output},
        atomic_types=[1, 8],
        interaction_range=0.0,
        length_unit="angstrom",
        supported_devices=["cpu"],
        dtype="float64",
    )
    model = metatomic.torch.AtomisticModel(Spring().eval(), ModelMetadata(name="spring"), capabilities)
    positions = torch.arange(6, dtype=torch.float64).view(2, 3)
    system = System(
        types=torch.tensor([1, 8]),
        positions=positions,
        cell=torch.zeros(3, 3, dtype=torch.float64),
        pbc=torch.tensor([False, False, False]),
    )
    options = metatomic.torch.ModelEvaluationOptions(length_unit="angstrom", outputs={"energy": output})
    expected = contents(model([system], options, check_consistency=True)["energy"])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "spring.pt")
        model.save(path)
        loaded = metatomic.torch.load_atomistic_model(path)
        for _ in range(3):
            assert_same(contents(loaded([system], options, check_consistency=True)["energy"]), expected)
    return expected


def imported(name: str) -> Any:
    importlib.import_module(name)
    return name


CALL = (torch.arange(6.0).view(3, 2), torch.tensor([[5], [1], [3]]), "place")

if __name__ == "__main__":
    main(
        {
            "import metatensor.torch": lambda: imported("metatensor.torch"),
            **{f"metatensor.torch.{name}": lambda name=name: operation(name) for name in OPERATIONS},
            "questions": questions,
            "objects made in a program": lambda: compared(Built(), CALL, needs="metatensor.torch"),
            "static methods": lambda: compared(Statics(), (torch.ones(5),), archive=False),
            "layers": layers,
            "import metatomic.torch": lambda: imported("metatomic.torch"),
            "AtomisticModel": atomistic_model,
        }
    )
