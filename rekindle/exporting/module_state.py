"""Module state for PyTorch's exporter: a hierarchy of ``nn.Module`` objects that hold the parameters and buffers of the
program's modules, without code.

Parameters, buffers and their names are the program's. Tensors that it keeps in other attributes become buffers too,
which are not part of the ``state_dict``. Numbers that the program changes become buffers that are part of it: ints and
bools as tensors without dimensions, floats as tensors of one element.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from rekindle.errors import UNKNOWN_RANGE, ExportProblem
from rekindle.exporting.interpreter.values import (
    DTYPE_OF_KIND,
    SymbolicObject,
    UnbackedScalar,
    is_same_number,
    kind_of,
    number_as_tensor,
    with_items,
)
from rekindle.ir.types import ClassType, InterfaceType
from rekindle.ops.python.values import script_class


class ModuleShell(torch.nn.Module):
    """A module of the exported program. It has the parameters, buffers and submodules of the original, without its
    code."""


@dataclass(slots=True)
class TensorSlot:
    """A tensor that is a parameter or a buffer of a shell, by its name."""

    shell: torch.nn.Module
    name: str
    is_parameter: bool = False

    @property
    def tensor(self) -> Tensor:
        table = self.shell._parameters if self.is_parameter else self.shell._buffers
        found = table[self.name]
        assert found is not None
        return found


@dataclass(slots=True)
class ScalarSlot:
    """A number in an attribute. It becomes the buffer ``name`` of the shell once it is known to change. ``key`` is its
    path from the root. The buffer of a float has one dimension, because PyTorch's compilers treat a float in a tensor
    without dimensions as a constant."""

    value: Any
    key: str
    shell: torch.nn.Module
    name: str
    is_state: bool
    loaded: Tensor | None = None
    """The zero-dimensional tensor that represents it in the exported program."""

    def load(self) -> Any:
        if not self.is_state:
            return self.value
        tensor = self.shell._buffers[self.name]
        kind = kind_of(self.value)
        assert tensor is not None
        assert kind is not None
        self.loaded = torch.ops.aten.reshape.default(tensor, []) if tensor.dim() else tensor
        return UnbackedScalar(kind, self.loaded)


@dataclass(slots=True)
class ContainerSlot:
    """A container in an attribute, a module or an object: ``like`` has its kind, and ``parts`` the slots of its
    elements. ``path`` is that of a module; None for others."""

    like: Any
    parts: list[Any] = field(default_factory=list)
    path: str | None = None


@dataclass(slots=True)
class ConstantSlot:
    """An attribute that is constant in the exported program, such as a string."""

    value: Any


class NeedsState(Exception):
    """The program changes numbers that were treated as constants. The export restarts with those in ``keys`` as
    buffers."""

    def __init__(self, keys: Iterable[str]) -> None:
        self.keys = frozenset(keys)
        super().__init__(", ".join(sorted(self.keys)))


class ProgramState:
    """The state of a program between calls: ``shell``, a tree of plain modules that hold the parameters and buffers for
    PyTorch's exporter, and the mapping between them and the values that the program uses. ``changing`` has the keys of
    numbers that are known to change, ``numbers`` their buffers."""

    def __init__(self, module: torch.nn.Module | None, changing: frozenset[str], numbers: dict[str, Tensor]) -> None:
        self.shell = ModuleShell()
        self.changing = changing
        self.numbers = numbers
        self.values: dict[int, ContainerSlot] = {}
        self._keep_alive: list[Any] = []
        self.paths: list[tuple[str, str]] = []
        self.homes: dict[int, TensorSlot] = {}
        """The slot of each parameter and buffer, by the id of the tensor. Other attributes with the same tensor use
        it."""
        self.shells: dict[str, torch.nn.Module] = {"": self.shell}
        self._constants: dict[int, TensorSlot] = {}
        if module is not None:
            self._find_homes(module, self.shell, "", set())
        self.root = None if module is None else self._module(module, self.shell, "")

    # -------------------------------------------------------------------------------------------------------- holding

    def hold_constants(self, tensors: Sequence[Tensor]) -> None:
        """Register the constant tensors of the program as buffers ``constant_0``, ``constant_1`` … of the shell, which
        are not part of the ``state_dict``."""
        for index, tensor in enumerate(tensors):
            name = f"constant_{index}"
            self._constants[id(tensor)] = TensorSlot(self.shell, name)
            self._buffer(self.shell, name, tensor, False)

    def constants(self) -> dict[int, Tensor]:
        """Return the tensors that represent the program's constant tensors, by the id of the original."""
        return {key: held.tensor for key, held in self._constants.items()}

    def copy_tensors(self) -> None:
        """Replace the tensors of the shells by copies, so that a run does not change the tensors of the program."""
        copies: dict[int, Tensor] = {}
        for shell in self.shells.values():
            for table in (shell._parameters, shell._buffers):
                for name, tensor in table.items():
                    if tensor is not None and id(tensor) not in copies:
                        copies[id(tensor)] = tensor.detach().clone().requires_grad_(tensor.requires_grad)
                    if tensor is not None:
                        table[name] = copies[id(tensor)]  # type: ignore[assignment]

    def _find_homes(self, module: torch.nn.Module, shell: torch.nn.Module, path: str, seen: set[int]) -> None:
        """Record the shell of each module by path, creating those of submodules, and the slots of parameters and
        buffers.

        ``seen`` has the ids of the modules visited so far; the module is added.
        """
        seen.add(id(module))
        self.shells[path] = shell
        for is_parameter, table in ((True, module._parameters), (False, module._buffers)):
            for name, tensor in table.items():
                if tensor is not None:
                    self.homes.setdefault(id(tensor), TensorSlot(shell, name, is_parameter))
        for name, child in module._modules.items():
            if child is not None and id(child) not in seen:
                self._find_homes(child, ModuleShell(), f"{path}.{name}" if path else name, seen)

    def _module(self, module: Any, shell: torch.nn.Module, path: str) -> ContainerSlot:
        type = module.script_type
        held = ContainerSlot(SymbolicObject(type, {}, path, getattr(module, "_rekindle_python_class", None)), path=path)
        self.values[id(module)] = held
        self._keep_alive.append(module)
        shell.training = bool(getattr(module, "training", False))
        for name, attribute in type.attributes.items():
            held.like.slots[name] = None
            held.parts.append(self._slot(module, shell, path, name, attribute.kind, attribute.type))
        for name, buffer in module._buffers.items():  # what the program never reads is still in the state_dict
            if buffer is not None and name not in type.attributes:
                self._buffer(shell, name, buffer, name not in module._non_persistent_buffers_set)
        for name, parameter in module._parameters.items():
            if parameter is not None and name not in type.attributes:
                shell._parameters[name] = parameter
        return held

    def _slot(self, module: Any, shell: torch.nn.Module, path: str, name: str, kind: str, type: Any) -> Any:
        joined = f"{path}.{name}" if path else name
        if isinstance(type, (ClassType, InterfaceType)) and type.is_module:
            child = module._modules.get(name)
            if child is None:
                child = getattr(module, name)
            known = self.values.get(id(child))
            if known is not None:
                shell._modules[name] = self.shells[known.path or ""]
                return known
            inner = self.shells[joined]
            shell._modules[name] = inner
            return self._module(child, inner, joined)
        if name in module._parameters:
            if module._parameters[name] is None:
                return ConstantSlot(None)
            shell._parameters[name] = module._parameters[name]
            return TensorSlot(shell, name, is_parameter=True)
        value = getattr(module, name)
        if name in module._buffers and isinstance(value, Tensor):
            self._buffer(shell, name, value, name not in module._non_persistent_buffers_set)
            return TensorSlot(shell, name)
        return self._value(value, shell, name, joined)

    def _buffer(self, shell: torch.nn.Module, name: str, tensor: Tensor, is_persistent: bool) -> None:
        shell._buffers[name] = tensor
        if not is_persistent:
            shell._non_persistent_buffers_set.add(name)

    def _value(self, value: Any, shell: torch.nn.Module, name: str, key: str) -> Any:
        """Return the slot for the value of an attribute, or for an element of it. Register a buffer in ``shell`` for a
        tensor, and for a number that is known to change."""
        if isinstance(value, Tensor):
            home = self.homes.get(id(value))
            if home is not None:
                return home
            self._buffer(shell, name, value, False)
            return TensorSlot(shell, name)
        if kind_of(value) is not None:
            is_state = key in self.changing
            if is_state:
                if key not in self.numbers:
                    held_value = [value] if isinstance(value, float) else value
                    self.numbers[key] = torch.tensor(held_value, dtype=DTYPE_OF_KIND[kind_of(value) or "int"])
                self._buffer(shell, name, self.numbers[key], True)
            return ScalarSlot(value, key, shell, name, is_state)
        if isinstance(value, (list, tuple)):
            like: Any = list(value) if isinstance(value, list) else value
            items: Iterable[tuple[Any, Any]] = enumerate(value)
        elif isinstance(value, dict):
            like, items = dict(value), value.items()
        elif isinstance(type := script_class(value), ClassType) and not type.is_torchbind_class:
            known = self.values.get(id(value))
            if known is not None:
                return known
            slots = {each: getattr(value, each) for each in type.attributes if hasattr(value, each)}
            like, items = SymbolicObject(type, dict.fromkeys(slots), None, None), slots.items()
        else:
            return ConstantSlot(value)
        held = ContainerSlot(like)
        self.values[id(value)] = held
        self._keep_alive.append(value)
        held.parts = [self._value(item, shell, f"{name}_{_word(at)}", f"{key}.{at}") for at, item in items]
        return held

    # -------------------------------------------------------------------------------------------- loading and storing

    def load(self, held: Any, made: dict[int, Any]) -> Any:
        """Return the value that the program uses for the slot ``held``. New lists, dicts and objects are added to
        ``made`` by the id of the slot, so that each is created once."""
        if isinstance(held, TensorSlot):
            return held.tensor
        if isinstance(held, ScalarSlot):
            return held.load()
        if isinstance(held, ConstantSlot):
            return held.value
        found = made.get(id(held))
        if found is not None:
            return found
        like = held.like
        if isinstance(like, tuple):
            return with_items(like, [self.load(part, made) for part in held.parts])
        new: Any = (
            SymbolicObject(like.type, {}, like.path, like.python_class)
            if isinstance(like, SymbolicObject)
            else type(like)()
        )
        made[id(held)] = new
        items = [self.load(part, made) for part in held.parts]
        if isinstance(new, list):
            new.extend(items)
        elif isinstance(new, dict):
            new.update(zip(like, items, strict=True))
        else:
            new.slots.update(zip(like.slots, items, strict=True))
        return new

    def changes(self, now: Any) -> StateChanges:
        """Return the changes of the state, given the root module ``now`` after the program has ended."""
        found = StateChanges()
        if self.root is not None:
            _compare(self.root, now, "self", found, set())
        return found


@dataclass(slots=True)
class StateChanges:
    """Changes of state by a call: buffers with their new values; numbers that have to become buffers; unsupported
    changes, by the name of the attribute."""

    tensors: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    numbers: set[str] = field(default_factory=set)
    refused: list[tuple[str, str]] = field(default_factory=list)


def _compare(held: Any, now: Any, where: str, found: StateChanges, seen: set[int]) -> None:
    if isinstance(held, TensorSlot):
        before = held.tensor
        if before is now:
            return
        if not isinstance(now, Tensor):
            found.refused.append((where, "a Tensor is replaced by something else"))
        elif before.dtype != now.dtype or list(before.shape) != list(now.shape):
            shapes = f"{before.dtype} {list(before.shape)} to {now.dtype} {list(now.shape)}"
            found.refused.append((where, f"a Tensor goes from {shapes.replace('torch.', '')}"))
        elif held.is_parameter:
            found.refused.append((where, "a parameter is assigned"))
        else:
            found.tensors.append((before, now))
    elif isinstance(held, ScalarSlot):
        _compare_number(held, now, where, found)
    elif isinstance(held, ConstantSlot):
        if held.value is not now and not (type(held.value) is type(now) and bool(held.value == now)):
            found.refused.append((where, f"{_describe(held.value)} is replaced by {_describe(now)}"))
    elif id(held) not in seen:
        seen.add(id(held))
        parts = _parts_of(held.like, now)
        if parts is None or len(parts) != len(held.parts):
            found.refused.append((where, "a container gets more elements or fewer, or is replaced by another one"))
            return
        for part, (name, value) in zip(held.parts, parts, strict=True):
            inner = f"{where}.{name}" if isinstance(held.like, SymbolicObject) else f"{where}[{name!r}]"
            _compare(part, value, inner, found, seen)


def _compare_number(held: ScalarSlot, now: Any, where: str, found: StateChanges) -> None:
    if kind_of(now) != kind_of(held.value):
        found.refused.append((where, f"{_describe(held.value)} is replaced by {_describe(now)}"))
    elif not held.is_state:
        if isinstance(now, (int, float)) and is_same_number(now, held.value):
            return
        found.numbers.add(held.key)
    else:
        tensor = held.shell._buffers[held.name]
        assert tensor is not None
        if not (isinstance(now, UnbackedScalar) and now.tensor is held.loaded):
            new = number_as_tensor(now)
            found.tensors.append((tensor, torch.ops.aten.reshape.default(new, [1]) if tensor.dim() else new))


def _parts_of(like: Any, now: Any) -> list[tuple[Any, Any]] | None:
    if isinstance(like, SymbolicObject):
        return (
            [(name, now.slots[name]) for name in like.slots if name in now.slots]
            if isinstance(now, SymbolicObject)
            else None
        )
    if isinstance(like, dict):
        return list(now.items()) if isinstance(now, dict) and list(now) == list(like) else None
    return list(enumerate(now)) if type(now) is type(like) else None


def _describe(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    return "a Tensor" if isinstance(value, Tensor) else f"a {type(value).__name__}"


def _word(at: Any) -> str:
    return "".join(char if char.isalnum() else "_" for char in str(at))


def refused_changes(changes: StateChanges, places: dict[tuple[str, str], ExportProblem]) -> list[ExportProblem]:
    """Return the changes of state that cannot be exported, as problems with the location of an assignment, if one is
    known."""
    found: list[ExportProblem] = []
    for where, what in changes.refused:
        path, _, name = where.removeprefix("self.").rpartition(".")
        place = places.get((path, name.split("[", 1)[0]))
        message = f"the program changes the attribute '{where}' so that a buffer cannot hold it: {what}"
        hint = "keep a Tensor of one shape and dtype there from the start, or pass the value in and return the new one"
        found.append(
            ExportProblem(
                message,
                UNKNOWN_RANGE if place is None else place.range,
                hint=hint,
                callers=() if place is None else place.callers,
                in_draft="the attribute stays as it was before the call",
            )
        )
    return found
