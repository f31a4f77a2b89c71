"""Generic functions, compiled for the arguments of each call: parameters without annotations, ``*args`` and
``**kwargs``, functions as arguments.

Such a function is compiled once for each combination of argument types and compile-time arguments. Values of the graph
become parameters of the compiled function. An argument that only the compiler knows, such as a function, is a
compile-time value within it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from rekindle.errors import CompileError, InternalError, SourceRange, TypeMismatchError
from rekindle.frontend.calls.insertion import insert_function_constant
from rekindle.frontend.signatures import TypeOrError
from rekindle.frontend.sugared_values.base import FlattenedValue, Keywords, Resolver, SugaredValue
from rekindle.frontend.sugared_values.keyword_arguments import KeywordArguments
from rekindle.frontend.sugared_values.values import SimpleValue, SugaredTuple
from rekindle.frontend.type_expressions import parse_type_expression
from rekindle.ir.graph import Graph
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.schema_matching import convert_value
from rekindle.ir.types import ANY, NONE, ClassType, Type, UnionBase, differs_in_python, mismatch_note, without_none
from rekindle.syntax.views import Def, Param

FlattenedArguments = Sequence["tuple[str, FlattenedValue]"]


@dataclass(eq=False)
class GenericFunction:
    """A definition that is compiled for the arguments of its calls."""

    name: str
    definition: Def
    resolver: Resolver
    qualified_name: str = ""
    """Its qualified name in programs, if that differs from the name in the call."""
    declared_types: Mapping[str, TypeOrError] = field(default_factory=dict)
    """Types of parameters from annotations that the source alone does not determine."""
    result: TypeOrError | None = None
    is_local: bool = False
    """Whether the function is defined within another function."""
    library_name: str = ""
    """For a function of :mod:`rekindle.frontend.python.library`, its name there."""
    records: dict[Hashable, GraphFunction] = field(default_factory=dict)
    """Compiled functions, by the keys of their arguments."""

    def bind(
        self,
        range: SourceRange,
        graph: Graph,
        args: Sequence[SugaredValue],
        kwargs: Keywords,
        defaults: Mapping[str, SugaredValue],
    ) -> dict[str, SugaredValue]:
        """Return the sugared value of each parameter in a call, by name, converted to its annotation; conversions are
        emitted.

        Raises:
            TypeMismatchError: the arguments do not fit the parameters or their annotations.
            CompileError: an annotation is not a type.
        """
        params = self.definition.params
        bound = bind_arguments(self.name, params, range, args, kwargs, defaults)
        for param in params:
            type = self._annotated(param, bound[param.name.name])
            if type is not None:
                name = param.name.name
                bound[name] = self._fitted(param, bound[name], type, range, graph)
        return bound

    def _annotated(self, param: Param, given: SugaredValue) -> Type | None:
        """Return the declared type of the parameter; None without an annotation. An annotation that is not a type, such
        as ``f: Callable[[int], int]``, is ignored if the argument ``given`` is not a value of the graph, or is None.

        Raises:
            CompileError: the annotation is not a type, and the argument is a value.
        """
        if param.annotation is None:
            return None
        declared = self.declared_types.get(param.name.name)
        try:
            if isinstance(declared, CompileError):
                raise declared
            return declared or parse_type_expression(param.annotation, self.resolver)
        except CompileError:
            if isinstance(given, SimpleValue) and given.value.type != NONE:
                raise
            return None

    def _fitted(self, param: Param, given: SugaredValue, type: Type, range: SourceRange, graph: Graph) -> SugaredValue:
        if param.is_variadic and type == ANY:
            return given  # whatever they are
        if param.takes_positional and isinstance(given, SugaredTuple):
            return SugaredTuple([self._converted(param, item, type, range, graph) for item in given.elements])
        if param.takes_keywords and isinstance(given, KeywordArguments):
            items = given.items.items()
            return KeywordArguments({key: self._converted(param, item, type, range, graph) for key, item in items})
        return self._converted(param, given, type, range, graph)

    def _converted(
        self, param: Param, given: SugaredValue, type: Type, range: SourceRange, graph: Graph
    ) -> SugaredValue:
        value = convert_value(graph, given.as_value(range, graph), type, range)
        if type == ANY and differs_in_python(value.type):
            return given  # the class of the value would be unknown
        if inherits(value.type, type):
            return SimpleValue(value)  # the function is compiled for the derived class
        if isinstance(value.type, UnionBase) and without_none(value.type).is_subtype_of(type):
            return SimpleValue(value)  # it may be None, whatever the annotation says
        if not value.type.is_subtype_of(type):
            raise TypeMismatchError(
                f"'{self.name}' takes {type.annotation} for '{param.name.name}', got {value.type.annotation}"
                + mismatch_note(value.type, type),
                range,
            )
        if type.is_optional and value.type != type:
            value = graph.insert_node(
                graph.create("prim::unchecked_cast", [value], types=[type], range=range)
            ).output  # the function is to see what it declares
        return SimpleValue(value)

    def declared_result(self) -> Type | None:
        """Return the type that the function declares to return; None if it declares none, or is a wrapper that declares
        Any.

        Raises:
            CompileError: the annotation is not a type.
        """
        if isinstance(self.result, CompileError):
            raise self.result
        if self.result is not None or self.definition.return_type is None:
            return self.result
        found = parse_type_expression(self.definition.return_type, self.resolver)
        # A wrapper gives what the function within it gives.
        is_wrapper = any(param.is_variadic for param in self.definition.params)
        return None if found == ANY and is_wrapper else found

    def call_compiled(self, range: SourceRange, graph: Graph, names: Mapping[str, SugaredValue]) -> SugaredValue:
        """Emit a call of the function compiled for ``names``, and return its result. ``names`` has the sugared values
        of the parameters and captured variables. The function is compiled if no earlier call had these types and
        compile-time values.

        Raises:
            CompileError: the function cannot be compiled for them.
        """
        given = [(name, value.flatten(range, graph)) for name, value in names.items()]
        key = tuple((name, parts.key) for name, parts in given)
        record = self.records.get(key)
        if record is None:
            if instantiate_generic is None:
                raise InternalError("rekindle.frontend.calls.monomorphization was not imported")
            record = self.records[key] = instantiate_generic(self, given)
            record.library_name = self.library_name
        record.ensure_defined(range)
        inputs = [value for _, parts in given for value in parts.values]
        callee = insert_function_constant(range, graph, record)
        types = [item.type for item in record.schema.returns]
        return SimpleValue(
            graph.insert_node(graph.create("prim::CallFunction", [callee, *inputs], types=types, range=range)).output
        )


def inherits(type: Type, base: Type) -> bool:
    """Return whether the class ``type`` derives from the class ``base``, and is not ``base`` itself. False if the
    Python class of either is unknown."""
    if not isinstance(type, ClassType) or not isinstance(base, ClassType) or type == base:
        return False
    own, wanted = type.python_class, base.python_class
    return own is not None and wanted is not None and issubclass(own, wanted)


instantiate_generic: Callable[[GenericFunction, FlattenedArguments], GraphFunction] | None = None
"""Hook: return a record that compiles a function for flattened arguments when it is first used. It is set by
:mod:`rekindle.frontend.calls.monomorphization`.

It breaks a cycle of imports: the callee is compiled with the handlers of all expressions, which include calls.
"""


def bind_arguments(
    name: str,
    params: Sequence[Param],
    range: SourceRange,
    args: Sequence[SugaredValue],
    kwargs: Keywords,
    defaults: Mapping[str, SugaredValue],
) -> dict[str, SugaredValue]:
    """Return the sugared value of each parameter of the function ``name`` in a call, by name; that in ``defaults`` if
    there is no argument. ``*args`` is a tuple, ``**kwargs`` keyword arguments.

    Raises:
        TypeMismatchError: an argument is missing, superfluous, unknown or passed twice.
    """
    found: dict[str, SugaredValue] = {}
    positional = [param for param in params if not param.kwarg_only and not param.is_variadic]
    for param, value in zip(positional, args, strict=False):
        found[param.name.name] = value
    rest = list(args[len(positional) :])
    named = dict(kwargs)
    for param in params:
        key = param.name.name
        if param.is_variadic:
            continue
        if key in named:
            if key in found:
                raise TypeMismatchError(f"'{name}' is given '{key}' twice", range)
            found[key] = named.pop(key)
        if key not in found:
            if key not in defaults:
                raise TypeMismatchError(f"'{name}' needs an argument for '{key}'", range)
            found[key] = defaults[key]
    for param in params:
        if param.takes_positional:
            found[param.name.name], rest = SugaredTuple(rest), []
        elif param.takes_keywords:
            found[param.name.name], named = KeywordArguments(named), {}
    if rest:
        noun = "argument" if len(positional) == 1 else "arguments"
        raise TypeMismatchError(f"'{name}' takes {len(positional)} positional {noun}, got {len(args)}", range)
    if named:
        raise TypeMismatchError(f"'{name}' has no parameter '{next(iter(named))}'", range)
    return found
