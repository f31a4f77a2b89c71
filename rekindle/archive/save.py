"""Save programs as archives that PyTorch, LibTorch and this package read."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import torch

from rekindle.analysis.attribute_writes import nodes_within
from rekindle.archive.code.debug_records import write_debug_records
from rekindle.archive.code.save_names import SaveNames
from rekindle.archive.foreign_readers import differences
from rekindle.archive.pickles.storages import StorageTable
from rekindle.archive.pickles.writer import ValuePickler
from rekindle.archive.python_results import RECORD, write_results
from rekindle.archive.writer import ArchiveWriter, Target
from rekindle.errors import UNKNOWN_RANGE, ArchiveWarning, CompileError, SaveError
from rekindle.errors.gc_pause import gc_paused
from rekindle.frontend.python_printer import ConstantTable, NamedType, PythonPrinter, named_types_in
from rekindle.frontend.python_printer.named_types import compiled_methods
from rekindle.frontend.python_printer.names import spell
from rekindle.frontend.recursion_limit import room_to_recurse
from rekindle.ir.graph import Graph, Node
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.schema import Argument, FunctionSchema
from rekindle.ir.types import (
    BOOL,
    LIBRARY_CLASSES,
    ClassAttribute,
    ClassType,
    FunctionType,
    TupleType,
    Type,
    holds_set,
)
from rekindle.ops.python.values import type_of_value
from rekindle.program import saving
from rekindle.program.calling import call
from rekindle.program.function import Function
from rekindle.program.modules.module import ScriptModule
from rekindle.program.modules.state_dicts import warn_of_lost_overrides
from rekindle.program.saving import ExtraFiles

_WRAPPER: Final = "__torch__.PlaceholderModule"
"""Name of the class of the module that a function is saved as."""


def save(m: ScriptModule | Function, f: Target, _extra_files: ExtraFiles | None = None) -> None:
    """Write a compiled module or function to an archive.

    :func:`rekindle.load` and ``torch.jit.load`` read the result. A function is saved as a module whose ``forward`` is
    the function. The same program results in the same bytes. A file at the path is replaced when the new one is
    complete.

    Args:
        m: a compiled module or function.
        f: a path, or a file open for writing.
        _extra_files: texts or bytes by name, which are stored beside the program.

    Raises:
        SaveError: ``m`` is not compiled, holds a value that archives cannot hold, or calls Python. Nothing is written.
        UnsupportedError: ``m`` has a function that nests too deeply. Nothing is written.
        ArchiveError: archives cannot have an extra file of such a name. Nothing is written.
        OSError: the file cannot be written. A file that was at the path is unchanged.
        TypeError: ``f`` is not a path or a file.

    Warns:
        ArchiveWarning: ``torch.jit.load`` rejects the archive, or reads another program in it.

    Example:
        >>> rekindle.save(rekindle.script(torch.nn.ReLU()), "relu.pt", {"note.txt": "no parameters"})
        >>> files = {"note.txt": ""}
        >>> rekindle.load("relu.pt", _extra_files=files)(torch.tensor([-1.0]))
        tensor([0.])
        >>> files["note.txt"]
        b'no parameters'
    """
    archive_of(m, _extra_files).write(f)


def archive_of(m: ScriptModule | Function, extra_files: ExtraFiles | None = None) -> ArchiveWriter:
    """Return the archive of a program, ready to be written to a file.

    Raises:
        SaveError: ``m`` is not compiled, holds a value that archives cannot hold, or calls Python.
        UnsupportedError: ``m`` has a function that nests too deeply.
        UnsafeArchiveError: archives cannot have an extra file of such a name.
    """
    function = ""
    if isinstance(m, Function):
        function, m = m.name, _module_of(m)
    if not isinstance(m, ScriptModule):
        hint = "compile it first: rekindle.script(module)" if isinstance(m, torch.nn.Module) else None
        raise SaveError(f"only compiled modules and functions can be saved, not a {type(m).__name__}", hint=hint)
    with gc_paused(), room_to_recurse(UNKNOWN_RANGE):
        saver = _Saver(function)
        archive = saver.archive(m._as_saved(), extra_files or {})
        problems = [_described(node, why) for node, why in differences(saver.graphs())]
    if problems:
        warnings.warn(ArchiveWarning(list(dict.fromkeys(problems))), stacklevel=_frames_of_the_package())
    return archive


def _described(node: Node, why: str) -> str:
    place = node.range.highlight()
    return f"{why}\n{place}" if place else why


def _frames_of_the_package() -> int:
    """Return the ``stacklevel`` of a warning to the caller of the package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "rekindle":
        frame, level = frame.f_back, level + 1
    return level


def _module_of(function: Function) -> ScriptModule:
    """Return a module whose ``forward`` is the function."""
    owner = ClassType(_WRAPPER, is_module=True)
    owner.add_attribute("training", BOOL)
    record = function._record
    graph = record.graph.copy()
    graph.block.insert_input(0, "self", owner)
    schema = record.schema
    forward = GraphFunction(f"{_WRAPPER}.forward", docstring=record.docstring)
    forward.define(
        graph, FunctionSchema("forward", "", (Argument("self", owner), *schema.arguments), tuple(schema.returns))
    )
    owner.methods["forward"] = forward
    module = ScriptModule._of_type(owner)
    module.__dict__["training"] = True
    return module


def _check_no_sets(type: ClassType) -> None:
    """Reject methods that take or return sets: without Python they are dicts of bools.

    Raises:
        SaveError: a method takes or returns a set.
    """
    for name, method in type.methods.items():
        if any(holds_set(item.type) for item in (*method.schema.arguments, *method.schema.returns)):
            raise SaveError(
                f"'{name}' takes or gives a set, which TorchScript does not know",
                hint="take a list, and give sorted(s); within the program sets can stay",
            )


class _Saver:
    """Builder of the contents of one archive."""

    def __init__(self, function: str = "") -> None:
        self.function = function
        """Name of the saved function, for errors; empty if a module is saved."""
        self.names = SaveNames()
        self.constants = ConstantTable()
        self.printers: dict[str, PythonPrinter] = {}
        self.printed: dict[NamedType, None] = {}

    def archive(self, module: ScriptModule, extra_files: ExtraFiles) -> ArchiveWriter:
        writer = ArchiveWriter()
        for name, content in extra_files.items():
            writer.add(f"extra/{name}", content.encode() if isinstance(content, str) else bytes(content))
        root = module._rekindle_type
        _check_no_sets(root)
        for part in module.modules():
            if isinstance(part, ScriptModule):
                warn_of_lost_overrides(part, part._rekindle_python_class, part._rekindle_type)
        self.names.name_of(root)
        self._add_pickle(writer, "data", module, root)
        self._print_all(self.names.named())
        for qualifier, printer in self.printers.items():
            member = f"code/{qualifier.replace('.', '/')}.py"
            writer.add(member, printer.text.encode(), compress=True)
            writer.add(f"{member}.debug_pkl", write_debug_records(printer.text, printer.ranges), compress=True)
        values = tuple(self.constants.values)
        self._print_all([named for value in values for named in named_types_in(type_of_value(value))])
        self._add_pickle(writer, "constants", values, TupleType(tuple(type_of_value(value) for value in values)))
        if results := write_results(module):
            writer.add(RECORD, results)
        version = version_for(self.graphs())
        writer.add(".data/version" if version > 5 else "version", f"{version}\n".encode())
        writer.add("byteorder", sys.byteorder.encode())
        writer.add(".data/serialization_id", writer.serialization_id().encode())
        return writer

    # ----------------------------------------------------------------------------------------------------------- values

    def _add_pickle(self, writer: ArchiveWriter, name: str, value: object, type: Type) -> None:
        storages = StorageTable()
        pickler = ValuePickler(storages, self.names.name_of, self._spell, _state_of, _attributes_of)
        pickle = pickler.pickle(value, type)
        for key, content in storages.contents():
            writer.add(f"{name}/{key}", content)
        writer.add(f"{name}.pkl", pickle)

    def _spell(self, type: Type) -> str:
        return spell(type, self.names.name_of)

    # ------------------------------------------------------------------------------------------------------------- code

    def _print_all(self, pending: list[NamedType]) -> None:
        """Print the definitions of these types, and of every named type that a printed definition mentions. Each is
        printed to the source of its module.

        Raises:
            SaveError: a definition cannot be written as source.
        """
        while pending:
            found = pending.pop(0)
            name = self.names.name_of(found)
            if found in self.printed or name.startswith(LIBRARY_CLASSES):
                continue
            self.printed[found] = None
            printer = self._printer(name.rpartition(".")[0])
            before = len(printer.dependencies)
            try:
                printer.print_named_type(found)
            except CompileError as error:
                known = self.function if name == _WRAPPER else name.removeprefix("__torch__.")
                raise SaveError(f"'{known}' cannot be saved: {error}") from None
            pending += printer.dependencies[before:]

    def _printer(self, qualifier: str) -> PythonPrinter:
        found = self.printers.get(qualifier)
        if found is None:
            found = self.printers[qualifier] = PythonPrinter(self.constants, self.names.name_of, importable=True)
        return found

    def graphs(self) -> Iterator[Graph]:
        for type in self.printed:
            if isinstance(type, FunctionType):
                yield type.function.graph
            elif isinstance(type, ClassType):
                for method in (*compiled_methods(type), *type.static_methods.values(), *type.pre_hooks, *type.hooks):
                    yield method.graph


def _state_of(value: Any, type: ClassType) -> tuple[Any, Type] | None:
    """Call ``__getstate__`` of an object; return the result and its type. Return None if the class has no such method.

    Raises:
        SaveError: the class has only one of ``__getstate__`` and ``__setstate__``.
    """
    missing = {"__getstate__", "__setstate__"} - set(type.methods)
    if len(missing) == 2:
        return None
    record = type.methods.get("__getstate__")
    if record is None or missing:
        (name,), other = missing, "__setstate__" if record is None else "__getstate__"
        raise SaveError(f"'{type.basename}' has a method {other} and no {name}", hint=f"define {name} as well")
    return call(record, (value,), {}), record.schema.returns[0].type


def _attributes_of(value: Any, type: ClassType) -> Iterator[tuple[str, Any, Type]]:
    """Yield the name, the value and the type of each attribute of an object.

    Raises:
        SaveError: an attribute has no value, and none can be stored in its place.
    """
    for name, slot in type.attributes.items():
        try:
            item = getattr(value, name)
        except AttributeError:
            make = _before_assignment(slot)
            if make is not None:
                yield name, make(), slot.type
                continue
            raise SaveError(f"the attribute '{name}' has no value", hint="assign it in __init__") from None
        yield name, item, slot.type


def _before_assignment(slot: ClassAttribute) -> Callable[[], object] | None:
    """Return a function that makes the value that an archive has for an attribute without a value, which a method
    assigns later; None if the type has no such value."""
    if not slot.is_dynamic:
        return None
    return (lambda: None) if slot.type.is_optional else _EMPTY.get(slot.type.kind)


_EMPTY: Final[dict[str, Callable[[], object]]] = {
    "IntType": int,
    "FloatType": float,
    "BoolType": bool,
    "StringType": str,
    "ListType": list,
    "DictType": dict,
    "TensorType": lambda: torch.empty(0),
}

saving.save_program.provide(save)


# ------------------------------------------------------------------------------------------------------------- versions


LOWEST: Final = 3
"""The format version that PyTorch has written since 1.6 for programs that need no later one."""

_CHANGED: Final = {
    "aten::div": 4,
    "aten::div_": 4,
    "aten::full": 5,
    "aten::linspace": 8,
    "aten::logspace": 9,
    "aten::gelu": 10,
    "aten::gelu_": 10,
}
"""Operators whose semantics or schema changed, and the format version from which on they have today's."""


def version_for(graphs: Iterable[Graph]) -> int:
    """Return the format version of an archive that contains these graphs."""
    return max((_CHANGED.get(node.kind, LOWEST) for graph in graphs for node in nodes_within(graph)), default=LOWEST)
