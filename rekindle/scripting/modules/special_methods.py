"""Special methods that a module's class defines in place of those of PyTorch: ``__call__``, ``__iter__``, ``__len__``.

A call of a submodule runs the ``__call__`` of its class. Calls from Python run ``forward``, and containers list their
items, without calling such methods: a module whose call or iteration would have to call one is rejected.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import warnings
from collections.abc import Callable
from types import FunctionType
from typing import Final

from rekindle.errors import UNKNOWN_RANGE, Cause, NotScriptableError, SourceRange
from rekindle.scripting.modules.class_members import find_member

_FORWARD: Final = ("super().__call__", "self.forward")
"""The expressions by which a ``__call__`` runs ``forward``."""


def own_method(cls: type, name: str) -> object | None:
    """Return the special method ``name`` that ``cls``, or a base outside of PyTorch, defines; None if it has PyTorch's,
    or none."""
    found = find_member(cls, name)
    return None if found is None or str(getattr(found, "__module__", "")).partition(".")[0] == "torch" else found


def does_more_than_forward(cls: type) -> bool:
    """Return whether the class of a module defines a ``__call__`` that does not only forward its arguments."""
    found = own_method(cls, "__call__")
    return found is not None and not (isinstance(found, FunctionType) and _only_forwards(found))


def has_compiled_call(cls: type) -> bool:
    """Return whether calls of modules of this class run its own ``__call__``, and not ``nn.Module``'s.

    A decorated ``__call__`` that returns the result of ``forward``, such as one that checks the arguments, is omitted,
    as in ``torch.jit``: torch_geometric's decorators cannot be compiled.
    """
    return does_more_than_forward(cls) and not _is_omitted(own_method(cls, "__call__"))


def warn_of_omitted_call(cls: type) -> None:
    """Warn that calls of modules of this class omit its ``__call__``, if they do."""
    if does_more_than_forward(cls) and _is_omitted(own_method(cls, "__call__")):
        warnings.warn(
            f"compiled calls of '{cls.__name__}' run 'forward' without the decorated '__call__' of its class, which "
            "checks or completes the arguments",
            stacklevel=2,
        )


def _is_omitted(function: object) -> bool:
    return isinstance(function, FunctionType) and hasattr(function, "__wrapped__") and _returns_forward(function)


def check_call_is_forward(cls: type) -> None:
    """Raise an error if Python, which calls ``forward`` of compiled modules, would not call ``__call__`` of this class.

    Raises:
        NotScriptableError: the class defines a ``__call__`` that does not only forward its arguments.
    """
    if not has_compiled_call(cls):
        warn_of_omitted_call(cls)
    else:
        raise NotScriptableError(
            f"the module '{cls.__name__}' defines '__call__', and calls of a compiled module run 'forward' only",
            UNKNOWN_RANGE,
            hint="do in forward what __call__ does, or compile a module that calls this one",
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


def _only_forwards(function: FunctionType) -> bool:
    """Return whether the only statement of a ``__call__`` passes its parameters unchanged to ``super().__call__`` or
    ``self.forward``, without defaults. Classes define it so that type checkers know the type of a call."""
    tree = _tree_of(function)
    if tree is None or tree.decorator_list:
        return False
    body = [each for each in tree.body if not _is_text(each)]
    parameters = tree.args
    positional = [*parameters.posonlyargs, *parameters.args][1:]
    names = [each.arg for each in positional]
    given = [*names, *([f"*{parameters.vararg.arg}"] if parameters.vararg else [])]
    given += [f"{each.arg}={each.arg}" for each in parameters.kwonlyargs]
    given += [f"**{parameters.kwarg.arg}"] if parameters.kwarg else []
    forwarded = {f"return {callee}({', '.join(given)})" for callee in _FORWARD}
    defaults = [*parameters.defaults, *filter(None, parameters.kw_defaults)]
    return len(body) == 1 and ast.unparse(body[0]) in forwarded and not defaults


def _returns_forward(function: FunctionType) -> bool:
    """Return whether each ``return`` of the function that is wrapped returns the result of ``super().__call__`` or
    ``self.forward``."""
    tree = _tree_of(inspect.unwrap(function))
    if tree is None:
        return False
    returned = [each.value for each in ast.walk(tree) if isinstance(each, ast.Return)]
    callees = [ast.unparse(each.func) if isinstance(each, ast.Call) else "" for each in returned]
    return bool(callees) and set(callees) <= set(_FORWARD)


def _tree_of(function: Callable[..., object]) -> ast.FunctionDef | None:
    """Return the definition of a function; None if its source is unknown."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError, SyntaxError):
        return None
    return tree if isinstance(tree, ast.FunctionDef) else None


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
