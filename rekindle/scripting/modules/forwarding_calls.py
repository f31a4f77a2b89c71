"""Prove that the ``__call__`` of a module's class only calls ``forward`` with the same arguments.

Example: ``flag`` is False in the body of the class, and no method assigns it::

    def __call__(self, *args, **kwargs):
        if self.flag and self.training:
            return self.other(*args, **kwargs)
        return super().__call__(*args, **kwargs)

The proof is a walk over the source along the statements that run. A condition has to follow from constants; other
statements than ``if``, ``pass`` and ``return`` end it without a result. The constants in the class that conditions read
count as declared constants of the module, so that they cannot be assigned once it is compiled.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import weakref
from collections.abc import Callable, Collection, Sequence
from types import FunctionType
from typing import Final

import torch

from rekindle.scripting.modules.class_members import find_member, is_of_pytorch, members_of, owners_of
from rekindle.scripting.modules.dynamic_attributes import may_be_created_by_method
from rekindle.scripting.modules.module_types import ModuleFacts

_SUPER: Final = "super().__call__"
_FORWARD: Final = "self.forward"
_PLAIN: Final = (bool, int, str, type(None))
"""Classes of constants whose truth is known at compile time."""
_INTERNAL: Final = frozenset(vars(torch.nn.Module()))
"""Names of attributes that ``nn.Module`` sets on each object, ``training`` among them."""


def constants_of_call(facts: ModuleFacts, ignored: Collection[str]) -> dict[str, object] | None:
    """Return the constants in the class on which it depends that calls of the module only call ``forward`` with the
    same arguments, by name; None if that cannot be proven. ``ignored`` are the attributes that are not among the
    facts."""
    proof = _Proof(facts, ignored)
    return proof.read if proof.succeeds() else None


class _Proof:
    """A proof for modules with the given properties; ``read`` are the constants in the class that it has read."""

    def __init__(self, facts: ModuleFacts, ignored: Collection[str]) -> None:
        self.facts = facts
        self.ignored = ignored
        self.cls = facts.python_class
        self.read: dict[str, object] = {}

    def succeeds(self) -> bool:
        """Return whether the ``__call__`` of the class and those that it calls by ``super()`` only call ``forward``."""
        for owner in owners_of(self.cls):
            definition = dict(members_of(owner)).get("__call__")
            if definition is None:
                continue
            if is_of_pytorch(definition):
                return True
            callee = self._callee(definition)
            if callee == _FORWARD:
                return not self.facts.has_hooks  # such a call runs none
            if callee is None or _class_of_super(definition) is not owner:
                return False
        return True

    def _callee(self, definition: object) -> str | None:
        """Return by what expression a ``__call__`` calls ``forward`` in the end; None if it may do something else."""
        if not isinstance(definition, FunctionType) or hasattr(definition, "__wrapped__"):
            return None
        if find_member(self.cls, "__getattribute__") is not object.__getattribute__:
            return None
        tree = definition_of(definition)
        if tree is None or tree.decorator_list:
            return None
        arguments = _arguments_of(tree)
        if arguments is None:
            return None
        returned = self._returned(tree.body)
        return next((each for each in (_SUPER, _FORWARD) if returned == f"{each}({arguments})"), None)

    def _returned(self, body: Sequence[ast.stmt]) -> str | None:
        """Return the expression, as text, that the statements return; None if they return none or it is not known."""
        for index, statement in enumerate(body):
            if isinstance(statement, ast.Return):
                return None if statement.value is None else ast.unparse(statement.value)
            if isinstance(statement, ast.If):
                holds = self._truth(statement.test)
                if holds is None:
                    return None
                taken = statement.body if holds else statement.orelse
                return self._returned([*taken, *body[index + 1 :]])
            if not (isinstance(statement, ast.Pass) or _is_text(statement)):
                return None
        return None

    def _truth(self, test: ast.expr) -> bool | None:
        """Return whether a condition holds; None if that is not known. Its evaluation reads constants and ``training``
        alone, so that it has no effects."""
        match test:
            case ast.Constant(value=value) if isinstance(value, _PLAIN):
                return bool(value)
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                return self._truth_of_attribute(name)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                holds = self._truth(operand)
                return None if holds is None else not holds
            case ast.BoolOp(op=ast.And(), values=values):
                return self._decided(values, by=False)
            case ast.BoolOp(op=ast.Or(), values=values):
                return self._decided(values, by=True)
        return None

    def _decided(self, values: Sequence[ast.expr], *, by: bool) -> bool | None:
        """Return the truth of operands that one operand with the truth ``by`` decides; None if it is unknown. Operands
        before that one have to be known, or to be ``self.training``."""
        is_known = True
        for value in values:
            holds = self._truth(value)
            if holds is by:
                return by
            if holds is None:
                if ast.unparse(value) != "self.training" or find_member(self.cls, "training") is not None:
                    return None
                is_known = False
        return not by if is_known else None

    def _truth_of_attribute(self, name: str) -> bool | None:
        facts = self.facts
        if name in facts.constants:
            value = facts.constants[name]
        elif self._is_constant_of_class(name):
            value = self.read[name] = find_member(self.cls, name)
        else:
            return None
        return bool(value) if isinstance(value, _PLAIN) else None

    def _is_constant_of_class(self, name: str) -> bool:
        """Return whether ``self.name`` is a plain constant in the class, which nothing hides and no method assigns."""
        facts = self.facts
        hiding = (facts.attributes, facts.functions, facts.builtins, facts.methods, facts.submodules, facts.failed)
        if name in _INTERNAL or name.startswith("__") or any(name in table for table in hiding):
            return False
        if name in self.ignored or may_be_created_by_method(self.cls, name):
            return False
        return isinstance(find_member(self.cls, name, self), _PLAIN)


def _arguments_of(tree: ast.FunctionDef) -> str | None:
    """Return the arguments, as text, of a call that passes on all parameters but ``self`` as they are. Return None if
    there is no such call, since a parameter has a default."""
    parameters = tree.args
    first, *positional = [*parameters.posonlyargs, *parameters.args] or [ast.arg("")]
    if first.arg != "self" or parameters.defaults or any(parameters.kw_defaults):
        return None
    given = [each.arg for each in positional]
    given += [f"*{parameters.vararg.arg}"] if parameters.vararg else []
    given += [f"{each.arg}={each.arg}" for each in parameters.kwonlyargs]
    given += [f"**{parameters.kwarg.arg}"] if parameters.kwarg else []
    return ", ".join(given)


_DEFINITIONS: Final = weakref.WeakKeyDictionary[Callable[..., object], "ast.FunctionDef | None"]()


def definition_of(function: Callable[..., object]) -> ast.FunctionDef | None:
    """Return the definition of a function; None if its source is unknown."""
    if function not in _DEFINITIONS:
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        except (OSError, TypeError, SyntaxError):
            tree = ast.Pass()
        _DEFINITIONS[function] = tree if isinstance(tree, ast.FunctionDef) else None
    return _DEFINITIONS[function]


def _class_of_super(definition: object) -> object:
    """Return the class whose bases ``super()`` searches in a method; None if it is unknown."""
    if not isinstance(definition, FunctionType) or "super" in definition.__globals__:
        return None
    cells = zip(definition.__code__.co_freevars, definition.__closure__ or (), strict=True)
    return next((cell.cell_contents for name, cell in cells if name == "__class__"), None)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
