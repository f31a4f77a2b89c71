"""Devices and random generators, and the modes of the process."""

from __future__ import annotations

from operator import attrgetter

import torch

from rekindle.ir.operators.registry import AliasAnalysisKind
from rekindle.ir.scalar_types import number_of
from rekindle.ops.registration.declare import declare, implements

declare(torch.device, "aten::device(str a) -> Device", "aten::device.with_index(str type, int index) -> Device")
declare(attrgetter("type"), "prim::type(Device self) -> str")
declare(attrgetter("index"), "prim::index(Device self) -> int?")
# The accelerator is the one that the machine has.
declare(torch.device, "python::accelerator(int index) -> Device", nondeterministic=True)

# ---------------------------------------------------------------------------------------------------------- generators


@implements("aten::Generator(*, Device? device=None, int? seed=None) -> Generator", nondeterministic=True)
def make_generator(device: torch.device | None = None, seed: int | None = None) -> torch.Generator:
    """Return a random number generator, by default on the CPU, with ``seed`` if it is given."""
    generator = torch.Generator("cpu" if device is None else device)
    if seed is not None:
        generator.manual_seed(seed)
    return generator


@implements("aten::manual_seed(int seed) -> ()", side_effects=True)
def seed_default(seed: int) -> None:
    """Seed the default generator of every device."""
    torch.manual_seed(seed)


declare(
    torch.Generator.manual_seed,
    "aten::manual_seed.generator(Generator(a!) self, int seed) -> Generator(a!)",
    side_effects=True,
)
declare(torch.Generator.initial_seed, "aten::initial_seed(Generator self) -> int")
declare(torch.Generator.seed, "aten::seed(Generator(a!) self) -> int", nondeterministic=True)

# --------------------------------------------------------------------------------------------------------------- modes

# What a mode is may change between two calls, so that none of these is a constant and setting one is an effect.

declare(torch.is_grad_enabled, "aten::is_grad_enabled() -> bool", nondeterministic=True)


@implements("aten::set_grad_enabled(bool val) -> ()", effects=AliasAnalysisKind.CONSERVATIVE, side_effects=True)
def set_grad_enabled(val: bool) -> None:
    """Set whether following operators record gradients."""
    torch.autograd.grad_mode.set_grad_enabled(val)


@implements("aten::is_autocast_enabled() -> bool", nondeterministic=True)
def is_autocast_enabled() -> bool:
    """Return whether autocast is on for CUDA."""
    return torch.is_autocast_enabled("cuda")


@implements("aten::is_autocast_cpu_enabled() -> bool", nondeterministic=True)
def is_autocast_cpu_enabled() -> bool:
    """Return whether autocast is on for the CPU."""
    return torch.is_autocast_enabled("cpu")


@implements("aten::get_autocast_dtype(str device_type) -> ScalarType", nondeterministic=True)
def autocast_dtype(device_type: str) -> int:
    """Return the int that represents the dtype that autocast converts to."""
    return number_of(torch.get_autocast_dtype(device_type))


declare(torch.backends.cpu.get_cpu_capability, "aten::_get_cpu_capability() -> str")


@implements("aten::is_scripting() -> bool")
def is_scripting() -> bool:
    """Return True: the program is compiled."""
    return True


@implements("aten::_is_tracing() -> bool")  # since PyTorch 2.15
@implements("aten::_get_tracing_state() -> bool")
def is_tracing() -> bool:
    """Return False: a program that runs compiled is not being traced."""
    return False


@implements("aten::has_torch_function(...) -> bool")
def has_torch_function(*values: object) -> bool:
    """Return False: compiled programs call operators directly, whatever class their tensors are of."""
    return False
