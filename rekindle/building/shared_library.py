"""Write the parts of a library as objects, and link them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from rekindle.building.cpu_check import BASELINE
from rekindle.building.elf import ObjectFile, link
from rekindle.codegen.llvm.engine import PREOPTIMIZED
from rekindle.codegen.llvm.library import LOCK, CodegenError, llvm
from rekindle.codegen.llvm.target import Target

_CHEAP_PASSES: Final = ("always_inliner", "sroa", "instruction_combine", "simplify_cfg", "loop_simplify", "loop_rotate")

SERIAL_THREADS: Final = """
define void @GOMP_parallel(ptr %function, ptr %data, i32 %threads, i32 %flags) {
  call void %function(ptr %data)
  ret void
}
define i32 @omp_get_max_threads() {
  ret i32 1
}
define i32 @omp_get_num_threads() {
  ret i32 1
}
define i32 @omp_get_thread_num() {
  ret i32 0
}
define i32 @omp_in_parallel() {
  ret i32 1
}
"""
"""The functions of OpenMP that kernels call: a library runs in the thread of its caller."""


def object_of(text: str, target: Target) -> bytes:
    """Return the object file that LLVM compiles from LLVM IR.

    Raises:
        CodegenError: LLVM refuses the text.
    """
    binding = llvm()
    with LOCK:
        base = binding.Target.from_default_triple()
        is_ready = PREOPTIMIZED in text
        machine = base.create_target_machine(
            cpu=target.cpu, features=target.features, opt=1 if is_ready else 2, reloc="pic", codemodel="default"
        )
        try:
            module = binding.parse_assembly(text, binding.create_context())
            module.triple = machine.triple
            module.data_layout = str(machine.target_data)
            module.verify()
        except RuntimeError as error:
            raise CodegenError(f"{str(error).strip()}\n\n{text}") from None
        with machine, binding.create_pipeline_tuning_options(speed_level=2) as options:
            with binding.create_pass_builder(machine, options) as builder:
                passes = _few_passes() if is_ready else builder.getModulePassManager()
                passes.run(module, builder)
            image: bytes = machine.emit_object(module)
        return image


def _few_passes() -> Any:
    passes = llvm().create_new_module_pass_manager()
    for name in _CHEAP_PASSES:
        getattr(passes, f"add_{name}_pass")()
    return passes


@dataclass(frozen=True, slots=True)
class ObjectSet:
    """LLVM modules that are compiled for ``target``. ``suffix`` is appended to the names of the symbols that they
    define, so that a library may hold the same functions for several targets."""

    suffix: str
    target: Target
    modules: Sequence[str]

    def objects(self) -> list[ObjectFile]:
        """Return the objects."""
        found = [ObjectFile.read(object_of(each, self.target)) for each in self.modules]
        if self.suffix:
            defined = {symbol.name for each in found for symbol in each.symbols if symbol.is_definition}
            for each in found:
                for symbol in each.symbols:
                    if symbol.name in defined:
                        symbol.name += self.suffix
        return found


def shared_library(
    sets: Sequence[ObjectSet],
    portable: Sequence[str],
    exports: Sequence[str],
    data: Sequence[ObjectFile] = (),
    *,
    soname: str,
    needed: Sequence[str],
    runpath: str,
) -> bytes:
    """Return a shared library of the objects in ``sets``, one set for each level of processors, of the LLVM modules
    ``portable``, which run on any x86-64 processor, and of ``data``. It exports the functions ``exports``."""
    objects = [each for group in (*sets, ObjectSet("", BASELINE, portable)) for each in group.objects()]
    return link([*objects, *data], exports, needed=needed, soname=soname, runpath=runpath)
