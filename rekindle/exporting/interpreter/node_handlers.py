"""Handlers of nodes during an export: operators of the dispatcher run on FakeTensors and are recorded, those on
numbers, lists and strings are evaluated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch import SymInt, Tensor
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols, statically_known_true
from torch.utils._python_dispatch import _disable_current_modes

from rekindle.analysis.effects import CONSTRUCTS, UNPACKS
from rekindle.exporting.interpreter.values import (
    SYMBOLS,
    CompletedFuture,
    SymbolicObject,
    UnbackedScalar,
    full,
    is_known,
    kind_of,
    with_symbols,
)
from rekindle.exporting.scalars import scalar_operands, scalar_ops
from rekindle.exporting.scalars.unbacked_arithmetic import negative, unbacked_arithmetic
from rekindle.ir.graph import Node
from rekindle.ir.operators.registry import Operator
from rekindle.ir.operators.traits import Trait
from rekindle.ir.scalar_types import DTYPES, LAYOUTS, MEMORY_FORMATS
from rekindle.ir.types import ClassType
from rekindle.ops.python.values import value_matches
from rekindle.ops.registration.traits import kinds_with

Handler = Callable[[Sequence[Any]], Any]


def _size_at(args: Sequence[Any]) -> Any:
    return args[0].shape[with_symbols(args[1])]


def _binary(kind: str, function: Callable[[Any, Any], Any]) -> Handler:
    def run(args: Sequence[Any]) -> Any:
        a, b = args[0], args[1]
        late = unbacked_arithmetic(kind, a, b)
        if late is not None:
            return late
        a, b = with_symbols(a), with_symbols(b)
        if kind_of(a) == "bool" and not is_known(a):
            a = scalar_ops.as_int(a)
        if kind_of(b) == "bool" and not is_known(b):
            b = scalar_ops.as_int(b)
        return scalar_ops.settled(function(a, b))

    return run


def _append(args: Sequence[Any]) -> Any:
    args[0].append(args[1])
    return args[0]


def _set_item(args: Sequence[Any]) -> Any:
    args[0][with_symbols(args[1])] = args[2]
    return args[0]


def _is_none(args: Sequence[Any]) -> Any:
    return args[0] is None if args[1] is None else args[1] is None if args[0] is None else args[0] is args[1]


def _is_not_none(args: Sequence[Any]) -> Any:
    return not _is_none(args)


def _tensor_of(args: Sequence[Any]) -> Any:
    """Return ``torch.tensor`` of numbers, known or unbacked."""
    data, dtype, device, requires_grad = (*args, None, None, None)[:4]
    wanted = None if dtype is None else DTYPES[dtype]
    if isinstance(data, (list, tuple)) and not _has_unknown(data):
        with _disable_current_modes():
            made = torch.tensor(data, dtype=wanted, device=device, requires_grad=bool(requires_grad))
        return made_of_numbers(made)
    made = _stacked(data)
    if wanted is None and made.dtype == torch.float64:
        wanted = torch.get_default_dtype()
    return made.to(device=device, dtype=wanted) if wanted is not None or device is not None else made


def made_of_numbers(tensor: Tensor) -> Tensor:
    """Return a tensor of known elements, built by operators, since nested graphs cannot hold constants."""
    if tensor.dim() == 0 or tensor.numel() == 0:
        value = tensor.item() if tensor.dim() == 0 else 0
        shape = list(tensor.shape)
        made: Tensor = torch.ops.aten.full.default(shape, value, dtype=tensor.dtype, device=tensor.device)
    else:
        made = torch.ops.aten.stack.default([made_of_numbers(part) for part in tensor])
    return made


def _stacked(data: Any) -> Tensor:
    if isinstance(data, list):
        return torch.stack([_stacked(item) for item in data])
    if isinstance(data, Tensor):
        return data
    if isinstance(data, UnbackedScalar):
        return data.tensor
    return scalar_ops.condition_tensor(data) if kind_of(data) == "bool" else numbers_as_tensor(data)


def numbers_as_tensor(value: Any) -> Tensor:
    """Return an int, a float or a complex, known or not, as a tensor without dimensions."""
    if isinstance(value, complex):
        return full(value)
    if isinstance(value, UnbackedScalar):
        return value.tensor
    return full(value, torch.int64 if kind_of(value) == "int" else torch.float64)


def _has_unknown(data: Any) -> bool:
    if isinstance(data, (list, tuple)):
        return any(_has_unknown(item) for item in data)
    return isinstance(data, (UnbackedScalar, Tensor)) or not is_known(data)


def _number_to_tensor(args: Sequence[Any]) -> Any:
    made = _stacked(args[0])
    return made.to(torch.get_default_dtype()) if made.dtype == torch.float64 else made


def _set_grad_mode(args: Sequence[Any]) -> None:
    torch._C._set_grad_enabled(args[0])


def _module_at(args: Sequence[Any]) -> Any:
    """Return a submodule of a module container, by its index or its name.

    Raises:
        IndexError: the index is out of range.
    """
    container, which = args
    slots = container.type.attributes
    names = [name for name, slot in slots.items() if isinstance(slot.type, ClassType) and slot.type.is_module]
    if isinstance(which, str):
        return container.slots[which]
    if not -len(names) <= which < len(names):
        raise IndexError(f"index {which} is out of range")
    return container.slots[names[which]]


def _select(args: Sequence[Any]) -> Any:
    """Return ``tensor.select(dim, index)``. An unbacked index that may be negative is normalized: the functional form
    of a write to the selected part requires that."""
    tensor, dim, index = args[0], with_symbols(args[1]), args[2]
    if _may_be_negative(index):
        size, given = tensor.shape[dim], numbers_as_tensor(index)
        from_end = torch.ops.aten.add.Tensor(given, size)
        at = torch.ops.aten.where.self(torch.ops.aten.lt.Scalar(given, 0), from_end, given)
        fits = torch.ops.aten.logical_and.default(torch.ops.aten.ge.Scalar(at, 0), torch.ops.aten.lt.Scalar(at, size))
        torch.ops.aten._assert_async.msg(fits, "IndexError: index out of range")
        index = UnbackedScalar("int", at, size)
    return torch.ops.aten.select.int(tensor, dim, with_symbols(index))


def _may_be_negative(index: Any) -> bool:
    if isinstance(index, UnbackedScalar):
        if index.symbol is not None and statically_known_true(index.number >= 0):
            return False
        return index.limit is None
    return isinstance(index, SymInt) and bool(free_unbacked_symbols(index)) and not statically_known_true(index >= 0)


def _range_length(args: Sequence[Any]) -> Any:
    """Return the number of elements of a range, whose step is known."""
    low, high, step = (with_symbols(value) for value in args)
    if not any(isinstance(value, SymInt) for value in (low, high, step)):
        return len(range(low, high, step))
    span = high - low if step > 0 else low - high
    length = (span + (abs(step) - 1)) // abs(step)
    return length if statically_known_true(length >= 0) else torch.sym_max(length, 0)


def _derive_index(args: Sequence[Any]) -> Any:
    """Return ``start + index * step``: the element of a range at ``index``."""
    index, start, step = args
    if isinstance(index, UnbackedScalar) and isinstance(step, int):
        past = index if step == 1 else unbacked_arithmetic("aten::mul", index, step)
        return past if isinstance(start, int) and start == 0 else unbacked_arithmetic("aten::add", past, start)
    return with_symbols(start) + with_symbols(index) * with_symbols(step)


def _copy_into(args: Sequence[Any]) -> Any:
    """Run ``tensor.copy_(source)``. For a source without dimensions, ``tensor.fill_(source)`` is recorded, as for
    Python code."""
    tensor, source = args[0], args[1]
    if source.dim() == 0 and tensor.dim() > 0:
        return tensor.fill_(source)
    return tensor.copy_(source, *(with_symbols(value) for value in args[2:]))


HANDLERS: Final[dict[str, Handler]] = {
    "aten::copy_": _copy_into,
    "aten::select.int": _select,
    "aten::__range_length": _range_length,
    "aten::__derive_index": _derive_index,
    "prim::abs.int": lambda args: scalar_ops.absolute(args[0]),
    "prim::abs.float": lambda args: scalar_ops.absolute(args[0]),
    "prim::ModuleContainerIndex.list": _module_at,
    "prim::ModuleContainerIndex.dict": _module_at,
    "aten::size.int": _size_at,
    "aten::size": lambda args: list(args[0].shape),
    "aten::stride.int": lambda args: args[0].stride()[args[1]],
    "aten::dim": lambda args: args[0].dim(),
    "aten::len.Tensor": lambda args: args[0].shape[0],
    "aten::numel": lambda args: args[0].numel(),
    "aten::is_floating_point": lambda args: args[0].is_floating_point(),
    "aten::is_complex": lambda args: args[0].is_complex(),
    "aten::Bool.Tensor": lambda args: scalar_ops.truth_of(args[0]),
    "aten::Bool.int": lambda args: scalar_ops.truth_of(args[0]),
    "aten::Bool.float": lambda args: scalar_ops.truth_of(args[0]),
    "aten::Int.Tensor": lambda args: scalar_ops.number_of_tensor(args[0], "int"),
    "aten::Int.bool": lambda args: scalar_ops.as_int(args[0]),
    "aten::Int.float": lambda args: scalar_ops.as_int(args[0]),
    "aten::Int.Scalar": lambda args: scalar_ops.as_int(args[0]),
    "aten::IntImplicit": lambda args: scalar_ops.number_of_tensor(args[0], "int"),
    "aten::Float.Tensor": lambda args: scalar_ops.number_of_tensor(args[0], "float"),
    "aten::Float.int": lambda args: scalar_ops.as_float(args[0]),
    "aten::Float.bool": lambda args: scalar_ops.as_float(args[0]),
    "aten::Float.Scalar": lambda args: scalar_ops.as_float(args[0]),
    "aten::FloatImplicit": lambda args: scalar_ops.number_of_tensor(args[0], "float"),
    "aten::ScalarImplicit": lambda args: scalar_ops.element_of(args[0]),
    "aten::item": lambda args: scalar_ops.element_of(args[0]),
    "aten::neg.int": lambda args: negative(args[0]),
    "aten::neg.float": lambda args: negative(args[0]),
    "aten::neg.Scalar": lambda args: negative(args[0]),
    "prim::NumToTensor.Scalar": _number_to_tensor,
    "prim::NumToTensor.bool": _number_to_tensor,
    "aten::tensor": _tensor_of,
    "aten::tensor.int": _tensor_of,
    "aten::tensor.float": _tensor_of,
    "aten::tensor.bool": _tensor_of,
    "aten::__not__": lambda args: scalar_ops.negated(args[0]),
    "aten::__and__.bool": lambda args: scalar_ops.both(args[0], args[1]),
    "aten::__or__.bool": lambda args: scalar_ops.either(args[0], args[1]),
    "aten::__xor__.bool": lambda args: scalar_ops.negated(scalar_ops.equal(args[0], args[1])),
    "aten::eq.bool": lambda args: scalar_ops.equal(args[0], args[1]),
    "aten::ne.bool": lambda args: scalar_ops.negated(scalar_ops.equal(args[0], args[1])),
    "aten::eq.int_list": lambda args: scalar_ops.equal_lists(args[0], args[1]),
    "aten::ne.int_list": lambda args: scalar_ops.negated(scalar_ops.equal_lists(args[0], args[1])),
    "aten::__is__": _is_none,
    "aten::__isnot__": _is_not_none,
    "prim::min.int": lambda args: scalar_ops.smallest(list(args)),
    "prim::max.int": lambda args: scalar_ops.largest(list(args)),
    "prim::min.self_int": lambda args: scalar_ops.smallest(args[0]),
    "prim::max.self_int": lambda args: scalar_ops.largest(args[0]),
    "aten::append.t": _append,
    "aten::_set_item.t": _set_item,
    "aten::wait": lambda args: args[0].value if isinstance(args[0], CompletedFuture) else args[0],
    "prim::awaitable_wait": lambda args: args[0].value if isinstance(args[0], CompletedFuture) else args[0],
    "prim::awaitable_nowait": lambda args: CompletedFuture(args[0]),
    "aten::set_grad_enabled": _set_grad_mode,
    "prim::unchecked_cast": lambda args: args[0],
    "prim::unchecked_unwrap_optional": lambda args: args[0],
}
"""Implementations, by qualified name, of operators that have to accept unbacked scalars or symbols."""

ACCEPTS_UNBACKED: Final = CONSTRUCTS | UNPACKS | kinds_with(Trait.CARRIES_ELEMENTS)
"""Kinds that forward values without reading them: numbers may remain unbacked."""

for _kind, _function in (
    ("aten::add", lambda a, b: a + b),
    ("aten::sub", lambda a, b: a - b),
    ("aten::mul", lambda a, b: a * b),
    ("aten::div", lambda a, b: a / b),
    ("aten::floordiv", lambda a, b: a // b),
    ("aten::remainder", lambda a, b: a % b),
    ("aten::lt", lambda a, b: a < b),
    ("aten::le", lambda a, b: a <= b),
    ("aten::gt", lambda a, b: a > b),
    ("aten::ge", lambda a, b: a >= b),
    ("aten::eq", lambda a, b: a == b),
    ("aten::ne", lambda a, b: a != b),
):
    for _overload in (".int", ".float", ".int_float", ".float_int", ""):
        if f"{_kind}{_overload}" not in HANDLERS:
            HANDLERS[f"{_kind}{_overload}"] = _binary(_kind, _function)


_OVERLOADS: Final[dict[str, Any]] = {}


def overload_of(operator: Operator) -> Any:
    """Return the dispatcher's operator; None for an operator of this package."""
    name = operator.schema.qualified_name
    if name not in _OVERLOADS:
        namespace, _, rest = operator.schema.name.partition("::")
        found = None
        if torch._C._dispatch_has_kernel(name):
            packet = getattr(getattr(torch.ops, namespace), rest)
            found = getattr(packet, operator.schema.overload or "default", None)
        _OVERLOADS[name] = found
    return _OVERLOADS[name]


_BY_NUMBER: Final[dict[str, Sequence[Any]]] = {
    "ScalarType": DTYPES,
    "Layout": LAYOUTS,
    "MemoryFormat": MEMORY_FORMATS,
}


def _type_name(type: Any) -> str:
    text = str(type)
    return text.removesuffix("?").removeprefix("Optional[").removesuffix("]")


_AS_WRITTEN: Final = {
    f"aten::{name}{suffix}.{scalar}": (f"{name}{suffix}", tensor)
    for name, scalar, tensor in (
        *((name, "Scalar", "Tensor") for name in ("add", "sub", "mul", "div")),
        ("div", "Scalar_mode", "Tensor_mode"),
    )
    for suffix in ("", "_")
}
"""Overloads for numbers that users do not call by hand: ``x + 1`` is exported as ``add.Tensor``, which other tools
expect."""


def as_written(operator: Operator) -> Any:
    """Return the overload that ``torch.export`` would record for ``operator``; None for an operator of this package."""
    name, overload = _AS_WRITTEN.get(operator.schema.qualified_name, ("", ""))
    return getattr(getattr(torch.ops.aten, name), overload) if name else overload_of(operator)


def call_overload(overload: Any, args: Sequence[Any]) -> Any:
    """Call an operator of the dispatcher with all arguments in the order of its schema; defaults are omitted, as in
    calls written by hand."""
    if any(isinstance(value, UnbackedScalar) for value in args):
        fill = scalar_operands.filled(overload, args)
        if fill is not None:
            return torch.ops.aten.fill.Tensor(call_overload(overload, fill[0]), fill[1])
        overload, args = scalar_operands.with_tensors(overload, args)
    positional: list[Any] = []
    named: dict[str, Any] = {}
    pending: list[Any] = []
    for argument, value in zip(overload._schema.arguments, args, strict=True):
        value = with_symbols(value)
        table = _BY_NUMBER.get(_type_name(argument.real_type))
        if table is not None and isinstance(value, int):
            value = table[value]
        is_default = argument.has_default_value() and _is_same(argument.default_value, value)
        if argument.kwarg_only:
            if not is_default:
                named[argument.name] = value
            continue
        pending.append(value)
        if not is_default:
            positional += pending
            pending.clear()
    return overload(*positional, **named)


def _is_same(default: Any, value: Any) -> bool:
    if isinstance(value, (Tensor, *SYMBOLS)):
        return False
    return type(default) is type(value) and bool(default == value)


def written_arguments(operator: Operator, args: Sequence[Any]) -> list[Tensor]:
    """Return the tensors among ``args`` that the operator writes to."""
    found: list[Tensor] = []
    for argument, value in zip(operator.schema.arguments, args, strict=False):
        alias = argument.alias
        if alias is None or not alias.is_write:
            continue
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)) and any(element.is_write for element in alias.contained):
            found += [item for item in value if isinstance(item, Tensor)]  # (a!)[], not [](a!): that writes to the list
    for name, switch in operator.hidden_writes:
        named = dict(zip((argument.name for argument in operator.schema.arguments), args, strict=False))
        if isinstance(named.get(name), Tensor) and (not switch or named.get(switch) is not False):
            found.append(named[name])
    return found


def written_containers(operator: Operator, args: Sequence[Any]) -> list[Any]:
    """Return the lists and dicts among ``args`` whose elements the operator changes."""
    return [
        value
        for argument, value in zip(operator.schema.arguments, args, strict=False)
        if argument.alias is not None
        and argument.alias.is_write
        and argument.alias.before
        and isinstance(value, (list, dict))
    ]


def new_of_class(node: Node) -> SymbolicObject:
    """Run ``prim::CreateObject``: return an object without attributes."""
    type = node.output.type
    return SymbolicObject(type, {}, None, None)  # type: ignore[arg-type]


def is_of_types(node: Node, value: Any) -> bool:
    """Run ``prim::isinstance``: return whether ``value`` has one of the types of the node."""
    types = node["types"]
    assert isinstance(types, list)
    if isinstance(value, SymbolicObject):
        return any(type is value.type for type in types)
    if kind_of(value) is not None and not is_known(value):
        example = {"int": 1, "float": 1.0, "bool": True}[kind_of(value) or "int"]
        return any(value_matches(example, type) for type in types)  # type: ignore[arg-type]
    return any(value_matches(value, type) for type in types)  # type: ignore[arg-type]
