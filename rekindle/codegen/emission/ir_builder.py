"""Builder of LLVM IR: instructions, and declarations of the functions that they call."""

from __future__ import annotations

from dataclasses import dataclass, field

from rekindle.codegen.llvm.vector_math import VectorFunction


@dataclass(slots=True)
class ModuleBuilder:
    """An LLVM module that is being emitted."""

    definitions: list[str] = field(default_factory=list)
    functions: dict[str, VectorFunction] = field(default_factory=dict)
    """Functions of the mathematical library, by symbol."""
    declarations: dict[str, str] = field(default_factory=dict)
    most_threads: dict[str, int] = field(default_factory=dict)
    """For functions of a GPU: the maximum number of threads of a block."""
    is_for_gpu: bool = False
    """Whether the machine is a GPU: it rounds to bfloat16 itself, and has maxima of floats that a NaN wins."""

    def declare(self, name: str, result: str, *parameters: str) -> None:
        """Declare a function of LLVM or of a library."""
        self.declarations[name] = f"declare {result} @{name}({', '.join(parameters)})"


@dataclass(slots=True)
class FunctionBuilder:
    """An LLVM function that is being emitted, line by line."""

    module: ModuleBuilder
    lines: list[str] = field(default_factory=list)
    symbol: str = ""
    """The name of the function, if its parts depend on the name."""
    shared_bytes: int = 0
    """The bytes that the function needs of the memory that the threads of a block of a GPU share."""
    _count: int = 0

    def name(self) -> str:
        """Return a new name."""
        self._count += 1
        return f"v{self._count}"

    def emit(self, line: str) -> None:
        self.lines.append(f"  {line}")

    def emit_value(self, what: str) -> str:
        """Emit an instruction; return the name of its result."""
        name = f"%{self.name()}"
        self.lines.append(f"  {name} = {what}")
        return name

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def call(self, result: str, symbol: str, *arguments: tuple[str, str]) -> str:
        """Emit a call of a function, which is declared if need be. Arguments are pairs of type and value."""
        self.module.declare(symbol, result, *(type for type, _ in arguments))
        text = ", ".join(f"{type} {value}" for type, value in arguments)
        if result == "void":
            self.emit(f"call void @{symbol}({text})")
            return ""
        return self.emit_value(f"call {result} @{symbol}({text})")
