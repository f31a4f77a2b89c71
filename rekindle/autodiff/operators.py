"""Operators of backward graphs other than those of formulas (:mod:`rekindle.autodiff.backward_operators`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

from rekindle.errors import InternalError
from rekindle.ir.graph import Graph, Node
from rekindle.ir.operators.registry import REGISTRY, AliasAnalysisKind, Operation
from rekindle.ir.scalar_types import DTYPE_NUMBERS, DTYPES
from rekindle.ir.subgraph_execution import callable_of
from rekindle.ops.registration.declare import implements, implements_for_node


@implements("autodiff::join(Tensor?[] gradients, Tensor[] parts, int dim) -> Tensor")
def join(gradients: Sequence[Tensor | None], parts: Sequence[Tensor], dim: int) -> Tensor:
    """Concatenate ``gradients`` along ``dim``. A missing gradient is zeros of the size of its part in ``parts``, which
    is empty if none is missing."""
    if not parts:
        return torch.cat(gradients, dim)  # type: ignore[arg-type]
    pairs = zip(gradients, parts, strict=True)
    return torch.cat([torch.zeros_like(part) if gradient is None else gradient for gradient, part in pairs], dim)


@implements("autodiff::only_at(t gradient, int count, int index) -> t?[]", may_alias_inputs=True)
def only_at(gradient: Any, count: int, index: int) -> list[Any]:
    """Return the gradients of the elements of a list of ``count`` elements: ``gradient`` at ``index``, None for all
    others."""
    found: list[Any] = [None] * count
    found[index] = gradient
    return found


@implements(
    "autodiff::added.list(t[] a, t[]? b) -> t[]",
    "autodiff::added.optional_list(t[]? a, t[]? b) -> t[]?",
    "autodiff::added.dict_str(Dict(str, t) a, Dict(str, t)? b) -> Dict(str, t)",
    "autodiff::added.optional_dict_str(Dict(str, t)? a, Dict(str, t)? b) -> Dict(str, t)?",
    "autodiff::added.dict_int(Dict(int, t) a, Dict(int, t)? b) -> Dict(int, t)",
    "autodiff::added.optional_dict_int(Dict(int, t)? a, Dict(int, t)? b) -> Dict(int, t)?",
    may_alias_inputs=True,
)
def added(a: Any, b: Any) -> Any:
    """Return the sum of the gradients of two containers: of lists element by element, of dicts key by key. A missing
    element counts as zero."""
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, Tensor):
        return a + b
    if isinstance(a, dict):
        return {key: added(a.get(key), b.get(key)) for key in (*a, *(key for key in b if key not in a))}
    return [added(x, y) for x, y in zip(a, b, strict=True)]


@implements("autodiff::plus(Tensor(a) a, Tensor? b) -> Tensor(a)")
def plus(a: Tensor, b: Tensor | None) -> Tensor:
    """Return ``a + b``, where ``b`` may be None."""
    return a if b is None else a + b


@implements("autodiff::sum_of(Tensor(a)? a, Tensor(a)? b) -> Tensor(a)?")
def sum_of(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    """Return ``a + b``, where both may be None; None if both are."""
    if a is None or b is None:
        return b if a is None else a
    return a + b


@implements_for_node("autodiff::backward_of(...) -> ...", effects=AliasAnalysisKind.PURE)
def backward_of(node: Node) -> Operation:
    """Return the operation that differentiates the graph in attribute ``Subgraph`` with PyTorch's autograd. Attributes
    ``given`` and ``wanted`` are indices of its outputs and inputs. The operation takes the gradients of the outputs
    ``given``, followed by all inputs, and returns the gradients of the inputs ``wanted``."""
    graph = node.get_graph("Subgraph")
    given, wanted = _numbers(node, "given"), _numbers(node, "wanted")
    run = callable_of(graph, "backward_of")
    several = len(graph.outputs) != 1

    def go(*inputs: Any) -> Any:
        found = through_autograd(run, several, given, wanted, inputs[: len(given)], list(inputs[len(given) :]))
        return found[0] if len(found) == 1 else tuple(found)

    return go


@implements("autodiff::backward_of_call(str operator, int[] given, int[] wanted, ...) -> Tensor?[][]")
def backward_of_call(operator: str, given: Sequence[int], wanted: Sequence[int], *values: Any) -> list[Any]:
    """Differentiate one call of ``operator`` with PyTorch's autograd. ``given`` and ``wanted`` are indices of its
    results and arguments. ``values`` are the gradients of the results ``given``, followed by all arguments. Return the
    gradients of the arguments ``wanted``, each as a list."""
    run, count = _called(operator)
    gradients, arguments = values[: len(given)], list(values[len(given) :])
    found = through_autograd(run, count, given, wanted, gradients, arguments)
    return [item if isinstance(item, list) else [item] for item in found]


@cache
def _called(name: str) -> tuple[Callable[..., Any], bool]:
    """Return the function that runs the operator ``name``, and whether its results are a tuple: their number is not
    one.

    Raises:
        InternalError: there is no such operator.
    """
    operator = REGISTRY.find(name)
    if operator is None:
        raise InternalError(f"there is no operator {name}")
    schema = operator.schema
    graph = Graph()
    inputs = [graph.add_input(type=argument.type) for argument in schema.arguments]
    node = graph.append_node(graph.create(schema.name, inputs, types=[result.type for result in schema.returns]))
    return operator.operation_of(node), len(schema.returns) != 1


def through_autograd(
    run: Callable[..., Any],
    several: bool,
    given: Sequence[int],
    wanted: Sequence[int],
    gradients: Sequence[Any],
    arguments: list[Any],
) -> list[Any]:
    """Run ``run`` on ``arguments`` with autograd, and return the gradients of the arguments with the indices
    ``wanted``, given ``gradients``, those of the results with the indices ``given``. A gradient that does not exist is
    zeros; None for an argument other than a floating-point or complex tensor. With gradient mode on, the result can be
    differentiated again. The ``wanted`` elements of ``arguments`` are replaced."""
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        for index in wanted:
            arguments[index] = _fresh(arguments[index], again)
        results = run(*arguments)
        outputs = [(results if several else (results,))[index] for index in given]
        return _gradients(outputs, [arguments[index] for index in wanted], gradients, again)


def _numbers(node: Node, name: str) -> list[int]:
    found = node[name]
    if not isinstance(found, list):
        raise InternalError(f"attribute '{name}' of {node.kind} is not a list of numbers")
    return [number for number in found if isinstance(number, int)]


def _fresh(value: Any, again: bool) -> Any:
    """Return an alias of the tensor ``value`` whose gradient can be requested; of a list, one of each item. It is
    connected to the history of ``value`` if ``again``, for second derivatives; else detached. Other values are returned
    unchanged."""
    if isinstance(value, list):
        return [_fresh(item, again) for item in value]
    if not isinstance(value, Tensor):
        return value
    if again and value.requires_grad:
        return value.view_as(value)
    return value.detach().requires_grad_(value.is_floating_point() or value.is_complex())


def _gradients(outputs: list[Any], inputs: list[Any], gradients: Sequence[Any], again: bool) -> list[Any]:
    pairs = [
        (output, gradient)
        for output, gradient in zip(_flat(outputs), _flat(gradients), strict=True)
        if gradient is not None and output is not None and output.requires_grad
    ]
    leaves = [value for value in _flat(inputs) if value is not None and value.requires_grad]
    found: list[Any] = [None] * len(leaves)
    if pairs and leaves:
        found = list(
            torch.autograd.grad(
                [output for output, _ in pairs],
                leaves,
                [gradient for _, gradient in pairs],
                allow_unused=True,
                create_graph=again,
            )
        )
    # A gradient that does not exist is zero here: the caller has shown a path to it.
    by_leaf = {
        id(leaf): torch.zeros_like(leaf) if gradient is None else gradient
        for leaf, gradient in zip(leaves, found, strict=True)
    }
    return [_shaped(value, by_leaf) for value in inputs]


def _flat(values: Any) -> list[Any]:
    if isinstance(values, (list, tuple)):
        return [item for value in values for item in _flat(value)]
    return [values]


def _shaped(value: Any, by_leaf: dict[int, Tensor]) -> Any:
    if isinstance(value, list):
        return [_shaped(item, by_leaf) for item in value]
    return by_leaf.get(id(value))


# --------------------------------------------------------------------------------------------- instead of writes


@implements("autodiff::with_item(t[] list, int index, t item) -> t[]", may_alias_inputs=True)
def with_item(list: Sequence[Any], index: int, item: Any) -> list[Any]:
    """Return a copy of a list with another item at ``index``."""
    found = [*list]
    found[index] = item
    return found


@implements("autodiff::without_item(t[] list, int index) -> t[]", may_alias_inputs=True)
def without_item(list: Sequence[Any], index: int) -> list[Any]:
    """Return a copy of a list without the item at ``index``."""
    found = [*list]
    del found[index]
    return found


@implements("autodiff::with_room(t[] list, int index) -> t[]", may_alias_inputs=True)
def with_room(list: Sequence[Any], index: int) -> list[Any]:
    """Return the gradients of a list from those of the list without the item at ``index``, whose gradient is None."""
    found = [*list]
    found.insert(index if index >= 0 else len(found) + 1 + index, None)
    return found


@implements("autodiff::unsliced(t[] gradient, int count, int? start, int? end, int step) -> t[]", may_alias_inputs=True)
def unsliced(gradient: Sequence[Any], count: int, start: int | None, end: int | None, step: int) -> list[Any]:
    """Return the gradients of the elements of a list of ``count`` elements from those of a slice; None for elements
    outside of the slice."""
    found: list[Any] = [None] * count
    for place, item in zip(range(*slice(start, end, step).indices(count)), gradient, strict=True):
        found[place] = item
    return found


@implements(
    "autodiff::with_entry.str(Dict(str, t) dict, str key, t value) -> Dict(str, t)",
    "autodiff::with_entry.int(Dict(int, t) dict, int key, t value) -> Dict(int, t)",
    may_alias_inputs=True,
)
def with_entry(dict: dict[Any, Any], key: Any, value: Any) -> dict[Any, Any]:
    """Return a copy of a dict with another value for one key."""
    return {**dict, key: value}


@implements(
    "autodiff::without_entry.str(Dict(str, t) dict, str key) -> Dict(str, t)",
    "autodiff::without_entry.int(Dict(int, t) dict, int key) -> Dict(int, t)",
    may_alias_inputs=True,
)
def without_entry(dict: dict[Any, Any], key: Any) -> dict[Any, Any]:
    """Return the gradients of the entries of a dict, without that of one key."""
    return {each: value for each, value in dict.items() if each != key}


@implements(
    "autodiff::entry.str(Dict(str, t) dict, str key) -> t?",
    "autodiff::entry.int(Dict(int, t) dict, int key) -> t?",
    may_alias_inputs=True,
)
def entry(dict: dict[Any, Any], key: Any) -> Any:
    """Return the gradient of an entry of a dict; None if it has none."""
    return dict.get(key)


@implements(
    "autodiff::entries_of.str(Tensor?[] values, Dict(str, Tensor) like) -> Dict(str, Tensor)",
    "autodiff::entries_of.int(Tensor?[] values, Dict(int, Tensor) like) -> Dict(int, Tensor)",
    may_alias_inputs=True,
)
def entries_of(values: Sequence[Tensor | None], like: dict[Any, Tensor]) -> dict[Any, Tensor]:
    """Return the gradients of the entries of the dict ``like`` from those of its values. Entries without a gradient are
    omitted."""
    return {key: value for key, value in zip(like, values, strict=True) if value is not None}


@implements(
    "autodiff::values_of.str(Dict(str, Tensor) entries, Dict(str, Tensor) like) -> Tensor?[]",
    "autodiff::values_of.int(Dict(int, Tensor) entries, Dict(int, Tensor) like) -> Tensor?[]",
    may_alias_inputs=True,
)
def values_of(entries: dict[Any, Tensor], like: dict[Any, Tensor]) -> list[Tensor | None]:
    """Return the gradients of the values of the dict ``like``, in its order; None for values without one."""
    return [entries.get(key) for key in like]


@implements("autodiff::second_of(Tensor?[]?[] pairs) -> Tensor?[]", may_alias_inputs=True)
def second_of(pairs: Sequence[Sequence[Tensor | None] | None]) -> list[Tensor | None]:
    """Return the second element of each pair of gradients; None for a missing pair."""
    return [None if pair is None else pair[1] for pair in pairs]


@implements("autodiff::as_second(Tensor?[] values) -> Tensor?[]?[]", may_alias_inputs=True)
def as_second(values: Sequence[Tensor | None]) -> list[list[Tensor | None] | None]:
    """Return the gradients of pairs from those of their second elements. First elements have none."""
    return [[None, value] for value in values]


@implements("autodiff::fitted(Tensor self, Tensor(a) value) -> Tensor(a)")
def fitted(self: Tensor, value: Tensor) -> Tensor:
    """Return ``value`` in the dtype of ``self``, as a write to ``self`` converts it.

    Raises:
        RuntimeError: ``value`` has other sizes than ``self``.
    """
    if value.shape != self.shape:
        raise RuntimeError(
            f"output with shape {list(self.shape)} doesn't match the broadcast shape {list(value.shape)}"
        )
    return value.to(self.dtype)


@implements("autodiff::dtype_of(Tensor value) -> int")
def dtype_of(value: Tensor) -> int:
    """Return the number of the dtype of ``value``. It differs from ``prim::dtype``, for which plans
    guard the dtypes of tensors."""
    return DTYPE_NUMBERS[value.dtype]


@implements("autodiff::in_dtype(Tensor(a) gradient, int dtype) -> Tensor(a)", may_alias_inputs=True)
def in_dtype(gradient: Tensor, dtype: int) -> Tensor:
    """Return ``gradient`` in the dtype of the value that it is the gradient of."""
    wanted = DTYPES[dtype]
    return gradient if gradient.dtype is wanted else gradient.to(wanted)


@implements("autodiff::with_value(Tensor self, Tensor value) -> Tensor")
def with_value(self: Tensor, value: Tensor) -> Tensor:
    """Return what ``self`` is after a write of ``value`` under ``no_grad``. The gradient of the result is that of
    ``self``."""
    return value.to(self.dtype, copy=True).expand_as(self)


@implements("autodiff::with_value_(Tensor(a!) self, Tensor value) -> Tensor(a!)")
def with_value_(self: Tensor, value: Tensor) -> Tensor:
    """Write ``value`` to ``self`` under ``no_grad``; return ``self``. Functionalization replaces this operator by
    :func:`with_value`."""
    with torch.no_grad():
        return self.copy_(value)


# ----------------------------------------------------------------------------------- beginning and end of a backward


@implements("autodiff::seed(Tensor value) -> Tensor")
def seed(value: Tensor) -> Tensor:
    """Return the gradient with which ``backward`` begins at a scalar tensor: one.

    Raises:
        RuntimeError: the tensor has dimensions, or is not of a floating dtype.
    """
    if value.dim() != 0:
        raise RuntimeError(
            f"a gradient is of a tensor without dimensions, and this has the sizes {list(value.shape)}; add it up, or "
            "use rekindle.vjp or rekindle.jacrev"
        )
    if not value.is_floating_point():
        raise RuntimeError(f"a gradient is of a tensor of real numbers, and this is one of {value.dtype}")
    return torch.ones_like(value)


@implements("autodiff::unit(Tensor like, int place) -> Tensor")
def unit(like: Tensor, place: int) -> Tensor:
    """Return zeros like ``like``, with a one at flat index ``place``."""
    found = torch.zeros(like.numel(), dtype=like.dtype, device=like.device)
    found[place] = 1
    return found.view(like.shape)


@implements("autodiff::jacobian(Tensor[] rows, Tensor result, Tensor argument) -> Tensor")
def jacobian(rows: Sequence[Tensor], result: Tensor, argument: Tensor) -> Tensor:
    """Return the Jacobian matrix from its ``rows``, one for each element of ``result``. Its sizes are those of the
    result, then those of the argument."""
    sizes = (*result.shape, *argument.shape)
    return torch.stack(list(rows)).view(sizes) if rows else argument.new_zeros(sizes)


@implements(
    "autodiff::or_zeros(Tensor(a)? gradient, Tensor like) -> Tensor(a)",
    "autodiff::or_zeros.list(Tensor?[]? gradient, Tensor[] like) -> Tensor[]",
    "autodiff::or_zeros.optional(Tensor(a)? gradient, Tensor? like) -> Tensor(a)?",
    "autodiff::or_zeros.dict_str(Dict(str, Tensor)? gradient, Dict(str, Tensor) like) -> Dict(str, Tensor)",
    "autodiff::or_zeros.dict_int(Dict(int, Tensor)? gradient, Dict(int, Tensor) like) -> Dict(int, Tensor)",
    may_alias_inputs=True,
)
def or_zeros(gradient: Any, like: Any) -> Any:
    """Return a gradient, or zeros like ``like`` if it is None: a tensor, or a list or dict of them. None if ``like`` is
    None."""
    if like is None:
        return None
    if isinstance(like, dict):
        return {key: or_zeros(None if gradient is None else gradient.get(key), item) for key, item in like.items()}
    if isinstance(like, list):
        return [or_zeros(None if gradient is None else gradient[index], item) for index, item in enumerate(like)]
    return torch.zeros_like(like) if gradient is None else gradient
