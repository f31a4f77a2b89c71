"""Builder of the host function that launches a kernel."""

from __future__ import annotations

from collections.abc import Sequence

from rekindle.codegen.cuda.geometry import argument_words
from rekindle.codegen.emission.ir_builder import FunctionBuilder, ModuleBuilder
from rekindle.codegen.loop_ir.nodes import Kernel


class LauncherBuilder:
    """Emitter of the parts that launches of all nests share: parameters, device memory, and the call of the driver."""

    def __init__(self, kernel: Kernel, functions: Sequence[str], device: int) -> None:
        self.kernel = kernel
        self.device = device
        self.numbers = {name: number for number, name in enumerate(functions, 1)}
        """The index of each function in the table that the launcher reads."""
        self.module = ModuleBuilder()
        self.f = FunctionBuilder(self.module)
        self.buffers: list[str] = []
        """The at::Tensors that are freed at the end."""
        self.pointers = "%pointers"
        """The array with the pointers of all buffers."""

    def parameter(self, index: int) -> str:
        """Emit the load of a parameter: a size, an offset or a stride."""
        place = self.f.emit_value(f"getelementptr i64, ptr %parameters, i64 {index}")
        return self.f.emit_value(f"load i64, ptr {place}")

    def buffer(self, bytes: str) -> tuple[str, str]:
        """Emit an allocation of device memory, which is freed at the end of the launcher. Return the pointer and its
        address. If the allocation fails, the launcher returns, and the operators run."""
        f = self.f
        tag = f.name()
        handle, pointer = f.emit_value("alloca ptr"), f.emit_value("alloca ptr")
        # What has not been allocated when an allocation before it fails is not freed.
        f.lines.insert(0, f"  store ptr null, ptr {handle}")
        self.buffers.append(handle)
        made = f.emit_value(f"call ptr @new_buffer(i64 {bytes}, i32 {self.device}, ptr {pointer})")
        f.emit(f"store ptr {made}, ptr {handle}")
        f.emit(f"br i1 {f.emit_value(f'icmp eq ptr {made}, null')}, label %lacking.{tag}, label %made.{tag}")
        f.label(f"lacking.{tag}")
        f.emit("store i64 1, ptr %status")
        f.emit("br label %free")
        f.label(f"made.{tag}")
        return f.emit_value(f"load ptr, ptr {pointer}"), pointer

    def allocate_temporaries(self) -> None:
        """Emit the allocation of the kernel's temporaries, if it has any. Their sizes are parameters of the launcher,
        after the parameters of the loop nests."""
        kernel, f = self.kernel, self.f
        if not kernel.temporaries:
            return
        given = len(kernel.inputs) + len(kernel.outputs)
        f.emit(f"%buffers = alloca [{given + len(kernel.temporaries)} x ptr]")
        for number in range(given):
            value = f.emit_value(f"load ptr, ptr {f.emit_value(f'getelementptr ptr, ptr %pointers, i64 {number}')}")
            f.emit(f"store ptr {value}, ptr {f.emit_value(f'getelementptr ptr, ptr %buffers, i64 {number}')}")
        first = sum(nest.parameters for nest in kernel.nests)
        for number in range(len(kernel.temporaries)):
            pointer, _ = self.buffer(self.parameter(first + number))
            place = f.emit_value(f"getelementptr ptr, ptr %buffers, i64 {given + number}")
            f.emit(f"store ptr {pointer}, ptr {place}")
        self.pointers = "%buffers"

    def launch(self, number: str | int, blocks: str, x: str | int, y: str | int, more: Sequence[str] = ()) -> None:
        """Emit the launch of a function of the table in blocks of ``x`` by ``y`` threads. ``more`` are addresses of
        arguments after the arrays that all functions take."""
        f = self.f
        arrays = {"pointers": self.pointers, "parameters": "%parameters", "arguments": "%arguments"}
        addresses = [*(arrays[name] for name in argument_words(self.kernel)), *more]
        passed = f.emit_value(f"alloca [{len(addresses)} x ptr]")
        for index, address in enumerate(addresses):
            f.emit(f"store ptr {address}, ptr {f.emit_value(f'getelementptr ptr, ptr {passed}, i64 {index}')}")
        arguments = f"i64 {number}, i64 {blocks}, i64 {x}, i64 {y}, ptr %stream, ptr {passed}"
        result = f.emit_value(f"call i64 @launch({arguments})")
        known = f.emit_value("load i64, ptr %status")
        f.emit(f"store i64 {f.emit_value(f'or i64 {known}, {result}')}, ptr %status")
