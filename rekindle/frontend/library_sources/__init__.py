"""The texts of Python's library that programs may call: each function is compiled for what its calls give it."""

from typing import Final

from rekindle.frontend.library_sources.combinations import made_of_several
from rekindle.frontend.library_sources.containers import COLLECTIONS, CONTAINERS, COUNTERS, SETS
from rekindle.frontend.library_sources.indexing import INDEXING
from rekindle.frontend.library_sources.iteration import FUNCTOOLS, ITERTOOLS, SORTING
from rekindle.frontend.library_sources.numbers import NUMBERS, PARSING
from rekindle.frontend.library_sources.operators import OPERATORS, TENSORS, TEXT_METHODS
from rekindle.frontend.library_sources.ordered_lists import BISECT, HEAPQ

TEXTS: Final = (
    *(CONTAINERS, SETS, COLLECTIONS, COUNTERS, SORTING, FUNCTOOLS, HEAPQ, BISECT, ITERTOOLS),
    *(NUMBERS, PARSING, OPERATORS, TENSORS, INDEXING, TEXT_METHODS),
)

__all__ = ["TEXTS", "made_of_several"]
