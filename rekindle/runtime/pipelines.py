"""Which passes run, in which order."""

from __future__ import annotations

from rekindle.passes import (
    CommonSubexpressionElimination,
    ConstantPooling,
    ConstantPropagation,
    DeadCodeElimination,
    Inlining,
    LoopInvariantMotion,
    LowerSimpleTuples,
    Pass,
    Peephole,
    TypeRefinement,
)

OPTIMIZATION: tuple[Pass, ...] = (
    Inlining(),
    LowerSimpleTuples(),
    ConstantPropagation(),
    Peephole(),
    DeadCodeElimination(),
    ConstantPooling(),
    CommonSubexpressionElimination(),
    LoopInvariantMotion(),
)
"""What runs on the graph of a function before a plan is made of it. It assumes nothing of the arguments."""

SPECIALIZATION: tuple[Pass, ...] = (
    Peephole(),
    ConstantPropagation(),
    LowerSimpleTuples(),
    TypeRefinement(only_if_asked=True, quickly=True),
    Peephole(),
    ConstantPropagation(),
    DeadCodeElimination(),
    ConstantPooling(),
    CommonSubexpressionElimination(),
)
"""What runs after it, where it has been written into the graph what is known of the arguments."""
