"""Executor of ``prim::DifferentiableGraph``: run the forward graph, and register the backward graph with PyTorch's
autograd.

The overhead of a node is one check per input. If no gradient is required, its subgraph runs unchanged. It also does
where PyTorch's autograd has to differentiate it: under autocast, ``functorch`` transforms and forward-mode derivatives,
and for complex numbers, mixed dtypes and tensor subclasses. Otherwise the subgraph is differentiated with respect to
the inputs that require gradients. That takes longer than many calls, so that PyTorch's autograd differentiates the
first call of each node, unless that would need more memory (the subgraph has loops), or hooks count what is saved.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import Parameter

from rekindle.analysis.default_device import is_sole_function_mode, may_read_default_device, run_outside
from rekindle.analysis.mutability import may_contain_tensor
from rekindle.autodiff.create_differentiable_graphs import SEPARABLE, separated
from rekindle.autodiff.formula import compiled_formulas
from rekindle.autodiff.gradient import BackwardGraph, Gradient, stored_gradient
from rekindle.autodiff.operators import through_autograd
from rekindle.autodiff.residuals.consumption import consume_residuals
from rekindle.autodiff.residuals.size_specialization import (
    bind_backward_constants,
    bound_value,
    can_be_bound,
    is_determined_by_sizes,
    is_size_outside_loops,
    saved_scalars,
    sizes_of_inputs,
    specialization_key,
    specialize_forward,
)
from rekindle.autodiff.reverse_mode.gradient_accumulation import batch_gradient_accumulation
from rekindle.errors import UNKNOWN_RANGE, DifferentiationError
from rekindle.errors.gc_pause import gc_paused
from rekindle.frontend.recursion_limit import room_to_recurse
from rekindle.ir.graph import Graph, Node
from rekindle.ir.operators.registry import AliasAnalysisKind, Operation
from rekindle.ir.subgraph_execution import (
    callable_of,
    consuming_callable_of,
    defers_first_calls,
    interpreted,
    is_settled_at_once,
    replayed,
)
from rekindle.ir.types import ListType, TensorType
from rekindle.ops.registration.declare import implements_for_node
from rekindle.ops.tensor.torch_tracer import is_traced_by_torch
from rekindle.passes.simplification.subgraph_sharing import SubgraphCache

_PLAIN: Final = (Tensor, Parameter)

FOR_CPU: Final = frozenset({"aten::scaled_dot_product_attention"})
"""Operators whose formulas are for CPUs. On a GPU, PyTorch's kernels compute both directions, and draw random numbers
of their own."""


@implements_for_node("prim::DifferentiableGraph(...) -> ...", effects=AliasAnalysisKind.SPECIAL)
def differentiable_graph(node: Node) -> Operation:
    """Return the operation of a differentiable graph: it runs attribute ``Subgraph``, and a separate graph computes the
    gradients."""
    is_separable = SEPARABLE in node.attributes

    def make(graph: Graph) -> DifferentiableOperation:
        return DifferentiableOperation(graph, is_separable=is_separable)

    found = _OPERATIONS.of(node, make, is_separable)
    found.add_node()
    return found


@dataclass(slots=True, frozen=True)
class CompiledPart:
    """One of the functions that run a node, which :func:`~rekindle.ir.subgraph_execution.callable_of` has made. One
    that ``specializes`` runs for inputs of new sizes, once for each. Calls go through ``replayed``, if any, which may
    replay a CUDA graph instead."""

    title: str
    function: Callable[..., Any]
    specializes: bool = False
    replayed: Callable[..., Any] | None = None


class DifferentiableOperation:
    """Executor of ``prim::DifferentiableGraph`` nodes with equal subgraphs."""

    __slots__ = (
        "__weakref__",
        "_deferred_runs",
        "_derivatives",
        "_first",
        "_is_for_cpu",
        "_is_separable",
        "_plain",
        "_separated",
        "graph",
    )

    def __init__(self, graph: Graph, *, is_separable: bool = False) -> None:
        self.graph = graph
        self._is_separable = is_separable
        self._separated: dict[tuple[bool, ...], Callable[..., Any] | None] = {}
        """Run the subgraph as several differentiable graphs where it has to be; None where it need not."""
        self._is_for_cpu = any(node.kind in FOR_CPU for node in graph.all_nodes())
        self._plain: Callable[..., Any] | None = None
        self._first: Callable[..., Any] | None = None
        """Runs the subgraph operator by operator, while PyTorch's autograd differentiates it."""
        self._deferred_runs = 0
        """The number of calls that PyTorch's autograd differentiates before the subgraph is differentiated."""
        self._derivatives: dict[tuple[bool, ...], DerivativeExecutor] = {}

    def __call__(self, *inputs: Any) -> Any:
        if torch.is_grad_enabled() and not torch.is_inference_mode_enabled():
            wanted = tuple([isinstance(value, Tensor) and value.requires_grad for value in inputs])
            are_plain = True in wanted and _are_plain(inputs)
            if not are_plain and is_sole_function_mode() and not may_read_default_device(self.graph):
                return run_outside(self, inputs)
            if are_plain and not (self._is_for_cpu and _is_on_gpu(inputs)):
                if self._deferred_runs > 0 and not are_saved_tensors_hooked():
                    return self._run_deferred(inputs)
                if self._is_separable and (separated := self._separate(wanted)) is not None:
                    return separated(*inputs)
                try:
                    derivative = self.derivative(wanted)
                except DifferentiationError:  # PyTorch refuses it too, in words of its own
                    return callable_of(self.graph, "differentiable graph")(*inputs)
                return derivative.run(inputs)
        if self._plain is None:
            self._plain = callable_of(self.graph, "differentiable graph", optimized=True)
        return self._plain(*inputs)

    def add_node(self) -> None:
        """Register a node that the operation runs: its first call is differentiated by PyTorch's autograd."""
        if defers_first_calls() and not self._derivatives and not any(node.blocks for node in self.graph.nodes):
            self._deferred_runs += 1

    def _run_deferred(self, inputs: Sequence[Any]) -> Any:
        self._deferred_runs -= 1
        function = self._first
        if function is None:
            function = self._first = interpreted(self.graph, "differentiable graph")
        if self._deferred_runs <= 0:
            self._first = None
        return function(*inputs)

    def derivative(self, wanted: tuple[bool, ...]) -> DerivativeExecutor:
        """Return the executor of the derivative with respect to the inputs marked in ``wanted``. It is created when
        first needed.

        Raises:
            DifferentiationError: an operator that gradients go through has no derivative.
        """
        found = self._derivatives.get(wanted)
        if found is None:
            with gc_paused(), room_to_recurse(UNKNOWN_RANGE):
                found = self._derivatives[wanted] = DerivativeExecutor(stored_gradient(self.graph, wanted))
            compiled_formulas.get().write()
        return found

    def _separate(self, wanted: tuple[bool, ...]) -> Callable[..., Any] | None:
        """Return what runs the subgraph as several differentiable graphs; None if it may be one."""
        if wanted not in self._separated:
            with gc_paused(), room_to_recurse(UNKNOWN_RANGE):
                graph = separated(self.graph, wanted)
                title = "separated differentiable graph"
                self._separated[wanted] = None if graph is None else callable_of(graph, title, optimized=True)
        return self._separated[wanted]

    def pieces(self) -> Iterator[CompiledPart]:
        """Yield the functions compiled for the node so far."""
        if self._plain is not None:
            yield CompiledPart("without gradients", self._plain)
        for function in self._separated.values():
            if function is not None:
                yield CompiledPart("as several differentiable graphs", function)
        for derivative in list(self._derivatives.values()):
            yield from derivative.pieces()


_OPERATIONS: Final[SubgraphCache[DifferentiableOperation]] = SubgraphCache()


def _are_plain(inputs: Sequence[Any]) -> bool:
    """Return whether backward graphs of this package apply to ``inputs``: no tensor subclasses or complex numbers, and
    one floating-point dtype. Under autocast, transforms, forward-mode derivatives, modes and traces of PyTorch, they do
    not."""
    dtype: torch.dtype | None = None
    for value in inputs:
        if isinstance(value, Tensor):
            if type(value) not in _PLAIN:
                return False
            own = value.dtype
            if own.is_floating_point:
                if dtype is None:
                    dtype = own
                elif dtype is not own:
                    return False
            elif own.is_complex:
                return False
        elif isinstance(value, complex):
            return False
    return not (
        torch.is_autocast_enabled("cpu")
        or torch.is_autocast_enabled("cuda")
        or torch._C._are_functorch_transforms_active()
        or forward_ad._current_level >= 0
        or torch._C._len_torch_dispatch_stack()
        or torch._C._len_torch_function_stack()
        or is_traced_by_torch()
    )


def are_saved_tensors_hooked() -> bool:
    """Return whether hooks take what autograd saves, as those of ``torch.utils.checkpoint``: it runs a function again
    for its gradients, which must save as many tensors as the first run."""
    return torch._C._autograd._top_saved_tensors_default_hooks(False) is not None


def _is_on_gpu(inputs: Sequence[Any]) -> bool:
    return any(isinstance(value, Tensor) and value.is_cuda for value in inputs)


_MAX_PROVISIONAL_RUNS: Final = 2
"""Number of runs of unoptimized graphs for any sizes, unless specializations replace them before."""
_MAX_PLANS: Final = 16
"""For how many sizes of inputs there are plans of their own; more than these share one."""
_MAX_KEYS: Final = 1024


class DerivativeExecutor:
    """Executor of a gradient. Holds one specialization for each set of input sizes, and a generic one."""

    __slots__ = ("_by_numbers", "_by_sizes", "_general", "_numbers", "_provisional_runs", "_varying", "gradient")

    def __init__(self, gradient: Gradient) -> None:
        self.gradient = gradient
        self._numbers = saved_scalars(gradient)
        self._by_sizes: dict[Hashable, _SizeSpecialization | _KnownSizes] | None = None
        self._by_numbers: dict[Hashable, _SizeSpecialization] = {}
        self._varying: set[int] = set()
        """The saved numbers that are constants of no further plan."""
        if self._numbers and is_determined_by_sizes(gradient):
            self._by_sizes = {}
        self._provisional_runs = 0 if self._by_sizes is None or is_settled_at_once() else _MAX_PROVISIONAL_RUNS
        self._general = _SizeSpecialization(gradient, gradient.forward, {}, (), self._provisional_runs == 0)

    def run(self, inputs: Sequence[Any]) -> Any:
        plan = self._general
        key: Hashable = None
        if self._by_sizes is not None:
            key = tuple([specialization_key(value) for value in inputs])
            found = self._by_sizes.get(key, plan)
            plan = self._specialized(key, found) if isinstance(found, _KnownSizes) else found
        if plan is self._general and not plan.is_optimized:
            if self._provisional_runs == 0:
                plan.optimize()
            self._provisional_runs -= 1
        passed: dict[int, int] = {}
        results = DifferentiableGraph.apply(plan, passed, *inputs)  # type: ignore[no-untyped-call]
        if plan is self._general and self._by_sizes is not None and key not in self._by_sizes:
            self._learn(key, results)
        count = self.gradient.results
        if passed:
            results = _restored(results, inputs, passed)
        return results[0] if count == 1 else results[:count]

    def pieces(self) -> Iterator[CompiledPart]:
        """Yield the functions compiled for this derivative so far."""
        may_learn = self._by_sizes is not None and len(self._by_numbers) < _MAX_PLANS
        for plan in [self._general, *self._by_numbers.values()]:
            sizes = "any sizes" if plan is self._general else "sizes that were met"
            wanted = sum(self.gradient.requires_grad)
            what = f"gradients by {wanted} of {len(self.gradient.requires_grad)} inputs, {sizes}"
            learns = may_learn and plan is self._general
            yield CompiledPart(f"forward, {what}", plan.forward, learns, plan.replayed_forward)
            for backward in plan.backwards:
                yield CompiledPart(f"backward, {what}", backward.function, learns, backward.run)

    def _learn(self, key: Hashable, results: Sequence[Any]) -> None:
        """Record the saved numbers of a call under ``key``, so that another call with the same input sizes can be
        specialized."""
        assert self._by_sizes is not None
        if len(self._by_sizes) >= _MAX_KEYS:
            return
        values = {
            index: bound_value(self.gradient, index, results[index])
            for index in self._numbers
            if can_be_bound(self.gradient, index, results[index])
        }
        assert isinstance(key, tuple)
        self._by_sizes[key] = _KnownSizes(values, sizes_of_inputs(key))

    @gc_paused()
    @room_to_recurse(UNKNOWN_RANGE)
    def _specialized(self, key: Hashable, known: _KnownSizes) -> _SizeSpecialization:
        """Return the specialization for input sizes that occurred before; the generic one, if there are too many."""
        assert self._by_sizes is not None
        values = {index: value for index, value in known.values.items() if index not in self._varying}
        ranks = [None if each is None else len(each) for each in known.sizes]
        text = repr((values, ranks))
        plan = self._by_numbers.get(text)
        if plan is None and (varying := self._varying_sizes(values, ranks)):
            self._varying |= varying
            return self._specialized(key, known)
        if plan is None and len(self._by_numbers) < _MAX_PLANS:
            graph = specialize_forward(self.gradient, list(values), known.sizes)
            plan = self._by_numbers[text] = _SizeSpecialization(self.gradient, graph, values, ranks)
        if plan is None:
            plan = self._general
        self._by_sizes[key] = plan
        return plan

    def _varying_sizes(self, values: Mapping[int, object], ranks: Sequence[int | None]) -> set[int]:
        """Return the indices of sizes outside of loops, if only these differ between ``values`` and an existing
        specialization: sequences of different lengths. They are then saved at run time, so that one specialization
        serves all lengths."""
        if self.gradient.is_straight_line:
            return set()
        for plan in self._by_numbers.values():
            if plan.ranks == ranks and plan.values.keys() == values.keys():
                differing = {index for index, value in values.items() if plan.values[index] != value}
                if all(is_size_outside_loops(self.gradient, index) for index in differing):
                    return differing
        return set()


@dataclass(slots=True, eq=False)
class _KnownSizes:
    """The saved numbers of a call, and the sizes of its inputs. A second call with these sizes is specialized."""

    values: dict[int, object]
    sizes: Sequence[torch.Size | None]


@dataclass(slots=True, eq=False)
class _Backward:
    """``run`` calls ``function``, or replays its calls. Both take a list of the arguments, and empty it."""

    function: Callable[[list[Any]], Any]
    run: Callable[[list[Any]], Any]
    captures: tuple[int, ...]
    several: bool


class _SizeSpecialization:
    """Runs the forward and backward graphs of a gradient in which the saved numbers ``values`` and the ``ranks`` of the
    inputs are constants."""

    __slots__ = (
        "_again",
        "_backward",
        "_graph",
        "constants",
        "forward",
        "gradient",
        "is_optimized",
        "lists",
        "places",
        "ranks",
        "recomputes",
        "replayed_forward",
        "saved",
        "several",
        "values",
    )

    def __init__(
        self,
        gradient: Gradient,
        graph: Graph,
        values: dict[int, object],
        ranks: Sequence[int | None],
        is_optimized: bool = True,
    ) -> None:
        self.gradient = gradient
        self.is_optimized = is_optimized
        self._graph = graph
        self.values = values
        self.ranks = ranks
        outputs = [index for index in range(len(gradient.forward.outputs)) if index not in values]
        self.places = {index: place for place, index in enumerate(outputs)}
        """Where the outputs of the gradient's forward are found among those of the plan's."""
        self.several = len(outputs) != 1
        self.constants = tuple(place for place, index in enumerate(outputs) if index not in gradient.roots)
        self.saved = tuple(
            (number, source if source < 0 else self.places[source])
            for number, source in enumerate(gradient.captures)
            if source not in values
        )
        """The captures: their number, and where they are found: which output, or ``~`` which input."""
        types = [gradient.forward.outputs[source].type for source in gradient.captures if source >= 0]
        if gradient.is_straight_line:
            self.lists = any(isinstance(type, ListType) and may_contain_tensor(type) for type in types)
        else:
            self.lists = any(not isinstance(type, TensorType) for type in types)
        """Whether residuals are lists of tensors, which autograd cannot save as such."""
        self.recomputes = self.lists or not gradient.is_straight_line
        """Whether the forward runs again for gradients of gradients: not all residuals are results to autograd."""
        self.forward = callable_of(graph, "differentiable graph", optimized=is_optimized)
        self.replayed_forward = replayed(self.forward)
        self._again: Callable[..., Any] | None = None
        self._backward: dict[tuple[bool, ...], _Backward] = {}

    @gc_paused()
    @room_to_recurse(UNKNOWN_RANGE)
    def optimize(self) -> None:
        """Use optimized graphs from the next call on."""
        self.is_optimized = True
        self.forward = callable_of(self._graph, "differentiable graph", optimized=True)
        self.replayed_forward = replayed(self.forward)
        self._backward.clear()

    def recompute_with_autograd(self, inputs: Sequence[Any], gradients: Sequence[Tensor | None]) -> list[Any]:
        """Return the gradients of the inputs, recorded by autograd for second derivatives; None for an input that
        requires none. The forward runs again, operator by operator."""
        if self._again is None:
            self._again = callable_of(self.gradient.forward, "differentiable graph")
        roots = [root for root in self.gradient.roots if gradients[self.places[root]] is not None]
        given = [gradients[self.places[root]] for root in roots]
        wanted = [index for index, wants in enumerate(self.gradient.requires_grad) if wants]
        several = len(self.gradient.forward.outputs) != 1
        found = iter(through_autograd(self._again, several, roots, wanted, given, list(inputs)))
        return [next(found) if wants else None for wants in self.gradient.requires_grad]

    @property
    def backwards(self) -> Sequence[_Backward]:
        """The executors of backward graphs that were needed so far."""
        return list(self._backward.values())

    def backward(self, defined: tuple[bool, ...], gradients: Sequence[Tensor | None]) -> _Backward:
        """Return the executor of the backward graph for the case that the gradients of the roots ``defined`` exist.
        Calls on a GPU, where ``gradients`` are then, may be captured: they write to no argument."""
        found = self._backward.get(defined)
        if found is None:
            found = self._backward[defined] = self._make_backward(defined, gradients)
        return found

    @gc_paused()
    @room_to_recurse(UNKNOWN_RANGE)
    def _make_backward(self, defined: tuple[bool, ...], gradients: Sequence[Tensor | None]) -> _Backward:
        made = self.gradient.backward_for(defined)
        if self.values:
            made = bind_backward_constants(self.gradient, made, self.values, self.ranks)
        if not self.gradient.is_straight_line:
            graph = made.graph.copy()
            batch_gradient_accumulation(graph)
            if not _is_on_gpu(gradients):
                consume_residuals(graph, graph.inputs[len(graph.inputs) - len(made.captures) :])
            made = BackwardGraph(graph, made.captures)
        numbers = {number: place for place, (number, _) in enumerate(self.saved)}
        captures = tuple(numbers[number] for number in made.captures)
        run = consuming_callable_of(made.graph, "backward of a differentiable graph", optimized=self.is_optimized)
        several = len(made.graph.outputs) != 1
        return _Backward(run, replayed(run, from_list=True), captures, several)


class DifferentiableGraph(torch.autograd.Function):
    """The node in autograd's graph, where it is called ``DifferentiableGraphBackward``."""

    @staticmethod
    def forward(ctx: Any, plan: _SizeSpecialization, passed: dict[int, int], *inputs: Any) -> Any:
        results = plan.replayed_forward(*inputs)
        if not plan.several:
            results = (results,)
        saved = [results[source] if source >= 0 else inputs[~source] for _, source in plan.saved]
        ctx.others = None
        if plan.lists:
            tensors: list[Tensor] = []
            ctx.others = [_flatten(value, tensors) for value in saved]
        else:
            tensors = [value for value in saved if isinstance(value, Tensor)]
            if len(tensors) != len(saved):
                ctx.others = [None if isinstance(value, Tensor) else (value,) for value in saved]
        ctx.save_for_backward(*tensors)
        if plan.recomputes:
            ctx.inputs = [
                None if ~index in plan.gradient.captures else (value, getattr(value, "_version", 0))
                for index, value in enumerate(inputs)
            ]
        ctx.plan = plan
        ctx.set_materialize_grads(False)
        if not plan.gradient.is_straight_line:
            passed.update(_passed_through(results[: plan.gradient.results], inputs))
            results = _distinct(results)
        if plan.constants:
            ctx.mark_non_differentiable(*[results[i] for i in plan.constants if isinstance(results[i], Tensor)])
        return results

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:
        plan: _SizeSpecialization = ctx.plan
        gradient = plan.gradient
        places = plan.places
        roots = [gradients[places[root]] for root in gradient.roots]
        defined = tuple([root is not None for root in roots])
        written: RuntimeError | None = None
        try:
            saved = () if not plan.saved or _are_numbers(ctx.others) else ctx.saved_tensors
        except RuntimeError as error:  # one was written to: it may not be needed for the gradients of these roots
            if torch.is_grad_enabled():
                raise
            written = error
            saved = ctx._raw_saved_tensors
        if ctx.others is not None:
            leaves = iter(saved)
            saved = [_unflatten(other, leaves) for other in ctx.others]
            del leaves  # it holds the tuple of all tensors
        if plan.recomputes and torch.is_grad_enabled():
            known = {source: saved[place] for place, (_, source) in enumerate(plan.saved)}
            return (None, None, *plan.recompute_with_autograd(_inputs(ctx.inputs, known), gradients))
        backward = plan.backward(defined, roots)
        captures = [saved[i] for i in backward.captures]
        if written is not None:
            sources = [plan.saved[i][1] for i in backward.captures]
            captures = [_unpack(value, source >= 0, written) for value, source in zip(captures, sources, strict=True)]
        ctx.maybe_clear_saved_tensors()  # unless the graph is retained: they are freed at their last use
        arguments = [root for root in roots if root is not None]
        arguments += captures
        del saved, captures, roots
        found = backward.run(arguments)
        each = iter(found if backward.several else (found,))
        return (None, None, *[next(each) if wanted else None for wanted in gradient.requires_grad])


def _are_numbers(others: Sequence[_TreeSpec] | None) -> bool:
    """Return whether no tensors are saved: autograd counts those as released, too, once the node has run."""
    return others is not None and all(type(each) is tuple for each in others)


def _unpack(saved: Any, is_result: bool, written: RuntimeError) -> Any:
    """Return the saved tensors, after a check that none was written to since it was saved. Autograd does not check a
    tensor that is a result: its version is compared here, which is 0 until something writes to the tensor.

    Raises:
        RuntimeError: one was written to (``written``, if it is a result), or this PyTorch cannot read a saved tensor
            (before 2.12; ``written``).
    """
    if isinstance(saved, list):
        return [_unpack(each, is_result, written) for each in saved]
    if not isinstance(saved, torch._C._autograd.SavedTensor):
        return saved
    if not is_result and hasattr(saved, "unpack"):
        return saved.unpack()
    tensor = getattr(saved, "data", None) if is_result else None
    if tensor is None or tensor._version:
        raise written
    return tensor


def _passed_through(results: Sequence[Any], inputs: Sequence[Any]) -> dict[int, int]:
    """Return the results that are existing tensors, by index: the complement of the index of an input, or the index of
    an earlier result. A branch, or a loop without iterations, may return its input."""
    known = {id(value): ~index for index, value in enumerate(inputs) if isinstance(value, Tensor)}
    found: dict[int, int] = {}
    for index, value in enumerate(results):
        if isinstance(value, Tensor):
            source = known.setdefault(id(value), index)
            if source != index:
                found[index] = source
    return found


def _restored(results: Sequence[Any], inputs: Sequence[Any], passed: Mapping[int, int]) -> Sequence[Any]:
    """Return ``results`` with autograd's copies of tensors that are passed through replaced by the tensors themselves:
    writes to these must be visible, and gradients need not pass through the graph."""
    found = list(results)
    for index, source in passed.items():
        found[index] = inputs[~source] if source < 0 else found[source]
    return found


def _distinct(results: Sequence[Any]) -> tuple[Any, ...]:
    """Return the results, where a tensor that occurs twice is replaced by an alias of its own, since autograd
    identifies an output by its tensor. A branch, or a loop without iterations, returns its input, which may be another
    result, or be saved."""
    found: list[Any] = []
    seen: set[int] = set()
    for value in results:
        if isinstance(value, Tensor):
            if id(value) in seen:
                value = value.detach()
            seen.add(id(value))
        found.append(value)
    return tuple(found)


# The tree structure of a residual: None for a tensor, a number for a list of so many tensors, a list of structures for
# any other list, and a tuple of the value itself for any other value.
_TreeSpec = tuple[Any] | int | list[Any] | None


def _flatten(value: Any, tensors: list[Tensor]) -> _TreeSpec:
    """Return the tree structure of ``value``, and append its tensors to ``tensors``."""
    if isinstance(value, Tensor):
        tensors.append(value)
        return None
    if type(value) is not list:
        return (value,)
    if all(isinstance(item, Tensor) for item in value):
        tensors += value
        return len(value)
    return [_flatten(item, tensors) for item in value]


def _unflatten(form: _TreeSpec, tensors: Iterator[Tensor]) -> Any:
    """Return the value with the tree structure ``form``, and the next of ``tensors``: the inverse of
    :func:`_flatten`."""
    if form is None:
        return next(tensors)
    if isinstance(form, int):
        return list(islice(tensors, form))
    if isinstance(form, list):
        return [_unflatten(item, tensors) for item in form]
    return form[0]


def _inputs(others: Sequence[tuple[Any, int] | None], known: dict[int, Any]) -> list[Any]:
    """Return the inputs of a graph: the saved ones, and ``others``, which must not have been written to since.

    Raises:
        RuntimeError: one of them has been written to.
    """
    found = []
    for index, other in enumerate(others):
        if other is None:
            found.append(known[~index])
            continue
        value, version = other
        if isinstance(value, Tensor) and value._version != version:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: a "
                f"tensor with the sizes {list(value.shape)} is at version {value._version}; expected version {version}"
            )
        found.append(value)
    return found
