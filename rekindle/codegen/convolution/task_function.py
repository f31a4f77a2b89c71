"""Compiled functions that divide their work into tasks: called by Python, and launched by native code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rekindle.codegen.llvm.cpython_wrappers import python_function, with_declarations, wrapper_ir
from rekindle.codegen.llvm.engine import LazyModule, NativeCode, compile_module
from rekindle.codegen.llvm.library import MissingSymbolError
from rekindle.codegen.llvm.target import Target


@dataclass(frozen=True, slots=True, eq=False)
class TaskFunction:
    """``call`` takes the addresses of words and arguments, and the number of threads. ``launch`` is the address of
    the function of :mod:`rekindle.codegen.convolution.launch_ir`, or None. ``code`` is the machine code that
    contains both."""

    call: Callable[..., Any]
    launch: int | None
    code: NativeCode


def task_function(
    name: str, write: Callable[[], str], arguments: int, target: Target, result: str | None
) -> TaskFunction | None:
    """Compile the module that ``write`` emits, and return its function ``@name(ptr words, ptr argument…, i64
    threads)``, which returns a value of the type ``result``; None if this platform lacks a function that it calls."""

    def module() -> str:
        entry = wrapper_ir(name, [*["ptr"] * (1 + arguments), "i64"], result, without_gil=True)
        return with_declarations(write() + entry)

    try:
        code = compile_module(LazyModule(f"tasks of {name}", module), target=target)
    except MissingSymbolError:
        return None
    return TaskFunction(python_function(code, name), code.addresses.get(f"{name}.launch"), code)
