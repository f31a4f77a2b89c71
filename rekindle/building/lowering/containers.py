"""Lowering of operators on lists and dicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from rekindle.analysis.constants import is_constant
from rekindle.building.lowering.control import word_in_box
from rekindle.building.lowering.emitters import emits
from rekindle.building.lowering.representation import NotBuildable, descriptor_of, is_object
from rekindle.building.lowering.torch_calls import call_torch
from rekindle.building.lowering.writer import OVERFLOW, ProgramWriter
from rekindle.building.lowlevel.compiler import field_index
from rekindle.building.runtime import dicts, lists, sorting, texts, values
from rekindle.building.runtime.objects import ErrorCode, List
from rekindle.ir.graph import Node, Value
from rekindle.ir.types import INT, DictType, EnumType, ListType, TupleType, Type
from rekindle.ops.python.scalars import EXTREMUM_OF_NOTHING


def element_of(value: Value) -> Type:
    """Return the type of the elements of a list."""
    assert isinstance(value.type, ListType)
    return value.type.element


def same(w: ProgramWriter, node: Node) -> None:
    """Define the result of an in-place operator as its first argument."""
    if node.outputs:
        w.define_borrowed(node.output, w.name(node.inputs[0]))


MAX_REPEATS: Final = 1 << 31
"""Maximum number of repetitions of a list or a string."""


@emits("prim::ListConstruct")
def construct(w: ProgramWriter, node: Node) -> None:
    element = element_of(node.output)
    made = w.call(lists.list_of, w.parts.constants.descriptor(element), str(len(node.inputs)))
    for value in node.inputs:
        w.call(lists.append, made, w.owned_word(value, element))
    w.define(node.output, made)


@emits("prim::ListUnpack")
def unpack(w: ProgramWriter, node: Node) -> None:
    given = w.name(node.input)
    length = length_of(w, given)
    w.fail_if(
        w.emit(f"icmp ne i64 {length}, {len(node.outputs)}"),
        ErrorCode.VALUE_ERROR,
        f"expected {len(node.outputs)} elements in a list to unpack, but found another number",
    )
    for index, value in enumerate(node.outputs):
        word = w.call(lists.list_get, given, str(index))
        w.define(value, w.of_word(word, value.type))


def length_of(w: ProgramWriter, register: str) -> str:
    """Emit a read of the length of a list or dict, or of the number of bytes of a string; return the i64."""
    return w.emit(f"load i64, ptr {w.emit(f'getelementptr i64, ptr {register}, i64 2')}")


@emits("python::len")
@emits("aten::len.t", "aten::len.Dict_str", "aten::len.Dict_int", "aten::len.Dict_float", "aten::len.Dict_bool")
def length(w: ProgramWriter, node: Node) -> None:
    w.define(node.output, length_of(w, w.name(node.input)))


@emits("aten::append.t")
def append(w: ProgramWriter, node: Node) -> None:
    items, value = node.inputs
    w.call(lists.append, w.name(items), w.owned_word(value, element_of(items)))
    same(w, node)


@emits("aten::__getitem__.t", "aten::select.t")
def get(w: ProgramWriter, node: Node) -> None:
    items, index = (w.name(value) for value in node.inputs)
    at = w.call_or_fail_below_zero(lists.place_in, "%context", items, index)
    word = (
        w.call(lists.list_get, items, at)
        if is_object(node.output.type)
        else w.emit(f"load i64, ptr {_item(w, items, at)}")
    )
    w.define(node.output, w.of_word(word, node.output.type))


def _item(w: ProgramWriter, items: str, at: str) -> str:
    """Emit the address of element ``at`` of a list."""
    words = w.emit(f"load ptr, ptr {w.emit(f'getelementptr i64, ptr {items}, i64 {_ITEMS}')}")
    return w.emit(f"getelementptr i64, ptr {words}, i64 {at}")


_ITEMS: Final = field_index(List, "items")


@emits("aten::_set_item.t")
def put(w: ProgramWriter, node: Node) -> None:
    items, index, value = node.inputs
    at = w.call_or_fail_below_zero(lists.place_in, "%context", w.name(items), w.name(index))
    if is_object(element_of(items)):
        w.call(lists.list_set, w.name(items), at, w.owned_word(value, element_of(items)))
    else:
        w.line(f"store i64 {w.owned_word(value, element_of(items))}, ptr {_item(w, w.name(items), at)}")
    same(w, node)


@emits("aten::pop.t")
def pop(w: ProgramWriter, node: Node) -> None:
    items, index = (w.name(value) for value in node.inputs)
    at = w.call_or_fail_below_zero(lists.list_pop, "%context", items, index)
    w.define(node.output, w.of_word(w.call(lists.list_remove, items, at), node.output.type))


@emits("aten::Delete.t")
def delete(w: ProgramWriter, node: Node) -> None:
    items, index = node.inputs
    at = w.call_or_fail_below_zero(lists.place_in, "%context", w.name(items), w.name(index))
    word = w.call(lists.list_remove, w.name(items), at)
    w.call(lists.release_word, w.parts.constants.descriptor(element_of(items)), word)


@emits("aten::insert.t")
def insert(w: ProgramWriter, node: Node) -> None:
    items, index, value = node.inputs
    w.call(lists.list_insert, w.name(items), w.name(index), w.owned_word(value, element_of(items)))


@emits("aten::clear.t", "aten::reverse.t", "aten::extend.t")
def change(w: ProgramWriter, node: Node) -> None:
    functions: dict[str, Callable[..., Any]] = {
        "aten::clear": lists.list_clear,
        "aten::reverse": lists.list_reverse,
        "aten::extend": lists.list_extend,
    }
    w.call(functions[node.kind], *(w.name(value) for value in node.inputs))
    same(w, node)


@emits("aten::list.t", "aten::copy.t", "aten::add.t", "aten::mul.left_t")
def make(w: ProgramWriter, node: Node) -> None:
    if node.kind == "aten::mul":
        too_many = w.emit(f"icmp sgt i64 {w.name(node.inputs[1])}, {MAX_REPEATS}")
        w.fail_if(too_many, ErrorCode.MEMORY_ERROR, "a list is repeated too often")
    functions: dict[str, Callable[..., Any]] = {
        "aten::list": lists.list_copy,
        "aten::copy": lists.list_copy,
        "aten::add": lists.list_concat,
        "aten::mul": lists.list_repeat,
    }
    w.define(node.output, w.call(functions[node.kind], *(w.name(value) for value in node.inputs)))


@emits("aten::mul.right_")
def repeat_right(w: ProgramWriter, node: Node) -> None:
    count, items = (w.name(value) for value in node.inputs)
    too_many = w.emit(f"icmp sgt i64 {count}, {MAX_REPEATS}")
    w.fail_if(too_many, ErrorCode.MEMORY_ERROR, "a list is repeated too often")
    w.define(node.output, w.call(lists.list_repeat, items, count))


@emits("aten::mul_.t")
def repeat_in_place(w: ProgramWriter, node: Node) -> None:
    items, count = (w.name(value) for value in node.inputs)
    too_many = w.emit(f"icmp sgt i64 {count}, {MAX_REPEATS}")
    w.fail_if(too_many, ErrorCode.MEMORY_ERROR, "a list is repeated too often")
    w.call(lists.list_repeat_in_place, items, count)
    same(w, node)


@emits("aten::add_.t")
def extend_in_place(w: ProgramWriter, node: Node) -> None:
    w.call(lists.list_extend, *(w.name(value) for value in node.inputs))
    same(w, node)


@emits("aten::slice.t")
def slice_list(w: ProgramWriter, node: Node) -> None:
    items, start, end, step = node.inputs
    low, high = bounds(w, start, end, step)
    result = w.call_or_fail(lists.list_slice, "%context", w.name(items), low, high, w.name(step))
    w.define(node.output, result)


def bounds(w: ProgramWriter, start: Value, end: Value, step: Value | None = None) -> tuple[str, str]:
    """Emit the two bounds of a slice. A bound that is None becomes the end of the list at which the steps begin or
    end."""
    first, last = "0", str(2**63 - 1)
    if step is not None and not (is_constant(step) and step.to_python() == 1):
        backwards = w.emit(f"icmp slt i64 {w.name(step)}, 0")
        first = w.emit(f"select i1 {backwards}, i64 {2**63 - 1}, i64 0")
        last = w.emit(f"select i1 {backwards}, i64 {-(2**63)}, i64 {2**63 - 1}")
    return _bound(w, start, first), _bound(w, end, last)


def _bound(w: ProgramWriter, value: Value, missing: str) -> str:
    if not is_object(value.type):
        return w.name(value)
    if is_constant(value):
        constant = value.to_python()
        return missing if constant is None else str(constant)
    register = w.name(value)
    slot = w.alloca("i64")
    w.line(f"store i64 {missing}, ptr {slot}")
    given, after = w.fresh("given"), w.fresh("after")
    w.line(f"br i1 {w.emit(f'icmp eq ptr {register}, null')}, label %{after}, label %{given}")
    w.start_block(given)
    w.line(f"store i64 {word_in_box(w, register)}, ptr {slot}")
    w.line(f"br label %{after}")
    w.start_block(after)
    return w.emit(f"load i64, ptr {slot}")


@emits(*(f"aten::__contains__.{kind}_list" for kind in ("int", "float", "bool", "str")))
def contains(w: ProgramWriter, node: Node) -> None:
    items, value = node.inputs
    register = w.converted(w.name(value), value.type, element_of(items))
    w.define(node.output, w.call(values.list_contains, w.name(items), w.word_of(register, element_of(items))))


@emits("aten::index.list_int", "aten::index.list_float", "aten::index.list_bool", "aten::index.list_str")
def index_of(w: ProgramWriter, node: Node) -> None:
    items, value = node.inputs
    at = w.call(values.list_index, w.name(items), w.word_of(w.name(value), value.type))
    w.fail_if(w.emit(f"icmp slt i64 {at}, 0"), ErrorCode.VALUE_ERROR, "the value is not in the list")
    w.define(node.output, at)


@emits("aten::count.int", "aten::count.float", "aten::count.bool", "aten::count.str")
def count(w: ProgramWriter, node: Node) -> None:
    items, value = node.inputs
    if not isinstance(items.type, ListType):
        raise NotBuildable(f"'{node.kind}' of a {items.type}", node.range)
    w.define(node.output, w.call(values.list_count, w.name(items), w.word_of(w.name(value), value.type)))


@emits("aten::remove.int", "aten::remove.float", "aten::remove.bool", "aten::remove.str")
def remove(w: ProgramWriter, node: Node) -> None:
    items, value = node.inputs
    at = w.call(values.list_index, w.name(items), w.word_of(w.name(value), value.type))
    w.fail_if(w.emit(f"icmp slt i64 {at}, 0"), ErrorCode.VALUE_ERROR, "list.remove(x): x not in list")
    word = w.call(lists.list_remove, w.name(items), at)
    w.call(lists.release_word, w.parts.constants.descriptor(element_of(items)), word)


@emits(
    *("aten::eq.int_list", "aten::eq.float_list", "aten::eq.bool_list", "aten::eq.str_list"),
    *("aten::ne.int_list", "aten::ne.float_list", "aten::ne.bool_list", "aten::ne.str_list"),
)
def lists_equal(w: ProgramWriter, node: Node) -> None:
    found = w.call(values.objects_equal, *(w.name(value) for value in node.inputs))
    w.define(node.output, found if node.kind == "aten::eq" else w.emit(f"xor i1 {found}, true"))


_NUMBERS: Final = ("int", "float", "bool")


@emits(
    *(f"prim::{name}.self_{kind}" for name in ("min", "max") for kind in _NUMBERS),
    *(f"aten::{name}.{kind}" for name in ("sum", "any", "all") for kind in _NUMBERS),
)
def fold(w: ProgramWriter, node: Node) -> None:
    """Lower ``min``, ``max``, ``sum``, ``any`` and ``all`` of a list of numbers; those of a tensor are calls of
    PyTorch."""
    if not isinstance(node.input.type, ListType) or is_object(node.input.type.element):
        call_torch(w, node)
        return
    functions: dict[str, Callable[..., Any]] = {
        "prim::min": sorting.list_min,
        "prim::max": sorting.list_max,
        "aten::sum": sorting.list_sum,
        "aten::any": sorting.list_any,
        "aten::all": sorting.list_all,
    }
    items = w.name(node.input)
    if node.kind in ("prim::min", "prim::max"):
        empty = w.emit(f"icmp eq i64 {length_of(w, items)}, 0")
        name = node.kind.partition("::")[2]
        w.fail_if(empty, ErrorCode.VALUE_ERROR, EXTREMUM_OF_NOTHING[name])
    word = w.call(functions[node.kind], items)
    wanted = node.output.type
    if node.kind == "aten::sum" and wanted == INT:
        # A sum that overflows 64 bits is an error.
        w.fail_if(w.call(sorting.sum_overflows, items), ErrorCode.OVERFLOW_ERROR, OVERFLOW[1])
    w.define(node.output, word if word_is_flag(node) else w.of_word(word, wanted))


def word_is_flag(node: Node) -> bool:
    """Return whether the runtime function of a reduction of a list returns a bool (``any``, ``all``), not a 64-bit
    word."""
    return node.kind in ("aten::any", "aten::all")


@emits(*(f"aten::{name}.{kind}" for name in ("sort", "sorted") for kind in (*_NUMBERS, "str")), "aten::sorted.any")
def sort(w: ProgramWriter, node: Node) -> None:
    items = node.inputs[0]
    if not _is_ordered(element_of(items)):
        raise NotBuildable(f"'{node.kind}' of a {items.type}", node.range)
    flag = w.name(node.inputs[1]) if len(node.inputs) > 1 else "false"
    w.fail_if(w.call(sorting.has_nan, w.name(items)), ErrorCode.NOT_BUILT, "a list that holds NaN is sorted")
    if node.kind == "aten::sort":
        w.call(sorting.list_sort, w.name(items), flag)
        return
    made = w.call(lists.list_copy, w.name(items))
    w.call(sorting.list_sort, made, flag)
    w.define(node.output, made)


def _is_ordered(type: Type) -> bool:
    """Return whether native libraries can sort lists of values of a type: numbers, strings, and tuples of these."""
    if isinstance(type, TupleType):
        return all(map(_is_ordered, type.contained))
    return descriptor_of(type) in ("i", "f", "b", "s") and not isinstance(type, EnumType)


@emits("aten::list")
def list_of_text(w: ProgramWriter, node: Node) -> None:
    if descriptor_of(node.input.type) != "s":
        raise NotBuildable(f"'list' of a {node.input.type}", node.range)
    w.define(node.output, w.call(texts.characters_of, w.name(node.input)))


# --------------------------------------------------------------------------------------------------------------- dicts

_KEYS: Final = ("str", "int", "float", "bool")


def _dicts(*names: str) -> tuple[str, ...]:
    """Return the overloads of dict operators for keys of all types: those of TorchScript, and the one for other
    keys."""
    others = [f"python::{_operator(name)}{'.default' if 'default_' in name else ''}" for name in names]
    return (*(f"{name}{key}" for name in names for key in _KEYS), *others)


def _operator(kind: str) -> str:
    """Return the name of an operator without its namespace and its overload."""
    return kind.partition("::")[2].partition(".")[0]


def dict_type(value: Value) -> DictType:
    assert isinstance(value.type, DictType)
    if descriptor_of(value.type.key) not in ("i", "f", "b", "s"):
        raise NotBuildable(f"native libraries have no dicts with keys of type {value.type.key}")
    return value.type


@emits("prim::DictConstruct")
def construct_dict(w: ProgramWriter, node: Node) -> None:
    type = dict_type(node.output)
    made = w.call(dicts.dict_of, w.parts.constants.descriptor(type.key), w.parts.constants.descriptor(type.value))
    for key, value in zip(node.inputs[::2], node.inputs[1::2], strict=True):
        w.call(dicts.dict_set, made, w.owned_word(key, type.key), w.owned_word(value, type.value))
    w.define(node.output, made)


def _entry(w: ProgramWriter, node: Node) -> str:
    """Emit a lookup of a key in a dict; return the index of its entry, -1 if there is none.

    Raises:
        NotBuildable: the dict has keys of another type.
    """
    given, key = node.inputs[:2]
    wanted = dict_type(given).key
    if descriptor_of(key.type) != descriptor_of(wanted):
        raise NotBuildable(f"a {key.type} is looked up among keys of type {wanted}", node.range)
    return w.call(dicts.dict_find, w.name(given), w.word_of(w.name(key), key.type))


@emits(*_dicts("aten::__getitem__.Dict_"))
def get_entry(w: ProgramWriter, node: Node) -> None:
    entry = _entry(w, node)
    w.fail_if(w.emit(f"icmp slt i64 {entry}, 0"), ErrorCode.KEY_ERROR, "the dict has no such key")
    w.define(node.output, w.of_word(w.call(dicts.dict_get, w.name(node.inputs[0]), entry), node.output.type))


@emits(*_dicts("aten::__contains__."))
def contains_key(w: ProgramWriter, node: Node) -> None:
    if isinstance(node.inputs[0].type, ListType):
        contains(w, node)
        return
    w.define(node.output, w.emit(f"icmp sge i64 {_entry(w, node)}, 0"))


@emits(*_dicts("aten::_set_item."))
def put_entry(w: ProgramWriter, node: Node) -> None:
    given, key, value = node.inputs
    type = dict_type(given)
    w.call(dicts.dict_set, w.name(given), w.owned_word(key, type.key), w.owned_word(value, type.value))


@emits(*_dicts("aten::Delete.Dict_"))
def delete_entry(w: ProgramWriter, node: Node) -> None:
    entry = _entry(w, node)
    w.fail_if(w.emit(f"icmp slt i64 {entry}, 0"), ErrorCode.KEY_ERROR, "the dict has no such key")
    word = w.call(dicts.dict_remove, w.name(node.inputs[0]), entry)
    w.call(lists.release_word, w.parts.constants.descriptor(dict_type(node.inputs[0]).value), word)


@emits(*_dicts("aten::pop.Dict_"))
def pop_entry(w: ProgramWriter, node: Node) -> None:
    entry = _entry(w, node)
    w.fail_if(w.emit(f"icmp slt i64 {entry}, 0"), ErrorCode.KEY_ERROR, "the dict has no such key")
    w.define(node.output, w.of_word(w.call(dicts.dict_remove, w.name(node.inputs[0]), entry), node.output.type))


@emits(
    *_dicts("aten::get."),
    *_dicts("aten::get.default_"),
    *_dicts("aten::setdefault."),
    *_dicts("aten::pop.Dict_default_"),
)
def get_or_default(w: ProgramWriter, node: Node) -> None:
    """Lower ``get``, ``setdefault`` and ``pop`` of a dict, with a default."""
    given, key = node.inputs[:2]
    value_type = dict_type(given).value
    entry = _entry(w, node)
    missing, found, joined = w.fresh("missing"), w.fresh("found"), w.fresh("joined")
    w.line(f"br i1 {w.emit(f'icmp slt i64 {entry}, 0')}, label %{missing}, label %{found}")
    w.start_block(missing)
    if len(node.inputs) > 2:
        default = w.owned_as(node.inputs[2], node.output.type)
        if _operator(node.kind) == "setdefault":
            word = w.owned_word(node.inputs[2], value_type)
            w.call(dicts.dict_set, w.name(given), w.owned_word(key, dict_type(given).key), word)
    else:
        default = "null"
    ends = [(default, w.block)]
    w.line(f"br label %{joined}")
    w.start_block(found)
    take = dicts.dict_remove if _operator(node.kind) == "pop" else dicts.dict_get
    word = w.call(take, w.name(given), entry)
    ends.append((w.converted(w.of_word(word, value_type), value_type, node.output.type), w.block))
    w.line(f"br label %{joined}")
    w.start_block(joined)
    w.define_phi(node.output, ", ".join(f"[{register}, %{label}]" for register, label in ends))


@emits(*_dicts("aten::keys."), *_dicts("aten::values."), *_dicts("aten::copy.Dict_"), *_dicts("aten::dict.Dict_"))
def read_dict(w: ProgramWriter, node: Node) -> None:
    functions = {
        "keys": dicts.dict_keys,
        "values": dicts.dict_values,
        "copy": dicts.dict_copy,
        "dict": dicts.dict_copy,
    }
    w.define(node.output, w.call(functions[_operator(node.kind)], w.name(node.input)))


@emits(*(f"aten::popitem.{key}" for key in _KEYS))
def pop_item(w: ProgramWriter, node: Node) -> None:
    given = w.name(node.input)
    entry = w.call(dicts.last_entry, given)
    w.fail_if(w.emit(f"icmp slt i64 {entry}, 0"), ErrorCode.KEY_ERROR, "popitem(): dictionary is empty")
    fields = w.parts.constants.descriptor(node.output.type)
    w.define(node.output, w.call(dicts.pop_entry, given, entry, fields))


@emits(*_dicts("aten::items."))
def items(w: ProgramWriter, node: Node) -> None:
    element = element_of(node.output)
    assert isinstance(element, TupleType)
    w.define(node.output, w.call(dicts.dict_items, w.name(node.input), w.parts.constants.descriptor(element)))


@emits(*_dicts("aten::clear."))
def clear_dict(w: ProgramWriter, node: Node) -> None:
    w.call(dicts.dict_clear, w.name(node.input))


@emits(*_dicts("aten::update."))
def update_dict(w: ProgramWriter, node: Node) -> None:
    w.call(dicts.dict_update, *(w.name(value) for value in node.inputs))
