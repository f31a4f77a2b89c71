"""All emitters: importing this module fills :data:`rekindle.building.lowering.emitters.EMITTERS`."""

from rekindle.building.lowering import (
    calls as calls,
    complexes as complexes,
    containers as containers,
    control as control,
    enums as enums,
    formatting as formatting,
    indexed as indexed,
    kernels as kernels,
    modules as modules,
    numbers as numbers,
    strings as strings,
    tensors as tensors,
    try_statements as try_statements,
)
