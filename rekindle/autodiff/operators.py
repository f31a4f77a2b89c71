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
    """``gradients`` joined along ``dim``, with zeros for those that do not exist, of the size of their part; there are
    no parts where all exist."""
    if not parts:
        return torch.cat(gradients, dim)  # type: ignore[arg-type]
    pairs = zip(gradients, parts, strict=True)
    return torch.cat([torch.zeros_like(part) if gradient is None else gradient for gradient, part in pairs], dim)


@implements("autodiff::only_at(t gradient, int count, int index) -> t?[]", may_alias_inputs=True)
def only_at(gradient: Any, count: int, index: int) -> list[Any]:
    """Return the gradients of a list of ``count`` elements, of which one was used."""
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
    """Return the sum of the gradients of two containers, any part of which may not exist: of lists element by element,
    of dicts key by key."""
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, Tensor):
        return a + b
    if isinstance(a, dict):
        return {key: added(a.get(key), b.get(key)) for key in (*a, *(key for key in b if key not in a))}
    return [added(x, y) for x, y in zip(a, b, strict=True)]


@implements("autodiff::plus(Tensor(a) a, Tensor? b) -> Tensor(a)")
def plus(a: Tensor, b: Tensor | None) -> Tensor:
    """Return the sum of a gradient, and one that may not exist."""
    return a if b is None else a + b


@implements("autodiff::sum_of(Tensor(a)? a, Tensor(a)? b) -> Tensor(a)?")
def sum_of(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    """Return the sum of two gradients, either of which may not exist."""
    if a is None or b is None:
        return b if a is None else a
    return a + b


@implements_for_node("autodiff::backward_of(...) -> ...", effects=AliasAnalysisKind.PURE)
def backward_of(node: Node) -> Operation:
    """Differentiate the graph in attribute ``Subgraph`` with PyTorch's autograd. Attributes ``given`` and ``wanted``
    are indices of its outputs and inputs. The operation takes the gradients of the outputs ``given``, followed by all
    inputs, and returns the gradients of the inputs ``wanted``."""
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
    """Return the function that runs an operator, and whether it has several results."""
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
    """Return the gradients of the arguments ``wanted`` of ``run``, from those of its results ``given``."""
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
    """Return ``value`` so that its gradient can be requested; still connected to its history if ``again``."""
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
    """Return a list that has another item at one place."""
    found = [*list]
    found[index] = item
    return found


@implements("autodiff::without_item(t[] list, int index) -> t[]", may_alias_inputs=True)
def without_item(list: Sequence[Any], index: int) -> list[Any]:
    """Return a list that lacks the item at one place."""
    found = [*list]
    del found[index]
    return found


@implements("autodiff::with_room(t[] list, int index) -> t[]", may_alias_inputs=True)
def with_room(list: Sequence[Any], index: int) -> list[Any]:
    """Return the gradients of a list: None for the item at one place, which the given gradients lack."""
    found = [*list]
    found.insert(index if index >= 0 else len(found) + 1 + index, None)
    return found


@implements("autodiff::unsliced(t[] gradient, int count, int? start, int? end, int step) -> t[]", may_alias_inputs=True)
def unsliced(gradient: Sequence[Any], count: int, start: int | None, end: int | None, step: int) -> list[Any]:
    """Return the gradients of a list of ``count`` elements, of which a slice was used."""
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
    """Return a dict that has another value for one key."""
    return {**dict, key: value}


@implements(
    "autodiff::without_entry.str(Dict(str, t) dict, str key) -> Dict(str, t)",
    "autodiff::without_entry.int(Dict(int, t) dict, int key) -> Dict(int, t)",
    may_alias_inputs=True,
)
def without_entry(dict: dict[Any, Any], key: Any) -> dict[Any, Any]:
    """Return the gradients of a dict but that of one entry."""
    return {each: value for each, value in dict.items() if each != key}


@implements(
    "autodiff::entry.str(Dict(str, t) dict, str key) -> t?",
    "autodiff::entry.int(Dict(int, t) dict, int key) -> t?",
    may_alias_inputs=True,
)
def entry(dict: dict[Any, Any], key: Any) -> Any:
    """Return the gradient of an entry of a dict, None where there is none."""
    return dict.get(key)


@implements(
    "autodiff::entries_of.str(Tensor?[] values, Dict(str, Tensor) like) -> Dict(str, Tensor)",
    "autodiff::entries_of.int(Tensor?[] values, Dict(int, Tensor) like) -> Dict(int, Tensor)",
    may_alias_inputs=True,
)
def entries_of(values: Sequence[Tensor | None], like: dict[Any, Tensor]) -> dict[Any, Tensor]:
    """Return the gradients of a dict from those of its values, as far as there are any."""
    return {key: value for key, value in zip(like, values, strict=True) if value is not None}


@implements(
    "autodiff::values_of.str(Dict(str, Tensor) entries, Dict(str, Tensor) like) -> Tensor?[]",
    "autodiff::values_of.int(Dict(int, Tensor) entries, Dict(int, Tensor) like) -> Tensor?[]",
    may_alias_inputs=True,
)
def values_of(entries: dict[Any, Tensor], like: dict[Any, Tensor]) -> list[Tensor | None]:
    """Return the gradients of the values of a dict, in its order."""
    return [entries.get(key) for key in like]


@implements("autodiff::second_of(Tensor?[]?[] pairs) -> Tensor?[]", may_alias_inputs=True)
def second_of(pairs: Sequence[Sequence[Tensor | None] | None]) -> list[Tensor | None]:
    """Return the gradients of the second of each pair."""
    return [None if pair is None else pair[1] for pair in pairs]


@implements("autodiff::as_second(Tensor?[] values) -> Tensor?[]?[]", may_alias_inputs=True)
def as_second(values: Sequence[Tensor | None]) -> list[list[Tensor | None] | None]:
    """Return the gradients of pairs, of which the first of each has none."""
    return [[None, value] for value in values]


@implements("autodiff::fitted(Tensor self, Tensor(a) value) -> Tensor(a)")
def fitted(self: Tensor, value: Tensor) -> Tensor:
    """Return ``value`` converted and expanded as by a write to ``self``.

    Raises:
        RuntimeError: it has other sizes.
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
    """Return ``self`` after a write of ``value`` without recorded gradients: its gradient is that of ``self``."""
    return value.to(self.dtype, copy=True).expand_as(self)


@implements("autodiff::with_value_(Tensor(a!) self, Tensor value) -> Tensor(a!)")
def with_value_(self: Tensor, value: Tensor) -> Tensor:
    """Return the write as it is until functionalization replaces it."""
    with torch.no_grad():
        return self.copy_(value)


# ----------------------------------------------------------------------------------- beginning and end of a backward


@implements("autodiff::seed(Tensor value) -> Tensor")
def seed(value: Tensor) -> Tensor:
    """Return the gradient that the value of a program has by itself: one."""
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
    """Zeros, with a one at one place, counted through all dimensions."""
    found = torch.zeros(like.numel(), dtype=like.dtype, device=like.device)
    found[place] = 1
    return found.view(like.shape)


@implements("autodiff::jacobian(Tensor[] rows, Tensor result, Tensor argument) -> Tensor")
def jacobian(rows: Sequence[Tensor], result: Tensor, argument: Tensor) -> Tensor:
    """Return the matrix of which there are the rows, with the sizes of the result, then those of the argument."""
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
    """Return a gradient, or zeros where there is none: of a tensor, or of each tensor in a list or a dict; None where
    there is no tensor."""
    if like is None:
        return None
    if isinstance(like, dict):
        return {key: or_zeros(None if gradient is None else gradient.get(key), item) for key, item in like.items()}
    if isinstance(like, list):
        return [or_zeros(None if gradient is None else gradient[index], item) for index, item in enumerate(like)]
    return torch.zeros_like(like) if gradient is None else gradient
