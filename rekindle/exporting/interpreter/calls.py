"""Calls of the exported function, with the hooks of its module and with converted arguments."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import SymInt

from rekindle.errors import ExportProblem
from rekindle.exporting.interpreter.values import with_items
from rekindle.ir.graph_function import GraphFunction
from rekindle.program.calling import has_late_hooks
from rekindle.program.modules.module import ScriptModule

Runner = Callable[[GraphFunction, Sequence[Any]], Any]
"""Function that runs a function on values, and returns its result."""


@dataclass(slots=True, frozen=True)
class Hooks:
    """The hooks that run before and after ``forward`` when Python calls a module, and the reasons why some of them
    prevent an export."""

    pre: tuple[GraphFunction, ...] = ()
    post: tuple[GraphFunction, ...] = ()
    problems: tuple[ExportProblem, ...] = ()


def hooks_of(module: ScriptModule) -> Hooks:
    """Return the compiled hooks of a module. If it or a submodule has hooks that were registered later, the result has
    a problem for each such module."""
    type = module.script_type
    compiled = len(type.pre_hooks) + len(type.hooks)
    problems = problems_of_parts(module)
    if len(module._forward_pre_hooks) + len(module._forward_hooks) > compiled:
        problem = ExportProblem(
            "the module has hooks that were registered after it was compiled, and an exported program calls no Python",
            hint="register them before, so that they are compiled too, or export module.forward, which leaves them out",
            in_draft="these hooks do not run",
        )
        problems.append(problem)
    return Hooks(tuple(type.pre_hooks), tuple(type.hooks), tuple(problems))


def problems_of_parts(owner: ScriptModule) -> list[ExportProblem]:
    """Return a problem for each submodule with hooks that were registered after compilation. The calls of ``owner``
    raise as long as there is one."""
    return [
        ExportProblem(
            f"the part '{path}' has hooks that were registered after it was compiled, and an exported program calls no "
            "Python",
            hint="register them before, so that they are compiled too, or remove them: handle.remove()",
            in_draft="these hooks do not run",
        )
        for path, part in owner.named_modules()
        if part is not owner and has_late_hooks(part)
    ]


@dataclass(slots=True, frozen=True)
class EntryCall:
    """The function that is exported, or a method of ``owner`` with its hooks."""

    owner: ScriptModule | None
    record: GraphFunction
    hooks: Hooks = Hooks()

    @property
    def records(self) -> list[GraphFunction]:
        """All functions that a call runs: pre-hooks, the function, hooks."""
        return [*self.hooks.pre, self.record, *self.hooks.post]

    @property
    def argument_names(self) -> list[str]:
        """Names of the caller's arguments."""
        return [argument.name for argument in self.record.schema.arguments[0 if self.owner is None else 1 :]]

    def bound(self, root: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """Return the converted arguments of the function in order, with defaults; ``root``, the symbolic module, is
        the first of a method. Missing arguments are not checked."""
        schema = self.record.schema
        given = list(args) if self.owner is None else [root, *args]
        for argument in schema.arguments[len(given) :]:
            given.append(kwargs.get(argument.name, argument.default))
        return [_as_argument(value, argument.type) for value, argument in zip(given, schema.arguments, strict=True)]

    def result(
        self, run: Runner, root: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], arguments: list[Any]
    ) -> Any:
        """Run the function with ``arguments``, and the hooks, which get ``args``; return the result. If a pre-hook
        replaces ``args``, the arguments are bound again, with ``kwargs``."""
        for hook in self.hooks.pre:
            given = run(hook, [root, args])
            if given is not None:
                args = given if isinstance(given, tuple) else (given,)
                arguments = self.bound(root, args, kwargs)
        result = run(self.record, arguments)
        for hook in self.hooks.post:
            changed = run(hook, [root, args, result])
            result = result if changed is None else changed
        return result


def _as_argument(value: Any, type: Any) -> Any:
    """Convert an argument to what the program receives: a number to the declared kind, also within tuples, lists and
    dicts, and a list or tuple to a new list where a list is declared. Other values are returned unchanged."""
    if type.kind == "OptionalType":
        return None if value is None else _as_argument(value, type.element)
    if isinstance(value, (bool, int, float)):
        return _as_number(value, [each.kind for each in type.contained] if type.kind == "UnionType" else [type.kind])
    match type.kind:
        case "FloatType" if isinstance(value, SymInt):
            return torch.sym_float(value)
        case "ListType" if isinstance(value, (list, tuple)):
            return [_as_argument(item, type.element) for item in value]
        case "TupleType" if isinstance(value, (list, tuple)):
            items = [_as_argument(item, element) for item, element in zip(value, type.contained, strict=True)]
            return with_items(value, items) if isinstance(value, tuple) else tuple(items)
        case "DictType" if isinstance(value, dict):
            made = copy.copy(value)
            made.clear()
            made.update((_as_argument(key, type.key), _as_argument(item, type.value)) for key, item in value.items())
            return made
    return value


def _as_number(value: bool | int | float, kinds: Sequence[str]) -> Any:
    """Convert a number to the first of the declared ``kinds``, in the order int, float, complex, that can represent
    numbers of its kind; return it unchanged if its own kind is declared, or none can."""
    own = {bool: "BoolType", int: "IntType", float: "FloatType"}.get(type(value))
    if own in kinds:
        return value
    if "IntType" in kinds and isinstance(value, int):
        return int(value)
    if "FloatType" in kinds:
        return float(value)
    return complex(value) if "ComplexType" in kinds else value
