"""Compiled kernels, and how they are called.

A :class:`KernelLaunch` is a kernel with its call parameters for inputs of certain sizes and strides. A
:class:`KernelRecipe` is a kernel that is valid for all sizes and strides with the same relevant properties, such as
which are equal, which are 1, and which are contiguous with each other. A :class:`GuardedKernel` is a recipe with
machine code, and creates the launches.
"""

from __future__ import annotations

import math
import threading
import time
from array import array
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Final, Literal, cast

import torch
from torch import Tensor

from rekindle.codegen import cuda, emission
from rekindle.codegen.kernel_status import KernelStatus as KernelStatus
from rekindle.codegen.layout import Ints, Layout
from rekindle.codegen.llvm import call_sites
from rekindle.codegen.llvm.cpython_wrappers import python_function, with_declarations, wrapper_ir
from rekindle.codegen.llvm.engine import LazyModule, NativeCode, compile_module
from rekindle.codegen.llvm.optimization import PREOPTIMIZED
from rekindle.codegen.llvm.target import Target, host_target
from rekindle.codegen.loop_ir.nodes import Kernel, MatmulNest
from rekindle.codegen.loop_ir.printer import kernel_text
from rekindle.codegen.lowering import lower
from rekindle.codegen.operators.matmul import MAX_MULTIPLICATIONS
from rekindle.codegen.symbolic_sizes import ShapeEnv, ShapeProgram
from rekindle.errors.fork_locks import held_while_forking
from rekindle.ir.graph import Graph
from rekindle.ir.profiling import recorded
from rekindle.passes.simplification.subgraph_sharing import computation_key

# ------------------------------------------------------------------------------------------------------------- kernels


@dataclass(slots=True, frozen=True)
class CompiledKernel:
    """A kernel compiled for ``device``. ``call`` takes three addresses: of the arrays of pointers, parameters and
    number arguments. It returns a :class:`KernelStatus`."""

    kernel: Kernel
    text: str
    call: Callable[[int, int, int], int]
    code: NativeCode
    device: torch.device


CPU: Final = torch.device("cpu")

CodeOrigin = Literal["memory", "disk", "compiled"]
"""Origin of machine code: another group of this process, an earlier process, or a compilation."""

_KERNELS: Final[dict[Hashable, CompiledKernel]] = {}
_LOCK: Final = held_while_forking(threading.Lock(), 2)


def compiled(kernel: Kernel, device: torch.device) -> tuple[CompiledKernel, CodeOrigin]:
    """Return ``kernel`` as machine code for ``device``, and where the code was found. Kernels of the same text share
    it.

    Raises:
        Unsupported: the device cannot run it.
    """
    target = host_target()
    text = kernel_text(kernel)
    key = (text, target, device)
    with _LOCK:
        found = _KERNELS.get(key)
    if found is not None:
        return found, "memory"

    call: Callable[[int, int, int], int]
    if device.type == "cpu":
        code = _host_code(kernel, text, target)
        call = partial(_kernel_caller(), code.address("kernel"))
    else:
        code = cuda.compile_for(kernel, _gpu(device))
        call = python_function(code, "kernel")
    found = CompiledKernel(kernel, text, call, code, device)
    with _LOCK:
        found = _KERNELS.setdefault(key, found)
    return found, "disk" if code.from_cache else "compiled"


def _host_code(kernel: Kernel, text: str, target: Target) -> NativeCode:
    module = LazyModule(f"kernel\n{text}", partial(emission.kernel_module, kernel, target))
    return compile_module(module, target=target, libraries=_products(kernel, target))


@cache
def _kernel_caller() -> Callable[[int, int, int, int], int]:
    """Return the function that calls a kernel of the CPU, by its address, with its three addresses. A function of its
    own for each kernel would take a sixth of the time to compile one."""
    text = f"""{PREOPTIMIZED}
define i64 @call_kernel(ptr %kernel, ptr %pointers, ptr %parameters, ptr %arguments) {{
  %status = call i64 %kernel(ptr %pointers, ptr %parameters, ptr %arguments)
  ret i64 %status
}}
"""
    code = compile_module(with_declarations(text + wrapper_ir("call_kernel", ["ptr"] * 4, "i64")))
    return python_function(code, "call_kernel")


def _gpu(device: torch.device) -> cuda.CudaDevice:
    return cuda.cuda_device(device.index or 0)


_PRODUCTS: Final[dict[tuple[str, Target], NativeCode]] = {}
"""Machine code of matrix products by name and target, which all kernels share."""


def _products(kernel: Kernel, target: Target) -> list[NativeCode]:
    """Return the machine code of the matrix products that ``kernel`` calls. It is compiled unless an earlier kernel
    called the same product."""
    found = {}
    for nest in kernel.nests:
        if isinstance(nest, MatmulNest):
            name = emission.product_name(nest)
            key = (name, target)
            if key not in _PRODUCTS:
                _PRODUCTS[key] = compile_module(
                    LazyModule(name, partial(emission.product_module, nest, target)), target=target
                )
            found[key] = _PRODUCTS[key]
    return list(found.values())


# ------------------------------------------------------------------------------------------------------------ launches


def is_out_of_range(number: float) -> bool:
    """Return whether a number cannot be passed to a kernel: a finite float outside of the range of float32, or an
    int of more than 64 bits."""
    if isinstance(number, float):
        return not -_GREATEST <= number <= _GREATEST and math.isfinite(number)
    return not -(2**63) <= number < 2**63


_GREATEST: Final = 3.4028234663852886e38
"""The largest finite float32."""


@dataclass(slots=True, frozen=True)
class KernelLaunch:
    """A kernel with its call parameters for inputs of these layouts, and numbers of these types; ``outputs`` are the
    layouts of the outputs. ``origin`` records where the kernel was found, ``seconds`` how long compiling or loading
    it took. A profiler records its runs by ``name``."""

    kernel: CompiledKernel
    name: str
    inputs: tuple[Layout | type, ...]
    outputs: tuple[Layout, ...]
    parameters: array[int]
    origin: CodeOrigin
    seconds: float

    def __call__(self, inputs: Sequence[Any]) -> Any:
        """Run the kernel. Return the result, several as a tuple, or the :class:`KernelStatus` if it did not run to its
        end."""
        results = [
            torch.empty_strided(each.sizes, each.strides, dtype=each.dtype, device=self.kernel.device)
            for each in self.outputs
        ]
        status = self.run(inputs, results)
        if status is not KernelStatus.DONE:
            return status
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, inputs: Sequence[Any], results: Sequence[Tensor]) -> KernelStatus:
        """Call the kernel on ``inputs``, and on tensors ``results`` of the layouts ``outputs``. Return its status:
        ``FAILED`` if an index is out of bounds, an int exceeds 64 bits, PyTorch may reject the conversion of a float to
        a dtype, or a GPU has no memory left."""
        if any(is_out_of_range(each) for each in inputs if not isinstance(each, Tensor)):
            return KernelStatus.FAILED
        pointers = array("Q", [each.data_ptr() for each in (*inputs, *results) if isinstance(each, Tensor)])
        numbers = b"".join(
            array("d" if isinstance(each, float) else "q", [each]).tobytes()
            for each in inputs
            if not isinstance(each, Tensor)
        )
        passed = array("q", numbers)
        addresses = (each.buffer_info()[0] for each in (pointers, self.parameters, passed))
        with recorded(self.name):
            return KernelStatus(self.kernel.call(*addresses))


@dataclass(slots=True, frozen=True)
class KernelRecipe:
    """A kernel for inputs of these dtypes and ranks, and numbers of these types, for all sizes and strides for which
    ``formula`` holds: it computes the ``parameters``, then the sizes and strides of each output. ``default_dtype``
    is the only default dtype for which the kernel is valid; None if it is valid for all."""

    kernel: Kernel
    inputs: tuple[tuple[torch.dtype, int] | type, ...]
    outputs: tuple[tuple[torch.dtype, int], ...]
    parameters: int
    formula: ShapeProgram
    default_dtype: torch.dtype | None

    def numbers(self, inputs: Sequence[Layout | type]) -> list[int] | None:
        """Return the parameters, sizes and strides that ``formula`` computes for these inputs; None if the kernel is
        not valid for them."""
        if tuple(each if isinstance(each, type) else (each.dtype, each.rank) for each in inputs) != self.inputs:
            return None
        if self.default_dtype not in (None, torch.get_default_dtype()):
            return None
        return self.formula(list(_words(inputs)))


def kernel_recipe(
    graph: Graph,
    inputs: Sequence[Layout | type],
    device: torch.device = CPU,
    *,
    defer_to_libraries: bool = True,
    max_multiplications: int = MAX_MULTIPLICATIONS,
) -> KernelRecipe:
    """Return the recipe of a kernel for ``graph``, lowered for these inputs and valid for all inputs for which its
    guards hold.

    Raises:
        Unsupported: there can be no kernel. With ``defer_to_libraries``, also if oneDNN is expected to be faster, or a
            matrix product has more than ``max_multiplications``.
    """
    record = ShapeEnv()
    given = [
        each
        if isinstance(each, type)
        else Layout(_recorded(record, each.sizes), _recorded(record, each.strides), each.dtype)
        for each in inputs
    ]
    lowered = lower(
        graph,
        given,
        device.type,
        defer_to_libraries=defer_to_libraries,
        max_multiplications=max_multiplications,
    )
    results: list[int] = [*lowered.parameters, *_words(lowered.outputs)]
    return KernelRecipe(
        kernel=lowered.kernel,
        inputs=tuple(each if isinstance(each, type) else (each.dtype, each.rank) for each in inputs),
        outputs=tuple((each.dtype, each.rank) for each in lowered.outputs),
        parameters=len(lowered.parameters),
        formula=record.formula(results),
        default_dtype=torch.get_default_dtype() if lowered.depends_on_default_dtype else None,
    )


@dataclass(slots=True, frozen=True)
class GuardedKernel:
    """A recipe and the machine code of its kernel. ``name``, ``origin`` and ``seconds`` are as in its launches."""

    recipe: KernelRecipe
    name: str
    kernel: CompiledKernel
    origin: CodeOrigin
    seconds: float

    def launch(self, inputs: Sequence[Layout | type], device: torch.device = CPU) -> KernelLaunch | None:
        """Return the launch for these inputs on ``device``; None if the kernel is not valid for them."""
        numbers = self.recipe.numbers(inputs) if device == self.kernel.device else None
        if numbers is None:
            return None
        outputs, at = [], self.recipe.parameters
        for dtype, rank in self.recipe.outputs:
            sizes, strides = numbers[at : at + rank], numbers[at + rank : at + 2 * rank]
            outputs.append(Layout(tuple(sizes), tuple(strides), dtype))
            at += 2 * rank
        return KernelLaunch(
            self.kernel,
            self.name,
            tuple(inputs),
            tuple(outputs),
            array("q", numbers[: self.recipe.parameters]),
            self.origin,
            self.seconds,
        )

    def native(self, launch: KernelLaunch) -> call_sites.CachedLaunch:
        """Return the launch in the form that native code calls without Python."""

        def layout(each: Layout) -> call_sites.Layout:
            return each.dtype, each.sizes, each.strides

        return call_sites.CachedLaunch(
            kernel=self.kernel.code.address("kernel"),
            inputs=[each if isinstance(each, type) else layout(each) for each in launch.inputs],
            outputs=[layout(each) for each in launch.outputs],
            parameters=launch.parameters,
            keep=self.kernel,
            formula=self.recipe.formula,
            device=self.kernel.device,
            name=self.name,
        )


def _words(inputs: Sequence[Layout | type]) -> Iterator[int]:
    for each in inputs:
        if isinstance(each, Layout):
            yield from each.sizes
            yield from each.strides


_RECIPES: Final[OrderedDict[Hashable, list[GuardedKernel]]] = OrderedDict()
"""The recipes of this process by the computations that they were made for, the last used at the end."""
_MAX_COMPUTATIONS: Final = 1024


def guarded_kernel(
    graph: Graph,
    inputs: Sequence[Layout | type],
    device: torch.device = CPU,
    *,
    max_multiplications: int = MAX_MULTIPLICATIONS,
) -> GuardedKernel:
    """Return a compiled kernel that is valid for these inputs of ``graph``, whose tensors are on ``device``. It may
    have been made for the same computation elsewhere, such as in another layer of the same kind.

    Raises:
        Unsupported: there can be no kernel.
    """
    started = time.perf_counter()
    key = computation_key(graph)
    if key is None:
        return _new_recipe(graph, inputs, device, max_multiplications)
    key = (key, device, max_multiplications)
    with _LOCK:
        known = _RECIPES.setdefault(key, [])
        _RECIPES.move_to_end(key)
        if len(_RECIPES) > _MAX_COMPUTATIONS:
            _RECIPES.popitem(last=False)
        candidates = list(known)
    for each in candidates:
        if each.launch(inputs, device) is not None:
            return replace(each, origin="memory", seconds=time.perf_counter() - started)
    made = _new_recipe(graph, inputs, device, max_multiplications)
    known.append(made)
    return made


_MAX_NAME: Final = 80
"""Maximum number of characters of operators' names in the name of a kernel."""


def kernel_name(graph: Graph) -> str:
    """Return the name of the kernels of a graph: its ATen operators, each once, in their order. A long name is cut."""
    kinds = dict.fromkeys(node.kind.removeprefix("aten::") for node in graph.nodes if node.kind.startswith("aten::"))
    names = "_".join(kinds)
    return f"fused_{names if len(names) <= _MAX_NAME else names[:_MAX_NAME].rpartition('_')[0] + '_etc'}"


def _new_recipe(
    graph: Graph, inputs: Sequence[Layout | type], device: torch.device, max_multiplications: int
) -> GuardedKernel:
    name = kernel_name(graph)
    with recorded(f"compile {name}"):
        started = time.perf_counter()
        recipe = kernel_recipe(graph, inputs, device, max_multiplications=max_multiplications)
        kernel, origin = compiled(recipe.kernel, device)
        return GuardedKernel(recipe, name, kernel, origin, time.perf_counter() - started)


def _recorded(record: ShapeEnv, numbers: Ints) -> Ints:
    return cast("Ints", tuple(map(record.size, numbers)))
