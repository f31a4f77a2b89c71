"""Whole kernels: the nests, one after the other, each shared by the threads of PyTorch's own pool.

The function ``kernel(ptr pointers, ptr parameters, ptr arguments)`` takes the addresses of the buffers, the sizes,
offsets and strides of the nests, and eight bytes for each argument.
"""

from __future__ import annotations

from rekindle.codegen.emission.names import Function, Module
from rekindle.codegen.emission.nests import PARAMETERS, NestWriter, expressions_of, nest_lanes
from rekindle.codegen.llvm import symbols, vector_math
from rekindle.codegen.llvm.target import Target
from rekindle.codegen.loops.builder import Unsupported
from rekindle.codegen.loops.form import Kernel, Nest
from rekindle.codegen.loops.scalars import F16

THREADS = ("GOMP_parallel", "omp_get_max_threads", "omp_in_parallel", "omp_get_thread_num", "omp_get_num_threads")
"""What a kernel needs of the library that PyTorch's threads belong to."""

GRAIN = 1 << 16
"""How many simple operations are worth a thread."""

_SIMPLE = frozenset(
    {
        *(
            "load",
            "constant",
            "argument",
            "reduced",
            "length",
            "cast",
            "add",
            "sub",
            "mul",
            "fma",
            "neg",
            "abs",
            "select",
        ),
        *("lt", "le", "gt", "ge", "eq", "ne", "and", "or", "xor", "not", "floor", "ceil", "trunc", "round"),
    }
)


def kernel_module(kernel: Kernel, target: Target) -> str:
    """The module that defines ``kernel``.

    Raises:
        Unsupported: ``target`` lacks what it needs.
    """
    if not target.has("f16c") and any(each.scalar is F16 for nest in kernel.nests for each in expressions_of(nest)):
        raise Unsupported("half floats, which this processor does not know")
    module = Module()
    first = 0
    for number, nest in enumerate(kernel.nests):
        NestWriter(module, kernel, nest, number, first, target).write()
        first += nest.parameters
    can_share = all(symbols.find(name) is not None for name in THREADS)
    module.definitions.append(_kernel(module, kernel, target, can_share))
    declarations = "\n".join(module.declarations[name] for name in sorted(module.declarations))
    functions = vector_math.texts(list(module.functions.values()))
    return "\n\n".join([functions, declarations, *module.definitions, "!0 = !{}"]) + "\n"


def weight(nest: Nest) -> int:
    """About how many simple operations one element costs."""
    kinds = [each.kind for each in expressions_of(nest)]
    return sum(1 if kind in _SIMPLE else 4 if kind in ("div", "sqrt") else 16 for kind in kinds)


def _kernel(module: Module, kernel: Kernel, target: Target, can_share: bool) -> str:
    f = Function(module)
    f.label("entry")
    if can_share and kernel.nests:
        f.do("%context = alloca [4 x i64], align 8")
        for slot, name in enumerate(("%pointers", "%parameters", "%arguments")):
            f.do(f"store ptr {name}, ptr {_slot(f, slot)}, align 8")
    first = 0
    for number, nest in enumerate(kernel.nests):
        total = _product(f, first, nest.rank - nest.is_reduction)
        work = _product(f, first, nest.rank)
        if can_share:
            lanes = 1 if nest.rank > 1 or nest.is_reduction else nest_lanes(nest, target)
            module.definitions.append(_share(module, number, lanes))
            _shared(f, number, total, work, max(GRAIN // weight(nest), 1))
        else:
            f.do(f"call void @nest{number}(ptr %pointers, ptr %parameters, ptr %arguments, i64 0, i64 {total})")
        first += nest.parameters
    f.do("ret void")
    return "\n".join([f"define void @kernel({PARAMETERS}) {{", *f.lines, "}"])


def _slot(f: Function, slot: int) -> str:
    return f.let(f"getelementptr i64, ptr %context, i64 {slot}")


def _product(f: Function, first: int, count: int) -> str:
    """The number of iterations that threads can share."""
    total = "1"
    for index in range(first, first + count):
        place = f.let(f"getelementptr i64, ptr %parameters, i64 {index}")
        size = f.let(f"load i64, ptr {place}, align 8")
        total = size if total == "1" else f.let(f"mul i64 {total}, {size}")
    return total


def _shared(f: Function, number: int, total: str, work: str, grain: int) -> None:
    """Run a nest of ``total`` iterations, with ``work`` elements, on as many threads as it is worth, and as there
    are."""
    few, many, asked, done = (f"{name}{number}" for name in ("few", "many", "asked", "done"))
    wanted = f.call("i64", "llvm.umin.i64", ("i64", f.let(f"udiv i64 {work}, {grain}")), ("i64", total))
    f.do(f"br i1 {f.let(f'icmp ult i64 {wanted}, 2')}, label %{few}, label %{asked}")
    f.label(asked)
    most = f.let(f"sext i32 {f.call('i32', 'omp_get_max_threads')} to i64")
    inside = f.let(f"icmp ne i32 {f.call('i32', 'omp_in_parallel')}, 0")
    allowed = f.let(f"select i1 {inside}, i64 1, i64 {most}")
    threads = f.call("i64", "llvm.umin.i64", ("i64", wanted), ("i64", allowed))
    f.do(f"br i1 {f.let(f'icmp ult i64 {threads}, 2')}, label %{few}, label %{many}")
    f.label(many)
    f.do(f"store i64 {total}, ptr {_slot(f, 3)}, align 8")
    count = f.let(f"trunc i64 {threads} to i32")
    body = ("ptr", f"@share{number}")
    f.call("void", "GOMP_parallel", body, ("ptr", "%context"), ("i32", count), ("i32", "0"))
    f.do(f"br label %{done}")
    f.label(few)
    f.do(f"call void @nest{number}(ptr %pointers, ptr %parameters, ptr %arguments, i64 0, i64 {total})")
    f.do(f"br label %{done}")
    f.label(done)


def _share(module: Module, number: int, lanes: int) -> str:
    """The function that one thread runs: its share of the iterations, in whole vectors."""
    f = Function(module)
    f.label("entry")
    given = [f.let(f"load ptr, ptr {_slot(f, slot)}, align 8") for slot in range(3)]
    total = f.let(f"load i64, ptr {_slot(f, 3)}, align 8")
    thread = f.let(f"sext i32 {f.call('i32', 'omp_get_thread_num')} to i64")
    threads = f.let(f"sext i32 {f.call('i32', 'omp_get_num_threads')} to i64")
    rounded = f.let(f"add i64 {total}, {f.let(f'sub i64 {threads}, 1')}")
    share = f.let(f"udiv i64 {rounded}, {threads}")
    share = f.let(f"and i64 {f.let(f'add i64 {share}, {lanes - 1}')}, {-lanes}")
    start = f.let(f"mul i64 {share}, {thread}")
    begin = f.call("i64", "llvm.umin.i64", ("i64", start), ("i64", total))
    end = f.call("i64", "llvm.umin.i64", ("i64", f.let(f"add i64 {start}, {share}")), ("i64", total))
    f.do(f"br i1 {f.let(f'icmp ult i64 {begin}, {end}')}, label %work, label %done")
    f.label("work")
    arguments = ", ".join(f"ptr {value}" for value in given)
    f.do(f"call void @nest{number}({arguments}, i64 {begin}, i64 {end})")
    f.do("br label %done")
    f.label("done")
    f.do("ret void")
    return "\n".join([f"define internal void @share{number}(ptr %context) {{", *f.lines, "}"])
