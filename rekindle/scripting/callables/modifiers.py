"""Markers on Python functions that determine how they are compiled.

``torch.jit``'s decorators store a mark in an attribute of the function. The decorators of this package store the same
one, so that both spellings mean the same to either compiler.
"""

from __future__ import annotations

import typing
import warnings
from collections.abc import Callable
from enum import Enum, auto
from types import FunctionType, UnionType
from typing import Any, Final, TypeVar, Union, get_args, get_origin, overload

from rekindle.errors.layer_hooks import LayerHook
from rekindle.program import torch_jit
from rekindle.program.modules.attribute import Attribute as Attribute

F = TypeVar("F", bound=Callable[..., Any])

_ATTRIBUTE = "_torchscript_modifier"


class Modifier(Enum):
    """The modifiers of functions: how a compiled program treats a call of them."""

    DEFAULT = auto()
    """Compile it where compiled code calls it."""
    EXPORT = auto()
    """Compile it even if nothing calls it."""
    IGNORE = auto()
    """Leave calls of it to Python."""
    UNUSED = auto()
    """A call of it raises."""
    COPIED = auto()
    """A method of a container that the compiled module offers to Python too."""


_EXPORT: Final = torch_jit.modifier_text("EXPORT", "export")
_IGNORE: Final = torch_jit.modifier_text("IGNORE", "ignore")
_UNUSED: Final = torch_jit.modifier_text("UNUSED", "unused")
"""Markers that the decorators set: those of ``torch.jit``, if it exists."""

_MODIFIERS: Final = {
    "export": Modifier.EXPORT,
    "ignore": Modifier.IGNORE,
    "unused": Modifier.UNUSED,
    "_drop": Modifier.UNUSED,
    "if": Modifier.COPIED,  # "if this method is not scripted, …"
}
"""Modifiers by the first word of a mark. The rest of a mark is an explanation."""


def modifier_of(function: object) -> Modifier:
    """Return the modifier of a function, of the function of a bound method, or of the getter of a property; ``DEFAULT``
    for other objects and for those without a mark."""
    if type(function) is not FunctionType:
        function = getattr(function, "__func__", function)
        if isinstance(function, property):
            function = function.fget
    try:
        mark = getattr(function, _ATTRIBUTE, None)
    except Exception:  # an object that computes its attributes may refuse in any way
        return Modifier.DEFAULT
    return _MODIFIERS.get(mark.partition(" ")[0], Modifier.DEFAULT) if isinstance(mark, str) else Modifier.DEFAULT


def is_left_to_python(function: object) -> bool:
    """Return whether ``function`` is never compiled: it is marked to be ignored or as unused."""
    return modifier_of(function) in (Modifier.IGNORE, Modifier.UNUSED)


def _mark(function: Any, mark: str) -> None:
    target = function.fget if isinstance(function, property) else function
    setattr(target, _ATTRIBUTE, mark)


def export(fn: F) -> F:
    """Mark a method of a module to be compiled along with ``forward``, even if no compiled code calls it.

    Args:
        fn: the method.

    Returns:
        ``fn``.

    Example:
        >>> class Net(torch.nn.Module):
        ...     def forward(self, x):
        ...         return x + 1
        ...     @rekindle.export
        ...     def twice(self, x):
        ...         return self.forward(self.forward(x))
        >>> rekindle.script(Net()).twice(torch.zeros(1))
        tensor([2.])
    """
    _mark(fn, _EXPORT)
    return fn


@overload
def ignore(drop: F) -> F: ...
@overload
def ignore(drop: bool = ..., **kwargs: Any) -> Callable[[F], F]: ...
def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Mark a function that compiled code calls in Python. ``@ignore(drop=True)`` is :func:`unused`.

    A program that calls such a function runs, but cannot be saved.

    Args:
        drop: a function to mark; or a bool, and the result is a decorator.

    Raises:
        TypeError: there are other arguments.

    Example:
        >>> class Net(torch.nn.Module):
        ...     def forward(self, x):
        ...         return self.log(x) + 1
        ...     @rekindle.ignore
        ...     def log(self, x: torch.Tensor) -> torch.Tensor:
        ...         print("shape", *x.shape)
        ...         return x
        >>> rekindle.script(Net())(torch.zeros(1))
        shape 1
        tensor([1.])
    """
    if callable(drop):
        _mark(drop, _IGNORE)
        return drop
    unknown = set(kwargs) - {"drop_on_export"}
    if unknown or not isinstance(drop, bool):
        raise TypeError("ignore is used as @ignore or as @ignore(drop=True)")
    dropped = drop or bool(kwargs.get("drop_on_export"))
    if kwargs.get("drop_on_export"):
        warnings.warn(
            "ignore(drop_on_export=True) is deprecated, and means @unused: a call raises in the compiled program",
            FutureWarning,
            stacklevel=2,
        )

    def decorate(fn: F) -> F:
        _mark(fn, _UNUSED if dropped else _IGNORE)
        return fn

    return decorate


def unused(fn: F) -> F:
    """Mark a function that compiled code does not reach: a call of it compiles, and raises at run time.

    Args:
        fn: a function or a method.

    Returns:
        ``fn``.

    Example:
        >>> class Net(torch.nn.Module):
        ...     def forward(self, x, debug: bool = False):
        ...         if debug:
        ...             return self.plot(x)
        ...         return x * 2
        ...     @rekindle.unused
        ...     def plot(self, x: torch.Tensor) -> torch.Tensor:
        ...         return open("plot")
        >>> rekindle.script(Net())(torch.ones(1))
        tensor([2.])
    """
    _mark(fn, _UNUSED)
    return fn


def annotate(the_type: object, the_value: Any) -> Any:
    """Return ``the_value``. A compiled program takes it as a value of ``the_type``.

    Args:
        the_type: a type, such as ``List[int]``.
        the_value: a value.

    Example:
        >>> from typing import List
        >>> def squares(n: int):
        ...     found = rekindle.annotate(List[int], [])
        ...     for i in range(n):
        ...         found.append(i * i)
        ...     return found
        >>> rekindle.script(squares)(4)
        [0, 1, 4, 9]
    """
    return the_value


BARE_ALIASES: Final = tuple(type(getattr(typing, name)) for name in ("List", "Tuple"))
"""The classes of the aliases of ``typing`` that are used without type arguments, such as ``List``."""


def isinstance_(obj: Any, target_type: Any) -> bool:
    """Return whether ``obj`` is of ``target_type``, which may have arguments: ``List[int]``, ``Optional[str]``.

    The elements of containers are tested. The public name is ``rekindle.isinstance``.

    Args:
        obj: any value.
        target_type: a class, a type of ``typing``, or a tuple of these.

    Raises:
        TypeError: ``target_type`` is something else, or is a type with arguments other than those of lists, dicts,
            tuples and unions, and ``obj`` is of its class.

    Example:
        >>> from typing import List
        >>> rekindle.isinstance([1, 2], List[int]), rekindle.isinstance([1, "a"], List[int])
        (True, False)
    """
    if isinstance(target_type, tuple):
        return any(isinstance_(obj, one) for one in target_type)
    if target_type is None or target_type is Any:
        return target_type is Any or obj is None
    origin, args = get_origin(target_type), get_args(target_type)
    if origin is None or isinstance(target_type, BARE_ALIASES):
        return isinstance(obj, target_type)
    if origin is Union or origin is UnionType:
        return any(isinstance_(obj, one) for one in args)
    if not isinstance(obj, origin):
        return False
    if origin is list:
        return all(isinstance_(item, args[0]) for item in obj)
    if origin is dict:
        return all(isinstance_(key, args[0]) and isinstance_(item, args[1]) for key, item in obj.items())
    if origin is tuple:
        if len(args) == 2 and args[1] is Ellipsis:
            return all(isinstance_(item, args[0]) for item in obj)
        wanted = () if args == ((),) else args
        return len(obj) == len(wanted) and all(map(isinstance_, obj, wanted))
    raise TypeError(f"isinstance cannot test whether a value is a {target_type}")


def is_scripting() -> bool:
    """Return whether the calling code runs as a compiled program.

    Example:
        >>> def where():
        ...     return "compiled" if rekindle.is_scripting() else "Python"
        >>> where(), rekindle.script(where)()
        ('Python', 'compiled')
    """
    return False


trace_is_recorded: Final = LayerHook[Callable[[], bool]]("rekindle.tracing", lambda: False)
"""Hook: return whether this thread records a trace."""


def is_tracing() -> bool:
    """Return whether this thread records a trace.

    Example:
        >>> rekindle.is_tracing()
        False
        >>> seen = []
        >>> _ = rekindle.trace(lambda x: (seen.append(rekindle.is_tracing()), x + 1)[1], torch.ones(1))
        >>> seen[0]
        True
    """
    return trace_is_recorded.get()()
