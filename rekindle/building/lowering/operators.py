"""All emitters: importing this fills :data:`rekindle.building.lowering.emitters.EMITTERS`."""

from rekindle.building.lowering import (
    containers as containers,
    control as control,
    formatting as formatting,
    kernels as kernels,
    modules as modules,
    numbers as numbers,
    strings as strings,
    tensors as tensors,
)
