"""Access to the classes, functions and marks of ``torch.jit``. They are absent if PyTorch has no TorchScript.

TorchScript is deprecated, and a later PyTorch may come without it. Therefore no other module of the package refers to
``torch.jit`` or ``torch._jit_internal``. What they lack is absent here too: a class that is not there has no instances,
a function is equal to nothing, and no function has overloads. Nothing of TorchScript is called, here or elsewhere.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any, Final

import torch


def _imported(name: str) -> ModuleType:
    """Import a module; return an empty one where PyTorch does not have it."""
    try:
        return import_module(name)
    except ImportError:
        return ModuleType(name)


_JIT: Final = _imported("torch.jit")
_INTERNAL: Final = _imported("torch._jit_internal")


def _found(module: ModuleType, name: str) -> tuple[Any, ...]:
    """Return the object of a name as the only element of a tuple, which is empty if the module lacks the name."""
    return (vars(module)[name],) if name in vars(module) else ()


# ------------------------------------------------------------------------------------------------- known by identity

SCRIPT_MODULE: Final[tuple[type[Any], ...]] = _found(_JIT, "ScriptModule")
SCRIPT_FUNCTION: Final[tuple[type[Any], ...]] = _found(_JIT, "ScriptFunction")
ATTRIBUTE: Final[tuple[type[Any], ...]] = _found(_JIT, "Attribute")
FUTURE: Final[tuple[Any, ...]] = _found(_JIT, "Future")
AWAIT: Final[tuple[Any, ...]] = _found(_INTERNAL, "_Await")
"""Classes, for ``isinstance`` and as keys: none or one each."""

IS_SCRIPTING: Final[tuple[Any, ...]] = _found(_INTERNAL, "is_scripting")
IGNORE_CONTEXT: Final[tuple[Any, ...]] = _found(_INTERNAL, "_IgnoreContextManager")


def functions(name: str) -> tuple[Any, ...]:
    """Return a tuple with the attribute ``name`` of ``torch.jit``, for identity comparison; empty if there is none."""
    return _found(_JIT, name)


# --------------------------------------------------------------------------------------------------------------- marks


def modifier_text(name: str, otherwise: str) -> str:
    """Return the marker that the decorators of ``torch.jit`` set on functions, for the modifier ``name`` such as
    ``EXPORT``; ``otherwise`` if PyTorch lacks it."""
    for modifiers in _found(_INTERNAL, "FunctionModifiers"):
        text = getattr(modifiers, name, otherwise)
        return text if isinstance(text, str) else otherwise
    return otherwise


def overloaded_functions() -> Mapping[str, list[Any]]:
    """Return the declared overloads that were not compiled yet, by the qualified name of the function."""
    for declarations in _found(_INTERNAL, "_overloaded_fns"):
        return declarations  # type: ignore[no-any-return]
    return {}


def overloads_of_method(name: str, class_name: str) -> list[Any]:
    """Return the declarations of overloads of the method ``name``, a qualified name, in the class ``class_name``; empty
    if there are none."""
    for declarations in _found(_INTERNAL, "_overloaded_methods"):
        return declarations.get(name, {}).get(class_name, [])  # type: ignore[no-any-return]
    return []


def is_overload_decorator(value: object) -> bool:
    """Return whether ``value`` is the decorator of declarations of overloads."""
    return any(value is each for each in _found(_INTERNAL, "_overload"))


_DISPATCHING: Final = ("arg_index", "arg_name", "default", "if_false", "if_true")


def boolean_dispatch(function: FunctionType) -> dict[str, Any] | None:
    """Return the description of a function that calls one of two others, selected by an argument; None for other
    functions.

    The description has the variables of the function's closure: ``arg_index``, ``arg_name``, ``default``, ``if_false``
    and ``if_true``. PyTorch's table of such functions is part of TorchScript and may be removed; the functions stay.
    """
    if function.__code__.co_freevars != _DISPATCHING or function.__closure__ is None:
        return None
    return {name: cell.cell_contents for name, cell in zip(_DISPATCHING, function.__closure__, strict=True)}


# ----------------------------------------------------------------------------------------- what is replaced for a while


def module() -> ModuleType:
    """Return ``torch.jit``; if PyTorch has none, the empty module that :func:`provide` would add."""
    return _JIT


def parts() -> Iterator[ModuleType]:
    """Yield the submodules of ``torch.jit`` that also contain its public names."""
    for name in ("_async", "_script", "_serialization", "_trace"):
        part = vars(_JIT).get(name)
        if isinstance(part, ModuleType):
            yield part


def provide() -> None:
    """Add the empty :func:`module` to ``sys.modules`` and as ``torch.jit``, if PyTorch has no ``torch.jit``."""
    if _JIT.__name__ not in sys.modules:
        sys.modules[_JIT.__name__] = _JIT
        torch.jit = _JIT
