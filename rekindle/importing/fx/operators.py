"""Import calls of the dispatcher's operators by their schemas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
from torch import fx
from torch._ops import OpOverload

from rekindle.errors import CaptureError, SchemaError
from rekindle.importing.fx.fx_importer import FxImporter, ImportedValue, name_of, reads
from rekindle.ir.graph import Value
from rekindle.ir.operators.operator_nodes import insert_operator_node
from rekindle.ir.operators.registry import REGISTRY, Operator
from rekindle.ir.operators.schema import Argument, FunctionSchema
from rekindle.ir.operators.schema_matching import (
    MatchedSchema,
    NamedValue,
    SchemaMismatch,
    match_schemas,
    try_match_schema,
)
from rekindle.ir.types import FLOAT, INT, TENSOR, ListType, OptionalType, Type, without_none

aten: Final = torch.ops.aten


def read_operator(
    reader: FxImporter, node: fx.Node, args: Sequence[ImportedValue], kwargs: Mapping[str, ImportedValue]
) -> ImportedValue:
    """Import a call of an operator of the dispatcher; return its imported value: None, a value, a list of values, or a
    tuple of these.

    Raises:
        CaptureError: programs have no such operator, or no overload takes the arguments.
    """
    target = node.target
    assert isinstance(target, OpOverload)
    operator = REGISTRY.find(_qualified_name(target))
    if operator is None:
        raise CaptureError(f"'{name_of(target)}' is not an operator that programs can call", reader.range)
    operator, plan = _planned(reader, operator, args, kwargs, node)
    made = insert_operator_node(reader.graph, operator, plan, reader.range)
    if not plan.schema.returns:
        return None
    if len(made.outputs) == 1:
        return _result(reader, made.output, node.meta.get("val"))
    known = node.meta.get("val")
    parts = known if isinstance(known, (list, tuple)) else [None] * len(made.outputs)
    return tuple(
        None if known is not None and part is None else _result(reader, output, part)
        for output, part in zip(made.outputs, parts, strict=True)
    )


def _qualified_name(target: OpOverload) -> str:
    schema = target._schema
    return f"{schema.name}.{schema.overload_name}" if schema.overload_name else str(schema.name)


def _planned(
    reader: FxImporter,
    operator: Operator,
    args: Sequence[ImportedValue],
    kwargs: Mapping[str, ImportedValue],
    node: fx.Node,
) -> tuple[Operator, MatchedSchema]:
    """Return the overload that a call names, and the matched arguments. If these do not fit because a number is passed
    for a tensor, try the other overloads, and then number arguments converted to tensors.

    Raises:
        CaptureError: no overload takes the arguments.
    """
    positional, keywords = _arguments(reader, operator.schema, args, kwargs)
    try:
        return operator, try_match_schema(operator.schema, positional, keywords)
    except SchemaMismatch as why:
        overloads = REGISTRY.overloads(operator.name)
        reason = str(why)
    if _takes_numbers_for_tensors(operator.schema, positional):
        try:
            schemas = [each.schema for each in overloads]
            index, plan = match_schemas(operator.name, schemas, reader.range, positional, keywords)
            return overloads[index], plan
        except SchemaError:
            given = [_as_tensor(reader, each, formal, node) for each, formal in _paired(operator.schema, positional)]
            try:
                return operator, try_match_schema(operator.schema, given, keywords)
            except SchemaMismatch as why:
                reason = str(why)
    raise CaptureError(f"'{name_of(node.target)}' cannot be called as in the graph: {reason}", reader.range)


def _paired(schema: FunctionSchema, positional: Sequence[NamedValue]) -> list[tuple[NamedValue, Argument]]:
    return list(zip(positional, schema.arguments, strict=False))


def _takes_numbers_for_tensors(schema: FunctionSchema, positional: Sequence[NamedValue]) -> bool:
    return any(
        _is_number(given) and without_none(formal.type) == TENSOR for given, formal in _paired(schema, positional)
    )


def _is_number(given: NamedValue) -> bool:
    if given.value is not None:
        return given.value.type in (INT, FLOAT)
    return isinstance(given.constant, (bool, int, float, complex))


def _as_tensor(reader: FxImporter, given: NamedValue, formal: Argument, node: fx.Node) -> NamedValue:
    """Insert the conversion of a number to a tensor without dimensions, for a parameter ``formal`` that accepts only
    tensors. Its dtype is that of the result of ``node``. Return other arguments unchanged."""
    if not _is_number(given) or without_none(formal.type) != TENSOR:
        return given
    known = node.meta.get("val")
    dtype = known.dtype if isinstance(known, torch.Tensor) else None
    value = reader.insert("aten::scalar_tensor", _imported(given), dtype=dtype)
    return NamedValue(value, range=reader.range)


def _imported(given: NamedValue) -> ImportedValue:
    return given.constant if given.value is None else given.value


def _arguments(
    reader: FxImporter, schema: FunctionSchema, args: Sequence[ImportedValue], kwargs: Mapping[str, ImportedValue]
) -> tuple[list[NamedValue], list[NamedValue]]:
    positional = [_argument(reader, item, formal.type) for item, formal in zip(args, schema.arguments, strict=False)]
    keywords = []
    for name, item in kwargs.items():
        index = schema.argument_index(name)
        if index is None:
            raise CaptureError(f"'{schema.qualified_name}' has no argument '{name}'", reader.range)
        made = _argument(reader, item, schema.arguments[index].type)
        made.name = name
        keywords.append(made)
    return positional, keywords


def _argument(reader: FxImporter, item: ImportedValue, formal: Type) -> NamedValue:
    """Return ``item`` as an argument of type ``formal``; a list of values is constructed in the graph, and an int
    converted to a float.

    Raises:
        CaptureError: ``item`` is not a value of programs, such as a symbol, a graph or a function, or an item of a list
            has another type.
    """
    wanted = without_none(formal)
    if isinstance(item, Value):
        if wanted == FLOAT and item.type == INT:
            item = reader.insert("aten::Float", item)
        return NamedValue(item, range=reader.range)
    if isinstance(item, (list, tuple)) and isinstance(wanted, ListType):
        return _list_argument(reader, item, wanted)
    if isinstance(item, (torch.SymInt, torch.SymFloat, torch.SymBool, fx.GraphModule)) or callable(item):
        raise CaptureError(f"an operator is given {item}, which is not a value of a program", reader.range)
    return NamedValue(constant=item, range=reader.range)


def _list_argument(reader: FxImporter, items: Sequence[ImportedValue], wanted: ListType) -> NamedValue:
    element = wanted.element
    if element == FLOAT:
        items = [float(item) if isinstance(item, int) else item for item in items]
    is_constant = not any(isinstance(item, Value) for item in items)
    if is_constant and not isinstance(element, OptionalType) and element != TENSOR:
        return NamedValue(constant=list(items), range=reader.range)
    parts = [_argument(reader, item, element).materialize(reader.graph) for item in items]
    for part in parts:
        if not part.type.is_subtype_of(element):
            message = f"an operator takes a list of {element.annotation}, but is given a {part.type.annotation} in it"
            raise CaptureError(message, reader.range)
    node = reader.graph.create("prim::ListConstruct", parts, types=[wanted], range=reader.range)
    return NamedValue(reader.graph.insert_node(node).output, range=reader.range)


def _result(reader: FxImporter, output: Value, known: Any) -> ImportedValue:
    """Return the imported value of an output. A list of known length is unpacked to its items."""
    if isinstance(output.type, ListType) and isinstance(known, (list, tuple)):
        if not known:
            return []
        types = [output.type.element] * len(known)
        node = reader.graph.create("prim::ListUnpack", [output], types=types, range=reader.range)
        return list(reader.graph.insert_node(node).outputs)
    return output


# ------------------------------------------------------------------------------------------- those with another meaning


@reads(aten.sym_size.int, aten.sym_stride.int)
def _size(
    reader: FxImporter, node: fx.Node, args: Sequence[ImportedValue], kwargs: Mapping[str, ImportedValue]
) -> ImportedValue:
    return reader.insert("aten::size" if node.target is aten.sym_size.int else "aten::stride", *args)


@reads(aten.sym_numel.default)
def _numel(
    reader: FxImporter, node: fx.Node, args: Sequence[ImportedValue], kwargs: Mapping[str, ImportedValue]
) -> ImportedValue:
    return reader.insert("aten::numel", *args)


@reads(aten.sym_storage_offset.default)
def _offset(
    reader: FxImporter, node: fx.Node, args: Sequence[ImportedValue], kwargs: Mapping[str, ImportedValue]
) -> ImportedValue:
    return reader.insert("aten::storage_offset", *args)


@reads(aten._local_scalar_dense.default, aten.item.default)
def _item(
    reader: FxImporter, node: fx.Node, args: Sequence[ImportedValue], kwargs: Mapping[str, ImportedValue]
) -> ImportedValue:
    """Import ``item()``: a number read from a tensor, of the type that the capture has inferred."""
    known = node.meta.get("val")
    if isinstance(known, (bool, torch.SymBool)):
        return reader.insert("aten::Bool", args[0])
    if isinstance(known, (float, torch.SymFloat)):
        return reader.insert("aten::Float", args[0])
    if isinstance(known, (int, torch.SymInt)):
        return reader.insert("aten::Int", args[0])
    return reader.insert("aten::item", args[0])


@reads(aten._assert_scalar.default)
def _assert_scalar(
    reader: FxImporter, node: fx.Node, args: Sequence[ImportedValue], kwargs: Mapping[str, ImportedValue]
) -> ImportedValue:
    """Import an assertion as an ``if`` that raises."""
    condition, message = args
    check(reader, condition, message)
    return None


@reads(aten._assert_async.msg, aten._functional_assert_async.msg)
def _assert_async(
    reader: FxImporter, node: fx.Node, args: Sequence[ImportedValue], kwargs: Mapping[str, ImportedValue]
) -> ImportedValue:
    check(reader, reader.insert("aten::Bool", args[0]), args[1])
    return None if node.target is aten._assert_async.msg else args[2]


@reads(aten.sym_constrain_range_for_size.default, aten.sym_constrain_range.default)
def _constrain(
    reader: FxImporter, node: fx.Node, args: Sequence[ImportedValue], kwargs: Mapping[str, ImportedValue]
) -> ImportedValue:
    size = args[0]
    low, high = kwargs.get("min"), kwargs.get("max")
    if low is None and node.target is aten.sym_constrain_range_for_size.default:
        low = 0
    if isinstance(size, Value):
        if low is not None:
            check(reader, reader.insert("aten::ge", size, low), f"a size must be {low} or more")
        if high is not None:
            check(reader, reader.insert("aten::le", size, high), f"a size must be {high} or less")
    return None


def check(reader: FxImporter, condition: ImportedValue, message: str, error: str = "RuntimeError") -> None:
    """Insert a check: the program raises ``error`` with ``message`` if ``condition`` is false. A constant true
    condition inserts nothing."""
    graph = reader.graph
    if condition is True or (condition == 1 and not isinstance(condition, Value)):
        return
    value = reader.value(bool(condition) if not isinstance(condition, Value) else condition)
    branch = graph.insert_node(graph.create("prim::If", [value], outputs=0, range=reader.range))
    branch.add_block()
    with graph.inserting_at_end(branch.add_block()):
        inputs = [reader.value(message), reader.value(error)]
        graph.insert_node(graph.create("prim::RaiseException", inputs, outputs=0, range=reader.range))
