"""Lowering of tensor operators that the runtime implements: sizes, views, single elements, new tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

from rekindle.analysis.constants import is_constant
from rekindle.building.internal_operators import COPY_INTO, COPY_OUT
from rekindle.building.lowering.constants import int_word, scalar_type
from rekindle.building.lowering.containers import bounds
from rekindle.building.lowering.control import kind_of, word_in_box
from rekindle.building.lowering.emitters import emits, qualified_name
from rekindle.building.lowering.numbers import is_number
from rekindle.building.lowering.representation import NotBuildable, descriptor_of, is_object
from rekindle.building.lowering.torch_calls import call_torch
from rekindle.building.lowering.writer import ProgramWriter
from rekindle.building.runtime import tensors, views
from rekindle.building.runtime.memory import release
from rekindle.building.runtime.objects import ErrorCode, Kind
from rekindle.building.runtime.views import parts_of_chunk
from rekindle.ir.graph import Node, Value
from rekindle.ir.scalar_types import number_of
from rekindle.ir.types import COMPLEX, INT, ListType, TensorType, Type

_RANK, _DTYPE = 5, 4
"""Indices of fields of a tensor object."""


def field(w: ProgramWriter, register: str, index: int) -> str:
    """Emit a read of the 64-bit field with index ``index`` of an object."""
    return w.emit(f"load i64, ptr {w.emit(f'getelementptr i64, ptr {register}, i64 {index}')}")


@emits("aten::dim")
def rank(w: ProgramWriter, node: Node) -> None:
    w.define(node.output, field(w, w.name(node.input), _RANK))


@emits("aten::numel")
def numel(w: ProgramWriter, node: Node) -> None:
    w.define(node.output, w.call(tensors.numel, w.name(node.input)))


@emits("aten::size", "aten::stride")
def sizes(w: ProgramWriter, node: Node) -> None:
    function = tensors.list_of_sizes if node.kind == "aten::size" else tensors.list_of_strides
    w.define(node.output, w.call(function, w.name(node.input)))


@emits("aten::size.int")
def size(w: ProgramWriter, node: Node) -> None:
    tensor, dim = (w.name(value) for value in node.inputs)
    w.define(node.output, w.call_or_fail_below_zero(views.size_at, "%context", tensor, dim))


@emits("aten::len.Tensor")
def length(w: ProgramWriter, node: Node) -> None:
    w.define(node.output, w.call_or_fail_below_zero(views.size_at, "%context", w.name(node.input), "0"))


@emits("aten::is_floating_point")
def is_floating_point(w: ProgramWriter, node: Node) -> None:
    w.define(node.output, w.call(tensors.is_floating, field(w, w.name(node.input), _DTYPE)))


@emits("prim::requires_grad", "aten::is_grad_enabled")
def requires_grad(w: ProgramWriter, node: Node) -> None:
    """Emit whether a tensor requires gradients, or the gradient mode is on. Libraries record no gradients, so both are
    False, except for parameters of modules.

    Raises:
        NotBuildable: the result is used, and the program may enable gradients.
    """
    if not all(_keeps_the_mode(use.user) for use in node.output.uses):
        w.parts.gradient_modes.depends_on_it(node)
    made = node.inputs[0].node if node.inputs else node
    found = False
    if made.kind == "prim::GetAttr" and made.input in w.modules:
        parameter = getattr(w.modules[made.input].module, made.get_string("name"), None)
        found = isinstance(parameter, torch.Tensor) and parameter.requires_grad
    w.define(node.output, "true" if found else "false")


def _keeps_the_mode(node: Node) -> bool:
    """Return whether a node only saves the gradient mode in one of PyTorch's context managers, which restores it."""
    return node.kind == "prim::SetAttr" and str(node.inputs[0].type).startswith("__torch__.torch.autograd.grad_mode.")


@emits("aten::set_grad_enabled")
def set_grad_enabled(w: ProgramWriter, node: Node) -> None:
    """Emit nothing: libraries record no gradients.

    Raises:
        NotBuildable: the program also depends on the gradient mode.
    """
    w.parts.gradient_modes.changes_it(node)


@emits(
    "prim::is_nested",
    "prim::is_cuda",
    "prim::is_meta",
    "aten::is_autocast_enabled",
)
def never(w: ProgramWriter, node: Node) -> None:
    """Emit False, for properties that tensors and calls of a library never have: they are dense, on the CPU, and
    without autocast."""
    w.define(node.output, "false")


@emits("aten::get_autocast_dtype")
def autocast_dtype(w: ProgramWriter, node: Node) -> None:
    """Emit the dtype that autocast converts to when the library is built.

    Raises:
        NotBuildable: the device is known only at run time.
    """
    if not is_constant(node.input):
        raise NotBuildable("the dtype of 'torch.autocast' for a device that is known only at run time", node.range)
    w.define(node.output, str(scalar_type(torch.get_autocast_dtype(str(node.input.to_python())))))


# --------------------------------------------------------------------------------------------------------------- views

_VIEWS: Final[dict[str, Callable[..., Any]]] = {
    "aten::select.int": views.select,
    "aten::transpose.int": views.transpose,
    "aten::t": views.transpose_matrix,
    "aten::permute": views.permute,
    "aten::unsqueeze": views.unsqueeze,
    "aten::squeeze.dim": views.squeeze_at,
    "aten::flatten.using_ints": views.flatten,
    "aten::unflatten.int": views.unflatten,
    "aten::unbind.int": views.unbind,
    "aten::split.Tensor": views.split,
    "aten::chunk": views.chunk,
}


@emits(*_VIEWS)
def view(w: ProgramWriter, node: Node) -> None:
    w.define(
        node.output, w.call_or_fail(_VIEWS[qualified_name(node)], "%context", *(w.name(value) for value in node.inputs))
    )


@emits("aten::squeeze")
def squeeze(w: ProgramWriter, node: Node) -> None:
    w.define(node.output, w.call(views.squeeze, w.name(node.input)))


@emits("aten::detach", "aten::alias")
def same_view(w: ProgramWriter, node: Node) -> None:
    w.define(node.output, w.call(views.same_view, w.name(node.input)))


@emits("aten::view", "aten::reshape")
def reshape(w: ProgramWriter, node: Node) -> None:
    tensor, wanted = (w.name(value) for value in node.inputs)
    copies = "true" if node.kind == "aten::reshape" else "false"
    w.define(node.output, w.call_or_fail(views.view_or_copy, "%context", tensor, wanted, copies))


@emits("aten::expand")
def expand(w: ProgramWriter, node: Node) -> None:
    tensor, wanted, _ = node.inputs
    w.define(node.output, w.call_or_fail(views.expand, "%context", w.name(tensor), w.name(wanted)))


@emits("aten::slice.Tensor")
def slice_tensor(w: ProgramWriter, node: Node) -> None:
    tensor, dim, start, end, step = node.inputs
    low, high = bounds(w, start, end)
    found = w.call_or_fail(views.slice_view, "%context", w.name(tensor), w.name(dim), low, high, w.name(step))
    w.define(node.output, found)


@emits("prim::ConstantChunk")
def constant_chunk(w: ProgramWriter, node: Node) -> None:
    chunks, dim = node["chunks"], node["dim"]
    slots = w.alloca(f"[{len(node.outputs)} x ptr]")
    w.call_or_fail(parts_of_chunk, "%context", w.name(node.input), str(chunks), str(dim), slots, str(len(node.outputs)))
    for index, value in enumerate(node.outputs):
        w.define(value, w.emit(f"load ptr, ptr {w.emit(f'getelementptr ptr, ptr {slots}, i64 {index}')}"))


def is_default(value: Value, *allowed: object) -> bool:
    """Return whether an argument has no effect: None, one of the constants ``allowed``, or the device of a tensor,
    which is the CPU."""
    if value.node.kind == "prim::device":
        return True
    if not is_constant(value):
        return False
    constant = value.to_python()
    return constant is None or any(constant is each or constant == each for each in allowed)


@emits("aten::contiguous")
def contiguous(w: ProgramWriter, node: Node) -> None:
    tensor, form = node.inputs
    if not is_default(form, torch.contiguous_format, number_of(torch.contiguous_format)):
        call_torch(w, node)
        return
    w.define(node.output, w.call_or_fail(tensors.contiguous, "%context", w.name(tensor)))


@emits("aten::clone")
def clone(w: ProgramWriter, node: Node) -> None:
    tensor, form = node.inputs
    if not is_default(form, torch.preserve_format, number_of(torch.preserve_format)):
        call_torch(w, node)
        return
    w.define(node.output, w.call_or_fail(tensors.clone, "%context", w.name(tensor)))


@emits("aten::dropout", "aten::dropout_")
def dropout(w: ProgramWriter, node: Node) -> None:
    tensor, _, training = node.inputs
    if not is_default(training, False):
        call_torch(w, node)
        return
    w.define_borrowed(node.output, w.name(tensor))


@emits("aten::cat", "aten::stack")
def join(w: ProgramWriter, node: Node) -> None:
    parts, dim = node.inputs
    stacks = "true" if node.kind == "aten::stack" else "false"
    w.define(node.output, w.call_or_fail(tensors.join_parts, "%context", w.name(parts), w.name(dim), stacks))


# ----------------------------------------------------------------------------------------------------- single elements


@emits("aten::Int.Tensor", "aten::Float.Tensor", "aten::Bool.Tensor")
def element(w: ProgramWriter, node: Node) -> None:
    functions: dict[str, Callable[..., Any]] = {
        "aten::Int": tensors.item_as_int,
        "aten::Float": tensors.item_as_float,
        "aten::Bool": tensors.item_as_bool,
    }
    register = w.name(node.input)
    check = tensors.check_integral if node.kind == "aten::Int" else tensors.check_single
    w.call_or_fail(check, "%context", register)
    w.define(node.output, w.call(functions[node.kind], register))


@emits("aten::item")
def item(w: ProgramWriter, node: Node) -> None:
    register = w.name(node.input)
    is_boxed = is_object(node.output.type)
    w.call_or_fail(tensors.check_one if is_boxed else tensors.check_single, "%context", register)
    if is_boxed:
        w.define(node.output, w.call(tensors.boxed_item, register))
        return
    function = {"i": tensors.item_as_int, "f": tensors.item_as_float, "b": tensors.item_as_bool}
    w.define(node.output, w.call(function[descriptor_of(node.output.type)], register))


@emits(
    *("prim::NumToTensor.Scalar", "prim::NumToTensor.bool", "aten::tensor.int", "aten::tensor.float"),
    *("aten::tensor.bool", "aten::tensor.complex"),
)
def tensor_of_number(w: ProgramWriter, node: Node) -> None:
    value, *options = node.inputs
    letter = descriptor_of(value.type)
    if letter == "c":
        tensor_of_complex(w, node)
        return
    # NumToTensor makes doubles, torch.tensor the default dtype.
    of_float = torch.get_default_dtype() if options else torch.float64
    default = {"i": torch.int64, "f": of_float, "b": torch.bool}.get(letter)
    dtype = _dtype(w, options[0], str(scalar_type(default))) if options and default is not None else None
    if not options and default is not None:
        dtype = str(scalar_type(default))
    is_plain = all(is_default(each, torch.device("cpu"), False) for each in options[1:])
    if dtype is None or not is_plain:
        call_torch(w, node)
        return
    made = w.call_or_fail(tensors.empty, "%context", dtype, "0", "null")
    w.define(node.output, _filled(w, made, letter == "f", w.word_of(w.name(value), value.type)))


def tensor_of_complex(w: ProgramWriter, node: Node) -> None:
    value, *options = node.inputs
    of_default = torch.complex128 if torch.get_default_dtype() is torch.float64 else torch.complex64
    default = str(scalar_type(of_default if options else torch.complex128))
    dtype = _dtype(w, options[0], default) if options else default
    is_plain = all(is_default(each, torch.device("cpu"), False) for each in options[1:])
    known = [str(scalar_type(each)) for each in (torch.complex64, torch.complex128)]
    if dtype not in known or not is_plain:
        raise NotBuildable("'torch.tensor' of a complex number with these options", node.range)
    w.define(node.output, w.call_or_fail(tensors.tensor_of_complex, "%context", w.name(value), dtype))


# --------------------------------------------------------------------------------------------------------- new tensors


def _dtype(w: ProgramWriter, value: Value, default: str) -> str | None:
    """Return the number of the dtype that an argument specifies, ``default`` if the argument is None. Return None if
    the argument may be None at run time."""
    if is_constant(value):
        return default if value.to_python() is None else str(int_word(value.to_python()))
    return None if is_object(value.type) else w.name(value)


def _filled(w: ProgramWriter, made: str, is_float: bool, word: str) -> str:
    return w.call_or_fail(tensors.fill_word, "%context", made, "true" if is_float else "false", word)


def _new(w: ProgramWriter, node: Node, wanted: Value, options: list[Value], default: str) -> str | None:
    """Emit the creation of a tensor with the sizes in a list; return None if ``options`` specify something that a
    library does not support."""
    if not all(
        is_default(each, torch.strided, torch.device("cpu"), False, torch.contiguous_format) for each in options[1:]
    ):
        return None
    dtype = _dtype(w, options[0], default)
    if dtype is None:
        return None
    return w.call_or_fail(tensors.empty_of_list, "%context", dtype, w.name(wanted))


@emits("aten::zeros", "aten::ones", "aten::empty.memory_format", "aten::full")
def new_tensor(w: ProgramWriter, node: Node) -> None:
    wanted, *options = node.inputs
    is_float, word = True, "0"
    default = str(scalar_type(torch.get_default_dtype()))
    if node.kind == "aten::full":
        value, *options = options
        if is_number(value.type) and is_object(value.type):
            full_of_boxed(w, node, wanted, value, options)
            return
        if descriptor_of(value.type) not in ("i", "f", "b"):
            call_torch(w, node)
            return
        is_float = descriptor_of(value.type) == "f"
        word = w.word_of(w.name(value), value.type)
        default = {"i": str(tensors.INT64), "b": str(tensors.BOOL)}.get(descriptor_of(value.type), default)
    made = _new(w, node, wanted, options, default)
    if made is None:
        call_torch(w, node)
        return
    if node.kind == "aten::ones":
        is_float, word = False, "1"
    w.define(node.output, _filled(w, made, is_float, word))


def full_of_boxed(w: ProgramWriter, node: Node, wanted: Value, value: Value, options: list[Value]) -> None:
    """Emit ``torch.full`` of a number whose type is known only at run time.

    Raises:
        NotBuildable: the options are not supported.
    """
    box = w.name(value)
    kind = kind_of(w, box)
    is_complex = w.emit(f"icmp sgt i64 {kind}, {int(Kind.BOOL)}")
    w.fail_if(is_complex, ErrorCode.NOT_BUILT, "'torch.full' of a complex number that is known only at run time")
    is_float = w.emit(f"icmp eq i64 {kind}, {int(Kind.FLOAT)}")
    is_int = w.emit(f"icmp eq i64 {kind}, {int(Kind.INT)}")
    of_others = w.emit(f"select i1 {is_int}, i64 {tensors.INT64}, i64 {tensors.BOOL}")
    default = w.emit(f"select i1 {is_float}, i64 {scalar_type(torch.get_default_dtype())}, i64 {of_others}")
    made = _new(w, node, wanted, options, default)
    if made is None:
        raise NotBuildable("'torch.full' of a boxed number with these options", node.range)
    w.define(node.output, w.call_or_fail(tensors.fill_word, "%context", made, is_float, word_in_box(w, box)))


@emits("aten::arange", "aten::arange.start", "aten::arange.start_step")
def arange(w: ProgramWriter, node: Node) -> None:
    *numbers, dtype, layout, device, pinned = node.inputs
    is_plain = all(is_default(each, torch.strided, torch.device("cpu"), False) for each in (layout, device, pinned))
    wanted = _dtype(w, dtype, str(tensors.INT64))
    if not is_plain or any(value.type != INT for value in numbers) or wanted is None or not _is_range(wanted):
        call_torch(w, node)
        return
    registers = [w.name(value) for value in numbers]
    start, end, step = {1: ["0", *registers, "1"], 2: [*registers, "1"], 3: registers}[len(registers)]
    w.define(node.output, w.call_or_fail(tensors.range_as, "%context", start, end, step, wanted))


_RANGES: Final = tuple(map(str, (tensors.INT64, tensors.INT32, tensors.FLOAT, tensors.DOUBLE)))
"""The dtypes of ranges that libraries compute."""


def _is_range(dtype: str) -> bool:
    """Return whether ``arange`` supports a dtype, which is a constant or a register. A register is accepted: its
    dtype is checked at run time."""
    return dtype in _RANGES or not dtype.isdecimal()


@emits("prim::tolist")
def to_list(w: ProgramWriter, node: Node) -> None:
    tensor, dimensions, kind = node.inputs
    count, number = dimensions.to_python(), kind.to_python()
    if not isinstance(count, int) or not isinstance(number, int) or number > 2:
        raise NotBuildable("'tolist' of a complex tensor", node.range)
    register = w.name(tensor)
    w.call_or_fail(tensors.check_list, "%context", register, str(count), str(number))
    if count == 0:
        w.call_or_fail(tensors.check_single, "%context", register)
        function = (tensors.item_as_int, tensors.item_as_float, tensors.item_as_bool)[number]
        w.define(node.output, w.call(function, register))
        return
    descriptor = w.parts.constants.descriptor(node.output.type)
    data = w.emit(f"inttoptr i64 {field(w, register, 2)} to ptr")
    w.define(node.output, w.call(tensors.list_of_tensor, register, data, "0", descriptor))


def checks_of(type: Type) -> tuple[int, int]:
    """Return the required dtype and rank of a tensor argument; -1 if unknown."""
    if not isinstance(type, TensorType):
        return -1, -1
    dtype = -1 if type.dtype is None else scalar_type(type.dtype)
    return dtype, -1 if type.rank is None else type.rank


@emits(COPY_INTO, "aten::copy_")
def copy_into(w: ProgramWriter, node: Node) -> None:
    target, source = node.inputs[:2]
    if node.kind != COPY_INTO and not (
        isinstance(target.type, TensorType)
        and isinstance(source.type, TensorType)
        and target.type.dtype is not None
        and target.type.dtype is source.type.dtype
    ):
        call_torch(w, node)
        return
    w.call_or_fail(tensors.copy_into, "%context", w.name(target), w.name(source))
    if node.outputs:
        w.define_borrowed(node.output, w.name(target))


@emits(COPY_OUT)
def copy_out(w: ProgramWriter, node: Node) -> None:
    target, source = (w.name(value) for value in node.inputs)
    w.call_or_fail(tensors.copy_out, "%context", target, source)
    w.define_borrowed(node.output, target)


@emits("aten::tensor")
def tensor_of_list(w: ProgramWriter, node: Node) -> None:
    given, dtype, device, requires_grad = node.inputs
    if not is_object(given.type) or given.type == COMPLEX:
        tensor_of_number(w, node)
        return
    depth, element = 0, given.type
    while isinstance(element, ListType):
        depth, element = depth + 1, element.element
    letter = descriptor_of(element)
    defaults = {"i": tensors.INT64, "f": scalar_type(torch.get_default_dtype()), "b": tensors.BOOL}
    is_plain = is_default(device, torch.device("cpu")) and is_default(requires_grad, False)
    wanted = _dtype(w, dtype, str(defaults.get(letter, -1)))
    if depth == 0 or letter not in defaults or not is_plain or wanted not in _WRITTEN:
        raise NotBuildable(f"'torch.tensor' of a {given.type} with these options", node.range)
    w.define(node.output, w.call_or_fail(tensors.tensor_of_items, "%context", w.name(given), str(depth), wanted))


_WRITTEN: Final = tuple(map(str, (tensors.INT64, tensors.FLOAT, tensors.DOUBLE, tensors.BOOL)))
"""The dtypes to which numbers are written."""


def _fill_number(w: ProgramWriter, value: Value) -> tuple[bool, str] | None:
    """Return whether ``value``, with which a tensor is filled, is a float, and its 64-bit word. Return None if it is
    not an int, float or bool."""
    letter = descriptor_of(value.type)
    return (letter == "f", w.word_of(w.name(value), value.type)) if letter in ("i", "f", "b") else None


@emits("aten::fill_.Scalar", "aten::zero_")
def fill(w: ProgramWriter, node: Node) -> None:
    target = w.name(node.inputs[0])
    is_float, word = False, "0"
    if len(node.inputs) > 1:
        number = _fill_number(w, node.inputs[1])
        if number is None:
            call_torch(w, node)
            return
        is_float, word = number
    slot = w.owned_slot()
    made = w.call_or_fail(tensors.empty, "%context", field(w, target, _DTYPE), "0", "null")
    w.line(f"store ptr {_filled(w, made, is_float, word)}, ptr {slot}")
    w.call_or_fail(tensors.copy_into, "%context", target, w.emit(f"load ptr, ptr {slot}"))
    w.call(release, w.take(slot))
    if node.outputs:
        w.define_borrowed(node.output, target)


@emits("aten::zeros_like", "aten::ones_like", "aten::empty_like", "aten::full_like")
def like(w: ProgramWriter, node: Node) -> None:
    source, *options = node.inputs
    is_float, word = False, "1" if node.kind == "aten::ones_like" else "0"
    if node.kind == "aten::full_like":
        value, *options = options
        number = _fill_number(w, value)
        if number is None:
            call_torch(w, node)
            return
        is_float, word = number
    *plain, memory_format = options[1:]
    is_plain = all(is_default(each, torch.strided, torch.device("cpu"), False) for each in plain)
    if not is_plain or not is_default(memory_format, torch.preserve_format):
        call_torch(w, node)
        return
    register = w.name(source)
    dtype = _dtype(w, options[0], field(w, register, _DTYPE))
    if dtype is None:
        call_torch(w, node)
        return
    made = w.call_or_fail(tensors.empty_like, "%context", dtype, register)
    w.define(node.output, _filled(w, made, is_float, word))


@emits("aten::new_zeros", "aten::new_ones", "aten::new_empty", "aten::new_full")
def new_of_the_dtype(w: ProgramWriter, node: Node) -> None:
    """Emit a new tensor of given sizes, by default of the dtype of another one."""
    source, wanted, *options = node.inputs
    is_float, word = False, "1" if node.kind == "aten::new_ones" else "0"
    if node.kind == "aten::new_full":
        value, *options = options
        number = _fill_number(w, value)
        if number is None:
            call_torch(w, node)
            return
        is_float, word = number
    made = _new(w, node, wanted, options, field(w, w.name(source), _DTYPE))
    if made is None:
        call_torch(w, node)
        return
    w.define(node.output, _filled(w, made, is_float, word))
