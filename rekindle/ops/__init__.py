"""Operators: schema, effects and implementation of every kind of node.

Importing this package makes them known to :data:`rekindle.ir.operators.registry.REGISTRY`.
"""

from rekindle.ir.operators.registry import REGISTRY
from rekindle.ops.archive import texts as texts, values as values
from rekindle.ops.python import (
    asynchrony as asynchrony,
    conversions as conversions,
    dicts as dicts,
    exceptions as exceptions,
    lists as lists,
    mathematics as mathematics,
    objects as objects,
    printing as printing,
    python_calls as python_calls,
    python_library as python_library,
    scalars as scalars,
    strings as strings,
    tensor_classes as tensor_classes,
    tuples as tuples,
)
from rekindle.ops.registration.declare import declared_operators
from rekindle.ops.registration.dispatcher import dispatcher_operators
from rekindle.ops.releases import v2_12 as v2_12
from rekindle.ops.tensor import (
    autograd as autograd,
    cuda as cuda,
    devices as devices,
    neural as neural,
    pass_created_ops as pass_created_ops,
    tensors as tensors,
)

REGISTRY.add_provider(dispatcher_operators)
REGISTRY.add_provider(declared_operators)
