"""Definitions of a module's class that are visible to programs.

A class that derives from :class:`rekindle.ScriptModule` marks its compiled methods
(:mod:`rekindle.scripting.modules.module_classes`). Programs see the marked functions, and no member of ScriptModule.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from types import FunctionType
from typing import Any, cast

from rekindle.program.modules.module import ScriptModule
from rekindle.scripting.callables.modifiers import export


class ScriptMethod:
    """A descriptor of a compiled method. :func:`rekindle.script_method` returns it in place of the function."""

    def __init__(self, function: FunctionType) -> None:
        self.function = export(function)
        self.name = function.__name__
        self.owner: type | None = None
        functools.update_wrapper(cast("Any", self), function)

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner, self.name = owner, name

    def __get__(self, module: ScriptModule | None, owner: type | None = None) -> Any:
        """Return the compiled method of ``module``; for ``super()``, that of the class that defines it. On the class,
        return the descriptor itself.

        Raises:
            RuntimeError: the ``__init__`` of the module still runs.
        """
        if module is None:
            return self
        if not module._is_compiled:
            raise RuntimeError(f"the method '{self.name}' is compiled when __init__ ends, and cannot be called before")
        binding: Any = module._rekindle_binding
        record = binding.record_of(self.name, self.function, self.owner or type(module))
        return module._rekindle_method_class(module, record)

    def __call__(self, module: ScriptModule, /, *args: Any, **kwargs: Any) -> Any:
        """Call the method of a module: ``Net.forward(net, x)``."""
        return self.__get__(module)(*args, **kwargs)


def owners_of(cls: type) -> Iterator[type]:
    """Yield the class and its bases, without the base classes of compiled modules in this package."""
    return (owner for owner in cls.__mro__ if owner.__module__.partition(".")[0] != "rekindle")


def members_of(owner: type) -> Iterator[tuple[str, object]]:
    """Yield the name and the definition of each member in the body of one class; for a marked method, its function."""
    return ((name, _seen(value)) for name, value in vars(owner).items())


def find_member(cls: type, name: str, default: object = None) -> object:
    """Return the definition of a name in the class or the first of its bases that has it; ``default`` if none has. For
    a marked method, return its function."""
    for owner in owners_of(cls):
        if name in vars(owner):
            return _seen(vars(owner)[name])
    return default


def own_method(cls: type, name: str) -> object | None:
    """Return the special method ``name`` that ``cls``, or a base outside of PyTorch, defines; None if it has PyTorch's,
    or none."""
    found = find_member(cls, name)
    return None if found is None or is_of_pytorch(found) else found


def is_of_pytorch(member: object) -> bool:
    """Return whether a module of PyTorch defines a member of a class."""
    return str(getattr(member, "__module__", "")).partition(".")[0] == "torch"


def _seen(value: object) -> object:
    return value.function if isinstance(value, ScriptMethod) else value
