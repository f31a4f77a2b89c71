"""torchani's models of molecules are written to be scripted."""

from __future__ import annotations

from typing import Any

import torch
from keeping import main, reloaded
from torchani.arch import simple_ani
from torchani.nn import SpeciesConverter

SPECIES = torch.tensor([[1, 6, 7, 8, 1], [1, 1, 6, -1, -1]])


def model(kept: bool = False, **options: bool) -> Any:
    """Energies, and the forces that autograd makes of them."""
    net = simple_ani(("H", "C", "N", "O"), lot="wb97x-631gd", ensemble_size=2, **options)
    scripted = torch.jit.script(net)
    if kept:
        scripted = reloaded(scripted)
    places = (torch.randn(2, 5, 3) * 2).requires_grad_()
    energies = scripted((SPECIES, places)).energies
    return energies.detach(), torch.autograd.grad(energies.sum(), places)[0]


def converter() -> Any:
    return torch.jit.script(SpeciesConverter(["H", "C", "N", "O"]))(SPECIES)


if __name__ == "__main__":
    main(
        {
            "plain": model,
            "repulsion": lambda: model(repulsion=True),
            "dispersion": lambda: model(dispersion=True),
            "converter": converter,
            "archive": lambda: model(kept=True, repulsion=True),
        }
    )
