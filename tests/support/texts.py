"""Programs as the texts that an archive would hold, and back."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from rekindle.errors import Source
from rekindle.frontend.python_printer import ConstantTable, NamedType, PythonPrinter
from rekindle.frontend.python_printer.names import qualified_name
from rekindle.frontend.ssa.closures import CLOSURES
from rekindle.ir.graph import Graph
from rekindle.ir.types import ClassType, FunctionType
from rekindle.passes import run_passes
from rekindle.program.sources.source_importer import SourceImporter
from rekindle.runtime.pipelines import CLEANUP_AFTER_EMISSION
from tests.support.oracle import normalize


@dataclass(slots=True)
class Texts:
    """The texts of some types and functions, with all that they depend on, by qualifier."""

    by_qualifier: dict[str, str] = field(default_factory=dict)
    constants: ConstantTable = field(default_factory=ConstantTable)

    def importer(self) -> SourceImporter:
        def read(qualifier: str) -> Source | None:
            text = self.by_qualifier.get(qualifier)
            return None if text is None else Source(text, f"{qualifier}.py")

        return SourceImporter(read, self.constants.values)


def texts_of(*roots: NamedType) -> Texts:
    """The texts of ``roots`` and of what they need. Types of one name must not meet here."""
    texts = Texts()
    printers: dict[str, PythonPrinter] = {}
    seen: dict[str, NamedType] = {}
    pending = list(roots)
    while pending:
        type = pending.pop(0)
        name = archive_name(type)
        if name in seen:
            assert seen[name] is type or seen[name] == type, f"two types are called {name}"
            continue
        seen[name] = type
        printer = printers.setdefault(
            name.rpartition(".")[0], PythonPrinter(texts.constants, archive_name, importable=True)
        )
        printer.print_named_type(type)
        pending += printer.dependencies
    texts.by_qualifier = {qualifier: printer.text for qualifier, printer in printers.items()}
    return texts


def archive_name(type: NamedType) -> str:
    """Functions of program texts have bare names: in archives they are below ``__torch__``."""
    name = qualified_name(type)
    return name if name.startswith("__torch__.") else f"__torch__.{name}"


def round_trip_differences(compiled: Any) -> Iterator[str]:
    """What is different once a compiled function, or a module with all modules in it, was printed and read back."""
    if not isinstance(compiled, torch.nn.Module):
        type = FunctionType(compiled._record)
        again = texts_of(type).importer().load_type(archive_name(type))
        assert isinstance(again, FunctionType)
        yield from _difference(type.function.graph, again.function.graph)
        return
    types: dict[str, ClassType] = {}
    for module in compiled.modules():
        types.setdefault(module.script_type.name, module.script_type)
    importer = texts_of(*types.values()).importer()
    for name, before in types.items():
        after = importer.load_type(name)
        assert isinstance(after, ClassType)
        assert _slots(after) == _slots(before)
        assert list(after.constants.items()) == list(before.constants.items())
        for method, record in before.methods.items():
            yield from _difference(record.graph, after.methods[method].graph)


def _slots(type: ClassType) -> list[tuple[str, str, str]]:
    # As the IR has them: a deque is a list there.
    return [(slot.name, str(slot.type), slot.kind) for slot in type.attributes.values()]


def _difference(before: Graph, after: Graph) -> Iterator[str]:
    yield from difflib.unified_diff(_lines(before), _lines(after), "before", "after", lineterm="", n=1)


def _lines(graph: Graph) -> list[str]:
    """The graph in normal form.

    What is not in the text does not count: where constants are, what else a None might have been, and by which
    number a warning is known. Nor does what the passes would do that clean up after compilation, did they run again:
    they see more once branches that are never taken have gone.
    """
    graph = graph.copy()
    run_passes(graph, CLEANUP_AFTER_EMISSION)
    _move_constants_into_closures(graph)
    return [_UNTOLD.sub("", line) for line in normalize(str(graph))]


_UNTOLD = re.compile(r"[^ ,(]+ (?=None[,)])|\[warn_id=\d+\]")


def _move_constants_into_closures(graph: Graph) -> None:
    """Let what is forked make the constants that it is given."""
    for kind in CLOSURES:
        for node in graph.find_nodes(kind):
            closure = node.get_graph("Subgraph").copy()
            for index, value in reversed(list(enumerate(node.inputs))):
                if value.node.kind == "prim::Constant":
                    constant = closure.create_clone(value.node)
                    closure.block.prepend(constant)
                    closure.inputs[index].replace_all_uses_with(constant.output)
                    closure.block.erase_input(index)
                    node.remove_input(index)
            _move_constants_into_closures(closure)
            node.set_attribute("Subgraph", closure)
