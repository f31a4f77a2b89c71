"""Whole kernels of a GPU, as one module in LLVM IR."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rekindle.codegen.cuda.columns import add_columns
from rekindle.codegen.cuda.device_functions import DeviceFunctions
from rekindle.codegen.cuda.elementwise import add_elementwise
from rekindle.codegen.cuda.full_reductions import add_full_reduction
from rekindle.codegen.cuda.rows import add_rows
from rekindle.codegen.cuda.thread_ir import INTRINSICS
from rekindle.codegen.emission.ir_builder import ModuleBuilder
from rekindle.codegen.emission.machines import Machine
from rekindle.codegen.emission.nests import expressions_of
from rekindle.codegen.llvm import vector_math
from rekindle.codegen.loop_ir.builder import Unsupported
from rekindle.codegen.loop_ir.nodes import Kernel, LoopNest
from rekindle.codegen.phase_scheduling import SCANS

_BYVAL: Final = re.compile(r"BYVAL\((\[.*?\])\)")
_METADATA: Final = '!0 = !{}\n!1 = !{!"branch_weights", i32 1000, i32 1}'


@dataclass(frozen=True, slots=True)
class DeviceModule:
    """The device functions of a kernel. ``text`` is LLVM IR without the parts that depend on the target (how kernels
    are marked and take parameters), which :meth:`for_gpu` and :meth:`for_host` add."""

    text: str
    most_threads: Mapping[str, int]
    """Maximum number of threads of a block, by function."""

    @property
    def functions(self) -> tuple[str, ...]:
        return tuple(self.most_threads)

    def for_gpu(self) -> str:
        """Return the text for LLVM's NVPTX target."""
        text = self.text.replace("define KERNEL void", "define ptx_kernel void")
        notes = [f'!{{ptr @{name}, !"maxntidx", i32 {threads}}}' for name, threads in self.most_threads.items()]
        numbered = [f"!{number} = {note}" for number, note in enumerate(notes, 2)]
        numbers = ", ".join(f"!{number}" for number in range(2, len(notes) + 2))
        text = _BYVAL.sub(r"ptr byval(\1) align 8", f"{INTRINSICS}\n{text}")
        return "\n".join([text, *numbered, f"!nvvm.annotations = !{{{numbers}}}", ""])

    def for_host(self, intrinsics: str) -> str:
        """Return the text for a host that emulates a GPU with its own ``intrinsics``: pointers to arrays are passed."""
        text = self.text.replace("define KERNEL void", "define void").replace(" addrspace(3)", "")
        return _BYVAL.sub("ptr", f"{intrinsics}\n{text}")


def device_module(kernel: Kernel, machine: Machine) -> DeviceModule:
    """Return the functions of all nests of ``kernel``.

    Raises:
        Unsupported: a GPU does not compute one of the nests.
    """
    module = ModuleBuilder(is_for_gpu=True)
    first = 0
    for number, nest in enumerate(kernel.nests):
        if not isinstance(nest, LoopNest):
            raise Unsupported("a product of matrices on a GPU")
        _refuse(nest)
        functions = DeviceFunctions(module, kernel, nest, number, first, machine)
        if nest.is_full_reduction:
            add_full_reduction(functions)
        elif not nest.reduction_rank:
            add_elementwise(functions)
        elif nest.vectorizes_outer:
            add_columns(functions)
        else:
            add_rows(functions)
        first += nest.parameters
    declarations = "\n".join(module.declarations[name] for name in sorted(module.declarations))
    library = vector_math.texts(list(module.functions.values()))
    return DeviceModule(
        "\n\n".join([library, declarations, *module.definitions, _METADATA]) + "\n", module.most_threads
    )


def _refuse(nest: LoopNest) -> None:
    """Check that GPUs support a nest.

    Raises:
        Unsupported: it has scans, or reductions to an index.
    """
    if nest.is_ordered or any(each.kind in SCANS for each in expressions_of(nest)):
        raise Unsupported("a scan on a GPU")
    if any(each.kind.startswith("arg") for phase in nest.phases for each in phase.reductions):
        raise Unsupported("the index of an extreme on a GPU")
