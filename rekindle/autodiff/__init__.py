"""Graph to graphs: a forward that keeps what a backward needs, and the backward."""

from rekindle.autodiff import operators as operators
from rekindle.autodiff.gradient import Gradient as Gradient, differentiate as differentiate
