"""Executor of ``prim::FusionGroup``.

Each call looks up a kernel by the dtypes and layouts of the inputs. For new ones a kernel is compiled, unless another
group has compiled one of the same text. The operators run one by one if no kernel applies: gradients are recorded, or
inputs are of a Tensor subclass, on another device, or of sizes that do not fit together. Matrix products that are too
large for a kernel are computed by BLAS, and the rest of the group is fused without them. On GPUs that holds for all
products, and for scans.

A kernel takes some 20 ms to compile, or 3 ms to load from disk. So groups that run seldom also run operator by
operator: see :data:`COMPILE_THRESHOLD_US`. A group compiles at most :data:`MAX_KERNELS` kernels; further layouts run
operator by operator.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Any, Final
from weakref import WeakKeyDictionary, ref

import torch
from torch import Tensor
from torch.autograd import forward_ad

from rekindle.analysis.default_device import is_sole_function_mode, run_outside
from rekindle.codegen.compiled_kernels import CPU, GuardedKernel, KernelLaunch, KernelStatus, guarded_kernel
from rekindle.codegen.fusible import DEVICE_TYPES, is_left_to_libraries
from rekindle.codegen.fusion import KIND, FuseGraph
from rekindle.codegen.host_scalars import on_one_device
from rekindle.codegen.layout import Layout
from rekindle.codegen.llvm import call_sites
from rekindle.codegen.llvm.call_sites import TensorCallSite
from rekindle.codegen.loop_ir.builder import Unsupported
from rekindle.codegen.operators.gather import OUT_OF_BOUNDS
from rekindle.codegen.operators.matmul import LEFT_ON_GPU, MAX_MULTIPLICATIONS, TooManyMultiplications
from rekindle.codegen.product_selection import max_multiplications
from rekindle.errors import UNKNOWN_RANGE
from rekindle.errors.gc_pause import gc_paused
from rekindle.frontend.recursion_limit import room_to_recurse
from rekindle.ir.graph import Graph, Node
from rekindle.ir.operators.registry import REGISTRY, AliasAnalysisKind, Operation, Operator
from rekindle.ir.subgraph_execution import PatchableOperation, callable_of, is_repeated, is_settled_at_once
from rekindle.ir.text.schema_parser import parse_schema
from rekindle.ir.types import OptionalType, TensorType
from rekindle.ops.tensor.torch_tracer import is_traced_by_torch
from rekindle.passes.simplification.subgraph_sharing import SubgraphCache

MAX_LAUNCHES: Final = 64
"""Maximum number of layout combinations that a group caches."""
MAX_KERNELS: Final = call_sites.MAX_LAUNCHES
"""Maximum number of attempts of a group to compile a kernel. Its native call site holds as many, so that none is
evicted: Python would dispatch the calls of that kernel from then on."""
_REFUSED: Final = 4
"""Number of attempts that a failed compilation counts for."""

COMPILE_THRESHOLD_US = 3000.0
"""Compile threshold: the estimated time in microseconds that the operators of a group in a plan may take before a
kernel is compiled. The third call compiles it in any case, unless the group is in a loop. Equal groups count
together."""
_CALLS: Final = 2.5
"""Number of calls whose share of the threshold adds up to it: the third call compiles."""
_CALLS_AFTER_INTERPRETATION: Final = 1.5
"""The same for a graph whose first call was interpreted before the group was made: the second call of the group
compiles."""
_PER_OPERATOR: Final = 2.0
"""Microseconds per operator: the overhead of the plan and of PyTorch."""
_PER_ELEMENT: Final = 0.0005
"""Microseconds per element of the largest input and operator."""

_MIN_OPERATORS_TO_MOVE: Final = 3
"""Minimum number of operators for which it pays to copy a number of the CPU to a GPU."""

NO_KERNEL: Final = "no kernel can be made for such inputs"
TOO_EARLY: Final = "it had not yet run often enough for a kernel to pay"
RECORDED: Final = "gradients are recorded"
ABSENT: Final = "an input is None that is a tensor in other calls"
DECLINED: Final = "a kernel would use too little of the GPU"
INTERCEPTED: Final = "modes, transforms, autocasting or PyTorch's tracer have to see each operator"
NOT_LAUNCHED: Final = "the GPU has no memory left, or refuses a launch"
NO_MEMORY: Final = "the processor has no memory left for intermediate results"
SEVERAL_DEVICES: Final = "inputs are on several devices"
CAPTURING: Final = "a CUDA graph is being captured, during which no kernel is compiled"
"""These are the reasons why a group ran operator by operator. :attr:`FusionExecutor.failures` has the reasons why
compilations failed."""

_PLAIN_TYPES: Final = frozenset({Tensor, torch.nn.Parameter})


class FusionExecutor(PatchableOperation):
    """Runs ``graph``; see the module. If kernels are available, :meth:`function` is called instead, and calls this
    object if no known launch fits.

    ``launches`` are the launches made by Python, by key: None if there is no kernel; ``recipes`` are the kernels that
    they come from. ``failures`` are the reasons why there was no kernel, in the order in which they occurred;
    ``fallbacks`` counts the calls that ran operator by operator, by reason.

    ``patience`` is the compile threshold: the microseconds that the operators may take before a kernel is compiled.
    ``each_call`` are the microseconds that a call counts for in addition to its time. Both are for all ``places`` of
    the group together.
    """

    def __init__(self, graph: Graph, name: str = "fused", *, patience: float = 0.0, each_call: float = 0.0) -> None:
        super().__init__()
        self.graph = graph
        self.name = name
        self.launches: dict[Hashable, KernelLaunch | None] = {}
        self._declined: set[Hashable] = set()
        """The keys of launches that are too small to use a GPU well."""
        self.recipes: list[GuardedKernel] = []
        self.failures: list[str] = []
        self.fallbacks: dict[str, int] = {}
        self._tries = MAX_KERNELS
        self.places = 0
        self._patience = patience
        self._each_call = each_call
        self._operator_count = sum(node.kind.startswith("aten::") for node in graph.nodes)
        self._calls: TensorCallSite | None = None
        self._native: Callable[[], Callable[..., Any] | None] = _nothing
        """A weak reference to the function of the call site, if it is native."""
        self._is_split_on = {
            device: any(is_left_to_libraries(node, device) for node in graph.nodes) for device in DEVICE_TYPES
        }
        """Whether a part of the graph may have to be left to PyTorch, by the type of the device."""
        self._has_optional = any(isinstance(value.type, OptionalType) for value in graph.inputs)
        self.split_executors: dict[str, Callable[..., Any]] = {}
        """Executors of the graph in which such operators are PyTorch's, once one has been needed, by the type of the
        device."""
        _GROUPS[graph] = ref(self)

    @property
    def is_waiting(self) -> bool:
        """Whether no kernel has been requested yet, because there were too few calls."""
        return self._tries == MAX_KERNELS

    @property
    def has_given_up(self) -> bool:
        """Whether all attempts are used up, and no kernel could be made."""
        return self._tries <= 0 and not self.recipes

    def compile_eagerly(self) -> None:
        """Compile kernels in the next call, even if they may not pay off."""
        self._patience = 0.0

    def function(self) -> Callable[..., Any]:
        """Create a call site, which launches kernels without Python code where one fits, and return its function, which
        keeps this executor alive. Kernels that are compiled later are added to the latest call site."""
        inputs = self.graph.inputs
        kinds = ["tensor" if isinstance(value.type, (TensorType, OptionalType)) else "scalar" for value in inputs]
        calls = TensorCallSite(kinds, self.__call__)
        function = calls.function
        calls.function = _taken  # or group and function would keep each other alive
        self._calls = calls
        if call_sites.is_available():
            self._native = ref(function)
        return function

    def __call__(self, *inputs: Any) -> Any:
        if is_sole_function_mode():
            return run_outside(self._native() or self, inputs)
        key = self._key_of_call(inputs)
        if key == SEVERAL_DEVICES and self._operator_count >= _MIN_OPERATORS_TO_MOVE:
            moved = on_one_device(self.graph, inputs)
            if moved is not None:
                return self(*moved)
        if isinstance(key, str):
            return self._without_kernel(key, inputs)
        launch = self._launch_for(key, inputs)
        if launch is None:
            return self._without_recipe(key, inputs)
        found = launch(inputs)
        if not isinstance(found, KernelStatus):
            return found
        if found is KernelStatus.DECLINED:
            self.launches[key] = None
            self._declined.add(key)
            return self._without_kernel(DECLINED, inputs)
        return self._without_kernel(_failure(launch, found), inputs)

    def _key_of_call(self, inputs: Sequence[Any]) -> tuple[Any, ...] | str:
        """Return the key by which a launch for these inputs is found, or the reason why the operators run instead.
        Update the state that decides when to compile, and when to stop trying."""
        if is_traced_by_torch():  # sizes are tensors then
            return INTERCEPTED
        key = TOO_EARLY if self._patience > 0 and not self._pays(inputs) else self._key(inputs)
        if self._has_optional and any(each is None for each in inputs):
            return ABSENT
        if key == RECORDED and not self.recipes:
            self._tries -= 1
            if self._tries <= 0:
                self.patch_call_sites(self._unless_recorded())
        if not isinstance(key, str) and key not in self.launches and _is_capturing(key[-1]):
            return CAPTURING
        return key

    def _without_kernel(self, why: str, inputs: Sequence[Any]) -> Any:
        """Run the operators one by one, and count the fallback with the reason ``why``."""
        self.fallbacks[why] = self.fallbacks.get(why, 0) + 1
        return self._operators(*inputs)

    def _without_recipe(self, key: tuple[Any, ...], inputs: Sequence[Any]) -> Any:
        """Run a call for which there is no kernel of the whole graph. A smaller group within it may have one."""
        why, device = DECLINED if key in self._declined else NO_KERNEL, key[-1] or CPU
        self.fallbacks[why] = self.fallbacks.get(why, 0) + 1
        if self.has_given_up:
            self.patch_call_sites(self._fallback_on(device))
        return self._fallback_on(device)(*inputs)

    def _fallback_on(self, device: torch.device) -> Callable[..., Any]:
        """Return the executor for inputs on ``device`` without a kernel of the whole graph. If PyTorch computes some
        operators, the others may be groups of their own."""
        if not self._is_split_on[device.type]:
            return self._operators
        found = self.split_executors.get(device.type)
        if found is None:
            rest = self.graph.copy()
            on_gpu = device.type != "cpu"
            FuseGraph(products=False, ordered=not on_gpu, alone=on_gpu).run(rest)
            found = self.split_executors[device.type] = callable_of(rest, self.name)
        return found

    def _unless_recorded(self) -> Callable[..., Any]:
        """Return a function that runs the operators while gradients may be recorded, and returns to this executor
        otherwise."""
        operators, is_recording = self._operators, torch.is_grad_enabled

        def run(*inputs: Any) -> Any:
            if is_recording():
                return operators(*inputs)
            if self.has_given_up:
                self._tries = MAX_KERNELS
            return self(*inputs)

        return run

    @cached_property
    def _operators(self) -> Callable[..., Any]:
        """The function that runs the operators one by one."""
        return callable_of(self.graph, self.name)

    @staticmethod
    def _key(inputs: Sequence[Any]) -> tuple[Any, ...] | str:
        """Return the key of a launch for these inputs, or the reason why no kernel may run."""
        records = torch.is_grad_enabled()
        key: list[Any] = [torch.get_default_dtype()]
        device: torch.device | None = None
        are_apart = False
        for each in inputs:
            if isinstance(each, Tensor):
                if type(each) not in _PLAIN_TYPES:
                    return "an input is of a subclass of Tensor"
                if each.device.type not in DEVICE_TYPES:
                    return f"kernels are made for CPUs and CUDA, and an input is on {each.device}"
                if each.layout is not torch.strided:
                    return "an input is not a dense tensor"
                if records and each.requires_grad:
                    return RECORDED
                if each.is_neg() or each.is_conj():
                    return "an input is negated or conjugated lazily"
                if each._is_zerotensor():  # autograd makes such zeros, which have no memory
                    return "an input is a tensor of zeros without memory"
                are_apart = are_apart or each.device != (device or each.device)
                device = each.device
                key += (each.shape, each.stride(), each.dtype)
            else:
                key.append(type(each))
        key.append(device)
        if _is_intercepted():
            return INTERCEPTED
        return SEVERAL_DEVICES if are_apart else tuple(key)

    def _launch_for(self, key: Hashable, inputs: Sequence[Any]) -> KernelLaunch | None:
        """Return the launch for a key, which is found or made and then remembered; None if no kernel can be compiled
        for it, or the maximum number of attempts is reached."""
        if key in self.launches:
            known = self.launches[key]
            self._tries -= known is None and not self.recipes
            return known
        layouts = [
            Layout(tuple(each.shape), each.stride(), each.dtype) if isinstance(each, Tensor) else type(each)
            for each in inputs
        ]
        device = next((each.device for each in inputs if isinstance(each, Tensor)), CPU)
        for known_recipe in self.recipes:
            launch = known_recipe.launch(layouts, device)
            if launch is not None:
                break
        else:
            if self._tries <= 0:
                return None
            launch = self._first_launch(layouts, device)
        while len(self.launches) >= MAX_LAUNCHES:
            oldest = next(iter(self.launches))
            self.launches.pop(oldest, None)
            self._declined.discard(oldest)
        self.launches[key] = launch
        return launch

    def _pays(self, inputs: Sequence[Any]) -> bool:
        """Add the estimated time of a call with these inputs, and return whether the operators have run long enough for
        a kernel to pay off. The time is not measured, so that runs of a program are deterministic."""
        elements = max([each.numel() for each in inputs if isinstance(each, Tensor)], default=0)
        self._patience -= self._operator_count * (_PER_OPERATOR + _PER_ELEMENT * elements)
        self._patience -= self._each_call / max(1, self.places)
        return self._patience <= 0

    @room_to_recurse(UNKNOWN_RANGE)
    def _first_launch(self, layouts: Sequence[Layout | type], device: torch.device) -> KernelLaunch | None:
        """Compile a kernel for inputs of these layouts, add it to ``recipes``, and to the native call site if it is
        valid for all default dtypes, and return its first launch. If there is no kernel, record the reason in
        ``failures`` and return None."""
        self._tries -= 1
        try:
            made = self._guarded_kernel(layouts, device)
        except Unsupported as error:
            self._tries -= _REFUSED - 1
            self.failures.append(str(error))
            return None
        launch = made.launch(layouts, device)
        assert launch is not None, "a recipe has to serve what it was made for"
        self.recipes.append(made)
        if made.recipe.default_dtype is None:
            if self._calls is None:
                self.patch_call_sites(self.function())
            assert self._calls is not None
            self._calls.add(made.native(launch))
        return launch

    @gc_paused()
    def _guarded_kernel(self, layouts: Sequence[Layout | type], device: torch.device) -> GuardedKernel:
        """Return a kernel for inputs of these layouts. Large matrix products are included only if BLAS is slower on
        this machine.

        Raises:
            Unsupported: there can be no kernel.
        """
        if device.type != "cpu" and self._is_split_on[device.type]:
            raise Unsupported(LEFT_ON_GPU)
        limit = MAX_MULTIPLICATIONS
        while True:
            try:
                return guarded_kernel(self.graph, layouts, device, max_multiplications=limit)
            except TooManyMultiplications as error:
                larger = max_multiplications(error.multiplications)
                if larger <= limit:
                    raise
                limit = larger

    def prepare(self, inputs: Sequence[Layout | type]) -> KernelLaunch:
        """Compile a kernel for inputs of these layouts on the CPU, and numbers of these types. Return its launch, which
        calls of this object do not use.

        Raises:
            Unsupported: there can be no kernel.
        """
        launch = guarded_kernel(self.graph, inputs).launch(inputs)
        assert launch is not None
        return launch


_GROUPS: Final[WeakKeyDictionary[Graph, ref[FusionExecutor]]] = WeakKeyDictionary()


def group_of(graph: Graph) -> FusionExecutor | None:
    """Return the executor of a fused group by its ``Subgraph``; None if no plan has created one, or it was freed."""
    found = _GROUPS.get(graph)
    return None if found is None else found()


def _failure(launch: KernelLaunch, status: KernelStatus) -> str:
    """Return why a launch failed."""
    if status is KernelStatus.NO_MEMORY:
        return NO_MEMORY
    return OUT_OF_BOUNDS if launch.kernel.device.type == "cpu" else NOT_LAUNCHED


def _is_capturing(device: torch.device | None) -> bool:
    """Return whether ``device`` is a GPU, and the current stream of the current GPU is capturing a CUDA graph."""
    return device is not None and device.type == "cuda" and torch.cuda.is_current_stream_capturing()


def _nothing() -> None:
    return None


def _taken(*inputs: Any) -> Any:
    raise AssertionError("the function belongs to its caller")


def _is_intercepted() -> bool:
    """Return whether each operator is observed or modified: by modes, function transforms, forward-mode derivatives,
    autocast."""
    return (
        torch._C._len_torch_dispatch_stack() > 0
        or torch._C._len_torch_function_stack() > 0
        or torch._C._functorch.peek_interpreter_stack() is not None
        or forward_ad._current_level >= 0
        or any(map(torch.is_autocast_enabled, DEVICE_TYPES))
    )


_SHARED: Final[SubgraphCache[FusionExecutor]] = SubgraphCache()


def _operation(node: Node) -> Operation:
    at_once, in_loop = is_settled_at_once(), any(each.kind == "prim::Loop" for each in node.ancestors())
    calls = _CALLS_AFTER_INTERPRETATION if is_repeated() else _CALLS

    def made(graph: Graph) -> FusionExecutor:
        if at_once:
            return FusionExecutor(graph)
        return FusionExecutor(
            graph, patience=COMPILE_THRESHOLD_US, each_call=0.0 if in_loop else COMPILE_THRESHOLD_US / calls
        )

    group = _SHARED.of(node, made, (at_once, in_loop))
    subgraph = node.get_graph("Subgraph")
    if group_of(subgraph) is not group or group.places == 0:
        group.places += 1
        _GROUPS[subgraph] = ref(group)
    return group


REGISTRY.register(
    Operator(parse_schema(f"{KIND}(...) -> ..."), operation_for_node=_operation, effects=AliasAnalysisKind.SPECIAL)
)
