"""e3nn scripts the code that it generates, and its modules when it is asked to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import e3nn
import torch

# Before the rest is imported: decorators look at it.
e3nn.set_optimization_defaults(jit_mode="script")

from e3nn import nn, o3  # noqa: E402
from e3nn.nn.models.v2106.gate_points_networks import SimpleNetwork  # noqa: E402
from e3nn.util.jit import compile as compiled, script  # noqa: E402
from keeping import main, reloaded  # noqa: E402


def product(make: Callable[[], Any], whole: bool) -> Callable[[], Any]:
    def run() -> Any:
        module = make()
        inputs = (module.irreps_in1.randn(5, -1), module.irreps_in2.randn(5, -1))
        inputs = tuple(x.requires_grad_() for x in inputs)
        result = (script(module) if whole else module)(*inputs)
        result.sum().backward()
        return result.detach(), [x.grad for x in inputs], [p.grad for p in module.parameters()]

    return run


PRODUCTS: dict[str, Callable[[], Any]] = {
    "fully connected": lambda: o3.FullyConnectedTensorProduct("4x0e + 3x1o + 2x2e", "1x0e + 1x1o", "2x0e + 2x1o"),
    "full": lambda: o3.FullTensorProduct("2x1o", "1x1o + 1x2e"),
    "elementwise": lambda: o3.ElementwiseTensorProduct("3x0e + 3x1o", "3x0e + 3x1o"),
}


def square() -> Any:
    module = o3.TensorSquare("2x0e + 1x1o")
    return module(module.irreps_in.randn(5, -1)).detach()


def linear() -> Any:
    module = o3.Linear("4x0e + 3x1o", "2x0e + 3x1o", biases=True)
    return module(module.irreps_in.randn(5, -1)).detach()


def harmonics(whole: bool) -> Any:
    module = o3.SphericalHarmonics([0, 1, 2, 3], normalize=True, normalization="component")
    return (script(module) if whole else module)(torch.randn(6, 3))


def rotations() -> Any:
    angles = o3.matrix_to_angles(o3.rand_matrix(3))
    return o3.Irreps("1x2e + 1x3o").D_from_angles(*angles)


def traced(make: Callable[[], Any]) -> Callable[[], Any]:
    """Compiled by e3nn's rules: activations are traced on examples that e3nn draws, what is around them scripted."""

    def run() -> Any:
        module = make()
        x = module.irreps_in.randn(4, -1)
        return compiled(module)(x).detach()

    return run


def perceptron() -> Any:
    x = torch.randn(4, 3)
    return compiled(nn.FullyConnectedNet([3, 8, 2], torch.relu))(x).detach()


def network() -> Any:
    """A network that sends messages, forward and backward."""
    net = SimpleNetwork(irreps_in="3x0e", irreps_out="2x0e + 1x1o", max_radius=2.0, num_neighbors=3.0, num_nodes=5.0)
    data = {"pos": torch.randn(5, 3), "x": torch.randn(5, 3), "batch": torch.zeros(5, dtype=torch.long)}
    result = net(data)
    result.square().sum().backward()
    return result.detach(), {name: p.grad for name, p in net.named_parameters()}


def archive() -> Any:
    module = nn.Gate("3x0e", [torch.relu], "2x0e", [torch.sigmoid], "2x1o")
    x = module.irreps_in.randn(4, -1)
    return reloaded(compiled(module))(x).detach()


if __name__ == "__main__":
    parts = {f"product, {name}": product(make, whole=False) for name, make in PRODUCTS.items()}
    parts |= {f"product, {name}, scripted": product(make, whole=True) for name, make in PRODUCTS.items()}
    parts |= {
        "square": square,
        "linear": linear,
        "harmonics": lambda: harmonics(whole=False),
        "harmonics, scripted": lambda: harmonics(whole=True),
        "rotations": rotations,
        "gate": traced(lambda: nn.Gate("3x0e", [torch.relu], "2x0e", [torch.sigmoid], "2x1o")),
        "activation": traced(lambda: nn.Activation("4x0e + 1x0o", [torch.tanh, torch.abs])),
        "perceptron": perceptron,
        "network": network,
        "archive": archive,
    }
    main(parts)
