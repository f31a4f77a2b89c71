"""Loads and stores of elements, between memory and vector registers."""

from __future__ import annotations

from dataclasses import dataclass

from rekindle.codegen.emission.ir_builder import FunctionBuilder
from rekindle.codegen.emission.vector_types import element_type, memory_type, splat, suffix, vector
from rekindle.codegen.loop_ir.nodes import Access, AccessStride, LoopNest, MatmulNest
from rekindle.codegen.loop_ir.scalar_types import BOOL, ScalarType


def spread(f: FunctionBuilder, value: str, type: str, lanes: int) -> str:
    """Emit a vector with ``value`` in all lanes."""
    if lanes == 1:
        return value
    whole = vector(type, lanes)
    one = f.emit_value(f"insertelement {whole} poison, {type} {value}, i64 0")
    zeros = f"<{lanes} x i32> zeroinitializer"
    return f.emit_value(f"shufflevector {whole} {one}, {whole} poison, {zeros}")


def store_one(f: FunctionBuilder, scalar: ScalarType, value: str, place: str) -> None:
    """Emit the store of one element."""
    if scalar is BOOL:
        value = f.emit_value(f"zext i1 {value} to i8")
    f.emit(f"store {memory_type(scalar)} {value}, ptr {place}, align {scalar.size}")


def load_one(f: FunctionBuilder, scalar: ScalarType, place: str) -> str:
    """Emit the load of one element."""
    value = f.emit_value(f"load {memory_type(scalar)}, ptr {place}, align {scalar.size}")
    return f.emit_value(f"icmp ne i8 {value}, 0") if scalar is BOOL else value


@dataclass(slots=True)
class MemoryAccess:
    """Emitter of vector loads and stores for the accesses of a nest. ``steps`` are the strides along the vectorized
    loop. Each method takes the address at which that loop begins, the index of the element, and a mask of the lanes to
    access; None for all."""

    f: FunctionBuilder
    nest: LoopNest | MatmulNest
    lanes: int
    steps: list[str]
    is_aligned: bool = False
    """Whether whole vectors lie at multiples of 16 bytes, or of their size if that is less."""

    def load(self, number: int, start: str, at: str, mask: str | None) -> str:
        f, access, lanes = self.f, self.nest.accesses[number], self.lanes
        if access.step is AccessStride.STAYS:
            return spread(f, load_one(f, access.scalar, start), element_type(access.scalar), lanes)
        if access.step is AccessStride.STRIDE:
            value = self._gather(access, self.steps[number], start, at, mask)
        else:
            value = self._load(access, self._place(access, start, at), mask)
        if access.scalar is BOOL:
            return f.emit_value(f"icmp ne {vector('i8', lanes)} {value}, {splat('i8', '0', lanes)}")
        return value

    def look_up_one(
        self, number: int, start: str, at: str, mask: str | None, index: str, size: str, step: str, status: str
    ) -> str:
        """Emit :meth:`load` at an offset of ``index`` times ``step`` bytes, the same for all lanes. If the index is not
        below ``size``, the flag at ``status`` is set, and the result is arbitrary."""
        f = self.f
        if self.lanes > 1:
            index, size, step = (
                f.emit_value(f"extractelement <{self.lanes} x i64> {each}, i64 0") for each in (index, size, step)
            )
        is_there = f.emit_value(f"icmp ult i64 {index}, {size}")
        self.report_unless(is_there, status)
        safe = f.emit_value(f"select i1 {is_there}, i64 {index}, i64 0")
        moved = f.emit_value(f"getelementptr i8, ptr {start}, i64 {f.emit_value(f'mul i64 {safe}, {step}')}")
        return self.load(number, moved, at, mask)

    def look_up(
        self, number: int, start: str, at: str, mask: str | None, index: str, size: str, step: str, status: str
    ) -> str:
        """Emit a gather: one element for each lane, at the lane's ``index`` times ``step`` bytes. If an index is not
        below ``size``, the flag at ``status`` is set, and the element is arbitrary."""
        f, lanes, access = self.f, self.lanes, self.nest.accesses[number]
        if lanes == 1:
            return self.look_up_one(number, start, at, mask, index, size, step, status)
        whole, truth = f"<{lanes} x i64>", vector("i1", lanes)
        is_there = f.emit_value(f"icmp ult {whole} {index}, {size}")
        self.report_unless_all(is_there, mask, status)
        allowed = is_there if mask is None else f.emit_value(f"and {truth} {mask}, {is_there}")
        moved = f.emit_value(f"mul {whole} {index}, {step}")
        if access.step is not AccessStride.STAYS:
            count = ", ".join(f"i64 {lane}" for lane in range(lanes))
            along = f.emit_value(f"add {whole} <{count}>, {spread(f, at, 'i64', lanes)}")
            stride = spread(f, self.steps[number], "i64", lanes)
            moved = f.emit_value(f"add {whole} {moved}, {f.emit_value(f'mul {whole} {along}, {stride}')}")
        stored = memory_type(access.scalar)
        places = f.emit_value(f"getelementptr i8, ptr {start}, {whole} {moved}")
        value = self._gathered(access, places, allowed)
        return (
            f.emit_value(f"icmp ne {vector(stored, lanes)} {value}, {splat(stored, '0', lanes)}")
            if access.scalar is BOOL
            else value
        )

    def report_unless_all(self, conditions: str, mask: str | None, status: str) -> None:
        """Set ``status`` if the condition of a lane is false, of those in ``mask``."""
        f, lanes = self.f, self.lanes
        if lanes == 1:
            self.report_unless(conditions, status)
            return
        truth, ones = vector("i1", lanes), splat("i1", "true", lanes)
        failing = f.emit_value(f"xor {truth} {conditions}, {ones}")
        if mask is not None:
            failing = f.emit_value(f"and {truth} {mask}, {failing}")
        bits = f.emit_value(f"bitcast {truth} {failing} to i{lanes}")
        self.report_unless(f.emit_value(f"icmp eq i{lanes} {bits}, 0"), status)

    def report_unless(self, is_there: str, status: str) -> None:
        f, tag = self.f, self.f.name()
        f.emit(f"br i1 {is_there}, label %there.{tag}, label %missing.{tag}, !prof !1")
        f.label(f"missing.{tag}")
        f.emit(f"call void @report_failure(ptr {status})")
        f.emit(f"br label %there.{tag}")
        f.label(f"there.{tag}")

    def store(self, number: int, start: str, value: str, at: str, mask: str | None) -> None:
        f, access, lanes = self.f, self.nest.accesses[number], self.lanes
        stored = memory_type(access.scalar)
        whole, align = vector(stored, lanes), self._alignment(access)
        if access.scalar is BOOL:
            value = f.emit_value(f"zext {vector('i1', lanes)} {value} to {whole}")
        if access.step is not AccessStride.NEXT:
            self._scatter(access, self.steps[number], start, value, at, mask)
            return
        place = self._place(access, start, at)
        if mask is None:
            f.emit(f"store {whole} {value}, ptr {place}, align {align}")
            return
        symbol = f"llvm.masked.store.{suffix(stored, lanes)}.p0"
        type = vector("i1", lanes)
        f.module.declare(symbol, "void", whole, "ptr", "i32", type)
        f.emit(f"call void @{symbol}({whole} {value}, ptr {place}, i32 {align}, {type} {mask})")

    def _alignment(self, access: Access) -> int:
        """Return the alignment of a whole vector, in bytes."""
        return min(access.scalar.size * self.lanes, 16) if self.is_aligned else access.scalar.size

    def _place(self, access: Access, start: str, at: str) -> str:
        return self.f.emit_value(f"getelementptr {memory_type(access.scalar)}, ptr {start}, i64 {at}")

    def _load(self, access: Access, place: str, mask: str | None) -> str:
        f, stored, lanes = self.f, memory_type(access.scalar), self.lanes
        whole, align = vector(stored, lanes), self._alignment(access)
        if mask is None:
            return f.emit_value(f"load {whole}, ptr {place}, align {align}")
        symbol = f"llvm.masked.load.{suffix(stored, lanes)}.p0"
        type = vector("i1", lanes)
        f.module.declare(symbol, whole, "ptr", "i32", type, whole)
        return f.emit_value(f"call {whole} @{symbol}(ptr {place}, i32 {align}, {type} {mask}, {whole} zeroinitializer)")

    def _gather(self, access: Access, stride: str, start: str, at: str, mask: str | None) -> str:
        f, lanes = self.f, self.lanes
        stored = memory_type(access.scalar)
        places = self._places(stride, start, at)
        if lanes == 1:
            return f.emit_value(f"load {stored}, ptr {places}, align {access.scalar.size}")
        return self._gathered(access, places, splat("i1", "true", lanes) if mask is None else mask)

    def _gathered(self, access: Access, places: str, mask: str) -> str:
        """Emit a gather of the elements at the addresses ``places``, in the lanes set in ``mask``."""
        f, lanes, stored = self.f, self.lanes, memory_type(access.scalar)
        whole, type = vector(stored, lanes), vector("i1", lanes)
        symbol = f"llvm.masked.gather.{suffix(stored, lanes)}.v{lanes}p0"
        f.module.declare(symbol, whole, f"<{lanes} x ptr>", "i32", type, whole)
        return f.emit_value(
            f"call {whole} @{symbol}(<{lanes} x ptr> {places}, i32 {access.scalar.size}, {type} {mask}, "
            f"{whole} zeroinitializer)"
        )

    def _scatter(self, access: Access, stride: str, start: str, value: str, at: str, mask: str | None) -> None:
        f, lanes = self.f, self.lanes
        stored = memory_type(access.scalar)
        whole, type = vector(stored, lanes), vector("i1", lanes)
        places = self._places(stride, start, at)
        if lanes == 1:
            f.emit(f"store {stored} {value}, ptr {places}, align {access.scalar.size}")
            return
        symbol = f"llvm.masked.scatter.{suffix(stored, lanes)}.v{lanes}p0"
        f.module.declare(symbol, "void", whole, f"<{lanes} x ptr>", "i32", type)
        given = splat("i1", "true", lanes) if mask is None else mask
        f.emit(
            f"call void @{symbol}({whole} {value}, <{lanes} x ptr> {places}, i32 {access.scalar.size}, {type} {given})"
        )

    def _places(self, stride: str, start: str, at: str) -> str:
        """Emit the addresses of elements that are ``stride`` apart."""
        f, lanes = self.f, self.lanes
        place = f.emit_value(f"getelementptr i8, ptr {start}, i64 {f.emit_value(f'mul i64 {at}, {stride}')}")
        if lanes == 1:
            return place
        count = ", ".join(f"i64 {lane}" for lane in range(lanes))
        offsets = f.emit_value(f"mul <{lanes} x i64> <{count}>, {spread(f, stride, 'i64', lanes)}")
        return f.emit_value(f"getelementptr i8, ptr {place}, <{lanes} x i64> {offsets}")
