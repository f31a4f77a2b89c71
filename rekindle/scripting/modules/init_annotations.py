"""Types that ``__init__`` declares for attributes: ``self.items: List[int] = []``, of which Python keeps nothing."""

from __future__ import annotations

import ast
import inspect
import textwrap
import weakref
from collections.abc import Iterator
from types import FunctionType

_found: weakref.WeakKeyDictionary[FunctionType, dict[str, str]] = weakref.WeakKeyDictionary()


def declared_in_init(cls: type) -> dict[str, tuple[str, FunctionType]]:
    """The annotations, as text, of attributes that ``__init__`` of a class or of its bases assigns, each with the
    function in which it stands. A class counts more than its bases."""
    found: dict[str, tuple[str, FunctionType]] = {}
    for owner in reversed(cls.__mro__):
        init = vars(owner).get("__init__")
        if isinstance(init, FunctionType) and not owner.__module__.startswith("torch.nn.modules.module"):
            found.update((name, (text, init)) for name, text in _read(init).items())
    return found


def _read(init: FunctionType) -> dict[str, str]:
    known = _found.get(init)
    if known is None:
        known = _found[init] = dict(_annotations(init))
    return known


def _annotations(init: FunctionType) -> Iterator[tuple[str, str]]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(init)))
    except (OSError, TypeError, SyntaxError):
        return  # without source nothing is declared there
    itself = init.__code__.co_varnames[0] if init.__code__.co_argcount else ""
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute):
            target = node.target.value
            if isinstance(target, ast.Name) and target.id == itself:
                yield node.target.attr, ast.unparse(node.annotation)
