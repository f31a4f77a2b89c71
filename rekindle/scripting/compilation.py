"""Compile a Python function into a record: read its source, the names it uses, its defaults and its annotations."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any

from rekindle.errors import Diagnostics
from rekindle.frontend.emitter import SelfBinding
from rekindle.frontend.functions import Known
from rekindle.frontend.sugared_values.base import SugaredValue
from rekindle.ir.graph_function import GraphFunction
from rekindle.program.sources.definition import define_function
from rekindle.scripting.callables.decorators import check_decorators, unwrapped, within_managers
from rekindle.scripting.callables.forwarding import forwarding
from rekindle.scripting.callables.overloads import Declaration
from rekindle.scripting.callables.untyped_parameters import closed
from rekindle.scripting.resolver import NameObserver, PythonResolver
from rekindle.scripting.signatures import (
    annotated_types,
    declared_types,
    default_arguments,
    fits,
    without_defaults,
)
from rekindle.syntax.python_ast import function_def
from rekindle.syntax.views import Def


def compile_function(
    record: GraphFunction,
    function: types.FunctionType,
    declaration: Declaration = None,
    *,
    self_binding: SelfBinding | None = None,
    forms: Mapping[str, SugaredValue] | None = None,
    names: Mapping[str, Any] | None = None,
    first: SugaredValue | None = None,
    observer: NameObserver | None = None,
) -> None:
    """Compile ``function`` into ``record``, with the signature of ``declaration`` where it is overloaded.

    ``self_binding`` makes it a method, ``forms`` are names that are special forms in it, ``names`` are objects that it
    may refer to although they are not in Python's scope there, such as a local class within its own annotations.
    ``first`` is the fixed sugared value of its first parameter, which is then not a parameter of the record.
    ``observer`` is notified of the names that are looked up.

    Raises:
        CompileError: the function cannot be compiled.
    """
    diagnostics = Diagnostics()
    with diagnostics.reporting():
        _compile(record, function, declaration, self_binding, forms, names, first, observer, diagnostics)


def _compile(
    record: GraphFunction,
    function: types.FunctionType,
    declaration: Declaration,
    self_binding: SelfBinding | None,
    forms: Mapping[str, SugaredValue] | None,
    names: Mapping[str, Any] | None,
    first: SugaredValue | None,
    observer: NameObserver | None,
    diagnostics: Diagnostics,
) -> None:
    check_decorators(function)
    managers, function = unwrapped(function)
    forwarded = forwarding(function)
    if forwarded is not None:
        function, definition, forms = forwarded.function, forwarded.definition(record.basename), forwarded.names(forms)
    else:
        definition = function_def(function, record.basename, diagnostics=diagnostics, unwrap=False)
    if managers:
        definition, forms = within_managers(definition, managers, forms or {})
    if first is not None and definition.params:
        forms = {**(forms or {}), definition.params[0].name.name: first}
        rest = definition.params[1:]
        definition = Def.create(definition.range, definition.name, rest, definition.return_type, definition.body)
    resolver = PythonResolver.of_function(function, forms=forms, names=names)
    resolver.observer = observer
    defaults = default_arguments(function)
    known: dict[str, Known] = {}
    if not isinstance(declaration, types.FunctionType):
        definition, only_none, known = closed(
            definition, function, defaults, resolver, is_method=self_binding is not None
        )
        parameters, result = annotated_types(function, definition, resolver)
        parameters.update({**only_none, **(declaration or {})})
    else:
        declared = function_def(declaration, signature_only=True)
        resolver_there = PythonResolver.of_function(declaration)
        resolver_there.observer = observer
        if observer is not None and declaration.__globals__ is not function.__globals__:
            observer.refuse("an overload that is declared in another module")
        parameters, result = declared_types(declaration, declared, resolver_there)
        defaults = {**defaults, **default_arguments(declaration)}
        unfit = {name for name, value in defaults.items() if not fits(value, parameters.get(name))}
        # What the implementation puts there for one overload may mean nothing to another, which then needs an argument.
        definition = without_defaults(definition, unfit)
        defaults = {name: value for name, value in defaults.items() if name not in unfit}
    define_function(
        record,
        definition,
        resolver,
        self_binding=self_binding,
        defaults=defaults,
        parameter_types=parameters,
        return_type=result,
        known=known,
        diagnostics=diagnostics,
    )
