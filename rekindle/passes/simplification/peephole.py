"""Peephole optimization: simplify a node together with the nodes that define its operands.

.. code-block:: text

    %1 : bool = aten::__not__(%p)
    %2 : bool = aten::__not__(%1)                    %4 : int = aten::dim(%x)
    %3 : int[] = aten::size(%x)          becomes     return (%p, %4)
    %4 : int = aten::len(%3)
    return (%2, %4)

Dead code elimination removes nodes that lose their last use. Nothing observable changes: not dtypes, aliasing of
tensors, or error messages. A tensor's known dtype, device and shape are used only if nothing writes to it. A double
negation of a tensor, and ``x + 0``, are kept: the result is a new tensor, and ``-0.0 + 0`` is ``0.0``.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import ClassVar, Final

import torch

from rekindle.analysis.constants import constant_bool, constant_int, is_constant, value_of
from rekindle.analysis.object_identity import are_distinct_objects
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.scalar_types import number_of
from rekindle.ir.types import (
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    NONE,
    STRING,
    TENSOR,
    ClassType,
    DictType,
    ListType,
    TensorType,
    TupleType,
)
from rekindle.ir.types.tensor import Sizes
from rekindle.rewriting.node_rules import NodeRule, NodeRules, RewriteSite, apply_node_rules


@dataclass(slots=True)
class Peephole:
    '''Simplify single nodes and short patterns. The docstring of the module shows the IR before and after.

    Without ``with_aliases``, only simplifications that need no alias analysis are applied.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import DeadCodeElimination, Peephole, run_passes
        >>> graph = parse_graph("""
        ... graph(%b : bool):
        ...   %1 : bool = aten::__not__(%b)
        ...   %2 : bool = aten::__not__(%1)
        ...   return (%2)
        ... """)
        >>> run_passes(graph, [Peephole(), DeadCodeElimination()])
        True
        >>> print(graph)
        graph(%b : bool):
          return (%b)
    '''

    name: ClassVar[str] = "peephole"
    with_aliases: bool = True

    def run(self, graph: Graph) -> bool:
        return apply_node_rules(graph, PEEPHOLE_RULES, "simplify", with_aliases=self.with_aliases)


# ---------------------------------------------------------------------------------------------------- bools and numbers

_OPPOSITES: Final = {
    "aten::eq": "aten::ne",
    "aten::ne": "aten::eq",
    "aten::__is__": "aten::__isnot__",
    "aten::__isnot__": "aten::__is__",
}
_PLAIN: Final = (INT, FLOAT, BOOL, STRING)


def _not(at: RewriteSite) -> bool:
    """Replace ``not not p`` by ``p``, and ``not a == b`` by ``a != b``, which holds for NaN too. Return whether that
    was done."""
    node = at.node
    inner = node.input.node
    if node.input.type != BOOL:
        return False
    if inner.kind == "aten::__not__":
        return at.replace_uses(inner.input)
    opposite = _OPPOSITES.get(inner.kind)
    if opposite is None or len(node.input.uses) != 1 or len(inner.inputs) != 2:
        return False
    is_plain = all(value.type in _PLAIN for value in inner.inputs) or any(value.type == NONE for value in inner.inputs)
    return is_plain and at.replace_node(opposite, inner.inputs)


def _same_scalar(at: RewriteSite) -> bool:
    """Replace ``float(x)`` of a float by ``x``, and similar conversions. Return whether that was done."""
    node = at.node
    return (
        len(node.inputs) == 1
        and node.input.type == node.output.type
        and node.input.type in _PLAIN
        and at.replace_uses(node.input)
    )


def _plus_nothing(at: RewriteSite) -> bool:
    """Replace the sum of a gradient and None by the gradient. Return whether that was done."""
    gradient, other = at.node.inputs
    return is_constant(other) and value_of(other.node) is None and at.replace_uses(gradient)


def _neutral(neutral: int) -> NodeRule:
    def rule(at: RewriteSite) -> bool:
        """Replace ``n * 1``, ``n // 1``, ``n + 0`` and ``n - 0`` of ints by ``n``. Return whether that was done."""
        node = at.node
        if len(node.inputs) != 2 or any(value.type != INT for value in (*node.inputs, *node.outputs)):
            return False
        left, right = node.inputs
        if constant_int(right) == neutral:
            return at.replace_uses(left)
        commutes = node.kind in ("aten::add", "aten::mul")
        return commutes and constant_int(left) == neutral and at.replace_uses(right)

    return rule


_NEVER_NONE: Final = (TensorType, ListType, DictType, TupleType)
"""Types beside :data:`_PLAIN` whose values are never None."""


def _identity(at: RewriteSite) -> bool:
    """Replace ``x is x`` by a constant, ``x is None`` if the type of ``x``, also before casts, determines it, and
    ``x is y`` if one of them is a new tensor. Return whether that was done."""
    node = at.node
    left, right = node.inputs
    if left is right:
        return at.fold(node.kind == "aten::__is__")
    if are_distinct_objects(left, right):
        return at.fold(node.kind == "aten::__isnot__")
    for value, other in (node.inputs, reversed(node.inputs)):
        if other.type != NONE:
            continue
        if value.type == NONE or (is_constant(value) and value_of(value.node) is None):
            return at.fold(node.kind == "aten::__is__")
        types = value.type, _before_casts(value).type
        if any(type in _PLAIN or isinstance(type, _NEVER_NONE) for type in types):
            return at.fold(node.kind == "aten::__isnot__")
    return False


def _none_attribute(at: RewriteSite) -> bool:
    """Replace the read of a module attribute whose type is None by a constant. Return whether that was done."""
    owner = at.node.input.type
    if at.node.output.type != NONE or not isinstance(owner, ClassType) or not owner.is_module or not at.begin():
        return False
    return at.finish(at.constant(None, NONE))


def _cast(at: RewriteSite) -> bool:
    """Remove a cast, or the unwrapping of an Optional, of a value whose type already fits. Return whether that was
    done."""
    node = at.node
    return node.input.type != NONE and at.replace_uses(node.input)


def _cast_of_cast(at: RewriteSite) -> bool:
    """Remove a cast back to the type that a value had before it was cast to a wider one. Return whether that was
    done."""
    node = at.node
    found = _before_casts(node.input)
    return found is not node.input and found.type == node.output.type and at.replace_uses(found)


def _type_test(at: RewriteSite) -> bool:
    """Replace the test whether a value is a Tensor, a number or an instance of a class by a constant, if the type of
    the value, also before casts, determines it. Return whether that was done."""
    node = at.node
    types, type = node["types"], node.input.type
    if not isinstance(types, list):
        return False
    if not isinstance(type, TensorType):
        type = _before_casts(node.input).type
    if isinstance(type, TensorType):
        return all(each in _SIMPLE or _has_no_tensors(each) for each in types) and at.fold(TENSOR in types)
    if type not in _SIMPLE or any(each not in _SIMPLE for each in types):
        return False
    return at.fold(type in types or (type == BOOL and INT in types))


_SIMPLE: Final = (TENSOR, INT, FLOAT, COMPLEX, BOOL)


def _has_no_tensors(type: object) -> bool:
    """Return whether a type is a class of which no Tensor is an instance."""
    if not isinstance(type, ClassType):
        return False
    return type.python_class is None or not issubclass(type.python_class, torch.Tensor)


def _before_casts(value: Value) -> Value:
    """Return the value of which ``value`` is a cast, or a cast of a cast; its type may be narrower. A cast of a result
    of ``prim::grad`` is returned itself: that the gradient may be None is only in the type of the cast."""
    while value.node.kind == "prim::unchecked_cast" and value.node.input.node.kind != "prim::grad":
        value = value.node.input
    return value


def _compared_length(at: RewriteSite) -> bool:
    """Replace ``len(s) > n`` by True, if the string ``s`` is known to be longer than the constant ``n``. Return whether
    that was done."""
    node = at.node
    length, bound = node.inputs
    limit = constant_int(bound)
    if length.node.kind != "aten::len" or length.node.input.type != STRING or limit is None:
        return False
    return shortest_text(length.node.input) > limit and at.fold(True)


def shortest_text(value: Value) -> int:
    """Return a lower bound of the length of a string."""
    node = value.node
    match node.kind:
        case "prim::Constant":
            text = value.to_python()
            return len(text) if isinstance(text, str) else 0
        case "prim::If":
            return min(shortest_text(block.outputs[value.offset]) for block in node.blocks)
        case "aten::add":
            return sum(map(shortest_text, node.inputs))
        case "aten::format":
            template = value_of(node.inputs[0].node) if is_constant(node.inputs[0]) else None
            # Each {} may become an empty text, and {{ one character.
            return len(re.sub(r"\{[^{}]*\}", "", template)) // 2 if isinstance(template, str) else 0
        case _:
            return 0


def _choice(at: RewriteSite) -> bool:
    """Replace ``True if p else False`` by ``p``, and ``False if p else True`` by ``not p``. Return whether that was
    done."""
    node = at.node
    changed = False
    for output, *results in zip(node.outputs, *(block.outputs for block in node.blocks), strict=True):
        match [constant_bool(value) for value in results] if output.has_uses else []:
            case [True, False]:
                changed |= at.replace_uses(node.input, of=output)
            case [False, True] if at.begin():
                changed |= at.replace_uses(at.insert("aten::__not__", [node.input], types=[BOOL])[0], of=output)
    return changed


# ----------------------------------------------------------------------------------------------------------- containers


def _length(at: RewriteSite) -> bool:
    """Replace the length of a list literal, of an empty dict or of a shape by a constant; that of a shape of unknown
    rank by ``aten::dim``. Return whether that was done."""
    node = at.node
    made = node.input.node
    if (
        made.kind == "prim::DictConstruct"
        and not made.inputs
        and all(use.user.kind == node.kind for use in made.output.uses)
    ):
        return at.fold(0)
    if made.kind == "prim::ListConstruct" and at.aliases.is_unwritten(made.output):
        return at.fold(len(made.inputs))
    if made.kind == "aten::size" and len(made.inputs) == 1 and at.aliases.is_unwritten(made.output, made.input):
        rank = made.input.type.rank if isinstance(made.input.type, TensorType) else None
        return at.replace_node("aten::dim", [made.input]) if rank is None else at.fold(rank)
    return False


def _item(at: RewriteSite) -> bool:
    """Replace ``[a, b][1]`` by ``b``, if nothing writes to the list. Return whether that was done."""
    node = at.node
    whole, place = node.inputs
    made, index = whole.node, constant_int(place)
    if made.kind != "prim::ListConstruct" or index is None or not -len(made.inputs) <= index < len(made.inputs):
        return False
    return at.aliases.is_unwritten(made.output) and at.replace_uses(made.inputs[index])


def _unpack(at: RewriteSite) -> bool:
    """Replace ``x, y = [a, b]`` by uses of ``a`` and ``b``, if nothing writes to the list. Return whether that was
    done."""
    node = at.node
    made = node.input.node
    if made.kind != "prim::ListConstruct" or len(made.inputs) != len(node.outputs):
        return False
    changed = False
    if at.aliases.is_unwritten(made.output):
        for output, item in zip(node.outputs, made.inputs, strict=True):
            changed |= at.replace_uses(item, of=output)
    return changed


def _extremum(at: RewriteSite) -> bool:
    """Replace ``min([a, b, c])`` of numbers by ``min(min(a, b), c)``, which needs no list; also ``max``. Nothing
    may write to the list. Return whether that was done."""
    node = at.node
    made = node.inputs[0].node
    if len(node.inputs) != 1 or made.kind != "prim::ListConstruct" or node.output.type not in (INT, FLOAT):
        return False
    if not made.inputs or not node.output.has_uses or not at.aliases.is_unwritten(made.output) or not at.begin():
        return False
    found, *others = made.inputs
    for other in others:
        (found,) = at.insert(node.kind, [found, other])
    if not others:
        return at.bypass(found)
    return at.finish(found)


# -------------------------------------------------------------------------------------------------------------- tensors


def _fact(at: RewriteSite) -> bool:
    """Replace a query of a tensor property that the type determines by a constant, if nothing writes to the tensor.
    Return whether that was done."""
    node = at.node
    tensor, *_ = node.inputs
    found = known_by_type(node, tensor.type) if isinstance(tensor.type, TensorType) else None
    return found is not None and at.aliases.is_unwritten(tensor) and at.fold(found)


def known_by_type(node: Node, type: TensorType) -> object:
    """Return the result of a property query of a tensor of ``type``; None if the type does not determine it."""
    match node.kind:
        case "aten::dim":
            return type.rank
        case "prim::dtype":
            return None if type.dtype is None else number_of(type.dtype)
        case "prim::device":
            return type.device
        case "aten::is_floating_point":
            return None if type.dtype is None else type.dtype.is_floating_point
        case "aten::is_complex":
            return None if type.dtype is None else type.dtype.is_complex
        case "aten::numel":
            return None if type.sizes is None else _product(type.sizes)
        case "prim::is_cuda":
            return None if type.device is None else type.device.type == "cuda"
        case "prim::requires_grad":
            return type.requires_grad
        case "aten::len" if type.sizes:
            return type.sizes[0]
        case "aten::size" if len(node.inputs) == 2 and type.sizes is not None:
            index = constant_int(node.named_input("dim"))
            rank = len(type.sizes)
            return type.sizes[index] if index is not None and -rank <= index < rank else None
        case _:
            return None


def _product(sizes: Sizes) -> int | None:
    return None if None in sizes else math.prod(size or 0 for size in sizes)


def _shape(at: RewriteSite) -> bool:
    """Replace the shape of a tensor whose type determines it by a list of constants, which is constructed each time, if
    nothing writes to the tensor. Return whether that was done."""
    node = at.node
    tensor, *dims = node.inputs
    type = tensor.type
    if dims or not isinstance(type, TensorType) or type.sizes is None or None in type.sizes:
        return False
    if not node.has_uses or not at.aliases.is_unwritten(tensor) or not at.begin():
        return False
    return at.finish(*at.insert("prim::ListConstruct", [at.constant(size) for size in type.sizes]))


def _same_dtype(at: RewriteSite) -> bool:
    """Replace ``x.to(dtype)`` without a copy or a memory format by ``x`` where ``x`` already has that dtype. Return
    whether that was done."""
    node = at.node
    tensor, *options = node.inputs
    schema, type = node.schema, tensor.type
    if schema is None or schema.overload != "dtype" or not isinstance(type, TensorType) or type.dtype is None:
        return False
    dtype, _, copy, memory_format = options
    is_itself = constant_int(dtype) == number_of(type.dtype) and constant_bool(copy) is False
    is_itself &= is_constant(memory_format) and value_of(memory_format.node) is None
    return is_itself and at.aliases.is_unwritten(tensor) and at.replace_uses(tensor)


def _identity_dropout(at: RewriteSite) -> bool:
    """Replace a dropout that is the identity by its argument: one whose rate is 0, or, outside of training, a constant
    between 0 and 1. Return whether that was done."""
    tensor, probability, train = at.node.inputs
    p = probability.to_python()
    if not isinstance(p, (int, float)) or not 0 <= p <= 1:  # an error otherwise
        return False
    return (p == 0 or constant_bool(train) is False) and at.replace_uses(tensor)


PEEPHOLE_RULES: Final[NodeRules] = {
    "prim::GetAttr": (_none_attribute,),
    "aten::__not__": (_not,),
    **dict.fromkeys(("aten::Int", "aten::Float", "aten::Bool", "aten::str"), (_same_scalar,)),
    **dict.fromkeys(("aten::add", "aten::sub"), (_neutral(0),)),
    **dict.fromkeys(("aten::mul", "aten::floordiv"), (_neutral(1),)),
    **dict.fromkeys(("aten::__is__", "aten::__isnot__"), (_identity,)),
    "aten::gt": (_compared_length,),
    "autodiff::plus": (_plus_nothing,),
    "prim::unchecked_cast": (_cast, _cast_of_cast),
    **dict.fromkeys(("prim::unchecked_unwrap_optional", "aten::_unwrap_optional"), (_cast,)),
    "prim::isinstance": (_type_test,),
    "prim::If": (_choice,),
    "aten::len": (_length, _fact),
    "aten::__getitem__": (_item,),
    "prim::ListUnpack": (_unpack,),
    **dict.fromkeys(("prim::min", "prim::max"), (_extremum,)),
    **dict.fromkeys(("aten::dim", "prim::dtype", "prim::device", "aten::numel", "prim::is_cuda"), (_fact,)),
    "prim::requires_grad": (_fact,),
    "aten::size": (_fact, _shape),
    **dict.fromkeys(("aten::is_floating_point", "aten::is_complex"), (_fact,)),
    "aten::to": (_same_dtype,),
    **dict.fromkeys(("aten::dropout", "aten::feature_dropout", "aten::alpha_dropout"), (_identity_dropout,)),
}
"""The rewrite rules, by the kind of node."""

_BY_TYPE: Final = (_fact, _same_dtype, _identity)

FOLDED_BY_TYPE: Final = frozenset(
    kind for kind, rules in PEEPHOLE_RULES.items() if any(rule in _BY_TYPE for rule in rules)
)
"""Kinds that are folded if the type of their first operand is known precisely enough."""
