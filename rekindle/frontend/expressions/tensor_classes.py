"""Tests for subclasses of Tensor: ``isinstance(x, nn.Parameter)``, ``type(x) is nn.Parameter``.

Their objects have the type Tensor in programs, so that the test is made at run time.
"""

from __future__ import annotations

import torch

from rekindle.errors import CompileError, SourceRange, UnsupportedError
from rekindle.frontend.emitter import Emitter
from rekindle.frontend.scopes.refinement import CondValue, RefinementSet
from rekindle.ir.graph import Value
from rekindle.ir.types import ANY, TENSOR, ClassType, TensorType, union_members
from rekindle.syntax.views import Expr, Select, TupleLiteral, Var


def tensor_subclass(emitter: Emitter, classes: Expr) -> type | None:
    """Return the subclass of Tensor that the second argument of isinstance names; None if it names no such class, or a
    tuple of classes.

    Raises:
        UnsupportedError: it names such a class in a tuple without Tensor itself.
    """
    if classes.tree.kind == TupleLiteral.KIND:
        named = [_class_of(emitter, item) for item in TupleLiteral(classes.tree).items]
        if any(map(_is_subclass, named)) and torch.Tensor not in named:
            raise UnsupportedError(
                "a subclass of Tensor cannot be one of several classes here",
                classes.range,
                hint="ask for each class: isinstance(x, A) or isinstance(x, B)",
            )
        return None
    found = _class_of(emitter, classes)
    return found if _is_subclass(found) else None


def emit_test(
    emitter: Emitter, value: Value, cls: type, name: str | None, range: SourceRange, exact: bool
) -> CondValue:
    """Emit a test whether ``value`` is an instance of ``cls``, or with ``exact`` of exactly that class. The result is
    known at compile time if ``value`` cannot be a Tensor, or if ``cls`` is ``nn.Parameter`` and ``value`` a parameter
    of a module. ``name`` is the variable that it was read from, whose type the test refines; None if there is none."""
    if not any(isinstance(part, TensorType) or part == ANY for part in union_members(value.type)):
        return CondValue(emitter.graph.insert_constant(False, range=range), RefinementSet(), False)
    if cls is torch.nn.Parameter and isinstance(value.type, TensorType) and _kind_of_slot(value) == "parameter":
        return CondValue(emitter.graph.insert_constant(True, range=range), RefinementSet(), True)
    operator = "python::is_exactly" if exact else "python::is_instance"
    test = emitter.insert(operator, range, value, f"{cls.__module__}.{cls.__qualname__}")
    return CondValue(test, RefinementSet({} if name is None else {name: TENSOR}, {}))


def _class_of(emitter: Emitter, expr: Expr) -> type | None:
    if expr.tree.kind not in (Var.KIND, Select.KIND):
        return None
    try:
        return emitter.emit_sugared(expr).python_class(expr.range)
    except CompileError:
        return None


def _is_subclass(cls: type | None) -> bool:
    return cls is not None and cls is not torch.Tensor and issubclass(cls, torch.Tensor)


def _kind_of_slot(value: Value) -> str | None:
    """Return whether ``value`` is a parameter, a buffer or another attribute of a module; None for other values."""
    node = value.node
    if node.kind != "prim::GetAttr" or not isinstance(node.input.type, ClassType):
        return None
    slot = node.input.type.attributes.get(str(node.attributes["name"]))
    return None if slot is None else slot.kind
