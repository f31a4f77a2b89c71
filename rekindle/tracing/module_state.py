"""Attribute changes by traced code: replaced tensors become part of the program, and unsupported changes are
reported."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from rekindle.errors import UNKNOWN_RANGE
from rekindle.ir.types import FLOAT, INT, TENSOR, ClassType, OptionalType, Type
from rekindle.program.modules.module import ScriptModule
from rekindle.tracing.recording.numbers import TracedFloat, TracedInt, plain
from rekindle.tracing.recording.recorder import Path, Recorder, description
from rekindle.tracing.report import Baked

_INTERNAL: Final = frozenset(vars(torch.nn.Module())) - {"training"}
"""The names in the dict of a module that belong to ``nn.Module`` itself."""

_CONTAINERS: Final = (list, dict, set, deque)


@dataclass(slots=True)
class _Part:
    """One submodule of the traced module."""

    module: torch.nn.Module
    path: Path
    compiled: ScriptModule
    type: ClassType
    """The class type that determines which attributes the trace can assign."""
    held: dict[str, _Held] = field(default_factory=dict)
    """Values at the last inspection, by name."""


@dataclass(slots=True, frozen=True)
class _Held:
    value: Any
    items: tuple[Any, ...] | None
    """The contents, if it is a list, a dict or the like."""


class ModuleState:
    """The attributes of ``module``, compared before and after it is traced. ``compiled`` is the result of the trace;
    ``first`` is the result of an earlier trace of the module, and attributes that it could not assign are not assigned
    here either."""

    def __init__(self, module: torch.nn.Module, compiled: ScriptModule, first: ScriptModule | None = None) -> None:
        self._parts: dict[int, _Part] = {}
        self._changed: dict[tuple[int, str], None] = {}
        self._first: list[dict[str, _Held]] = []
        """The initial values, which must stay alive: they are known by identity."""
        self._visit(module, compiled, first or compiled, ())

    def _visit(self, module: torch.nn.Module, compiled: ScriptModule, first: ScriptModule, path: Path) -> None:
        if id(module) in self._parts or isinstance(module, ScriptModule):
            return  # compiled code changes its own module, and does so in the trace
        part = self._parts[id(module)] = _Part(module, path, compiled, first.script_type, _held(module))
        self._first.append(part.held)
        for name, child in module._modules.items():
            inner, before = compiled._modules.get(name), first._modules.get(name)
            if child is not None and isinstance(inner, ScriptModule) and isinstance(before, ScriptModule):
                self._visit(child, inner, before, (*path, name))

    def record(self, recorder: Recorder, module: torch.nn.Module, path: Path) -> None:
        """Record in the trace the tensors and numbers that attributes of ``module``, whose path is ``path``, have been
        assigned since the last inspection. Report changes that a trace cannot hold."""
        part = self._parts.get(id(module))
        if part is None:
            return
        now = _held(module)
        for name in {**part.held, **now}:
            before, after = part.held.get(name), now.get(name)
            if _is_same(before, after):
                continue
            self._changed[id(module), name] = None
            type = part.type.attribute_type(name)
            if after is not None and type is not None and _can_be_written(recorder, after.value, type):
                recorder.write((*path, name), after.value)
            else:
                _report(recorder, module, name, after)
        part.held = now

    def record_all(self, recorder: Recorder) -> None:
        """Record the module and all submodules as :meth:`record` does: the effects of methods other than
        ``forward``."""
        for part in self._parts.values():
            self.record(recorder, part.module, part.path)

    def finish(self) -> None:
        """Replace traced numbers in attributes of the original module by plain ones, and copy the attributes that the
        run changed to the compiled module."""
        for part in self._parts.values():
            own = vars(part.module)
            for name, value in own.items():
                if isinstance(value, (TracedInt, TracedFloat)):
                    own[name] = plain(value)
        for identity, name in self._changed:
            part = self._parts[identity]
            held = _held(part.module).get(name)
            if held is None or part.compiled.script_type.attribute_type(name) is None:
                continue
            with suppress(TypeError):  # of another type than before, which is in the report
                setattr(part.compiled, name, held.value)


def _held(module: torch.nn.Module) -> dict[str, _Held]:
    own = vars(module)
    found = {name: value for name, value in own.items() if name not in _INTERNAL}
    for table in ("_parameters", "_buffers"):
        found.update(own.get(table, {}))
    return {
        name: _Held(value, _items(value)) for name, value in found.items() if not isinstance(value, torch.nn.Module)
    }


def _items(value: object) -> tuple[Any, ...] | None:
    if isinstance(value, dict):
        return (*value, *value.values())
    return tuple(value) if isinstance(value, _CONTAINERS) else None


def _is_same(before: _Held | None, after: _Held | None) -> bool:
    if before is None or after is None:
        return before is after
    if before.items is not None and after.items is not None and type(before.value) is type(after.value):
        return len(before.items) == len(after.items) and all(map(_is_same_item, before.items, after.items))
    return _is_same_item(before.value, after.value)


def _is_same_item(before: object, after: object) -> bool:
    if before is after:
        return True
    return isinstance(before, (bool, int, float, str, torch.Size)) and type(before) is type(after) and before == after


def _can_be_written(recorder: Recorder, value: object, type: Type) -> bool:
    if isinstance(value, torch.Tensor):
        return type == TENSOR or (isinstance(type, OptionalType) and type.element == TENSOR)
    if not recorder.is_traced_number(value):
        return False
    return type == (FLOAT if isinstance(value, float) else INT)


def _report(recorder: Recorder, module: torch.nn.Module, name: str, after: _Held | None) -> None:
    kind = type(module).__name__
    if after is None:
        recorder.report.add(Baked.STATE, f"the attribute '{name}' of {kind}", "deleted", UNKNOWN_RANGE)
        recorder.warn_of(f"the code deletes the attribute '{name}' of {kind}, and the trace does not")
    elif recorder.report.add(
        Baked.STATE, f"what the code puts into the attribute '{name}' of {kind}", _describe(after.value), UNKNOWN_RANGE
    ):
        recorder.warn_of(
            f"the code changes the attribute '{name}' of {kind} (it is {_describe(after.value)} now), and the trace "
            "does not: keep tensors that change in buffers, which the trace replaces as the code does"
        )


def _describe(value: object) -> str:
    """Return a short description of a value."""
    if isinstance(value, torch.Tensor):
        return f"a tensor {description(value)}"
    text = repr(plain(value)) if isinstance(value, (bool, int, float, str, type(None))) else ""
    return text if text and len(text) <= 40 else f"a value of class '{type(value).__name__}'"


# -------------------------------------------------------------------------------------------------------------- keeping


@contextmanager
def state_kept(*modules: torch.nn.Module | None) -> Iterator[None]:
    """Restore PyTorch's random number generators, and the attributes of ``modules`` and their submodules, after the
    ``with`` block. The contents of tensors, lists, dicts, sets and deques are restored too."""
    parts = {id(part): part for module in modules if module is not None for part in module.modules()}
    kept = [(part, dict(vars(part)), _tables(part)) for part in parts.values()]
    tensors = {id(tensor): tensor for part in parts.values() for tensor in _tensors_of(part)}
    saved = [(tensor, tensor.detach().clone()) for tensor in tensors.values()]
    with torch.random.fork_rng():
        try:
            yield
        finally:
            for part, own, tables in kept:
                vars(part).clear()
                vars(part).update(own)
                for table, items in tables:
                    _refill(table, items)
            for tensor, value in saved:
                if not torch.equal(tensor, value):
                    with torch.no_grad():
                        tensor.copy_(value)


def _tables(part: torch.nn.Module) -> list[tuple[Any, Any]]:
    """Return the lists, dicts and the like of a module, each with a copy."""
    return [(value, value.copy()) for value in vars(part).values() if type(value) in _CONTAINERS]


def _refill(table: Any, items: Any) -> None:
    if len(table) == len(items) and all(map(_is_same_item, _items(table) or (), _items(items) or ())):
        return
    table.clear()
    if isinstance(table, (list, deque)):
        table.extend(items)
    else:
        table.update(items)


def _tensors_of(part: torch.nn.Module) -> list[torch.Tensor]:
    held = (*part._parameters.values(), *part._buffers.values(), *vars(part).values())
    return [item for item in held if isinstance(item, torch.Tensor)]
