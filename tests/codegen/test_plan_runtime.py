"""Functions of CPython that machine code of plans calls, where a version of CPython does not export them."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from rekindle.codegen.llvm.engine import compile_module
from rekindle.codegen.llvm.symbols import find
from rekindle.codegen.plan_runtime.library import VECTORCALL_BEFORE_3_11

CALL = """
define ptr @call(ptr %function, ptr %arguments, i64 %flags, ptr %names) {
  %result = call ptr @PyObject_Vectorcall(ptr %function, ptr %arguments, i64 %flags, ptr %names)
  ret ptr %result
}
"""
OFFSET = 1 << 63
"""PY_VECTORCALL_ARGUMENTS_OFFSET: the callee may use the element before the arguments."""
HAS_SYMBOLS = all(map(find, ("PyObject_VectorcallDict", "_PyObject_MakeTpCall", "PyThreadState_Get")))
pytestmark = pytest.mark.skipif(not HAS_SYMBOLS, reason="this CPython does not export the functions that 3.10 exports")


def vectorcall(function: Any, *arguments: Any, **keywords: Any) -> Any:
    """Call a function through the machine code, which is that of Python 3.10 on every version."""
    names = tuple(keywords) or None
    values = (None, *arguments, *keywords.values())
    array = (ctypes.py_object * len(values))(*values)
    code = compile_module(VECTORCALL_BEFORE_3_11 + CALL, cache=False)
    type_of_names = ctypes.py_object if names else ctypes.c_void_p
    prototype = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.py_object, ctypes.c_void_p, ctypes.c_uint64, type_of_names
    )  # with the lock of the interpreter, and exceptions of the call
    call = prototype(code.address("call"))
    first = ctypes.addressof(array) + ctypes.sizeof(ctypes.py_object)
    return call(function, first, len(arguments) | OFFSET, names)


class Adder:
    """Callable objects have no vectorcall of their own."""

    def __call__(self, a: int, b: int = 10) -> int:
        return a + b


def described(a: int, *, b: int = 2, c: int = 3) -> str:
    return f"{a} {b} {c}"


def raising(message: str) -> None:
    raise ValueError(message)


def test_vectorcall_of_python_3_10() -> None:
    assert vectorcall(described, 1) == "1 2 3"
    assert vectorcall(described, 1, c=5) == "1 2 5"
    assert vectorcall(described, a=1, c=5, b=4) == "1 4 5"
    assert vectorcall(Adder(), 1) == 11
    assert vectorcall(Adder(), 1, b=2) == 3
    assert vectorcall(Adder().__call__, 1, b=4) == 5  # a bound method writes itself before the arguments
    assert vectorcall(max, 3, 7) == 7
    assert vectorcall(dict, a=1) == {"a": 1}
    with pytest.raises(ValueError, match=r"^no$"):
        vectorcall(raising, "no")
    with pytest.raises(ValueError, match=r"^no$"):
        vectorcall(raising, message="no")
