"""Calls whose arguments are not simply evaluated: ``range``, ``enumerate``, ``getattr``, ``annotate`` …"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

from rekindle.errors import Cause, SourceRange, TypeMismatchError, UnsupportedError
from rekindle.frontend.classes import NewObject
from rekindle.frontend.generator_loops import GeneratorEmitter
from rekindle.frontend.inference import literal_of_dict
from rekindle.frontend.insertion import constant_int
from rekindle.frontend.iterables import IterableTree, RangeValue
from rekindle.frontend.loops import FOREVER
from rekindle.frontend.refinement import Refinements
from rekindle.frontend.special_forms import SpecialForm
from rekindle.frontend.sugared import Call, SugaredValue
from rekindle.frontend.type_expressions import parse_type_expression
from rekindle.frontend.values import SimpleValue, SugaredTuple
from rekindle.ir.graph import Value
from rekindle.ir.matching import convert_value
from rekindle.ir.types import (
    INT,
    NONE,
    TENSOR,
    AwaitType,
    DictType,
    FutureType,
    ListType,
    TupleType,
    Type,
    is_open_number,
    mismatch_note,
    without_none,
)
from rekindle.syntax.views import Apply, Expr, StringLiteral

_TAKE_KEYWORDS: Final = frozenset(
    {
        "dict",
        "enumerate",
        "fork",
        "awaitable",
        "_awaitable",
        "defaultdict",
        "OrderedDict",
        "deque",
        "zip",
        "partial",
        "accumulate",
        "product",
        "insort_left",
    }
    | {"insort_right", "bisect_left", "bisect_right", "nlargest", "nsmallest", "merge"}
    | {"combinations", "permutations", "combinations_with_replacement", "count", "repeat", "compress", "zip_longest"}
    | {"groupby", "tee", "methodcaller", "Counter", "prod"}
)
"""The forms that take arguments by name."""


class CallEmitter(GeneratorEmitter):
    """Emits calls of special forms."""

    def emit_special_form(self, form: SpecialForm, call: Apply, hint: Type | None) -> SugaredValue:
        emit = self._FORMS.get(form.name)
        if emit is None:
            raise UnsupportedError(f"'{form.name}' is not supported", call.range)
        keywords = [item.name.name for item in call.attributes]
        if keywords and form.name not in _TAKE_KEYWORDS:
            raise UnsupportedError(f"{form.name} takes no keyword argument '{keywords[0]}' here", call.range)
        return emit(self, call, hint)

    def _expect(self, call: Apply, low: int, high: int) -> list[Expr]:
        """The arguments of ``call``, of which there must be ``low`` to ``high``."""
        count = len(call.inputs)
        if not low <= count <= high:
            wanted = str(low) if low == high else f"{low} to {high}"
            noun = "argument" if wanted == "1" else "arguments"
            raise TypeMismatchError(f"{call.callee.range.text} takes {wanted} {noun}, got {count}", call.range)
        return call.inputs

    # --------------------------------------------------------------------------------------- iterables

    def _range(self, call: Apply, hint: Type | None) -> SugaredValue:
        message = "'NoneType' object cannot be interpreted as an integer"
        given = self.emit_arguments(call.inputs)
        values = [self.present(item.materialise(self.graph), item.range, message) for item in given]
        checks = self.graph.none_checks
        if checks is not None:
            pairs = zip(values, given, strict=True)
            values = [
                checks.number_as(value, INT, item.range) if is_open_number(value.type) else value
                for value, item in pairs
            ]
        made = RangeValue(call.range, self.graph, values)
        if len(values) == 3 and self.environment.checks_assignment:
            self._check_step(values[2], call.range)
        return made

    def _check_step(self, step: Value, range: SourceRange) -> None:
        """A range with the step 0 raises where it is made, even if nothing goes over it."""
        known = constant_int(step)
        if known is not None and known != 0:
            return
        self._raise_if(
            self.insert("aten::eq", range, step, 0), "range() arg 3 must not be zero", "builtins.ValueError", range
        )

    def _raise_if(self, condition: Value, message: str, error: str, range: SourceRange) -> None:
        node = self.insert_node("prim::If", range, [condition], [])
        with self.inside(node.add_block()):
            said = [self.graph.insert_constant(text, range=range) for text in (message, error)]
            self.graph.insert_node(self.graph.create("prim::RaiseException", said, outputs=0, range=range))
        node.add_block()

    def _zip(self, call: Apply, hint: Type | None) -> SugaredValue:
        if not call.inputs:
            raise TypeMismatchError("zip takes at least one iterable", call.range)
        strict = False
        for item in call.attributes:
            if item.name.name != "strict" or item.value.tree.kind not in ("true", "false"):
                raise UnsupportedError(f"zip takes no keyword argument '{item.name.name}' here", item.range)
            strict = item.value.tree.kind == "true"
        children = [self.elements_of(item) for item in call.inputs]
        if strict:
            self._check_lengths(call.range, children)
        return IterableTree(call.range, self.graph, children)

    def _check_lengths(self, range: SourceRange, children: list[SugaredValue]) -> None:
        """``zip(…, strict=True)``: a ValueError if the lengths differ."""
        first, *others = [child.length(range, self.graph) for child in children]
        for other in others:
            node = self.insert_node("prim::If", range, [self.insert("aten::eq", range, first, other)], [])
            node.add_block()
            with self.inside(node.add_block()):
                message = self.graph.insert_constant("zip() was given iterables of different lengths", range=range)
                name = self.graph.insert_constant("ValueError", range=range)
                self.insert_node("prim::RaiseException", range, [message, name], [])

    def _enumerate(self, call: Apply, hint: Type | None) -> SugaredValue:
        inputs = self._expect(call, 1, 2)
        start = inputs[1] if len(inputs) == 2 else None
        for item in call.attributes:
            if item.name.name != "start" or start is not None:
                raise UnsupportedError(f"enumerate takes no keyword argument '{item.name.name}' here", item.range)
            start = item.value
        bounds = [] if start is None else [self.emit_expression(start)]
        bounds.append(self.literal(FOREVER, call.range))
        iterator = self.elements_of(inputs[0])
        counter = RangeValue(call.range, self.graph, bounds, iterator.static_length if iterator.must_unroll else None)
        return IterableTree(call.range, self.graph, [counter, iterator])

    def _reversed(self, call: Apply, hint: Type | None) -> SugaredValue:
        (item,) = self._expect(call, 1, 1)
        source = self.emit_sugared(item)
        if source.static_length is not None and not isinstance(source, SimpleValue):
            return SugaredTuple(list(reversed(source.as_tuple(item.range, self.graph))))
        value = source.as_value(item.range, self.graph)
        if isinstance(value.type, TupleType):
            return SugaredTuple(list(reversed(SimpleValue(value).as_tuple(item.range, self.graph))))
        if not isinstance(value.type, ListType):
            raise TypeMismatchError(f"reversed takes a list or a tuple, got {value.type.annotation}", item.range)
        return SimpleValue(self.insert("aten::slice", call.range, value, None, None, -1))

    # -------------------------------------------------------------------------------------- containers

    def _list(self, call: Apply, hint: Type | None) -> SugaredValue:
        inputs = self._expect(call, 0, 1)
        if not inputs:
            wanted = None if hint is None else without_none(hint)
            if isinstance(wanted, ListType):
                return SimpleValue(self.insert_node("prim::ListConstruct", call.range, [], [wanted]).output)
            return SimpleValue(self.insert_node("prim::EmptyListLiteral", call.range, [], [ListType(TENSOR)]).output)
        return SimpleValue(self.list_of(call.range, self.emit_sugared(inputs[0]), hint))

    def _tuple(self, call: Apply, hint: Type | None) -> SugaredValue:
        inputs = self._expect(call, 0, 1)
        elements = self.emit_sugared(inputs[0]).as_tuple(inputs[0].range, self.graph) if inputs else []
        return SimpleValue(SugaredTuple(elements).as_value(call.range, self.graph))

    def _dict(self, call: Apply, hint: Type | None) -> SugaredValue:
        inputs = self._expect(call, 0, 1)
        expanded = [item for item in call.attributes if item.is_expansion]
        if expanded and len(call.attributes) > 1:
            raise UnsupportedError(
                "dict(…) with '**' beside other keyword arguments raises in Python where a key is given twice, which "
                "is not looked for here",
                expanded[0].range,
                hint="write {'name': value, **others}, where the last of several items with one key counts",
            )
        if inputs:
            source = self.emit_sugared(inputs[0])
            if isinstance(source, SimpleValue) and isinstance(source.value.type, DictType):
                made = self.call_builtin("aten::dict", call.range, source.value)
            else:
                made = self.dict_of(call.range, source, hint)
            for item in call.attributes:
                added = self.emit_expression(item.value)
                if item.is_expansion:
                    self.call_builtin("aten::update", item.range, made, added)
                else:
                    key = self.graph.insert_constant(item.name.name, range=item.range)
                    self.call_builtin("aten::_set_item", item.range, made, key, added)
            return SimpleValue(made)
        return self.emit_sugared(literal_of_dict(call), hint=hint)

    # ------------------------------------------------------------------------------------------- tasks

    def _fork(self, call: Apply, hint: Type | None) -> SugaredValue:
        """``fork(function, arguments…)``"""
        return self._deferred(call, "fork", FutureType)

    def _awaitable(self, call: Apply, hint: Type | None) -> SugaredValue:
        """``awaitable(function, arguments…)``"""
        return self._deferred(call, "awaitable", AwaitType)

    def _torchs_awaitable(self, call: Apply, hint: Type | None) -> SugaredValue:
        """``torch.jit._awaitable(function, arguments…)``, which forgets keyword arguments where Python calls it."""
        if call.attributes:
            name = call.attributes[0].name.name
            raise UnsupportedError(
                f"torch.jit._awaitable forgets the keyword argument '{name}' where Python calls it",
                call.attributes[0].range,
                hint="pass it by its position, or use rekindle.awaitable",
            )
        return self._deferred(call, "awaitable", AwaitType)

    def _deferred(self, call: Apply, form: str, type: Callable[[Type], Type]) -> SugaredValue:
        """The call stands in a block, which becomes a graph of its own later."""
        if not call.inputs:
            raise TypeMismatchError(f"{form} takes a function and its arguments", call.range)
        callee = self.emit_sugared(call.inputs[0])
        args = self.emit_arguments(call.inputs[1:])
        kwargs = self.emit_keywords(call.attributes)
        node = self.insert_node(f"prim::{form}", call.range, [], [])
        block = node.add_block()
        with self.inside(block):
            result = callee.call(Call(call.range, self.graph, args, kwargs)).as_value(call.range, self.graph)
            block.add_output(result)
        return SimpleValue(node.add_output(type(result.type)))

    # ---------------------------------------------------------------------------- attributes and types

    def _getattr(self, call: Apply, hint: Type | None) -> SugaredValue:
        inputs = self._expect(call, 2, 3)
        name = self._literal_name(inputs[1], "getattr")
        base = self.emit_sugared(inputs[0])
        if len(inputs) == 3:
            asked = base.ask_attribute(call.range, self.graph, name)
            if asked is not None:
                return SimpleValue(self._attribute_or(call, asked, base, name, inputs[2]))
            if not base.has_attribute(call.range, self.graph, name):
                return self.emit_sugared(inputs[2])
        return base.attribute(call.range, self.graph, name)

    def _attribute_or(self, call: Apply, asked: Value, base: SugaredValue, name: str, default: Expr) -> Value:
        """``getattr(base, name, default)`` where only the program can tell whether there is such an attribute."""
        range = call.range
        node, true, false = self.branch(
            range,
            asked,
            Refinements(),
            lambda: base.attribute(range, self.graph, name).as_value(range, self.graph),
            lambda: self.emit_expression(default, base.attribute_type(name)),
        )
        return node.add_output(self.join_types(range, true, false))

    def _setattr(self, call: Apply, hint: Type | None) -> SugaredValue:
        """``setattr(base, "name", value)``"""
        inputs = self._expect(call, 3, 3)
        name = self._literal_name(inputs[1], "setattr")
        base = self.emit_sugared(inputs[0])
        value = self.emit_expression(inputs[2], base.attribute_type(name))
        base.set_attribute(call.range, self.graph, name, value)
        return SimpleValue(self.graph.insert_constant(None, range=call.range))

    def _literal_name(self, expr: Expr, form: str) -> str:
        if expr.tree.kind != StringLiteral.KIND:
            raise UnsupportedError(
                f"{form} needs the name as a string literal", expr.range, cause=Cause.DYNAMIC_BEHAVIOUR
            )
        return StringLiteral(expr.tree).text

    def _question(self, call: Apply, hint: Type | None) -> SugaredValue:
        self._expect(call, 2, 2)
        form = self.emit_sugared(call.callee)
        assert isinstance(form, SpecialForm)
        condition = self.emit_hasattr(call) if form.name == "hasattr" else self.emit_isinstance(call)
        return SimpleValue(condition.value)

    def _annotate(self, call: Apply, hint: Type | None) -> SugaredValue:
        inputs = self._expect(call, 2, 2)
        type = parse_type_expression(inputs[0], self.resolver)
        value = convert_value(self.graph, self.emit_expression(inputs[1], type), type, call.range)
        if not value.type.is_subtype_of(type):
            raise TypeMismatchError(
                f"annotate declares {type.annotation}, but the value is {value.type.annotation}"
                + mismatch_note(value.type, type),
                call.range,
            )
        if type.is_optional and value.type == NONE:
            # None alone would lose the type that was asked for.
            value = self.graph.insert_constant(None, type, call.range)
        return SimpleValue(value)

    def _new(self, call: Apply, hint: Type | None) -> SugaredValue:
        form = self.emit_sugared(call.callee)
        assert isinstance(form, NewObject)
        return SimpleValue(self.insert_node("prim::CreateObject", call.range, [], [form.type]).output)

    def _uninitialized(self, call: Apply, hint: Type | None) -> SugaredValue:
        (item,) = self._expect(call, 1, 1)
        type = parse_type_expression(item, self.resolver)
        return SimpleValue(self.insert_node("prim::Uninitialized", call.range, [], [type]).output)

    def _unchecked_cast(self, call: Apply, hint: Type | None) -> SugaredValue:
        inputs = self._expect(call, 2, 2)
        type = parse_type_expression(inputs[0], self.resolver)
        value = self.emit_expression(inputs[1])
        return SimpleValue(self.insert_node("prim::unchecked_cast", call.range, [value], [type]).output)

    _FORMS: ClassVar[dict[str, Callable[[Any, Apply, Type | None], SugaredValue]]] = {
        "range": _range,
        "zip": _zip,
        "enumerate": _enumerate,
        "reversed": _reversed,
        "list": _list,
        "tuple": _tuple,
        "dict": _dict,
        "getattr": _getattr,
        "setattr": _setattr,
        "hasattr": _question,
        "isinstance": _question,
        "annotate": _annotate,
        "fork": _fork,
        "awaitable": _awaitable,
        "_awaitable": _torchs_awaitable,
        "uninitialized": _uninitialized,
        "__new__": _new,
        "unchecked_cast": _unchecked_cast,
    }
