"""Kernel recipes of fused groups, for the tensors that the groups are called with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rekindle.building.group_layouts import GroupInputs
from rekindle.building.size_exploration import add_recipes
from rekindle.codegen.compiled_kernels import KernelRecipe, kernel_recipe
from rekindle.codegen.layout import Layout, contiguous_strides
from rekindle.codegen.loop_ir.builder import Unsupported
from rekindle.ir.graph import Graph, Node
from rekindle.ir.types import BOOL, FLOAT, INT, TensorType, Type


def recipes_for_calls(group: Graph, calls: Sequence[GroupInputs], may_defer: bool) -> list[KernelRecipe]:
    """Return recipes of kernels for ``calls`` of a fused group, and for calls with other sizes as far as these can be
    inferred. The list is empty if there can be no kernel, or if ``may_defer`` is set and a library of PyTorch is
    expected to be faster in every call."""
    if may_defer and not any(_recipe(group, call, defer_to_libraries=True) for call in calls):
        return []
    found: list[KernelRecipe] = []
    for call in calls:
        if all(recipe.numbers(call) is None for recipe in found):
            made = _recipe(group, call)
            if made is not None:
                found.append(made)
    if found:
        add_recipes(calls, found, lambda inputs: _recipe(group, inputs))
    return found


_SIZES: Final = ((5, 7, 11, 13, 17, 19), (6, 9, 15, 20, 23, 29), (8, 10, 12, 14, 21, 25))
"""Sizes used as examples of arbitrary sizes, from the last dimension on."""


def recipes_for_types(group: Graph, node: Node) -> list[KernelRecipe]:
    """Return recipes of kernels for contiguous tensors of the types in the graph, of any sizes; empty if too little is
    known. ``node`` is the node of the group."""
    calls: list[GroupInputs] = []
    for given in _SIZES:
        inputs: list[Layout | type] = []
        for value in node.inputs:
            type = value.type
            if type in _NUMBERS:
                inputs.append(_NUMBERS[type])
            elif isinstance(type, TensorType) and type.dtype is not None and type.rank is not None and type.rank <= 6:
                sizes = tuple(reversed(given[: type.rank]))
                inputs.append(Layout(sizes, contiguous_strides(sizes), type.dtype))
            else:
                return []
        calls.append(tuple(inputs))
    return recipes_for_calls(group, calls, may_defer=False)


_NUMBERS: Final[dict[Type, type]] = {INT: int, FLOAT: float, BOOL: bool}


def _recipe(group: Graph, inputs: GroupInputs, *, defer_to_libraries: bool = False) -> KernelRecipe | None:
    """Return the recipe of a kernel for such inputs; None if there is none, or if it checks values: a library has no
    other operators to raise the error."""
    try:
        found = kernel_recipe(group, inputs, defer_to_libraries=defer_to_libraries)
    except Unsupported:
        return None
    return None if found.kernel.has_checks else found
