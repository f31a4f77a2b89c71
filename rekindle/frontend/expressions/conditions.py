"""Emit conditions: short circuits, ``is None``, ``isinstance``, and the type refinements that they imply."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType
from typing import Any, Final

from rekindle.errors import Cause, CompileError, NotScriptableError, SourceRange, TypeMismatchError, UnsupportedError
from rekindle.frontend.emitter import Emitter
from rekindle.frontend.expressions.classes_of_values import LATER, is_instance_of
from rekindle.frontend.expressions.operators import binary
from rekindle.frontend.expressions.primaries import join_types
from rekindle.frontend.expressions.tensor_classes import emit_test, tensor_subclass
from rekindle.frontend.inference.usage_inference import infer_item
from rekindle.frontend.python.result_types import with_none
from rekindle.frontend.scopes.refinement import KNOWN_NONE, CondValue, RefinementSet
from rekindle.frontend.statements.error_recovery import assigned_names
from rekindle.frontend.sugared_values.base import SugaredValue
from rekindle.frontend.sugared_values.special_forms import CaughtException, ExceptionClass, SpecialForm
from rekindle.frontend.sugared_values.values import FunctionValue, SimpleValue, has_method
from rekindle.frontend.type_expressions import dotted_name, parse_type_expression
from rekindle.ir.graph import Value
from rekindle.ir.operators.container_literals import make_alike
from rekindle.ir.operators.schema import MISSING
from rekindle.ir.types import (
    ANY,
    ANY_LIST,
    ANY_TUPLE,
    BOOL,
    INT,
    NONE,
    NUMBER,
    STRING,
    ClassType,
    DictType,
    EnumType,
    FunctionType as CompiledFunctionType,
    InterfaceType,
    IntType,
    ListType,
    NoneType,
    TensorType,
    TupleType,
    Type,
    UnionBase,
    is_open_named_tuple,
    join_numbers,
    join_values,
    number_beside_tensor,
    union,
    union_members,
    unshaped,
    without_none,
)
from rekindle.syntax.tree import Tree
from rekindle.syntax.views import (
    Apply,
    BinOp,
    Expr,
    ListLiteral,
    NoneLiteral,
    Select,
    StringLiteral,
    TernaryIf,
    TupleLiteral,
    UnaryOp,
    Var,
    Walrus,
)


def emit_condition(emitter: Emitter, expr: Expr) -> CondValue:
    """Emit ``expr`` as a bool. Return its value with the type refinements that it implies, and its constant value if it
    is known at compile time.

    Raises:
        CompileError: the expression cannot be compiled, or has no truth value.
    """
    kind = expr.tree.kind
    if kind in ("and", "or"):
        return _short_circuit(emitter, BinOp(expr.tree))
    if kind == "not":
        return negation(emitter, expr, emit_condition(emitter, UnaryOp(expr.tree).operand))
    if kind == "not_in":
        operands = BinOp(expr.tree)
        contained = BinOp.create(expr.range, "in", operands.lhs, operands.rhs)
        return negation(emitter, expr, emit_condition(emitter, contained))
    if kind in ("is", "is_not", "==", "!=", "in"):
        for answer in emitter.language.questions:
            answered = answer(emitter, BinOp(expr.tree))
            if answered is not None:
                return answered
    if kind in ("is", "is_not"):
        return _identity(emitter, BinOp(expr.tree))
    if kind == "in":
        static = _among_keywords(emitter, BinOp(expr.tree))
        if static is not None:
            return static
    if kind == "apply":
        found = _type_question(emitter, Apply(expr.tree))
        if found is not None:
            return found
    return truth_of(emitter, expr, emitter.emit_expression(expr))


def truth_of(emitter: Emitter, expr: Expr, value: Value) -> CondValue:
    """Emit ``bool(value)`` as a condition; ``value`` is the value of ``expr``.

    Raises:
        TypeMismatchError: the value has no truth value.
    """
    decided = None if expr.tree.kind not in _COMPARISONS else _compared(emitter, BinOp(expr.tree), value)
    if decided is not None:
        return static_condition(emitter, expr.range, decided)
    truth = emitter.to_bool(value, expr.range)
    refinements = RefinementSet()
    if expr.tree.kind == Var.KIND and isinstance(value.type, UnionBase) and value.type.is_optional:
        refinements = RefinementSet({Var(expr.tree).name.name: without_none(value.type)}, {})
    return CondValue(truth, refinements, constant_bool(truth))


def _compared(emitter: Emitter, expr: BinOp, found: Value) -> bool | None:
    """Return the result of a comparison, whose value is ``found``, if both operands are known at compile time, and one
    of them is not a literal; else None. The node of an evaluated comparison is destroyed if it has no uses."""
    compare = _DECIDED.get(found.node.kind)
    if compare is None or all(_is_literal(side) for side in (expr.lhs, expr.rhs)):
        return None
    sides = [constant_of(value) for value in found.node.inputs]
    if len(sides) != 2 or MISSING in sides:
        return None
    try:
        decided = compare(*sides)
    except TypeError:
        return None
    if not found.has_uses:
        found.node.destroy()
    return decided


def negation(emitter: Emitter, expr: Expr, inner: CondValue) -> CondValue:
    value = emitter.insert("aten::__not__", expr.range, inner.value)
    return CondValue(value, inner.refinements.negated(), None if inner.static is None else not inner.static)


def static_condition(
    emitter: Emitter, range: SourceRange, answer: bool, refinements: RefinementSet | None = None
) -> CondValue:
    return CondValue(emitter.graph.insert_constant(answer, range=range), refinements or RefinementSet(), answer)


def _among_keywords(emitter: Emitter, expr: BinOp) -> CondValue | None:
    """Emit ``item in table`` for a table that is not a variable of the graph: for ``"name" in kwargs`` the result is
    known at compile time. Return None for other comparisons."""
    if expr.rhs.tree.kind not in (Var.KIND, Select.KIND):
        return None
    if expr.rhs.tree.kind == Var.KIND and _is_variable(emitter, Var(expr.rhs.tree).name.name):
        return None
    item = emitter.emit_expression(expr.lhs)
    table = emitter.emit_sugared(expr.rhs)
    if table.keys_are_known:
        key = constant_of(item)
        if key is not MISSING:
            return static_condition(emitter, expr.range, table.contains(key))
        contained = table.emit_contains(item, expr.range, emitter.graph)
        if contained is not None:
            return CondValue(contained)
    container = table.as_value(expr.rhs.range, emitter.graph)
    if isinstance(container.type, DictType):
        infer_item(emitter, expr.rhs, item)
    value = binary(emitter, "in", item, container, expr)
    decided = _compared(emitter, expr, value)
    return CondValue(value) if decided is None else static_condition(emitter, expr.range, decided)


def _is_variable(emitter: Emitter, name: str) -> bool:
    """Return whether ``name`` is a variable that holds a value of the graph."""
    return emitter.environment.frame.find_type(emitter.environment.frame.variable(name)) is not None


# -------------------------------------------------------------------------------- and, or, if-else


def _short_circuit(emitter: Emitter, expr: BinOp) -> CondValue:
    if is_chain(expr.tree):
        return _comparison_chain(emitter, expr)
    # `a and b and c` leans to the left: go down in a loop, and emit on the way up.
    chain = [expr]
    while chain[-1].lhs.tree.kind in ("and", "or") and not is_chain(chain[-1].lhs.tree):
        chain.append(BinOp(chain[-1].lhs.tree))
    found = emit_condition(emitter, chain[-1].lhs)
    for each in reversed(chain):
        found = _either_side(emitter, each, found)
    return found


def _comparison_chain(emitter: Emitter, expr: BinOp) -> CondValue:
    return CondValue(of_chain(emitter, expr, partial(_compare_all, emitter)))


def of_chain(emitter: Emitter, expr: BinOp, compare: Callable[[list[BinOp]], Value]) -> Value:
    """Emit ``a < b < c``, and return the result of ``compare``, which emits the comparisons from left to right. The
    parsers produce ``a < b and b < c`` with one tree for both ``b``, which is evaluated once."""
    comparisons = [BinOp(expr.rhs.tree)]
    before = expr.lhs.tree
    while before.kind == "and":
        comparisons.append(BinOp(BinOp(before).rhs.tree))
        before = BinOp(before).lhs.tree
    comparisons.append(BinOp(before))
    comparisons.reverse()
    shared = [id(each.rhs.tree) for each in comparisons[:-1]]
    emitter.shared.update(dict.fromkeys(shared))
    try:
        return compare(comparisons)
    finally:
        for key in shared:
            del emitter.shared[key]


def _compare_all(emitter: Emitter, comparisons: list[BinOp]) -> Value:
    first, *rest = comparisons
    value = emit_condition(emitter, first).value
    if not rest:
        return value
    node, _, _ = emitter.branch(
        first.range,
        value,
        RefinementSet(),
        lambda: _compare_all(emitter, rest),
        lambda: emitter.graph.insert_constant(False, range=first.range),
    )
    return node.add_output(BOOL)


def _either_side(emitter: Emitter, expr: BinOp, lhs: CondValue) -> CondValue:
    """Emit ``lhs and expr.rhs`` or ``lhs or expr.rhs``. The right side runs only if the left one does not decide. If
    the left one decides at compile time, the right side is not emitted."""
    is_or = expr.operator == "or"
    if lhs.static is is_or:
        return lhs  # the right side is never asked, and need not even compile
    if lhs.static is not None:
        emitter.refine(lhs.refinements.if_false if is_or else lhs.refinements.if_true, expr.range)
        rhs = emit_condition(emitter, expr.rhs)
        return CondValue(rhs.value, joined(expr, lhs, rhs), rhs.static)
    found: list[CondValue] = []

    def decided() -> Value:
        return emitter.graph.insert_constant(is_or, range=expr.range)

    def evaluated() -> Value:
        found.append(emit_condition(emitter, expr.rhs))
        return found[0].value

    branches = (decided, evaluated) if is_or else (evaluated, decided)
    node, _, _ = emitter.branch(expr.range, lhs.value, lhs.refinements, *branches)
    rhs = found[0]
    static = is_or if rhs.static is is_or else None
    return CondValue(node.add_output(BOOL), joined(expr, lhs, rhs), static)


def emit_ternary(emitter: Emitter, expression: Expr, targets: int, hint: Type | None) -> SugaredValue:
    expr = TernaryIf(expression.tree)
    condition = emit_condition(emitter, expr.condition)
    if condition.static is not None:
        taken = expr.true_expr if condition.static else expr.false_expr
        return emitter.emit_sugared(taken, targets, hint)
    node, true, false = emitter.branch(
        expr.range,
        condition.value,
        condition.refinements,
        lambda: emitter.emit_expression(expr.true_expr, hint),
        lambda: emitter.emit_expression(expr.false_expr, hint),
    )
    if hint is None and emitter.graph.follows_python:
        make_alike(true, false)
    number = join_numbers(true.type, false.type) if hint is None and emitter.graph.follows_python else None
    if number is not None:
        output = node.add_output(union((true.type, false.type)))
        return SimpleValue(output if output.type == number else emitter.as_number(output, expr.range))
    if hint is None and emitter.graph.follows_python:
        either = join_values(unshaped(true.type), unshaped(false.type))
        if either is not None and number_beside_tensor(either) is not None:
            return SimpleValue(node.add_output(either))
    return SimpleValue(node.add_output(join_types(emitter, expr.range, true, false, hint)))


# -------------------------------------------------------------------------------------- is, is not


def _identity(emitter: Emitter, expr: BinOp) -> CondValue:
    positive = expr.operator == "is"
    if expr.rhs.tree.kind == NoneLiteral.KIND and expr.lhs.tree.kind in (Var.KIND, Select.KIND):
        compared = emitter.emit_sugared(expr.lhs)
        if compared.is_passed_sugared:
            return static_condition(emitter, expr.range, not positive)
        lhs = compared.as_value(expr.lhs.range, emitter.graph)
    else:
        lhs = emitter.emit_expression(expr.lhs)
    rhs = emitter.emit_expression(expr.rhs)
    lhs, rhs = with_none(lhs, expr.range), with_none(rhs, expr.range)
    lhs_none, rhs_none = isinstance(lhs.type, NoneType), isinstance(rhs.type, NoneType)
    if lhs_none and rhs_none:
        return static_condition(emitter, expr.range, positive)
    if (lhs_none and not rhs.type.is_optional) or (rhs_none and not lhs.type.is_optional):
        return static_condition(emitter, expr.range, not positive)
    kind = "aten::__is__" if positive else "aten::__isnot__"
    value = emitter.insert(kind, expr.range, lhs, rhs)
    tested, tested_value = (expr.lhs, lhs) if rhs_none else (expr.rhs, rhs)
    if tested.tree.kind == Walrus.KIND:
        tested = Walrus(tested.tree).target
    refinements = RefinementSet()
    if (lhs_none or rhs_none) and tested.tree.kind == "variable" and isinstance(tested_value.type, UnionBase):
        name = Var(tested.tree).name.name
        refinements = RefinementSet({name: KNOWN_NONE}, {name: without_none(tested_value.type)})
        if not positive:
            refinements = refinements.negated()
    return CondValue(value, refinements)


# ----------------------------------------------------------------------------- isinstance, hasattr


_QUESTIONS: Final = frozenset({"isinstance", "hasattr", "callable"})
"""Builtins whose result is a condition, which may be known at compile time."""


def _type_question(emitter: Emitter, call: Apply) -> CondValue | None:
    """Emit ``isinstance(x, T)``, ``hasattr(x, "name")`` or ``callable(x)``; return None for other calls.

    Raises:
        UnsupportedError: the call does not have two arguments, or one for ``callable``.
    """
    if call.callee.tree.kind not in ("variable", "."):
        return None
    name = dotted_name(call.callee)
    if name is None or name.rpartition(".")[2] not in _QUESTIONS:
        return None
    callee = emitter.emit_sugared(call.callee)
    if not isinstance(callee, SpecialForm) or callee.name not in _QUESTIONS:
        return None
    wanted = 1 if callee.name == "callable" else 2
    if len(call.inputs) != wanted or call.attributes:
        raise UnsupportedError(f"{callee.name} takes {'one argument' if wanted == 1 else 'two arguments'}", call.range)
    return emit_question(emitter, callee.name, call)


def emit_question(emitter: Emitter, name: str, call: Apply) -> CondValue:
    """Emit a call of ``isinstance``, ``hasattr`` or ``callable``, whose number of arguments has been checked."""
    emit = {"hasattr": emit_hasattr, "callable": emit_callable}.get(name, emit_isinstance)
    return emit(emitter, call)


def emit_callable(emitter: Emitter, call: Apply) -> CondValue:
    (item,) = call.inputs
    sugared = emitter.emit_sugared(item)
    if not isinstance(sugared, SimpleValue):
        return static_condition(emitter, call.range, sugared.is_callable)
    yes: list[Type] = []
    no: list[Type] = []
    for part in union_members(sugared.value.type):
        (yes if _is_callable(part) else no).append(part)
    if not yes or not no:
        return static_condition(emitter, call.range, bool(yes))
    node = emitter.insert_node("prim::isinstance", call.range, [sugared.value], [BOOL], {"types": yes})
    names = [Var(item.tree).name.name] if item.tree.kind == Var.KIND else []
    refinements = RefinementSet(dict.fromkeys(names, union(yes)), dict.fromkeys(names, union(no)))
    return CondValue(node.output, refinements)


def _is_callable(type: Type) -> bool:
    if isinstance(type, ClassType):
        return type.is_module or has_method(type, "__call__") or "__call__" in type.generic_methods
    return isinstance(type, CompiledFunctionType) or (isinstance(type, InterfaceType) and "forward" in type.methods)


def emit_hasattr(emitter: Emitter, call: Apply) -> CondValue:
    object, name = call.inputs
    if name.tree.kind != StringLiteral.KIND:
        raise UnsupportedError("hasattr needs the name as a string literal", name.range, cause=Cause.DYNAMIC_BEHAVIOUR)
    base, text = emitter.emit_sugared(object), StringLiteral(name.tree).text
    has_it = base.ask_attribute(object.range, emitter.graph, text)
    if has_it is not None:
        return CondValue(has_it)
    return static_condition(emitter, call.range, base.has_attribute(object.range, emitter.graph, text))


def emit_isinstance(emitter: Emitter, call: Apply) -> CondValue:
    object, classes = call.inputs
    sugared = emitter.emit_sugared(object)
    if sugared.class_of_module is not None:
        return static_condition(emitter, call.range, _is_module_of(emitter, sugared, classes))
    if isinstance(sugared, CaughtException):
        return CondValue(is_exception(emitter, sugared.value, classes))
    if isinstance(sugared, FunctionValue):
        return static_condition(emitter, call.range, _is_function(emitter, classes))
    value = sugared.as_value(object.range, emitter.graph)
    subclass = tensor_subclass(emitter, classes) if emitter.graph.follows_python else None
    if subclass is not None:
        variable = Var(object.tree).name.name if object.tree.kind == "variable" else None
        return emit_test(emitter, value, subclass, variable, call.range, exact=False)
    types = _members(_types_tested(emitter, value.type, classes))
    if not types:
        return static_condition(emitter, call.range, False)
    _check_open_tuples(value.type, types, classes.range)
    yes: list[Type] = []
    no: list[Type] = []
    for part in union_members(value.type):
        (yes if _certainly(part, types) else no).append(part)
    names = [Var(object.tree).name.name] if object.tree.kind == "variable" else []
    if not no:
        return static_condition(emitter, call.range, True, RefinementSet(dict.fromkeys(names, union(yes))))
    maybe = [type for part in no for type in types if _possibly(part, type)]
    if INT in maybe and NUMBER in no and emitter.graph.follows_python:
        maybe.append(BOOL)  # True is an instance of int, too
    if not yes and not maybe:
        return static_condition(emitter, call.range, False, RefinementSet({}, dict.fromkeys(names, value.type)))
    wanted = [type for type in types if type in maybe or not _is_open_tuple(type)]
    if any(map(_is_open_tuple, types)):
        wanted += [part for part in yes if isinstance(part, TupleType)]
    # to the IR a tuple of any length is a list
    wanted += [ListType(part.element) for part in yes if isinstance(part, ListType) and part.is_tuple]
    node = emitter.insert_node("prim::isinstance", call.range, [value], [BOOL], {"types": wanted})
    positive, negative = union((*yes, *maybe)), union(no)
    refinements = RefinementSet(dict.fromkeys(names, positive), dict.fromkeys(names, negative))
    return CondValue(node.output, refinements)


def _check_open_tuples(tested: Type, types: Sequence[Type], range: SourceRange) -> None:
    """Check that the type ``tested`` shows which values are tuples of variable length, if ``types`` has such tuples.

    Raises:
        UnsupportedError: it does not. At run time, such tuples are lists.
    """
    for type in types:
        for part in union_members(tested):
            if (part == ANY and _has_open_tuple(type)) or _depends_on_items(part, type):
                raise UnsupportedError(
                    f"whether a value of type {part.annotation} is an instance of {type.annotation} cannot be asked",
                    range,
                    hint="ask for tuple, or for the length and the items",
                )


def _depends_on_items(part: Type, type: Type) -> bool:
    """Return whether the items, or their number, determine whether values of the type ``part`` are instances of
    ``type``, where one of the two is a tuple of variable length."""
    if isinstance(part, ListType) and part.is_tuple and isinstance(type, TupleType):
        return all(_possibly(part.element, item) for item in type.elements)
    if isinstance(part, TupleType) and isinstance(type, ListType) and type.is_tuple:
        return not _is_tuple_of(part, type) and all(_possibly(item, type.element) for item in part.elements)
    return False


def _has_open_tuple(type: Type) -> bool:
    return _is_open_tuple(type) or any(map(_has_open_tuple, type.contained))


def _types_tested(emitter: Emitter, tested: Type, classes: Expr) -> list[Type]:
    """Return the types in the second argument of isinstance, for a value of type ``tested``. A Python class that is not
    a type of programs is replaced by the members of ``tested`` that are instances of it.

    Raises:
        UnsupportedError: ``tested`` is Any, and the class cannot be tested at run time.
        CompileError: the argument is not a class or a type.
    """
    if classes.tree.kind == TupleLiteral.KIND:
        items = TupleLiteral(classes.tree).items
        return [type for item in items for type in _types_tested(emitter, tested, item)]
    cls = _class_without_type(emitter, classes)
    if cls is None:
        return class_info(emitter, classes)
    later = LATER.get(cls.__name__)
    if later is not None:
        return [later(ANY)]
    if cls is list or cls is tuple:
        return [ANY_LIST if cls is list else ANY_TUPLE]
    answers = {part: is_instance_of(part, cls) for part in union_members(tested)}
    if ANY in answers:
        raise UnsupportedError(
            f"whether a value of type Any is an instance of '{cls.__name__}' cannot be asked",
            classes.range,
            hint="declare the types that the value may have, or ask for one of them with the types of its elements",
        )
    return [part for part, answer in answers.items() if answer]


def _class_without_type(emitter: Emitter, classes: Expr) -> type | None:
    """Return the class that ``classes`` names, if it is not a type of programs: ``dict``, ``set``, ``frozenset``, an
    alias of a builtin container, a class of ``collections.abc`` or ``numbers``, or of an asynchronous result; else
    None."""
    name = dotted_name(classes) if classes.tree.kind in (Var.KIND, Select.KIND) else None
    if name is None or name in ("list", "tuple"):
        return None
    try:
        found = emitter.emit_sugared(classes)
        if isinstance(found, SpecialForm):
            return _BUILTIN_CONTAINERS.get(found.name)
        cls = found.python_class(classes.range)
    except CompileError:
        return None
    if cls is None:
        return None
    is_later = cls.__name__ in LATER and cls.__module__.partition(".")[0] in ("torch", "rekindle")
    is_container = cls in (list, tuple, *_BUILTIN_CONTAINERS.values())
    return cls if is_later or is_container or cls.__module__ in ("collections.abc", "numbers") else None


_BUILTIN_CONTAINERS: Final = {"dict": dict, "set": set, "frozenset": frozenset}


def _is_function(emitter: Emitter, classes: Expr) -> bool:
    """Return whether functions are instances of one of ``classes``."""
    if classes.tree.kind == TupleLiteral.KIND:
        return any(_is_function(emitter, item) for item in TupleLiteral(classes.tree).items)
    cls = _class_without_type(emitter, classes)
    return cls is not None and issubclass(FunctionType, cls)


def is_exception(emitter: Emitter, error: Value, classes: Expr) -> Value:
    """Emit a test whether an exception is an instance of one of the classes that ``classes`` names."""
    names = exception_classes(emitter, emitter.emit_sugared(classes), classes.range)
    known = emitter.graph.insert_constant(names, ListType(STRING), range=classes.range)
    return emitter.insert("prim::is_exception", classes.range, error, known)


def exception_classes(emitter: Emitter, named: SugaredValue, range: SourceRange) -> list[str]:
    if isinstance(named, ExceptionClass):
        return [named.name]
    if isinstance(named, SimpleValue):
        raise TypeMismatchError(f"only classes of exceptions can be caught, not {named.description}", range)
    parts = named.as_tuple(range, emitter.graph)
    return [name for part in parts for name in exception_classes(emitter, part, range)]


def _is_module_of(emitter: Emitter, module: SugaredValue, classes: Expr) -> bool:
    """Return whether ``module``, whose class is known at compile time, is an instance of the given classes or
    interfaces."""
    if classes.tree.kind == TupleLiteral.KIND:
        return any(_is_module_of(emitter, module, item) for item in TupleLiteral(classes.tree).items)
    named = emitter.emit_sugared(classes)
    cls = named.python_class(classes.range)
    if cls is not None:
        assert module.class_of_module is not None
        return issubclass(module.class_of_module, cls)
    parts = named.as_tuple(classes.range, emitter.graph) if named.as_type(classes.range) is None else []
    if parts:
        found = [part.python_class(classes.range) for part in parts]
        assert module.class_of_module is not None
        return issubclass(module.class_of_module, tuple(item for item in found if item is not None))
    type = module.as_value(classes.range, emitter.graph).type
    return any(type.is_subtype_of(item) for item in class_info(emitter, classes))


def class_info(emitter: Emitter, expr: Expr) -> list[Type]:
    """Return the types that the second argument of isinstance names; empty for a class of which no value of a program
    is an instance.

    Raises:
        CompileError: the argument is not a class or a type.
    """
    if expr.tree.kind == TupleLiteral.KIND:
        return [type for item in TupleLiteral(expr.tree).items for type in class_info(emitter, item)]
    try:
        return _classes_named(emitter, expr)
    except NotScriptableError:
        return []  # no value of a program is an object of it
    except CompileError:
        if not _names_foreign_class(emitter, expr):
            raise
        return []


def _classes_named(emitter: Emitter, expr: Expr) -> list[Type]:
    name = dotted_name(expr)
    if name in ("list", "tuple"):
        return [ANY_LIST if name == "list" else ANY_TUPLE]
    if name is not None and "." not in name:
        found = _class_value(emitter, name, expr.range)
        if found is not None:
            return found
    return [parse_type_expression(expr, emitter.resolver)]


def _names_foreign_class(emitter: Emitter, expr: Expr) -> bool:
    """Return whether ``expr`` names a Python class of which values of programs are never instances."""
    if expr.tree.kind not in (Var.KIND, Select.KIND):
        return False
    try:
        return emitter.emit_sugared(expr).python_class(expr.range) is not None
    except CompileError:
        return False


def _class_value(emitter: Emitter, name: str, range: SourceRange) -> list[Type] | None:
    """Return the type that ``name`` refers to, or the types in a tuple of classes; None if it refers to something
    else."""
    found = emitter.resolver.resolve_value(name, range, emitter.graph)
    if found is None or isinstance(found, SimpleValue):
        return None
    type = found.as_type(range)
    if type is not None:
        return [type]
    try:
        parts = [item.as_type(range) for item in found.as_tuple(range, emitter.graph)]
    except CompileError:
        return None
    types = [part for part in parts if part is not None]
    return types if len(types) == len(parts) and types else None


def asks(expr: Expr) -> bool:
    """Return whether ``expr`` has the form of a condition: a comparison, ``not``, ``True``, ``isinstance`` …"""
    if expr.tree.kind == Apply.KIND:
        name = dotted_name(Apply(expr.tree).callee)
        return name is not None and name.rpartition(".")[2] in _QUESTIONS
    return expr.tree.kind in _COMPARISONS or expr.tree.kind in ("not", "true", "false") or is_chain(expr.tree)


def compares(expr: Expr) -> bool:
    """Return whether ``expr`` is a comparison by ``==``, ``<`` and the like, whose result may be a Tensor."""
    return expr.tree.kind in _COMPARISONS and expr.tree.kind not in ("in", "not_in", "is", "is_not")


def is_chain(tree: Tree) -> bool:
    """Return whether ``tree`` is the parsed form of ``a < b < c``."""
    if tree.kind != "and":
        return False
    before, last = tree.subtree(0), tree.subtree(1)
    if before.kind == "and":
        before = before.subtree(1)
    return before.kind in _COMPARISONS and last.kind in _COMPARISONS and before.subtree(1) is last.subtree(0)


_COMPARISONS: Final = frozenset({"<", "<=", ">", ">=", "==", "!=", "in", "not_in", "is", "is_not"})


def joined(expr: BinOp, lhs: CondValue, rhs: CondValue) -> RefinementSet:
    """Return the type refinements of ``expr``, an ``and`` or ``or`` of ``lhs`` and ``rhs``."""
    join = lhs.refinements.or_ if expr.operator == "or" else lhs.refinements.and_
    return join(rhs.refinements, assigned_names([expr.rhs]))


def _members(types: list[Type]) -> list[Type]:
    """Return the types that isinstance tests, with unions replaced by their members: in TorchScript's order, or, if a
    Scalar is among them, in the given order."""
    flat = [member for type in types for member in union_members(type)]
    ordered = list(union_members(union(flat)))
    return flat if NUMBER in ordered else ordered


def _certainly(part: Type, types: list[Type]) -> bool:
    """Return whether every value of type ``part`` is an instance of one of ``types``. A bool is an int to Python's
    isinstance."""
    if isinstance(part, IntType):
        types = [type for type in types if _may_be_int(part, type)]
    if _is_open_tuple(part) or (isinstance(part, (ListType, TupleType)) and any(map(_is_open_tuple, types))):
        return any(_is_tuple_of(part, type) for type in types)
    if is_open_named_tuple(part) and any(isinstance(type, TupleType) and type.python_class for type in types):
        return False  # whatever the type says, which of the classes in torch.return_types it is shows at run time
    if any(part.is_subtype_of(type) or _inherits(part, type) for type in types):
        return True
    if isinstance(part, EnumType) and part.python_class is not None:  # an IntEnum is an int
        classes = tuple(_NUMBERS_AND_TEXT[type.kind] for type in types if type.kind in _NUMBERS_AND_TEXT)
        return issubclass(part.python_class, classes)
    return part == BOOL and INT in types


_NUMBERS_AND_TEXT: Final[dict[str, builtins.type]] = {"IntType": int, "FloatType": float, "StringType": str}


def _is_open_tuple(type: Type) -> bool:
    return isinstance(type, ListType) and type.is_tuple


def _is_tuple_of(part: Type, wanted: Type) -> bool:
    """Return whether values of the type ``part`` are instances of the Python class that ``wanted`` names, where one of
    the two, or another class that is tested, is the list type of a tuple of variable length. Such tuples,
    ``torch.Size`` and tuples of known length are instances of ``tuple``, not ``list``."""
    if isinstance(part, TupleType):
        if not isinstance(wanted, ListType):
            return part.is_subtype_of(wanted)
        return wanted.python == "tuple" and all(item.is_subtype_of(wanted.element) for item in part.elements)
    if not isinstance(part, ListType):
        return False
    if isinstance(wanted, ListType):
        return part.is_subtype_of(wanted) and part.python == wanted.python
    return wanted == (ANY_TUPLE if part.is_tuple else ANY_LIST) or wanted == ANY


def _may_be_int(part: IntType, wanted: Type) -> bool:
    """Return whether the class that ``wanted`` names is not another one than that of ``part``, where one of the two may
    be a dtype, a layout or a memory format. These are ints in the IR, and not in Python."""
    return wanted == part if isinstance(wanted, IntType) else not part.python_name or wanted.kind == "AnyType"


def _inherits(part: Type, wanted: Type) -> bool:
    """Return whether the Python class of objects of ``part`` derives from that of ``wanted``."""
    if not isinstance(part, ClassType) or not isinstance(wanted, ClassType):
        return False
    own, base = part.python_class, wanted.python_class
    return own is not None and base is not None and issubclass(own, base)


def _possibly(part: Type, type: Type) -> bool:
    """Return whether a value of type ``part`` may turn out to be an instance of ``type``."""
    if part == ANY:
        return True
    if part == NONE or type == NONE:
        return part == type
    if isinstance(part, IntType) and not _may_be_int(part, type):
        return False
    if part.kind == "NumberType":
        return type.kind in ("BoolType", "IntType", "FloatType", "ComplexType")
    if is_open_named_tuple(part) and isinstance(part, TupleType) and isinstance(type, TupleType):
        return part.fields == type.fields
    if isinstance(part, ListType) and isinstance(type, ListType) and part.is_tuple != type.is_tuple:
        return False
    return type.is_subtype_of(part)


_LITERALS: Final = ("prim::ListConstruct", "prim::TupleConstruct")


def constant_of(value: Value) -> object:
    """Return the compile-time Python object of ``value``: a constant, or an unmodified list or tuple of constants;
    MISSING if it is unknown. A constant Tensor counts as unknown."""
    if value.node.kind == "prim::Constant" and not isinstance(value.type, TensorType):
        return value.node.attributes.get("value")
    if value.node.kind in _LITERALS:
        if not all(use.user.kind in _LITERALS or use.user.kind in _DECIDED for use in value.uses):
            return MISSING  # a comprehension appends to the list that it begins with
        items = [constant_of(item) for item in value.node.inputs]
        if MISSING not in items:
            return items if value.node.kind == "prim::ListConstruct" else tuple(items)
    return MISSING


def _is_literal(expr: Expr) -> bool:
    if expr.tree.kind in (TupleLiteral.KIND, ListLiteral.KIND):
        return all(_is_literal(Expr(item)) for item in expr.tree.subtree(0).subtrees())
    return expr.tree.kind in ("const", "true", "false", "none", "unary_minus", StringLiteral.KIND)


_DECIDED: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "aten::eq": operator.eq,
    "aten::ne": operator.ne,
    "aten::lt": operator.lt,
    "aten::le": operator.le,
    "aten::gt": operator.gt,
    "aten::ge": operator.ge,
    "aten::__contains__": operator.contains,
}
"""Functions that evaluate comparisons at compile time, by operator."""


def constant_bool(value: Value) -> bool | None:
    """Return the bool that ``value`` is a constant of; None if it is not a constant bool."""
    if value.node.kind == "prim::Constant" and value.type == BOOL:
        return bool(value.node.attributes["value"])
    return None
