"""Parse LLVM IR, run LLVM's passes on it, and select instructions: for this process, and for files.

The caller holds :data:`~rekindle.codegen.llvm.library.LOCK`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Final

from rekindle.codegen.llvm.library import CodegenError, llvm
from rekindle.codegen.llvm.target import Target

PREOPTIMIZED: Final = "; needs few passes"
"""A line in texts that are vectorized and unrolled already. They are only tidied: that takes a tenth of the time, and
code is made in less than half of it."""

_LITTLE: Final = 1
"""Optimization level of instruction selection: vector loops run as fast, and compile in three quarters of the time."""

_CHEAP_PASSES: Final = ("always_inliner", "sroa", "instruction_combine", "simplify_cfg", "loop_simplify", "loop_rotate")


@contextlib.contextmanager
def machine_for(target: Target, text: str, level: int, *, is_jit: bool = False) -> Iterator[Any]:
    """Yield LLVM's target machine for a module, with instruction selection at an optimization ``level``; at a low level
    if ``text`` has the line :data:`PREOPTIMIZED`. ``is_jit``: whether the code runs in this process."""
    speed = _LITTLE if PREOPTIMIZED in text else level
    base = llvm().Target.from_default_triple()
    machine = base.create_target_machine(
        cpu=target.cpu, features=target.features, opt=speed, reloc="pic", codemodel="default", jit=is_jit
    )
    with machine:
        yield machine


def optimized(text: str, machine: Any, level: int) -> Any:
    """Parse LLVM IR, run LLVM's passes of an optimization ``level`` on it, and return the module. Few passes run if
    ``text`` has the line :data:`PREOPTIMIZED`.

    Raises:
        CodegenError: LLVM rejects the text.
    """
    module = parsed(text, machine, llvm().create_context())
    run_passes(module, machine, level, has_few=PREOPTIMIZED in text)
    return module


def parsed(text: str, machine: Any, context: Any) -> Any:
    """Return the verified module of LLVM IR, for ``machine``.

    Raises:
        CodegenError: LLVM rejects the text.
    """
    try:
        module = llvm().parse_assembly(text, context)
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise CodegenError(f"{str(error).strip()}\n\n{_numbered(text)}") from None
    return module


def run_passes(module: Any, machine: Any, level: int, *, has_few: bool = False) -> None:
    """Run LLVM's passes of an optimization ``level`` on a module, in place; only a few cheap ones if ``has_few``."""
    with (
        llvm().create_pipeline_tuning_options(speed_level=level) as options,
        llvm().create_pass_builder(machine, options) as builder,
        _few_passes() if has_few else builder.getModulePassManager() as passes,
    ):
        passes.run(module, builder)


def _few_passes() -> Any:
    passes = llvm().create_new_module_pass_manager()
    for name in _CHEAP_PASSES:
        getattr(passes, f"add_{name}_pass")()
    return passes


def _numbered(text: str) -> str:
    return "\n".join(f"{number:4} {line}" for number, line in enumerate(text.splitlines(), 1))
