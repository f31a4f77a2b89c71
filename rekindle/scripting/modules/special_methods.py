"""Special methods that a module's class defines in place of those of PyTorch: ``__call__``, ``__iter__``, ``__len__``.

A call of a submodule runs the ``__call__`` of its class. Calls from Python run ``forward``, and containers list their
items, without calling such methods: a module whose call or iteration would have to call one is rejected.
"""

from __future__ import annotations

import ast
import inspect
import warnings
from types import FunctionType
from typing import Final

from rekindle.errors import UNKNOWN_RANGE, Cause, NotScriptableError, SourceRange
from rekindle.scripting.modules.class_members import own_method
from rekindle.scripting.modules.forwarding_calls import definition_of
from rekindle.scripting.modules.module_types import ModuleFacts

_FORWARD: Final = ("super().__call__", "self.forward")
"""The expressions by which a ``__call__`` runs ``forward``."""


def has_compiled_call(facts: ModuleFacts) -> bool:
    """Return whether calls of a module run the ``__call__`` of its class, and not ``nn.Module``'s.

    A decorated ``__call__`` that returns the result of ``forward``, such as one that checks the arguments, is omitted,
    as in ``torch.jit``: torch_geometric's decorators cannot be compiled.
    """
    return facts.does_more_in_call and not _is_omitted(own_method(facts.python_class, "__call__"))


def warn_of_omitted_call(facts: ModuleFacts) -> None:
    """Warn that calls of a module omit the ``__call__`` of its class, if they do."""
    if facts.does_more_in_call and not has_compiled_call(facts):
        warnings.warn(
            f"compiled calls of '{facts.python_class.__name__}' run 'forward' without the decorated '__call__' of its "
            "class, which checks or completes the arguments",
            stacklevel=2,
        )


def _is_omitted(function: object) -> bool:
    return isinstance(function, FunctionType) and hasattr(function, "__wrapped__") and _returns_forward(function)


def check_call_is_forward(facts: ModuleFacts) -> None:
    """Raise an error if Python, which calls ``forward`` of compiled modules, would not call ``__call__`` of the class.

    Raises:
        NotScriptableError: the class defines a ``__call__`` that may do more than to forward its arguments.
    """
    if not has_compiled_call(facts):
        warn_of_omitted_call(facts)
    else:
        raise NotScriptableError(
            f"the module '{facts.python_class.__name__}' defines '__call__', and calls of a compiled module run "
            "'forward' only",
            UNKNOWN_RANGE,
            hint="do in forward what __call__ does, or compile a module that calls this one",
            cause=Cause.INVALID_CLASS,
        )


def check_forward_is_method(facts: ModuleFacts) -> None:
    """Raise an error if Python would not call the ``forward`` of the class, but something that was assigned to the
    module and is not a method of it.

    Raises:
        NotScriptableError: the module has such a ``forward``.
    """
    if facts.hides_method("forward"):
        raise NotScriptableError(
            f"'forward' was assigned to the module '{facts.python_class.__name__}', and is not a method of it: calls "
            "of the compiled module would run the 'forward' of the class",
            UNKNOWN_RANGE,
            hint="assign a method, types.MethodType(function, module), or compile a module that calls this one",
            cause=Cause.INVALID_CLASS,
        )


def check_iterates_over_items(cls: type, range: SourceRange) -> None:
    """Raise an error if a loop over a container of this class may iterate over something other than its items.

    Raises:
        NotScriptableError: the class defines an ``__iter__``.
    """
    if own_method(cls, "__iter__") is not None:
        raise NotScriptableError(
            f"the container '{cls.__name__}' defines '__iter__', and compiled code iterates over its items",
            range,
            hint="give the method a name without underscores that returns a list of the items, and iterate over that",
            cause=Cause.INVALID_CLASS,
        )


def _returns_forward(function: FunctionType) -> bool:
    """Return whether each ``return`` of the function that is wrapped returns the result of ``super().__call__`` or
    ``self.forward``."""
    tree = definition_of(inspect.unwrap(function))
    if tree is None:
        return False
    returned = [each.value for each in ast.walk(tree) if isinstance(each, ast.Return)]
    callees = [ast.unparse(each.func) if isinstance(each, ast.Call) else "" for each in returned]
    return bool(callees) and set(callees) <= set(_FORWARD)
