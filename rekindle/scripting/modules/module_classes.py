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

While ``__init__`` runs, the object is a plain module. When it has ended, the marked methods and the submodules are
compiled. Other methods remain Python functions, unless compiled methods call them.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any, Final

import torch

from rekindle.errors import NotScriptableError, compiling
from rekindle.program.modules import module as program_module
from rekindle.program.modules.attribute import Attribute
from rekindle.program.modules.module import ScriptModule as ScriptModule
from rekindle.scripting.modules.class_members import ScriptMethod
from rekindle.scripting.modules.script_modules import compile_in_place


def script_method(fn: Any) -> Any:
    """Mark a method of a class that derives from :class:`rekindle.ScriptModule` to be compiled.

    Args:
        fn: the method, a function written in Python.

    Raises:
        NotScriptableError: ``fn`` is not a function written in Python.

    Example:
        >>> class Doubled(rekindle.ScriptModule):
        ...     @rekindle.script_method
        ...     def forward(self, x: torch.Tensor):
        ...         return x * 2
        >>> Doubled()(torch.ones(2))
        tensor([2., 2.])
    """
    if not isinstance(fn, FunctionType):
        raise NotScriptableError(
            f"script_method marks functions, but got {fn!r}", hint="write it above the def of a method"
        )
    return ScriptMethod(fn)


def compile_instance(module: ScriptModule) -> None:
    """Compile an object of a class that derives from :class:`rekindle.ScriptModule`, in place, when its ``__init__``
    has ended.

    Raises:
        CompileError: one of its methods or submodules cannot be compiled.
    """
    own, cls = module.__dict__, type(module)
    definitions, declared = own.pop("_rekindle_definitions", ()), own.pop("_rekindle_declared", {})
    source: torch.nn.Module = object.__new__(cls)
    source.__dict__.update({name: dict(value) if name in _TABLES else value for name, value in own.items()})
    source.__dict__.update({name: Attribute(getattr(module, name), type) for name, type in declared.items()})
    with compiling(cls.__name__):
        is_alone = bool(definitions) or cls.__module__.partition(".")[0] == "rekindle"
        compile_in_place(module, source, definitions, is_alone=is_alone)


_TABLES: Final = ("_parameters", "_buffers", "_modules")

program_module.compile_instance.provide(compile_instance)
