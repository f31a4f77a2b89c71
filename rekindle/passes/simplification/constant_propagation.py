"""Propagate constants: evaluate operators on constants, select constant branches, and replace loop-carried values that
no iteration changes.

.. code-block:: text

    %1 : int = prim::Constant[value=3]()
    %2 : int = aten::mul(%1, %1)
    %3 : bool = aten::gt(%2, %1)
    %4 : Tensor = prim::If(%3)                 becomes     %2 : int = prim::Constant[value=9]()
      block0():                                            %4 : Tensor = aten::mul(%x, %2)
        %5 : Tensor = aten::mul(%x, %2)
        -> (%5)
      block1():
        -> (%x)

An operator on the output of an ``if`` whose branches both return constants is evaluated for each branch:

.. code-block:: text

    %2 : str = prim::If(%p)                               %6 : int = prim::If(%p)
      block0():                                             block0():
        -> (%text)                                            -> (%length)
      block1():                             becomes         block1():
        -> (%empty)                                           -> (%zero)
    %6 : int = aten::len(%2)

Only immutable values are evaluated: numbers, strings, None, devices and tuples of these. A node that raises is kept,
and raises at run time.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from rekindle.analysis.constant_folding import may_fold
from rekindle.analysis.constants import constant_bool, constant_int, constant_key, is_constant, value_of
from rekindle.analysis.effects import FRESH_VALUE_KINDS, GUARDS, has_side_effects, is_immutable, is_nondeterministic
from rekindle.analysis.raising import always_raises
from rekindle.errors import GraphError
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.operators.registry import is_foreign
from rekindle.ir.types import Type
from rekindle.passes.pass_manager import run_nested
from rekindle.passes.simplification.dead_code_elimination import DeadCodeElimination, remove_carried
from rekindle.rewriting.changes import may_change

_NOT_FOLDED = FRESH_VALUE_KINDS | GUARDS | {"prim::unchecked_unwrap_optional"}


@dataclass(slots=True)
class ConstantPropagation:
    '''Evaluate nodes with constant inputs at compile time. The docstring of the module shows the IR before and after.
    Dead code is eliminated too, if anything changed.

    Without ``through_branches``, conditions are not used as facts within their branches, operators on outputs of an
    ``if`` are not evaluated, and graphs are those of TorchScript.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import ConstantPropagation, run_passes
        >>> graph = parse_graph("""
        ... graph(%n : int):
        ...   %1 : int = prim::Constant[value=2]()
        ...   %2 : int = prim::Constant[value=3]()
        ...   %3 : int = aten::mul(%1, %2)
        ...   %4 : int = aten::add(%n, %3)
        ...   return (%4)
        ... """)
        >>> run_passes(graph, [ConstantPropagation()])
        True
        >>> print(graph)
        graph(%n : int):
          %6 : int = prim::Constant[value=6]()
          %4 : int = aten::add(%n, %6)
          return (%4)
    '''

    name: ClassVar[str] = "constant_propagation"
    through_branches: bool = True

    def run(self, graph: Graph) -> bool:
        changed = _propagate(graph.block, self.through_branches)
        if changed:
            run_nested(DeadCodeElimination(), graph)
        return changed


def _propagate(block: Block, through_branches: bool) -> bool:
    changed = False
    for node in block.nodes:
        if node.kind == "prim::If":
            changed |= _propagate_if(node, through_branches)
        elif node.kind == "prim::Loop":
            changed |= _propagate_loop(node, through_branches)
        elif node.blocks:
            for inner in node.blocks:
                changed |= _propagate(inner, through_branches)
        else:
            changed |= fold_node(node, through_branches=through_branches)
    return changed


# --------------------------------------------------------------------------------------------------------- single nodes


def fold_node(node: Node, *, through_branches: bool = True) -> bool:
    """Replace the outputs of ``node`` by constants, if it can be computed at compile time: its inputs are constants, or
    (``through_branches``) one is a constant in both branches of a ``prim::If``, whose branches then return the results.
    Return whether anything changed."""
    open_inputs = {value for value in node.inputs if not is_constant(value)}
    if not open_inputs:
        return _can_be_computed(node) and _compute(node)
    if not through_branches or len(open_inputs) > 1 or len(node.outputs) != 1:
        return False
    (selected,) = open_inputs
    is_selected = selected.node.kind == "prim::If" and all(is_constant(value) for value in _results(selected))
    return is_selected and _can_be_computed(node) and _compute_in_branches(node, selected)


def _results(selected: Value) -> list[Value]:
    """Return the values of both branches for an output of a ``prim::If``."""
    return [block.outputs[selected.offset] for block in selected.node.blocks]


def _can_be_computed(node: Node) -> bool:
    """Return whether an operator may run at compile time, if its inputs are known."""
    if (
        node.kind in _NOT_FOLDED
        or not node.outputs
        or is_foreign(node.kind)  # it may do anything, and a program that is merely loaded must not run it
    ):
        return False
    if not all(is_immutable(value.type) for value in (*node.inputs, *node.outputs)):
        return False
    operator = node.operator
    if operator is None or (operator.schema.is_vararg and node.kind not in _VARARG_KINDS):
        return False
    return not has_side_effects(node) and not is_nondeterministic(node)


_VARARG_KINDS = frozenset({"prim::TupleConstruct"})


def _compute(node: Node) -> bool:
    """Run the node at compile time, and replace its outputs by constants. Return whether that succeeded."""
    results = _results_of(node, [value_of(value.node) for value in node.inputs])
    if results is None or not may_change("compute", node):
        return False
    changed = False
    for output, value in zip(node.outputs, results, strict=True):
        changed |= _replace_by_constant(output, value)
    if not any(output.has_uses for output in node.outputs):
        node.destroy()  # it does not raise, which dead code elimination cannot know
        changed = True
    return changed


def _compute_in_branches(node: Node, selected: Value) -> bool:
    """Run the node for both values of ``selected``, and let the branches return the results. Return whether that
    succeeded."""
    (output,) = node.outputs
    constants = []
    for chosen in _results(selected):
        values = [value_of((chosen if value is selected else value).node) for value in node.inputs]
        results = _results_of(node, values)
        constant = None if results is None else _constant(output, results[0])
        if constant is None:
            return False
        constants.append(constant)
    if not may_change("compute", node):
        return False
    branch = selected.node
    for block, constant in zip(branch.blocks, constants, strict=True):
        block.add_output(block.append(constant).output)
    output.replace_all_uses_with(branch.add_output(output.type).copy_metadata(output))
    node.destroy()
    return True


def _results_of(node: Node, values: list[Any]) -> list[object] | None:
    """Run the node on ``values``; return its results, or None if its operator must not be folded, raises, warns, would
    take long, or returns too large a value."""
    operator = node.operator
    assert operator is not None
    if _may_be_huge(node, values) or not may_fold(operator, values):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = operator.operation_of(node)(*values)
    except (MemoryError, RecursionError):
        raise
    except Exception:
        # Whatever it is, the program is to raise it when it runs, if it comes here at all.
        return None
    if _is_huge(result):
        return None
    results = [result] if len(node.outputs) == 1 else list(result) if isinstance(result, (tuple, list)) else []
    return results if len(results) == len(node.outputs) else None


_MAX_BITS = 63
"""Ints of more bits than this are not made constants: the text form, archives and kernels know 64."""


_LONGEST_TEXT = 1000
"""Texts of more characters are neither made nor computed with: a program would double one in every line."""


def _may_be_huge(node: Node, values: list[Any]) -> bool:
    """Return whether the result may be so large that computing it would stall the compiler: ``9 ** 9 ** 9``, ``1 <<
    10**9``, ``"".ljust(10**9)``. The program may never execute the node."""
    if any(isinstance(value, str) for value in values):
        return node.kind in _GROWING or any(
            len(value) > _LONGEST_TEXT if isinstance(value, str) else isinstance(value, int) and value > _LONGEST_TEXT
            for value in values
        )
    if node.kind == "aten::factorial":
        return any(isinstance(value, int) and value > _MAX_BITS for value in values)
    if node.kind not in _GROWING or len(values) < 2:
        return False
    left, right = values[:2]
    return (
        isinstance(left, int)
        and isinstance(right, int)
        and _GROWING[node.kind](left.bit_length(), right) > 2 * _MAX_BITS
    )


_GROWING: dict[str, Callable[[int, int], int]] = {
    "aten::pow": lambda bits, power: bits * max(power, 0),
    "aten::__lshift__": lambda bits, places: bits + places,
    "aten::mul": lambda bits, factor: bits + factor.bit_length(),
}
"""Operators that make large numbers of small ones, and how many bits the result has at most."""


def _is_huge(result: object) -> bool:
    if isinstance(result, tuple):
        return any(_is_huge(item) for item in result)
    if isinstance(result, str):
        return len(result) > _LONGEST_TEXT
    return isinstance(result, int) and not -(1 << _MAX_BITS) <= result < 1 << _MAX_BITS


def _replace_by_constant(output: Value, value: object) -> bool:
    constant = _constant(output, value)
    if constant is None:
        return False
    constant.insert_before(output.node)
    output.replace_all_uses_with(constant.output)
    return True


def _constant(output: Value, value: object) -> Node | None:
    """Create a constant node that can replace ``output``, without inserting it; None if ``value`` cannot be a constant,
    or the constant does not have the type of ``output``."""
    graph = output.graph
    if value is None and not output.type.is_optional:
        return None  # a cast after a check that raises where it is None
    keep_type = value is None or isinstance(value, tuple)
    type: Type | None = output.type if keep_type else None
    try:
        constant = graph.create_constant(value, type, output.node.range)
    except GraphError:
        return None
    if not constant.output.type.is_subtype_of(output.type):
        return None  # a bool that was cast to a Scalar: its own type would not fit where it is used
    constant.callstack = output.node.callstack
    return constant


# --------------------------------------------------------------------------------------------------------- control flow


def _propagate_if(node: Node, through_branches: bool) -> bool:
    chosen = decided_branch(node)
    if chosen is not None and may_change("choose a branch of", node):
        _propagate(chosen, through_branches)
        inline_branch(node, chosen)
        return True
    changed = through_branches and propagate_condition(node)
    for block in node.blocks:
        changed |= _propagate(block, through_branches)
    return merge_outputs(node, after_raising=through_branches) or changed


def propagate_condition(node: Node) -> bool:
    """Replace uses of the condition of a ``prim::If`` within its branches by constants. Return whether there were
    any."""
    condition = node.input
    changed = False
    for use in list(condition.uses) if len(condition.uses) > 1 else ():
        for block, value in zip(node.blocks, (True, False), strict=True):
            if block.contains(use.user) and may_change("use the condition of", node):
                constant = node.graph.create_constant(value, range=node.range)
                use.user.replace_input(use.offset, block.prepend(constant).output)
                changed = True
    return changed


def decided_branch(node: Node) -> Block | None:
    """Return the block of a ``prim::If`` that always runs; None if the condition is not a constant."""
    condition = constant_bool(node.input)
    return None if condition is None else node.blocks[0 if condition else 1]


def merge_outputs(node: Node, *, after_raising: bool = True) -> bool:
    """Replace the outputs of a ``prim::If`` that are the same in both branches by that value; with ``after_raising``,
    where one branch always raises, those that the other branch takes from outside of it too. Return whether there were
    any."""
    changed = False
    then, otherwise = node.blocks
    for index in reversed(range(len(node.outputs))):
        same = _common_value(then.outputs[index], otherwise.outputs[index])
        if same is None and after_raising:
            same = _value_after_raising(node, index)
        if same is None or not may_change("take out an output of", node):
            continue
        output = node.outputs[index]
        if same.node.owning_block in (then, otherwise):
            same = node.graph.create_clone(same.node).insert_before(node).output
        output.replace_all_uses_with(same)
        node.erase_output(index)
        then.erase_output(index)
        otherwise.erase_output(index)
        changed = True
    return changed


def _common_value(then: Value, otherwise: Value) -> Value | None:
    """Return the value that both branches return, if it is one captured value, or equal immutable constants; None
    otherwise."""
    if then is otherwise:
        return then
    if then.node.kind != "prim::Constant" or otherwise.node.kind != "prim::Constant":
        return None
    if then.type != otherwise.type or not is_immutable(then.type):
        return None
    return then if constant_key(then.node) == constant_key(otherwise.node) else None


def _value_after_raising(node: Node, index: int) -> Value | None:
    """Return the value that an output has whenever the node completes, if one branch always raises and the other
    returns a captured value or an immutable constant; None otherwise."""
    for block, other in (node.blocks, reversed(node.blocks)):
        value = other.outputs[index]
        is_constant = value.node.kind == "prim::Constant" and is_immutable(value.type)
        if (is_constant or value.node.owning_block is not other) and always_raises(block):
            return value
    return None


def _propagate_loop(node: Node, through_branches: bool) -> bool:
    if remove_dead_loop(node):
        return True
    changed = _propagate(LoopView(node).body, through_branches)
    return remove_invariants(node) or changed


def remove_dead_loop(node: Node) -> bool:
    """Remove a loop that is known to run no iteration. Return whether it was removed."""
    view = LoopView(node)
    count = constant_int(view.trip_count)
    runs_never = (count is not None and count <= 0) or constant_bool(view.condition) is False
    if not runs_never or not may_change("remove", node):
        return False
    node.replace_with(*view.initial)
    return True


def remove_invariants(node: Node) -> bool:
    """Remove loop-invariant values from the carried values of a loop; returns whether there were any."""
    changed = False
    view = LoopView(node)
    for index, variable in reversed(list(enumerate(view.carried))):
        # What the body returns as it got it is the same all along.
        if variable.following is variable.parameter and may_change("take out what is carried by", node):
            variable.result.replace_all_uses_with(variable.initial)
            variable.parameter.replace_all_uses_with(variable.initial)
            remove_carried(node, index)
            changed = True
    return changed


def inline_branch(node: Node, block: Block) -> None:
    """Move the nodes of ``block`` before the ``if`` that owns it, and replace the ``if`` by the outputs of the
    block."""
    results = list(block.outputs)
    for moved in list(block.nodes):
        moved.move_before(node)
    node.replace_with(*results)
