"""Emission of whole kernels: the nests, one after the other, each parallelized over the threads of PyTorch's own pool.

The function ``kernel(ptr pointers, ptr parameters, ptr arguments)`` takes the addresses of the buffers, the sizes,
offsets and strides of the nests, and eight bytes for each argument. It returns 0, or 1 if an index or
a checked value was out of bounds.
"""

from __future__ import annotations

from collections.abc import Callable

from rekindle.codegen.emission.full_reductions import MAX_THREADS, FullReductionWriter, slots_of
from rekindle.codegen.emission.ir_builder import FunctionBuilder, ModuleBuilder
from rekindle.codegen.emission.machines import HostMachine
from rekindle.codegen.emission.matmul import product_name
from rekindle.codegen.emission.nests import PARAMETERS, NestWriter, expressions_of, nest_lanes
from rekindle.codegen.emission.reductions import SLOT
from rekindle.codegen.kernel_status import KernelStatus
from rekindle.codegen.llvm import symbols, vector_math
from rekindle.codegen.llvm.optimization import PREOPTIMIZED
from rekindle.codegen.llvm.target import Target
from rekindle.codegen.loop_ir.builder import Unsupported
from rekindle.codegen.loop_ir.nodes import Kernel, LoopNest, MatmulNest
from rekindle.codegen.loop_ir.scalar_types import F16

THREADS = ("GOMP_parallel", "omp_get_max_threads", "omp_in_parallel", "omp_get_thread_num", "omp_get_num_threads")
"""Functions of the threading library of PyTorch. Without one of them, kernels run on one thread."""

GRAIN = 1 << 16
"""Number of simple operations that justify a thread."""

PRODUCT_GRAIN = 1 << 20
"""Number of multiplications of a matrix product that justify a thread."""
_ROWS = 16
"""Rows or columns of a product that threads get are a multiple of this."""

_SIMPLE = frozenset(
    {
        *(
            "load",
            "constant",
            "argument",
            "reduced",
            "length",
            "given",
            "cast",
            "add",
            "sub",
            "mul",
            "fma",
            "neg",
            "abs",
            "select",
            "checked",
        ),
        *("lt", "le", "gt", "ge", "eq", "ne", "and", "or", "xor", "not", "floor", "ceil", "trunc", "round"),
    }
)


_REPORT_FAILURE = """define internal void @report_failure(ptr %status) alwaysinline {
  store i64 1, ptr %status, align 8
  ret void
}"""
"""Function that lookups call for an index out of bounds, and checks for a value out of range."""


def kernel_module(kernel: Kernel, target: Target) -> str:
    """Return the LLVM IR of ``kernel``. Functions of matrix products are declared, not defined:
    :mod:`~rekindle.codegen.emission.matmul` has their modules.

    Raises:
        Unsupported: the processor lacks half floats, or the C library's allocator is not available.
    """
    nests = [nest for nest in kernel.nests if isinstance(nest, LoopNest)]
    if not target.has("f16c") and any(each.scalar is F16 for nest in nests for each in expressions_of(nest)):
        raise Unsupported("half floats, which this processor does not know")
    if kernel.temporaries and (symbols.find("malloc") is None or symbols.find("free") is None):
        raise Unsupported("memory for what is computed on the way")
    module = ModuleBuilder()
    first = 0
    for number, nest in enumerate(kernel.nests):
        if isinstance(nest, LoopNest):
            writer = FullReductionWriter if nest.is_full_reduction else NestWriter
            writer(module, kernel, nest, number, first, HostMachine(target), nest_lanes(nest, target)).write()
        first += nest.parameters
    can_share = all(symbols.find(name) is not None for name in THREADS)
    module.definitions.append(_kernel(module, kernel, target, can_share))
    declarations = "\n".join(module.declarations[name] for name in sorted(module.declarations))
    functions = vector_math.texts(list(module.functions.values()))
    return (
        "\n\n".join(
            [
                PREOPTIMIZED,
                _REPORT_FAILURE if kernel.may_fail else "",
                functions,
                declarations,
                *module.definitions,
                "!0 = !{}",
                '!1 = !{!"branch_weights", i32 1000, i32 1}',
            ]
        )
        + "\n"
    )


def weight(nest: LoopNest) -> int:
    """Return the approximate cost of one element of a nest, in simple operations."""
    kinds = [each.kind for each in expressions_of(nest)]
    return sum(1 if kind in _SIMPLE else 4 if kind in ("div", "sqrt") else 16 for kind in kinds)


def _kernel(module: ModuleBuilder, kernel: Kernel, target: Target, can_share: bool) -> str:
    f = FunctionBuilder(module)
    f.label("entry")
    parameters = sum(nest.parameters for nest in kernel.nests)
    pointers = _with_temporaries(f, kernel, parameters)
    if kernel.nests:
        f.emit(f"%context = alloca [{_SLOTS} x i64], align 8")
        for slot, name in enumerate((pointers, "%parameters", "%arguments")):
            f.emit(f"store ptr {name}, ptr {_slot(f, slot)}, align 8")
    first = 0
    for number, nest in enumerate(kernel.nests):
        if isinstance(nest, MatmulNest):
            module.definitions.append(_part_of_product(module, nest, number, first))
            work, total = _product(f, first, nest.rank), _shared_size(f, "%parameters", nest, first)[1]
            call = _call_of_product(f, pointers, nest, f.emit_value(f"getelementptr i64, ptr %parameters, i64 {first}"))
            _shared(f, f"nest{number}", _ROWS, total, work, call, PRODUCT_GRAIN if can_share else None)
            first += nest.parameters
            continue
        loops = nest.rank if nest.is_full_reduction or not nest.reduction_rank else nest.rank - nest.reduction_rank
        total, work = _product(f, first, loops), _product(f, first, nest.rank)
        grain = max(GRAIN // weight(nest), 1) if can_share else None
        is_by_vectors = nest.is_full_reduction or (loops == 1 and (nest.vectorizes_outer or not nest.reduction_rank))
        lanes = nest_lanes(nest, target) if is_by_vectors else 1
        if nest.is_full_reduction:
            _whole(f, pointers, nest, number, total, lanes, grain)
        else:
            call = f"@nest{number}(ptr {pointers}, ptr %parameters, ptr %arguments, i64 0, i64 {total})"
            _shared(f, f"nest{number}", lanes, total, work, call, grain)
        first += nest.parameters
    for number in range(len(kernel.temporaries)):
        f.call("void", "free", ("ptr", f"%temporary{number}"))
    f.emit(f"ret i64 {f.emit_value('load i64, ptr %status, align 8') if kernel.may_fail else '0'}")
    return "\n".join([f"define i64 @kernel({PARAMETERS}) {{", *f.lines, "}"])


def _call_of_product(f: FunctionBuilder, pointers: str, nest: MatmulNest, numbers: str) -> str:
    """Emit the operands of a call of a matrix product; return the text of the call."""
    places = [f.emit_value(f"getelementptr ptr, ptr {pointers}, i64 {access.buffer}") for access in nest.accesses]
    buffers = [f.emit_value(f"load ptr, ptr {place}, align 8") for place in places]
    f.module.declare(product_name(nest), "void", *("ptr",) * 4)
    return f"@{product_name(nest)}({', '.join(f'ptr {each}' for each in (*buffers, numbers))})"


def _shared_size(f: FunctionBuilder, numbers: str, nest: MatmulNest, first: int) -> tuple[str, str]:
    """Emit the choice of the loop of a matrix product that threads share, the longer of ``m`` and ``n``. Return its
    index and its size."""
    m, n = (
        f.emit_value(f"load i64, ptr {f.emit_value(f'getelementptr i64, ptr {numbers}, i64 {first + loop}')}, align 8")
        for loop in (nest.rank - 3, nest.rank - 2)
    )
    is_wide = f.emit_value(f"icmp ult i64 {m}, {n}")
    loop = f.emit_value(f"select i1 {is_wide}, i64 {nest.rank - 2}, i64 {nest.rank - 3}")
    return loop, f.emit_value(f"select i1 {is_wide}, i64 {n}, i64 {m}")


def _part_of_product(module: ModuleBuilder, nest: MatmulNest, number: int, first: int) -> str:
    """Return the LLVM IR of a function that computes a range of rows or columns of a matrix product, by a copy of the
    parameters with the size and offsets of the range."""
    f = FunctionBuilder(module)
    f.label("entry")
    f.emit(f"%numbers = alloca [{nest.parameters} x i64], align 8")

    def place(index: int | str) -> str:
        return f.emit_value(f"getelementptr i64, ptr %numbers, i64 {index}")

    for index in range(nest.parameters):
        given = f.emit_value(f"getelementptr i64, ptr %parameters, i64 {first + index}")
        f.emit(f"store i64 {f.emit_value(f'load i64, ptr {given}, align 8')}, ptr {place(index)}, align 8")
    loop, _ = _shared_size(f, "%numbers", nest, 0)
    f.emit(f"store i64 {f.emit_value('sub i64 %end, %begin')}, ptr {place(loop)}, align 8")
    for access in range(len(nest.accesses)):
        offset = nest.rank + access * (1 + nest.rank)
        along = f.emit_value(f"load i64, ptr {place(f.emit_value(f'add i64 {loop}, {offset + 1}'))}, align 8")
        known = f.emit_value(f"load i64, ptr {place(offset)}, align 8")
        moved = f.emit_value(f"add i64 {known}, {f.emit_value(f'mul i64 {along}, %begin')}")
        f.emit(f"store i64 {moved}, ptr {place(offset)}, align 8")
    f.emit(f"call void {_call_of_product(f, '%pointers', nest, '%numbers')}")
    f.emit("ret void")
    head = f"define internal void @nest{number}({PARAMETERS}, i64 %begin, i64 %end) {{"
    return "\n".join([head, *f.lines, "}"])


_SLOTS = 8
_BODY, _TOTAL, _KNOWN, _PARTS, _THREADS = range(3, _SLOTS)
"""Fields of the threads' argument, after the arguments of the kernel: the function that computes a range of iterations,
the number of iterations, the results of earlier phases and the partial results of a reduction, and the actual number of
threads."""


def _with_temporaries(f: FunctionBuilder, kernel: Kernel, first: int) -> str:
    """Emit the array of pointers to all buffers: those passed, temporaries that are allocated for the call, and the
    status word of a kernel that may fail. The sizes of the temporaries are the parameters from ``first`` on. Return the
    array."""
    if not kernel.temporaries and not kernel.may_fail:
        return "%pointers"
    given = len(kernel.inputs) + len(kernel.outputs)
    f.emit(f"%buffers = alloca [{given + len(kernel.temporaries) + kernel.may_fail} x ptr], align 8")
    for number in range(given):
        place = f.emit_value(f"getelementptr ptr, ptr %pointers, i64 {number}")
        pointer = f.emit_value(f"load ptr, ptr {place}, align 8")
        f.emit(f"store ptr {pointer}, ptr {f.emit_value(f'getelementptr ptr, ptr %buffers, i64 {number}')}, align 8")
    for number in range(len(kernel.temporaries)):
        size = f.emit_value(
            f"load i64, ptr {f.emit_value(f'getelementptr i64, ptr %parameters, i64 {first + number}')}, align 8"
        )
        f.module.declare("malloc", "ptr", "i64")
        f.emit(f"%temporary{number} = call ptr @malloc(i64 {size})")
        place = f.emit_value(f"getelementptr ptr, ptr %buffers, i64 {given + number}")
        f.emit(f"store ptr %temporary{number}, ptr {place}, align 8")
    _check_temporaries(f, len(kernel.temporaries))
    if kernel.may_fail:
        f.emit("%status = alloca i64, align 8")
        f.emit("store i64 0, ptr %status, align 8")
        place = f.emit_value(f"getelementptr ptr, ptr %buffers, i64 {given + len(kernel.temporaries)}")
        f.emit(f"store ptr %status, ptr {place}, align 8")
    return "%buffers"


def _check_temporaries(f: FunctionBuilder, count: int) -> None:
    """Emit a return with a status of its own if one of the ``count`` temporaries has no memory."""
    if not count:
        return
    missing = "false"
    for number in range(count):
        missing = f.emit_value(f"or i1 {missing}, {f.emit_value(f'icmp eq ptr %temporary{number}, null')}")
    f.emit(f"br i1 {missing}, label %no_memory, label %allocated")
    f.label("no_memory")
    for number in range(count):
        f.call("void", "free", ("ptr", f"%temporary{number}"))
    f.emit(f"ret i64 {int(KernelStatus.NO_MEMORY)}")
    f.label("allocated")


def _slot(f: FunctionBuilder, slot: int) -> str:
    return f.emit_value(f"getelementptr i64, ptr %context, i64 {slot}")


def _product(f: FunctionBuilder, first: int, count: int) -> str:
    """Emit the product of ``count`` loop sizes, the parameters from ``first`` on; return the operand."""
    total = "1"
    for index in range(first, first + count):
        place = f.emit_value(f"getelementptr i64, ptr %parameters, i64 {index}")
        size = f.emit_value(f"load i64, ptr {place}, align 8")
        total = size if total == "1" else f.emit_value(f"mul i64 {total}, {size}")
    return total


def _whole(
    f: FunctionBuilder, pointers: str, nest: LoopNest, number: int, total: str, lanes: int, grain: int | None
) -> None:
    """Emit the calls of the phases of a full reduction, each on as many threads as its work justifies."""
    known, parts = f"%known{number}", f"%parts{number}"
    most = max(map(slots_of, nest.phases))
    f.emit(f"{known} = alloca [{sum(map(slots_of, nest.phases))} x i64], align 8")
    f.emit(f"{parts} = alloca [{max(most, 1) * MAX_THREADS} x i64], align 64")
    f.emit(f"store ptr {known}, ptr {_slot(f, _KNOWN)}, align 8")
    f.emit(f"store ptr {parts}, ptr {_slot(f, _PARTS)}, align 8")
    given = f"ptr {pointers}, ptr %parameters, ptr %arguments"
    slot = 0
    for index, phase in enumerate(nest.phases):
        name, slots = f"nest{number}.phase{index}", slots_of(phase)
        found = f.emit_value(f"getelementptr i64, ptr {known}, i64 {slot}")
        call = f"@{name}({given}, i64 0, i64 {total}, ptr {known}, ptr {found})"

        def join(index: int = index, found: str = found) -> None:
            threads = f.emit_value(f"load i64, ptr {_slot(f, _THREADS)}, align 8")
            f.emit(f"call void @nest{number}.join{index}(ptr {parts}, i64 {threads}, ptr {found})")

        _shared(f, name, lanes, total, total, call, grain, slots, join)
        slot += slots
    f.emit(f"call void @nest{number}.last({given}, ptr {known})")


def _shared(
    f: FunctionBuilder,
    name: str,
    lanes: int,
    total: str,
    work: str,
    call: str,
    grain: int | None,
    slots: int | None = None,
    join: Callable[[], None] | None = None,
) -> None:
    """Emit a parallel loop: ``total`` iterations of the function ``name``, with ``work`` elements, on as many threads
    as that work justifies, each of which gets a multiple of ``lanes``. ``call`` runs all of them on one thread. If the
    loop reduces, each thread writes ``slots`` partial results, and ``join`` emits what combines them."""
    if grain is None:
        f.emit(f"call void {call}")
        return
    few, many, several, done = (f"{word}.{name}" for word in ("few", "many", "asked", "done"))
    wanted = f.call("i64", "llvm.umin.i64", ("i64", f.emit_value(f"udiv i64 {work}, {grain}")), ("i64", total))
    f.emit(f"br i1 {f.emit_value(f'icmp ult i64 {wanted}, 2')}, label %{few}, label %{several}")
    f.label(several)
    most = f.emit_value(f"sext i32 {f.call('i32', 'omp_get_max_threads')} to i64")
    inside = f.emit_value(f"icmp ne i32 {f.call('i32', 'omp_in_parallel')}, 0")
    allowed = f.emit_value(f"select i1 {inside}, i64 1, i64 {most}")
    if join is not None:
        allowed = f.call("i64", "llvm.umin.i64", ("i64", allowed), ("i64", str(MAX_THREADS)))
    threads = f.call("i64", "llvm.umin.i64", ("i64", wanted), ("i64", allowed))
    f.emit(f"br i1 {f.emit_value(f'icmp ult i64 {threads}, 2')}, label %{few}, label %{many}")
    f.label(many)
    f.emit(f"store ptr @{name}, ptr {_slot(f, _BODY)}, align 8")
    f.emit(f"store i64 {total}, ptr {_slot(f, _TOTAL)}, align 8")
    count = f.emit_value(f"trunc i64 {threads} to i32")
    share = ("ptr", f"@{_share(f.module, lanes, slots)}")
    f.call("void", "GOMP_parallel", share, ("ptr", "%context"), ("i32", count), ("i32", "0"))
    if join is not None:
        join()
    f.emit(f"br label %{done}")
    f.label(few)
    f.emit(f"call void {call}")
    f.emit(f"br label %{done}")
    f.label(done)


def _share(module: ModuleBuilder, lanes: int, slots: int | None) -> str:
    """Return the name of the function that a thread runs, which all loops of these ``lanes`` and ``slots`` have in
    common: it calls the body for the thread's share of the iterations, in whole vectors. If the loop reduces, the
    thread writes ``slots`` partial results."""
    name = f"share.{lanes}" if slots is None else f"share.{lanes}.{slots}"
    head = f"define internal void @{name}(ptr %context) {{"
    if any(each.startswith(head) for each in module.definitions):
        return name
    f = FunctionBuilder(module)
    f.label("entry")
    given = [f.emit_value(f"load ptr, ptr {_slot(f, slot)}, align 8") for slot in range(3)]
    body = f.emit_value(f"load ptr, ptr {_slot(f, _BODY)}, align 8")
    total = f.emit_value(f"load i64, ptr {_slot(f, _TOTAL)}, align 8")
    thread = f.emit_value(f"sext i32 {f.call('i32', 'omp_get_thread_num')} to i64")
    threads = f.emit_value(f"sext i32 {f.call('i32', 'omp_get_num_threads')} to i64")
    rounded = f.emit_value(f"add i64 {total}, {f.emit_value(f'sub i64 {threads}, 1')}")
    share = f.emit_value(f"udiv i64 {rounded}, {threads}")
    share = f.emit_value(f"and i64 {f.emit_value(f'add i64 {share}, {lanes - 1}')}, {-lanes}")
    start = f.emit_value(f"mul i64 {share}, {thread}")
    begin = f.call("i64", "llvm.umin.i64", ("i64", start), ("i64", total))
    end = f.call("i64", "llvm.umin.i64", ("i64", f.emit_value(f"add i64 {start}, {share}")), ("i64", total))
    arguments = ", ".join([*(f"ptr {value}" for value in given), f"i64 {begin}", f"i64 {end}"])
    if slots is None:
        f.emit(f"br i1 {f.emit_value(f'icmp ult i64 {begin}, {end}')}, label %work, label %done")
        f.label("work")
    else:  # one without elements leaves what changes nothing
        known = f.emit_value(f"load ptr, ptr {_slot(f, _KNOWN)}, align 8")
        parts = f.emit_value(f"load ptr, ptr {_slot(f, _PARTS)}, align 8")
        found = f.emit_value(f"getelementptr i8, ptr {parts}, i64 {f.emit_value(f'mul i64 {thread}, {slots * SLOT}')}")
        arguments += f", ptr {known}, ptr {found}"
        f.emit(f"br i1 {f.emit_value(f'icmp eq i64 {thread}, 0')}, label %first, label %work")
        f.label("first")
        f.emit(f"store i64 {threads}, ptr {_slot(f, _THREADS)}, align 8")
        f.emit("br label %work")
        f.label("work")
    f.emit(f"call void {body}({arguments})")
    f.emit("br label %done")
    f.label("done")
    f.emit("ret void")
    module.definitions.append("\n".join([head, *f.lines, "}"]))
    return name
