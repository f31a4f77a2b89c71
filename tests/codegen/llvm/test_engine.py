"""LLVM IR is compiled, and its code is freed after the last reference."""

import ctypes
import gc
import os
import subprocess
import sys
import threading
import weakref

import pytest

from rekindle.codegen.llvm import engine, library, target
from rekindle.codegen.llvm.engine import LazyModule, compile_module
from rekindle.codegen.llvm.optimization import PREOPTIMIZED
from rekindle.errors import RekindleError

ADD = "define i64 @add(i64 %a, i64 %b) {\n  %c = add i64 %a, %b\n  ret i64 %c\n}\n"


def of_ints(code, name, count):
    return ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * count)(code.address(name))


def test_a_text_becomes_a_function():
    code = compile_module(ADD)
    assert code.names == ("add",)
    assert of_ints(code, "add", 2)(40, 2) == 42


def test_functions_of_other_libraries_are_called_by_name():
    body = "%y = call double @cos(double %x)\n  ret double %y"
    text = f"declare double @cos(double)\ndefine double @f(double %x) {{\n  {body}\n}}"
    code = compile_module(text)
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(code.address("f"))(0.0) == 1.0


def test_what_llvm_calls_on_its_own_account_is_found():
    text = "define double @f(double %x) {\n  %y = frem double %x, 3.0\n  ret double %y\n}"
    code = compile_module(text)
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(code.address("f"))(7.5) == 1.5


def test_a_function_that_is_nowhere():
    text = "declare void @nowhere_at_all()\ndefine void @f() {\n  call void @nowhere_at_all()\n  ret void\n}"
    with pytest.raises(library.MissingSymbolError, match="no library that is loaded here has nowhere_at_all") as raised:
        compile_module(text)
    assert raised.value.names == ("nowhere_at_all",)


def test_a_text_that_is_wrong_is_shown_with_what_llvm_says():
    with pytest.raises(library.CodegenError) as raised:
        compile_module("define i64 @f() {\n  ret i32 0\n}")
    assert "value doesn't match function result type 'i64'" in str(raised.value)
    assert "   2   ret i32 0" in str(raised.value)


def test_equal_texts_share_their_code():
    assert compile_module(ADD) is compile_module(ADD)


def test_code_is_freed_with_its_owner():
    code = compile_module(ADD.replace("@add", "@freed"), cache=False)
    gone = weakref.ref(code)
    del code
    gc.collect()
    assert gone() is None


def test_freed_code_gives_its_memory_back():
    """200 MiB, were they kept."""

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    if not os.path.exists("/proc/self/statm"):
        pytest.skip("no /proc here to read the size of the process from")
    size = 1 << 20

    def make(number):
        data = f"@data{number} = global [{size} x i8] zeroinitializer"
        text = f"{data}\ndefine ptr @f{number}() {{\n  ret ptr @data{number}\n}}"
        code = compile_module(text, cache=False)
        ctypes.memset(ctypes.CFUNCTYPE(ctypes.c_void_p)(code.address(f"f{number}"))(), 1, size)

    make(0)
    before = resident()
    for number in range(1, 200):
        make(number)
    gc.collect()
    assert resident() - before < 50 * size


def test_threads_compile_side_by_side():
    results = {}

    def work(number):
        for round in range(5):
            text = ADD.replace("@add", f"@add_{number}_{round}").replace("%a, %b\n", f"%a, {number}\n")
            code = compile_module(text)
            results[number, round] = of_ints(code, f"add_{number}_{round}", 2)(round, 0)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {(number, round): number + round for number in range(8) for round in range(5)}


def test_llvm_can_be_read_after_its_passes():
    code = compile_module("define i64 @f(i64 %a) {\n  %b = add i64 %a, 1\n  %c = add i64 %b, 1\n  ret i64 %c\n}")
    assert "add i64 %a, 2" in code.optimized()
    assert "f:" in code.assembly()


def test_few_passes():
    """They inline what has to be, and take places to registers; numbers are added up as they were written."""
    text = (
        "define internal i64 @add(i64 %a) alwaysinline {\n  %b = add i64 %a, 1\n  ret i64 %b\n}\n"
        "define i64 @f(i64 %a) {\n  %p = alloca i64\n  store i64 %a, ptr %p\n  %b = load i64, ptr %p\n"
        "  %c = call i64 @add(i64 %b)\n  ret i64 %c\n}"
    )
    code = compile_module(f"{PREOPTIMIZED}\n{text}")
    assert "call" not in code.optimized()
    assert "alloca" not in code.optimized()
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address("f"))(41) == 42
    assert compile_module(text) is not code


def test_llvm_is_loaded_when_it_is_needed():
    text = (
        "import sys, rekindle, rekindle.codegen.llvm.cpython_wrappers, rekindle.codegen.llvm.engine\n"
        "rekindle.script\n"
        "assert 'llvmlite' not in sys.modules\n"
        "rekindle.codegen.llvm.engine.compile_module('define void @f() { ret void }')\n"
        "assert 'llvmlite' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", text], check=True)


# ------------------------------------------------------------------------------------------------------------- machines

VECTORS = """
define void @scale(ptr %x) {
  %v = load <16 x float>, ptr %x, align 4
  %w = fmul <16 x float> %v, splat (float 2.0)
  store <16 x float> %w, ptr %x, align 4
  ret void
}
"""
x86 = pytest.mark.skipif(not target.native_target().has("sse2"), reason="these levels are those of x86-64")


@x86
@pytest.mark.parametrize(
    ("name", "bits", "register"), [("x86-64", 128, "%xmm"), ("x86-64-v3", 256, "%ymm"), ("x86-64-v4", 512, "%zmm")]
)
def test_code_for_older_machines(monkeypatch, name, bits, register):
    if any(not target.native_target().has(feature) for feature in target.LEVELS[name]):
        pytest.skip(f"this machine is older than {name}")
    monkeypatch.setenv(target.VARIABLE, name)
    assert target.host_target().vector_bits == bits
    code = compile_module(VECTORS)
    assert register in code.assembly()
    wider = {"%xmm": ("%ymm", "%zmm"), "%ymm": ("%zmm",), "%zmm": ()}[register]
    assert not any(name in code.assembly() for name in wider)
    numbers = (ctypes.c_float * 16)(*range(16))
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address("scale"))(ctypes.addressof(numbers))
    assert list(numbers) == [2.0 * n for n in range(16)]


@x86
def test_features_of_the_levels():
    oldest = target.named_target("x86-64")
    assert oldest.has("sse2")
    assert not oldest.has("sse4.1")
    assert not oldest.has("fma")


def test_a_machine_that_nobody_knows(monkeypatch):
    monkeypatch.setenv(target.VARIABLE, "pdp11")
    with pytest.raises(RekindleError) as raised:
        target.host_target()
    assert str(raised.value) == (
        "REKINDLE_CPU is 'native' or one of x86-64, x86-64-v2, x86-64-v3, x86-64-v4, not 'pdp11'"
    )


def test_a_machine_that_this_one_is_not(monkeypatch):
    monkeypatch.setattr(target, "LEVELS", {"x86-64-v9": ("sse2", "avx4096")})
    with pytest.raises(RekindleError, match="cannot run code for 'x86-64-v9', which REKINDLE_CPU names: it has no"):
        target.named_target("x86-64-v9")


# ------------------------------------------------------------------------------------------------------------- the disk


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache of its own, and no code that is known already."""
    monkeypatch.setenv("REKINDLE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(engine, "_known", weakref.WeakValueDictionary())
    return tmp_path


def test_objects_are_found_again(folder):
    first = compile_module(ADD)
    engine._known.clear()
    second = compile_module(ADD)
    assert (first.from_cache, second.from_cache) == (False, True)
    assert first is not second
    assert of_ints(second, "add", 2)(40, 2) == 42


def test_the_key_knows_the_machine(folder):
    if not target.native_target().has("sse2"):
        pytest.skip("these levels are those of x86-64")
    compile_module(VECTORS)
    assert not compile_module(VECTORS, target=target.named_target("x86-64")).from_cache


def test_the_key_knows_the_versions(folder, monkeypatch):
    compile_module(ADD)
    engine._known.clear()
    monkeypatch.setattr(engine, "versions", lambda: "LLVM 99")
    assert not compile_module(ADD).from_cache


@pytest.mark.parametrize("switch", ["0", "off"])
def test_the_cache_is_turned_off(folder, monkeypatch, switch):
    monkeypatch.setenv("REKINDLE_CACHE", switch)
    compile_module(ADD)
    assert list(folder.iterdir()) == []


def test_a_source_is_not_written_for_what_is_on_disk(folder):
    written = []
    source = LazyModule("the sum of two", lambda: written.append("") or ADD)
    assert not compile_module(source).from_cache
    engine._known.clear()
    found = compile_module(source)
    assert found.from_cache
    assert len(written) == 1
    assert of_ints(found, "add", 2)(40, 2) == 42
    assert found.text == ADD


def test_sources_of_one_name_share_their_code():
    assert compile_module(LazyModule("sum", lambda: ADD)) is compile_module(LazyModule("sum", lambda: ADD))


def test_the_key_of_a_source_knows_who_writes_it(folder, monkeypatch):
    source = LazyModule("the sum of two", lambda: ADD)
    compile_module(source)
    engine._known.clear()
    monkeypatch.setattr(engine, "generator_state", lambda: "another one")
    assert not compile_module(source).from_cache


def test_thegenerator_state_is_another_when_a_file_changes(tmp_path, monkeypatch):
    (tmp_path / "llvm").mkdir()
    (tmp_path / "kernels.py").write_text("a = 1", encoding="utf-8")
    monkeypatch.setattr(engine, "__file__", str(tmp_path / "llvm" / "engine.py"))
    before = engine.generator_state.__wrapped__()
    assert engine.generator_state.__wrapped__() == before
    (tmp_path / "kernels.py").write_text("a = 12", encoding="utf-8")
    assert engine.generator_state.__wrapped__() != before


def test_an_object_that_cannot_be_linked_is_made_anew(folder):
    compile_module(ADD)
    engine._known.clear()
    disk = engine.disk_cache()
    key = engine._key(ADD, target.host_target())
    disk.store(key, engine._Object(("add",), (), b"not an object").pack())
    code = compile_module(ADD)
    assert not code.from_cache
    assert of_ints(code, "add", 2)(40, 2) == 42
    engine._known.clear()
    assert compile_module(ADD).from_cache


def test_a_new_process_compiles_nothing(folder):
    text = (
        "from rekindle.codegen.llvm.engine import compile_module\n"
        f"code = compile_module({ADD!r})\n"
        "print(code.from_cache)\n"
    )
    runs = [
        subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True).stdout for _ in "12"
    ]
    assert runs == ["False\n", "True\n"]
