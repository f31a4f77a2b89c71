"""What a node's kind means: schema, effects and implementation of every operator.

Importing this package makes them known to :data:`rekindle.ir.registry.REGISTRY`.
"""

from rekindle.ir.registry import REGISTRY
from rekindle.ops import (
    archive_texts as archive_texts,
    archive_values as archive_values,
    asynchrony as asynchrony,
    autograd as autograd,
    backports as backports,
    conversions as conversions,
    devices as devices,
    dicts as dicts,
    exceptions as exceptions,
    lists as lists,
    mathematics as mathematics,
    neural as neural,
    objects as objects,
    onednn_ops as onednn_ops,
    pass_created_ops as pass_created_ops,
    printing as printing,
    python_calls as python_calls,
    python_library as python_library,
    scalars as scalars,
    strings as strings,
    tensors as tensors,
    tuples as tuples,
)
from rekindle.ops.declare import declared_operators
from rekindle.ops.dispatcher import dispatcher_operators

REGISTRY.add_provider(dispatcher_operators)
REGISTRY.add_provider(declared_operators)
