"""LLVM modules of functions of the low-level language: of all that a program needs, or of one compilation unit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from rekindle.building.lowlevel.compiler import (
    c_string,
    declaration_of,
    extern_declaration,
    may_be_inlined,
    table_symbol,
    translated,
)


@dataclass(slots=True)
class LowLevelModule:
    """Builder of an LLVM module: functions of the low-level language, with the constants and the declarations that they
    need.

    If the module ``is_whole``, it defines all functions that it refers to. Otherwise other objects define them: the
    module declares them, and has copies of small ones, which LLVM may inline (``available_externally``).
    """

    is_whole: bool = True
    definitions: dict[str, str] = field(default_factory=dict)
    declarations: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    """Constant strings by their names."""
    tables: dict[str, Callable[[], bytes]] = field(default_factory=dict)
    """The functions that compute constant tables, by the names of the tables."""

    def add(self, function: Callable[..., Any]) -> None:
        """Add a function that the module refers to, with its callees: a definition or a declaration, unless it is
        there already."""
        name = function.__name__
        if name in self.definitions or name in self.declarations:
            return
        if hasattr(function, "__extern__"):
            self.declarations[name] = extern_declaration(function)
        elif self.is_whole:
            self._define(function, "internal")
        elif may_be_inlined(function):
            self._define(function, "available_externally hidden")
        else:
            self.declarations[name] = f"declare hidden {declaration_of(function)}"

    def define(self, function: Callable[..., Any]) -> None:
        """Add the definition of a function that other objects may call."""
        self._define(function, "hidden")

    def _define(self, function: Callable[..., Any], linkage: str) -> None:
        found = translated(function)
        self.definitions[function.__name__] = f"define {linkage} {found.head} {{\n{found.body}\n}}\n"
        self.declarations |= found.declarations
        self.texts |= {name: text for text, name in found.texts.items()}
        self.tables |= found.tables
        for each in found.functions:
            self.add(each)

    def __str__(self) -> str:
        constants = [
            f"{name} = private unnamed_addr constant {c_string(text.encode())}" for name, text in self.texts.items()
        ]
        constants += [
            table_definition(make, "private unnamed_addr")
            if self.is_whole
            else f"@{name} = external hidden constant i8"
            for name, make in self.tables.items()
        ]
        declarations = [self.declarations[name] for name in sorted(self.declarations)]
        return "\n".join([*constants, *declarations, "", *self.definitions.values()])


def table_definition(make: Callable[[], bytes], linkage: str) -> str:
    """Return the definition of a constant table in LLVM IR."""
    return f"@{table_symbol(make)} = {linkage} constant {c_string(make())}, align 8"


def compile_functions(functions: Iterable[Callable[..., Any]]) -> LowLevelModule:
    """Return a whole module of ``functions`` and the functions that they call."""
    module = LowLevelModule()
    for each in functions:
        module.add(each)
    return module


def compilation_unit(function: Callable[..., Any]) -> str:
    """Return the text of the LLVM module that defines one function. Other units define the functions that it calls."""
    module = LowLevelModule(is_whole=False)
    module.define(function)
    return str(module)
