"""Compilation of the parts of a library to objects, and linking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rekindle.building.cpu_check import BASELINE
from rekindle.building.elf import ObjectFile, link
from rekindle.building.object_cache import object_of, runtime_objects
from rekindle.codegen.llvm.target import Target

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
"""OpenMP functions that kernels call, for one thread: a library runs in the thread of its caller."""


@dataclass(frozen=True, slots=True)
class ObjectSet:
    """LLVM modules that are compiled for ``target``, with the functions of the runtime that they call. ``suffix`` is
    appended to the names of the symbols that they define, so that a library may hold the same functions for several
    targets."""

    suffix: str
    target: Target
    modules: Sequence[str]

    def objects(self) -> list[ObjectFile]:
        """Return the compiled modules and the run-time functions that they call, with ``suffix`` appended to their
        symbols.

        Raises:
            CodegenError: LLVM rejects a module.
        """
        found = [ObjectFile.read(object_of(each, self.target)) for each in self.modules]
        found += runtime_objects(found, self.target)
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
    ``portable``, which run on any x86-64 processor, and of ``data``. It exports the functions ``exports``.

    Raises:
        CodegenError: LLVM rejects a module.
        LinkError: the objects cannot be linked.
    """
    objects = [each for group in (*sets, ObjectSet("", BASELINE, portable)) for each in group.objects()]
    return link([*objects, *data], exports, needed=needed, soname=soname, runpath=runpath)
