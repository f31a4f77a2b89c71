"""Print the definitions of named types for archives."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING

from rekindle.errors import CompileError, UnsupportedError
from rekindle.frontend.python_printer.constants import format_constant
from rekindle.frontend.python_printer.names import is_identifier
from rekindle.ir.attributes import infer_type
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.text.literals import format_string
from rekindle.ir.types import ClassType, EnumType, InterfaceType, TupleType

if TYPE_CHECKING:
    from rekindle.frontend.python_printer.printer import PythonPrinter


def print_class(printer: PythonPrinter, owner: ClassType, basename: str) -> None:
    """Print the definition of a module class (``class Net(Module):``) or of another class (``class Pair:``):
    attributes, constants, methods and hooks. The methods are compiled by this; methods of classes other than modules
    that do not compile are left out.

    Raises:
        CompileError: a method or hook of a module does not compile.
        UnsupportedError: source cannot express a constant or a method.
    """
    methods = compiled_methods(owner)
    hook_names = _named_hooks(owner)
    printer.line(f"class {basename}{'(Module)' if owner.is_module else ''}:")
    with printer.indented():
        if owner.is_module:
            for title, kind in (("__parameters__", "parameter"), ("__buffers__", "buffer")):
                _names(printer, title, [slot.name for slot in owner.attributes.values() if slot.kind == kind])
            for title, hooks in (("__forward_pre_hooks__", owner.pre_hooks), ("__forward_hooks__", owner.hooks)):
                if hooks:
                    _names(printer, title, [hook_names[hook] for hook in hooks])
        for index, slot in enumerate(owner.attributes.values()):
            _slot(printer, slot.name, printer.spell(slot.type), is_first=index == 0)
        for name, value in owner.constants.items():
            _constant(printer, name, value)
        # Static methods are functions whose names begin with that of the class.
        for method in methods:
            printer.print_function(method)
        for hook, name in hook_names.items():
            printer.print_function(hook, name)
        if not (owner.is_module or owner.attributes or owner.constants or methods):
            printer.line("pass")


def compiled_methods(owner: ClassType) -> list[GraphFunction]:
    """Compile the methods of a class and return them. Methods that they call by ``super()`` are thereby added to the
    class, and are included. Methods of classes other than modules are left out if they do not compile: no compiled
    program calls them.

    Raises:
        CompileError: the method of a module does not compile.
    """
    done: dict[str, bool] = {}
    while pending := [name for name in owner.methods if name not in done]:
        for name in pending:
            done[name] = owner.is_module or _compiles(owner.methods[name])
            if owner.is_module:
                owner.methods[name].graph  # noqa: B018 (compiles it)
    return [method for name, method in owner.methods.items() if done[name]]


def _compiles(method: GraphFunction) -> bool:
    try:
        method.graph  # noqa: B018 (compiles it)
    except CompileError:
        return False
    return True


def _named_hooks(owner: ClassType) -> dict[GraphFunction, str]:
    """Return the hooks of a class, each once, with unique names: ``hook``, ``hook_1``. Hooks that are different
    functions may have the same name in Python."""
    found: dict[GraphFunction, str] = {}
    taken = set(owner.methods)
    for hook in (*owner.pre_hooks, *owner.hooks):
        if hook not in found:
            names = (f"{hook.basename}_{number}" if number else hook.basename for number in count())
            found[hook] = next(name for name in names if name not in taken)
            taken.add(found[hook])
    return found


def _names(printer: PythonPrinter, title: str, names: Sequence[str]) -> None:
    printer.line(f"{title} = [{''.join(f'{format_string(name)}, ' for name in names)}]")


def _slot(printer: PythonPrinter, name: str, type: str, is_first: bool) -> None:
    if is_identifier(name):
        printer.line(f"{name} : {type}")
        return
    # The names of a container's items are not identifiers.
    if is_first:
        printer.line("__annotations__ = []")
    printer.line(f"__annotations__[{format_string(name)}] = {type}")


def _constant(printer: PythonPrinter, name: str, value: object) -> None:
    type = infer_type(value)
    if type is None:
        raise UnsupportedError(f"the constant '{name}' is of a kind that cannot be written as source: {value!r}")
    text = format_constant(value, type, printer.spell, printer.constants)
    printer.line(f"{name} : Final[{printer.spell(type)}] = {text}")


def print_named_tuple(printer: PythonPrinter, type: TupleType, basename: str) -> None:
    """Print ``class Pair(NamedTuple):`` with its fields."""
    printer.line(f"class {basename}(NamedTuple):")
    with printer.indented():
        for name, element in zip(type.fields or (), type.elements, strict=True):
            printer.line(f"{name} : {printer.spell(element)}")


def print_interface(printer: PythonPrinter, type: InterfaceType, basename: str) -> None:
    """Print ``class Shape(Interface):`` with the signatures of its methods."""
    printer.line(f"class {basename}({'ModuleInterface' if type.is_module else 'Interface'}):")
    with printer.indented():
        for name, schema in type.methods.items():
            arguments = "".join(f", {item.name}: {printer.spell(item.type)}" for item in schema.arguments[1:])
            printer.line(f"def {name}(self{arguments}) -> {printer.spell(schema.returns[0].type)}:")
            printer.line("  pass")


def print_enum(printer: PythonPrinter, type: EnumType, basename: str) -> None:
    """Print ``class Color(Enum):`` with its members."""
    printer.line(f"class {basename}(Enum):")
    with printer.indented():
        for name, member in type.members.items():
            value = member.value if isinstance(member, enum.Enum) else member
            text = format_constant(value, type.value_type, printer.spell, printer.constants)
            printer.line(f"{name} = {text}")
