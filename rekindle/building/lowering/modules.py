"""Lowering of attributes of modules and of instances of classes.

The modules of a program are known when the library is built: a value that is a module has no register, and an attribute
is a word of the instance of the library.
"""

from __future__ import annotations

from typing import Final

import torch

from rekindle.building.lowering.emitters import emits
from rekindle.building.lowering.parts import MISSING, ModuleValue
from rekindle.building.lowering.representation import NotBuildable, fields_of_class, is_object
from rekindle.building.lowering.writer import ProgramWriter
from rekindle.building.lowlevel.compiler import field_index
from rekindle.building.runtime.dicts import new_record
from rekindle.building.runtime.instances import Instance
from rekindle.building.runtime.memory import fields_of_record, release
from rekindle.building.runtime.objects import ErrorCode
from rekindle.ir.graph import Node, Value
from rekindle.ir.types import ClassType

_ATTRIBUTES: Final = field_index(Instance, "attributes")


def word_place(w: ProgramWriter, index: int) -> str:
    """Emit the address of the 64-bit word of attribute ``index`` in the instance, which is the context of a call."""
    place = w.emit(f"getelementptr i64, ptr %context, i64 {_ATTRIBUTES}")
    return w.emit(f"getelementptr i64, ptr {w.emit(f'load ptr, ptr {place}')}, i64 {index}")


def module_of(w: ProgramWriter, value: Value) -> ModuleValue:
    """Return the module that a value of the graph refers to.

    Raises:
        NotBuildable: the module is known only at run time.
    """
    found = w.modules.get(value)
    if found is None:
        raise NotBuildable("a module that is known only at run time", value.node.range)
    return found


@emits("prim::GetAttr")
def get_attribute(w: ProgramWriter, node: Node) -> None:
    owner, name = node.input, node.get_string("name")
    type = owner.type
    if not isinstance(type, ClassType):
        raise NotBuildable(f"an attribute of a {type}", node.range)
    if not type.is_module:
        fields = w.call(fields_of_record, w.name(owner))
        place = w.emit(f"getelementptr i64, ptr {fields}, i64 {attribute_index(type, name)}")
        w.define_borrowed(node.output, w.of_word(w.emit(f"load i64, ptr {place}"), node.output.type))
        return
    given = module_of(w, owner)
    value = getattr(given.module, name, MISSING)
    if isinstance(value, torch.nn.Module):
        w.modules[node.output] = ModuleValue(value, f"{given.path}.{name}".lstrip("."))
        return
    index = w.parts.attributes.index(given.module, given.path, name, type.attributes[name].type, value)
    register = w.of_word(w.emit(f"load i64, ptr {word_place(w, index)}"), node.output.type)
    if value is MISSING:
        if not is_object(node.output.type):
            raise NotBuildable(f"the attribute '{name}' has no value when the library is built", node.range)
        missing = w.emit(f"icmp eq ptr {register}, null")
        w.fail_if(missing, ErrorCode.NOT_BUILT, f"the attribute '{name}' had no value when the library was built")
    w.define_borrowed(node.output, register)


@emits("prim::SetAttr")
def set_attribute(w: ProgramWriter, node: Node) -> None:
    owner, value = node.inputs
    name, type = node.get_string("name"), owner.type
    if not isinstance(type, ClassType):
        raise NotBuildable(f"an attribute of a {type}", node.range)
    wanted = type.attributes[name].type
    if type.is_module:
        given = module_of(w, owner)
        index = w.parts.attributes.index(given.module, given.path, name, wanted, getattr(given.module, name, MISSING))
        place = word_place(w, index)
    else:
        fields = w.call(fields_of_record, w.name(owner))
        place = w.emit(f"getelementptr i64, ptr {fields}, i64 {attribute_index(type, name)}")
    word = w.owned_word(value, wanted)
    old = w.emit(f"load i64, ptr {place}")
    w.line(f"store i64 {word}, ptr {place}")
    if is_object(wanted):
        w.call(release, w.emit(f"inttoptr i64 {old} to ptr"))


def attribute_index(type: ClassType, name: str) -> int:
    """Return the index of the field ``name`` in an instance of a script class."""
    return list(type.attributes).index(name)


@emits("prim::CreateObject")
def create_object(w: ProgramWriter, node: Node) -> None:
    type = node.output.type
    if not isinstance(type, ClassType) or type.is_module or type.library_methods is not None:
        raise NotBuildable(f"native libraries make no objects of class {type}", node.range)
    w.parts.classes[type] = None
    w.define(node.output, w.call(new_record, fields_text(w, type), str(len(type.attributes))))


def fields_text(w: ProgramWriter, type: ClassType) -> str:
    """Return the address of the descriptor of a class: the types of its fields, encoded as a string."""
    return w.parts.constants.bytes(fields_of_class(type).encode())
