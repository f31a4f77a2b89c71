"""Native functions are called as functions of Python."""

import ctypes
import gc
import threading
import weakref

import pytest

from rekindle.codegen.llvm.cpython_wrappers import python_function, with_declarations, wrapper_ir
from rekindle.codegen.llvm.engine import compile_module

TEXT = """
define i64 @add(i64 %a, i64 %b) {
  %c = add i64 %a, %b
  ret i64 %c
}
define double @choose(i1 %c, double %x) {
  %y = select i1 %c, double %x, double -1.0
  ret double %y
}
define i1 @less(double %x, double %y) {
  %c = fcmp olt double %x, %y
  ret i1 %c
}
define ptr @next(ptr %p) {
  %q = getelementptr i8, ptr %p, i64 1
  ret ptr %q
}
define void @nothing() {
  ret void
}
"""

WORD = ctypes.sizeof(ctypes.c_void_p)

SIGNATURES = {
    "add": (["i64", "i64"], "i64"),
    "choose": (["i1", "double"], "double"),
    "less": (["double", "double"], "i1"),
    "next": (["ptr"], "ptr"),
    "nothing": ([], None),
}


@pytest.fixture(params=[False, True], ids=["with the GIL", "without"])
def functions(request):
    entries = [wrapper_ir(name, *signature, without_gil=request.param) for name, signature in SIGNATURES.items()]
    code = compile_module(with_declarations(TEXT + "".join(entries)))
    return {name: python_function(code, name) for name in SIGNATURES}


def test_numbers_go_in_and_come_out(functions):
    assert functions["add"](2**62, -5) == 2**62 - 5
    assert functions["add"](-1, 0) == -1
    assert functions["add"](True, 2) == 3
    assert functions["choose"](True, 2.5) == 2.5
    assert functions["choose"](False, 2.5) == -1.0
    assert functions["choose"](1, -1) == -1.0
    assert functions["less"](1, 2.5) is True
    assert functions["less"](2.5, float("nan")) is False
    assert functions["next"](100) == 101
    assert functions["nothing"]() is None


@pytest.mark.parametrize(
    ("name", "arguments", "error", "message"),
    [
        ("add", (1,), TypeError, "add takes 2 arguments"),
        ("add", (1, 2, 3), TypeError, "add takes 2 arguments"),
        ("next", (), TypeError, "next takes 1 argument"),
        ("add", (1, 2.5), TypeError, "'float' object cannot be interpreted as an integer"),
        ("add", (2**63, 1), OverflowError, "int too big to convert|Python int too large to convert to C long long"),
        ("choose", (True, "x"), TypeError, "must be real number, not str"),
    ],
)
def test_arguments_that_do_not_fit(functions, name, arguments, error, message):
    with pytest.raises(error, match=message):
        functions[name](*arguments)


def test_an_argument_that_raises(functions):
    class Undecided:
        def __bool__(self):
            raise ValueError("neither")

    with pytest.raises(ValueError, match="neither"):
        functions["choose"](Undecided(), 1.0)


def test_the_definition_of_a_function_outlives_it():
    """CPython reads it when it destroys a function, after the garbage collector has cleared what a cycle holds."""
    code = compile_module(with_declarations(TEXT.replace("@", "@b.") + wrapper_ir("b.add", ["i64", "i64"], "i64")))
    function, entry = python_function(code, "b.add"), code.address("b.add.entry")
    definition = _word(id(function) + 2 * WORD)
    cycle = {"function": function}
    cycle["itself"] = cycle
    del cycle, function, code
    gc.collect()
    assert ctypes.string_at(_word(definition)) == b"b.add"
    assert _word(definition + WORD) == entry


def _word(address):
    return ctypes.c_size_t.from_address(address).value


def test_a_function_keeps_its_code():
    code = compile_module(with_declarations(TEXT.replace("@", "@a.") + wrapper_ir("a.add", ["i64", "i64"], "i64")))
    add = python_function(code, "a.add")
    alive = weakref.ref(code)
    del code
    gc.collect()
    assert alive() is not None
    assert add(1, 2) == 3
    del add
    gc.collect()
    assert alive() is None


def test_threads_call_it_side_by_side(functions):
    add, results = functions["add"], []

    def work(number):
        results.append(sum(add(number, 1) for _ in range(10_000)))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [10_000 * (number + 1) for number in range(4)]
