"""Running ``prim::DifferentiableGraph``: its forward graph, with its backward graph hooked to PyTorch's autograd.

A node costs a question for each input. Where no gradient is wanted, its subgraph runs as it stands, and so it does
where PyTorch's autograd knows better: under autocast, ``functorch`` transforms and forward-mode derivatives, for
complex numbers, mixed dtypes and tensors with a life of their own. Else the derivative by the inputs that require one
is made when it is first wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import Parameter

from rekindle.autodiff.gradient import Gradient, differentiate
from rekindle.ir.execution import callable_of
from rekindle.ir.graph import Graph, Node
from rekindle.ir.registry import Effects, Operation
from rekindle.ops.declare import implements_for_node

_PLAIN: Final = (Tensor, Parameter)


@implements_for_node("prim::DifferentiableGraph(...) -> ...", effects=Effects.SPECIAL)
def differentiable_graph(node: Node) -> Operation:
    """Runs attribute ``Subgraph``; gradients go back through it by a graph of their own."""
    return DifferentiableGraph(node.get_graph("Subgraph"))


class DifferentiableGraph:
    """What runs such a node."""

    __slots__ = ("_derivatives", "_plain", "graph")

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._plain: Callable[..., Any] | None = None
        self._derivatives: dict[tuple[bool, ...], _Derivative] = {}

    def __call__(self, *inputs: Any) -> Any:
        if torch.is_grad_enabled():
            wanted = tuple([isinstance(value, Tensor) and value.requires_grad for value in inputs])
            if True in wanted and _are_plain(inputs):
                derivative = self._derivatives.get(wanted)
                if derivative is None:
                    derivative = self._derivatives[wanted] = _Derivative(differentiate(self.graph, wanted))
                return derivative.run(inputs)
        if self._plain is None:
            self._plain = callable_of(self.graph, "differentiable graph")
        return self._plain(*inputs)


def _are_plain(inputs: Sequence[Any]) -> bool:
    """Whether gradients may be computed by graphs of ours."""
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
    )


@dataclass(slots=True, eq=False)
class _Derivative:
    """A gradient, with what runs it."""

    gradient: Gradient
    forward: Callable[..., Any] = field(init=False)
    several: bool = field(init=False)
    constants: tuple[int, ...] = field(init=False)
    """The results that have no gradient."""
    tensors: tuple[int, ...] = field(init=False)
    """The captures that are tensors, as far as types tell."""
    _backward: dict[tuple[bool, ...], tuple[Callable[..., Any], tuple[int, ...], bool]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        graph = self.gradient.forward
        self.several = len(graph.outputs) != 1
        self.constants = tuple(index for index in range(len(graph.outputs)) if index not in self.gradient.roots)
        self.forward = callable_of(graph, "differentiable graph")

    def run(self, inputs: Sequence[Any]) -> Any:
        results = _Function.apply(self, *inputs)  # type: ignore[no-untyped-call]
        count = self.gradient.results
        return results[0] if count == 1 else results[:count]

    def backward(self, defined: tuple[bool, ...]) -> tuple[Callable[..., Any], tuple[int, ...], bool]:
        """What runs the backward graph for the gradients that are ``defined``, the captures that it takes, and whether
        it returns several gradients."""
        found = self._backward.get(defined)
        if found is None:
            made = self.gradient.backward_for(defined)
            run = callable_of(made.graph, "backward of a differentiable graph")
            found = self._backward[defined] = run, made.captures, len(made.graph.outputs) != 1
        return found


class _Function(torch.autograd.Function):
    """The node in autograd's graph; it is called what tells a reader of ``grad_fn`` where it comes from."""

    @staticmethod
    def forward(ctx: Any, derivative: _Derivative, *inputs: Any) -> Any:
        results = derivative.forward(*inputs)
        if not derivative.several:
            results = (results,)
        kept = [results[source] if source >= 0 else inputs[~source] for source in derivative.gradient.captures]
        ctx.save_for_backward(*[value for value in kept if isinstance(value, Tensor)])
        ctx.others = [None if isinstance(value, Tensor) else (value,) for value in kept]
        ctx.derivative = derivative
        ctx.set_materialize_grads(False)
        constants = [results[index] for index in derivative.constants if isinstance(results[index], Tensor)]
        if constants:
            ctx.mark_non_differentiable(*constants)
        return results

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:
        derivative: _Derivative = ctx.derivative
        gradient = derivative.gradient
        defined = tuple([gradients[root] is not None for root in gradient.roots])
        run, captures, several = derivative.backward(defined)
        saved = iter(ctx.saved_tensors)
        kept = [next(saved) if other is None else other[0] for other in ctx.others]
        given = [gradients[root] for root in gradient.roots if gradients[root] is not None]
        found = run(*given, *[kept[index] for index in captures])
        each = iter(found if several else (found,))
        return (None, *[next(each) if wanted else None for wanted in gradient.requires_grad])


_Function.__name__ = "DifferentiableGraph"
