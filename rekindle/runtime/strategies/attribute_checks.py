"""Build guards in machine code of what a version assumes of a call.

See :mod:`rekindle.codegen.plan_runtime.attribute_check_ir`.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from rekindle.codegen.llvm.cpython_wrappers import capsule_of, function_at
from rekindle.codegen.plan_runtime.attribute_check_ir import (
    ATTRIBUTE_CHECK_ENTRY,
    FIELDS,
    AttributeTable,
    RowKind,
)
from rekindle.codegen.plan_runtime.library import loaded_plan_library
from rekindle.ir.scalar_types import number_of
from rekindle.ir.types import TensorType
from rekindle.passes.simplification.partial_evaluation import ModulePath

_TABLES: Final = ("_modules", "_parameters", "_buffers")
_DEVICES: Final = {"cpu": 0}
"""The numbers of kinds of devices that have no index."""


@dataclass(slots=True)
class AttributeRows:
    """The checks of a call's assumptions as a table for machine code; ``module_count`` modules are kept while it is
    evaluated."""

    rows: list[tuple[int, ...]] = field(default_factory=list)
    module_count: int = 0
    argument_count: int = 0
    _known: dict[ModulePath, int] = field(default_factory=dict)
    _kept: list[object] = field(default_factory=list)
    """Objects whose addresses are in rows."""

    def argument_is(self, number: int, value: object, *, negated: bool = False) -> None:
        """Add the check that an argument is, or is not, one object. ``negated`` selects the latter."""
        self.argument_count = max(self.argument_count, number + 1)
        self._add(RowKind.IS_NOT if negated else RowKind.IS, number, self._address(value))

    def argument_is_tensor(self, number: int) -> None:
        """Add the check that an argument is a plain Tensor."""
        self.argument_count = max(self.argument_count, number + 1)
        self._add(RowKind.IS_TENSOR, number)

    def attribute_is(self, module: ModulePath, name: str, value: object) -> None:
        """Add the check that an attribute equals a value of the same class: None, a bool, a number or a string."""
        self._add(RowKind.VALUE, self._module(module), self._name(name), self._address(value))

    def tensor_is(self, module: ModulePath, name: str, type: TensorType) -> bool:
        """Add the check that a parameter or buffer has a dtype, a device and a rank; return whether the table can
        express it."""
        if type.dtype is None or type.device is None or type.rank is None:
            return False
        device = _DEVICES.get(type.device.type)
        if device is None or type.device.index is not None:
            return False
        self._add(RowKind.TENSOR, self._module(module), self._name(name), number_of(type.dtype), device, type.rank)
        return True

    def test(self, decide: Callable[..., bool]) -> Callable[..., bool] | None:
        """Return a function of the arguments that returns True if all checks hold, and otherwise the result of
        ``decide``; None as long as no machine code has been loaded."""
        library = loaded_plan_library()
        if library is None:
            return None
        words = [word for row in self.rows for word in row]
        rows = (ctypes.c_int64 * len(words))(*words)
        names = (ctypes.c_int64 * len(_TABLES))(*map(self._name, _TABLES))
        table = AttributeTable(
            len(self.rows), ctypes.addressof(rows), self.argument_count, self.module_count, names, id(decide)
        )
        owner = (library, table, rows, decide, tuple(self._kept))
        return function_at(library.address(ATTRIBUTE_CHECK_ENTRY), ATTRIBUTE_CHECK_ENTRY, capsule_of(table), owner)

    def _add(self, form: RowKind, *fields: int) -> None:
        row = (form, *fields)
        self.rows.append((*row, *[0] * (FIELDS - len(row))))

    def _module(self, path: ModulePath) -> int:
        """Return the number of a module. The first request adds the rows that look it up."""
        number = self._known.get(path)
        if number is not None:
            return number
        if path.names:
            owner = self._module(ModulePath(path.input, path.names[:-1]))
            self._known[path] = self.module_count
            self._add(RowKind.MODULE, owner, self._name(path.names[-1]), self.module_count)
        else:
            self.argument_count = max(self.argument_count, path.input + 1)
            self._known[path] = self.module_count
            self._add(RowKind.ARGUMENT, path.input, self.module_count)
        self.module_count += 1
        return self._known[path]

    def _name(self, name: str) -> int:
        return self._address(sys.intern(name))

    def _address(self, value: object) -> int:
        self._kept.append(value)
        return id(value)
