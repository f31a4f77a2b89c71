"""Hooks of modules: functions that receive the arguments of ``forward``, and its result.

If a program calls a submodule, the hooks of the submodule become calls of functions around the call of ``forward``:

.. code-block:: text

    %args : (Tensor, int) = prim::TupleConstruct(%x, %n)
    %seen : (Tensor, int) = prim::CallFunction(%before, %part, %args)
    %x.1 : Tensor, %n.1 : int = prim::TupleUnpack(%seen)
    %y : Tensor = prim::CallMethod[name="forward"](%part, %x.1, %n.1)
    %z : Tensor = prim::CallFunction(%after, %part, %seen, %y)

A hook that returns None changes nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from rekindle.errors import NotScriptableError, SchemaError, SourceRange, TypeMismatchError
from rekindle.frontend.sugared_values.base import CallSite, SugaredValue
from rekindle.frontend.sugared_values.values import FunctionValue, SimpleValue
from rekindle.ir.graph import Graph, Value
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.schema_matching import NamedValue, unpack_tuple
from rekindle.ir.types import NONE, TupleType, Type, unshaped, without_none
from rekindle.program.names import qualified_name, unique_name
from rekindle.scripting.modules.module_types import ConcreteModuleType

Compile = Callable[[ConcreteModuleType, GraphFunction, FunctionType], None]
Forward = Callable[[Sequence[NamedValue]], SugaredValue]


class HookedCall:
    """A call of a module that has hooks, at one source location. Called with the arguments, it emits the calls of the
    hooks."""

    def __init__(
        self, concrete: ConcreteModuleType, module: Value, range: SourceRange, graph: Graph, compile: Compile
    ) -> None:
        self.concrete = concrete
        self.module = module
        self.range = range
        self.graph = graph
        self.compile = compile

    def __call__(self, args: Sequence[NamedValue], forward: Forward) -> SugaredValue:
        """Emit the pre-hooks, the call that ``forward`` emits for the arguments that these return, and the hooks.
        Return the result.

        Raises:
            NotScriptableError: a hook takes keyword arguments, or is not a function.
            SchemaError: the arguments, or those that a pre-hook returns, do not fit ``forward``.
            TypeMismatchError: the parameters or the result of a hook have types other than the call has.
        """
        facts = self.concrete.facts
        if facts.hooks_take_keywords:
            raise NotScriptableError(
                f"a hook of {self._owner} takes keyword arguments (with_kwargs=True) and cannot be compiled",
                self.range,
                hint="register it without with_kwargs, or remove it before compiling",
            )
        values = [item.materialize(self.graph) for item in args]
        packed = self._pack(values)
        changed_by = None
        for hook in facts.pre_hooks:
            found = self._run(hook, f"pre-hook '{_name(hook)}'", {"input": packed})
            if found.type != NONE:
                packed = self._arguments(found, packed)
                changed_by = hook
        if changed_by is not None:
            args = [NamedValue(value, range=self.range) for value in unpack_tuple(self.graph, packed, self.range)]
        try:
            result = forward(args).as_value(self.range, self.graph)
        except SchemaError as why:
            if changed_by is None:
                raise
            message = f"what the pre-hook '{_name(changed_by)}' of {self._owner} returns does not fit:\n{why.message}"
            raise SchemaError(message, self.range, hint=why.hint) from None
        for hook in facts.hooks:
            found = self._run(hook, f"hook '{_name(hook)}'", {"input": packed, "output": result})
            if found.type != NONE:
                result = self._or(found, result)
        return SimpleValue(result)

    @property
    def _owner(self) -> str:
        return f"the module '{self.concrete.name}'"

    def _pack(self, values: Sequence[Value]) -> Value:
        type = TupleType(tuple(unshaped(value.type) for value in values))
        return self.graph.insert_node(
            self.graph.create("prim::TupleConstruct", values, types=[type], range=self.range)
        ).output

    def _arguments(self, found: Value, before: Value) -> Value:
        """Return the result of a pre-hook as a tuple, or ``before`` where it is None at run time. A value that is not a
        tuple becomes a tuple of one."""
        found = self._or(found, before)
        return found if isinstance(found.type, TupleType) else self._pack([found])

    def _run(self, hook: Any, what: str, given: dict[str, Value]) -> Value:
        """Emit a call of a hook with the module and the values in ``given``; return its result.

        Raises:
            CompileError: the hook cannot be compiled, or does not take values of these types.
        """
        record = self._record(hook)
        record.ensure_defined(self.range)
        self._check(record, what, given)
        args = [NamedValue(value, range=self.range) for value in (self.module, *given.values())]
        return FunctionValue(record).call(CallSite(self.range, self.graph, args)).as_value(self.range, self.graph)

    def _record(self, hook: Any) -> GraphFunction:
        """Return the record of the hook, which is compiled on first use, separately for each type of module.

        Raises:
            NotScriptableError: the hook is not a function.
        """
        if not inspect.isfunction(hook):
            raise NotScriptableError(
                f"a hook of {self._owner} is not a function and cannot be compiled",
                self.range,
                hint="register a function, or remove the hook before compiling",
            )
        records = self.concrete.hooks
        if hook not in records:

            def define(record: GraphFunction) -> None:
                self.compile(self.concrete, record, hook)

            records[hook] = GraphFunction(
                unique_name(qualified_name(hook)), function_creator=define, docstring=hook.__doc__
            )
        return records[hook]

    def _check(self, record: GraphFunction, what: str, given: dict[str, Value]) -> None:
        """Check that each parameter of a hook holds the type of its argument, which is not converted.

        Raises:
            TypeMismatchError: a parameter has another type, or their number differs.
        """
        types = [f"{name}: {unshaped(value.type).annotation}" for name, value in given.items()]
        hint = f"declare it as def {record.basename}(self, {', '.join(types)}), or remove it before compiling"
        parameters = record.schema.arguments[1:]
        if len(parameters) != len(given):
            raise TypeMismatchError(
                f"the {what} of {self._owner} takes {_count(len(parameters))} besides the module, "
                f"but is called with {_count(len(given))}",
                self.range,
                hint=hint,
            )
        for parameter, (name, value) in zip(parameters, given.items(), strict=True):
            if unshaped(value.type).is_subtype_of(parameter.type):
                continue
            role = "the arguments of the call" if name == "input" else "the result"
            note = " (it was assumed to be a Tensor because it has no annotation)" if parameter.assumed else ""
            raise TypeMismatchError(
                f"parameter '{parameter.name}' of the {what} of {self._owner} is {parameter.type.annotation}{note}, "
                f"but gets {role}, {unshaped(value.type).annotation}",
                self.range,
                hint=hint,
            )

    def _or(self, found: Value, before: Value) -> Value:
        """Emit the selection of ``found``, or of ``before`` if ``found`` is None; return the result. A ``found`` that
        cannot be None is returned as it is.

        Raises:
            TypeMismatchError: ``found`` may be None, and otherwise has another type than ``before``.
        """
        if not found.type.is_optional:
            return found
        type = without_none(found.type)
        if unshaped(before.type) != type:
            raise TypeMismatchError(
                f"a hook of {self._owner} returns {found.type.annotation}: where it is None, "
                f"{unshaped(before.type).annotation} stays, and a program needs one type for both",
                self.range,
            )
        graph = self.graph
        nothing = graph.insert_constant(None, range=self.range)
        is_none = graph.insert("aten::__is__", [found, nothing], range=self.range)
        node = graph.insert_node(graph.create("prim::If", [is_none], outputs=0, range=self.range))
        node.add_block().add_output(before)
        block = node.add_block()
        with graph.inserting_at_end(block):
            cast = graph.create("prim::unchecked_cast", [found], types=[type], range=self.range)
            block.add_output(graph.insert_node(cast).output)
        return node.add_output(type)


def declare_hooks(concrete: ConcreteModuleType, compile: Compile) -> None:
    """Replace the hooks in the class type of ``concrete`` by those of its modules, as archives store them. Calls from
    Python run the original hooks; these are compiled only for archives, when they are first read."""
    facts, type = concrete.facts, concrete.type
    type.pre_hooks[:] = [_method(concrete, hook, compile, "pre-hook") for hook in facts.pre_hooks]
    type.hooks[:] = []
    for hook in facts.hooks:
        type.hooks.append(_method(concrete, hook, compile, "hook", tuple(type.hooks)))


def _method(
    concrete: ConcreteModuleType, hook: Any, compile: Compile, what: str, before: Sequence[GraphFunction] = ()
) -> GraphFunction:
    """Return a hook as a method, compiled on first use. Its parameters must accept the arguments of ``forward`` as a
    tuple and, unless it is a pre-hook, the result of ``forward`` as the hooks ``before`` it change it. Its compilation
    raises NotScriptableError otherwise."""
    what = f"the {what} '{_name(hook)}' of the module '{concrete.name}'"

    def define(record: GraphFunction) -> None:
        if not inspect.isfunction(hook) or concrete.facts.hooks_take_keywords:
            raise NotScriptableError(
                f"{what} is not a function, or takes keyword arguments, and cannot be compiled",
                hint="register a function without with_kwargs, or remove the hook before compiling",
            )
        compile(concrete, record, hook)
        forward = concrete.type.methods.get("forward")
        if forward is None:
            return
        schema = forward.schema.bound
        result = schema.returns[0].type
        for each in before:
            own = each.schema.returns[0].type
            result = result if own.is_optional else own
        given = [TupleType(tuple(argument.type for argument in schema.arguments)), result]
        taken = [argument.type for argument in record.schema.arguments[1:]]
        fitting = given[: 1 if "pre-hook" in what else 2]
        if len(taken) != len(fitting) or not all(map(Type.is_subtype_of, fitting, taken)):
            raise NotScriptableError(
                f"{what} takes ({', '.join(type.annotation for type in taken)}) besides the module, and would be given "
                f"({', '.join(type.annotation for type in fitting)})",
                hint="annotate its parameters so, or remove it before compiling",
            )

    return GraphFunction(f"{concrete.type.name}.{_name(hook)}", function_creator=define)


def _name(hook: Any) -> str:
    return getattr(hook, "__name__", type(hook).__name__)


def _count(number: int) -> str:
    return f"{number} argument{'' if number == 1 else 's'}"
