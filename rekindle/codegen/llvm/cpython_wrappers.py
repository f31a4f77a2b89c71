"""CPython wrappers of native functions, without ctypes in between.

Around ``define double @scale(i64 %n, double %x)``, :func:`wrapper_ir` writes a second function in the calling
convention of CPython's own C functions. It unboxes its arguments with CPython's C API. A call costs about 30 ns; with
ctypes it costs 300 to 600.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

from rekindle.codegen.llvm.engine import NativeCode

_FASTCALL: Final = 0x80
"""METH_FASTCALL: called with an array of arguments, without keywords."""
_WORD: Final = 8

DECLARATIONS: Final = {
    "PyLong_AsLongLong": "declare i64 @PyLong_AsLongLong(ptr)",
    "PyLong_FromLongLong": "declare ptr @PyLong_FromLongLong(i64)",
    "PyFloat_AsDouble": "declare double @PyFloat_AsDouble(ptr)",
    "PyFloat_FromDouble": "declare ptr @PyFloat_FromDouble(double)",
    "PyObject_IsTrue": "declare i32 @PyObject_IsTrue(ptr)",
    "PyBool_FromLong": "declare ptr @PyBool_FromLong(i64)",
    "PyErr_Occurred": "declare ptr @PyErr_Occurred()",
    "PyErr_SetString": "declare void @PyErr_SetString(ptr, ptr)",
    "PyExc_TypeError": "@PyExc_TypeError = external global ptr",
    "_Py_NoneStruct": "@_Py_NoneStruct = external global i8",
    "Py_IncRef": "declare void @Py_IncRef(ptr)",
    "PyEval_SaveThread": "declare ptr @PyEval_SaveThread()",
    "PyEval_RestoreThread": "declare void @PyEval_RestoreThread(ptr)",
}
"""Declarations of the functions of CPython that entries use. All of them are part of CPython's stable ABI."""

_UNPACK: Final = {
    "i64": ("call i64 @PyLong_AsLongLong", "icmp eq i64 {0}, -1"),
    "double": ("call double @PyFloat_AsDouble", "fcmp oeq double {0}, -1.0"),
    "i1": ("call i32 @PyObject_IsTrue", "icmp slt i32 {0}, 0"),
}
"""By type: the call that unboxes a number, and the test of its failure."""


def wrapper_ir(name: str, parameters: Sequence[str], result: str | None, *, without_gil: bool = False) -> str:
    """Return the LLVM IR of ``@{name}.entry``, which unboxes Python objects and calls ``@{name}`` of the same module;
    :func:`python_function` makes a Python function of it. :func:`with_declarations` adds the declarations that it
    needs.

    ``parameters`` and ``result`` are the types of ``@{name}``: ``ptr``, ``i64`` (an int of Python in both cases),
    ``double`` (a float), ``i1`` (a bool); ``result`` is None for ``void``. ``without_gil`` lets other threads of Python
    run during the call, and costs about 50 ns.
    """
    writer = _EntryWriter(name, parameters)
    writer.unpack()
    writer.call(result, without_gil)
    return writer.text()


def with_declarations(text: str) -> str:
    """Return ``text`` as a module, with declarations of the functions of CPython that it uses."""
    mentioned = dict.fromkeys(re.findall(r"@(_?Py\w+)", text))
    needed = [DECLARATIONS[name] for name in mentioned if name in DECLARATIONS and DECLARATIONS[name] not in text]
    return "\n".join([*needed, text])


def python_function(code: NativeCode, name: str) -> Callable[..., Any]:
    """Return the function of Python that calls ``@{name}`` of ``code`` by its entry. It keeps the code alive.

    It raises TypeError when it is called with too few or too many arguments, or with one that Python cannot convert to
    the parameter's type, and OverflowError for ints of more than 64 bits.
    """
    return function_at(code.address(f"{name}.entry"), name, None, code)


def function_at(address: int, name: str, self: object, owner: object) -> Callable[..., Any]:
    """Return a Python function ``name`` that calls the C function ``PyObject *f(PyObject *self, PyObject **arguments,
    int64_t count)`` at ``address`` with ``self``. It keeps ``owner`` alive."""
    module = _Owner(__name__)
    module.kept = owner
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
    make.restype = ctypes.py_object
    function: Callable[..., Any] = make(ctypes.addressof(_definition(name, address)), self, module)
    return function


@cache
def _definition(name: str, address: int) -> _MethodDefinition:
    """Return the definition of a function, which is never freed: CPython reads it when it destroys the function. What a
    function of a garbage cycle holds may be cleared before."""
    return _MethodDefinition(name.encode(), address, _FASTCALL, None)


def capsule_of(content: object) -> object:
    """Return an object that native code takes as ``self``: ``PyCapsule_GetPointer(self, NULL)`` is the address of
    ``content``, which the caller must keep alive. A ctypes structure or array is passed by the address of its data."""
    make = ctypes.pythonapi.PyCapsule_New
    make.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    make.restype = ctypes.py_object
    address = ctypes.addressof(content) if isinstance(content, ctypes.Structure | ctypes.Array) else id(content)
    capsule: object = make(address, None, None)
    return capsule


@cache
def object_class_offset() -> int | None:
    """Return the offset of the pointer to the class in a CPython object, in bytes; None if it is unknown."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != _WORD:
        return None
    samples = [1, 2.5, "text", [], True]
    words = range(0, 3 * _WORD, _WORD)
    found = [place for place in words if all(_word(id(each) + place) == id(type(each)) for each in samples)]
    return found[0] if len(found) == 1 else None


def _word(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value


class _Owner(str):
    """The name of a module, to which CPython keeps a reference in a function; its ``kept`` keeps the objects that the
    function needs alive."""

    kept: object


class _MethodDefinition(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("ml_name", ctypes.c_char_p),
        ("ml_meth", ctypes.c_void_p),
        ("ml_flags", ctypes.c_int),
        ("ml_doc", ctypes.c_char_p),
    )


class _EntryWriter:
    def __init__(self, name: str, parameters: Sequence[str]) -> None:
        self.name = name
        self.parameters = tuple(parameters)
        self.lines: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def unpack(self) -> None:
        count = len(self.parameters)
        self.label("start")
        self.line(f"%enough = icmp eq i64 %count, {count}")
        self.line("br i1 %enough, label %take0, label %wrong_count")
        for index, type in enumerate(self.parameters):
            self.take(index, "i64" if type == "ptr" else type)
        self.label(f"take{count}")

    def take(self, index: int, type: str) -> None:
        """Emit code that reads argument ``index`` into ``%a{index}``."""
        call, failed = _UNPACK[type]
        raw = f"%n{index}"
        self.label(f"take{index}")
        self.line(f"%p{index} = getelementptr ptr, ptr %arguments, i64 {index}")
        self.line(f"%o{index} = load ptr, ptr %p{index}")
        self.line(f"{raw} = {call}(ptr %o{index})")
        self.line(f"%f{index} = {failed.format(raw)}")
        self.line(f"br i1 %f{index}, label %check{index}, label %good{index}")
        self.label(f"check{index}")
        self.line(f"%e{index} = call ptr @PyErr_Occurred()")
        self.line(f"%b{index} = icmp ne ptr %e{index}, null")
        self.line(f"br i1 %b{index}, label %failed, label %good{index}")
        self.label(f"good{index}")
        if self.parameters[index] == "ptr":
            self.line(f"%a{index} = inttoptr i64 {raw} to ptr")
        elif type == "i1":
            self.line(f"%a{index} = icmp ne i32 {raw}, 0")
        else:
            self.line(f"%a{index} = bitcast {type} {raw} to {type}")
        self.line(f"br label %take{index + 1}")

    def call(self, result: str | None, without_gil: bool) -> None:
        if without_gil:
            self.line("%thread = call ptr @PyEval_SaveThread()")
        arguments = ", ".join(f"{type} %a{index}" for index, type in enumerate(self.parameters))
        self.line(f"{'%result = ' if result else ''}call {result or 'void'} @{self.name}({arguments})")
        if without_gil:
            self.line("call void @PyEval_RestoreThread(ptr %thread)")
        self.answer(result)
        self.label("wrong_count")
        self.line("%class = load ptr, ptr @PyExc_TypeError")
        self.line(f"call void @PyErr_SetString(ptr %class, ptr @{self.name}.wrong_count)")
        self.line("br label %failed")
        self.label("failed")
        self.line("ret ptr null")

    def answer(self, result: str | None) -> None:
        match result:
            case None:
                self.line("call void @Py_IncRef(ptr @_Py_NoneStruct)")
                self.line("ret ptr @_Py_NoneStruct")
                return
            case "double":
                self.line("%object = call ptr @PyFloat_FromDouble(double %result)")
            case "i1":
                self.line("%wide = zext i1 %result to i64")
                self.line("%object = call ptr @PyBool_FromLong(i64 %wide)")
            case "ptr":
                self.line("%wide = ptrtoint ptr %result to i64")
                self.line("%object = call ptr @PyLong_FromLongLong(i64 %wide)")
            case _:
                self.line("%object = call ptr @PyLong_FromLongLong(i64 %result)")
        self.line("ret ptr %object")

    def text(self) -> str:
        plural = "" if len(self.parameters) == 1 else "s"
        message = f"{self.name} takes {len(self.parameters)} argument{plural}"
        size = len(message.encode()) + 1
        return "\n".join(
            [
                f'@{self.name}.wrong_count = private constant [{size} x i8] c"{message}\\00"',
                f"define ptr @{self.name}.entry(ptr %self, ptr %arguments, i64 %count) {{",
                *self.lines,
                "}",
                "",
            ]
        )
