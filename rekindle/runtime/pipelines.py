"""Which passes run, in which order."""

from __future__ import annotations

from rekindle.passes import (
    BatchMM,
    CanonicalizeOps,
    CommonSubexpressionElimination,
    ConstantPooling,
    ConstantPropagation,
    DeadCodeElimination,
    Inlining,
    LoopInvariantMotion,
    LoopPeeling,
    LoopUnrolling,
    LowerSimpleTuples,
    Pass,
    Peephole,
    RemoveMutation,
    TypeRefinement,
)
from rekindle.runtime.user_passes import UserPasses

NORMAL_FORM: tuple[Pass, ...] = (
    Inlining(),
    LowerSimpleTuples(),
    ConstantPropagation(),
    Peephole(),
    DeadCodeElimination(),
)
"""What makes graphs of programs that compute the same in the same way alike: rewrite rules look for their patterns in
this form."""

REQUIRED: tuple[Pass, ...] = (*NORMAL_FORM, UserPasses("start"))
"""What every graph goes through before anything else. It assumes nothing of the arguments."""

DERIVATIVE_PRESERVING: tuple[Pass, ...] = (
    ConstantPooling(),
    CommonSubexpressionElimination(),
    LoopInvariantMotion(),
    LoopPeeling(),
    LoopUnrolling(),
    ConstantPropagation(),
    Peephole(),
    RemoveMutation(),
    CommonSubexpressionElimination(),
    CanonicalizeOps(),
    BatchMM(),
    DeadCodeElimination(),
)
"""What makes a graph faster, and leaves it one of operators that all have derivatives."""

OPTIMIZATION: tuple[Pass, ...] = (*REQUIRED, *DERIVATIVE_PRESERVING, UserPasses("end"))
"""What runs on the graph of a function before a plan is made of it."""

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
"""What runs after it, where it has been written into the graph what is known of the arguments."""
