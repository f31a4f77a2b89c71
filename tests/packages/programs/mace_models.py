"""MACE, with e3nn 0.4, which traces and scripts the code of its tensor products; models are scripted for LAMMPS.

A program of its own environment: e3nn 0.4.4 lies in a folder that comes before all others.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

# PyTorch's loader takes slices in files of e3nn 0.4 only if it is declared that they are safe.
os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"
sys.path.insert(0, str(Path(sysconfig.get_path("purelib"), "e3nn-0.4.4")))

import e3nn
import numpy as np
import torch
from ase import Atoms
from e3nn import o3
from keeping import assert_close, detached, hand_over, main, reloaded
from mace import data, modules, tools
from mace.calculators import LAMMPS_MACE
from mace.tools import torch_geometric

assert e3nn.__version__ == "0.4.4"
TABLE = tools.AtomicNumberTable([1, 6, 8])


def configured(kind: str = "MACE", **options: Any) -> Any:
    settings = {
        "r_max": 4.0,
        "num_bessel": 4,
        "num_polynomial_cutoff": 5,
        "max_ell": 2,
        "interaction_cls": modules.interaction_classes["RealAgnosticResidualInteractionBlock"],
        "interaction_cls_first": modules.interaction_classes["RealAgnosticResidualInteractionBlock"],
        "num_interactions": 2,
        "num_elements": 3,
        "hidden_irreps": o3.Irreps("8x0e + 8x1o"),
        "MLP_irreps": o3.Irreps("8x0e"),
        "gate": torch.nn.functional.silu,
        "atomic_energies": np.array([-1.0, -3.0, -2.0]),
        "avg_num_neighbors": 8,
        "atomic_numbers": TABLE.zs,
        "correlation": 2,
        "radial_type": "bessel",
    }
    if kind == "ScaleShiftMACE":
        options = {"atomic_inter_scale": 1.1, "atomic_inter_shift": 0.2, **options}
    return getattr(modules, kind)(**{**settings, **options}).eval()


def batch(count: int = 2) -> dict[str, torch.Tensor]:
    rng = np.random.default_rng(0)
    atoms = [
        Atoms(
            "CH3OH" if n % 2 else "H2O", positions=rng.normal(size=(6 if n % 2 else 3, 3)) * 1.5, cell=[8] * 3, pbc=True
        )
        for n in range(count)
    ]
    graphs = [data.AtomicData.from_config(data.config_from_atoms(each), z_table=TABLE, cutoff=4.0) for each in atoms]
    loader = torch_geometric.dataloader.DataLoader(graphs, batch_size=count, shuffle=False)
    return next(iter(loader)).to_dict()


def answer(model: Any, count: int = 2) -> dict[str, Any]:
    found = model(batch(count), compute_force=True, compute_stress=True)
    return {key: detached(found[key]) for key in ("energy", "node_energy", "forces", "stress")}


def scripted(kind: str, **options: Any) -> Any:
    def run() -> Any:
        model = configured(kind, **options)
        expected = [answer(model, count) for count in (2, 3)]  # compiling changes the model
        compiled = e3nn.util.jit.compile(model)
        for _ in range(3):
            for count, wanted in zip((2, 3), expected, strict=True):
                assert_close(answer(compiled, count), wanted)
        assert_close(answer(reloaded(compiled)), expected[0], "answer of the archive")
        return expected

    return run


def lammps() -> Any:
    """As `mace_create_lammps_model` does: the model in a module of its own, compiled and saved."""
    model = configured("ScaleShiftMACE")
    wrapped = LAMMPS_MACE(model)
    inputs = batch(1)
    inputs = {key: value for key, value in inputs.items() if isinstance(value, torch.Tensor)}
    local = torch.ones(inputs["positions"].size(0))
    inputs["unit_shifts"] = inputs["shifts"]
    expected = wrapped({**inputs}, local, compute_virials=True)
    compiled = e3nn.util.jit.compile(wrapped)
    for program in (compiled, reloaded(compiled)):
        found = program({**inputs}, local, compute_virials=True)
        assert_close(detached(found["forces"]), detached(expected["forces"]))
        assert_close(detached(found["total_energy_local"]), detached(expected["total_energy_local"]))
    return detached(expected["forces"])


def products() -> Any:
    """The code of e3nn's tensor products, as it is compiled when they are made."""
    left, right = o3.Irreps("4x0e + 4x1o"), o3.Irreps("1x0e + 1x1o + 1x2e")
    product = o3.FullyConnectedTensorProduct(left, right, o3.Irreps("4x0e + 4x1o + 2x2e"))
    x, y = left.randn(5, -1), right.randn(5, -1)
    compiled = e3nn.util.jit.script(product)
    assert_close(detached(compiled(x, y)), detached(product(x, y)))
    hand_over(compiled, (x, y), compiled(x, y))
    return product(x, y)


def harmonics() -> Any:
    vectors = torch.randn(6, 3, requires_grad=True)
    found = o3.spherical_harmonics([0, 1, 2, 3], vectors, normalize=True, normalization="component")
    weights = torch.arange(float(found.size(-1)))  # the sum of squares is a constant
    return found, torch.autograd.grad((found.square() * weights).sum(), vectors)[0]


if __name__ == "__main__":
    main(
        {
            "tensor product": products,
            "spherical harmonics": harmonics,
            "MACE": scripted("MACE"),
            "ScaleShiftMACE": scripted("ScaleShiftMACE"),
            "MACE, density": scripted(
                "MACE",
                interaction_cls=modules.interaction_classes["RealAgnosticDensityResidualInteractionBlock"],
                interaction_cls_first=modules.interaction_classes["RealAgnosticDensityInteractionBlock"],
            ),
            "LAMMPS": lammps,
        }
    )
