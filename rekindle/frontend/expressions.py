"""Expressions: literals, operators, names, calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import groupby
from operator import itemgetter
from typing import Final

from rekindle.errors import (
    Cause,
    CompileError,
    GivenUpError,
    SchemaError,
    SourceRange,
    TypeMismatchError,
    UnsupportedError,
)
from rekindle.frontend.builtin_calls import insert_builtin_call
from rekindle.frontend.equality import are_never_equal, give_empty_literals_types
from rekindle.frontend.generic import GenericFunction
from rekindle.frontend.keywords import KeywordArguments, table_of_functions
from rekindle.frontend.learning import Learning
from rekindle.frontend.library import library_function
from rekindle.frontend.local_functions import LocalFunction, definition_of_lambda, free_names
from rekindle.frontend.none_errors import none_operand
from rekindle.frontend.number_containers import join_known, made_as
from rekindle.frontend.operator_kinds import BINARY_KINDS, UNARY_KINDS
from rekindle.frontend.powers import float_beside, is_scaled
from rekindle.frontend.refinement import Condition
from rekindle.frontend.special_forms import MagicMethod, NewStyleString, SpecialForm, ToList
from rekindle.frontend.sugared import Call, Keywords, SugaredValue
from rekindle.frontend.tuple_comparison import COMPARISONS, compare_tuples, compares_tuples
from rekindle.frontend.values import BuiltinFunction, SimpleValue, SugaredTuple
from rekindle.ir.container_literals import TOLIST_ELEMENTS, TOLIST_OF_ROW
from rekindle.ir.graph import Value
from rekindle.ir.matching import CallArgument, convert_value, unpack_tuple
from rekindle.ir.types import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    STRING,
    TENSOR,
    ClassType,
    DictType,
    IntType,
    ListType,
    StringType,
    TensorType,
    TupleType,
    Type,
    UnionType,
    is_open_number,
    join_values,
    lost_class,
    may_be_bool,
    mismatch_note,
    number_beside_tensor,
    number_members,
    unify,
    unify_all,
    union_members,
    unshaped,
    without_none,
)
from rekindle.syntax.views import (
    Apply,
    Attribute,
    BinOp,
    Const,
    Def,
    DictLiteral,
    Expansion,
    Expr,
    GivenUp,
    Lambda,
    ListLiteral,
    Select,
    Starred,
    StringLiteral,
    TernaryIf,
    TupleLiteral,
    UnaryOp,
    Var,
    Walrus,
)

_CONDITIONS: Final = frozenset({"and", "or", "not", "is", "is_not", "not_in"})


class ExpressionEmitter(Learning):
    """Emits expressions. Subscripts, conditions, comprehensions and special forms are added by the classes that build
    on it."""

    # -------------------------------------------------------------------------------- below this class

    def emit_condition_value(self, expr: Expr, hint: Type | None) -> Value:
        raise NotImplementedError

    def emit_subscript(self, expr: Expr, hint: Type | None) -> SugaredValue:
        raise NotImplementedError

    def emit_special_form(self, form: SpecialForm, call: Apply, hint: Type | None) -> SugaredValue:
        raise NotImplementedError

    def emit_comprehension(self, expr: Expr, hint: Type | None) -> Value:
        raise NotImplementedError

    def list_of(self, range: SourceRange, source: SugaredValue, hint: Type | None) -> Value:
        raise NotImplementedError

    def emit_ternary(self, expr: TernaryIf, targets: int, hint: Type | None) -> SugaredValue:
        raise NotImplementedError

    def type_question(self, expr: BinOp) -> Condition | None:
        """``type(x) is int`` and the like; None for other comparisons."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------- dispatching

    def emit_sugared(self, expr: Expr, targets: int = 1, hint: Type | None = None) -> SugaredValue:
        kind = expr.tree.kind
        if kind == "variable":
            return self.environment.lookup(Var(expr.tree).name.name, expr.range)
        if kind == ".":
            return self._emit_select(Select(expr.tree))
        if kind == "apply":
            return self.emit_call(Apply(expr.tree), targets, hint)
        if kind == "subscript":
            return self.emit_subscript(expr, hint)
        if kind == "if_expr":
            return self.emit_ternary(TernaryIf(expr.tree), targets, hint)
        if kind == "tuple_literal":
            return self._emit_tuple(expr, hint)
        if kind == "list_literal":
            return self._emit_list(expr, hint)
        if kind == Lambda.KIND:
            return self.local_function(definition_of_lambda(Lambda(expr.tree)))
        if kind == DictLiteral.KIND:
            table = table_of_functions(DictLiteral(expr.tree), self.emit_sugared)
            if table is not None:
                return table
        if kind == Walrus.KIND:
            return self._emit_walrus(Walrus(expr.tree), hint)
        return SimpleValue(self._emit_simple(expr, hint))

    def _as_scalar(self, value: Value) -> Value:
        """Return a number that may be a bool, beside others, as a Scalar, which operators take."""
        if not isinstance(value.type, UnionType) or self.graph.none_checks is None or not may_be_bool(value.type):
            return value
        return self.as_number(value, value.node.range)

    def emit_expression(self, expr: Expr, hint: Type | None = None) -> Value:
        key = id(expr.tree)
        if key not in self.shared:
            return self._as_scalar(self.emit_sugared(expr, 1, hint).as_value(expr.range, self.graph))
        found = self.shared[key]
        if found is None:
            found = self.shared[key] = self.emit_sugared(expr, 1, hint).as_value(expr.range, self.graph)
        return found

    def _emit_simple(self, expr: Expr, hint: Type | None) -> Value:
        kind = expr.tree.kind
        if kind in BINARY_KINDS:
            asked = self.type_question(BinOp(expr.tree)) if kind in ("==", "!=", "in") else None
            return self._emit_binary(BinOp(expr.tree), hint) if asked is None else asked.value
        if kind in _CONDITIONS:
            return self.emit_condition_value(expr, hint)
        emit = self._LITERALS.get(kind)
        if emit is not None:
            return emit(self, expr, hint)
        if kind in UNARY_KINDS:
            return self._emit_unary(UnaryOp(expr.tree))
        if kind in ("list_comp", "dict_comp", "generator", "set_comp", "set_literal"):
            return self.emit_comprehension(expr, hint)
        if kind == GivenUp.KIND:
            raise GivenUpError("this expression is not supported")
        raise UnsupportedError(_REFUSED.get(kind, f"{kind} expressions are not supported"), expr.range)

    def _emit_walrus(self, expr: Walrus, hint: Type | None) -> SugaredValue:
        found = self.emit_sugared(expr.value, 1, hint)
        self.environment.assign(expr.target.name.name, expr.target.range, found)
        return found

    # --------------------------------------------------------------------------------- local functions

    def local_function(self, definition: Def) -> LocalFunction:
        """What a function means that is defined here: its defaults are computed now, what it reads when it is
        called."""
        defaults = {
            param.name.name: self.emit_sugared(param.default)
            for param in definition.params
            if param.default is not None
        }
        frame = self.environment.frame
        variables = {name: frame.variable(name) for name in free_names(definition)}
        function = GenericFunction(definition.name.name, definition, self.resolver, is_local=True)
        return LocalFunction(function, self, variables, defaults)

    # ---------------------------------------------------------------------------------------- literals

    def _emit_const(self, expr: Expr, hint: Type | None) -> Value:
        return self.literal(Const(expr.tree).value, expr.range)

    def _emit_true(self, expr: Expr, hint: Type | None) -> Value:
        return self.graph.insert_constant(True, range=expr.range)

    def _emit_false(self, expr: Expr, hint: Type | None) -> Value:
        return self.graph.insert_constant(False, range=expr.range)

    def _emit_none(self, expr: Expr, hint: Type | None) -> Value:
        return self.graph.insert_constant(None, range=expr.range)

    def _emit_string(self, expr: Expr, hint: Type | None) -> Value:
        return self.graph.insert_constant(StringLiteral(expr.tree).text, range=expr.range)

    def _emit_list(self, expr: Expr, hint: Type | None) -> SugaredValue:
        items = ListLiteral(expr.tree).items
        if any(item.tree.kind == Starred.KIND for item in items):
            joined = self._joined_list(expr, items, hint)
            if joined is not None:
                return SimpleValue(joined)
        wanted = _member_of_kind(hint, ListType)
        element_hint = wanted.element if isinstance(wanted, ListType) else None
        found = self._emit_meanings_of(items, [element_hint] * len(items))
        if wanted is None and any(item.stays_itself for _, item in found):
            return SugaredTuple([item for _, item in found])  # functions or modules, to loop over
        return SimpleValue(self._list_of_items(expr, items, self._values_of(found), wanted))

    def _joined_list(self, expr: Expr, items: Sequence[Expr], hint: Type | None) -> Value | None:
        """``[*xs, 0, *ys]`` with lists whose lengths are known only at run time; None where all lengths are known."""
        wanted = _member_of_kind(hint, ListType)
        for item in items:  # each in its turn, as Python evaluates them
            if id(item.tree) not in self.starred:
                self._emit_item(item, wanted.element if isinstance(wanted, ListType) else None)
        open_ended = [self._is_open_ended(item) for item in items]
        if not any(open_ended):
            return None
        parts: list[SugaredValue] = []
        for is_open, group in groupby(zip(open_ended, items, strict=True), key=itemgetter(0)):
            if is_open:
                parts += [self.starred.pop(id(item.tree)) for _, item in group]
            else:
                parts.append(self._emit_list(ListLiteral.create(expr.range, [item for _, item in group]), hint))
        lists = [self.list_of(expr.range, part, None) for part in parts]
        joined = reduce(join_known, (item.type for item in lists), wanted)
        lists = [made_as(item, joined, self.graph, expr.range) for item in lists]
        return reduce(lambda a, b: self.call_builtin("aten::add", expr.range, a, b), lists)

    def _emit_item(self, item: Expr, hint: Type | None) -> None:
        """Emit an item of a literal with stars, for whoever puts the literal together."""
        if item.tree.kind == Starred.KIND:
            self.starred[id(item.tree)] = self.emit_sugared(Starred(item.tree).value)
        else:
            self.starred[id(item.tree)] = self.emit_sugared(item, 1, hint)

    def _is_open_ended(self, item: Expr) -> bool:
        """Whether an item of a literal stands for elements whose number is known only when the program runs."""
        found = self.starred.get(id(item.tree))
        if found is None or item.tree.kind != Starred.KIND:
            return False
        if isinstance(found, SimpleValue):
            return not isinstance(found.value.type, TupleType)
        return found.static_length is None

    def _list_of_items(self, expr: Expr, items: Sequence[Expr], values: list[Value], wanted: Type | None) -> Value:
        element_hint = wanted.element if isinstance(wanted, ListType) else None
        if not values and wanted is None:
            return self.insert_node("prim::EmptyListLiteral", expr.range, [], [ListType(TENSOR)]).output
        element = element_hint
        if element is None:
            element = _joined_elements(values, expr.range)
        else:
            values = [convert_value(self.graph, value, element, expr.range) for value in values]
            _check_elements(values, items, element, expr.range)
        assert element is not None
        return self.insert_node("prim::ListConstruct", expr.range, values, [ListType(element)]).output

    def _emit_tuple(self, expr: Expr, hint: Type | None) -> SugaredValue:
        items = TupleLiteral(expr.tree).items
        if any(item.tree.kind == Starred.KIND for item in items):
            joined = self._joined_list(expr, items, None)
            if joined is not None:
                return SimpleValue(joined)  # (*sizes, 1) is of the type of sizes
        wanted = _member_of_kind(hint, TupleType)
        hints: list[Type | None] = [None] * len(items)
        if isinstance(wanted, TupleType) and len(wanted.elements) == len(items):
            hints = list(wanted.elements)
        found = self._emit_meanings_of(items, hints)
        if wanted is None and any(item.stays_itself for _, item in found):
            return SugaredTuple([item for _, item in found])
        values = self._values_of(found)
        type = TupleType(tuple(value.type for value in values))
        return SimpleValue(self.insert_node("prim::TupleConstruct", expr.range, values, [type]).output)

    def _emit_dict(self, expr: Expr, hint: Type | None) -> Value:
        literal = DictLiteral(expr.tree)
        wanted = _member_of_kind(hint, DictType)
        key_hint, value_hint = (wanted.key, wanted.value) if isinstance(wanted, DictType) else (None, None)
        keys: list[Value] = []
        values: list[Value] = []
        for index, key in enumerate(literal.keys):
            if key.tree.kind == Expansion.KIND:
                return self._emit_merged_dict(expr, index, hint)
        for key, value in zip(literal.keys, literal.values, strict=True):
            keys.append(self.emit_expression(key, key_hint))
            values.append(self.emit_expression(value, value_hint))
        if isinstance(wanted, DictType):
            type: Type = wanted
            values = [convert_value(self.graph, value, wanted.value, expr.range) for value in values]
            _check_elements(keys, literal.keys, wanted.key, expr.range)
            _check_elements(values, literal.values, wanted.value, expr.range)
        elif not keys:
            type = DictType(STRING, TENSOR)
        else:
            key_type = unify_all(key.type for key in keys)
            value_type = _joined_elements(values, expr.range)
            if key_type is None:
                found = ", ".join(key.type.annotation for key in keys)
                raise TypeMismatchError(f"the keys of a dict must be of one type, got {found}", expr.range)
            assert value_type is not None
            type = DictType(key_type, value_type)
        inputs = [item for pair in zip(keys, values, strict=True) for item in pair]
        return self.insert_node("prim::DictConstruct", expr.range, inputs, [type]).output

    def _emit_merged_dict(self, expr: Expr, first: int, hint: Type | None) -> Value:
        """``{k: v, **d, …}``, of which the expansion at ``first`` is the first: a copy of the part before it, to which
        the others are added in their order."""
        literal = DictLiteral(expr.tree)
        keys, values = literal.keys, literal.values
        if first == 0:
            found = self.emit_sugared(values[0])
            made = self.call_builtin("aten::dict", expr.range, found.as_value(values[0].range, self.graph))
            made = made_as(made, _member_of_kind(hint, DictType), self.graph, expr.range)
            first = 1
        else:
            start = DictLiteral.create(expr.range, keys[:first], values[:first])
            made = self._emit_dict(start, hint)
        for key, value in zip(keys[first:], values[first:], strict=True):
            if key.tree.kind == Expansion.KIND:
                added = self.emit_expression(value)
                made = made_as(made, join_known(made.type, added.type), self.graph, expr.range)
                self.call_builtin("aten::update", value.range, made, made_as(added, made.type, self.graph, value.range))
            else:
                item = self.emit_expression(key), self.emit_expression(value)
                joined = join_known(made.type, DictType(item[0].type, unshaped(item[1].type)))
                made = made_as(made, joined, self.graph, expr.range)
                self.call_builtin("aten::_set_item", value.range, made, *item)
        return made

    def emit_items(self, items: Sequence[Expr], hints: Sequence[Type | None]) -> list[Value]:
        """The values of the items of a literal or of positional arguments; ``*x`` stands for all elements of x."""
        return self._values_of(self._emit_meanings_of(items, hints))

    def _values_of(self, found: Sequence[tuple[Expr, SugaredValue]]) -> list[Value]:
        return [item.as_value(expr.range, self.graph) for expr, item in found]

    def _emit_meanings_of(self, items: Sequence[Expr], hints: Sequence[Type | None]) -> list[tuple[Expr, SugaredValue]]:
        """What the items mean, each with its place. Those that are to be values are so at once."""
        found: list[tuple[Expr, SugaredValue]] = []
        for index, (item, hint) in enumerate(zip(items, hints, strict=True)):
            try:
                known = self.starred.pop(id(item.tree), None)
                if item.tree.kind == Starred.KIND:
                    elements = (known or self.emit_sugared(Starred(item.tree).value)).as_tuple(item.range, self.graph)
                else:
                    elements = [known or self.emit_sugared(item, 1, hint)]
                found += [(item, self._simplified(element, item)) for element in elements]
            except CompileError as error:
                self.look_into(items[index + 1 :], error, item)
        return found

    def _simplified(self, found: SugaredValue, expr: Expr) -> SugaredValue:
        if isinstance(found, SimpleValue) or found.stays_itself:
            return found
        return SimpleValue(found.as_value(expr.range, self.graph))

    _LITERALS: Final[dict[str, Callable[[ExpressionEmitter, Expr, Type | None], Value]]] = {
        "const": _emit_const,
        "true": _emit_true,
        "false": _emit_false,
        "none": _emit_none,
        "string_literal": _emit_string,
        "dict_literal": _emit_dict,
    }

    # --------------------------------------------------------------------------------------- operators

    def _emit_binary(self, expr: BinOp, hint: Type | None) -> Value:
        # A long sum is a deep tree that leans to the left: go down in a loop, and emit on the way up.
        chain = [expr]
        while chain[-1].lhs.tree.kind in BINARY_KINDS and id(chain[-1].lhs.tree) not in self.shared:
            chain.append(BinOp(chain[-1].lhs.tree))
        position = len(chain)
        try:
            first = chain[-1].lhs
            repeated = len(chain) == 1 and expr.operator == "*" and first.tree.kind == ListLiteral.KIND
            value = self.emit_expression(first, hint if repeated else None)
            while position:
                position -= 1
                each = chain[position]
                rhs = self.emit_expression(each.rhs, FLOAT if is_scaled(each.operator, value, each.rhs) else None)
                if each.operator == "**":
                    value = self.power(value, rhs, each, hint if position == 0 else float_beside(chain[position - 1]))
                    continue
                if each.operator == "in" and isinstance(rhs.type, DictType):
                    self.learn_item(each.rhs, value)
                elif each.operator == "+" and isinstance(rhs.type, ListType):
                    self.learn_element(each.lhs, rhs)
                value = self.binary(each.operator, value, rhs, each)
            return value
        except CompileError as error:
            failed = chain[position].tree if position < len(chain) else chain[-1].lhs.tree
            self.look_into([each.rhs for each in reversed(chain[:position])], error, Expr(failed))

    def binary(self, operator: str, lhs: Value, rhs: Value, expr: BinOp) -> Value:
        """``lhs operator rhs``; ``x in y`` asks y."""
        if operator in ("==", "!=") and rhs.type == NONE and number_beside_tensor(lhs.type) is not None:
            return self.graph.insert_constant(operator == "!=", range=expr.range)
        if number_beside_tensor(lhs.type) is not None:
            return self.split(lhs, expr.range, lambda part: self.binary(operator, part, rhs, expr))
        if number_beside_tensor(rhs.type) is not None:
            return self.split(rhs, expr.range, lambda part: self.binary(operator, lhs, part, expr))
        kind, method = BINARY_KINDS[operator]
        if lhs.type.is_optional or rhs.type.is_optional:
            lhs, rhs = self.present_operands(operator, lhs, rhs, expr.range)
        if operator == "+" and isinstance(lhs.type, TupleType) and isinstance(rhs.type, TupleType):
            values = [*unpack_tuple(self.graph, lhs, expr.range), *unpack_tuple(self.graph, rhs, expr.range)]
            type = TupleType(tuple(value.type for value in values))
            return self.insert_node("prim::TupleConstruct", expr.range, values, [type]).output
        if operator in COMPARISONS and self.graph.none_checks is not None:
            if operator in ("==", "!=") and are_never_equal(lhs, rhs):
                return self.graph.insert_constant(operator == "!=", range=expr.range)
            give_empty_literals_types(lhs, rhs)
        if operator in ("+", "==", "!=") and self.graph.none_checks is not None:
            lhs, rhs = self.as_one_list(lhs, rhs, expr.range)
        if compares_tuples(operator, lhs, rhs):
            return compare_tuples(self, lambda op, a, b: self.binary(op, a, b, expr), operator, lhs, rhs, expr.range)
        if operator == "%" and isinstance(lhs.type, StringType):
            kind = "aten::percentFormat"
        special = self.special_binary(operator, lhs, rhs, expr)
        if special is not None:
            return special
        if operator == "/" and "ComplexType" in (lhs.type.kind, rhs.type.kind):
            lhs, rhs = self._complex(lhs, expr.lhs.range), self._complex(rhs, expr.rhs.range)
        arguments = [self.argument(lhs, expr.lhs.range), self.argument(rhs, expr.rhs.range)]
        if operator == "in":
            arguments.reverse()
        target = MagicMethod(method, BuiltinFunction(kind))
        return target.call(Call(expr.range, self.graph, arguments)).as_value(expr.range, self.graph)

    def as_one_list(self, lhs: Value, rhs: Value, range: SourceRange) -> tuple[Value, Value]:
        """The operands of a concatenation, which makes a new list, or of a comparison, as lists of what the elements of
        both join to."""
        if not isinstance(lhs.type, ListType) or not isinstance(rhs.type, ListType) or lhs.type == rhs.type:
            return lhs, rhs
        element = join_values(lhs.type.element, rhs.type.element)
        if element is None or element == lhs.type.element == rhs.type.element:
            return lhs, rhs
        wanted, cast = ListType(element), self.environment.cast
        return cast(lhs, wanted, range), cast(rhs, wanted, range)

    def present_operands(self, operator: str, lhs: Value, rhs: Value, range: SourceRange) -> tuple[Value, Value]:
        """The operands without None, where an operator wants them so. Objects of classes may take None."""
        if operator in ("==", "!=") or self.graph.none_checks is None:
            return lhs, rhs
        types = without_none(lhs.type), without_none(rhs.type)
        if any(isinstance(type, ClassType) for type in types) or NONE in types:
            return lhs, rhs
        if operator == "%" and isinstance(lhs.type, StringType):
            return lhs, rhs  # "%s" % None
        checked = [
            self.present(value, range, none_operand(operator, *types, lhs_is_none=is_lhs))
            if value.type.is_optional and (operator != "in" or not is_lhs)
            else value
            for value, is_lhs in ((lhs, True), (rhs, False))
        ]
        return checked[0], checked[1]

    def power(self, base: Value, exponent: Value, expr: BinOp, hint: Type | None) -> Value:
        """``base ** exponent``, of ints a float where one is wanted."""
        raise NotImplementedError

    def special_binary(self, operator: str, lhs: Value, rhs: Value, expr: BinOp) -> Value | None:
        """What Python has and no operator does; None where an operator is to be looked for."""
        raise NotImplementedError

    def _complex(self, value: Value, range: SourceRange) -> Value:
        """An int or a float as a complex number: a quotient with one would be said to be a float."""
        if value.type.kind in ("IntType", "FloatType"):
            return self.insert("aten::Complex", range, value, 0)
        return value

    def _emit_unary(self, expr: UnaryOp) -> Value:
        if expr.operator == "unary_minus" and expr.operand.tree.kind == Const.KIND:
            return self.graph.insert_constant(-Const(expr.operand.tree).value, range=expr.range)
        return self._unary(expr, self.emit_expression(expr.operand))

    def _unary(self, expr: UnaryOp, operand: Value) -> Value:
        kind, method = UNARY_KINDS[expr.operator]
        if number_beside_tensor(operand.type) is not None:
            return self.split(operand, expr.range, lambda part: self._unary(expr, part))
        if operand.type.is_optional:
            sign = _SIGNS[expr.operator]
            operand = self.present(operand, expr.range, f"bad operand type for unary {sign}: 'NoneType'")
        if operand.type == BOOL:
            operand = self.insert("aten::Int", expr.range, operand)
        if expr.operator == "unary_plus" and not isinstance(operand.type, (TensorType, ClassType)):
            if number_members(operand.type) is None:
                raise TypeMismatchError(f"unary + cannot be applied to {operand.type.annotation}", expr.range)
            return operand
        checks = self.graph.none_checks
        if expr.operator == "~" and checks is not None and is_open_number(operand.type):
            operand = checks.number_as(operand, INT, expr.range)
        if expr.operator == "~" and operand.type == INT:
            return self.insert("aten::__xor__", expr.range, operand, -1)  # there is no such operator of ints
        target = MagicMethod(method, BuiltinFunction(kind))
        result = target.call(Call(expr.range, self.graph, [self.argument(operand, expr.operand.range)]))
        return result.as_value(expr.range, self.graph)

    # --------------------------------------------------------------------------------- names and calls

    def _emit_select(self, expr: Select) -> SugaredValue:
        name = expr.selector.name
        base = self.emit_sugared(expr.value)
        if name == "format" and isinstance(base, SimpleValue) and isinstance(base.value.type, StringType):
            return NewStyleString(base.value)
        if name == "tolist" and isinstance(base, SimpleValue) and isinstance(base.value.type, TensorType):
            return ToList(base.value)
        return self.attribute_of(base, expr, name)

    def attribute_of(self, base: SugaredValue, expr: Select, name: str) -> SugaredValue:
        """``base.name``"""
        return base.attribute(expr.range, self.graph, name)

    def emit_call(self, call: Apply, targets: int, hint: Type | None) -> SugaredValue:
        callee = self.emit_sugared(call.callee)
        if isinstance(callee, ToList):
            if hint is None and self.graph.none_checks is not None:
                tensor = CallArgument(callee.tensor, range=call.range)
                return library_function(TOLIST_OF_ROW).call(Call(call.range, self.graph, [tensor]))
            return SimpleValue(self._emit_tolist(call, callee.tensor, hint))
        if isinstance(callee, SpecialForm):
            return self.emit_special_form(callee, call, hint)
        range = call.callee.range
        if callee.takes_meanings:
            return callee.call_with(range, self.graph, *self.emit_meanings(call), targets)
        try:
            args = self.emit_arguments(call.inputs, joins=isinstance(callee, BuiltinFunction))
        except CompileError as error:
            self.look_into([item.value for item in call.attributes], error, call)
        kwargs = self.emit_keywords(call.attributes)
        if isinstance(callee, BuiltinFunction) and callee.self_value is not None:
            self.learn_from_method(call, callee.kind, args)
        try:
            return callee.call(Call(range, self.graph, args, kwargs, targets))
        except SchemaError:
            self.learn_from_parameters(call, callee, args)
            raise

    def _emit_tolist(self, call: Apply, tensor: Value, hint: Type | None) -> Value:
        """``x.tolist()``: the type that is wanted says how deep the lists are and what stands in them."""
        depth, element = 0, hint
        while isinstance(element, ListType):
            depth, element = depth + 1, element.element
        if hint is None or element not in TOLIST_ELEMENTS:
            raise UnsupportedError(
                "the type of what tolist gives must be declared",
                call.range,
                hint="assign it to an annotated variable, for example: values: List[float] = x.tolist()",
            )
        inputs = [
            tensor,
            self.graph.insert_constant(depth, range=call.range),
            self.graph.insert_constant(TOLIST_ELEMENTS.index(element), range=call.range),
        ]
        return self.insert_node("prim::tolist", call.range, inputs, [hint]).output

    def emit_arguments(self, inputs: Sequence[Expr], *, joins: bool = False) -> list[CallArgument]:
        """Positional arguments; one list of all where ``joins`` and a list of ints of any length is expanded among
        them, as operators take sizes."""
        joined = self._joined_sizes(inputs) if joins else None
        if joined is not None:
            return [self.argument(joined, inputs[0].range)]
        arguments: list[CallArgument] = []
        for index, item in enumerate(inputs):
            try:
                known = self.starred.pop(id(item.tree), None)
                if item.tree.kind == Starred.KIND:
                    elements = (known or self.emit_sugared(Starred(item.tree).value)).as_tuple(item.range, self.graph)
                    arguments += [
                        self.argument(element.as_value(item.range, self.graph), item.range) for element in elements
                    ]
                else:
                    value = self.emit_expression(item) if known is None else known.as_value(item.range, self.graph)
                    arguments.append(self.argument(value, item.range))
            except CompileError as error:
                self.look_into(inputs[index + 1 :], error, item)
        return arguments

    def _joined_sizes(self, inputs: Sequence[Expr]) -> Value | None:
        """One list of the arguments, where lists of ints whose lengths are known only at run time are among them."""
        expanded = [item for item in inputs if item.tree.kind == Starred.KIND]
        if not expanded:
            return None
        try:
            for item in inputs:
                self._emit_item(item, None)
        except CompileError:
            return None  # told where the arguments are looked at one by one
        lists = [self.starred[id(item.tree)] for item in expanded if self._is_open_ended(item)]
        if not lists or not all(isinstance(x, SimpleValue) and _holds_ints(x.value.type) for x in lists):
            return None
        return self._joined_list(ListLiteral.create(inputs[0].range, list(inputs)), inputs, None)

    def emit_meanings(self, call: Apply) -> tuple[list[SugaredValue], dict[str, SugaredValue]]:
        """The positional arguments of a call and those by name, whatever they are."""
        args: list[SugaredValue] = []
        named: dict[str, SugaredValue] = {}
        for item in call.inputs:
            if item.tree.kind == Starred.KIND:
                args += self.emit_sugared(Starred(item.tree).value).as_tuple(item.range, self.graph)
            else:
                args.append(self.emit_sugared(item))
        for attribute in call.attributes:
            if attribute.is_expansion:
                found = self._expanded(attribute.value)
            else:
                found = {attribute.name.name: self.emit_sugared(attribute.value)}
            twice = next((name for name in found if name in named), None)
            if twice is not None:
                raise TypeMismatchError(f"the keyword argument '{twice}' is given twice", attribute.range)
            named.update(found)
        return args, named

    def _expanded(self, expr: Expr) -> Keywords:
        """``**expr`` of a call."""
        if expr.tree.kind == DictLiteral.KIND:
            literal = DictLiteral(expr.tree)
            if all(key.tree.kind == StringLiteral.KIND for key in literal.keys):
                pairs = zip(literal.keys, literal.values, strict=True)
                return {StringLiteral(key.tree).text: self.emit_sugared(value) for key, value in pairs}
        found = self.emit_sugared(expr)
        if isinstance(found, KeywordArguments):
            return found.items
        raise UnsupportedError(
            f"{found.description} cannot be expanded to keyword arguments: its keys are known only when the program "
            "runs",
            expr.range,
            hint="name each keyword argument",
            cause=Cause.DYNAMIC_BEHAVIOUR,
        )

    def emit_keywords(self, attributes: Sequence[Attribute]) -> list[CallArgument]:
        arguments: list[CallArgument] = []
        for index, item in enumerate(attributes):
            if item.is_expansion:
                arguments += [
                    CallArgument(value.as_value(item.range, self.graph), range=item.range, name=name)
                    for name, value in self._expanded(item.value).items()
                ]
                continue
            try:
                value = self.emit_expression(item.value)
            except CompileError as error:
                self.look_into([other.value for other in attributes[index + 1 :]], error, item.value)
            arguments.append(CallArgument(value, range=item.range, name=item.name.name))
        return arguments

    def call_builtin(self, kind: str, range: SourceRange, *values: Value) -> Value:
        """Call the builtin ``kind``, whether an operator or a function written in TorchScript."""
        return insert_builtin_call(range, self.graph, kind, [self.argument(value, range) for value in values], [])

    def join_types(self, range: SourceRange, true: Value, false: Value, hint: Type | None = None) -> Type:
        """The type of what two branches compute."""
        found = unify(unshaped(true.type), unshaped(false.type), hint=hint)
        if found is None:
            raise TypeMismatchError(
                f"the branches of this expression have different types: {true.type.annotation} if the condition holds, "
                f"{false.type.annotation} if not",
                range,
                hint="convert one of them, or declare the variable that it is assigned to, for example x: Union[…] = …",
            )
        return found


def _check_elements(values: Sequence[Value], items: Sequence[Expr], wanted: Type, range: SourceRange) -> None:
    for index, value in enumerate(values):
        place = items[index].range if len(items) == len(values) else range
        if not value.type.is_subtype_of(wanted):
            note = mismatch_note(value.type, wanted)
            raise TypeMismatchError(f"expected {wanted.annotation} here, got {value.type.annotation}{note}", place)
        lost = lost_class(value.type, wanted)
        if lost is not None:
            raise TypeMismatchError(f"expected {wanted.annotation} here, and {lost}", place)


def _joined_elements(values: Sequence[Value], range: SourceRange) -> Type | None:
    """The type of the elements of a list or a dict that is made of ``values``; None where there are none.

    Raises:
        UnsupportedError: some are dtypes, layouts or memory formats, and others are not.
    """
    types = [unshaped(value.type) for value in values]
    kinds = sorted(
        {type for type in types if isinstance(type, IntType)}, key=lambda type: type.python_name, reverse=True
    )
    if len(kinds) > 1:
        name = kinds[0].python_name.removeprefix("torch.").replace("_", " ")
        raise UnsupportedError(
            f"a container of {name}s and {kinds[1].annotation.removeprefix('torch.').replace('_', ' ')}s would be one "
            f"of ints to Python: a {name} is an int in a program",
            range,
            hint="put them into a tuple, or into containers of their own",
        )
    return unify_all(types, default_to_union=True)


def _holds_ints(type: Type) -> bool:
    return isinstance(type, ListType) and type.element == INT


def _member_of_kind(hint: Type | None, kind: type[Type]) -> Type | None:
    """The part of a wanted type that a literal of this kind can have: of ``Optional[List[int]]`` the ``List[int]``."""
    if hint is None:
        return None
    hint = without_none(hint)
    if isinstance(hint, kind):
        return hint
    if isinstance(hint, UnionType):
        found = [member for member in union_members(hint) if isinstance(member, kind)]
        return found[0] if len(found) == 1 else None
    return None


_SIGNS: Final = {"unary_minus": "-", "unary_plus": "+", "~": "~"}

_REFUSED: Final = {
    "dots": "'...' is only supported within subscripts",
    "starred": "'*' is only supported in calls, literals and assignments",
    "slice": "a slice is only supported within subscripts",
}
