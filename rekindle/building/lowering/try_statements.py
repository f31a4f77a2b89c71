"""Lowering of ``try``: the body becomes a function, whose error becomes a value.

An exception is a tuple of the code of the error, the name of its class, its message, and whether the program raised it
itself: messages of the library may differ from Python's.
"""

from __future__ import annotations

import builtins

from rekindle.analysis.constants import is_constant
from rekindle.building.lowering.emitters import emits
from rekindle.building.lowering.representation import NotBuildable
from rekindle.building.lowering.writer import ProgramWriter
from rekindle.building.runtime import exceptions
from rekindle.building.runtime.memory import release
from rekindle.ir.graph import Node
from rekindle.ir.types import STRING, ListType
from rekindle.ops.python.exceptions import EXCEPTION_CLASSES, exception_class


@emits("prim::Try")
def attempt(w: ProgramWriter, node: Node) -> None:
    subgraph = node.get_graph("Subgraph")
    inner = ProgramWriter(w.parts, w.emitters)
    inner.is_tried = True
    words: list[str] = []
    boxes: list[str] = []
    for value, parameter in zip(node.inputs, subgraph.inputs, strict=True):
        if value in w.modules:
            inner.modules[parameter] = w.modules[value]
        else:
            words.append(w.argument_word(value, parameter.type, boxes))
    name = f"try.{len(w.parts.definitions)}"
    w.parts.definitions.append("")  # keeps the number of this one
    inner.write(subgraph, name)
    arguments, results = w.words(words), w.alloca("i64")
    w.line(f"store i64 -1, ptr {results}")
    w.line(f"call i32 @{name}(ptr %context, ptr {arguments}, ptr {results})")
    for box in boxes:
        w.call(release, w.take(box))
    w.unwind_if(w.call(exceptions.is_uncatchable, "%context"), has_place=True)
    how, error = node.outputs
    w.define(error, w.call(exceptions.caught_exception, "%context"))
    w.define(how, w.emit(f"load i64, ptr {results}"))


@emits("prim::RaiseException.caught")
def raise_again(w: ProgramWriter, node: Node) -> None:
    w.call(exceptions.raise_exception, "%context", w.name(node.input))
    w.unwind()


@emits("prim::is_exception")
def is_exception(w: ProgramWriter, node: Node) -> None:
    error, classes = node.inputs
    wanted = classes.to_python() if is_constant(classes) else None
    if not isinstance(wanted, list):
        raise NotBuildable("classes of exceptions that are known only at run time", node.range)
    names = w.parts.constants.object(_names_of(wanted), ListType(STRING))
    w.define(node.output, w.call(exceptions.is_among, w.name(error), names))


def _names_of(wanted: list[str]) -> list[str]:
    """Return the names of all known exception classes that are one of ``wanted``, or derive from one, in
    alphabetical order."""
    bases = tuple(each for each in map(exception_class, wanted) if each is not None)
    known = {**EXCEPTION_CLASSES}
    for name, each in vars(builtins).items():
        if isinstance(each, type) and issubclass(each, BaseException):
            known[f"builtins.{name}"] = each
    return sorted(name for name, each in known.items() if issubclass(each, bases))


@emits("prim::exception_name")
def exception_name(w: ProgramWriter, node: Node) -> None:
    w.define(node.output, w.call(exceptions.name_of, w.name(node.input)))


def text_of_exception(w: ProgramWriter, node: Node) -> None:
    """Lower ``str`` of a caught exception."""
    names = w.parts.constants.object(_names_of(["builtins.KeyError"]), ListType(STRING))
    w.define(node.output, w.call_or_fail(exceptions.text_of_exception, "%context", w.name(node.input), names))
