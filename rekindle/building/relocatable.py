"""Libraries as one relocatable object, for users with a linker: for x86-64, or for AArch64.

LLVM links all modules, and everything but the exported functions becomes internal, so that objects of several libraries
may be linked into one program.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from rekindle.building.cpu_check import BASELINE
from rekindle.building.object_cache import LEVEL
from rekindle.codegen.llvm.library import LOCK, CodegenError, llvm
from rekindle.codegen.llvm.optimization import parsed, run_passes
from rekindle.codegen.llvm.target import Target

AARCH64: Final = Target("generic", "+fp-armv8,+neon", has_libraries=False)
"""Any 64-bit processor of Arm."""

TRIPLES: Final = {True: "aarch64-unknown-linux-gnu", False: "x86_64-unknown-linux-gnu"}
"""LLVM's target triple, by whether the processor is AArch64."""

_DEFINITION: Final = re.compile(r"^(define [^\n]*?) \{$", re.MULTILINE)


def relocatable_object(
    modules: Sequence[str], portable: Sequence[str], exports: Sequence[str], target: Target
) -> bytes:
    """Return an object file of LLVM modules for ``target`` that exports the functions ``exports``. The ``portable``
    modules are compiled for any processor of the architecture.

    Raises:
        CodegenError: LLVM rejects a module.
    """
    binding = llvm()
    if target != AARCH64:
        portable = [_for_any_processor(each) for each in portable]
    with LOCK:
        if target == AARCH64:
            binding.initialize_all_targets()
            binding.initialize_all_asmprinters()
        machine = binding.Target.from_triple(TRIPLES[target == AARCH64]).create_target_machine(
            cpu=target.cpu, features=target.features, opt=LEVEL, reloc="pic", codemodel="default"
        )
        context = binding.create_context()
        first, *others = (parsed(each, machine, context) for each in [*modules, *portable])
        try:
            for each in others:
                first.link_in(each)
        except RuntimeError as error:
            raise CodegenError(str(error).strip()) from None
        for function in first.functions:
            if not function.is_declaration and function.name not in exports:
                function.linkage = "internal"
        for variable in first.global_variables:
            if not variable.is_declaration:
                variable.linkage = "internal"
        with machine:
            run_passes(first, machine, LEVEL)
            image: bytes = machine.emit_object(first)
        return image


def _for_any_processor(text: str) -> str:
    """Return a module whose functions use only instructions that every x86-64 processor has."""
    attributes = f'"target-cpu"="{BASELINE.cpu}" "target-features"="{BASELINE.features}"'
    return _DEFINITION.sub(rf"\1 {attributes} {{", text)
