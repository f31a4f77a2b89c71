"""Name resolution: which dotted name an expression refers to, through imports, assignments and scopes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from rekindle.doctor.names import JIT, ROOTS

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
ScopeNode: TypeAlias = ast.Module | ast.ClassDef | FunctionNode
SCOPES: Final = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)

_MAX_PARTS: Final = 12
"""Largest number of dots in a dotted name. Import cycles would make longer ones."""


@dataclass(slots=True, eq=False)
class Scope:
    """The names that a module, a class or a function binds. ``names`` maps each to the dotted names that it may refer
    to; to none if it refers to something else."""

    node: ScopeNode
    outer: Scope | None
    names: dict[str, set[str]] = field(default_factory=dict)
    star_imports: set[str] = field(default_factory=set)

    def lookup(self, name: str) -> set[str]:
        """Return the dotted names to which ``name`` may refer in this scope; an empty set if they are unknown."""
        scope: Scope | None = self
        while scope is not None:
            is_visible = scope is self or not isinstance(scope.node, ast.ClassDef)
            if is_visible and name in scope.names:
                return scope.names[name]
            if is_visible and name in JIT:
                found = {f"{module}.{name}" for module in scope.star_imports if module in ROOTS}
                if found:
                    return found
            scope = scope.outer
        return set()

    def dotted(self, node: ast.expr) -> set[str]:
        """Return the dotted names to which an expression may refer; an empty set if they are unknown."""
        match node:
            case ast.Name(id=name):
                return self.lookup(name)
            case ast.Attribute(value=value, attr=attribute):
                return {f"{base}.{attribute}" for base in self.dotted(value)}
            case ast.Call(func=ast.Name(id="getattr"), args=[value, ast.Constant(value=str(attribute)), *_]):
                return {f"{base}.{attribute}" for base in self.dotted(value)}
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(path)), *_],
            ):
                return {path}
            case ast.IfExp(body=body, orelse=orelse):
                return self.dotted(body) | self.dotted(orelse)
            case ast.BoolOp(values=values):
                return {name for value in values for name in self.dotted(value)}
            case ast.NamedExpr(value=value):
                return self.dotted(value)
            case ast.Call(func=function, args=[value, *_]) if "functools.partial" in self.dotted(function):
                return self.dotted(value)
        return set()


def scopes_of(tree: ast.Module, module: str, is_package: bool) -> dict[ast.AST, Scope]:
    """Return the scope of each module, class and function of a file. ``module`` is the name of the file's module.
    ``is_package`` is whether the file is the ``__init__.py`` of a package."""
    found: dict[ast.AST, Scope] = {}
    _enter(tree, None, module if is_package else module.rpartition(".")[0], found)
    return found


def _enter(node: ScopeNode, outer: Scope | None, package: str, found: dict[ast.AST, Scope]) -> None:
    scope = Scope(node, outer)
    found[node] = scope
    own = list(_own_nodes(node))
    if isinstance(node, FunctionNode):
        for parameter in _parameters(node.args):
            scope.names.setdefault(parameter.arg, set())
    for each in own:
        _bind_import(each, scope, package)
    _bind_assignments(own, scope)
    for each in own:
        if isinstance(each, SCOPES):
            _enter(each, scope, package, found)


def _own_nodes(node: ScopeNode) -> Iterator[ast.AST]:
    """Yield the syntax nodes that are evaluated in the scope of ``node``. Nested functions and classes are included,
    their bodies are not."""
    body = [node.body] if isinstance(node, ast.Lambda) else node.body
    work: list[ast.AST] = list(reversed(body))
    while work:
        each = work.pop()
        yield each
        work.extend(reversed(list(evaluated_outside(each) if isinstance(each, SCOPES) else ast.iter_child_nodes(each))))


def evaluated_outside(node: ScopeNode) -> Iterator[ast.AST]:
    """Yield the parts of a class or a function that are evaluated in the enclosing scope: decorators, defaults,
    annotations and bases."""
    if isinstance(node, ast.Module):
        return
    if isinstance(node, ast.ClassDef):
        yield from (*node.decorator_list, *node.bases, *node.keywords)
        return
    arguments = node.args
    yield from arguments.defaults
    yield from (default for default in arguments.kw_defaults if default is not None)
    if isinstance(node, ast.Lambda):
        return
    yield from node.decorator_list
    yield from annotations_of(node)


def annotations_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.expr]:
    """Yield the annotations of the parameters and of the result of a function."""
    yield from (each.annotation for each in _parameters(node.args) if each.annotation is not None)
    if node.returns is not None:
        yield node.returns


def _parameters(arguments: ast.arguments) -> list[ast.arg]:
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return [each for each in every if each is not None]


def _bind_import(node: ast.AST, scope: Scope, package: str) -> None:
    if isinstance(node, ast.Import):
        for alias in node.names:
            root = alias.name.partition(".")[0]
            scope.names.setdefault(alias.asname or root, set()).add(alias.name if alias.asname else root)
    elif isinstance(node, ast.ImportFrom):
        module = imported_module(node, package)
        for alias in node.names:
            if alias.name == "*":
                scope.star_imports.add(module)
            else:
                scope.names.setdefault(alias.asname or alias.name, set()).add(f"{module}.{alias.name}")


def imported_module(node: ast.ImportFrom, package: str) -> str:
    """Return the absolute name of the module in a ``from … import`` statement; relative ones start from ``package``."""
    if node.level == 0:
        return node.module or ""
    parts = package.split(".")
    base = ".".join(parts[: len(parts) - node.level + 1])
    return f"{base}.{node.module}" if node.module else base


def _bind_assignments(own: list[ast.AST], scope: Scope) -> None:
    """Add to ``scope`` the names that assignments, definitions, loops and exception handlers in ``own`` bind."""
    assignments: list[tuple[str, ast.expr]] = []
    for node in own:
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                scope.names.setdefault(name, set())
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                scope.names.setdefault(name, set())
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                scope.names.setdefault(name, set())
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                for name in names:
                    scope.names.setdefault(name, set())
        match node:
            case ast.Assign(targets=targets, value=value):
                assignments += [(target.id, value) for target in targets if isinstance(target, ast.Name)]
                assignments += _pairs(targets, value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                assignments.append((name, value))
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                assignments.append((name, value))
    grown = True
    while grown:
        grown = False
        for name, value in assignments:
            known = scope.names.setdefault(name, set())
            # What extends a name that is known comes from assignments that lead back to themselves: x = x.next.
            new = {each for each in scope.dotted(value) if not any(f"{each}.".startswith(f"{old}.") for old in known)}
            known |= new
            grown = grown or bool(new)


def _pairs(targets: list[ast.expr], value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names and values of ``a, b = x, y``."""
    for target in targets:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for each, of in zip(target.elts, value.elts, strict=True):
                if isinstance(each, ast.Name):
                    yield each.id, of


def expand_star_imports(modules: Mapping[str, Scope]) -> None:
    """Add to the scope of each module the names that ``from … import *`` imports from other modules of ``modules``."""
    for scope in modules.values():
        for module in scope.star_imports:
            for name in _public_names(module, modules, set()):
                scope.names.setdefault(name, set()).add(f"{module}.{name}")


def _public_names(module: str, modules: Mapping[str, Scope], seen: set[str]) -> set[str]:
    scope = modules.get(module)
    if scope is None or module in seen:
        return set()
    seen.add(module)
    found = {name for name in scope.names if not name.startswith("_")}
    return found.union(*(_public_names(each, modules, seen) for each in scope.star_imports))


def through_modules(dotted: str, modules: Mapping[str, Scope]) -> set[str]:
    """Return ``dotted`` and all names that it is an alias of, through imports and assignments in ``modules``."""
    work, found, seen = [dotted], set[str](), set[str]()
    while work:
        name = work.pop()
        if name in seen or name.count(".") > _MAX_PARTS:
            continue
        seen.add(name)
        found.add(name)
        parts = name.split(".")
        for count in range(len(parts) - 1, 0, -1):
            scope = modules.get(".".join(parts[:count]))
            if scope is not None:
                rest = parts[count + 1 :]
                work += [".".join([each, *rest]) for each in scope.lookup(parts[count])]
                break
    return found
