"""Block reductions: reduce the values of the threads of a row or a column of a block to one that all of them have."""

from __future__ import annotations

from rekindle.codegen.cuda.geometry import VECTOR_BYTES
from rekindle.codegen.cuda.thread_ir import WARP
from rekindle.codegen.emission.ir_builder import FunctionBuilder
from rekindle.codegen.emission.reductions import ReductionWriter, identity_element
from rekindle.codegen.emission.vector_types import element_type, memory_type, vector
from rekindle.codegen.loop_ir.scalar_types import BOOL, ScalarType


def thread_index(f: FunctionBuilder, name: str) -> str:
    """Emit the coordinate or count ``name`` of :mod:`rekindle.codegen.cuda.thread_ir`, as an i64."""
    return f.emit_value(f"zext i32 {f.emit_value(f'call i32 @{name}()')} to i64")


def reduce_rows(fold: ReductionWriter, value: str) -> str:
    """Emit the reduction of ``value`` over the threads of a row of the block. Their number is a power of two, at least
    a warp.

    Every thread computes the same association of the same values, so that all have the same bits.
    """
    f, scalar, type = fold.f, fold.scalar, element_type(fold.scalar)
    value = _reduce_warp(fold, value)
    threads = thread_index(f, "threads.x")
    tag = f.name()
    result = f"%{f.name()}"
    f.emit(f"br label %start.{tag}")
    f.label(f"start.{tag}")
    is_one = f.emit_value(f"icmp ule i64 {threads}, {WARP}")
    f.emit(f"br i1 {is_one}, label %end.{tag}, label %several.{tag}")
    f.label(f"several.{tag}")
    thread = thread_index(f, "thread.x")
    lane, warp = f.emit_value(f"and i64 {thread}, {WARP - 1}"), f.emit_value(f"lshr i64 {thread}, 5")
    shared = shared_array(f, scalar, 1, WARP)
    f.emit("call void @barrier()")  # earlier readers of the array are done
    f.emit(f"br i1 {f.emit_value(f'icmp eq i64 {lane}, 0')}, label %put.{tag}, label %get.{tag}")
    f.label(f"put.{tag}")
    store_shared(f, scalar, 1, value, shared, warp)
    f.emit(f"br label %get.{tag}")
    f.label(f"get.{tag}")
    f.emit("call void @barrier()")
    warps = f.emit_value(f"lshr i64 {threads}, 5")
    given = load_shared(f, scalar, 1, shared, lane)
    is_given = f.emit_value(f"icmp ult i64 {lane}, {warps}")
    neutral = identity_element(fold.reduction.kind, scalar)
    own = f.emit_value(f"select i1 {is_given}, {type} {given}, {type} {neutral}")
    found = _reduce_warp(fold, own)
    f.emit(f"br label %joined.{tag}")
    f.label(f"joined.{tag}")
    f.emit(f"br label %end.{tag}")
    f.label(f"end.{tag}")
    f.lines.append(f"  {result} = phi {type} [{value}, %start.{tag}], [{found}, %joined.{tag}]")
    return result


def reduce_columns(fold: ReductionWriter, value: str, width: int, height: int) -> str:
    """Emit the reduction of vectors over the ``height`` threads of each of the ``width`` columns of the block.
    ``height`` is a power of two."""
    f, scalar, lanes = fold.f, fold.scalar, fold.lanes
    x, y = thread_index(f, "thread.x"), thread_index(f, "thread.y")
    shared = shared_array(f, scalar, lanes, width * height)
    own = f.emit_value(f"add i64 {f.emit_value(f'mul i64 {y}, {width}')}, {x}")
    f.emit("call void @barrier()")
    store_shared(f, scalar, lanes, value, shared, own)
    half = height // 2
    while half:
        tag = f.name()
        f.emit("call void @barrier()")
        f.emit(f"br i1 {f.emit_value(f'icmp ult i64 {y}, {half}')}, label %fold.{tag}, label %wait.{tag}")
        f.label(f"fold.{tag}")
        other = load_shared(f, scalar, lanes, shared, f.emit_value(f"add i64 {own}, {half * width}"))
        mine = load_shared(f, scalar, lanes, shared, own)
        store_shared(f, scalar, lanes, fold.combine((mine,), (other,), lanes)[0], shared, own)
        f.emit(f"br label %wait.{tag}")
        f.label(f"wait.{tag}")
        half //= 2
    f.emit("call void @barrier()")
    return load_shared(f, scalar, lanes, shared, x)


def shared_array(f: FunctionBuilder, scalar: ScalarType, lanes: int, length: int) -> str:
    """Return an array of ``length`` vectors in the memory that the threads of a block share, and record its size in
    ``f``.

    All reductions of a function share one array, of which a block has 48 KiB: each waits at a barrier before it writes,
    so that no thread still reads the values of an earlier reduction.
    """
    f.shared_bytes = max(f.shared_bytes, length * lanes * scalar.size)
    return _shared_memory(f)


def define_shared_memory(f: FunctionBuilder) -> None:
    """Add the shared memory that an emitted function needs, if any, to the module."""
    if f.shared_bytes:
        array = f"internal addrspace(3) global [{f.shared_bytes} x i8] undef, align {VECTOR_BYTES}"
        f.module.definitions.append(f"{_shared_memory(f)} = {array}")


def _shared_memory(f: FunctionBuilder) -> str:
    return f"@shared_{f.symbol}"


def store_shared(f: FunctionBuilder, scalar: ScalarType, lanes: int, value: str, array: str, index: str) -> None:
    """Emit the store of a vector at ``index`` of a shared array."""
    type = vector(memory_type(scalar), lanes)
    if scalar is BOOL:
        value = f.emit_value(f"zext {vector('i1', lanes)} {value} to {type}")
    place = f.emit_value(f"getelementptr {type}, ptr addrspace(3) {array}, i64 {index}")
    f.emit(f"store {type} {value}, ptr addrspace(3) {place}, align {_alignment(scalar, lanes)}")


def load_shared(f: FunctionBuilder, scalar: ScalarType, lanes: int, array: str, index: str) -> str:
    """Emit the load of the vector at ``index`` of a shared array."""
    type = vector(memory_type(scalar), lanes)
    place = f.emit_value(f"getelementptr {type}, ptr addrspace(3) {array}, i64 {index}")
    value = f.emit_value(f"load {type}, ptr addrspace(3) {place}, align {_alignment(scalar, lanes)}")
    return f.emit_value(f"icmp ne {type} {value}, zeroinitializer") if scalar is BOOL else value


def _alignment(scalar: ScalarType, lanes: int) -> int:
    return min(scalar.size * lanes, VECTOR_BYTES)


def _reduce_warp(fold: ReductionWriter, value: str) -> str:
    distance = WARP // 2
    while distance:
        (value,) = fold.combine((value,), (_exchanged(fold.f, fold.scalar, value, distance),), 1)
        distance //= 2
    return value


def _exchanged(f: FunctionBuilder, scalar: ScalarType, value: str, distance: int) -> str:
    """Emit the exchange of ``value`` with the thread whose lane differs by the bit ``distance``; return that thread's
    value."""
    type = element_type(scalar)
    bits = 1 if scalar is BOOL else scalar.bits
    word = value if type.startswith("i") else f.emit_value(f"bitcast {type} {value} to i{bits}")
    if bits == 64:
        low = _exchanged_word(f, f.emit_value(f"trunc i64 {word} to i32"), distance)
        high = f.emit_value(f"trunc i64 {f.emit_value(f'lshr i64 {word}, 32')} to i32")
        high = f.emit_value(f"zext i32 {_exchanged_word(f, high, distance)} to i64")
        low = f.emit_value(f"zext i32 {low} to i64")
        word = f.emit_value(f"or i64 {low}, {f.emit_value(f'shl i64 {high}, 32')}")
    elif bits == 32:
        word = _exchanged_word(f, word, distance)
    else:
        wide = _exchanged_word(f, f.emit_value(f"zext i{bits} {word} to i32"), distance)
        word = f.emit_value(f"trunc i32 {wide} to i{bits}")
    return word if type.startswith("i") else f.emit_value(f"bitcast i{bits} {word} to {type}")


def _exchanged_word(f: FunctionBuilder, word: str, distance: int) -> str:
    return f.emit_value(f"call i32 @exchange(i32 {word}, i32 {distance})")
