"""Dry run: follow a path of the program without recording it, to find what it reads, writes and results in.

The inputs and outputs of a branch have to be known before ``torch.cond`` or ``while_loop`` traces it. So each path runs
twice: first on surrogates of all tensors while tracing is disabled, and again when the operator traces it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import SymBool, SymFloat, SymInt, Tensor
from torch._guards import detect_fake_mode
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing

from rekindle.exporting.interpreter.state_join import (
    AbstractState,
    AppendedRows,
    JoinedState,
    PhiInfo,
    tensor_for,
    value_of,
)
from rekindle.exporting.interpreter.symbolic_interpreter import (
    ExecutionPoint,
    Frame,
    ProgramRaises,
    SymbolicInterpreter,
)
from rekindle.exporting.interpreter.values import (
    UNSET,
    LeafKey,
    StateCopier,
    UnbackedScalar,
    key_of,
    leaves,
    number_as_tensor,
)
from rekindle.exporting.scalars.scalar_ops import condition_tensor


@dataclass(slots=True)
class DryRun:
    """Result of a dry run of a path: the abstract state at its end, and which earlier tensors and symbols it read and
    wrote; or the exception that it always raises."""

    world: AbstractState
    read_leaves: dict[LeafKey, Any] = field(default_factory=dict)
    written: dict[LeafKey, Tensor] = field(default_factory=dict)
    differentiable_writes: set[LeafKey] = field(default_factory=set)
    """The written leaves into which a gradient flows."""
    raised: ProgramRaises | None = None
    memory: set[int] = field(default_factory=set)
    """The storages that it wrote to, those of surrogates included, by ``_cdata``."""
    asserts: bool = False
    """Whether it has an assertion, so that it must run even if its results are unused."""


@contextmanager
def without_recording(machine: SymbolicInterpreter) -> Iterator[None]:
    """Record no operators within the ``with`` block, and discard the symbols that they create. What the block reads and
    writes is noted in new sets of the session, which are discarded too."""
    fake_mode = detect_fake_mode()
    shape_env = None if fake_mode is None else fake_mode.shape_env
    session = machine.session
    read_leaves, written = session.read_leaves, session.written
    session.read_leaves, session.written = set(), set()
    session.dry_run_depth += 1
    try:
        forgetting = nullcontext() if shape_env is None else shape_env.ignore_fresh_unbacked_symbols()
        with disable_proxy_modes_tracing(), forgetting:
            yield
    finally:
        session.dry_run_depth -= 1
        session.read_leaves, session.written = read_leaves, written


def surrogate(leaf: Any) -> Any:
    """Return a copy of a tensor, with memory of its own; other leaves are returned unchanged."""
    if not isinstance(leaf, Tensor):
        return leaf
    new = leaf.clone()
    if getattr(new, "constant", None) is not None:
        new.constant = None  # type: ignore[attr-defined]
    return new


Preparation = Callable[[list[Frame], StateCopier], object]
"""Function that changes copied frames before they run. It gets the frames and their copier."""


def dry_run(
    machine: SymbolicInterpreter, frames: Sequence[Frame], surviving: Sequence[Any], prepare: Preparation | None = None
) -> DryRun:
    """Run a copy of ``frames`` to its end without recording, and return the state at the end or the exception.

    ``surviving`` are the containers that are used afterwards. Within another dry run, reads and writes are added to
    those of the session.

    Raises:
        ExportProblem: a construct on the path is unsupported.
        NeedsExample: the export has to restart and follow the example.
    """
    before = machine.leaves_of(frames)
    session = machine.session
    with without_recording(machine):
        stand_ins = {key: surrogate(leaf) for key, leaf in before.items()}
        copier = StateCopier(stand_ins)
        world = AbstractState([], copier)
        for key, leaf in before.items():
            world.origins[key_of(stand_ins[key])] = leaf
        for leaf in leaves(list(surviving)):
            world.origins.setdefault(key_of(leaf), leaf)
        result = DryRun(world)
        copied = machine.copied(frames, copier)
        if prepare is not None:
            prepare(copied, copier)
        copy = machine.fresh(copied, copier, surviving)
        assertions = session.assertions
        try:
            world.values = copy.run()
        except ProgramRaises as raised:
            result.raised = raised
        result.asserts = session.assertions > assertions
        result.memory = set(session.written)
        for own, leaf in world.origins.items():
            key = key_of(leaf)
            if own in session.read_leaves:
                result.read_leaves[key] = leaf
            new = stand_ins.get(key)
            if isinstance(new, Tensor) and new.untyped_storage()._cdata in session.written:
                result.written[key] = leaf
                if new.requires_grad:
                    result.differentiable_writes.add(key)
    if session.dry_run_depth:
        session.read_leaves.update(result.read_leaves)
        session.written.update(leaf.untyped_storage()._cdata for leaf in result.written.values())
    return result


# ------------------------------------------------------------------------------------------------------- what goes in


@dataclass(slots=True)
class Operands:
    """The earlier tensors and symbols that are inputs of a higher-order operator, and which of them it writes to."""

    leaves: dict[LeafKey, Any] = field(default_factory=dict)
    written: dict[LeafKey, Tensor] = field(default_factory=dict)
    differentiable_writes: set[LeafKey] = field(default_factory=set)

    @classmethod
    def of(cls, template: JoinedState, rehearsals: Sequence[DryRun]) -> Operands:
        """Collect the operands of the paths ``rehearsals``: what they read, write and return."""
        found = cls()
        for rehearsal in rehearsals:
            found.leaves.update(rehearsal.read_leaves)
            found.leaves.update(rehearsal.written)
            found.written.update(rehearsal.written)
            found.differentiable_writes |= rehearsal.differentiable_writes
            for value in template.leaves_of(rehearsal.world):
                value = value.element if isinstance(value, AppendedRows) else value
                leaf = value.tensor if isinstance(value, UnbackedScalar) else value
                origin = rehearsal.world.origin(leaf)
                if origin is not None:
                    key = key_of(origin)
                    found.leaves[key] = origin
        return found

    def write_back(self, results: Sequence[Tensor]) -> None:
        """Copy ``results``, one for each written tensor in order, into these tensors in place."""
        for (key, tensor), new in zip(self.written.items(), results, strict=True):
            tensor.copy_(new if key in self.differentiable_writes else new.detach())

    def shared_memory(self) -> tuple[Tensor, Tensor] | None:
        """Return a tensor that is written to, and another operand that shares its memory; None if there are none."""
        for key, tensor in self.written.items():
            memory = tensor.untyped_storage()._cdata
            for other_key, other in self.leaves.items():
                if other_key != key and isinstance(other, Tensor) and other.untyped_storage()._cdata == memory:
                    return tensor, other
        return None

    def tensors(self) -> list[Any]:
        """Return the operands in the form for ``torch.cond``: ints, and tensors that do not share memory."""
        return dealias([as_operand(leaf) for leaf in self.leaves.values()])

    def replacements(self, given: Sequence[Any], *, copies: bool = True) -> dict[LeafKey, Any]:
        """Map each earlier leaf to the value ``given`` for it within the operator; to a copy, if it is written to.
        Without ``copies``, there are no copies."""
        found: dict[LeafKey, Any] = {}
        for (key, leaf), value in zip(self.leaves.items(), given, strict=True):
            found[key] = from_operand(leaf, value)
            if copies and key in self.written:
                found[key] = value.clone()
        return found


def as_operand(leaf: Any) -> Any:
    """Return a leaf in the form in which higher-order operators take it: symbols of floats and bools as tensors, others
    unchanged."""
    if isinstance(leaf, SymFloat):
        return number_as_tensor(leaf)
    return condition_tensor(leaf) if isinstance(leaf, SymBool) else leaf


def from_operand(leaf: Any, given: Any) -> Any:
    """Convert ``given``, an operand within an operator, to the form of ``leaf``: the inverse of :func:`as_operand`."""
    if isinstance(leaf, SymFloat):
        return UnbackedScalar("float", given)
    return UnbackedScalar("bool", given) if isinstance(leaf, SymBool) else given


# ------------------------------------------------------------------------------------------------------ what comes out


def slot_tensors(template: JoinedState, world: AbstractState, iteration: Tensor | None = None) -> list[Tensor]:
    """Return the values of a path's state in the slots of ``template``, as tensors. ``iteration`` is the index of the
    loop iteration, from 0."""
    found: list[Tensor] = []
    for info, value in zip(template.slots, template.leaves_of(world), strict=True):
        if isinstance(value, AppendedRows):
            assert iteration is not None
            at, row = iteration.reshape([1]), value.element.unsqueeze(0)
            found.append(torch.ops.aten.index_copy.default(value.rows.tensor, 0, at, row))
            continue
        tensor = tensor_for(info, value)
        found.append(tensor.contiguous() if not has_plain_strides(info) else tensor)
    return found


def has_plain_strides(info: PhiInfo) -> bool:
    """Return whether both examples of a slot are contiguous tensors, or neither is a tensor."""
    a, b = info.examples
    if not (isinstance(a, Tensor) and isinstance(b, Tensor)):
        return not isinstance(a, Tensor) and not isinstance(b, Tensor)
    return a.is_contiguous() and b.is_contiguous()


def unaliased(tensors: Sequence[Tensor], others: Sequence[Any]) -> tuple[Tensor, ...]:
    """Return ``tensors``, with a copy of each that shares memory with an earlier one or with one of ``others``."""
    taken = {other.untyped_storage()._cdata for other in others if isinstance(other, Tensor)}
    found: list[Tensor] = []
    for tensor in tensors:
        if tensor.untyped_storage()._cdata in taken:
            tensor = tensor.clone()
        taken.add(tensor.untyped_storage()._cdata)
        found.append(tensor)
    return tuple(found)


def dealias(operands: Sequence[Any]) -> list[Any]:
    """Return ``operands``, with a copy of each tensor that shares memory with an earlier one. Higher-order operators
    reject such pairs, even if they write to neither."""
    taken: set[int] = set()
    found: list[Any] = []
    for operand in operands:
        if isinstance(operand, Tensor):
            if operand.untyped_storage()._cdata in taken:
                operand = operand.clone()
            taken.add(operand.untyped_storage()._cdata)
        found.append(operand)
    return found


def phi_placeholder(info: PhiInfo) -> Tensor:
    """Return an uninitialized tensor with the properties of a slot, for a dry run. A size in which the examples differ
    is a new symbol."""
    example = info.example
    a, b = info.examples
    shape = list(example.shape)
    if isinstance(a, Tensor) and isinstance(b, Tensor) and info.kind == "tensor":
        shape = [_either_size(x, y) for x, y in zip(a.shape, b.shape, strict=True)]
    needs_grad = any(isinstance(each, Tensor) and each.requires_grad for each in info.examples)
    new = torch.empty(shape, dtype=example.dtype, device=example.device)
    return new.requires_grad_() * 1 if needs_grad else new


def _either_size(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and a == b:
        return a
    if isinstance(a, SymInt) and isinstance(b, SymInt) and a.node.expr == b.node.expr:
        return a
    fake_mode = detect_fake_mode()
    assert fake_mode is not None
    assert fake_mode.shape_env is not None
    size: Any = fake_mode.shape_env.create_unbacked_symint()
    torch._check(size >= 0)
    return size


def note_shared(
    machine: SymbolicInterpreter,
    template: JoinedState,
    rehearsals: Sequence[DryRun],
    results: Sequence[Tensor],
    moment: ExecutionPoint | None,
) -> None:
    """Record in ``session.maybe_aliased`` the results that share memory with an earlier tensor on one of the paths, and
    these tensors: after the join, the sharing is data-dependent."""
    for rehearsal in rehearsals:
        memory = {own[1]: leaf for own, leaf in rehearsal.world.origins.items() if own[0] == "tensor"}
        by_storage = {
            stand.untyped_storage()._cdata: memory[id(stand)]
            for stand in rehearsal.world.copier.replacements.values()
            if isinstance(stand, Tensor) and id(stand) in memory
        }
        for value, result in zip(template.leaves_of(rehearsal.world), results, strict=False):
            if isinstance(value, AppendedRows):
                continue
            tensor = value.tensor if isinstance(value, UnbackedScalar) else value
            if not isinstance(tensor, Tensor) or value is UNSET:
                continue
            source = by_storage.get(tensor.untyped_storage()._cdata)
            if source is not None:
                for each in (source, result):
                    machine.session.maybe_aliased[each.untyped_storage()._cdata] = (each, moment)


def without_gradients(template: JoinedState, results: Sequence[Tensor]) -> list[Tensor]:
    """Return ``results`` of a higher-order operator, which all require gradients if one input does. Those are detached
    whose values required none."""
    found: list[Tensor] = []
    for info, result in zip(template.slots, results, strict=True):
        has_gradient = any(isinstance(each, Tensor) and each.requires_grad for each in info.examples)
        found.append(result.detach() if result.requires_grad and not has_gradient else result)
    return found


def values_of(template: JoinedState, tensors: Sequence[Tensor]) -> list[Any]:
    """Return the values after an operator: those of ``template``, with the results ``tensors`` in its slots. Containers
    that the paths changed are updated in place."""
    return template.built([value_of(info.kind, tensor) for info, tensor in zip(template.slots, tensors, strict=True)])
