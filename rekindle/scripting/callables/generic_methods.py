"""Methods of objects and modules: those whose signatures do not specify all types of their parameters
(:mod:`rekindle.scripting.callables.generic_functions`), and those that are fixed, as in a trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import FunctionType

from rekindle.errors import SchemaError, SourceRange
from rekindle.frontend.calls.generic import GenericFunction
from rekindle.frontend.sugared_values.base import CallSite, Keywords, SugaredValue
from rekindle.frontend.sugared_values.functions import sugared_arguments
from rekindle.frontend.sugared_values.values import MethodValue
from rekindle.ir.graph import Graph, Value
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.schema_matching import NamedValue
from rekindle.scripting.callables.decorators import unwrapped
from rekindle.scripting.callables.generic_functions import call_bound, fits_assumptions, make_generic, needs_call_types


class GenericMethod(MethodValue):
    """A method that may be compiled separately for the argument types of each call. ``made`` has the compiled versions
    by function, and is extended; ``names`` are objects visible to the method in addition to its Python scope."""

    accepts_sugared_args = True

    def __init__(
        self,
        itself: SugaredValue,
        value: Value,
        made: dict[FunctionType, GenericFunction],
        owner: str,
        function: FunctionType,
        find: Callable[[], tuple[GraphFunction, ...]],
        forms: Mapping[str, SugaredValue],
        names: Mapping[str, object] | None = None,
    ) -> None:
        self.itself = itself
        self.object = value
        self.made = made
        self.owner = owner
        self.function = function
        self.find = find
        self.forms = forms
        self.names = names

    @property
    def methods(self) -> tuple[GraphFunction, ...]:  # type: ignore[override]
        return self.find()

    @property
    def description(self) -> str:
        return f"the method '{self.function.__name__}'"

    def call(self, call: CallSite) -> SugaredValue:
        if self.has_to_specialize(call.args, call.kwargs):
            return self._call_generic(call.range, call.graph, *sugared_arguments(call))
        return super().call(call)

    def has_to_specialize(self, args: Sequence[NamedValue], kwargs: Sequence[NamedValue]) -> bool:
        """Return whether a call with these arguments needs a version of its own."""
        return needs_call_types(self.function, args, kwargs, 1)

    def call_with(
        self, range: SourceRange, graph: Graph, args: Sequence[SugaredValue], kwargs: Keywords, targets: int = 1
    ) -> SugaredValue:
        if any(item.is_passed_sugared for item in (*args, *kwargs.values())):
            return self._call_generic(range, graph, args, kwargs)
        return super().call_with(range, graph, args, kwargs, targets)

    def _call_generic(
        self, range: SourceRange, graph: Graph, args: Sequence[SugaredValue], kwargs: Keywords
    ) -> SugaredValue:
        generic = self.made.get(self.function)
        if generic is None:
            name = f"{self.owner}_{self.function.__name__}"
            generic = self.made[self.function] = make_generic(self.function, name, self.forms, self.names)
        return call_bound(generic, self.function, range, graph, [self.itself, *args], kwargs)


class MethodOfObject(GenericMethod):
    """A method of a script class. Calls are compiled separately unless the arguments have the types that are assumed
    for parameters without annotations."""

    def has_to_specialize(self, args: Sequence[NamedValue], kwargs: Sequence[NamedValue]) -> bool:
        return not fits_assumptions(self.function, args, kwargs)


class FixedMethod(MethodValue):
    """A method that is not compiled from its module's class, such as that of a trace. ``function`` is the attribute of
    the class with the same name, or None."""

    def __init__(self, object: Value, method: GraphFunction, function: FunctionType | None) -> None:
        super().__init__(object, method)
        self.function = function

    def call(self, call: CallSite) -> SugaredValue:
        try:
            return super().call(call)
        except SchemaError as error:
            names = ", ".join(f"'{name}'" for name in self._left_out(call))
            if not names:
                raise
            name = self.methods[0].basename
            hint = (
                f"{names} of '{name}' was not traced: what it was in the trace is part of the code. "
                "Leave it out here, trace the module with it as an input, or do not trace the module"
            )
            raise SchemaError(error.message, call.range, hint=hint) from None

    def _left_out(self, call: CallSite) -> list[str]:
        """Return the parameters of the Python function for which ``call`` has arguments but which the compiled method
        does not have."""
        if self.function is None:
            return []
        code = unwrapped(self.function)[1].__code__
        parameters = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
        given = {*parameters[: len(call.args)], *(item.name for item in call.kwargs)}
        taken = {argument.name for argument in self.methods[0].schema.arguments}
        return [name for name in parameters if name in given and name not in taken]
