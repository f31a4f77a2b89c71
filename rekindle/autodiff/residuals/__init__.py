"""Residuals: which forward values the backward reads, and how they get there.

``selection`` minimizes what is saved by recomputing cheap operators, with the cut that ``min_cut`` finds;
``stashing`` returns residuals from branches and loops; ``loop_checkpointing`` saves a part of a loop's iterations,
as ``checkpoint_schedule`` decides at run time; ``size_specialization`` removes residuals that follow from the
inputs' sizes.
"""
