"""Name resolution of a compiled function: names that it does not assign are looked up in its closure and globals."""

from __future__ import annotations
import __future__

import ast
import importlib
import types
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol, get_args

from rekindle.errors import SourceRange, UndefinedNameError, UnsupportedError
from rekindle.frontend.sugared_values.base import SugaredValue
from rekindle.ir.graph import Graph
from rekindle.ir.types import Type
from rekindle.ops.tensor.torchbind_objects import class_in_namespace
from rekindle.scripting.annotations import annotations_of, find_type
from rekindle.syntax.views import LocalClass, LocalImport

_MISSING: Final = object()


class NameObserver(Protocol):
    """Observer of the names that a function looks up while it is compiled."""

    def name_is(self, name: str, value: Any) -> None:
        """Record that a name of the function refers to ``value``, or is undefined if that is :data:`ABSENT`."""

    def attribute_is(self, owner: Any, name: str, value: Any) -> None:
        """Record that the attribute ``name`` of ``owner`` is ``value``, or does not exist if that is :data:`ABSENT`."""

    def uses(self, value: Any) -> None:
        """Record that the object ``value`` is converted to a sugared value."""

    def refuse(self, reason: str) -> None:
        """Record that the function depends on something that cannot be observed, and why."""


ABSENT: Final = _MISSING
"""The result of looking up a name or an attribute that does not exist."""

SugaredObject = Callable[[Any, SourceRange, Graph, "PythonResolver", "str | None"], SugaredValue]

sugared_object: SugaredObject | None = None
"""Hook: return the sugared value of a Python object. It is set by :mod:`rekindle.scripting.python_values`.

It closes a recursion: a name resolves to an object, the object may be a function, and to compile the function is to
resolve the names in it.
"""


class PythonResolver:
    """Looks names up in the given scopes, the innermost first.

    Python's builtins are not resolved here, but by the emitter.
    """

    def __init__(self, *scopes: Mapping[str, Any], forms: Mapping[str, SugaredValue] | None = None) -> None:
        self.local_classes: dict[str, Any] = {}
        """Classes that the function defines, as far as it has been compiled."""
        self._made: dict[int, Any] = {}
        self.qualname = ""
        self.scopes = scopes
        self.forms = forms or {}
        """Names bound to sugared values in this scope: ``super`` within a method."""
        self.observer: NameObserver | None = None

    @classmethod
    def of_function(
        cls,
        function: types.FunctionType,
        *,
        forms: Mapping[str, SugaredValue] | None = None,
        names: Mapping[str, Any] | None = None,
    ) -> PythonResolver:
        """Return a resolver of the names that the code of ``function`` sees, in this order: closure variables, globals,
        classes in its annotations, ``names``, and the class that contains it. ``forms`` take precedence."""
        known = (classes_in_annotations(function), names or {}, _owner_of(function))
        scopes = (closure_of(function), function.__globals__, *known)
        found = cls(*scopes, forms=forms)
        found.qualname = function.__qualname__
        return found

    def local_class(self, statement: LocalClass) -> Any:
        """Return the class that ``statement`` defines within the function. Python executes the definition once, on the
        first call; later lookups of the name find the class.

        Raises:
            UnsupportedError: the definition raises, since it depends on a variable of the running function, or
                otherwise.
        """
        if self.observer is not None:
            self.observer.refuse(f"the class '{statement.name}' within it")
        known = self._made.get(statement.line)
        if known is not None:
            return known
        names: dict[str, Any] = {}
        for scope in reversed(self.scopes):
            names.update(scope)
        indent = statement.text[: len(statement.text) - len(statement.text.lstrip())]
        text = f"def _():\n{statement.text}\n{indent}return {statement.name}\n"
        tree = ast.increment_lineno(ast.parse(text), statement.line - 2)
        future = names.get("annotations") is __future__.annotations
        flags = __future__.annotations.compiler_flag if future else 0
        try:
            code = compile(tree, statement.range.source.filename or "<unknown>", "exec", flags, True)
            exec(code, names)  # noqa: S102 - what the function would run, from its own source
            made = names["_"]()
        except Exception as error:
            raise UnsupportedError(
                f"the class '{statement.name}' cannot be made while the function is compiled: {error}", statement.range
            ) from error
        if isinstance(made, type):
            made.__qualname__ = f"{self.qualname}.<locals>.{statement.name}"
        self._made[statement.line] = made
        if not self.local_classes:
            self.scopes = (self.local_classes, *self.scopes)
        self.local_classes[statement.name] = made
        return made

    def find(self, name: str) -> Any:
        """Return the Python object called ``name``; :data:`ABSENT` if there is none."""
        found = self._find(name)
        if self.observer is not None:
            self.observer.name_is(name, found)
        return found

    def _find(self, name: str) -> Any:
        for scope in self.scopes:
            if name in scope:
                return scope[name]
        return __debug__ if name == "__debug__" else _MISSING

    def knows(self, name: str) -> bool:
        """Return whether ``name`` is bound in this scope."""
        return self.find(name) is not _MISSING

    def sugared(self, obj: Any, range: SourceRange, graph: Graph, name: str | None = None) -> SugaredValue:
        """Return the sugared value of the Python object ``obj``, found under ``name``."""
        assert sugared_object is not None, "rekindle.scripting.python_values was not imported"
        if self.observer is not None:
            self.observer.uses(obj)
        return sugared_object(obj, range, graph, self, name)

    def resolve_value(self, name: str, range: SourceRange, graph: Graph) -> SugaredValue | None:
        form = self.forms.get(name)
        if form is not None:
            return form
        found = self.find(name)
        if found is _MISSING:
            return None
        return self.sugared(found, range, graph, name)

    def resolve_type(self, name: str, range: SourceRange) -> Type | None:
        first, *rest = name.split(".")
        found = self.find(first)
        if found is _MISSING:
            return None
        owner: Any = None
        for part in rest:
            library_class = class_in_namespace(found, part)
            if library_class is not None and part == rest[-1]:
                return library_class  # its library need not be there
            owner, found = found, getattr(found, part, _MISSING)
            if self.observer is not None:
                self.observer.attribute_is(owner, part, found)
            if found is _MISSING:
                raise UndefinedNameError(f"'{name}' is not defined: there is no '{part}'", range)
        return class_in_namespace(owner, rest[-1] if rest else "") or find_type(found, range, self)

    def import_object(self, statement: LocalImport, graph: Graph) -> SugaredValue:
        """Return the sugared value of an import within a function, which is executed when the function is compiled.

        Raises:
            UndefinedNameError: the import fails.
        """
        if self.observer is not None:
            self.observer.refuse("an import within it")
        package = self.find("__package__")
        try:
            found: Any = importlib.import_module(statement.module, package if isinstance(package, str) else None)
            if statement.attribute and not hasattr(found, statement.attribute):
                found = _part_of(found, statement.attribute)
            elif statement.attribute:
                found = getattr(found, statement.attribute)
        except ImportError as error:
            raise UndefinedNameError(f"this import fails: {error}", statement.range) from error
        return self.sugared(found, statement.range, graph, statement.name)

    def define_class(self, statement: LocalClass, graph: Graph) -> SugaredValue:
        """Return the sugared value of a class within a function, which Python creates when the function is compiled.

        Raises:
            UnsupportedError: Python cannot create the class before the function runs.
        """
        cls = self.local_class(statement)
        return self.sugared(cls, statement.range, graph, statement.name)


_owners: Final[weakref.WeakKeyDictionary[types.FunctionType, weakref.ref[type]]] = weakref.WeakKeyDictionary()


def note_owner(function: types.FunctionType, cls: type) -> None:
    """Record that ``function`` is defined in the body of ``cls``, so that its names resolve to that class. A class that
    is local to a function has no name yet while its decorators run."""
    _owners[function] = weakref.ref(cls)


_neighbors: Final[weakref.WeakKeyDictionary[type, dict[str, weakref.ref[type]]]] = weakref.WeakKeyDictionary()


def note_neighbors(cls: type, names: Mapping[str, Any]) -> None:
    """Record the classes among ``names``, the local variables of the function that defines ``cls``, so that the methods
    of ``cls`` resolve them. Names in a type comment are not closure variables."""
    _neighbors[cls] = {name: weakref.ref(value) for name, value in names.items() if isinstance(value, type)}


def names_beside(cls: type) -> dict[str, type]:
    """Return ``cls`` and the classes that :func:`note_neighbors` recorded for it, by name."""
    beside = {name: found() for name, found in _neighbors.get(cls, {}).items()}
    return {**{name: found for name, found in beside.items() if found is not None}, cls.__name__: cls}


def _owner_of(function: types.FunctionType) -> dict[str, type]:
    held = _owners.get(function)
    cls = None if held is None else held()
    return {} if cls is None else names_beside(cls)


def _part_of(package: Any, name: str) -> Any:
    """Return the module that ``from package import name`` imports, if the package has no such attribute.

    Raises:
        ImportError: there is no such module.
    """
    whole = f"{package.__name__}.{name}"
    try:
        return importlib.import_module(whole)
    except ModuleNotFoundError as error:
        if error.name not in (whole, package.__name__):
            raise
        raise ImportError(f"cannot import name '{name}' from '{package.__name__}'") from error


def closure_of(function: types.FunctionType) -> dict[str, Any]:
    """Return the variables that ``function`` closes over, as they are now. Those not yet assigned are left out."""
    found: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # an empty cell
            continue
    return found


def classes_in_annotations(function: types.FunctionType) -> dict[str, Any]:
    """Return the classes in the function's annotations that are local to a function, by name. Such a class is not in
    the closure if only an annotation uses it."""
    found = (cls for annotation in annotations_of(function).values() for cls in _classes_in(annotation))
    return {cls.__name__: cls for cls in found if "<locals>" in cls.__qualname__}


def _classes_in(annotation: object) -> Iterator[type]:
    """Yield the classes in an annotation, such as ``A`` in ``Optional[A]``."""
    if isinstance(annotation, type):
        yield annotation
    for part in get_args(annotation):
        yield from _classes_in(part)
