"""The builtins of the language: casts, operators under Python's names, and special forms, whose calls the emitter
handles by name."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from rekindle.errors import SourceRange, UndefinedNameError, UnsupportedError
from rekindle.frontend.calls.builtin_calls import insert_builtin_call
from rekindle.frontend.calls.iterated_arguments import with_iterated
from rekindle.frontend.containers.set_values import shown
from rekindle.frontend.sugared_values.base import CallSite, Keywords, StaticValue, SugaredValue
from rekindle.frontend.sugared_values.slices import SliceClass
from rekindle.frontend.sugared_values.values import BuiltinFunction, SimpleValue, has_method
from rekindle.ir.graph import Graph, Value
from rekindle.ir.operators.schema_matching import NamedValue
from rekindle.ir.types import (
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    NUMBER,
    STRING,
    ClassType,
    DictType,
    IntType,
    ListType,
    StringType,
    TupleType,
    Type,
)
from rekindle.ops.python.exceptions import exception_class


class SpecialForm(StaticValue):
    """A callable such as ``isinstance``, ``range`` or ``annotate``. The emitter handles its calls by its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def description(self) -> str:
        return f"'{self.name}'"

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        form = _ALTERNATIVES.get(f"{self.name}.{name}")
        return super().attribute(range, graph, name) if form is None else SpecialForm(form)


_ALTERNATIVES: Final = {"chain.from_iterable": "chain_from_iterable", "dict.fromkeys": "fromkeys"}
"""Alternative constructors, with the names of their special forms."""

_MIRRORED: Final = {
    "__eq__": "__eq__",
    "__ne__": "__ne__",
    "__lt__": "__gt__",
    "__gt__": "__lt__",
    "__le__": "__ge__",
    "__ge__": "__le__",
}
"""Methods of comparisons, and their reflected methods, whose names do not begin with ``__r``."""


as_function: Callable[[SugaredValue, Graph], SugaredValue] | None = None
"""Returns the function that a call of a builtin as a value runs, or the builtin itself. It is set by
:mod:`rekindle.frontend.python.builtin_functions`."""


class _Builtin(SugaredValue):
    """A builtin of Python, which is called by its name (:meth:`call`) or as a value (:meth:`call_with`)."""

    def call_with(
        self, range: SourceRange, graph: Graph, args: Sequence[SugaredValue], kwargs: Keywords, targets: int = 1
    ) -> SugaredValue:
        assert as_function is not None, "rekindle.frontend.python.builtin_functions was not imported"
        function = as_function(self, graph)
        if function is self:
            return super().call_with(range, graph, args, kwargs, targets)
        return function.call_with(range, graph, args, kwargs, targets)


class MagicMethod(_Builtin, StaticValue):
    """A function that objects of script classes implement by a method: ``len(x)`` calls ``x.__len__()`` for these, and
    ``base`` for other values."""

    def __init__(self, method: str, base: SugaredValue) -> None:
        self.method = method
        self.base = base

    @property
    def description(self) -> str:
        return self.base.description

    def call(self, call: CallSite) -> SugaredValue:
        if self._is_reflected(call.args):
            method = SimpleValue(call.args[1].materialize(call.graph)).attribute(
                call.range, call.graph, self._reflected
            )
            return method.call(replace(call, args=call.args[:1]))
        if call.args and isinstance(call.args[0].type, ClassType):
            fallback = self._fallback(call.range, call.graph, call.args)
            if fallback is not None:
                return fallback
            method = SimpleValue(call.args[0].materialize(call.graph)).attribute(call.range, call.graph, self.method)
            return method.call(replace(call, args=call.args[1:]))
        return self.base.call(call)

    def _is_reflected(self, args: Sequence[NamedValue]) -> bool:
        """Return whether the method of the right operand is called: the left one does not have the method, and the
        right one has the reflected method. If both are of one class, that is so for comparisons only."""
        if len(args) != 2 or not isinstance(args[1].type, ClassType) or not has_method(args[1].type, self._reflected):
            return False
        left = args[0].type
        if not isinstance(left, ClassType):
            return True
        if left.is_module or has_method(left, self.method) or (self.method == "__ne__" and has_method(left, "__eq__")):
            return False
        return left != args[1].type or self.method in _MIRRORED

    @property
    def _reflected(self) -> str:
        """The method of the right operand that is tried if the left one does not have the method."""
        return _MIRRORED.get(self.method, f"__r{self.method[2:]}")

    def _fallback(self, range: SourceRange, graph: Graph, args: Sequence[NamedValue]) -> SugaredValue | None:
        """Emit what Python does for an object without the method, such as ``not (a == b)`` for ``a != b``. Return None
        if the object has the method, or Python raises."""
        owner = args[0].type
        if not isinstance(owner, ClassType) or owner.is_module or has_method(owner, self.method):
            return None
        if self.method == "__ne__" and has_method(owner, "__eq__"):
            equal = self._other("__eq__").call(CallSite(range, graph, args)).as_value(range, graph)
            return SimpleValue(graph.insert("aten::__not__", [equal], range=range))
        if self.method == "__ne__" and self._other("__eq__")._is_reflected(args):
            equal = self._other("__eq__").call(CallSite(range, graph, args)).as_value(range, graph)
            return SimpleValue(graph.insert("aten::__not__", [equal], range=range))
        if self.method in ("__eq__", "__ne__") and isinstance(args[1].type, ClassType):
            kind = "aten::__is__" if self.method == "__eq__" else "aten::__isnot__"
            values = [item.materialize(graph) for item in args]
            return SimpleValue(graph.insert(kind, values, range=range))
        if self.method == "__str__" and has_method(owner, "__repr__"):
            return self._other("__repr__").call(CallSite(range, graph, args))
        if self.method == "__bool__" and has_method(owner, "__len__"):
            length = self._other("__len__").call(CallSite(range, graph, args)).as_value(range, graph)
            return SimpleValue(graph.insert("aten::ne", [length, 0], range=range))
        return SimpleValue(graph.insert_constant(True, range=range)) if self.method == "__bool__" else None

    def _other(self, method: str) -> MagicMethod:
        return MagicMethod(method, self.base)

    def as_type(self, range: SourceRange) -> Type | None:
        return self.base.as_type(range)


class Cast(BuiltinFunction):
    """A conversion such as ``int(x)``, ``float(x)`` or ``bool(x)``. It emits nothing if the value already has the
    type."""

    def __init__(self, type: Type, kind: str) -> None:
        super().__init__(kind)
        self.type = type

    @property
    def description(self) -> str:
        return f"the type '{self.type.annotation}'"

    def as_type(self, range: SourceRange) -> Type | None:
        return self.type

    def call(self, call: CallSite) -> SugaredValue:
        if not call.args and not call.kwargs:
            empty: dict[Type, object] = {INT: 0, FLOAT: 0.0, BOOL: False, STRING: "", COMPLEX: 0j}
            return SimpleValue(call.graph.insert_constant(empty[self.type], range=call.range))
        if len(call.args) == 1 and not call.kwargs:
            value = call.args[0].materialize(call.graph)
            if value.type.is_subtype_of(self.type):
                return SimpleValue(value)
            if self.type == BOOL and value.type == NUMBER and call.graph.none_checks is not None:
                return SimpleValue(call.graph.none_checks.truth_of_number(value, call.range))
            if self.type == BOOL and isinstance(value.type, IntType) and value.type.python_name:
                return SimpleValue(call.graph.insert_constant(True, range=call.range))  # the number of uint8 is 0
            if self.type == BOOL and isinstance(value.type, TupleType):
                return SimpleValue(call.graph.insert_constant(bool(value.type.elements), range=call.range))
            if self.type == BOOL and isinstance(value.type, (ListType, StringType, DictType)):
                length = SimpleValue(value).length(call.range, call.graph)
                return SimpleValue(
                    call.graph.insert("aten::gt", [length, call.graph.insert_constant(0)], range=call.range)
                )
        return super().call(call)


class StrCast(Cast):
    """``str(x)``"""

    def __init__(self) -> None:
        super().__init__(STRING, "aten::str")


class InertContext(StaticValue):
    """A class of context managers, or an object of one, that has no effect in programs: the body of the ``with``
    statement is compiled as if it were outside."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def description(self) -> str:
        return f"'{self.name}'"

    def call(self, call: CallSite) -> SugaredValue:
        return self


class PrintValue(StaticValue):
    """``print(…)``"""

    description = "'print'"

    def call(self, call: CallSite) -> SugaredValue:
        if call.kwargs:
            raise UnsupportedError(f"print does not take '{call.kwargs[0].name}' here", call.range)
        args = shown("prim::Print", call.args, call.graph, call.range)
        inputs = [item.materialize(call.graph) for item in args]
        call.graph.insert_node(call.graph.create("prim::Print", inputs, outputs=0, range=call.range))
        return none_value(call.range, call.graph)


def none_value(range: SourceRange, graph: Graph) -> SugaredValue:
    return SimpleValue(graph.insert_constant(None, range=range))


class ExceptionClass(StaticValue):
    """An exception class. A call of it creates an exception that can be raised."""

    def __init__(self, name: str) -> None:
        self.name = name
        """The qualified name, by which the interpreter finds the class: ``builtins.ValueError``."""

    @property
    def description(self) -> str:
        return f"the exception class '{self.name}'"

    def call(self, call: CallSite) -> SugaredValue:
        for item in call.kwargs:
            item.materialize(call.graph)  # evaluated only: the exception is made of the positional arguments
        if not call.args:
            message = call.graph.insert_constant("", range=call.range)
        elif len(call.args) == 1:
            message = call.args[0].materialize(call.graph)
        else:
            values = [item.materialize(call.graph) for item in call.args]
            type = TupleType(tuple(value.type for value in values))
            message = call.graph.insert_node(
                call.graph.create("prim::TupleConstruct", values, types=[type], range=call.range)
            ).output
        name = call.graph.insert_constant(self.name, range=call.range)
        return ExceptionInstance(message, name, len(call.args))


class ExceptionInstance(SugaredValue):
    """``ValueError("message")``: the message and the name of the class, as values."""

    description = "an exception"

    def __init__(self, message: Value, class_name: Value, count: int = 1) -> None:
        self.message = message
        self.class_name = class_name
        self.count = count
        """The number of arguments. The message is the argument, the tuple of several, or an empty text for none."""

    @property
    def is_text(self) -> bool:
        """Whether the message suffices to create the exception when it is raised: it has no arguments, or one, a string
        that is not a constant empty one, and for a KeyError is a constant."""
        if self.count == 0:
            return True
        known = self.message.to_python()
        if isinstance(known, str):
            return bool(known)
        found = exception_class(str(self.class_name.to_python()))
        shows_empty = found is not None and issubclass(found, KeyError)  # its text is the repr of its argument
        return self.message.type == STRING and not shows_empty

    def as_value(self, range: SourceRange, graph: Graph) -> Value:
        raise UnsupportedError("an exception can only be raised", range)


class CaughtException(SugaredValue):
    """The variable ``e`` of ``except ValueError as e``. As a value of the graph its type is Any. ``str(e)`` gives the
    same text as in Python."""

    description = "an exception that was caught"

    def __init__(self, value: Value) -> None:
        self.value = value

    def as_value(self, range: SourceRange, graph: Graph) -> Value:
        return self.value

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        if name == "__class__":
            return ClassOfCaught(self.value)
        raise UnsupportedError(
            f"'{name}' of an exception that was caught is not known: its class is any that the handler takes",
            range,
            hint="str(e) is its text, and isinstance(e, …) asks for its class",
        )


class ClassOfCaught(StaticValue):
    """``type(e)`` of a caught exception. It is not a value of the graph, but its name is."""

    description = "the class of an exception that was caught"

    def __init__(self, exception: Value) -> None:
        self.exception = exception

    def as_value(self, range: SourceRange, graph: Graph) -> Value:
        raise UnsupportedError(
            "the class of an exception that was caught cannot be used as a value",
            range,
            hint="ask isinstance(e, …); type(e).__name__ is its name",
        )

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        if name != "__name__":
            raise UndefinedNameError(f"'{name}' of type(…) is not known here; its __name__ is", range)
        node = graph.create("prim::exception_name", [self.exception], types=[STRING], range=range)
        return SimpleValue(graph.insert_node(node).output)


class NewStyleString(SugaredValue):
    """The method ``format`` of the string ``template``, to be called with the values to insert."""

    description = "the method 'format'"

    def __init__(self, template: Value) -> None:
        self.template = template

    def call(self, call: CallSite) -> SugaredValue:
        if call.kwargs:
            raise UnsupportedError(
                "format takes no keyword arguments here", call.range, hint="number the fields instead: '{0}'"
            )
        template = NamedValue(self.template, range=call.range)
        given = shown("aten::format", [template, *call.args], call.graph, call.range)
        return SimpleValue(insert_builtin_call(call.range, call.graph, "aten::format", given, []))


class ToList(SugaredValue):
    """``x.tolist`` of a tensor. The emitter handles its call, because the result depends on the expected type."""

    description = "the method 'tolist'"

    def __init__(self, tensor: Value) -> None:
        self.tensor = tensor


class PythonBuiltin(_Builtin, BuiltinFunction):
    """A builtin function of Python that is one operator. A string over which the builtin iterates becomes a list of
    characters."""

    def call(self, call: CallSite) -> SugaredValue:
        return super().call(replace(call, args=with_iterated(call.range, call.graph, self.kind, call.args)))


def _operator(kind: str, method: str | None = None) -> SugaredValue:
    builtin = PythonBuiltin(kind)
    return builtin if method is None else MagicMethod(method, builtin)


def _exceptions() -> dict[str, SugaredValue]:
    return {
        name: ExceptionClass(f"builtins.{name}")
        for name, value in vars(builtins).items()
        if isinstance(value, type) and issubclass(value, BaseException)
    }


_FORMS: Final = (
    *(
        "range",
        "zip",
        "enumerate",
        "isinstance",
        "getattr",
        "hasattr",
        "callable",
        "setattr",
        "list",
        "dict",
        "tuple",
        "reversed",
        "set",
        "frozenset",
        "type",
        "next",
    ),
    *(
        "annotate",
        "uninitialized",
        "unchecked_cast",
        "super",
        "map",
        "filter",
        "$has_length",
        "$positional",
        "$without",
    ),
)

GLOBALS: Final[dict[str, SugaredValue]] = {
    **_exceptions(),
    **{name: SpecialForm(name) for name in _FORMS},
    "print": PrintValue(),
    "int": MagicMethod("__int__", Cast(INT, "aten::Int")),
    "float": MagicMethod("__float__", Cast(FLOAT, "aten::Float")),
    "complex": MagicMethod("__complex__", Cast(COMPLEX, "aten::Complex")),
    "bool": MagicMethod("__bool__", Cast(BOOL, "aten::Bool")),
    "str": MagicMethod("__str__", StrCast()),
    "len": _operator("aten::len", "__len__"),
    "hash": _operator("aten::hash", "__hash__"),
    "abs": _operator("prim::abs", "__abs__"),
    "round": _operator("aten::round", "__round__"),
    "hex": _operator("aten::hex", "__hex__"),
    "oct": _operator("aten::oct", "__oct__"),
    "bin": _operator("aten::bin"),
    "ord": _operator("aten::ord"),
    "chr": _operator("aten::chr"),
    "pow": _operator("aten::pow"),
    "divmod": _operator("aten::divmod"),
    "min": _operator("prim::min"),
    "max": _operator("prim::max"),
    "sum": _operator("aten::sum"),
    "all": _operator("aten::all"),
    "any": _operator("aten::any"),
    "sorted": _operator("aten::sorted"),
    "id": _operator("prim::id"),
    "rangelist": _operator("prim::rangelist"),
    "slice": SliceClass(),
}
"""Sugared values of Python's builtin names."""

FORK: Final = SpecialForm("fork")
"""``fork``, which is not a builtin name: programs refer to it as a function of ``torch``."""

AWAITABLE: Final = SpecialForm("awaitable")
"""``awaitable``, which is like ``fork``, except that the call runs at the first wait."""

ANNOTATE: Final = GLOBALS["annotate"]
ISINSTANCE: Final = GLOBALS["isinstance"]
