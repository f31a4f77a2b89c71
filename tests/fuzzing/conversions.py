"""Eager Python with the conversions that docs/differences.md describes: what a program would do if Python made them.

The text of a program is rewritten so that each place where a row applies calls :class:`Conversions`: a parameter, a
``return``, an assignment to a declared variable or attribute, a write to a declared list or dict, a power. Of a place
the rows do not always say whether it converts (a variable that takes ints and floats by turns keeps them): each place,
a *site*, may be switched off, and is then plain Python.
"""

from __future__ import annotations

import ast
import inspect
import operator
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import torch

NOT_DECLARED: Final = "`x.item()` where an int is declared"
DECLARED: Final = "an int given to a parameter, a variable or a result that is declared a float"
TENSOR_GIVEN: Final = "a Tensor given to a parameter that is declared a number"
NUMBER_GIVEN: Final = "a number where a Tensor is declared, by the path that the program takes"
OTHER_ELEMENTS: Final = "`v: List[float] = x.tolist()` of a Tensor of ints"
COMPLEX_POWER: Final = "`float ** float` without a real result"
NEGATIVE_POWER: Final = "`2 ** n` of ints, `n` negative"
NO_RESULT: Final = "None passed to a parameter or returned as a result that is declared as something else"

KEYS_CHANGED: Final = "a loop over a dict that removes keys which it has not reached"

CONVERTED: Final = (
    KEYS_CHANGED,
    TENSOR_GIVEN,
    NUMBER_GIVEN,
    OTHER_ELEMENTS,
    COMPLEX_POWER,
    NEGATIVE_POWER,
    NO_RESULT,
    NOT_DECLARED,
    DECLARED,
)
"""The rows on conversions; of several in a program, the first names it."""

NAME: Final = "_rows_"
"""What the :class:`Conversions` of a rewritten program are called in its module."""
_NUMBERS: Final = (bool, int, float, complex)
_VIEWS: Final = (type({}.keys()), type({}.values()), type({}.items()))
_BY_RANK: Final = (int, float, complex, bool)
"""The members of a Union to which a number of another kind is converted, the first that holds it."""
_MUTATORS: Final = frozenset({"append", "insert", "extend", "setdefault", "update", "get", "pop"})


class _Refused(Exception):
    """A value that does not fit, the row that says so, and the text of the TypeError."""

    def __init__(self, row: str, text: str) -> None:
        super().__init__(text)
        self.row = row


@dataclass(slots=True)
class Conversions:
    """What the sites of a rewritten program do. ``off`` are the sites that do nothing."""

    off: frozenset[int] = frozenset()
    active: dict[int, str] = field(default_factory=dict)
    """The sites that changed a value or raised, and their rows."""
    module: dict[str, Any] = field(default_factory=dict)
    elements: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    """The lists and dicts whose elements are declared, by their ``id``, and the type of the elements."""

    keys: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    """The dicts whose keys are declared, and the type of the keys."""

    rows: dict[int, Any] = field(default_factory=dict)
    """The results of ``tolist()`` whose type no annotation of theirs declares."""

    # ------------------------------------------------------------------------------------------------- the sites

    def declared(self, site: int, value: Any, annotation: str) -> Any:
        """``value`` as a place has it that is declared with ``annotation``.

        Raises:
            TypeError: it does not fit.
        """
        return self._at(site, value, self._type(annotation))

    def tolist(self, site: int, value: Any, annotation: str) -> Any:
        """The result of ``tolist()`` where another type is declared.

        Raises:
            RuntimeError: it does not fit.
        """
        return value if site in self.off else self._fitting(site, value, self._type(annotation))

    def _fitting(self, site: int, value: Any, annotation: Any) -> Any:
        """The result of ``tolist()`` where its type is declared, by an annotation or by a parameter."""
        try:
            fits = self._converted(value, annotation) is value
        except _Refused:
            fits = False
        if not fits:
            self.active[site] = OTHER_ELEMENTS
            raise RuntimeError(f"tolist() is annotated to give elements of type {_name(annotation)}")
        return value

    def row(self, site: int, tensor: Any) -> Any:
        """The result of ``tensor.tolist()`` where no type is declared.

        Raises:
            RuntimeError: the Tensor has not one dimension.
        """
        if site not in self.off and isinstance(tensor, torch.Tensor) and tensor.dim() != 1:
            self.active[site] = OTHER_ELEMENTS
            raise RuntimeError("tolist() without a declared type takes a Tensor of one dimension")
        found = tensor.tolist()
        self.rows[id(found)] = found
        return found

    def iterated(self, site: int, iterable: Any) -> Any:
        """What a loop goes over; of a dict, whose keys are compared before each iteration.

        Raises:
            RuntimeError: they have changed, though not how many there are.
        """
        owner = getattr(iterable, "mapping", iterable) if isinstance(iterable, _VIEWS) else iterable
        if site in self.off or not isinstance(owner, (dict, types.MappingProxyType)):
            return iterable
        return self._compared(site, iterable, owner)

    def _compared(self, site: int, iterable: Any, owner: Any) -> Iterator[Any]:
        keys = list(owner)
        for each in iterable:
            if len(owner) == len(keys) and list(owner) != keys:
                self.active[site] = KEYS_CHANGED
                raise RuntimeError("dictionary keys changed during iteration")
            yield each

    def field(self, site: int, value: Any, owner: Any, name: str) -> Any:
        """``value`` as an attribute of ``owner`` that its class may declare."""
        for each in type(owner).__mro__:
            annotation = getattr(each, _FIELDS, {}).get(name)
            if annotation is not None:
                return self._at(site, value, self._type(annotation))
        return value

    def item(self, site: int, value: Any, owner: Any) -> Any:
        """``value`` as an item of a list or a dict."""
        known = self.elements.get(id(owner))
        if known is None:
            return value
        return self._at(site, value, known[1])

    def key(self, site: int, index: Any, owner: Any) -> Any:
        """``index`` as a key under which a value is put into ``owner``."""
        known = self.keys.get(id(owner))
        return index if known is None else self._at(site, index, known[1])

    def items(self, site: int, values: Any, owner: Any) -> Any:
        """``values`` as items of a list or a dict: those that ``+=``, ``extend`` and ``update`` are given."""
        known = self.elements.get(id(owner))
        if known is None or not isinstance(values, (list, tuple, dict)):
            return values
        if isinstance(values, dict):
            return {key: self._at(site, each, known[1]) for key, each in values.items()}
        return [self._at(site, each, known[1]) for each in values]

    def method(self, site: int, owner: Any, name: str) -> Any:
        """``owner.name``; of a list or a dict whose elements are declared, converting what is put into it."""
        found = getattr(owner, name)
        if id(owner) not in self.elements:
            return found

        def call(*arguments: Any, **keywords: Any) -> Any:
            given = list(arguments)
            if name in ("extend", "update"):
                given = [self.items(site, each, owner) for each in given]
            elif given and (name != "pop" or len(given) == 2):
                given[-1] = given[-1] if len(given) == 1 and name != "append" else self.item(site, given[-1], owner)
            return found(*given, **keywords)

        return call

    def power(self, site: int, base: Any, exponent: Any) -> Any:
        """``base ** exponent``.

        Raises:
            ValueError: the result is not real, or not an int, though those of most other operands are.
        """
        result = base**exponent
        if site in self.off:
            return result
        if isinstance(result, complex) and isinstance(base, (int, float)) and isinstance(exponent, (int, float)):
            self.active[site] = COMPLEX_POWER
            raise ValueError(f"{float(base)} ** {float(exponent)} is not a real number; make one of them complex")
        if isinstance(result, float) and isinstance(base, int) and isinstance(exponent, int):
            self.active[site] = NEGATIVE_POWER
            hint = "write float(base) ** exponent where it may be negative"
            raise ValueError(f"{int(base)} ** {int(exponent)} is not an int: {hint}")
        return result

    def power_in_place(self, site: int, base: Any, exponent: Any) -> Any:
        """What ``base **= exponent`` assigns; see :meth:`power`."""
        if isinstance(base, _NUMBERS):
            return self.power(site, base, exponent)
        return self.in_place(site, base, "ipow", exponent)

    def in_place(self, site: int, value: Any, name: str, other: Any) -> Any:
        """What ``value += other`` assigns, or another operator by its name in :mod:`operator`."""
        return getattr(operator, name)(value, self.items(site, other, value) if name == "iadd" else other)

    def fields(self, cls: type, declared: dict[str, str], sites: dict[str, int]) -> None:
        """Convert what a constructor that Python writes is given for the fields ``declared`` of ``cls``."""
        setattr(cls, _FIELDS, declared)
        name = "__new__" if issubclass(cls, tuple) else "__init__"
        if name not in vars(cls) or (name == "__init__" and not hasattr(cls, "__dataclass_fields__")):
            return
        original = getattr(cls, name)
        if getattr(original, "__qualname__", "").startswith("Conversions.") or not sites:
            return

        def construct(self_or_cls: Any, *arguments: Any, **keywords: Any) -> Any:
            bound = inspect.signature(original).bind(self_or_cls, *arguments, **keywords)
            for each, site in sites.items():
                if each in bound.arguments:
                    bound.arguments[each] = self.declared(site, bound.arguments[each], declared[each])
            return original(*bound.args, **bound.kwargs)

        setattr(cls, name, construct)

    # -------------------------------------------------------------------------------------------------- conversion

    def _at(self, site: int, value: Any, annotation: Any) -> Any:
        if site in self.off:
            return value
        if id(value) in self.rows:
            return self._fitting(site, value, annotation)
        try:
            found = self._converted(value, annotation)
        except _Refused as why:
            self.active[site] = why.row
            raise TypeError(str(why)) from None
        if found is not value:
            self.active[site] = DECLARED
        return found

    def _type(self, annotation: str) -> Any:
        """What an annotation means, or None for what Python itself cannot evaluate: it does not, of variables."""
        try:
            found = eval(annotation, self.module)  # noqa: S307 - generated here
            return eval(found, self.module) if isinstance(found, str) else found  # noqa: S307
        except (NameError, TypeError):
            return None

    def _converted(self, value: Any, annotation: Any) -> Any:
        origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
        if annotation in _NUMBERS:
            return _number(value, annotation)
        if annotation is None or annotation is types.NoneType or annotation is Any:
            return value
        if origin is typing.Union:
            return self._member(value, annotation, parts)
        if value is None:
            raise _Refused(NO_RESULT, f"{_name(annotation)} is declared, but the value is None")
        if annotation is torch.Tensor and isinstance(value, _NUMBERS):
            raise _Refused(NUMBER_GIVEN, f"a Tensor is declared, but the value is of type {type(value).__name__}")
        if origin is list and isinstance(value, (list, tuple)):
            items = [self._converted(each, parts[0]) for each in value]
            same = isinstance(value, list) and all(a is b for a, b in zip(items, value, strict=True))
            return self._noted(value if same else items, parts[0])
        if origin is dict and isinstance(value, dict):
            pairs = {self._converted(key, parts[0]): self._converted(each, parts[1]) for key, each in value.items()}
            same = all(
                a is b for pair in zip(pairs.items(), value.items(), strict=True) for a, b in zip(*pair, strict=True)
            )
            found = self._noted(value if same else pairs, parts[1])
            self.keys[id(found)] = (found, parts[0])
            return found
        if origin is tuple and type(value) is tuple and len(parts) == len(value):
            items = [self._converted(each, part) for each, part in zip(value, parts, strict=True)]
            return value if all(a is b for a, b in zip(items, value, strict=True)) else tuple(items)
        return value

    def _member(self, value: Any, annotation: Any, members: tuple[Any, ...]) -> Any:
        """``value`` as one of the ``members`` of a Union."""
        others = [each for each in members if each is not types.NoneType]
        if value is None and len(others) < len(members):
            return value
        if len(others) == 1:
            return self._converted(value, others[0])
        if any(isinstance(each, type) and type(value) is each for each in others):
            return value
        if value is not None and not isinstance(value, (*_NUMBERS, torch.Tensor)):
            return value
        refused = _Refused(NO_RESULT if value is None else TENSOR_GIVEN, f"must be {_name(annotation)}")
        for each in (each for each in _BY_RANK if each in others):
            try:
                return self._converted(value, each)
            except _Refused as why:
                refused = why
        raise refused

    def _noted(self, container: Any, element: Any) -> Any:
        self.elements[id(container)] = (container, element)
        return container


_FIELDS: Final = "_declared_fields_"


def _number(value: Any, kind: Any) -> Any:
    if type(value) is kind:
        return value
    if value is None:
        raise _Refused(NO_RESULT, f"must be {kind.__name__}, not NoneType")
    if isinstance(value, torch.Tensor):
        raise _Refused(TENSOR_GIVEN, f"must be {kind.__name__}, not Tensor")
    if not isinstance(value, _NUMBERS):
        return value
    holds = {
        bool: isinstance(value, int) and value in (0, 1),
        int: isinstance(value, int),
        float: not isinstance(value, complex),
        complex: True,
    }
    if not holds[kind]:
        raise _Refused(NOT_DECLARED, f"expected {'an int' if kind is int else f'a {kind.__name__}'}, got {value!r}")
    return kind(value)


def _name(annotation: Any) -> str:
    return getattr(annotation, "__name__", str(annotation))


# ---------------------------------------------------------------------------------------------------- the rewriting


def converting(source: str) -> str:
    """The text of a program whose sites call :data:`NAME`."""
    return ast.unparse(ast.fix_missing_locations(_Sites().visit(ast.parse(source)))) + "\n"


@dataclass(slots=True)
class _Scope:
    """A function, or a class: ``variables`` are the annotations of its variables, ``returns`` that of its result."""

    variables: dict[str, str] = field(default_factory=dict)
    returns: str = ""


def _nodes_of(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes of a function without those of the functions and classes within it."""
    for node in body:
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Lambda)):
            yield from _nodes_of(list(ast.iter_child_nodes(node)))  # type: ignore[arg-type]


_IN_PLACE: Final = {
    ast.Add: "iadd",
    ast.Sub: "isub",
    ast.Mult: "imul",
    ast.Div: "itruediv",
    ast.FloorDiv: "ifloordiv",
    ast.Mod: "imod",
    ast.MatMult: "imatmul",
    ast.LShift: "ilshift",
    ast.RShift: "irshift",
    ast.BitAnd: "iand",
    ast.BitOr: "ior",
    ast.BitXor: "ixor",
}


def _is_pure(node: ast.AST) -> bool:
    """Whether an expression may be evaluated twice."""
    return not any(isinstance(each, (ast.Call, ast.NamedExpr, ast.Await)) for each in ast.walk(node))


def _loaded(target: Any) -> Any:
    return ast.parse(ast.unparse(target), mode="eval").body


def _is_row(tree: Any) -> bool:
    """Whether ``tree`` is what stands for a call of ``tolist()``."""
    match tree:
        case ast.Call(func=ast.Attribute(attr="row")):
            return True
    return False


class _Sites(ast.NodeTransformer):
    """Puts the calls into a program."""

    def __init__(self) -> None:
        self.count = 0
        self.scopes: list[_Scope] = [_Scope()]

    def _call(self, method: str, *arguments: ast.expr | str) -> ast.expr:
        self.count += 1
        given = [ast.Constant(self.count), *(ast.Constant(a) if isinstance(a, str) else a for a in arguments)]
        return ast.Call(ast.Attribute(ast.Name(NAME, ast.Load()), method, ast.Load()), given, [])

    def _declared(self, value: Any, annotation: str) -> ast.expr:
        match value:
            case ast.Call(func=ast.Attribute(attr="row"), args=[_, tensor]):
                return self._call("tolist", ast.Call(ast.Attribute(tensor, "tolist", ast.Load()), [], []), annotation)
            case ast.List(elts=parts) if annotation.startswith("List["):
                element = annotation.removeprefix("List[").removesuffix("]")
                value.elts = [self._declared(part, element) if _is_row(part) else part for part in parts]
        return self._call("declared", value, annotation)

    def _annotation(self, target: Any) -> str:
        return self.scopes[-1].variables.get(target.id, "") if isinstance(target, ast.Name) else ""

    def _posts(self, *targets: Any) -> list[ast.stmt]:
        """What converts the variables and attributes in ``targets`` after they were assigned."""
        found: list[ast.stmt] = []
        for target in targets:
            match target:
                case ast.Tuple(elts=parts) | ast.List(elts=parts):
                    found += self._posts(*parts)
                case ast.Name() if self._annotation(target):
                    value = self._call("declared", _loaded(target), self._annotation(target))
                    found.append(ast.Assign([target], value))
                case ast.Attribute(value=owner, attr=name) if _is_pure(owner):
                    value = self._call("field", _loaded(target), _loaded(owner), name)
                    found.append(ast.Assign([target], value))
        return found

    # ------------------------------------------------------------------------------------------------ definitions

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        nodes = list(_nodes_of(node.body))
        scope = _Scope(returns="" if node.returns is None else ast.unparse(node.returns))
        if any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in nodes):
            scope.returns = ""
        parameters = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        given = {each.arg: ast.unparse(each.annotation) for each in parameters if each.annotation is not None}
        scope.variables = {name: text for name, text in given.items() if text.startswith(("List[", "Dict["))}
        for each in nodes:
            match each:
                case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                    scope.variables[name] = ast.unparse(annotation)
        self.scopes.append(scope)
        node.body = [each for statement in node.body for each in _statements(self.visit(statement))]
        self.scopes.pop()
        node.body[:0] = [
            ast.Assign([ast.Name(name, ast.Store())], self._declared(_loaded(ast.Name(name)), annotation))
            for name, annotation in given.items()
        ]
        if scope.returns not in ("", "None"):
            node.body.append(ast.Return(self._declared(ast.Constant(None), scope.returns)))
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        declared: dict[str, str] = {}
        own: dict[str, str] = {}
        for each in node.body:
            match each:
                case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                    own[name] = ast.unparse(annotation)
                case ast.FunctionDef(name="__init__"):
                    declared |= {a.arg: ast.unparse(a.annotation) for a in each.args.args if a.annotation is not None}
        for each in ast.walk(node):
            match each:
                case ast.AnnAssign(target=ast.Attribute(attr=name), annotation=annotation):
                    declared[name] = ast.unparse(annotation)
        methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
        self.scopes.append(_Scope())
        node.body = [self.visit(each) if each in methods else each for each in node.body]
        self.scopes.pop()
        sites = {}
        for name in own:
            self.count += 1
            sites[name] = self.count
        texts = ast.parse(f"{NAME}.fields({node.name}, {declared | own!r}, {sites!r})").body
        return [node, *texts]

    # ------------------------------------------------------------------------------------------------- statements

    def visit_Return(self, node: ast.Return) -> Any:
        self.generic_visit(node)
        returns = self.scopes[-1].returns
        if returns not in ("", "None"):
            node.value = self._declared(node.value or ast.Constant(None), returns)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        self.generic_visit(node)
        if node.value is None or len(self.scopes) == 1:
            return node
        if isinstance(node.target, ast.Name):
            node.value = self._declared(node.value, ast.unparse(node.annotation))
            return node
        node.value = self._given(node.target, node.value)
        return node

    def visit_Assign(self, node: ast.Assign) -> Any:
        self.generic_visit(node)
        if len(node.targets) > 1 or isinstance(node.targets[0], (ast.Tuple, ast.List)):
            return [node, *self._posts(*node.targets)]
        node.value = self._given(node.targets[0], node.value)
        return node

    def _given(self, target: ast.expr, value: ast.expr) -> ast.expr:
        """What ``target`` is assigned of ``value``."""
        match target:
            case ast.Name() if self._annotation(target):
                return self._declared(value, self._annotation(target))
            case ast.Attribute(value=owner, attr=name) if _is_pure(owner):
                return self._call("field", value, _loaded(owner), name)
            case ast.Subscript(value=owner, slice=index) if _is_pure(owner):
                if not any(isinstance(each, ast.Slice) for each in (index, *getattr(index, "elts", []))):
                    target.slice = self._call("key", index, _loaded(owner))
                return self._call("items" if isinstance(index, ast.Slice) else "item", value, _loaded(owner))
        return value

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        self.generic_visit(node)
        if not _is_pure(node.target):
            return node
        before = _loaded(node.target)
        if isinstance(node.op, ast.Pow):
            value = self._call("power_in_place", before, node.value)
        else:
            value = self._call("in_place", before, _IN_PLACE[type(node.op)], node.value)
        return ast.Assign([node.target], self._given(node.target, value))

    def visit_For(self, node: ast.For) -> Any:
        self.generic_visit(node)
        node.iter = self._call("iterated", node.iter)
        node.body[:0] = self._posts(node.target)
        return node

    # ------------------------------------------------------------------------------------------------ expressions

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Any:
        self.generic_visit(node)
        if self._annotation(node.target):
            node.value = self._declared(node.value, self._annotation(node.target))
        return node

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        return self._call("power", node.left, node.right) if isinstance(node.op, ast.Pow) else node

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Name(id="pow"), args=[base, exponent], keywords=[]):
                return self._call("power", base, exponent)
            case ast.Call(func=ast.Attribute(value=tensor, attr="tolist"), args=[]):
                return self._call("row", tensor)
            case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in _MUTATORS:
                node.func = self._call("method", owner, name)
        return node


def _statements(visited: Any) -> list[ast.stmt]:
    return visited if isinstance(visited, list) else [visited]
