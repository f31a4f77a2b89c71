"""Classes whose objects are compiled modules: programs as they were written for PyTorch 1.0.

.. code-block:: python

    class Net(rekindle.ScriptModule):
        __constants__ = ["steps"]

        def __init__(self, steps: int) -> None:
            super().__init__()
            self.steps = steps
            self.linear = torch.nn.Linear(4, 4)

        @rekindle.script_method
        def forward(self, x: Tensor) -> Tensor:
            for _ in range(self.steps):
                x = self.linear(x)
            return x

While ``__init__`` runs, the object is a plain module. When it has ended, the methods that are marked are compiled, and
so are the parts; other methods stay Python's, unless those that are compiled call them. The compiler looks at a class
of the same members that derives from ``nn.Module`` instead.
"""

from __future__ import annotations

import functools
from types import FunctionType
from typing import Any, Final, cast

import torch

from rekindle.errors import NotScriptableError, compiling
from rekindle.program.function import Method
from rekindle.program.modules import module as program_module
from rekindle.program.modules.attribute import Attribute
from rekindle.program.modules.module import ScriptModule as ScriptModule
from rekindle.scripting.callables.modifiers import export
from rekindle.scripting.modules.script_modules import compile_in_place

_PLAIN_CLASS: Final = "_rekindle_plain_class"
"""Where a class keeps the one that the compiler looks at."""
_PYTHONS_OWN: Final = frozenset({"__dict__", "__weakref__", "__init__", _PLAIN_CLASS})


class ScriptMethod:
    """A method of a class of compiled modules that is compiled: what :func:`script_method` makes of a function."""

    def __init__(self, function: FunctionType) -> None:
        self.function = export(function)
        functools.update_wrapper(cast("Any", self), function)

    def __get__(self, module: ScriptModule | None, owner: type | None = None) -> Any:
        """Return the compiled method of a module.

        Raises:
            RuntimeError: the ``__init__`` of the module still runs.
        """
        if module is None:
            return self
        name = self.function.__name__
        record = module.script_type.methods.get(name) if module._is_compiled else None
        if record is None:
            raise RuntimeError(f"the method '{name}' is compiled when __init__ ends, and cannot be called before")
        return Method(module, record)


def script_method(fn: Any) -> Any:
    """Mark a method of a class that derives from :class:`rekindle.ScriptModule` to be compiled.

    Raises:
        NotScriptableError: it is no function written in Python.
    """
    if not isinstance(fn, FunctionType):
        raise NotScriptableError(
            f"script_method marks functions, but got {fn!r}", hint="write it above the def of a method"
        )
    return ScriptMethod(fn)


def _plain_class(cls: type) -> type:
    """Return the class of the same members as ``cls`` whose objects are plain modules."""
    if not issubclass(cls, ScriptModule):
        return cls
    if cls.__module__.partition(".")[0] == "rekindle":
        return torch.nn.Module
    found = vars(cls).get(_PLAIN_CLASS)
    if found is None:
        bases = tuple(dict.fromkeys(map(_plain_class, cls.__bases__)))
        members = {name: value for name, value in vars(cls).items() if name not in _PYTHONS_OWN}
        if isinstance(members.get("forward"), FunctionType):
            del members["forward"]  # it is not marked, and stays Python's
        for name, value in members.items():
            if isinstance(value, ScriptMethod):
                members[name] = value.function
        found = type(cls.__name__, bases, members | {"__qualname__": cls.__qualname__})
        setattr(cls, _PLAIN_CLASS, found)
    assert isinstance(found, type)
    return found


def compile_instance(module: ScriptModule) -> None:
    """Compile an object of a class of compiled modules.

    Raises:
        CompileError: one of its methods or parts cannot be compiled.
    """
    own = module.__dict__
    definitions, declared = own.pop("_rekindle_definitions", ()), own.pop("_rekindle_declared", {})
    cls = _plain_class(type(module))
    if definitions or cls is torch.nn.Module:  # methods of this object alone: others must not share its type
        name, qualified = cls.__name__, cls.__qualname__
        if cls is torch.nn.Module:
            name = qualified = ScriptModule.__name__
        cls = type(name, (cls,), {"__module__": cls.__module__, "__qualname__": qualified})
    source: torch.nn.Module = object.__new__(cls)
    source.__dict__.update({name: dict(value) if name in _TABLES else value for name, value in own.items()})
    source.__dict__.update({name: Attribute(getattr(module, name), type) for name, type in declared.items()})
    with compiling(cls.__name__):
        compile_in_place(module, source, definitions)


_TABLES: Final = ("_parameters", "_buffers", "_modules")

program_module.compile_instance.provide(compile_instance)
