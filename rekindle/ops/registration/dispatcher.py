"""The operators of PyTorch's dispatcher, of every namespace: looked up by kind on first use, never enumerated.

A node calls its operator with its inputs in the order of the schema. The dispatcher takes those after the ``*`` of a
schema by name, and reading arguments costs time, so the operation of a node passes by position what it must, by name
what it must, and leaves out what is constant and equal to its default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final
from weakref import WeakKeyDictionary

import torch
from torch._ops import OpOverload, OpOverloadPacket

from rekindle.ir.graph import Node
from rekindle.ir.operators.lazy_sequence import LazySequence
from rekindle.ir.operators.registry import Invocation, Operation, Operator
from rekindle.ir.operators.schema import Argument, FunctionSchema
from rekindle.ir.text.schema_parser import parse_schema
from rekindle.ir.types import NONE, TENSOR, ClassType, ListType, OptionalType
from rekindle.ops.registration.aliasing import HIDDEN_WRITES, is_composite, may_alias_inputs
from rekindle.ops.registration.fast_paths import (
    ALWAYS_PASSED,
    CHECKED_BY_PYTHON,
    DIRECT,
    IN_PIECES,
    SPREADS,
    most_positional,
    objects_of,
)
from rekindle.ops.registration.traits import traits_of_overload

_PACKAGE_NAMESPACES: Final = ("archive::", "autodiff::", "python::")
"""Namespaces of this package alone."""
_COMPLETE_NAMESPACES: Final = ("aten::", "prim::")
"""Namespaces to which no library adds operators."""


class _DispatcherIndex:
    """Index of the operators of PyTorch's dispatcher by name, such as ``aten::add.Tensor``."""

    def __init__(self) -> None:
        self._kinds: frozenset[str] = frozenset()
        self._names: frozenset[str] = frozenset()

    def knows_kind(self, kind: str) -> bool:
        if kind not in self._kinds and not kind.startswith(_PACKAGE_NAMESPACES):
            if not self._names or not kind.startswith(_COMPLETE_NAMESPACES):
                self._read()  # custom operators may have been defined since
        return kind in self._kinds

    def knows(self, qualified_name: str) -> bool:
        return qualified_name in self._names

    def _read(self) -> None:
        names = frozenset(torch._C._dispatch_get_all_op_names())
        if names != self._names:  # libraries of operators come and go, so that their number says nothing
            self._names = names
            self._kinds = frozenset([name.partition(".")[0] for name in names])


_INDEX: Final = _DispatcherIndex()


def dispatcher_operators(kind: str) -> Sequence[Operator]:
    """Return the dispatcher's operators of a kind, in the order in which ``torch.ops`` tries them. Those of PyTorch
    itself are made when they are first read; those of other libraries now, since these may be removed."""
    if not _INDEX.knows_kind(kind):
        return ()
    namespace, _, name = kind.partition("::")
    packet = getattr(getattr(torch.ops, namespace), name)
    overloads = [
        overload
        for overload in packet.overloads()
        if _INDEX.knows(kind if overload == "default" else f"{kind}.{overload}")
    ]
    if kind.startswith(_COMPLETE_NAMESPACES):
        return LazySequence.mapped(partial(_operator_in, packet), overloads)
    return [_operator_in(packet, overload) for overload in overloads]


def dispatcher_operator(kind: str, overload: str) -> Operator | None:
    """Return one operator of the dispatcher; None if there is none."""
    if not _INDEX.knows_kind(kind) or not _INDEX.knows(f"{kind}.{overload}" if overload else kind):
        return None
    namespace, _, name = kind.partition("::")
    packet = getattr(getattr(torch.ops, namespace), name)
    overload = overload or "default"
    return _operator(getattr(packet, overload)) if overload in packet.overloads() else None


_OPERATORS: Final[WeakKeyDictionary[OpOverload, Operator]] = WeakKeyDictionary()
"""The operators that were made: PyTorch has one object for each while its library exists."""


def _operator_in(packet: OpOverloadPacket, overload: str) -> Operator:
    return _operator(getattr(packet, overload))


def _operator(overload: OpOverload) -> Operator:
    operator = _OPERATORS.get(overload)
    if operator is None:
        operator = _OPERATORS[overload] = _make_operator(overload)
    return operator


def _make_operator(overload: OpOverload) -> Operator:
    schema = parse_schema(str(overload._schema))
    call = _call_of(overload, schema)
    lacks_check = (
        torch.Tag.generated in overload.tags
        and any(map(_is_out, schema.arguments))
        and not schema.name.endswith("_copy")
        and schema.name not in _RECORDED
    )
    if lacks_check:
        call = _without_gradients(call, schema.name)
    direct = DIRECT.get(schema.qualified_name)
    composite = is_composite(schema.qualified_name)
    simple = not any(argument.kwarg_only or argument.has_default for argument in schema.arguments)
    return Operator(
        schema,
        operation=positional_call(call, schema, direct=direct) if simple else None,
        operation_for_node=None if simple else _maker(call, schema, direct),
        invocation_for_node=partial(_invocation, call, schema, direct),
        # What returns nothing and writes to nothing must be there for something else: a check, a log, a message.
        has_side_effects=not schema.returns and not schema.is_mutable,
        is_nondeterministic=torch.Tag.nondeterministic_seeded in overload.tags,
        may_alias_inputs=may_alias_inputs(schema.name, is_composite=composite),
        hidden_writes=HIDDEN_WRITES.get(schema.name, ()),
        takes_any_sequence=not any(isinstance(each.type, ListType) and each.alias for each in schema.arguments),
        traits=traits_of_overload(schema, overload.tags, is_composite=composite),
        is_dispatched=schema.qualified_name not in CHECKED_BY_PYTHON and not lacks_check,
    )


_PLAIN: Final = frozenset({torch.Tensor, torch.nn.Parameter, type(None)})


def _call_of(overload: OpOverload, schema: FunctionSchema) -> Operation:
    """Return what calls an overload: what its own ``__call__`` does, less a Python frame. That takes some 7 µs for an
    argument of a C++ class, such as the packed weights of quantized layers. The dispatcher's boxed call converts it in
    less than one; but it does not look for ``__torch_function__`` of modes and subclasses, so these are looked for
    here."""
    plain: Operation = overload._op
    types = [argument.type for argument in schema.arguments]
    if not any(isinstance(type, ClassType) for type in types) or any(isinstance(type, ListType) for type in types):
        return plain
    name, _, suffix = overload._name.partition(".")
    handle = torch._C._dispatch_find_schema_or_throw(name, suffix)
    boxed: Operation = torch._C._dispatch_call_boxed
    modes: Callable[[], int] = torch._C._len_torch_function_stack
    tensors = [place for place, type in enumerate(types) if type in (TENSOR, OptionalType(TENSOR))]

    def call(*arguments: Any, **named: Any) -> Any:
        if named or modes() or not _PLAIN.issuperset([type(arguments[place]) for place in tensors]):
            return plain(*arguments, **named)
        return boxed(handle, *arguments)

    return call


_RECORDED: Final = frozenset({"aten::slice_scatter"})
"""Kinds besides the copies of views (``diagonal_copy``) whose generated operators Python itself calls: eager records a
gradient where they write to ``out``."""


def _is_out(argument: Argument) -> bool:
    return argument.kwarg_only and argument.alias is not None and argument.alias.is_write


def _without_gradients(call: Operation, name: str) -> Operation:
    """Return ``call``, an operator that writes its result to an argument, with the check that PyTorch leaves out where
    it generates the operator from another one: a call that records a gradient raises a RuntimeError."""

    def checked(*arguments: Any, **named: Any) -> Any:
        if torch.is_grad_enabled():
            for value in (*arguments, *named.values()):
                if isinstance(value, torch.Tensor) and value.requires_grad:
                    raise RuntimeError(
                        f"{name.partition('::')[2]}(): functions with out=... arguments don't support automatic "
                        "differentiation, but one of the arguments requires grad."
                    )
        return call(*arguments, **named)

    return checked


# ---------------------------------------------------------------------------------------------------------- calling one


def _maker(call: Operation, schema: FunctionSchema, direct: Operation | None) -> Callable[[Node], Operation]:
    device_arguments = [index for index, each in enumerate(schema.arguments) if each.name == "device"]

    def make(node: Node) -> Operation:
        wanted = _wanted(schema, node)
        bound: dict[str, object] = {}
        for argument, value, is_wanted in zip(schema.arguments, node.inputs, wanted, strict=True):
            constant = value.to_python(_UNKNOWN)
            if argument.kwarg_only and constant is not _UNKNOWN and is_wanted:
                bound[argument.name] = constant
        operation = positional_call(call, schema, wanted, bound, direct)
        devices = [node.inputs[index].to_python(None) for index in device_arguments]
        is_on_gpu = any(isinstance(device, torch.device) and device.type == "cuda" for device in devices)
        return _initializing_cuda(operation) if is_on_gpu else operation

    return make


def _initializing_cuda(operation: Operation) -> Operation:
    """Return ``operation`` with the initialization of CUDA before it, which Python's functions do: it raises
    AssertionError or RuntimeError where there is no GPU."""

    def initialized(*arguments: Any) -> Any:
        torch.cuda._lazy_init()
        return operation(*arguments)

    return initialized


def _wanted(schema: FunctionSchema, node: Node) -> list[bool]:
    """Return for each argument whether it must be passed: a constant equal to its default need not, except for
    :data:`ALWAYS_PASSED`."""
    return [
        argument.name in ALWAYS_PASSED
        or not (argument.has_default and _is_same(value.to_python(_UNKNOWN), argument.default))
        for argument, value in zip(schema.arguments, node.inputs, strict=True)
    ]


def _invocation(call: Operation, schema: FunctionSchema, direct: Operation | None, node: Node) -> Invocation:
    """Return the shortest call of an operator for one node, for code that is generated for it: :func:`positional_call`
    without arguments that are defaults."""
    count, named = _passed(schema, _wanted(schema, node))
    name = schema.qualified_name
    if name in IN_PIECES and all(use.user.kind == "prim::ListUnpack" for use in node.output.uses):
        direct = IN_PIECES[name]
    by_position = tuple(range(count))
    if direct is None or not _takes(schema, node, [*by_position, *(index for index, _ in named)]):
        return Invocation(call, by_position, tuple((keyword, index) for index, keyword in named))
    objects: dict[int, object] = {}
    tables: dict[int, Mapping[int, object]] = {}
    for index in (*by_position, *(index for index, _ in named)):
        table, number = objects_of(schema.arguments[index]), node.inputs[index].to_python(_UNKNOWN)
        if table is not None and isinstance(number, int):
            objects[index] = table[number]
        elif table is not None:
            tables[index] = table
    device = _default_device(schema)
    if device is not None and all(index != device for index, _ in named):
        named.append((device, "device"))
        objects[device] = _CPU
    by_name = tuple((keyword, index) for index, keyword in named)
    given = tuple(objects.items()), tuple(tables.items())
    return Invocation(direct, by_position, by_name, objects=given[0], tables=given[1], spreads=name in SPREADS)


def _takes(schema: FunctionSchema, node: Node, passed: Sequence[int]) -> bool:
    """Return whether the Python function of an overload accepts the arguments ``passed`` of ``node``."""
    most = most_positional(schema.qualified_name, schema.arguments)
    for index in passed:
        argument, value = schema.arguments[index], node.inputs[index]
        objects, constant = objects_of(argument), value.to_python(_UNKNOWN)
        if index >= most and not argument.kwarg_only:
            return False
        if objects is None and argument.name not in _NEVER_NONE:
            continue
        may_be_none = isinstance(value.type, OptionalType) or value.type == NONE
        if constant is None or (constant is _UNKNOWN and may_be_none):
            return False
        if objects is not None and constant is not _UNKNOWN and constant not in objects:
            return False
    return True


_NEVER_NONE: Final = ("device", "pin_memory")
"""Arguments for which functions of Python take None for something else, or not at all."""
_CPU: Final = torch.device("cpu")


def _default_device(schema: FunctionSchema) -> int | None:
    """Return the index of the device parameter for which a Python function uses the default device
    (``torch.set_default_device``), where the operator uses the CPU; None if it has none."""
    if any(argument.type == TENSOR for argument in schema.arguments):
        return None
    return next((index for index, argument in enumerate(schema.arguments) if argument.name == "device"), None)


_UNKNOWN: Final = object()


def _is_same(constant: object, default: object) -> bool:
    """Return whether a constant is the default, of the same class: 1.0 and True are not 1."""
    return type(constant) is type(default) and constant == default


def positional_call(
    call: Operation,
    schema: FunctionSchema,
    wanted: Sequence[bool] | None = None,
    bound: Mapping[str, object] | None = None,
    direct: Operation | None = None,
) -> Operation:
    """Return ``call``, which takes some arguments by keyword, as a function of all arguments of ``schema`` by position.

    ``wanted`` states for each argument whether the function passes it to ``call``; an argument that is not passed has
    its default. ``bound`` are fixed values of arguments that ``call`` takes by name. ``direct``, if given, is called in
    place of ``call`` if only the first few arguments are passed, and it takes those.
    """
    arguments = schema.arguments
    bound = bound or {}
    count, by_name = _passed(schema, [True] * len(arguments) if wanted is None else wanted)
    named = [(index, name) for index, name in by_name if name not in bound]
    if bound:
        call = partial(call, **bound)
    if named:
        return _call_with_names(call, count, named)
    if direct is not None and not bound and _takes_first(schema, count):
        call = direct
    return call if count == len(arguments) else _call_with_first(call, count)


def _takes_first(schema: FunctionSchema, count: int) -> bool:
    """Return whether the Python function of an overload takes the first ``count`` arguments as the IR represents
    them."""
    arguments = schema.arguments
    if _default_device(schema) is not None or count > most_positional(schema.qualified_name, arguments):
        return False
    return not any(objects_of(argument) for argument in arguments[:count])


def _passed(schema: FunctionSchema, wanted: Sequence[bool]) -> tuple[int, list[tuple[int, str]]]:
    """Return how many arguments go by position, and the indices and names of those that go by name."""
    count = 0
    named: list[tuple[int, str]] = []
    for index, argument in enumerate(schema.arguments):
        if wanted[index] and argument.kwarg_only:
            named.append((index, argument.name))
        elif wanted[index]:
            count = index + 1
    return count, named


def _call_with_first(call: Operation, count: int) -> Operation:
    """Return ``call`` with the first ``count`` arguments only."""
    if count == 0:
        return lambda *_: call()
    if count == 1:
        return lambda a, *_: call(a)
    if count == 2:
        return lambda a, b, *_: call(a, b)
    if count == 3:
        return lambda a, b, c, *_: call(a, b, c)
    return lambda *args: call(*args[:count])


def _call_with_names(call: Operation, count: int, named: Sequence[tuple[int, str]]) -> Operation:
    """Return ``call`` with the first ``count`` arguments by position and the ``named`` by name."""

    def run(*args: Any) -> object:
        return call(*args[:count], **{name: args[index] for index, name in named})

    return run
