"""Passes that are broken on purpose: the results of some program show it.

Each variant leaves out one thing that its pass has to look at, or does one thing wrong. What does not show in any
answer would be a hole in the tests, and a pass without a variant is one in this table.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import BaseTorchFunctionMode

import rekindle
from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.analysis.constants import constant_int
from rekindle.ir.graph import Graph
from rekindle.ir.text.parser import parse_graph
from rekindle.passes import (
    Inlining,
    LowerGradOf,
    Parallelize,
    PassManager,
    RemoveExpands,
    SpecializeAutogradZero,
)
from rekindle.passes.canonicalization import (
    canonicalize_ops,
    canonicalize_outputs,
    lower_graph,
    lower_simple_tuples,
    normalize_ops,
)
from rekindle.passes.frozen_modules import fold_arithmetic, fold_batch_norm, foldable, image_order, remove_dropout
from rekindle.passes.gradients import specialize_autograd_zero
from rekindle.passes.loops import (
    canonicalize_modified_loops,
    loop_invariant_motion,
    loop_peeling,
    loop_unrolling,
    scalar_replacement,
)
from rekindle.passes.parallelism import batch_mm, parallelize
from rekindle.passes.simplification import (
    common_subexpression_elimination,
    constant_pooling,
    constant_propagation,
    dead_code_elimination,
    fill_elements,
    fold_constant_tensors,
    forward_rank_queries,
    hoist_from_if,
    partial_evaluation,
    peephole,
    remove_expands,
    remove_mutation,
)
from rekindle.program.modules import freezing
from rekindle.rewriting.node_rules import AliasFacts, RewriteSite
from rekindle.runtime.pipelines import CLEANUP_AFTER_EMISSION, OPTIMIZATION
from tests.passes import frozen, programs, test_lower_graph
from tests.passes.answers import disagreements, optimized_function
from tests.passes.cases import CASES
from tests.passes.frozen import answers_of
from tests.passes.test_answers import PASSES
from tests.passes.test_golden_passes import passes

Patch = pytest.MonkeyPatch
ALL = (*OPTIMIZATION, *PASSES)


@dataclass(frozen=True)
class Broken:
    """``breaks`` breaks the pass; ``differing`` returns where results differ, and is empty where none do."""

    name: str
    how: str
    breaks: Callable[[Patch], None]
    differing: Callable[[], Sequence[str]]

    def __str__(self) -> str:
        return f"{self.name}: {self.how}"


def plain(program: Callable[..., object]) -> Callable[[], Sequence[str]]:
    """The answers of ``program`` after all passes."""
    return lambda: disagreements(program, ALL)


def specialized(program: Callable[..., object]) -> Callable[[], Sequence[str]]:
    """The same where passes know dtypes and ranks."""
    return lambda: disagreements(program, ALL, specialized=True)


# ------------------------------------------------------------------------------------------------------- ways to break


def no_writers(patch: Patch) -> None:
    patch.setattr(AliasDb, "has_writers", lambda self, subject: False)


def replaced(owner: Any, name: str, new: Any) -> Callable[[Patch], None]:
    return lambda patch: patch.setattr(owner, name, new)


def _takes_the_first_element(patch: Patch) -> None:
    index_of = scalar_replacement._index_of
    patch.setattr(scalar_replacement, "_index_of", lambda *args: None if index_of(*args) is None else 0)


def _merges_random_numbers(patch: Patch) -> None:
    patch.setattr(common_subexpression_elimination, "is_nondeterministic", lambda node: False)


def _inlines_with_arguments_turned_round(patch: Patch) -> None:
    insert = Graph.insert_graph
    patch.setattr(Graph, "insert_graph", lambda self, callee, inputs: insert(self, callee, list(inputs)[::-1]))


def _unpacks_backwards(patch: Patch) -> None:
    replace = lower_simple_tuples._replace
    patch.setattr(lower_simple_tuples, "_replace", lambda node, values: replace(node, values[::-1]))


def _one_turn_too_few(patch: Patch) -> None:
    count = loop_unrolling.constant_int
    patch.setattr(loop_unrolling, "constant_int", lambda value: (count(value) or 1) - 1)


def _shares_the_other_factor(patch: Patch) -> None:
    candidates = batch_mm._Sides._candidates
    patch.setattr(batch_mm._Sides, "_candidates", lambda self, block, side: candidates(self, block, 1 - side))


def _turns_factors_round(patch: Patch) -> None:
    create = Graph.create

    def turned(self: Graph, kind: str, inputs: Any = (), **keywords: Any) -> Any:
        return create(self, kind, list(inputs)[::-1] if kind == "prim::MMTreeReduce" else inputs, **keywords)

    patch.setattr(Graph, "create", turned)


def _leaves_out_the_fitting(patch: Patch) -> None:
    insert = RewriteSite.insert_tensor

    def unfitted(at: RewriteSite, kind: str, *inputs: Any) -> Any:
        return inputs[0] if kind == "aten::expand_as" else insert(at, kind, *inputs)

    patch.setattr(RewriteSite, "insert_tensor", unfitted)


def _runs_at_least_once(patch: Patch) -> None:
    canonicalise = canonicalize_modified_loops._canonicalize

    def without_start(loop: Any) -> None:
        canonicalise(loop)
        with loop.graph.inserting_before(loop):
            loop.replace_input(1, loop.graph.insert_constant(True))

    patch.setattr(canonicalize_modified_loops, "_canonicalize", without_start)


def _leaves_operands_in_order(patch: Patch) -> None:
    patch.setitem(normalize_ops._RULES, "aten::rsub", (lambda at: at.replace_node("aten::sub", at.node.inputs),))


def _leaves_results_in_order(patch: Patch) -> None:
    patch.setattr(canonicalize_outputs, "_permute", canonicalize_outputs._permute_outputs)


def _adds_nothing_to_tensors_either(patch: Patch) -> None:
    def rule(at: RewriteSite) -> bool:
        return constant_int(at.node.inputs[1]) == 0 and at.replace_uses(at.node.inputs[0])

    patch.setitem(peephole.PEEPHOLE_RULES, "aten::add", (rule,))


def _takes_conditions_for_their_opposites(node: Any) -> bool:
    changed = False
    for use in list(node.input.uses):
        for block, value in zip(node.blocks, (False, True), strict=True):
            if block.contains(use.user):
                constant = block.prepend(node.graph.create_constant(value))
                use.user.replace_input(use.offset, constant.output)
                changed = True
    return changed


def _partial_evaluation_takes_opposites(patch: Patch) -> None:
    patch.setattr(constant_propagation, "propagate_condition", lambda node: False)
    patch.setattr(partial_evaluation, "propagate_condition", _takes_conditions_for_their_opposites)


def _takes_zeros_for_one(patch: Patch) -> None:
    def key(node: Any) -> object:
        return constant_pooling.value_key(node)

    patch.setattr(constant_pooling, "value_key", lambda node: str(node["value"]).lstrip("-"), raising=False)
    patch.setattr(constant_pooling, "constant_key", key)


def _asks_whether_all_are_missing(patch: Patch) -> None:
    create = Graph.create

    def other(self: Graph, kind: str, *arguments: Any, **keywords: Any) -> Any:
        other = "prim::AutogradAllZero" if kind == "prim::AutogradAnyNonZero" else kind
        return create(self, other, *arguments, **keywords)

    patch.setattr(Graph, "create", other)


def _takes_unknown_gradients_for_there(patch: Patch) -> None:
    known = specialize_autograd_zero._Specialization.known
    patch.setattr(
        specialize_autograd_zero._Specialization,
        "known",
        lambda self, values: [each is not False for each in known(self, values)],
    )


def _wires_attributes_crosswise(patch: Patch) -> None:
    reads_of = lower_graph._reads_of

    def crosswise(module: Any) -> Any:
        reads = reads_of(module)
        return reads and dict(zip(reads, reversed(list(reads.values())), strict=True))

    patch.setattr(lower_graph, "_reads_of", crosswise)


# ---------------------------------------------------------------------------------- graphs that no program brings about


def _differing(graph: Graph, inputs: Sequence[object], expected: object, what: str) -> list[str]:
    try:
        torch.testing.assert_close(test_lower_graph.run(graph, *inputs), expected)
    except (AssertionError, TypeError, RuntimeError) as why:
        return [f"{what}: {why}"]
    return []


def _gradients_after(each: Any, title: str, expected: Callable[..., object]) -> Sequence[str]:
    """Answers of a case of a pass on gradients, each of which may be missing."""
    x = torch.linspace(-1, 1, 4)
    found: list[str] = []
    for inputs in ((None, x, x), (None, None, x)):
        graph = parse_graph(CASES[each.name][title].lstrip())
        PassManager().run(graph, [each, LowerGradOf()])
        found += _differing(graph, inputs, expected(*inputs), f"{title} {inputs}")
    return found


def _sums_of_gradients() -> Sequence[str]:
    def expected(a: None, b: Tensor | None, x: Tensor) -> object:
        sums = -x + torch.relu(x)
        return b, None, sums if b is None else sums + b

    return _gradients_after(SpecializeAutogradZero(), next(iter(CASES["specialize_autograd_zero"])), expected)


def _lowered_gradients() -> Sequence[str]:
    x, y = torch.linspace(-1, 1, 4), torch.linspace(1, 2, 4)
    title = next(iter(CASES["lower_grad_of"]))
    found: list[str] = []
    for d, e in ((x, y), (None, None)):
        graph = parse_graph(CASES["lower_grad_of"][title].lstrip())
        PassManager().run(graph, [LowerGradOf()])
        expected = (None, None) if d is None or e is None else (d * (x > 0) * y, e * x)
        found += _differing(graph, (d, e, x, y), expected, title)
    return found


class _TwoOffsets(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
        self.second = torch.nn.Parameter(torch.tensor([3.0, 5.0]))

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.first) * self.second


def _lowered_module() -> Sequence[str]:
    compiled, graph = test_lower_graph.inlined(_TwoOffsets())
    paths = lower_graph.lower_graph(graph)
    assert paths is not None
    x = torch.tensor([0.5, -1.0])
    attributes = [operator.attrgetter(path)(compiled) for path in paths]
    return _differing(graph, (x, *attributes), compiled(x), "lowered")


def _two_tensors() -> Sequence[str]:
    function = optimized_function(rekindle.script(programs.gives_two_tensors).graph, ALL)
    first, second = function(torch.ones(2), 1)
    return ["both are one tensor"] if first.data_ptr() == second.data_ptr() else []


def _written_beside() -> Sequence[str]:
    """One part writes to what the other reads, and is after it in the text."""
    text = """graph(%x : Float(512, 512)):
  %one : int = prim::Constant[value=1]()
  %y : Float(512, 512) = aten::add(%x, %one, %one)
  %a : Float(512, 512) = aten::mm(%y, %y)
  %b : Float(512, 512) = aten::mm(%a, %y)
  %z : Float(512, 512) = aten::add_(%y, %one, %one)
  %c : Float(512, 512) = aten::mm(%z, %x)
  return (%b, %c)
"""
    graph = parse_graph(text)
    PassManager().run(graph, [Parallelize()])
    x = torch.eye(512)
    y = x + 1
    with BaseTorchFunctionMode():  # under which what is forked runs at once, on this thread
        return _differing(graph, (x,), (y @ y @ y, (y + 1) @ x), "written beside")


def _expanded_explicitly() -> Sequence[str]:
    text = """graph(%x : Tensor, %sizes : int[], %implicit : bool):
  %false : bool = prim::Constant[value=0]()
  %e : Tensor = aten::expand(%x, %sizes, %false)
  %s : Tensor = aten::relu(%e)
  return (%s)
"""
    graph = parse_graph(text)
    PassManager().run(graph, [RemoveExpands()])
    x = torch.linspace(-1, 1, 3)
    return _differing(graph, (x, [2, 3], False), x.relu().expand(2, 3), "expanded")


# --------------------------------------------------------------------------------------------------------- the variants

_MOTION = loop_invariant_motion._Motion

BROKEN = (
    Broken(
        "common_subexpression_elimination", "skips the alias check", no_writers, plain(programs.reads_between_writes)
    ),
    Broken(
        "common_subexpression_elimination", "merges random numbers", _merges_random_numbers, plain(programs.draws_twice)
    ),
    Broken(
        "common_subexpression_elimination",
        "lets a caller get one tensor twice",
        replaced(common_subexpression_elimination._Elimination, "_may_be_one", lambda self, known, node: True),
        _two_tensors,
    ),
    Broken(
        "dead_code_elimination",
        "ignores writes",
        replaced(dead_code_elimination, "may_write", lambda node: False),
        plain(programs.writes_to_a_view),
    ),
    Broken(
        "dead_code_elimination",
        "ignores side effects",
        replaced(dead_code_elimination, "has_side_effects", lambda node: False),
        plain(programs.refuses_some),
    ),
    Broken("constant_pooling", "takes zeros for one", _takes_zeros_for_one, plain(programs.tells_zeros_apart)),
    Broken(
        "constant_propagation",
        "looks at one branch only",
        replaced(constant_propagation, "_common_value", lambda then, otherwise: _if_constant(then)),
        plain(programs.chooses_constants),
    ),
    Broken(
        "constant_propagation",
        "takes every branch for one that raises",
        replaced(constant_propagation, "always_raises", lambda block: True),
        plain(programs.chooses_what_there_is),
    ),
    Broken(
        "constant_propagation",
        "removes loops that run once",
        replaced(constant_propagation, "constant_int", lambda value: 0),
        plain(programs.ends_early),
    ),
    Broken(
        "constant_propagation",
        "takes conditions for their opposites",
        replaced(constant_propagation, "propagate_condition", _takes_conditions_for_their_opposites),
        plain(programs.asks_again),
    ),
    Broken(
        "partial_evaluation",
        "takes conditions for their opposites",
        _partial_evaluation_takes_opposites,
        plain(programs.asks_again),
    ),
    Broken("inlining", "swaps arguments", _inlines_with_arguments_turned_round, plain(programs.calls_another)),
    Broken("lower_simple_tuples", "swaps elements", _unpacks_backwards, plain(programs.takes_tuples_apart)),
    Broken(
        "canonicalize_ops",
        "takes chunks later than the program",
        replaced(canonicalize_ops, "_directly_follows", lambda node, first: True),
        plain(programs.takes_chunks_of_what_changes),
    ),
    Broken(
        "peephole", "adds no zero to tensors", _adds_nothing_to_tensors_either, plain(programs.copies_by_adding_zero)
    ),
    Broken(
        "peephole",
        "skips the alias check",
        replaced(AliasFacts, "is_unwritten", lambda self, *values: True),
        plain(programs.grows_in_a_loop),
    ),
    Broken(
        "hoist_from_if",
        "compares kinds only",
        replaced(hoist_from_if, "_are_alike", lambda mine, theirs: mine.kind == theirs.kind),
        plain(programs.branches_differ),
    ),
    Broken(
        "loop_invariant_motion",
        "moves what may raise",
        replaced(_MOTION, "_may_move", lambda self, node: not node.blocks),
        plain(programs.never_comes_to_it),
    ),
    Broken(
        "loop_invariant_motion",
        "skips the alias check",
        replaced(_MOTION, "_is_written", lambda self, node, index: False),
        plain(programs.grows_in_a_loop),
    ),
    Broken(
        "loop_peeling",
        "runs the first iteration whatever the condition says",
        replaced(loop_peeling, "constant_bool", lambda value: True),
        plain(programs.number_until_the_loop_runs),
    ),
    Broken("loop_unrolling", "one turn too few", _one_turn_too_few, plain(programs.ends_early)),
    Broken(
        "scalar_replacement",
        "takes every element for the first",
        _takes_the_first_element,
        plain(programs.states_in_a_list),
    ),
    Broken(
        "remove_mutation",
        "skips the alias check",
        replaced(remove_mutation._TensorMutation, "_is_unknown", lambda self, written, node: True),
        plain(programs.writes_in_place),
    ),
    Broken(
        "remove_mutation",
        "forgets that the dtype stays",
        replaced(remove_mutation, "functional_kind", lambda node, sizes_stay: _without_underscore(node)),
        specialized(programs.halves_integers),
    ),
    Broken(
        "remove_mutation",
        "takes every index of a list for the first",
        replaced(remove_mutation, "_index_in", lambda node, contents: 0),
        plain(programs.builds_lists),
    ),
    Broken("batch_mm", "skips the alias check", no_writers, plain(programs.writes_to_a_factor)),
    Broken("batch_mm", "shares the other factor", _shares_the_other_factor, plain(programs.multiplies_matrices)),
    Broken("batch_mm", "turns factors round", _turns_factors_round, plain(programs.multiplies_matrices)),
    Broken("decompose_ops", "lets a bias be larger", _leaves_out_the_fitting, specialized(programs.adds_a_larger_bias)),
    Broken(
        "parallelize",
        "lets parts write",
        replaced(parallelize._Parallelization, "_may_run_elsewhere", lambda self, node, join: node.in_block),
        _written_beside,
    ),
    Broken("canonicalize_modified_loops", "runs at least once", _runs_at_least_once, plain(programs.breaks_out)),
    Broken(
        "normalize_ops", "leaves operands in order", _leaves_operands_in_order, plain(programs.subtracts_from_the_right)
    ),
    Broken(
        "canonicalize_outputs",
        "leaves results in order",
        _leaves_results_in_order,
        plain(programs.returns_in_another_order),
    ),
    Broken("lower_grad_of", "turns the question round", _asks_whether_all_are_missing, _lowered_gradients),
    Broken(
        "specialize_autograd_zero", "takes too much for there", _takes_unknown_gradients_for_there, _sums_of_gradients
    ),
    Broken("lower_graph", "wires attributes crosswise", _wires_attributes_crosswise, _lowered_module),
    Broken(
        "remove_expands",
        "removes explicit ones",
        replaced(remove_expands, "_is_for_broadcasting", lambda node: True),
        _expanded_explicitly,
    ),
    Broken(
        "freezing",
        "forgets writes",
        replaced(freezing, "written_attributes", lambda graphs: set()),
        answers_of(frozen.Counts, (2,)),
    ),
    Broken(
        "fold_constant_tensors",
        "forgets writes",
        replaced(fold_constant_tensors._Work, "_stays", lambda self, value: True),
        answers_of(frozen.Accumulates, (2,)),
    ),
    Broken(
        "remove_dropout",
        "removes that of training",
        replaced(remove_dropout, "constant_bool", lambda value: False),
        answers_of(frozen.DropsAlways, (8,)),
    ),
    Broken(
        "forward_rank_queries",
        "ignores changes in place",
        replaced(forward_rank_queries, "ranks_are_fixed", lambda graph: True),
        answers_of(frozen.Unsqueezes, (3,)),
    ),
    Broken(
        "fold_batch_norm",
        "forgets the bias",
        replaced(foldable.Foldable, "shift", lambda self: torch.zeros(self.channels, dtype=torch.float64)),
        answers_of(frozen.Normalizes, (5, 3)),
    ),
    Broken(
        "fold_batch_norm",
        "takes the last dimension for the channels",
        replaced(fold_batch_norm.Ranks, "exactly", lambda self, value: 2),
        answers_of(frozen.Normalizes, (5, 4, 3)),
    ),
    Broken(
        "fold_arithmetic",
        "forgets the factor of a sum",
        replaced(fold_arithmetic, "_alpha", lambda node: 1),
        answers_of(frozen.Adds, (5, 3)),
    ),
    Broken(
        "fill_elements",
        "forgets that numbers are converted",
        replaced(fill_elements, "_copies_number", lambda node: node.inputs[1].node.kind == "aten::tensor"),
        plain(programs.writes_what_is_rounded),
    ),
    Broken(
        "pack_weights",
        "forgets the order in memory",
        replaced(image_order, "_ignores_order", lambda use: True),
        answers_of(frozen.Views, (2, 3, 80, 80), freeze=rekindle.optimize_for_inference),
    ),
)


def _without_underscore(node: Any) -> str | None:
    return node.kind[:-1] if node.kind.endswith("_") and not node.kind.endswith("__") else None


def _if_constant(value: Any) -> Any:
    return value if value.node.kind == "prim::Constant" else None


WITHOUT = {
    "lay_out_factors": "changes no more than the strides of constants, which tests of its own check",
    "select_attention": "changes no more than the kind of a node, which its golden text holds",
    "annotate_warns": "changes no answer: its numbers keep warnings apart, which its golden text holds",
}
"""Passes that run on programs and have no variant here, and why."""


@pytest.mark.parametrize("broken", BROKEN, ids=str)
def test_a_broken_pass_is_caught(broken: Broken, monkeypatch: pytest.MonkeyPatch) -> None:
    assert broken.differing() == []
    with monkeypatch.context() as patch:
        broken.breaks(patch)
        found = broken.differing()
    assert found, "no result differs"


def test_every_pass_has_a_broken_variant() -> None:
    """Those that run on programs, and those that this folder's tests of results run."""
    passes_here = (*CLEANUP_AFTER_EMISSION, *OPTIMIZATION, *PASSES, Inlining())
    wanted = {each.name for each in passes_here} - {"user_passes"}  # which holds the passes of users
    have = {broken.name for broken in BROKEN}
    assert have <= set(passes())
    assert wanted - have == set(WITHOUT)
