"""Transforms of programs: editing, rewriting, batching and differentiation."""

from rekindle.transforms import editing as editing, rewriting as rewriting
