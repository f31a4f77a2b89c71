"""Operator traits: facts about an operator beside its schema."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Trait(Enum):
    """A property of an operator. The values are the words in :mod:`rekindle.ops.registration.trait_table`."""

    POINTWISE = "pointwise"
    """An element of the result is computed from the elements at its place; tensor operands are broadcast."""
    COMMUTATIVE = "commutative"
    """The first two operands may change places."""
    VIEW = "view"
    """The result is a new tensor that shares the memory of the first operand. ``reshape`` and ``flatten`` count, which
    copy where a view is impossible."""
    VIEW_OR_COPY = "view_or_copy"
    """The result is the first operand, a view of it or a copy, whichever is possible."""
    MOVES_DATA = "moves_data"
    """The operator views, copies or converts, and computes nothing: autocast leaves it alone."""
    FRESH = "fresh"
    """A composite of other operators whose results never share memory with its operands."""
    ALIASES_OPERANDS = "aliases_operands"
    """An operator other than a composite whose results share memory with its operands without an annotation."""
    RESHAPES = "reshapes"
    """The operator changes the sizes of the tensor that it writes to."""

    SAME_RANK = "same_rank"
    """The result has as many dimensions as the first operand, whatever the others are."""
    SAME_SIZES = "same_sizes"
    """The result has the sizes of the first operand, whatever the others are."""
    SAME_DTYPE = "same_dtype"
    """The result has the dtype of the first operand, whatever it is."""
    ONE_DTYPE = "one_dtype"
    """Operands that may have gradients are of the dtype of the result."""
    CONVERTS = "converts"
    """The operator converts to another dtype, and its gradient converts back."""
    MAKES_COMPLEX = "makes_complex"
    """Results are complex though the operands may be real."""
    MAKES_REAL = "makes_real"
    """Results are real though the operands may be complex."""

    PROMOTING_GRADIENT = "promoting_gradient"
    """The gradient formula is arithmetic that promotes its operands."""
    RECOMPUTABLE = "recomputable"
    """It costs little to run the operator again within a kernel for the backward pass."""
    DATA_DEPENDENT = "data_dependent"
    """The results are numbers that were in a tensor, or have sizes that depend on such."""
    LINEAR_COST = "linear_cost"
    """The operator reads each element a few times only."""
    MATRIX_PRODUCT = "matrix_product"
    """A product of two matrices: the cost is the product of three sizes."""
    LIBRARY = "library"
    """BLAS or oneDNN runs the operator, and no kernel is generated for it."""
    ANY_LAYOUT = "any_layout"
    """The values of the result do not depend on the order of the operands in memory, and its memory is new, unless the
    operator writes to its first operand."""

    ABOUT_AS_LARGE = "about_as_large"
    """Results are not much larger than operands, of whatever layout these are. Only operators that cannot run on meta
    tensors, or not on those of special layouts, have it: of the others a meta kernel determines the sizes."""

    ADDRESSES_STORAGE = "addresses_storage"
    """The result depends on where in its storage an operand is."""

    CARRIES_ELEMENTS = "carries_elements"
    """The operator moves elements of containers, and does not look at them, though it may at keys."""
    INSPECTS_ELEMENTS = "inspects_elements"
    """The operator looks at the elements of containers, of whatever type they are."""

    # Property queries: the result is not a tensor, and follows from metadata of the operands, never from elements.
    READS_DTYPE = "reads_dtype"
    READS_RANK = "reads_rank"
    READS_SIZES = "reads_sizes"
    """The lengths of dimensions, and so their number too; for lists, the number of elements."""
    READS_STRIDES = "reads_strides"
    """Strides, and with them contiguity; the offset in the storage."""
    READS_DEVICE = "reads_device"
    READS_LAYOUT = "reads_layout"
    """How elements are represented: strided, sparse, nested, named; conjugated or negated when they are read."""
    READS_REQUIRES_GRAD = "reads_requires_grad"
    READS_IDENTITY = "reads_identity"
    """Which object an operand is; most of all, whether it is None."""
    TOTAL = "total"
    """The operator never raises, whatever its operands are."""


PROPERTY_QUERIES: Final = frozenset(trait for trait in Trait if trait.value.startswith("reads_"))
"""The traits of property queries, one for each property."""
