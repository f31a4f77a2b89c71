"""Pipelines: the passes that run, in order.

A function goes through :data:`CLEANUP_AFTER_EMISSION` when it is compiled. The first call of a function with the
strategy ``native``, the default, runs

1. :class:`~rekindle.passes.PartialEvaluation`, for what is assumed of calls like it;
2. :data:`OPTIMIZATION`;
3. :data:`SPECIALIZATION`, if the graph queries properties of its arguments;
4. :func:`differentiation` and :data:`RECORDED_FUSION`, if gradients may be recorded, or else :data:`FUSION`.

``simple`` ends after 3. ``profiling`` runs :data:`GUARD_ELIMINATION` and :data:`PROFILE_SPECIALIZATION` after a
profiled call. The others are those of freezing and of transforms. ``autodiff``, which is below this package, has
pipelines of its own, for formulas and for the graphs that it splits.
"""

from __future__ import annotations

from rekindle.autodiff import CreateDifferentiableGraphs
from rekindle.codegen.differentiation_profit import DifferentiationProfit
from rekindle.codegen.fusion import FuseGraph
from rekindle.codegen.native import FormNativeRegions
from rekindle.passes import (
    AnnotateWarns,
    BatchMM,
    CanonicalizeModifiedLoops,
    CanonicalizeOps,
    CanonicalizeOutputs,
    CommonSubexpressionElimination,
    ConstantPooling,
    ConstantPropagation,
    DeadCodeElimination,
    EliminateGuards,
    FillElements,
    FoldArithmetic,
    FoldBatchNorm,
    FoldConstantTensors,
    ForwardRankQueries,
    Inlining,
    LayOutFactors,
    LoopInvariantMotion,
    LoopPeeling,
    LoopUnrolling,
    LowerSimpleTuples,
    NormalizeOps,
    OverwriteOperands,
    PackWeights,
    Pass,
    Peephole,
    RemoveDropout,
    RemoveMutation,
    ScalarReplacement,
    SelectAttention,
    SimplifyCarriedValues,
    TypeRefinement,
)
from rekindle.runtime.user_passes import UserPasses

CLEANUP_AFTER_EMISSION: tuple[Pass, ...] = (
    CanonicalizeModifiedLoops(),
    NormalizeOps(),
    LowerSimpleTuples(),
    ConstantPropagation(through_branches=False),
    ConstantPooling(latest_first=True),
    CanonicalizeOutputs(),
    AnnotateWarns(),
)
"""Runs on the graph of a function right after SSA conversion."""

CLEANUP_OF_TRIED: tuple[Pass, ...] = (
    CanonicalizeModifiedLoops(),
    NormalizeOps(),
    ConstantPooling(latest_first=True),
    AnnotateWarns(),
)
"""Runs on the body of a ``try`` instead: unused operators that may raise are kept."""

NORMAL_FORM: tuple[Pass, ...] = (
    Inlining(),
    LowerSimpleTuples(),
    ConstantPropagation(),
    Peephole(),
    DeadCodeElimination(),
)
"""Passes to the normal form: programs that compute the same in the same way get equal graphs. Rewrite rules match in
this form."""

REQUIRED: tuple[Pass, ...] = (*NORMAL_FORM, UserPasses("start"))
"""Passes that run on every graph before all others. They assume nothing about the arguments."""

DERIVATIVE_PRESERVING: tuple[Pass, ...] = (
    ConstantPooling(),
    CommonSubexpressionElimination(),
    LoopInvariantMotion(),
    LoopPeeling(),
    LoopUnrolling(),
    ConstantPropagation(),
    Peephole(),
    RemoveMutation(),
    ScalarReplacement(),
    CommonSubexpressionElimination(),
    CanonicalizeOps(),
    BatchMM(),
    DeadCodeElimination(),
)
"""Optimizations that only create operators with derivatives."""

OPTIMIZATION: tuple[Pass, ...] = (
    *REQUIRED,
    *DERIVATIVE_PRESERVING,
    ConstantPropagation(),
    Peephole(),
    ConstantPropagation(),
    DeadCodeElimination(),
    UserPasses("end"),
)
"""Passes on the graph of a function before it is compiled to a plan."""

SPECIALIZATION: tuple[Pass, ...] = (
    Peephole(),
    ConstantPropagation(),
    LowerSimpleTuples(),
    TypeRefinement(only_if_queried=True, any_modes=True),
    Peephole(),
    ConstantPropagation(),
    DeadCodeElimination(),
    ConstantPooling(),
    RemoveMutation(),
    CommonSubexpressionElimination(),
)
"""Passes after :data:`OPTIMIZATION`, once the known facts about the arguments are written into the graph."""

# --------------------------------------------------------------------------------------------------------- strategies


def differentiation(profit: DifferentiationProfit | None = None) -> tuple[Pass, ...]:
    """Return the passes that run if gradients are recorded: after all others but :data:`RECORDED_FUSION`. ``profit``
    decides from the arguments of calls which regions are worth differentiating."""
    decide = DifferentiationProfit() if profit is None else profit
    return (
        SimplifyCarriedValues(),
        LowerSimpleTuples(),
        CreateDifferentiableGraphs(
            threshold=3,
            counts=decide.counts,
            pays=decide,
            excludes=decide.excludes,
            splits=decide.products.belongs_in_graph,
            loops=True,
        ),
    )


FUSION: tuple[Pass, ...] = (FuseGraph(alone=True), FillElements(), FormNativeRegions(), DeadCodeElimination())
"""Runs last of all in ``native``, where no gradients are recorded."""

RECORDED_FUSION: tuple[Pass, ...] = (
    FuseGraph(),
    FillElements(),
    OverwriteOperands(),
    FormNativeRegions(),
    DeadCodeElimination(),
)
"""Runs in place of :data:`FUSION` where gradients may be recorded, outside the graphs of :func:`differentiation`:
single operators remain PyTorch's, with PyTorch's derivatives."""

GUARD_ELIMINATION: tuple[Pass, ...] = (EliminateGuards(keep_only_queried=True),)
"""Runs after guards were inserted: keeps those that pay."""

PROFILE_SPECIALIZATION: tuple[Pass, ...] = (
    TypeRefinement(),
    Peephole(),
    ConstantPropagation(),
    LowerSimpleTuples(),
    TypeRefinement(),
    Peephole(),
    ConstantPropagation(),
    DeadCodeElimination(),
    ConstantPooling(),
    CommonSubexpressionElimination(),
)
"""Runs after guards became bailouts, and uses the types that they guarantee."""

# ----------------------------------------------------------------------------------------------------------- freezing

FREEZING_SIMPLIFICATION: tuple[Pass, ...] = (
    LowerSimpleTuples(),
    ConstantPropagation(),
    FoldConstantTensors(),
    Peephole(),
    RemoveDropout(),
    DeadCodeElimination(),
)
"""Runs after attributes became constants."""

FREEZING_NUMERICS: tuple[Pass, ...] = (
    ForwardRankQueries(),
    FoldBatchNorm(is_frozen=True),
    FoldArithmetic(is_frozen=True),
    DeadCodeElimination(),
)
"""Changes results by rounding alone; runs until nothing changes."""

FREEZING_CLEANUP: tuple[Pass, ...] = (ConstantPooling(), CommonSubexpressionElimination(), DeadCodeElimination())
"""Runs last in freezing."""

MACHINE_SPECIFIC: tuple[Pass, ...] = (
    RemoveMutation(),
    PackWeights(),
    SelectAttention(),
    LayOutFactors(),
    DeadCodeElimination(),
    ConstantPooling(),
)
"""Makes a frozen module faster on the machine at hand, on which alone it runs then."""

# --------------------------------------------------------------------------------------------------------- transforms

DERIVATIVE_CLEANUP: tuple[Pass, ...] = (
    LowerSimpleTuples(),
    ConstantPropagation(),
    Peephole(),
    CommonSubexpressionElimination(),
    ConstantPooling(),
    DeadCodeElimination(),
)
"""Runs on the graphs that ``grad``, ``vjp`` and ``jvp`` make."""

VMAP_PREPARATION: tuple[Pass, ...] = (
    LowerSimpleTuples(),
    ConstantPropagation(),
    Peephole(),
    RemoveMutation(),
    DeadCodeElimination(),
)
"""Runs before operators are replaced by their batching rules."""

VMAP_CLEANUP: tuple[Pass, ...] = (
    LowerSimpleTuples(),
    Peephole(),
    ConstantPropagation(),
    CommonSubexpressionElimination(),
    DeadCodeElimination(),
    ConstantPooling(),
)
"""Runs after operators were replaced by their batching rules."""

BATCHING_RULE_CLEANUP: tuple[Pass, ...] = (
    Inlining(),
    LowerSimpleTuples(),
    ConstantPropagation(),
    DeadCodeElimination(),
)
"""Runs on each batching rule, once."""
