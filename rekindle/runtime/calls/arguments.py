"""Calls from Python: arguments are checked against a schema and converted, results are returned.

A value that equals one of the declared type is converted to it: an int to a float, a tuple to a list, a dtype to its
number, a string to a device, NumPy's scalars to numbers (:mod:`rekindle.runtime.calls.number_conversion`). A list or a
dict that fits as it is is passed on as itself, so that the caller sees what the program writes to it; one that does not
fit is converted into a new one.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Iterator, Mapping, MutableSet, Sequence
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any
from weakref import ref

import torch

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.errors import ArgumentError
from rekindle.ir.attributes import is_writable
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.schema import Argument, FunctionSchema
from rekindle.ir.types import (
    NONE,
    TENSOR,
    ClassType,
    DictType,
    InterfaceType,
    ListType,
    OptionalType,
    Type,
    mismatch_note,
    without_none,
)
from rekindle.passes.canonicalization.inlining import inline
from rekindle.runtime.calls.conversion import (
    NOT_ASSIGNED,
    NoMatch,
    class_of,
    converter_for,
    differs_in_python,
    takes_conversion,
    to_python as to_python,
)
from rekindle.runtime.calls.number_conversion import (
    DROP_IN_RULES,
    PYTHON_RULES,
    TORCHSCRIPT_RULES,
    Converter,
    NumberRules,
)
from rekindle.runtime.calls.type_checks import exact_class
from rekindle.runtime.interpreter.instructions import copy_constant

_ANNOTATED = (bool, int, float, complex, str, list, tuple, dict)
"""Classes of values for which the author of a function may have forgotten an annotation."""


def bind(schema: FunctionSchema, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sequence[Any]:
    """Return the arguments of a call in the order of the schema, converted to the program's types.

    Raises:
        ArgumentError: the arguments do not fit the schema. The message names the function, the argument, its value and
            the declared type.
    """
    return Binder(schema).bind(args, kwargs)


def binder_of(record: GraphFunction) -> Binder:
    """Return the binder of the arguments of a function, created on the first call."""
    found = record.binder
    if not isinstance(found, Binder):
        schema = record.schema  # compiling the function determines its origin
        by_origin = DROP_IN_RULES if record.takes_tensors_as_numbers else PYTHON_RULES
        rules = TORCHSCRIPT_RULES if record.is_from_archive else by_origin
        writes_to = None if record.is_from_archive else partial(_writes_to, ref(record))
        found = record.binder = Binder(schema, rules, writes_to, record.result_in_python, record.left_out)
    return found


def _writes_to(held: ref[GraphFunction], index: int) -> bool:
    """Return whether the function may write to its argument at ``index``, or to something in it."""
    record = held()
    if record is None:
        return False
    graph = record.graph.copy()
    inline(graph)
    return AliasDb(graph).has_writers(graph.inputs[index])


Runner = Callable[[GraphFunction, Sequence[Any], Mapping[str, Any]], Any]
"""Calls a function: with its record, and the arguments by position and by name."""


class Binder:
    """Argument binding for one schema (see :func:`bind`), and conversion of results. ``bind`` is Python code generated
    for the schema: arguments of exactly the expected class are accepted after one comparison."""

    def __init__(
        self,
        schema: FunctionSchema,
        numbers: NumberRules = PYTHON_RULES,
        writes_to: Callable[[int], bool] | None = None,
        result_in_python: Callable[[Type], Type] | None = None,
        left_out: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.schema = schema
        self._writes_to = writes_to
        """Whether the function may write to an argument, by its index. If so, it takes no converted copy."""
        self._converters = [_converter_of(argument, numbers) for argument in schema.arguments]
        self._left_out = left_out
        """The parameters ``*args`` and ``**kwargs`` that the schema does not have, with their place, by their stars."""
        self._copies_defaults = numbers is TORCHSCRIPT_RULES
        self._result = schema.returns[0].type if len(schema.returns) == 1 else NONE
        if result_in_python is not None:
            self._result = result_in_python(self._result)
        self._gives_as_is = not differs_in_python(self._result)

    @cached_property
    def bind(self) -> Callable[[Sequence[Any], Mapping[str, Any]], Sequence[Any]]:
        """The binding function: it takes positional and keyword arguments, and returns what :func:`bind` does."""
        return self._written("args, kwargs", "", {})

    def runner(self, execute: Callable[[GraphFunction, Sequence[Any]], Any]) -> Runner:
        """Return a function that binds the arguments of a call from Python, runs ``execute`` on them, and converts the
        result."""
        if any(map(_is_written_copy, self.schema.arguments)):
            return self._runner_over_copies(execute)
        if self._gives_as_is:
            return self._written("record, args, kwargs", "execute(record, {})", {"execute": execute})
        return self._written(
            "record, args, kwargs", "result(execute(record, {}))", {"execute": execute, "result": self.result}
        )

    def _runner_over_copies(self, execute: Callable[[GraphFunction, Sequence[Any]], Any]) -> Runner:
        """Return the caller of a function with set or deque arguments. The function gets dicts and lists; its changes
        of these are copied back to the sets and deques."""
        places = [index for index, item in enumerate(self.schema.arguments) if _is_written_copy(item)]
        bind_arranged = self._written("args, kwargs", "", {}, are_arranged=True)

        def run(record: GraphFunction, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
            given = self._arrange(args, kwargs)
            taken = bind_arranged(given, {})
            try:
                return self.result(execute(record, taken))
            finally:
                for index in places:
                    _write_back(given[index], taken[index])

        return run

    def _written(
        self, parameters: str, use: str, names: dict[str, Any], are_arranged: bool = False
    ) -> Callable[..., Any]:
        names = {**names, "arrange": self._arrange, "convert": self._convert, "omitted": self._omitted()}
        text = "\n".join(_binding(self.schema, parameters, use or "{}", names, are_arranged))
        exec(compile(text, "<rekindle arguments>", "exec"), names)  # noqa: S102 (the text is generated here)
        written: Callable[..., Any] = names["bind"]
        return written

    def result(self, value: Any) -> Any:
        """Convert a result to a Python value: NamedTuples become instances of their class."""
        return value if self._gives_as_is else to_python(value, self._result)

    def _convert(self, index: int, value: Any) -> Any:
        try:
            taken = self._converters[index](value)
        except NoMatch as why:
            problem = self._describe(index, value, why)
        else:
            is_plain = self._writes_to is None or taken is value or _is_written_copy(self.schema.arguments[index])
            found = None if is_plain else _copied(value, taken)
            if found is None or self._writes_to is None or not self._writes_to(index):
                return taken
            problem = self._describe_copy(index, value, *found)
        raise ArgumentError(problem)

    def _describe_copy(self, index: int, value: object, container: object, item: object) -> str:
        kind = self.schema.arguments[index].type.annotation
        problem = f"{self._place(index)} takes {kind}, but got {describe(value)}: the function writes to the argument, "
        if isinstance(item, (MutableSet, deque)):
            text = self._text(f"{problem}and would write to copies of the sets and deques within it")
            return f"{text}\nHint: pass {describe(item)} as an argument of its own"
        name = type(container).__qualname__
        text = self._text(f"{problem}and would write to a copy, in which {describe(item)} is converted")
        return f"{text}\nHint: pass a {name} that holds the declared types"

    def _omitted(self) -> dict[int, tuple[Any, ...]]:
        """Return the defaults that follow so many positional arguments, for each number of these that a call may pass:
        none where a default is copied for each call."""
        found: dict[int, tuple[Any, ...]] = {}
        defaults: tuple[Any, ...] = ()
        arguments = self.schema.arguments
        for index in reversed(range(len(arguments))):
            argument = arguments[index]
            if not argument.has_default or (self._copies_defaults and is_writable(argument.default)):
                break
            found[index] = defaults = (argument.default, *defaults)
        return found

    def _arrange(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """Return the arguments in the order of the schema, with defaults for those that are not passed.

        Raises:
            ArgumentError: arguments are missing, unknown, passed twice, or too many.
        """
        arguments = self.schema.arguments
        positional = [argument for argument in arguments if not argument.kwarg_only]
        if len(args) > len(positional):
            hidden = self._hidden
            takes, given = len(positional) - hidden, len(args) - hidden
            problem = f"takes {_count(takes, 'positional argument')}, but {given} {_were(given)} given"
            raise self._error(problem, "*")
        for name in kwargs:
            index = self.schema.argument_index(name)
            if index is None:
                raise self._error(f"has no parameter '{name}'", "**")
            if index < len(args):
                raise self._error(f"got its argument '{name}' twice: by position and by name")
        values = list(args)
        missing: list[Argument] = []
        for argument in arguments[len(args) :]:
            if argument.name in kwargs:
                values.append(kwargs[argument.name])
            elif argument.has_default:
                default = argument.default
                # In Python all calls share it; programs that write to one are refused when they are compiled.
                values.append(copy_constant(default) if self._copies_defaults and is_writable(default) else default)
            else:
                missing.append(argument)
        if missing:
            names = ", ".join(f"'{argument.name}'" for argument in missing)
            raise self._error(f"is missing {_count(len(missing), 'argument')}: {names}")
        return values

    # --------------------------------------------------------------------------------------------------------- errors

    @property
    def _hidden(self) -> int:
        """The number of leading arguments that callers do not pass: the object of a method."""
        first = self.schema.arguments[0] if self.schema.arguments else None
        is_method = first is not None and first.name == "self" and isinstance(first.type, (ClassType, InterfaceType))
        return 1 if is_method else 0

    def _place(self, index: int) -> str:
        argument = self.schema.arguments[index]
        position = f" (position {index + 1 - self._hidden})" if not argument.kwarg_only else ""
        return f"argument '{argument.name}'{position}"

    def _describe(self, index: int, value: object, why: NoMatch) -> str:
        argument = self.schema.arguments[index]
        problem = f"{self._place(index)} takes {argument.type.annotation}, but got {describe(value)}"
        if why.path:
            problem += f", in which {argument.name}{why.path} is {describe(why.value)} instead of {why.type.annotation}"
        found = class_of(why.value)
        if found is not None:
            problem += mismatch_note(found, why.type)
        text = self._text(problem)
        if value is None:
            text += f"\nHint: a parameter that may be None is annotated as Optional[{argument.type.annotation}]"
        elif why.hint is not None:
            text += f"\nHint: {why.hint}"
        elif argument.type == TENSOR and isinstance(value, _ANNOTATED):
            text += "\nHint: a parameter without an annotation takes a Tensor; annotate it to take another type"
        return text

    def _error(self, problem: str, stars: str = "") -> ArgumentError:
        """Return the error of a call. ``stars`` are those of the parameter that would take the argument in Python, if
        there were one."""
        left_out = self._left_out.get(stars)
        hint = f"\nHint: {left_out} is empty in a compiled method: declare a parameter instead" if left_out else ""
        return ArgumentError(self._text(problem) + hint)

    def _text(self, problem: str) -> str:
        return f"{self.schema.name.rsplit('.', 1)[-1]}() {problem}\nSignature: {signature(self.schema)}"


def _converter_of(argument: Argument, numbers: NumberRules) -> Converter:
    """Return the converter of values for ``argument``. One number is converted to a list if the argument is declared to
    broadcast it: ``BroadcastingList2[int]``."""
    whole, wanted, size = converter_for(argument.type, numbers), without_none(argument.type), argument.size
    if size is None or not isinstance(wanted, ListType):
        return whole
    element = converter_for(wanted.element, numbers)

    def convert(value: Any) -> Any:
        return whole(value) if numbers.number(value) is None else [element(value)] * size

    return convert


def _copied(given: object, taken: object) -> tuple[object, object] | None:
    """Return the list, dict, set or deque within ``given`` that was copied by a conversion to ``taken``, and an item
    that was converted; None if there is none."""
    if given is taken:
        return None
    if isinstance(given, (MutableSet, deque)):
        return given, given
    if isinstance(given, dict) and isinstance(taken, dict):
        pairs = [*zip(given, taken, strict=True), *zip(given.values(), taken.values(), strict=True)]
    elif isinstance(given, (list, tuple)) and isinstance(taken, (list, tuple)):
        pairs = list(zip(given, taken, strict=True))
    else:
        return None
    within = next(filter(None, (_copied(one, other) for one, other in pairs)), None)
    if within is not None or isinstance(given, tuple) or isinstance(taken, tuple):
        return within
    return given, next((one for one, other in pairs if one is not other), None)


def _binding(
    schema: FunctionSchema, parameters: str, use: str, names: dict[str, Any], are_arranged: bool
) -> Iterator[str]:
    """Yield the lines of a function that converts the arguments of ``schema`` and returns ``use`` of them; the objects
    that it references are added to ``names``. If ``are_arranged``, the arguments are already in the order of the
    schema."""
    count = len(schema.arguments)
    everything = "".join(f"a{index}, " for index in range(count))
    yield f"def bind({parameters}):"
    if not are_arranged:
        by_name_only = any(argument.kwarg_only for argument in schema.arguments)
        if by_name_only:
            yield " args = arrange(args, kwargs)"
        else:
            yield f" if kwargs or len(args) != {count}:"
            yield "  if kwargs or len(args) not in omitted: args = arrange(args, kwargs)"
            yield "  else: args = (*args, *omitted[len(args)])"
    yield f" ({everything}) = args"
    for index, argument in enumerate(schema.arguments):
        test = _fits_not(f"a{index}", argument.type, names)
        if test:
            yield f" if {test}: a{index} = convert({index}, a{index})"
    yield f" return {use.format(f'({everything})')}"


def _is_written_copy(argument: Argument) -> bool:
    """Return whether the argument is a set or a deque, of which the function has a copy that it may change."""
    type = without_none(argument.type)
    if isinstance(type, ListType):
        return type.is_deque
    return isinstance(type, DictType) and type.python == "set"


def _write_back(given: Any, taken: Any) -> None:
    """Copy the elements of the function's copy of a set or a deque back to the argument."""
    if isinstance(given, deque):
        if len(given) != len(taken) or not all(map(operator.is_, given, taken)):
            given.clear()
            given.extend(taken)
    elif isinstance(given, MutableSet) and given != taken.keys():
        given.clear()
        for item in taken:
            given.add(item)  # a set's |= takes no view of keys, and would make another set


def _fits_not(name: str, type: Type, names: dict[str, Any]) -> str:
    """Return source of a quick test of the variable ``name``, true for each value that may not fit ``type`` as it is
    and so needs the full check; empty if all values fit. The constants that the source uses are added to ``names``."""
    if isinstance(type, OptionalType):
        test = _fits_not(name, type.element, names)
        return f"{name} is not None and ({test})" if test else ""
    exact = exact_class(type)
    if exact is not None:
        names[exact.__name__] = exact
        test = f"type({name}) is not {exact.__name__}"
        return f"{test} and not isinstance({name}, {exact.__name__})" if exact is torch.Tensor else test
    if isinstance(type, ClassType) and type.is_module:
        known = f"class{len(names)}"
        names[known] = type
        return f"getattr({name}, '_rekindle_type', None) is not {known}"
    return "True" if takes_conversion(type) else ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


def signature(schema: FunctionSchema) -> str:
    """Return the schema as Python writes it: ``f(x: Tensor, n: int = 3) -> Tensor``."""
    parts: list[str] = []
    for index, argument in enumerate(schema.arguments):
        if argument.kwarg_only and (index == 0 or not schema.arguments[index - 1].kwarg_only):
            parts.append("*")
        if index == 0 and argument.name == "self" and isinstance(argument.type, (ClassType, InterfaceType)):
            parts.append("self")
            continue
        default = f" = {argument.default!r}" if argument.has_default else ""
        parts.append(f"{argument.name}: {argument.type.annotation}{default}")
    returns = [result.type.annotation for result in schema.returns]
    result = returns[0] if len(returns) == 1 else f"Tuple[{', '.join(returns)}]" if returns else "None"
    return f"{schema.name.rsplit('.', 1)[-1]}({', '.join(parts)}) -> {result}"


def describe(value: object) -> str:
    """Return a description of a value for error messages: its class, and its ``repr`` if that is useful, cut to 60
    characters; for a tensor, its shape and dtype."""
    if value is None:
        return "None"
    if value is NOT_ASSIGNED:
        return "not assigned"
    name = type(value).__qualname__
    name = f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"
    if isinstance(value, torch.Tensor):
        return f"{name} of shape {tuple(value.shape)} and dtype {value.dtype}"
    if isinstance(value, torch.nn.Module):
        return f"the module {type(value).__qualname__}"
    text = repr(value)
    if "\n" in text or " object at 0x" in text:
        return name
    return f"{name}: {text if len(text) <= 60 else text[:57] + '...'}"
