"""Programs as the texts that an archive would hold, and back."""

from __future__ import annotations

from dataclasses import dataclass, field

from rekindle.errors import Source
from rekindle.frontend.python_printer import ConstantTable, NamedType, PythonPrinter
from rekindle.frontend.python_printer.names import qualified_name
from rekindle.ir.records import FunctionRecord
from rekindle.ir.types import FunctionType
from rekindle.program.source_importer import SourceImporter


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
    """Functions of program texts have bare names: in archives they stand below ``__torch__``."""
    name = qualified_name(type)
    return name if name.startswith("__torch__.") else f"__torch__.{name}"


def round_trip(record: FunctionRecord) -> FunctionRecord:
    """``record`` printed and read back."""
    again = texts_of(FunctionType(record)).importer().load_type(archive_name(FunctionType(record)))
    assert isinstance(again, FunctionType)
    return again.function
