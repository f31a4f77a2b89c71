"""Write one node as an expression, given the texts of its inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from rekindle.errors import UnsupportedError
from rekindle.frontend.python_printer.constants import is_inferred_from_members
from rekindle.frontend.python_printer.library_operators import LIBRARY_OPERATORS
from rekindle.frontend.python_printer.names import is_identifier
from rekindle.frontend.python_printer.tagged_text import TaggedText
from rekindle.ir.attributes import KEYWORDS, ConstantObject
from rekindle.ir.graph import Node, Value
from rekindle.ir.graph_function import called_function
from rekindle.ir.operators.schema import Argument, FunctionSchema
from rekindle.ir.text.literals import format_string
from rekindle.ir.types import (
    BOOL,
    NONE,
    ClassType,
    DictType,
    EnumType,
    FunctionType,
    InterfaceType,
    ListType,
    TensorType,
    TupleType,
    Type,
)
from rekindle.ops.archive.values import differs_in_archives
from rekindle.ops.tensor.torchbind_objects import python_class_of

if TYPE_CHECKING:
    from rekindle.frontend.python_printer.functions import FunctionPrinter


def write_expression(out: TaggedText, node: Node, printer: FunctionPrinter) -> None:
    """Append the expression of ``node`` to ``out``.

    Raises:
        UnsupportedError: the text is to be read back, and TorchScript has no expression for this.
    """
    special = _SPECIAL.get(node.kind)
    if printer.importable and node.kind in _AS_PYTHON_MEANS:
        _add(out, _AS_PYTHON_MEANS[node.kind], printer.uses(node.inputs))
    elif printer.importable and _differs_from_library(node):
        _add(out, f"ops.aten.{node.kind.partition('::')[2]}", printer.uses(node.inputs))
    elif special is not None:
        special(out, node, printer)
    elif printer.importable and node.kind.startswith("python::"):
        _library_operator(out, node, printer)
    else:
        _write_operator(out, node, printer)


def _differs_from_library(node: Node) -> bool:
    """Return whether an archive's ``torch.name`` has other semantics than this ``aten`` operator."""
    return "math" in node.attributes or (node.operator is not None and differs_in_archives(node.operator))


# ------------------------------------------------------------------------------------------------------------ operators

_OWN_SPELLINGS: Final = {"aten::backward": "torch.autograd.backward", "aten::grad": "torch.autograd.grad"}


def operator_name(kind: str) -> str:
    """Return the name of an operator in source: ``torch.add`` for ``aten::add``; ``ops.prim.abs`` for one in another
    namespace."""
    namespace, _, name = kind.partition("::")
    if namespace in ("aten", "archive"):
        return _OWN_SPELLINGS.get(kind) or f"torch.{name}"
    return f"ops.{namespace}.{name}"


def _write_operator(out: TaggedText, node: Node, printer: FunctionPrinter) -> None:
    schema = node.schema
    if schema is None:
        _write_unknown(out, node, printer)
        return
    out.add(operator_name(node.kind))
    out.add_list(operator_arguments(schema, node, printer), "(", ")")


def _library_operator(out: TaggedText, node: Node, printer: FunctionPrinter) -> None:
    form = LIBRARY_OPERATORS.get(node.kind)
    if form is None:
        name = node.kind.partition("::")[2]
        raise UnsupportedError(f"'{name}' cannot be saved: TorchScript has nothing to say it with", node.range)
    before, between, behind = form
    out.add(before)
    for index, item in enumerate(printer.uses(node.inputs)):
        out.add(between if index else "", item)
    out.add(behind)


def _write_unknown(out: TaggedText, node: Node, printer: FunctionPrinter) -> None:
    """Write the call of an unknown operator. A single result other than a Tensor is annotated with its type."""
    call = TaggedText(node.range).add(operator_name(node.kind))
    call.add_list(_as_written(node, printer), "(", ")")
    if len(node.outputs) == 1 and not isinstance(node.output.type, TensorType):
        _add(out, "annotate", [printer.type(node.output.type), call])
    else:
        out.add(call)


def _as_written(node: Node, printer: FunctionPrinter) -> list[str | TaggedText]:
    """Return the arguments of an unknown operator, with the keywords of the call from which the node was read."""
    names = node.attributes.get(KEYWORDS, [])
    assert isinstance(names, list)
    uses = printer.uses(node.inputs)
    first = len(uses) - len(names)
    return uses[:first] + [
        TaggedText(node.range).add(f"{name}=", use) for name, use in zip(names, uses[first:], strict=True)
    ]


def operator_arguments(schema: FunctionSchema, node: Node, printer: FunctionPrinter) -> list[str | TaggedText]:
    """Return the arguments of an operator's call. Those at the end that equal their default values are omitted, so that
    a release whose operator has more parameters can read the call."""
    arguments = schema.arguments
    count = len(arguments)
    outs = 0
    while outs < count and arguments[count - 1 - outs].is_out:
        outs += 1
    needed = len(node.inputs) if len(node.inputs) > count else count - outs
    if len(node.inputs) <= count:
        while needed and needed <= len(node.inputs) and _is_default(arguments[needed - 1], node.inputs[needed - 1]):
            needed -= 1
    found: list[str | TaggedText] = []
    for index, value in enumerate(node.inputs[:needed]):
        use = printer.use(value)
        keyword = index < count and (arguments[index].kwarg_only or (schema.name, arguments[index].name) in _NAMED)
        found.append(TaggedText(node.range).add(f"{arguments[index].name}=", use) if keyword else use)
    for index in range(max(needed, count - outs), min(count, len(node.inputs))):
        found.append(TaggedText(node.range).add(f"{arguments[index].name}=", printer.use(node.inputs[index])))
    return found


_NAMED: Final = frozenset({("aten::view", "dtype"), ("aten::view_copy", "dtype")})
"""Operators and their arguments that are passed by name: ``torch.view(x, 3)`` would be the overload for sizes."""


def _is_default(argument: Argument, value: Value) -> bool:
    if not argument.has_default or value.node.kind != "prim::Constant" or isinstance(value.type, FunctionType):
        return False
    return _equal(argument.default, value.to_python())


def _equal(default: object, actual: object) -> bool:
    if type(default) is not type(actual):
        return False
    if isinstance(default, (list, tuple)) and isinstance(actual, (list, tuple)):
        return len(default) == len(actual) and all(map(_equal, default, actual))
    # A tensor is never a default.
    return bool(default == actual) if isinstance(default, (bool, int, float, complex, str, type(None))) else False


# ------------------------------------------------------------------------------------------------------------ special

_Writer = Callable[[TaggedText, Node, "FunctionPrinter"], None]


def _call(name: str) -> _Writer:
    """Return a writer of the expression ``name(inputs)``."""
    return lambda out, node, printer: _add(out, name, printer.uses(node.inputs))


def _add(out: TaggedText, name: str, inputs: list[str | TaggedText]) -> None:
    out.add_list(inputs, f"{name}(", ")")


def _typed(name: str) -> _Writer:
    """Return a writer of the expression ``name(Type, input)``."""

    def write(out: TaggedText, node: Node, printer: FunctionPrinter) -> None:
        _add(out, name, [printer.type(node.output.type), *printer.uses(node.inputs)])

    return write


def _member(name: str) -> _Writer:
    """Return a writer of the expression ``(input).name``."""

    def write(out: TaggedText, node: Node, printer: FunctionPrinter) -> None:
        out.add("(", printer.use(node.input), f").{name}")

    return write


def _constant(out: TaggedText, node: Node, printer: FunctionPrinter) -> None:
    out.add(printer.constant(node))


def _index(out: TaggedText, node: Node, printer: FunctionPrinter) -> None:
    base, index = printer.uses(node.inputs)
    if is_identifier(str(base)):
        out.add(base, "[", index, "]")
    else:
        out.add("(", base, ")[", index, "]")


def _tuple_index(out: TaggedText, node: Node, printer: FunctionPrinter) -> None:
    base, index = printer.uses(node.inputs)
    out.add("(", base, ")[", index, "]")


def _tuple_slice(out: TaggedText, node: Node, printer: FunctionPrinter) -> None:
    out.add("(", printer.use(node.input), f")[{node['beg']}:{node['end']}]")


def _tuple(out: TaggedText, node: Node, printer: FunctionPrinter) -> None:
    type = node.output.type
    if isinstance(type, TupleType) and type.name is not None:
        out.add(printer.type(type))
    items = [_typed_none(value, printer) or printer.use(value) for value in node.inputs]
    out.add_list(items, "(", ",)" if len(node.inputs) == 1 else ")")


def _typed_none(value: Value, printer: FunctionPrinter) -> str | None:
    """Return the text of a constant None of a wider type, ``annotate(Optional[int], None)``, from which a reader infers
    the type of a tuple. Return None if ``value`` is something else, or if the text is not to be read back."""
    is_none = value.node.kind == "prim::Constant" and "value" not in value.node.attributes
    if not printer.importable or not is_none or value.type == NONE or isinstance(value.type, FunctionType):
        return None
    return f"annotate({printer.type(value.type)}, None)"


def _annotated(out: TaggedText, type: Type, body: TaggedText, is_inferred: bool, printer: FunctionPrinter) -> None:
    if is_inferred:
        out.add(body)
    else:
        out.add(f"annotate({printer.type(type)}, ", body, ")")


def _list(out: TaggedText, node: Node, printer: FunctionPrinter) -> None:
    type = node.output.type
    assert isinstance(type, ListType)
    is_inferred = bool(node.inputs) and is_inferred_from_members(type.element)
    _annotated(out, type, TaggedText(node.range).add_list(printer.uses(node.inputs), "[", "]"), is_inferred, printer)


def _dict(out: TaggedText, node: Node, printer: FunctionPrinter) -> None:
    type = node.output.type
    assert isinstance(type, DictType)
    if printer.importable and isinstance(type.key, EnumType):
        raise UnsupportedError(
            f"a {type.annotation} cannot be saved: TorchScript has no dicts whose keys are members of enums",
            node.range,
            hint="take the names or the values of the members as keys",
        )
    uses = printer.uses(node.inputs)
    pairs: list[str | TaggedText] = [
        TaggedText(node.range).add(key, ": ", value) for key, value in zip(uses[::2], uses[1::2], strict=True)
    ]
    is_inferred = bool(uses) and is_inferred_from_members(type.key) and is_inferred_from_members(type.value)
    _annotated(out, type, TaggedText(node.range).add_list(pairs, "{", "}"), is_inferred, printer)


def _create_object(out: TaggedText, node: Node, printer: FunctionPrinter) -> None:
    name = printer.type(node.output.type)
    out.add(f"{name}.__new__({name})")


def _get_attribute(out: TaggedText, node: Node, printer: FunctionPrinter) -> None:
    name = node.get_string("name")
    if is_identifier(name):
        out.add(printer.use(node.input), f".{name}")
    else:
        out.add("getattr(", printer.use(node.input), f", {format_string(name)})")


def _check_not_recursive(node: Node, printer: FunctionPrinter) -> None:
    record = called_function(node)
    if printer.importable and record is not None and record.is_recursive:
        raise UnsupportedError(
            f"'{record.basename}' calls itself, directly or through others, which TorchScript does not know",
            node.range,
            hint="write the recursion as a loop; the program runs here as it is",
        )


def _call_function(out: TaggedText, node: Node, printer: FunctionPrinter) -> None:
    _check_not_recursive(node, printer)
    callee, *arguments = printer.uses(node.inputs)
    _write_call(out.add(callee), arguments)


def _call_method(out: TaggedText, node: Node, printer: FunctionPrinter) -> None:
    receiver, *_ = node.inputs
    if printer.importable and not isinstance(receiver.type, (ClassType, InterfaceType)):
        raise UnsupportedError(
            f"'{node.get_string('name')}' of {receiver.type} cannot be written as source: no reader knows which "
            "one to call",
            node.range,
            hint="let a function that takes it as the interface call the method",
        )
    python = python_class_of(receiver.type.name) if isinstance(receiver.type, ClassType) else None
    if printer.importable and python is not None and node.get_string("name") in python.only_in_python:
        name = node.get_string("name").removesuffix("_getter")
        raise UnsupportedError(f"'{name}' cannot be saved: TorchScript has nothing to say it with", node.range)
    _check_not_recursive(node, printer)
    base, *arguments = printer.uses(node.inputs)
    _write_call(out.add("(", base, f").{node.get_string('name')}"), arguments)


def _write_call(out: TaggedText, arguments: list[str | TaggedText]) -> None:
    """Write the arguments of a call of a function or a method, each followed by a comma."""
    out.add("(")
    for argument in arguments:
        out.add(argument, ", ")
    out.add(")")


def _unwrap_optional(out: TaggedText, node: Node, printer: FunctionPrinter) -> None:
    value = node.input
    if value.node.kind == "prim::Constant" and "value" not in value.node.attributes:
        # A plain None would not record the Optional type.
        inner = f"annotate({printer.type(value.type)}, None)"
        out.add(f"torch._unwrap_optional({inner})")
    else:
        out.add("torch._unwrap_optional(", printer.use(value), ")")


def _isinstance(out: TaggedText, node: Node, printer: FunctionPrinter) -> None:
    types = node["types"]
    assert isinstance(types, list)
    names = [printer.type(type) for type in types if isinstance(type, Type)]
    written = names[0] if len(names) == 1 else f"({', '.join(names)})"
    out.add("isinstance(", printer.use(node.input), f", {written})")


def _tolist(out: TaggedText, node: Node, printer: FunctionPrinter) -> None:
    value, *_ = node.inputs
    out.add(f"annotate({printer.type(node.output.type)}, ", printer.use(value), ".tolist())")


def _uninitialized(out: TaggedText, node: Node, printer: FunctionPrinter) -> None:
    out.add(f"uninitialized({printer.type(node.output.type)})")


def _python_call(out: TaggedText, node: Node, printer: FunctionPrinter) -> None:
    holder = node.attributes.get("function")
    function = holder.value if isinstance(holder, ConstantObject) else None
    name = getattr(function, "__name__", None) or node.attributes.get("name") or "a function"
    if printer.importable:
        raise UnsupportedError(
            f"the program calls the Python function '{name}', which cannot be written as source",
            node.range,
            hint=getattr(function, "way_out", None)
            or "let it be compiled: it is marked with @ignore, or a module that it belongs to is",
        )
    _add(out, f"^{name}()", printer.uses(node.inputs))


def _raise(out: TaggedText, node: Node, printer: FunctionPrinter) -> None:
    if len(node.inputs) == 3 and printer.importable:
        _add(out, "ops.prim.RaiseException", printer.uses(node.inputs)[:2])  # TorchScript knows no arguments but a text
    else:
        _write_operator(out, node, printer)


def _tensor(out: TaggedText, node: Node, printer: FunctionPrinter) -> None:
    """Write ``torch.tensor``. In importable source, an int, float or complex number that ``x[i] = …`` assigns is
    written as ``torch.scalar_tensor``, which raises if the dtype cannot represent it."""
    data, *_ = node.inputs
    if printer.importable and node.attributes.get("assigned") and data.type != BOOL:
        assert node.schema is not None
        out.add("torch.scalar_tensor").add_list(operator_arguments(node.schema, node, printer), "(", ")")
    else:
        _write_operator(out, node, printer)


_SPECIAL: Final[dict[str, _Writer]] = {
    "aten::tensor": _tensor,
    "prim::Constant": _constant,
    "prim::Uninitialized": _uninitialized,
    "prim::PythonOp": _python_call,
    "prim::RaiseException": _raise,
    **dict.fromkeys(
        ("aten::IntImplicit", "aten::FloatImplicit", "aten::ComplexImplicit", "aten::ScalarImplicit"),
        _typed("annotate"),
    ),
    "aten::Int": _call("int"),
    "aten::Float": _call("float"),
    "aten::Bool": _call("bool"),
    **dict.fromkeys(("aten::str", "archive::str"), _call("str")),
    "aten::sorted": _call("sorted"),
    **dict.fromkeys(("prim::Print", "archive::Print"), _call("print")),
    "archive::format": _call("torch.format"),
    "archive::percentFormat": _call("torch.percentFormat"),
    "aten::__getitem__": _index,
    "prim::TupleConstruct": _tuple,
    "prim::TupleIndex": _tuple_index,
    "prim::TupleSlice": _tuple_slice,
    "prim::ListConstruct": _list,
    "prim::DictConstruct": _dict,
    "prim::CreateObject": _create_object,
    "prim::GetAttr": _get_attribute,
    "prim::CallFunction": _call_function,
    "prim::CallMethod": _call_method,
    "aten::_unwrap_optional": _unwrap_optional,
    "prim::unchecked_cast": _typed("unchecked_cast"),
    "prim::unchecked_unwrap_optional": _typed("unchecked_cast"),
    "prim::isinstance": _isinstance,
    "prim::tolist": _tolist,
    "prim::EnumName": _member("name"),
    "prim::EnumValue": _member("value"),
}
"""Writers by the kind of the node. Nodes of other kinds are written as calls of an operator by its name."""

_AS_PYTHON_MEANS: Final = {
    "aten::str": "ops.aten.str",
    "aten::format": "ops.aten.format",
    "aten::percentFormat": "ops.aten.percentFormat",
    "prim::Print": "ops.prim.Print",
}
"""Operators that have Python's semantics, and their names in text that is read back: a plain ``str(x)`` would be read
as ``archive::str``. ``torch.jit`` does not distinguish the two."""
