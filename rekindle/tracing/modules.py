"""The compiled module into which a trace of a module is lowered: it shares tensors and scripted submodules with the
module, and each other submodule has a type of its own."""

from __future__ import annotations

import torch

from rekindle.errors import TracingError
from rekindle.program.modules.module import ScriptModule
from rekindle.scripting.modules.module_inference import gather_facts
from rekindle.scripting.modules.module_types import ConcreteModuleType
from rekindle.scripting.modules.script_modules import instantiate
from rekindle.tracing.recording.recorder import Path


def module_for_trace(module: torch.nn.Module) -> ScriptModule:
    """Return a compiled module without methods and forward hooks that shares its parameters, buffers and scripted
    submodules with ``module``.

    Raises:
        NotScriptableError: the module, or a submodule of it, was not initialized.
        TracingError: the module, or a submodule of it that is not scripted, has backward hooks.
    """
    for path, part in module.named_modules():
        if (part._backward_hooks or part._backward_pre_hooks) and not isinstance(part, ScriptModule):
            raise TracingError(
                f"the module '{path or type(part).__name__}' has backward hooks, which a trace would not run",
                hint="remove them before tracing; those of the whole module may be registered on the trace",
            )
    types: dict[int, ConcreteModuleType] = {}
    result = instantiate(module, _own_type(module, types))
    own = {id(found.type) for found in types.values()}
    for part in result.modules():
        # What the hooks did is recorded with the rest.
        if isinstance(part, ScriptModule) and id(part.script_type) in own:
            for name in _HOOKS:
                vars(part)[name].clear()
    return result


_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_forward_hooks_with_kwargs", "_forward_pre_hooks_with_kwargs")


def _own_type(module: torch.nn.Module, made: dict[int, ConcreteModuleType]) -> ConcreteModuleType:
    """Return the type of ``module`` in ``made``, created if it is missing. It is not shared with other modules, since
    its methods are those recorded for this one."""
    found = made.get(id(module))
    if found is None:
        facts = gather_facts(module, lambda part: _own_type(part, made), for_trace=True)
        found = made[id(module)] = ConcreteModuleType(facts)
        found.is_compiled = True
    return found


def places_of_modules(module: torch.nn.Module) -> dict[int, list[Path]]:
    """Return the paths of ``module`` and all submodules, by the id of the module; one may have several."""
    found: dict[int, list[Path]] = {}

    def visit(part: torch.nn.Module, path: Path) -> None:
        found.setdefault(id(part), []).append(path)
        for name, child in part._modules.items():
            if child is not None:
                visit(child, (*path, name))

    visit(module, ())
    return found


def places_of_tensors(module: torch.nn.Module) -> dict[int, Path]:
    """Return the first path of each parameter, buffer and C++ object, and of each tensor in another attribute, by its
    id."""
    found: dict[int, Path] = {}
    for prefix, part in module.named_modules():
        path = tuple(prefix.split(".")) if prefix else ()
        for name, tensor in (*part._parameters.items(), *part._buffers.items()):
            if tensor is not None:
                found.setdefault(id(tensor), (*path, name))
        for name, value in vars(part).items():
            if isinstance(value, (torch.Tensor, torch.ScriptObject)):
                found.setdefault(id(value), (*path, name))
    return found
