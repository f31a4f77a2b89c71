"""Name resolution in the text of an archive.

``torch`` and ``ops`` have operators as attributes, ``__torch__`` has types and functions by qualified name, and
``CONSTANTS`` the constants that have no literal. No Python object is visible there.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from rekindle.errors import SourceRange, TypeMismatchError, UndefinedNameError, UnsupportedError
from rekindle.frontend.calls import builtin_calls
from rekindle.frontend.python_printer.names import NamedType
from rekindle.frontend.sugared_values.base import CallSite, EmptyResolver, SugaredValue
from rekindle.frontend.sugared_values.classes import NewObject, ScriptClassValue
from rekindle.frontend.sugared_values.interfaces import InterfaceValue
from rekindle.frontend.sugared_values.special_forms import ANNOTATE, AWAITABLE, FORK, GLOBALS, MagicMethod
from rekindle.frontend.sugared_values.values import BuiltinFunction, FunctionValue, SimpleValue, SugaredTuple
from rekindle.ir.attributes import KEYWORDS
from rekindle.ir.constants import EnumMember
from rekindle.ir.graph import Graph, Value
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.registry import REGISTRY, Operator
from rekindle.ir.operators.schema import FunctionSchema
from rekindle.ir.operators.schema_matching import convert_value
from rekindle.ir.types import (
    ANY_CLASS,
    ANY_ENUM,
    ANY_LIST,
    ANY_TUPLE,
    CAPSULE,
    QSCHEME,
    STORAGE,
    TENSOR,
    ClassType,
    EnumType,
    FunctionType,
    InterfaceType,
    TupleType,
    Type,
)
from rekindle.ops.archive.values import operators_of_archives

TypeFinder = Callable[[str], "NamedType | None"]
"""The type or function of a qualified name; None where there is none."""

_TYPES: Final[dict[str, Type]] = {
    "Storage": STORAGE,
    "Capsule": CAPSULE,
    "QScheme": QSCHEME,
    "AnyClassType": ANY_CLASS,
    "AnyEnumType": ANY_ENUM,
    "list": ANY_LIST,
    "tuple": ANY_TUPLE,
}
"""Names of types that occur only in archives."""

_NUMBERS: Final = {
    "inf": float("inf"),
    "nan": float("nan"),
    "infj": complex(0.0, float("inf")),
    "nanj": complex(0.0, float("nan")),
}


_KINDS: Final = {"format": "archive::format", "percentFormat": "archive::percentFormat"}
"""Operators for names in the source of archives that have TorchScript's semantics. rekindle writes ``ops.aten.format``
for the operator with Python's semantics."""


def no_functions(kind: str) -> Sequence[GraphFunction]:
    """Return no functions: the default for archives whose operators have today's semantics."""
    return ()


def no_schemas(kind: str) -> Sequence[FunctionSchema]:
    """Return no schemas: the default if the schemas of operators that are not installed are unknown."""
    return ()


class ArchiveResolver(EmptyResolver):
    """The resolver of names in archive sources. ``find_type`` returns types and functions by qualified name;
    ``constants`` are those of the archive. ``preferred`` returns upgraders: functions that replace an operator if their
    signatures fit, with its semantics in the release that wrote the archive. ``missing_operator`` returns the known
    schemas of operators whose library is not installed."""

    def __init__(
        self,
        find_type: TypeFinder,
        constants: Sequence[object],
        preferred: Callable[[str], Sequence[GraphFunction]] = no_functions,
        missing_operator: Callable[[str], Sequence[FunctionSchema]] = no_schemas,
    ) -> None:
        self._find_type = find_type
        self._preferred = preferred
        self._missing_operator = missing_operator
        self._roots: dict[str, SugaredValue] = {
            "torch": _Operators(self, "aten", _KINDS),
            "ops": _Libraries(self),
            "CONSTANTS": _Constants(constants),
            "__torch__": _Names(self, "__torch__"),
            "fork": FORK,
            "awaitable": AWAITABLE,
            "str": MagicMethod("__str__", BuiltinFunction("archive::str")),
            "print": BuiltinFunction("archive::Print"),
        }

    def resolve_value(self, name: str, range: SourceRange, graph: Graph) -> SugaredValue | None:
        if name in _NUMBERS:
            return SimpleValue(graph.insert_constant(_NUMBERS[name], range=range))
        return self._roots.get(name) or self._global(name)

    def resolve_type(self, name: str, range: SourceRange) -> Type | None:
        if name.startswith("__torch__."):
            return self._find_type(name)
        return _TYPES.get(name)

    def _global(self, name: str) -> SugaredValue | None:
        """Return a builtin such as ``str`` or ``round`` if its semantics in the archive differ from today's; else
        None."""
        known = GLOBALS.get(name)
        base = known.base if isinstance(known, MagicMethod) else known
        if not isinstance(base, BuiltinFunction) or not self._preferred(base.kind):
            return None
        operator = self.operator(base.kind)
        return MagicMethod(known.method, operator) if isinstance(known, MagicMethod) else operator

    def operator(self, kind: str, in_archives: Sequence[Operator] = ()) -> SugaredValue:
        """Return the sugared value of the operator ``kind`` in this archive; the overloads ``in_archives`` take
        precedence over today's. The calls of an operator whose library is not installed insert nodes that raise when
        they run."""
        if not self.knows(kind):
            namespace = kind.partition("::")[0]
            if namespace not in ("aten", "prim") or self._missing_operator(kind):
                return _MissingOperator(kind, self._missing_operator(kind))
        return BuiltinFunction(kind, preferred=[*self._preferred(kind), *in_archives])

    def knows(self, kind: str) -> bool:
        """Return whether the operator exists in this process, or an upgrader replaces it."""
        return bool(REGISTRY.overloads(kind) or builtin_calls.find_builtin_functions(kind) or self._preferred(kind))

    def named(self, name: str, range: SourceRange) -> SugaredValue:
        """Return the sugared value of the qualified name ``__torch__.a.b``: a type, a function, or a prefix of other
        names."""
        found = self._find_type(name)
        if found is None:
            return _Names(self, name)
        if isinstance(found, FunctionType):
            return FunctionValue(found.function)
        if isinstance(found, ClassType):
            return _Class(self, found)
        if isinstance(found, InterfaceType):
            return InterfaceValue(found)
        return _Enum(found) if isinstance(found, EnumType) else _NamedTuple(found)


class _Operators(SugaredValue):
    """A namespace of operators, ``torch`` or ``ops.prim``. ``renamed`` has the operators whose names in it differ."""

    def __init__(
        self, names: ArchiveResolver, namespace: str, renamed: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.names = names
        self.namespace = namespace
        self.renamed = renamed

    @property
    def description(self) -> str:
        return f"the namespace '{self.namespace}'"

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        if self.namespace == "aten" and name in ("autograd", "jit"):
            return self  # torch.autograd.grad, torch.jit.annotate
        if self.namespace == "aten" and name == "annotate":
            return ANNOTATE
        kind = self.renamed.get(name) or f"{self.namespace}::{name}"
        if kind == "aten::pow" and not self.renamed:
            return _MathPower(kind)
        return self.names.operator(kind, operators_of_archives(kind) if self.renamed else ())


class _MathPower(BuiltinFunction):
    """``ops.aten.pow`` in archives of this package: ``math.pow``, whose errors differ from those of ``**``.
    ``torch.jit`` reads it as ``torch.pow``."""

    def call(self, call: CallSite) -> SugaredValue:
        found = super().call(call)
        found.as_value(call.range, call.graph).node.set_attribute("math", 1)
        return found


class _Libraries(SugaredValue):
    """``ops``: the namespaces of operators."""

    description = "'ops'"

    def __init__(self, names: ArchiveResolver) -> None:
        self.names = names

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        return _Operators(self.names, name)


class _Constants(SugaredValue):
    """``CONSTANTS``: its attributes ``c0``, ``c1`` … are the constants of an archive that have no text form."""

    description = "the table of constants"

    def __init__(self, values: Sequence[object]) -> None:
        self.values = values

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        index = name[1:]
        if name[:1] != "c" or not (index.isascii() and index.isdigit()) or int(index) >= len(self.values):
            raise UndefinedNameError(f"the archive has no constant '{name}'; it has {len(self.values)}", range)
        return SimpleValue(graph.insert_constant(self.values[int(index)], range=range))


class _Names(SugaredValue):
    """A prefix of qualified names that is not itself a name."""

    def __init__(self, names: ArchiveResolver, name: str) -> None:
        self.names = names
        self.name = name

    @property
    def description(self) -> str:
        return f"'{self.name}', which the archive does not define,"

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        return self.names.named(f"{self.name}.{name}", range)


class _Class(ScriptClassValue):
    """A class of an archive. ``C.__new__(C)`` creates an object without attributes. Static methods are functions whose
    names begin with that of the class."""

    def __init__(self, names: ArchiveResolver, type: ClassType) -> None:
        super().__init__(type)
        self.names = names

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        if name == "__new__":
            return NewObject(self.type)
        if name in self.type.methods or name in self.type.constants:
            return super().attribute(range, graph, name)
        return self.names.named(f"{self.type.name}.{name}", range)


class _Enum(SugaredValue):
    """An enum of an archive. Its attributes are its members."""

    def __init__(self, type: EnumType) -> None:
        self.type = type

    @property
    def description(self) -> str:
        return f"the enum '{self.type.name}'"

    def as_type(self, range: SourceRange) -> Type:
        return self.type

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        if name not in self.type.members:
            return super().attribute(range, graph, name)
        member = self.type.members[name]
        value = member if isinstance(member, enum.Enum) else EnumMember(self.type, name)
        return SimpleValue(graph.insert_constant(value, self.type, range))


class _NamedTuple(SugaredValue):
    """A NamedTuple class of an archive. A call with all fields by position constructs a tuple."""

    def __init__(self, type: TupleType) -> None:
        self.type = type

    @property
    def description(self) -> str:
        return f"the NamedTuple '{self.type.name}'"

    def as_type(self, range: SourceRange) -> Type:
        return self.type

    def call(self, call: CallSite) -> SugaredValue:
        wanted = self.type.elements
        if call.kwargs or len(call.args) != len(wanted):
            raise TypeMismatchError(f"{self.description} takes {len(wanted)} values by position", call.range)
        values: list[Value] = []
        for argument, type in zip(call.args, wanted, strict=True):
            value = convert_value(call.graph, argument.materialize(call.graph), type, call.range)
            if not value.type.is_subtype_of(type):
                raise TypeMismatchError(f"expected {type.annotation} here, got {value.type.annotation}", call.range)
            values.append(value)
        node = call.graph.create("prim::TupleConstruct", values, types=[self.type], range=call.range)
        return SimpleValue(call.graph.insert_node(node).output)


class _MissingOperator(SugaredValue):
    """An operator whose library is not installed. The graph contains its calls, and can be inspected and run up to
    the first of them."""

    def __init__(self, kind: str, schemas: Sequence[FunctionSchema]) -> None:
        self.kind = kind
        self.schemas = schemas

    @property
    def description(self) -> str:
        return f"the operator '{self.kind}'"

    def call(self, call: CallSite) -> SugaredValue:
        # A single schema determines the results; else they are Tensors, as many as are unpacked.
        types = (
            [result.type for result in self.schemas[0].returns] if len(self.schemas) == 1 else [TENSOR] * call.targets
        )
        inputs = [argument.materialize(call.graph) for argument in (*call.args, *call.kwargs)]
        node = call.graph.insert_node(call.graph.create(self.kind, inputs, types=types, range=call.range))
        if call.kwargs:
            node.set_attribute(KEYWORDS, [argument.name or "" for argument in call.kwargs])
        if len(node.outputs) == 1:
            return SimpleValue(node.output)
        if not node.outputs:
            return SimpleValue(call.graph.insert_constant(None, range=call.range))
        return SugaredTuple([SimpleValue(output) for output in node.outputs])


class ForkedFunction(SugaredValue):
    """A function without parameters within a function, by which archives express forked calls. A call emits its body
    with ``emit``, and returns its result."""

    def __init__(self, name: str, emit: Callable[[], Value]) -> None:
        self.name = name
        self.emit = emit

    @property
    def description(self) -> str:
        return f"the function '{self.name}'"

    def call(self, call: CallSite) -> SugaredValue:
        if call.args or call.kwargs:
            raise UnsupportedError(f"{self.description} takes no arguments", call.range)
        return SimpleValue(self.emit())
