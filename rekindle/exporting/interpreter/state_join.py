"""Join of abstract states at the end of two paths of a program.

Each branch of an ``if``, and a loop before and after an iteration, results in an *abstract state*: the values that are
used later, and the containers that existed before and may have been changed. :func:`join_states` compares two states
and returns a :class:`JoinedState`: what is equal in both is in it as it is; what differs is a *slot*, a tensor that
``torch.cond`` or ``while_loop`` returns. If no slot can hold both, it raises :class:`JoinError`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import SymBool, SymFloat, SymInt, Tensor
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from rekindle.exporting.interpreter.values import (
    DTYPE_OF_KIND,
    SYMBOLS,
    UNSET,
    CompletedFuture,
    LeafKey,
    StateCopier,
    SymbolicObject,
    UnbackedScalar,
    full,
    is_known,
    is_rows,
    is_same_number,
    kind_of,
    leaf_key,
    number_as_tensor,
    parts,
    with_items,
)


class JoinError(Exception):
    """Two values cannot be joined in one slot, or should not be, since paths that are split know more. The message
    describes both."""


@dataclass(slots=True)
class AbstractState:
    """The state after a path of the program: the values that are used later, the copies of earlier containers, and
    ``origins``: the earlier tensor or symbol for each surrogate."""

    values: list[Any]
    copier: StateCopier
    origins: dict[LeafKey, Any] = field(default_factory=dict)

    def original(self, container: Any) -> Any:
        """Return the earlier container of which ``container`` is the copy; None if it is new."""
        return self.copier.originals.get(id(container))

    def origin(self, value: Any) -> Any:
        """Return the earlier tensor or symbol that ``value`` represents; None if it is new."""
        key = leaf_key(value)
        return None if key is None else self.origins.get(key)


# ------------------------------------------------------------------------------------------------------------ templates


@dataclass(slots=True, frozen=True)
class Unchanged:
    """A value that is the same in both states."""

    value: Any


@dataclass(slots=True, frozen=True)
class Phi:
    """A value that differs between the states, by its slot: an ``index`` into the slots of the template."""

    index: int


@dataclass(slots=True, frozen=True)
class ExistingContainer:
    """A container that existed before the paths split. Its new contents are in the heap of the template."""

    container: Any


@dataclass(slots=True)
class NewContainer:
    """A container that both paths created: its kind, and the joined value of each element."""

    like: Any
    parts: list[Any] = field(default_factory=list)


@dataclass(slots=True, frozen=True)
class BackReference:
    """A second occurrence of a container in the template."""

    made: NewContainer


@dataclass(slots=True)
class PhiInfo:
    """A slot: the kind of number, or "tensor", and the example of each state."""

    kind: str
    examples: tuple[Any, Any]

    @property
    def example(self) -> Tensor:
        """A tensor with the properties of the slot's values."""
        found = self.examples[1] if self.examples[0] is UNSET else self.examples[0]
        if isinstance(found, UnbackedScalar):
            return found.tensor
        # A symbol of a rehearsal is unknown to the tracer: any number is like it.
        return found if isinstance(found, Tensor) else full(0, DTYPE_OF_KIND[self.kind])


@dataclass(slots=True, frozen=True)
class AppendedRows:
    """The elements of a list after those that it had before a loop: the rows of the iterations so far, and the
    element of the current one."""

    rows: Any
    element: Any = None


@dataclass(slots=True)
class JoinedState:
    """The join of two abstract states: ``values``, those that are used later; ``heap``, earlier containers whose
    contents have changed; and ``slots``, the values that differ."""

    values: list[Any] = field(default_factory=list)
    heap: list[tuple[Any, NewContainer]] = field(default_factory=list)
    slots: list[PhiInfo] = field(default_factory=list)

    def signature(self) -> object:
        """Return a key that is equal for templates with the same slots, and the same unchanged values, at each
        position."""
        return ([_text(v) for v in self.values], [(id(c), _text(m)) for c, m in self.heap])

    def leaves_of(self, world: AbstractState) -> list[Any]:
        """Return the leaves of a state in the slots: tensors, numbers and UNSET."""
        found: list[Any] = [UNSET] * len(self.slots)

        def walk(node: Any, value: Any) -> None:
            if isinstance(node, Phi):
                found[node.index] = value
            elif isinstance(node, NewContainer):
                items = _parts(value)
                last = node.parts[-1] if node.parts else None
                if isinstance(last, Phi) and self.slots[last.index].kind == "rows":
                    count = len(node.parts) - 1
                    items = [*items[:count], AppendedRows(*items[count:]) if len(items) > count else UNSET]
                for part, item in zip(node.parts, items, strict=True):
                    walk(part, item)

        for node, value in zip(self.values, world.values, strict=True):
            walk(node, value)
        for container, made in self.heap:
            walk(made, world.copier.copy(container))
        return found

    def built(self, leaves: Sequence[Any], copier: StateCopier | None = None) -> list[Any]:
        """Build the values with ``leaves`` in the slots. Earlier containers are updated to their new contents; with
        ``copier``, its copies of them are."""
        made_before: dict[int, Any] = {}
        inside: Callable[[Any], Any] = (lambda value: value) if copier is None else copier.copy

        def build(node: Any) -> Any:
            if isinstance(node, Phi):
                return leaves[node.index]
            if isinstance(node, (Unchanged, ExistingContainer)):
                return inside(node.value if isinstance(node, Unchanged) else node.container)
            if isinstance(node, BackReference):
                return made_before[id(node.made)]
            return _filled(node.like, node.parts, build, lambda new: made_before.__setitem__(id(node), new))

        values = [build(node) for node in self.values]
        contents = [
            (inside(container), [build(part) for part in made.parts], made.like) for container, made in self.heap
        ]
        for container, items, like in contents:
            _refill(container, items, like)
        return values


def _text(node: Any) -> object:
    if isinstance(node, Unchanged):
        return ("same", id(node.value) if isinstance(node.value, Tensor) else repr(node.value))
    if isinstance(node, Phi):
        return ("slot", node.index)
    if isinstance(node, ExistingContainer):
        return ("kept", id(node.container))
    if isinstance(node, BackReference):
        return "again"
    return (type(node.like).__name__, tuple(_text(part) for part in node.parts))


def _filled(like: Any, nodes: list[Any], build: Callable[[Any], Any], note: Callable[[Any], None]) -> Any:
    """Return a new container like ``like``, with ``build(node)`` for each of ``nodes``. ``note`` is called with it
    before its elements are built, since a list, dict or object may contain itself; for a tuple or future, after."""
    if isinstance(like, (list, dict, SymbolicObject)):
        new: Any = (
            SymbolicObject(like.type, {}, like.path, like.python_class)
            if isinstance(like, SymbolicObject)
            else type(like)()
        )
        note(new)
        _refill(new, [build(node) for node in nodes], like)
        return new
    items = [build(node) for node in nodes]
    new = CompletedFuture(items[0]) if isinstance(like, CompletedFuture) else with_items(like, items)
    note(new)
    return new


def _refill(container: Any, items: list[Any], like: Any) -> None:
    if isinstance(container, list):
        container[:] = items
    elif isinstance(container, dict):
        container.clear()
        container.update(zip(like, items, strict=True))
    else:
        container.slots = dict(zip(like.slots, items, strict=True))


def _parts(value: Any) -> list[Any]:
    """Return the contents of a container. An unbacked scalar is a leaf here."""
    return [] if isinstance(value, UnbackedScalar) else parts(value)


# ------------------------------------------------------------------------------------------------------------ comparing


def join_states(
    first: AbstractState,
    second: AbstractState,
    surviving: Sequence[Any],
    *,
    is_strict: bool = True,
    may_be_late: Sequence[bool] | None = None,
    capacity: Any = None,
) -> JoinedState:
    """Join two abstract states that started as copies of one. ``surviving`` are the earlier containers that are used
    later. For a loop of at most ``capacity`` iterations, a list may have one more element in the second state.

    With ``is_strict``, known numbers that differ cannot be joined, since they stay known if the paths are split. The
    values that ``may_be_late`` marks are excepted. The ``origins`` of each state are added to those of the other.

    Raises:
        JoinError: two values have no join.
    """
    return _StateJoiner(first, second, is_strict, capacity).run(surviving, may_be_late)


class _StateJoiner:
    def __init__(self, first: AbstractState, second: AbstractState, is_strict: bool, capacity: Any = None) -> None:
        self.capacity = capacity
        self.first = first
        self.second = second
        self.is_strict = is_strict
        self.late_is_fine = False
        self.template = JoinedState()
        for one, other in ((first, second), (second, first)):
            for leaf in list(other.origins.values()):
                key = leaf_key(leaf)
                if key is not None:
                    one.origins.setdefault(key, leaf)
        self.pairs: dict[tuple[int, int], NewContainer] = {}
        self.handed_on: list[Any] = []
        """Containers of before that the values, or other containers, hold: they survive with these."""
        self.slot_of: dict[tuple[Any, Any], int] = {}

    def run(self, surviving: Sequence[Any], may_be_late: Sequence[bool] | None) -> JoinedState:
        for index, (a, b) in enumerate(zip(self.first.values, self.second.values, strict=True)):
            self.late_is_fine = may_be_late is not None and may_be_late[index]
            self.template.values.append(self.node(a, b))
        self.late_is_fine = True
        compared: set[int] = set()
        waiting = [*surviving, *self.handed_on]
        while waiting:
            self.handed_on = []
            for original in waiting:
                if id(original) not in compared:
                    compared.add(id(original))
                    # A container that only one path has reached is unchanged on the other.
                    made = self.made(self.first.copier.copy(original), self.second.copier.copy(original))
                    if not self.is_as_before(made, original):
                        self.template.heap.append((original, made))
            waiting = self.handed_on
        return self.template

    def is_as_before(self, made: NewContainer, original: Any) -> bool:
        before = _parts(original)
        if isinstance(original, dict) and list(original) != list(made.like):
            return False
        if len(before) != len(made.parts):
            return False
        return all(self._is_value(part, value) for part, value in zip(made.parts, before, strict=True))

    def _is_value(self, node: Any, value: Any) -> bool:
        if isinstance(node, Unchanged):
            return node.value is value or (not isinstance(value, Tensor) and _equal(node.value, value))
        if isinstance(node, ExistingContainer):
            return node.container is value
        if isinstance(node, NewContainer) and isinstance(value, tuple):
            items = zip(node.parts, value, strict=True)
            return len(node.parts) == len(value) and all(self._is_value(part, item) for part, item in items)
        return False

    def node(self, a: Any, b: Any) -> Any:
        """Return the join of ``a`` in the first state and ``b`` in the second.

        Raises:
            JoinError: the two have no join.
        """
        origin, other = self.first.origin(a), self.second.origin(b)
        if origin is not None and other is not None and _same_leaf(origin, other):
            return Unchanged(origin)
        if kind_of(a) is not None and kind_of(a) == kind_of(b):
            return self.number(a, b)
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            return self.tensor(a, b)
        if a is UNSET or b is UNSET:
            return self.unset(a, b)
        if isinstance(a, (list, dict, SymbolicObject, tuple, CompletedFuture)) and type(a) is type(b):
            return self.container(a, b)
        if type(a) is type(b) and _equal(a, b):
            return Unchanged(a)
        raise JoinError(f"{describe(a)} here and {describe(b)} there")

    def number(self, a: Any, b: Any) -> Any:
        if isinstance(a, UnbackedScalar) and isinstance(b, UnbackedScalar):
            origin, other = self.first.origin(a.tensor), self.second.origin(b.tensor)
            if origin is not None and origin is other:
                return Unchanged(UnbackedScalar(a.kind, origin))
        if is_known(a) and is_known(b):
            if is_same_number(a, b):
                return Unchanged(a)
            if self.is_strict and (not self.late_is_fine or kind_of(a) == "bool"):
                raise JoinError(f"{describe(a)} here and {describe(b)} there")
        elif isinstance(a, SymInt) and isinstance(b, SymInt) and _same_leaf(a, b) and not free_unbacked_symbols(a):
            return Unchanged(a)
        kind = kind_of(a)
        assert kind is not None
        return self.slot(kind, a, b)

    def tensor(self, a: Tensor, b: Tensor) -> Any:
        for what, x, y in (
            ("of dtype", a.dtype, b.dtype),
            ("on the device", a.device, b.device),
            ("of layout", a.layout, b.layout),
            ("whose number of dimensions is", a.dim(), b.dim()),
        ):
            if x != y:
                raise JoinError(f"a tensor {what} {x} here and {y} there")
        return self.slot("tensor", a, b)

    def unset(self, a: Any, b: Any) -> Any:
        if a is b:
            return Unchanged(UNSET)
        other = b if a is UNSET else a
        if self.is_strict:
            raise JoinError("a variable that has a value on one way alone")
        kind = "tensor" if isinstance(other, Tensor) else kind_of(other)
        if kind is None:
            raise JoinError(f"a variable that is {describe(other)} on one way alone")
        return self.slot(kind, a, b)

    def slot(self, kind: str, a: Any, b: Any) -> Phi:
        key = (_identity(a), _identity(b))
        index = self.slot_of.get(key)
        if index is None:
            index = self.slot_of[key] = len(self.template.slots)
            self.template.slots.append(PhiInfo(kind, (a, b)))
        return Phi(index)

    def container(self, a: Any, b: Any) -> Any:
        kept, other = self.first.original(a), self.second.original(b)
        if kept is not None or other is not None:
            if kept is other:
                self.handed_on.append(kept)
                return ExistingContainer(kept)
            what = describe(a if kept is not None else b)
            raise JoinError(f"{what} that exists before on the one way, and another one on the other")
        known = self.pairs.get((id(a), id(b)))
        return BackReference(known) if known is not None else self.made(a, b)

    def grown(self, a: list[Any], b: list[Any]) -> NewContainer:
        """Join a list with itself after an iteration that appended one tensor: the appended tensors become the rows of
        one tensor."""
        known = a[:-1] if a and is_rows(a[-1]) else a
        made = NewContainer(a)
        self.pairs[id(a), id(b)] = made
        made.parts = [self.node(x, y) for x, y in zip(known, b, strict=False)]
        element = b[-1]
        rows = torch.empty([self.capacity, *element.shape], dtype=element.dtype, device=element.device)
        made.parts.append(Phi(len(self.template.slots)))
        self.template.slots.append(PhiInfo("rows", (rows, rows)))
        return made

    def made(self, a: Any, b: Any) -> NewContainer:
        if isinstance(a, list) and len(b) == len(a) + 1 and isinstance(b[-1], Tensor) and self.capacity is not None:
            return self.grown(a, b)
        if isinstance(a, (list, tuple)) and len(a) != len(b):
            raise JoinError(f"{describe(a)} of {len(a)} elements here and {len(b)} there")
        if isinstance(a, dict) and list(a) != list(b):
            raise JoinError("a dict with other keys, or in another order, here than there")
        if isinstance(a, SymbolicObject) and (a.type is not b.type or list(a.slots) != list(b.slots)):
            raise JoinError("objects of different classes, or only one of which has all its attributes")
        made = NewContainer(a)
        self.pairs[id(a), id(b)] = made
        made.parts = [self.node(x, y) for x, y in zip(_parts(a), _parts(b), strict=True)]
        return made


def _identity(value: Any) -> object:
    if isinstance(value, (Tensor, UnbackedScalar, SymInt, SymFloat, SymBool)):
        return id(value)
    return (type(value), repr(value))


def _same_leaf(a: Any, b: Any) -> bool:
    return bool(leaf_key(a) == leaf_key(b))


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, UnbackedScalar) and isinstance(b, UnbackedScalar):
        return a.kind == b.kind and a.tensor is b.tensor
    if isinstance(a, (SymInt, SymFloat, SymBool)) or isinstance(b, (SymInt, SymFloat, SymBool)):
        return type(a) is type(b) and _same_leaf(a, b)
    if isinstance(a, float) and isinstance(b, float):
        return is_same_number(a, b)
    try:
        return type(a) is type(b) and bool(a == b)
    except Exception:  # what the program holds may compare in any way
        return a is b


def describe(value: Any) -> str:
    """Return a description of a value for an error: the ``repr`` of None, a known number or a string; for others their
    kind, such as ``a Tensor``."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if isinstance(value, Tensor):
        return "a Tensor"
    if isinstance(value, SymbolicObject):
        return f"an object of {value.type.basename}"
    if isinstance(value, UnbackedScalar):
        return f"a data-dependent {value.kind}"
    if isinstance(value, SYMBOLS):
        return f"a {kind_of(value)} that is computed from sizes or data"
    return f"a {type(value).__name__}"


def tensor_for(info: PhiInfo, value: Any) -> Tensor:
    """Return the tensor of a slot for ``value``: a tensor itself, a number as a tensor, zeros for UNSET."""
    if value is UNSET:
        example = info.example
        dtype = example.dtype if info.kind == "tensor" else DTYPE_OF_KIND[info.kind]
        zeros: Tensor = torch.ops.aten.full.default(list(example.shape), 0, dtype=dtype, device=example.device)
        return zeros
    return value if isinstance(value, Tensor) else number_as_tensor(value)


def value_of(kind: str, tensor: Tensor) -> Any:
    """Return the value of this kind that the tensor of a slot represents."""
    return tensor if kind == "tensor" else UnbackedScalar(kind, tensor)  # type: ignore[arg-type]
