"""Compilation of LLVM IR to PTX, the assembly language that NVIDIA's driver compiles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from rekindle.codegen.llvm.library import LOCK, CodegenError, llvm
from rekindle.codegen.loop_ir.builder import Unsupported

_TRIPLE: Final = "nvptx64-nvidia-cuda"
_OF_LIBDEVICE: Final = "__nv_"
_SPEED: Final = 3
_PTX_OF_DRIVERS: Final = ((12000, 80), (11080, 78), (11040, 74), (0, 70))
"""Pairs of a minimum CUDA version of the driver, and the version of PTX that is emitted for it."""
_CAPABILITIES: Final = ((9, 0), (8, 9), (8, 6), (8, 0))
"""The compute capabilities for which PTX is emitted; later GPUs run it too."""
MIN_CAPABILITY: Final = (8, 0)
"""Minimum compute capability: older GPUs do not convert to bfloat16."""


@dataclass(frozen=True, slots=True)
class PtxTarget:
    """A compute capability and a version of PTX, as LLVM names them: ``sm_90`` and ``+ptx80``."""

    cpu: str
    features: str


def ptx_target(capability: tuple[int, int], driver: int) -> PtxTarget:
    """Return the target for a device of this compute capability (from :data:`MIN_CAPABILITY` on), and a driver for this
    version of CUDA (``12040`` is 12.4)."""
    major, minor = next(each for each in _CAPABILITIES if each <= capability)
    version = next(version for least, version in _PTX_OF_DRIVERS if least <= driver)
    return PtxTarget(f"sm_{major}{minor}", f"+ptx{version}")


def ptx_of(text: str, target: PtxTarget, libdevice: Path | None) -> str:
    """Compile a module in LLVM IR to PTX, with the functions of ``libdevice`` that it calls.

    Raises:
        CodegenError: LLVM rejects the text.
        Unsupported: LLVM was built without NVPTX.
    """
    with LOCK:
        _initialize()
        binding = llvm()
        try:
            nvptx = binding.Target.from_triple(_TRIPLE)
        except RuntimeError:
            raise Unsupported("a GPU, for which this build of LLVM writes no code") from None
        with nvptx.create_target_machine(
            cpu=target.cpu, features=target.features, opt=_SPEED, reloc="static", codemodel="default"
        ) as machine:
            try:
                context = binding.create_context()
                module = binding.parse_assembly(text, context)
                module.triple, module.data_layout = _TRIPLE, str(machine.target_data)
                called = frozenset(each.name for each in module.functions if each.name.startswith(_OF_LIBDEVICE))
                if libdevice is not None and called:
                    _link(module, libdevice, called, context)
                module.verify()
            except RuntimeError as error:
                raise CodegenError(f"{str(error).strip()}\n\n{text}") from None
            with (
                binding.create_pipeline_tuning_options(speed_level=_SPEED) as options,
                binding.create_pass_builder(machine, options) as builder,
                builder.getModulePassManager() as passes,
            ):
                passes.run(module, builder)
            return str(machine.emit_assembly(module))


def _link(module: Any, libdevice: Path, called: frozenset[str], context: Any) -> None:
    """Link the functions of libdevice that are ``called`` into ``module``."""
    library = llvm().parse_bitcode(_part_of(libdevice, called), context)
    library.triple, library.data_layout = module.triple, module.data_layout
    module.link_in(library)
    for function in module.functions:
        if function.name in called:
            function.linkage = "internal"


@cache
def _part_of(libdevice: Path, called: frozenset[str]) -> bytes:
    """Return the ``called`` functions of a library and their dependencies as bitcode: compiling the whole library takes
    LLVM too long."""
    library = llvm().parse_bitcode(libdevice.read_bytes(), llvm().create_context())
    for function in library.functions:
        if not function.is_declaration and function.name not in called:
            function.linkage = "internal"
    with (
        llvm().Target.from_triple(_TRIPLE).create_target_machine() as machine,
        llvm().create_pipeline_tuning_options() as options,
        llvm().create_pass_builder(machine, options) as builder,
        llvm().create_new_module_pass_manager() as passes,
    ):
        passes.add_global_dead_code_eliminate_pass()
        passes.run(library, builder)
    return bytes(library.as_bitcode())


@cache
def _initialize() -> None:
    llvm().initialize_all_targets()
    llvm().initialize_all_asmprinters()
