"""Parts that the functions of a library share: run-time functions, constants, attributes and kernels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from rekindle.building.lowering.constants import Constants
from rekindle.building.lowering.representation import NotBuildable
from rekindle.building.lowlevel.module import LowLevelModule
from rekindle.codegen.compiled_kernels import KernelRecipe
from rekindle.codegen.emission.kernels import kernel_module
from rekindle.codegen.emission.matmul import product_module, product_name
from rekindle.codegen.llvm.target import Target
from rekindle.codegen.loop_ir.nodes import Kernel, MatmulNest
from rekindle.codegen.loop_ir.printer import kernel_text
from rekindle.ir.graph import Graph, Node
from rekindle.ir.types import ClassType, Type

MISSING: Final = object()
"""In place of the value of an attribute that has none when the library is built."""


@dataclass(slots=True)
class AttributeSlot:
    """An attribute of a module: its type, and its value when the library is built."""

    path: str
    type: Type
    value: Any


@dataclass(slots=True)
class Attributes:
    """The attributes that the methods of a library use, in the order of their words in an instance."""

    slots: dict[tuple[int, str], int] = field(default_factory=dict)
    known: list[AttributeSlot] = field(default_factory=list)
    kept: list[torch.nn.Module] = field(default_factory=list)

    def index(self, module: torch.nn.Module, path: str, name: str, type: Type, value: Any) -> int:
        """Return the index of the 64-bit word of an attribute in an instance; a new attribute is added."""
        key = (id(module), name)
        if key not in self.slots:
            self.slots[key] = len(self.known)
            self.known.append(AttributeSlot(f"{path}.{name}".lstrip("."), type, value))
            self.kept.append(module)
        return self.slots[key]

    def constant(self, value: torch.Tensor, type: Type) -> int:
        """Return the index of the 64-bit word of a constant tensor of a graph; a new tensor is added."""
        key = (id(value), "")
        if key not in self.slots:
            self.slots[key] = len(self.known)
            self.known.append(AttributeSlot(f"constant.{len(self.known)}", type, value))
        return self.slots[key]


@dataclass(slots=True)
class ModuleValue:
    """The module that a value of a graph refers to, and its path."""

    module: torch.nn.Module
    path: str


@dataclass(slots=True)
class KernelLibrary:
    """The kernels of a library, each of which is compiled to an object file."""

    kernels: dict[str, Kernel] = field(default_factory=dict)
    """Kernels by symbol."""
    symbols: dict[str, str] = field(default_factory=dict)
    """The symbols of kernels, by their texts."""

    def symbol(self, kernel: Kernel) -> str:
        """Return the symbol of a kernel, and add the kernel unless an equal one is known."""
        name = self.symbols.setdefault(kernel_text(kernel), f"kernel.{len(self.symbols)}")
        self.kernels.setdefault(name, kernel)
        return name

    def modules(self, target: Target) -> list[str]:
        """Return the LLVM modules of the kernels and their matrix products for a target.

        Raises:
            Unsupported: the target lacks instructions that a kernel needs.
        """
        found: dict[str, str] = {}
        for name, kernel in self.kernels.items():
            found[name] = kernel_module(kernel, target).replace("@kernel(", f"@{name}(")
            for nest in kernel.nests:
                if isinstance(nest, MatmulNest) and product_name(nest) not in found:
                    found[product_name(nest)] = product_module(nest, target)
        return list(found.values())


@dataclass(slots=True)
class GradientModes:
    """Use of the gradient mode by a program. A library has no gradient mode, so a program that both may enable
    gradients and depends on the mode is rejected."""

    enabled: bool = False
    """Whether the program may enable gradients."""
    read: bool = False
    """Whether its results depend on the gradient mode."""

    def changes_it(self, node: Node) -> None:
        """Record that ``node`` may enable gradients.

        Raises:
            NotBuildable: the program also depends on the gradient mode.
        """
        self.enabled = True
        self._check(node)

    def depends_on_it(self, node: Node) -> None:
        """Record that the result of ``node`` depends on the gradient mode.

        Raises:
            NotBuildable: the program may also enable gradients.
        """
        self.read = True
        self._check(node)

    def _check(self, node: Node) -> None:
        if self.enabled and self.read:
            raise NotBuildable(
                "the program enables gradients and depends on whether they are recorded, and native libraries record "
                "none",
                node.range,
            )


@dataclass(slots=True)
class LibraryParts:
    """The parts of a library that is being lowered: functions, constants, attributes and kernels."""

    runtime: LowLevelModule
    constants: Constants = field(default_factory=Constants)
    attributes: Attributes = field(default_factory=Attributes)
    kernels: KernelLibrary = field(default_factory=KernelLibrary)
    recipes: dict[Graph, Sequence[KernelRecipe]] = field(default_factory=dict)
    """Kernel recipes of fused groups, by their subgraphs."""
    definitions: list[str] = field(default_factory=list)
    """The LLVM IR of the functions lowered so far."""
    functions: dict[Hashable, str] = field(default_factory=dict)
    """Symbols of lowered functions, by the function and its module arguments."""
    classes: dict[ClassType, None] = field(default_factory=dict)
    """The classes of which the program creates instances."""
    uses_torch: set[str] = field(default_factory=set)
    """The operators that PyTorch runs."""
    gradient_modes: GradientModes = field(default_factory=GradientModes)
