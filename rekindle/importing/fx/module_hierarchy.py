"""Module hierarchy of an exported program: names, classes, parameters and buffers, without code."""

from __future__ import annotations

import re
from typing import Any, Final

import torch
from torch import fx, nn
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from rekindle.errors import CaptureError
from rekindle.tracing.recording.recorder import Path

_NO_IDENTIFIER: Final = re.compile(r"\W")


def skeleton_of(program: ExportedProgram) -> nn.Module:
    """Return a module in evaluation mode with the submodules, parameters and buffers of ``program``, without code.

    Raises:
        CaptureError: the program takes an object of a C++ class, or a token.
    """
    classes = _classes(program.graph_module)
    root = _made(classes.get((), "ExportedProgram"))
    tensors = {**program.state_dict, **_constants(program)}
    kept = {spec.target: spec for spec in program.graph_signature.input_specs if spec.target is not None}
    shared: dict[int, nn.Parameter] = {}
    for name, tensor in tensors.items():
        *owner, last = name.split(".")
        module = _module_at(root, tuple(owner), classes)
        if isinstance(tensor, nn.Parameter):
            module.register_parameter(last, shared.setdefault(id(tensor), tensor))
        else:
            spec = kept.get(name)
            persistent = name in program.state_dict and (spec is None or spec.persistent is not False)
            module.register_buffer(last, tensor, persistent=persistent)
    return root.eval()


def _constants(program: ExportedProgram) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}
    for spec in program.graph_signature.input_specs:
        if spec.kind in (InputKind.CUSTOM_OBJ, InputKind.TOKEN):
            raise CaptureError(
                f"the program takes '{spec.target or spec.arg.name}', an object of a class written in C++ or a token"
            )
        if spec.target in program.constants:
            found[spec.target] = program.constants[spec.target]
    return found


def _module_at(root: nn.Module, path: Path, classes: dict[Path, str]) -> nn.Module:
    """Return the module at ``path``; it and its parents are created if they are missing."""
    module = root
    for index, name in enumerate(path):
        if name not in module._modules:
            module.add_module(name, _made(classes.get(path[: index + 1], "Module")))
        found = module._modules[name]
        assert found is not None
        module = found
    return module


def calls_of(node: fx.Node) -> list[tuple[Any, Path, str]]:
    """Return the module calls that contain ``node``, the outermost first: an identifier of the call, the path of the
    module, and the name of its class."""
    stack = node.meta.get("nn_module_stack") or {}
    found = []
    for key, (path, owner) in stack.items():
        name = owner if isinstance(owner, str) else getattr(owner, "__qualname__", str(owner))
        plain = path.removeprefix("L['self']").lstrip(".").partition("@")[0]
        found.append((key, tuple(plain.split(".")) if plain else (), name.rpartition(".")[2]))
    return found


def _classes(module: fx.GraphModule) -> dict[Path, str]:
    """Return the class names of modules, by their paths, as far as nodes record them."""
    return {path: name for node in module.graph.nodes for _, path, name in calls_of(node)}


def add_modules(root: nn.Module, module: fx.GraphModule) -> None:
    """Add the submodules that the graph of ``module`` calls to ``root``, unless it has them: those without parameters
    and buffers."""
    classes = _classes(module)
    for path in classes:
        _module_at(root, path, classes)


def _made(name: str) -> nn.Module:
    """Return a module of a new class with this name, which Python cannot import."""
    plain = _NO_IDENTIFIER.sub("_", name)
    made: nn.Module = type(plain, (nn.Module,), {"__module__": "exported"})()
    return made
