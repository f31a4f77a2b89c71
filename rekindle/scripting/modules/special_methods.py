"""Special methods that a module's class defines in place of those of PyTorch: ``__call__``, ``__iter__``, ``__len__``.

Calls of modules run ``forward``, and containers list their items, without calling such methods. A program that would
have to call one is rejected.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from types import FunctionType

from rekindle.errors import Cause, NotScriptableError, SourceRange
from rekindle.scripting.modules.class_members import find_member


def own_method(cls: type, name: str) -> object | None:
    """Return the special method ``name`` that ``cls``, or a base outside of PyTorch, defines; None if it has PyTorch's,
    or none."""
    found = find_member(cls, name)
    return None if found is None or str(getattr(found, "__module__", "")).partition(".")[0] == "torch" else found


def check_call_is_forward(cls: type, range: SourceRange) -> None:
    """Raise an error if a call of a module of this class does something other than to run its ``forward``.

    Raises:
        NotScriptableError: the class defines a ``__call__`` that does not only forward its arguments.
    """
    found = own_method(cls, "__call__")
    if found is not None and not (isinstance(found, FunctionType) and _only_forwards(found)):
        raise NotScriptableError(
            f"the module '{cls.__name__}' defines '__call__', and compiled code calls 'forward' only",
            range,
            hint="do in forward what __call__ does",
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
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError, SyntaxError):
        return False
    if not isinstance(tree, ast.FunctionDef) or tree.decorator_list:
        return False
    body = [each for each in tree.body if not _is_text(each)]
    parameters = tree.args
    positional = [*parameters.posonlyargs, *parameters.args][1:]
    names = [each.arg for each in positional]
    given = [*names, *([f"*{parameters.vararg.arg}"] if parameters.vararg else [])]
    given += [f"{each.arg}={each.arg}" for each in parameters.kwonlyargs]
    given += [f"**{parameters.kwarg.arg}"] if parameters.kwarg else []
    forwarded = {f"return {callee}({', '.join(given)})" for callee in ("super().__call__", "self.forward")}
    defaults = [*parameters.defaults, *filter(None, parameters.kw_defaults)]
    return len(body) == 1 and ast.unparse(body[0]) in forwarded and not defaults


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
