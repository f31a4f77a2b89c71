"""Functions compiled together from a program text, and functions made from graphs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from itertools import count
from types import FrameType
from typing import Any, ClassVar, Final

from rekindle.errors import CascadingError, CompileError, Diagnostics, Source, SourceRange
from rekindle.errors.gc_pause import gc_paused
from rekindle.errors.layer_hooks import LayerHook
from rekindle.frontend.sugared_values.base import ChainResolver, EmptyResolver, Resolver, SugaredValue
from rekindle.frontend.sugared_values.values import FunctionValue
from rekindle.ir.graph import Graph
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.schema import Argument, FunctionSchema
from rekindle.ir.types import ClassType, InterfaceType, Type
from rekindle.program.function import Function
from rekindle.program.sources.classes import (
    ClassNames,
    DefinedType,
    declare_class,
    define_class,
    define_interface,
    python_class,
)
from rekindle.program.sources.definition import define_function
from rekindle.syntax.parser import parse_module, parse_module_gathering
from rekindle.syntax.views import ClassDef, Def, Ident

resolver_of_frame: Final = LayerHook[Callable[[FrameType], Resolver]](
    "rekindle.scripting", lambda frame: EmptyResolver()
)
"""The names that a Python frame sees."""


def caller_resolver(frames_up: int) -> Resolver:
    """Return a resolver of the names visible in the frame ``frames_up`` above the function that calls this."""
    frame = inspect.currentframe()
    for _ in range(frames_up + 1):
        frame = None if frame is None else frame.f_back
    return EmptyResolver() if frame is None else resolver_of_frame.get()(frame)


def parse_definitions(source: str | Source, filename: str | None = None) -> list[Def]:
    """Return the functions that a program text defines.

    Raises:
        ParseError: the text is not a program.
        CompileError: the text has a statement other than the definition of a function.
    """
    text = source if isinstance(source, Source) else Source(source, filename)
    found: list[Def] = []
    for statement in parse_module(text):
        if statement.tree.kind != Def.KIND:
            raise CompileError("only functions can be defined here", statement.range)
        found.append(Def(statement.tree))
    return found


def parse_program(source: str | Source, diagnostics: Diagnostics) -> tuple[list[Def], list[ClassDef], set[str]]:
    """Return the functions and the classes that a program text defines, and the names of those that cannot be parsed.
    Syntax errors and other statements are added to ``diagnostics`` as errors."""
    functions: list[Def] = []
    classes: list[ClassDef] = []
    text = source if isinstance(source, Source) else Source(source)
    statements, lost = parse_module_gathering(text, diagnostics)
    for statement in statements:
        if statement.tree.kind == Def.KIND:
            functions.append(Def(statement.tree))
        elif statement.tree.kind == ClassDef.KIND:
            classes.append(ClassDef(statement.tree))
        else:
            diagnostics.add(CompileError("only functions and classes can be defined here", statement.range))
    return functions, classes, lost


class CompilationUnit:
    '''A set of functions and classes that are compiled from source text and can call each other.

    The functions and classes of the text become attributes of the unit. Classes become Python classes with compiled
    methods. Names that the text does not define are looked up where the unit is created, or :meth:`define` is called.

    Args:
        source: the text of a program; None for an empty unit.

    Raises:
        CompileError: the text cannot be compiled.

    Example:
        >>> unit = rekindle.CompilationUnit("""
        ... def double(x):
        ...     return x * 2
        ...
        ... def quadruple(x):
        ...     return double(double(x))
        ... """)
        >>> unit.quadruple(torch.ones(2))
        tensor([4., 4.])
    '''

    _function_class: ClassVar[type[Function]] = Function
    """The class of its functions."""

    def __init__(self, source: str | None = None) -> None:
        self._functions: dict[str, GraphFunction] = {}
        self._classes: dict[str, DefinedType] = {}
        if source is not None:
            self._define(source, caller_resolver(1))

    def define(self, source: str) -> None:
        """Compile the functions and classes in ``source`` and add them; they may use each other and those defined
        before.

        Raises:
            CompileError: a definition cannot be compiled, or a name is taken; then none of them is added.
        """
        self._define(source, caller_resolver(1))

    @gc_paused()
    def _define(self, source: str, outer: Resolver) -> None:
        diagnostics = Diagnostics()
        functions, classes, lost = parse_program(source, diagnostics)
        resolver = ChainResolver(_LostNames(lost), _UnitResolver(self), ClassNames(self._classes), outer)
        records: list[GraphFunction] = []
        types: list[DefinedType] = []
        defined: list[ClassDef] = []
        before = dict(self._functions), dict(self._classes)
        try:
            for class_definition in classes:
                with diagnostics.recovering():
                    types.append(declare_class(self._free(class_definition.name), class_definition))
                    defined.append(class_definition)
                    self._classes[class_definition.name.name] = types[-1]
            for definition in functions:
                with diagnostics.recovering():
                    records.append(_record(self._free(definition.name), definition, resolver))
                    self._functions[definition.name.name] = records[-1]
            for type, class_definition in zip(types, defined, strict=True):
                if isinstance(type, InterfaceType):
                    with diagnostics.recovering():
                        define_interface(type, class_definition, resolver)
            for type, class_definition in zip(types, defined, strict=True):
                if isinstance(type, ClassType):
                    with diagnostics.recovering():
                        define_class(type, class_definition, resolver)
            for record in records:
                with diagnostics.recovering():
                    record.ensure_defined()
            diagnostics.raise_all()
        except CompileError:
            self._restore(*before)
            raise

    def _free(self, name: Ident) -> str:
        for known, what in ((self._functions, "function"), (self._classes, "class")):
            if name.name in known:
                raise CompileError(f"the {what} '{name.name}' is defined already", name.range)
        return name.name

    def _restore(self, functions: dict[str, GraphFunction], classes: dict[str, DefinedType]) -> None:
        self._functions.clear()
        self._functions.update(functions)
        self._classes.clear()
        self._classes.update(classes)

    def create_function(self, name: str, graph: Graph) -> Function:
        """Add a function made from ``graph``, which is not copied, and return the function. Its parameters are the
        graph's inputs.

        Raises:
            CompileError: a function of this name exists.
        """
        if name in self._functions:
            raise CompileError(f"the function '{name}' is defined already")
        record = GraphFunction(name)
        record.define(graph, schema_of_graph(name.rpartition(".")[2], graph))
        self._functions[name] = record
        return self._function_class(record)

    def find_function(self, name: str) -> Function | None:
        """Return the function ``name``; None if the unit has none."""
        record = self._functions.get(name)
        return None if record is None else self._function_class(record)

    def get_functions(self) -> list[Function]:
        """Return the functions of the unit, in the order in which they were defined."""
        return [self._function_class(record) for record in self._functions.values()]

    def __iter__(self) -> Iterator[Function]:
        return iter(self.get_functions())

    def __getattr__(self, name: str) -> Any:
        found = None if name in ("_functions", "_classes") else self._functions.get(name)
        if found is not None:
            return self._function_class(found)
        owner = None if name in ("_functions", "_classes") else self._classes.get(name)
        if owner is None:
            raise AttributeError(f"there is no function '{name}' in this compilation unit")
        return python_class(owner)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._functions, *self._classes]


def _record(name: str, definition: Def, resolver: Resolver) -> GraphFunction:
    def define(record: GraphFunction) -> None:
        define_function(record, definition, resolver)

    return GraphFunction(name, function_creator=define)


class _LostNames(EmptyResolver):
    """Resolver of the names of definitions that could not be parsed. It raises CascadingError, so that errors at the
    uses of such a name are not reported."""

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def resolve_value(self, name: str, range: SourceRange, graph: Graph) -> SugaredValue | None:
        if name in self.names:
            raise CascadingError(f"'{name}' could not be read", range)
        return None

    def resolve_type(self, name: str, range: SourceRange) -> Type | None:
        if name in self.names:
            raise CascadingError(f"'{name}' could not be read", range)
        return None


class _UnitResolver(EmptyResolver):
    """Resolver of the functions of a compilation unit by name."""

    def __init__(self, unit: CompilationUnit) -> None:
        self.unit = unit

    def resolve_value(self, name: str, range: SourceRange, graph: Graph) -> SugaredValue | None:
        record = self.unit._functions.get(name)
        return None if record is None else FunctionValue(record)


def schema_of_graph(name: str, graph: Graph) -> FunctionSchema:
    """Return the schema of a function that runs ``graph``. Input number ``i`` (from 0) is called ``arg<i>`` if it has
    no name, and ``x_<i>`` if an earlier input has its name ``x``, with another number if that name is taken too."""
    bases = [value.base_name or f"arg{index}" for index, value in enumerate(graph.inputs)]
    names: list[str] = []
    for index, base in enumerate(bases):
        others = (f"{base}_{number}" for number in count(index))
        names.append(base if base not in names else next(each for each in others if each not in (*names, *bases)))
    arguments = tuple(Argument(each, value.type) for each, value in zip(names, graph.inputs, strict=True))
    return FunctionSchema(name, "", arguments, tuple(Argument("", value.type) for value in graph.outputs))
