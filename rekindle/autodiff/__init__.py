"""Differentiation of graphs: a forward that saves residuals, and the backward that uses them."""

from rekindle.autodiff import (
    backward_operators as backward_operators,
    differentiable_graph as differentiable_graph,
    operators as operators,
)
from rekindle.autodiff.create_differentiable_graphs import CreateDifferentiableGraphs as CreateDifferentiableGraphs
from rekindle.autodiff.gradient import Gradient as Gradient, differentiate as differentiate
from rekindle.autodiff.residuals import checkpoint_schedule as checkpoint_schedule
