"""The compiled objects that a version of a function runs: its code, and the codes and groups that its operators
call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rekindle.autodiff.differentiable_graph import DifferentiableOperation
from rekindle.codegen.fusion import KIND as GROUP
from rekindle.codegen.fusion_executor import FusionExecutor, group_of
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.interpreter.instructions import Instruction
from rekindle.runtime.version import underlying_code


def owner_of(instruction: Instruction) -> object:
    """Return the executor that runs an instruction: a :class:`FusionExecutor`, a
    :class:`~rekindle.codegen.native.region_executor.NativeRegion` or a :class:`DifferentiableOperation`; another
    object, or None, for other instructions."""
    if instruction.node.kind == GROUP:
        return group_of(instruction.node.get_graph("Subgraph"))
    return getattr(instruction.operation, "__self__", instruction.operation)


def places_of(code: Code) -> Counter[DifferentiableOperation | FusionExecutor]:
    """Return the executors of differentiable graphs and groups, and the number of their calls in ``code``."""
    owners = map(owner_of, code.instructions)
    return Counter(owner for owner in owners if isinstance(owner, (DifferentiableOperation, FusionExecutor)))


def codes_of(code: Code) -> Iterator[Code]:
    """Yield ``code``, and the codes of its differentiable graphs, and of its groups with products in BLAS; without
    those for new input sizes. An executor that several instructions of one code share is followed once."""
    yield code
    for owner in places_of(code):
        if isinstance(owner, DifferentiableOperation):
            for piece in owner.pieces():
                inner = None if piece.specializes else underlying_code(piece.function)
                if inner is not None:
                    yield from codes_of(inner)
        else:
            for inner in filter(None, map(underlying_code, list(owner.split_executors.values()))):
                yield from codes_of(inner)


def groups_in(code: Code) -> Iterator[FusionExecutor]:
    """Yield the executors of all fused groups in ``code`` and the codes within it."""
    for each in codes_of(code):
        yield from (owner for owner in places_of(each) if isinstance(owner, FusionExecutor))
