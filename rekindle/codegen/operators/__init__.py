"""Rules of fusible operators: for each operator, its elements as expressions; for views, the affine map to their base.

A file for each family, as in :mod:`rekindle.ops`. :data:`RULES`, :data:`ROWS`, :data:`JOINS`, :data:`LOOKUPS`,
:data:`POOLS`, :data:`PRODUCTS`, :data:`COMPOSITES` and :data:`VIEWS` know them by qualified name.
"""

from rekindle.codegen.operators import (
    activation_gradients as activation_gradients,
    activations as activations,
    arithmetic as arithmetic,
    casts as casts,
    comparisons as comparisons,
    composites as composites,
    concat as concat,
    gather as gather,
    gradients as gradients,
    math_functions as math_functions,
    normalization as normalization,
    pooling as pooling,
    reductions as reductions,
    rows as rows,
    views as views,
)
from rekindle.codegen.operators.composites import COMPOSITES as COMPOSITES
from rekindle.codegen.operators.concat import JOINS as JOINS, STACKS as STACKS
from rekindle.codegen.operators.gather import LOOKUPS as LOOKUPS
from rekindle.codegen.operators.matmul import PRODUCTS as PRODUCTS
from rekindle.codegen.operators.pointwise_ops import (
    RULES as RULES,
    PointwiseOp as PointwiseOp,
    ResultDtype as ResultDtype,
)
from rekindle.codegen.operators.pooling import POOLS as POOLS
from rekindle.codegen.operators.rows import ROWS as ROWS, RowOp as RowOp
from rekindle.codegen.operators.views import VIEWS as VIEWS
