"""Tuples of a length that only the run knows: ``x.shape``, ``tuple(xs)``, ``outs = outs + (x,)`` in a loop.

To the IR they are lists, as in TorchScript; their types tell what Python has in their place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from rekindle.errors import SourceRange, TypeMismatchError
from rekindle.frontend.counters import CounterEmitter
from rekindle.frontend.set_values import check_shown
from rekindle.frontend.shown import is_shown_otherwise, text_of
from rekindle.frontend.sugared import SugaredValue
from rekindle.frontend.values import SimpleValue
from rekindle.ir.graph import Value
from rekindle.ir.matching import convert_value, unpack_tuple
from rekindle.ir.types import INT, ListType, TupleType, Type, present, unify_all, unshaped, without_none
from rekindle.syntax.views import Apply, BinOp, Expr, TupleLiteral


class SequenceEmitter(CounterEmitter):
    """Emits what makes, joins and compares such tuples."""

    def _tuple_call(self, call: Apply, hint: Type | None) -> SugaredValue:
        """``tuple(xs)``: of known length where that of ``xs`` is known."""
        inputs = self._expect(call, 0, 1)
        if not inputs:
            return self._tuple(call, hint)
        wanted = None if hint is None else without_none(hint)
        wanted = ListType(wanted.element) if isinstance(wanted, ListType) else None
        item = inputs[0]
        source = self.emit_sugared(item, 1, wanted)
        if isinstance(source, SimpleValue) and isinstance(source.value.type, ListType):
            if source.value.type.python == "tuple":
                return source
            if source.value.node.kind == "prim::ListConstruct" and item.tree.kind == "list_literal":
                return self._of_items(source.value.node.inputs, call.range)
        elif source.static_length is not None or (isinstance(source, SimpleValue) and _is_tuple(source.value.type)):
            elements = source.as_tuple(item.range, self.graph)
            return self._of_items([element.as_value(item.range, self.graph) for element in elements], call.range)
        made = self.list_of(call.range, source, wanted)
        if made.node.kind == "prim::ListConstruct" and made.node.inputs:
            return self._of_items(made.node.inputs, call.range)
        return SimpleValue(as_tuple_type(made))

    def _size_call(self, call: Apply, hint: Type | None) -> SugaredValue:
        """``torch.Size(xs)``"""
        inputs = self._expect(call, 0, 1)
        if not inputs:
            return SimpleValue(self.insert_node("prim::ListConstruct", call.range, [], [ListType(INT, "Size")]).output)
        made = self.list_of(call.range, self.emit_sugared(inputs[0], 1, ListType(INT)), ListType(INT))
        if made.type != ListType(INT):
            if made.node.kind == "prim::ListConstruct" and not made.node.inputs:
                made.set_type(ListType(INT))
            else:
                raise TypeMismatchError(f"torch.Size takes ints, got {made.type.annotation}", call.range)
        return SimpleValue(as_tuple_type(made, "Size"))

    def _of_items(self, items: Sequence[Value], range: SourceRange) -> SugaredValue:
        type = TupleType(tuple(item.type for item in items))
        return SimpleValue(self.insert_node("prim::TupleConstruct", range, list(items), [type]).output)

    def _emit_tuple(self, expr: Expr, hint: Type | None) -> SugaredValue:
        wanted = None if hint is None else without_none(hint)
        open_type = wanted if isinstance(wanted, ListType) and wanted.is_tuple else None
        if open_type is not None and not TupleLiteral(expr.tree).items:
            return SimpleValue(self.insert_node("prim::ListConstruct", expr.range, [], [open_type]).output)
        found = super()._emit_tuple(expr, hint)
        if not isinstance(found, SimpleValue):
            return found
        if isinstance(found.value.type, ListType):
            return SimpleValue(as_tuple_type(found.value))  # (*xs, 1)
        return (
            found if open_type is None else SimpleValue(convert_value(self.graph, found.value, open_type, expr.range))
        )

    def special_binary(self, operator: str, lhs: Value, rhs: Value, expr: BinOp) -> Value | None:
        if is_open_tuple(lhs.type) or is_open_tuple(rhs.type):
            found = self._of_tuples(operator, lhs, rhs, expr)
            if found is not None:
                return found
        return super().special_binary(operator, lhs, rhs, expr)

    def _of_tuples(self, operator: str, lhs: Value, rhs: Value, expr: BinOp) -> Value | None:
        open_type = lhs.type if is_open_tuple(lhs.type) else rhs.type
        assert isinstance(open_type, ListType)
        sides = [self._beside(value, open_type, expr.range) for value in (lhs, rhs)]
        lists = [side for side in sides if side is not None]
        if operator == "+" and len(lists) == 2:
            joined = self.call_builtin("aten::add", expr.range, *lists)
            is_size = any(isinstance(v.type, ListType) and v.type.python == "Size" for v in (lhs, rhs))
            return as_tuple_type(joined, "Size" if is_size else "tuple")
        if operator in ("==", "!=") and len(lists) == 2:
            return self.call_builtin("aten::eq" if operator == "==" else "aten::ne", expr.range, *lists)
        if operator == "*" and INT in (lhs.type, rhs.type):
            return as_tuple_type(self.call_builtin("aten::mul", expr.range, lhs, rhs), open_type.python)
        return None

    def _beside(self, value: Value, other: ListType, range: SourceRange) -> Value | None:
        """One side of an operator as a list beside a tuple of the type ``other``; None where that is no tuple."""
        if is_open_tuple(value.type):
            return value
        if not isinstance(value.type, TupleType) or value.type.fields is not None:
            return None
        elements = value.type.elements
        common = unify_all([unshaped(other.element), *map(unshaped, elements)])
        if common is None or common != unshaped(other.element):
            return None
        return self.insert_node(
            "prim::ListConstruct", range, unpack_tuple(self.graph, value, range), [ListType(common)]
        ).output

    def with_present_items(
        self, value: Value, declared: TupleType, range: SourceRange, message: Callable[[Type], str]
    ) -> Value:
        """A tuple that is returned, of which items may be None, or numbers for Tensors, that are declared not to be."""
        items = list(value.node.inputs)
        if len(items) != len(declared.elements) or value.type.is_subtype_of(declared):
            return value
        for index, (item, wanted) in enumerate(zip(items, declared.elements, strict=True)):
            if not item.type.is_subtype_of(wanted) and present(item.type).is_subtype_of(wanted):
                items[index] = self.present(item, range, message(item.type))
        type = value.type.with_contained([item.type for item in items])
        return self.insert_node("prim::TupleConstruct", range, items, [type]).output

    def text_of(self, value: Value, range: SourceRange) -> Value:
        """``str(value)``"""
        if self.graph.none_checks is not None and is_shown_otherwise(value.type):
            return text_of(self.graph, value, range)
        if self.graph.none_checks is not None:
            check_shown("aten::str", [value.type], range)
        return self.call_builtin("aten::str", range, value)

    _FORMS: ClassVar[dict[str, Callable[[Any, Apply, Type | None], SugaredValue]]] = {
        **CounterEmitter._FORMS,
        "tuple": _tuple_call,
        "Size": _size_call,
    }


def is_open_tuple(type: Type) -> bool:
    """Whether Python has a tuple in place of the list that values of the type are."""
    return isinstance(type, ListType) and type.is_tuple


def as_tuple_type(made: Value, python: str = "tuple") -> Value:
    """A fresh list, of which the type tells from now on that it is a tuple in Python."""
    assert isinstance(made.type, ListType)
    return made.set_type(ListType(made.type.element, python))


def _is_tuple(type: Type) -> bool:
    return isinstance(type, TupleType)
