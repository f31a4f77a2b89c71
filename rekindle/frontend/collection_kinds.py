"""``collections.defaultdict``, ``OrderedDict``, ``deque``: dicts and lists whose types tell what Python calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

from rekindle.errors import SourceRange, TypeMismatchError, UnsupportedError
from rekindle.frontend.insertion import insert_empty
from rekindle.frontend.library import library_function
from rekindle.frontend.sets import SetEmitter
from rekindle.frontend.special_forms import Cast, MagicMethod, SpecialForm
from rekindle.frontend.sugared import SugaredValue
from rekindle.frontend.values import BoundCall, SimpleValue
from rekindle.ir.graph import Value
from rekindle.ir.matching import CallArgument
from rekindle.ir.types import BOOL, INT, STRING, TENSOR, DictType, ListType, Type, without_none
from rekindle.syntax.views import Apply, BinOp, Expr, Select

_OF_DEQUES: Final = frozenset({"appendleft", "popleft", "extendleft", "rotate", "pop"})
_OF_ORDERED: Final = frozenset({"move_to_end", "popitem"})

_MADE: Final[dict[str, Type]] = {
    "list": ListType(TENSOR),
    "dict": DictType(STRING, TENSOR),
    "set": DictType(INT, BOOL, "set"),
}
"""What ``defaultdict`` makes by these, where nothing tells of what."""


class CollectionEmitter(SetEmitter):
    """Emits what is made of the classes of ``collections``."""

    def _defaultdict(self, call: Apply, hint: Type | None) -> SugaredValue:
        """``defaultdict(int)``, ``defaultdict(list, {…})``"""
        if not call.inputs:
            raise UnsupportedError("defaultdict needs what makes its values here", call.range, hint="use a dict")
        factory, *given = call.inputs
        type = self._made_by(self.emit_sugared(factory), factory)
        wanted = None if hint is None else without_none(hint)
        if isinstance(wanted, DictType):
            value = wanted.value if isinstance(type, (ListType, DictType)) else type
            kind = DictType(wanted.key, value, "defaultdict")
        else:
            kind = DictType(STRING, type, "defaultdict")
        if not given and not call.attributes:
            return SimpleValue(self.insert_node("prim::DictConstruct", call.range, [], [kind]).output)
        filled = self._dict(Apply.create(call.range, call.callee, given, call.attributes), None)
        found = filled.as_value(call.range, self.graph)
        assert isinstance(found.type, DictType)
        return SimpleValue(found.set_type(DictType(found.type.key, found.type.value, "defaultdict")))

    def _made_by(self, factory: SugaredValue, expr: Expr) -> Type:
        """The type of what the factory of a defaultdict makes."""
        if isinstance(factory, MagicMethod):
            factory = factory.base
        if isinstance(factory, Cast) and insert_empty(self.graph, factory.type, expr.range) is not None:
            return factory.type
        if isinstance(factory, SpecialForm) and factory.name in _MADE:
            return _MADE[factory.name]
        raise UnsupportedError(
            "what makes the values of a defaultdict is int, float, bool, str, list, dict or set in a program",
            expr.range,
        )

    def _ordered_dict(self, call: Apply, hint: Type | None) -> SugaredValue:
        found = self._dict(call, hint).as_value(call.range, self.graph)
        assert isinstance(found.type, DictType)
        return SimpleValue(found.set_type(DictType(found.type.key, found.type.value, "OrderedDict")))

    def _deque(self, call: Apply, hint: Type | None) -> SugaredValue:
        if call.attributes or len(call.inputs) > 1:
            raise UnsupportedError(
                "a deque of a program has no maxlen", call.range, hint="take elements out where they are too many"
            )
        if call.inputs:
            source = call.inputs[0]
            found = self.list_of(call.range, self.emit_sugared(source).iterator(source.range, self.graph), None)
            assert isinstance(found.type, ListType)
            return SimpleValue(found.set_type(ListType(found.type.element, "deque")))
        wanted = None if hint is None else without_none(hint)
        element = wanted.element if isinstance(wanted, ListType) else TENSOR
        made = self.insert_node("prim::ListConstruct", call.range, [], [ListType(element, "deque")])
        return SimpleValue(made.output)

    def attribute_of(self, base: SugaredValue, expr: Select, name: str) -> SugaredValue:
        if isinstance(base, SimpleValue):
            type = base.value.type
            is_deque = isinstance(type, ListType) and type.python == "deque" and name in _OF_DEQUES
            if is_deque or (isinstance(type, DictType) and type.python == "OrderedDict" and name in _OF_ORDERED):
                if name == "appendleft":
                    self._learn_from_left(expr)
                return BoundCall(library_function(f"{name}_"), CallArgument(base.value, range=expr.range))
        return super().attribute_of(base, expr, name)

    def _learn_from_left(self, expr: Select) -> None:
        """Elements that come from the left tell nothing of an empty deque's type."""
        origin = self.environment.origin_of(expr.value)
        if origin is not None and self.evidence.type_of(origin) is None:
            raise UnsupportedError(
                "what this deque holds is not known here",
                expr.range,
                hint="declare it where it is made: q: Deque[int] = deque()",
            )

    def special_binary(self, operator: str, lhs: Value, rhs: Value, expr: BinOp) -> Value | None:
        ordered = [isinstance(item.type, DictType) and item.type.python == "OrderedDict" for item in (lhs, rhs)]
        if operator in ("==", "!=") and all(ordered):
            return self._equal_in_order(operator, lhs, rhs, expr.range)
        return super().special_binary(operator, lhs, rhs, expr)

    def _equal_in_order(self, operator: str, lhs: Value, rhs: Value, range: SourceRange) -> Value:
        if lhs.type != rhs.type:
            raise TypeMismatchError(f"{lhs.type.annotation} cannot be compared with {rhs.type.annotation}", range)
        keys = [self.insert("aten::keys", range, item) for item in (lhs, rhs)]
        same = self.insert("aten::eq", range, *keys)
        equal = self.insert("aten::__and__", range, same, self.from_library("equal_dicts", range, lhs, rhs))
        return equal if operator == "==" else self.insert("aten::__not__", range, equal)

    _FORMS: ClassVar[dict[str, Callable[[Any, Apply, Type | None], SugaredValue]]] = {
        **SetEmitter._FORMS,
        "defaultdict": _defaultdict,
        "OrderedDict": _ordered_dict,
        "deque": _deque,
    }
