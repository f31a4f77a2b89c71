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
