"""Rewrite dicts of keyword arguments: variables that hold dict literals, and are only expanded in calls. A call of
``dict`` with keyword arguments, ``dict(scale=2.0)``, counts as a literal.

.. code-block:: text

    options = {}                           options = 0
    if scaled:                             if scaled:
        options = {"scale": s * 2}   becomes   $value = s * 2
    return f(x, **options)                     options = 1
                                           return f(x, scale=$value) if options == 1 else f(x)

The variable becomes the number of its literal. The keyword arguments of each literal are then known where it is
expanded, whatever the types of their values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from rekindle.syntax.desugaring import hidden, together
from rekindle.syntax.tree import Child, Tree
from rekindle.syntax.views import (
    Apply,
    Assign,
    Attribute,
    BinOp,
    Const,
    Def,
    DictLiteral,
    Expansion,
    Expr,
    FalseLiteral,
    Ident,
    Lambda,
    NoneLiteral,
    Param,
    StringLiteral,
    TernaryIf,
    TrueLiteral,
    Var,
    bare,
)

_CONSTANT: Final = (Const.KIND, StringLiteral.KIND, TrueLiteral.KIND, FalseLiteral.KIND, NoneLiteral.KIND)
_MAX_LITERALS: Final = 4
"""The number of literals up to which a call is repeated for each."""


def with_known_keywords(definition: Def, names: Set[str], is_dict_builtin: bool = True) -> Def:
    """Return a definition in which the dicts of keyword arguments among the variables ``names`` are rewritten: those
    that are assigned literals whose keys are strings, and are otherwise only expanded in calls. Calls of ``dict`` are
    literals if it is Python's class."""
    uses = {name: _Uses() for name in names}
    mentions = Counter[str]()
    is_builtin = is_dict_builtin and not _binds_dict(definition.tree)
    root = _with_literals(definition.tree) if is_builtin else definition.tree
    for tree, is_own in _within(root):
        if tree.kind != StringLiteral.KIND:
            mentions.update(child for child in tree.children if isinstance(child, str) and child in names)
        if is_own:
            _note(tree, uses)
    for index, statement in enumerate(Def(root).body):
        _note_order(statement.tree, index, uses)
    taken = {
        name: use
        for name, use in uses.items()
        if use.is_known and mentions[name] == len(use.literals) + use.expansions and name not in _nested(use, names)
    }
    return Def(_rewritten(root, taken)) if taken else definition


def literal_of_dict(call: Apply) -> DictLiteral:
    """Return the dict literal equivalent to a call of ``dict``: ``{"loss": 0.0, **d}`` for ``dict(loss=0.0, **d)``."""
    keys: list[Expr] = [
        bare(Expansion, item.range) if item.is_expansion else StringLiteral.create(item.name.range, item.name.name)
        for item in call.attributes
    ]
    return DictLiteral.create(call.range, keys, [item.value for item in call.attributes])


def _binds_dict(root: Tree) -> bool:
    """Return whether a parameter, a function or an assigned variable of a definition is called ``dict``."""
    for tree in root.walk():
        if tree.kind in (Def.KIND, Param.KIND) and tree.subtree(0).string(0) == "dict":
            return True
        targets = Assign(tree).targets if tree.kind == Assign.KIND else ()
        if any(each.tree.kind == Var.KIND and Var(each.tree).name.name == "dict" for each in targets):
            return True
    return False


def _with_literals(tree: Tree) -> Tree:
    """Return ``tree`` with literals in place of the calls of ``dict`` that are assigned."""
    children: list[Child] = [_with_literals(child) if isinstance(child, Tree) else child for child in tree.children]
    if all(new is old for new, old in zip(children, tree.children, strict=True)):
        made = tree
    else:
        made = Tree(tree.kind, tree.range, tuple(children))
    value = Assign(made).value if tree.kind == Assign.KIND else None
    call = Apply(value.tree) if value is not None and value.tree.kind == Apply.KIND else None
    if call is None or call.callee_name != "dict" or call.inputs:
        return made
    return Assign.create(made.range, Assign(made).targets, literal_of_dict(call), Assign(made).annotation).tree


@dataclass(slots=True)
class _Uses:
    """The assignments of a variable, and the number of times that calls expand it."""

    literals: list[Tree] = field(default_factory=list)
    """The assigned dict literals, in the order of the source."""
    expansions: int = 0
    assigned_at: int | None = None
    """The index of the statement of the body that assigns it; None if that is part of another statement."""
    first_expanded_in: int | None = None
    """The index of the first statement of the body with an expansion."""

    @property
    def is_known(self) -> bool:
        """Whether the keys are known wherever it is expanded."""
        if not self.expansions or not 1 <= len(self.literals) <= _MAX_LITERALS:
            return False
        if not all(map(_has_names, self.literals)):
            return False
        if len(self.literals) > 1:
            return True  # the test which literal it holds raises if it is unassigned
        first = self.first_expanded_in
        return self.assigned_at is not None and first is not None and self.assigned_at < first


def _within(root: Tree) -> Iterator[tuple[Tree, bool]]:
    """Yield the trees in a definition or a statement, in the order of the source, and whether they are outside of
    functions within it."""
    stack = [(root, True)]
    while stack:
        tree, is_own = stack.pop()
        yield tree, is_own
        for child in reversed(tree.children):
            if isinstance(child, Tree):
                stack.append((child, is_own and child.kind not in (Def.KIND, Lambda.KIND)))


def _note(tree: Tree, uses: dict[str, _Uses]) -> None:
    if tree.kind == Attribute.KIND:
        name = _expanded(Attribute(tree))
        if name in uses:
            uses[name].expansions += 1
    elif tree.kind == Assign.KIND:
        name, literal = _assigned(Assign(tree))
        if name in uses and literal is not None:
            uses[name].literals.append(literal.tree)


def _note_order(statement: Tree, index: int, uses: dict[str, _Uses]) -> None:
    name, _ = _assigned(Assign(statement)) if statement.kind == Assign.KIND else (None, None)
    if name in uses and uses[name].assigned_at is None:
        uses[name].assigned_at = index
    for tree, _ in _within(statement):
        expanded = _expanded(Attribute(tree)) if tree.kind == Attribute.KIND else None
        if expanded in uses and uses[expanded].first_expanded_in is None:
            uses[expanded].first_expanded_in = index


def _nested(use: _Uses, names: Set[str]) -> set[str]:
    """Return the variables among ``names`` that the values of the literals mention."""
    return {
        tree.string(0)
        for literal in use.literals
        for tree in literal.walk()
        if tree.kind == Ident.KIND and tree.string(0) in names
    }


def _expanded(attribute: Attribute) -> str | None:
    """Return the name of the variable that ``**name`` expands; None for other arguments."""
    value = attribute.value
    return Var(value.tree).name.name if attribute.is_expansion and value.tree.kind == Var.KIND else None


def _assigned(statement: Assign) -> tuple[str | None, DictLiteral | None]:
    """Return the one variable and the dict literal of an assignment without annotation; None for others."""
    value, targets = statement.value, statement.targets
    if value is None or statement.annotation is not None or len(targets) != 1:
        return None, None
    if value.tree.kind != DictLiteral.KIND or targets[0].tree.kind != Var.KIND:
        return None, None
    return Var(targets[0].tree).name.name, DictLiteral(value.tree)


def _has_names(literal: Tree) -> bool:
    """Return whether the keys of a dict literal are different names of arguments, as strings."""
    keys = DictLiteral(literal).keys
    if any(key.tree.kind != StringLiteral.KIND for key in keys):
        return False
    names = [StringLiteral(key.tree).text for key in keys]
    return all(map(str.isidentifier, names)) and len(set(names)) == len(names)


# ------------------------------------------------------------------------------------------------------------ rewriting


def _rewritten(tree: Tree, uses: dict[str, _Uses]) -> Tree:
    children: list[Child] = [_rewritten(child, uses) if isinstance(child, Tree) else child for child in tree.children]
    made = Tree(tree.kind, tree.range, tuple(children))
    if tree.kind == Assign.KIND:
        name, literal = _assigned(Assign(tree))
        if name in uses and literal is not None:
            return _numbered(made, uses[name].literals.index(literal.tree))
    if tree.kind == Apply.KIND:
        expanded = [_expanded(attribute) for attribute in Apply(tree).attributes]
        for name in dict.fromkeys(each for each in expanded if each in uses):
            assert name is not None
            made = _each(made, partial(_spelled, name, uses[name].literals))
    return made


def _numbered(statement: Tree, index: int) -> Tree:
    """Return the assignment of the number of a literal in place of the literal, and of its values to variables."""
    assign = Assign(statement)
    assert assign.value is not None
    literal, range = DictLiteral(assign.value.tree), statement.range
    values = [each for each in literal.values if each.tree.kind not in _CONSTANT]
    before = [Assign.create(range, [_variable(each)], each) for each in values]
    number = Assign.create(range, assign.targets, Const.create(range, str(index)))
    return together(range, [*before, number]).tree if before else number.tree


def _variable(value: Expr) -> Var:
    """Return the variable that holds the value of a key; it is identified by its location."""
    return hidden(value.range, "keyword")


def _each(tree: Tree, change: Callable[[Tree], Tree]) -> Tree:
    """Return the calls that a rewritten call has become, each changed again."""
    if tree.kind != TernaryIf.KIND:
        return change(tree)
    condition, *branches = tree.subtrees()
    return Tree(tree.kind, tree.range, (condition, *(_each(branch, change) for branch in branches)))


def _spelled(name: str, literals: Sequence[Tree], call: Tree) -> Tree:
    """Return a call for each literal that the variable ``name`` may hold, selected by its number."""
    calls = [_with_arguments(Apply(call), name, DictLiteral(literal)) for literal in literals]
    range = call.range
    result: Expr = calls[0]
    for index, made in enumerate(calls[1:], 1):
        number = Const.create(range, str(index))
        test = BinOp.create(range, "==", Var.create(range, Ident.create(range, name)), number)
        result = TernaryIf.create(range, test, made, result)
    return result.tree


def _with_arguments(call: Apply, name: str, literal: DictLiteral) -> Apply:
    """Return a call with the keyword arguments of a literal in place of ``**name``."""
    attributes: list[Attribute] = []
    for attribute in call.attributes:
        if _expanded(attribute) != name:
            attributes.append(attribute)
            continue
        for key, value in zip(literal.keys, literal.values, strict=True):
            given = value if value.tree.kind in _CONSTANT else _variable(value)
            ident = Ident.create(attribute.range, StringLiteral(key.tree).text)
            attributes.append(Attribute.create(attribute.range, ident, given))
    return Apply.create(call.range, call.callee, call.inputs, attributes)
