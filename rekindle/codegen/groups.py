"""What runs a ``prim::FusionGroup``.

A group looks at what it is called with. For dtypes and layouts that it has met it calls a kernel; for new ones it
makes one first, or takes one of the same text that another group made; and what no kernel can do, its operators do one
by one: gradients to be recorded, subclasses, other devices, sizes that do not fit together.
"""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal
from weakref import WeakKeyDictionary, ref

import torch
from torch import Tensor
from torch.autograd import forward_ad

from rekindle.codegen.emission.kernels import kernel_module
from rekindle.codegen.fusion import KIND
from rekindle.codegen.layout import Layout
from rekindle.codegen.llvm import tensor_calls
from rekindle.codegen.llvm.calling import entry_text, python_function, with_declarations
from rekindle.codegen.llvm.engine import NativeCode, compile_module
from rekindle.codegen.llvm.target import host_target
from rekindle.codegen.llvm.tensor_calls import TensorCalls
from rekindle.codegen.loops.builder import Unsupported
from rekindle.codegen.loops.form import Kernel
from rekindle.codegen.loops.text import kernel_text
from rekindle.codegen.lowering import lower
from rekindle.ir.execution import callable_of
from rekindle.ir.graph import Graph, Node
from rekindle.ir.registry import REGISTRY, Effects, Operation, Operator
from rekindle.ir.schema_parser import parse_schema
from rekindle.ir.types import TensorType

MOST_LAUNCHES: Final = 64
"""How many combinations of layouts a group remembers."""

# ------------------------------------------------------------------------------------------------------------- kernels


@dataclass(slots=True, frozen=True)
class CompiledKernel:
    """A kernel as machine code. ``call`` takes three addresses: of the pointers, the parameters and the arguments."""

    kernel: Kernel
    text: str
    call: Callable[[int, int, int], None]
    code: NativeCode


Origin = Literal["memory", "disk", "compiled"]
"""Where machine code comes from: another group of this process has it, an earlier process left it, or it is new."""

_KERNELS: Final[dict[Hashable, CompiledKernel]] = {}
_LOCK: Final = threading.Lock()


def compiled(kernel: Kernel) -> tuple[CompiledKernel, Origin]:
    """``kernel`` as machine code for this processor; kernels of the same text share it."""
    target = host_target()
    text = kernel_text(kernel)
    key = (text, target)
    with _LOCK:
        found = _KERNELS.get(key)
    if found is not None:
        return found, "memory"
    module = kernel_module(kernel, target) + entry_text("kernel", ["ptr", "ptr", "ptr"], None)
    code = compile_module(with_declarations(module), target=target)
    found = CompiledKernel(kernel, text, python_function(code, "kernel"), code)
    with _LOCK:
        found = _KERNELS.setdefault(key, found)
    return found, "disk" if code.from_cache else "compiled"


# -------------------------------------------------------------------------------------------------------------- groups


@dataclass(slots=True, frozen=True)
class Launch:
    """A kernel with what it is called with for inputs of certain layouts; ``outputs`` are those of what it writes.
    ``heeds_default_dtype`` says that all this holds for one default dtype alone; ``origin`` where the kernel was found,
    and ``seconds`` how long it took to have it."""

    kernel: CompiledKernel
    inputs: tuple[Layout | type, ...]
    outputs: tuple[Layout, ...]
    parameters: array[int]
    heeds_default_dtype: bool
    origin: Origin
    seconds: float

    def __call__(self, inputs: Sequence[Any]) -> Any:
        results = [
            torch.empty_strided(each.sizes, each.strides, dtype=each.dtype, device="cpu") for each in self.outputs
        ]
        self.run(inputs, results)
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, inputs: Sequence[Any], results: Sequence[Tensor]) -> None:
        """Call the kernel on ``inputs``, and on tensors of the layouts ``outputs``, which it writes."""
        pointers = array("Q", [each.data_ptr() for each in (*inputs, *results) if isinstance(each, Tensor)])
        numbers = b"".join(
            array("d" if isinstance(each, float) else "q", [each]).tobytes()
            for each in inputs
            if not isinstance(each, Tensor)
        )
        passed = array("q", numbers)
        self.kernel.call(pointers.buffer_info()[0], self.parameters.buffer_info()[0], passed.buffer_info()[0])

    def native(self) -> tensor_calls.Launch:
        """The same for calls that Python has no part in."""

        def layout(each: Layout) -> tensor_calls.Layout:
            return each.dtype, each.sizes, each.strides

        return tensor_calls.Launch(
            kernel=self.kernel.code.address("kernel"),
            inputs=[each if isinstance(each, type) else layout(each) for each in self.inputs],
            outputs=[layout(each) for each in self.outputs],
            parameters=self.parameters,
            keep=self.kernel,
        )


NO_KERNEL: Final = "no kernel can be made for such inputs"
"""Why a group ran operator by operator; :attr:`FusedGroup.refusals` tell more."""

_PLAIN_TYPES: Final = frozenset({Tensor, torch.nn.Parameter})


class FusedGroup:
    """Runs ``graph``; see the module. It is what :attr:`function` calls where no launch fits that it knows.

    ``launches`` are what the group has met, by what told it apart: None where there is no kernel; ``refusals`` say why
    there was none, in the order in which that came up; ``falls`` count the calls that ran operator by operator, by why.
    """

    def __init__(self, graph: Graph, name: str = "fused") -> None:
        self.graph = graph
        self.name = name
        self.launches: dict[Hashable, Launch | None] = {}
        self.refusals: list[str] = []
        self.falls: dict[str, int] = {}
        self._by_operators: Callable[..., Any] | None = None
        self._calls: TensorCalls | None = None
        _GROUPS[graph] = ref(self)

    def function(self) -> Callable[..., Any]:
        """The function that runs the graph, with as little of Python as can be. It keeps the group alive."""
        kinds = ["tensor" if isinstance(value.type, TensorType) else "scalar" for value in self.graph.inputs]
        calls = TensorCalls(kinds, self.__call__)
        function = calls.function
        calls.function = _taken  # or group and function would keep each other alive
        self._calls = calls
        return function

    def __call__(self, *inputs: Any) -> Any:
        key = self._key(inputs)
        if isinstance(key, str):
            why = key
        else:
            try:
                launch = self.launches[key]
            except KeyError:
                launch = self._new_launch(key, inputs)
            if launch is not None:
                return launch(inputs)
            why = NO_KERNEL
        self.falls[why] = self.falls.get(why, 0) + 1
        if self._by_operators is None:
            self._by_operators = callable_of(self.graph, self.name)
        return self._by_operators(*inputs)

    @staticmethod
    def _key(inputs: Sequence[Any]) -> tuple[Any, ...] | str:
        """What a launch depends on; why no kernel may run, where none may."""
        records = torch.is_grad_enabled()
        key: list[Any] = [torch.get_default_dtype()]
        for each in inputs:
            if isinstance(each, Tensor):
                if type(each) not in _PLAIN_TYPES:
                    return "an input is of a subclass of Tensor"
                if not each.is_cpu or each.layout is not torch.strided:
                    return "an input is no dense tensor on the CPU"
                if records and each.requires_grad:
                    return "gradients are recorded"
                if each.is_neg() or each.is_conj():
                    return "an input is negated or conjugated lazily"
                key += (each.shape, each.stride(), each.dtype)
            else:
                key.append(type(each))
        return "modes, transforms or autocasting have to see each operator" if _is_watched() else tuple(key)

    def _new_launch(self, key: Hashable, inputs: Sequence[Any]) -> Launch | None:
        """Make the launch for a key and remember it."""
        launch: Launch | None = None
        try:
            launch = self.prepare(
                [
                    Layout(tuple(each.shape), each.stride(), each.dtype) if isinstance(each, Tensor) else type(each)
                    for each in inputs
                ]
            )
        except Unsupported as error:
            self.refusals.append(str(error))
        while len(self.launches) >= MOST_LAUNCHES:
            self.launches.pop(next(iter(self.launches)), None)
        self.launches[key] = launch
        if launch is not None and self._calls is not None and not launch.heeds_default_dtype:
            self._calls.add(launch.native())
        return launch

    def prepare(self, inputs: Sequence[Layout | type]) -> Launch:
        """The launch for inputs of these layouts, and numbers of these types.

        Raises:
            Unsupported: there can be no kernel.
        """
        started = time.perf_counter()
        lowered = lower(self.graph, inputs)
        kernel, origin = compiled(lowered.kernel)
        return Launch(
            kernel=kernel,
            inputs=tuple(inputs),
            outputs=lowered.outputs,
            parameters=array("q", lowered.parameters),
            heeds_default_dtype=lowered.heeds_default_dtype,
            origin=origin,
            seconds=time.perf_counter() - started,
        )


_GROUPS: Final[WeakKeyDictionary[Graph, ref[FusedGroup]]] = WeakKeyDictionary()


def group_of(graph: Graph) -> FusedGroup | None:
    """What runs a graph that is the attribute ``Subgraph`` of a fused group, once a plan holds it."""
    found = _GROUPS.get(graph)
    return None if found is None else found()


def _taken(*inputs: Any) -> Any:
    raise AssertionError("the function belongs to whoever asked for it")


def _is_watched() -> bool:
    """Whether somebody sees each operator that runs, or changes it: modes, transforms of functions, forward
    differentiation, autocasting."""
    return (
        torch._C._len_torch_dispatch_stack() > 0
        or torch._C._len_torch_function_stack() > 0
        or torch._C._functorch.peek_interpreter_stack() is not None
        or forward_ad._current_level >= 0
        or torch.is_autocast_enabled("cpu")
    )


def _operation(node: Node) -> Operation:
    return FusedGroup(node.get_graph("Subgraph")).function()


REGISTRY.register(Operator(parse_schema(f"{KIND}(...) -> ..."), operation_for_node=_operation, effects=Effects.SPECIAL))
