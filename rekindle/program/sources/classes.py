"""Classes that a program text defines.

Each gets a Python class, whose methods are the compiled ones: Python makes its objects, reads their attributes and
calls their methods as those of any class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from rekindle.errors import Cause, Diagnostics, SourceRange, UnsupportedError
from rekindle.frontend.emitter import SelfBinding
from rekindle.frontend.signatures import literal_value
from rekindle.frontend.sugared_values.base import EmptyResolver, Resolver, SugaredValue
from rekindle.frontend.sugared_values.classes import InitBinding, ObjectBinding, ScriptClassValue
from rekindle.frontend.sugared_values.interfaces import InterfaceValue, basename, interface_schema
from rekindle.frontend.type_expressions import dotted_name, parse_type_expression
from rekindle.ir.graph import Graph
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.schema import FunctionSchema
from rekindle.ir.types import ClassType, InterfaceType, Property, Type, keep_type
from rekindle.program.calling import call
from rekindle.program.names import unique_name
from rekindle.program.sources.definition import define_function
from rekindle.runtime.calls.arguments import bind
from rekindle.runtime.executor import execute
from rekindle.syntax.views import Assign, ClassDef, Decorated, Def, ExprStmt, Pass, Stmt, StringLiteral, Var

DefinedType: TypeAlias = ClassType | InterfaceType
"""Types that a class of a program text defines."""

_INTERFACES: Final = {"Interface": False, "ModuleInterface": True}
"""The bases that make an interface of a class, and whether it is one of modules."""


class ClassNames(EmptyResolver):
    """Classes and interfaces of a program text, by name."""

    def __init__(self, classes: dict[str, DefinedType]) -> None:
        self.classes = classes

    def resolve_value(self, name: str, range: SourceRange, graph: Graph) -> SugaredValue | None:
        found = self.classes.get(name)
        if isinstance(found, InterfaceType):
            return InterfaceValue(found)
        return None if found is None else ScriptClassValue(found)

    def resolve_type(self, name: str, range: SourceRange) -> Type | None:
        return self.classes.get(name)


def declare_class(name: str, definition: ClassDef) -> DefinedType:
    """Return a new class or interface with this name, made unique, without contents."""
    qualified = unique_name(f"__torch__.{name}")
    base = _only_base(definition)
    return InterfaceType(qualified, is_module=_INTERFACES[base]) if base in _INTERFACES else ClassType(qualified)


def _only_base(definition: ClassDef) -> str:
    bases = definition.bases
    return Var(bases[0].tree).name.name if len(bases) == 1 and bases[0].tree.kind == Var.KIND else ""


def define_interface(owner: InterfaceType, definition: ClassDef, resolver: Resolver) -> None:
    """Add the methods of ``definition`` to the interface ``owner``.

    Raises:
        CompileError: there is a statement other than a method, a docstring or ``pass``, or a method whose signature is
            not valid.
    """
    for statement in definition.body:
        if statement.tree.kind == Def.KIND:
            method = Def(statement.tree)
            owner.methods[method.name.name] = interface_schema(owner, method, resolver)
        elif not _is_empty(statement):
            raise UnsupportedError("an interface has methods only", statement.range)


def python_class(owner: DefinedType) -> type:
    """Return the Python class of a class that source text defines. For an interface, return a new, empty class with its
    name."""
    if isinstance(owner, ClassType):
        assert owner.python_class is not None
        return owner.python_class
    made = type(basename(owner), (), {"__module__": __name__})
    keep_type(made, owner)
    return made


def define_class(owner: ClassType, definition: ClassDef, resolver: Resolver) -> None:
    """Add the methods and constants of ``definition``, and the attributes that its ``__init__`` assigns, to ``owner``.
    Create its Python class, and compile its methods.

    Raises:
        CompileError: the class has what no script class can have, or a method cannot be compiled.
    """
    diagnostics = Diagnostics()
    with diagnostics.recovering():
        _check_bases(definition)
    declared: dict[str, Type] = {}
    for statement in definition.body:
        with diagnostics.recovering():
            _add_statement(owner, statement, declared, resolver)
    for statement in definition.body:
        if statement.tree.kind == Def.KIND:
            with diagnostics.recovering():
                _add_method(owner, Def(statement.tree), declared, resolver)
        elif statement.tree.kind == Decorated.KIND:
            with diagnostics.recovering():
                _add_decorated(owner, Decorated(statement.tree), resolver)
    owner.is_incomplete = diagnostics.has_failed
    give_python_class(owner)
    methods = [*owner.methods.values(), *owner.static_methods.values()]
    for method in sorted(methods, key=lambda record: record.basename != "__init__"):
        with diagnostics.recovering():
            method.ensure_defined()
    diagnostics.raise_all()


def _check_bases(definition: ClassDef) -> None:
    for base in definition.bases:
        if base.tree.kind == Var.KIND and Var(base.tree).name.name == "object":
            continue
        raise UnsupportedError(
            f"the class '{definition.name.name}' inherits from '{base.range.text}'; "
            "a class that a program uses inherits from nothing",
            base.range,
            hint=f"let it hold an object of '{base.range.text}' as an attribute",
            cause=Cause.INVALID_CLASS,
        )


def _add_statement(owner: ClassType, statement: Stmt, declared: dict[str, Type], resolver: Resolver) -> None:
    """Add a statement of a class body: ``name: type`` declares an attribute in ``declared``, ``name = value`` is a
    constant of ``owner``. Methods, docstrings and ``pass`` are ignored.

    Raises:
        UnsupportedError: it is another statement.
    """
    kind = statement.tree.kind
    if kind in (Def.KIND, Decorated.KIND) or _is_empty(statement):
        return
    assign = Assign(statement.tree) if kind == Assign.KIND else None
    if assign is None or len(assign.targets) != 1 or assign.targets[0].tree.kind != Var.KIND:
        raise UnsupportedError(
            "this is not supported in the body of a class", statement.range, cause=Cause.INVALID_CLASS
        )
    name = Var(assign.targets[0].tree).name.name
    if assign.value is not None:
        owner.constants[name] = literal_value(assign.value)
    elif assign.annotation is not None:
        declared[name] = parse_type_expression(assign.annotation, resolver)


def _is_empty(statement: Stmt) -> bool:
    """Return whether a statement is ``pass`` or a docstring."""
    tree = statement.tree
    return tree.kind == Pass.KIND or (
        tree.kind == ExprStmt.KIND and ExprStmt(tree).expr.tree.kind == StringLiteral.KIND
    )


def _add_method(owner: ClassType, definition: Def, declared: dict[str, Type], resolver: Resolver) -> None:
    name = definition.name.name
    if name in owner.methods:
        raise UnsupportedError(
            f"the method '{name}' is defined twice", definition.name.range, cause=Cause.INVALID_CLASS
        )
    if not definition.params:
        raise UnsupportedError(f"the method '{name}' takes no self", definition.name.range, cause=Cause.INVALID_CLASS)
    assumed = frozenset(param.name.name for param in definition.params if param.annotation is None)
    binding: SelfBinding = InitBinding(owner, declared, assumed) if name == "__init__" else ObjectBinding(owner)

    def define(record: GraphFunction) -> None:
        define_function(record, definition, resolver, self_binding=binding)

    owner.methods[name] = GraphFunction(f"{owner.name}.{name}", function_creator=define)


def _add_decorated(owner: ClassType, decorated: Decorated, resolver: Resolver) -> None:
    """Add a method with ``@staticmethod``, ``@property`` or ``@name.setter``; ``@torch.jit.export`` has no effect here.

    Raises:
        UnsupportedError: the method has another decorator, or several, or is the setter of a property that is not
            defined before it.
    """
    definition, name = decorated.definition, decorated.definition.name.name
    spelled = [dotted_name(item) or item.range.text for item in decorated.decorators]
    (decorator,) = spelled if len(spelled) == 1 else [""]
    if decorator == "staticmethod":

        def define(record: GraphFunction) -> None:
            define_function(record, definition, resolver)

        owner.static_methods[name] = GraphFunction(f"{owner.name}.{name}", function_creator=define)
    elif decorator == "property":
        getter = _accessor(owner, definition, f"__{name}_getter", resolver)
        owner.properties[name] = Property(name, getter)
    elif decorator == f"{name}.setter" and name in owner.properties:
        owner.properties[name].setter = _accessor(owner, definition, f"__{name}_setter", resolver)
    elif decorator in ("torch.jit.export", "export"):
        _add_method(owner, definition, {}, resolver)
    else:
        raise UnsupportedError(
            f"the method '{name}' has a decorator that a program text cannot have: {', '.join(spelled)}",
            decorated.decorators[0].range,
            hint="methods may be decorated with @staticmethod, @property and @name.setter",
            cause=Cause.INVALID_CLASS,
        )


def _accessor(owner: ClassType, definition: Def, name: str, resolver: Resolver) -> GraphFunction:
    """Add the getter or setter of a property to ``owner`` as a method ``name``, and return it. It is compiled on first
    use."""
    _add_method(owner, definition.with_name(name), {}, resolver)
    return owner.methods[name]


def _python_property(item: Property) -> property:
    setter = None if item.setter is None else _python_method(item.setter)
    return property(_python_method(item.getter), setter)


def give_python_class(owner: ClassType) -> None:
    """Create the Python class of ``owner``, a class whose methods and constants are known, and store it there."""
    methods: dict[str, Any] = {name: _python_method(record) for name, record in owner.methods.items()}
    methods |= {name: staticmethod(_python_method(record)) for name, record in owner.static_methods.items()}
    methods |= {name: _python_property(item) for name, item in owner.properties.items()}
    if "__init__" in methods:
        methods["__init__"] = _python_init(owner.basename, owner.methods["__init__"])
    body = {"__module__": owner.name.rpartition(".")[0], **owner.constants, **_without_hidden_calls(methods)}
    made = type(owner.basename, (), body)
    keep_type(made, owner)
    owner.python_class = made


_HIDDEN_CALLS: Final = frozenset(
    {
        *("__del__", "__getattr__", "__getattribute__", "__setattr__", "__delattr__", "__dir__", "__new__"),
        *("__class__", "__slots__", "__init_subclass__", "__class_getitem__", "__set_name__", "__prepare__"),
        *("__get__", "__set__", "__delete__", "__reduce__", "__reduce_ex__", "__getnewargs__", "__getnewargs_ex__"),
        *("__copy__", "__deepcopy__", "__sizeof__", "__fspath__", "__buffer__", "__subclasshook__"),
    }
)
"""Methods that Python calls implicitly, such as when an object is destroyed, or copied."""


def _without_hidden_calls(methods: dict[str, Any]) -> dict[str, Any]:
    """Return the methods that the Python class has, for users in Python: without those that Python calls implicitly,
    such as ``__del__``. Compiled code can call all methods."""
    return {name: method for name, method in methods.items() if name not in _HIDDEN_CALLS}


def _python_method(record: GraphFunction) -> Callable[..., Any]:
    def method(*args: Any, **kwargs: Any) -> Any:
        return call(record, args, kwargs)

    method.__name__ = method.__qualname__ = record.basename
    return method


def _python_init(name: str, record: GraphFunction) -> Callable[..., None]:
    """Return a Python function that runs the compiled ``__init__``. It does not check the object, which has no
    attributes yet."""
    schema: list[FunctionSchema] = []  # made once: what binds arguments is kept for each schema

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if not schema:
            declared = record.schema
            schema.append(FunctionSchema(name, "", declared.arguments[1:], declared.returns))
        execute(record, [self, *bind(schema[0], args, kwargs)])

    init.__name__ = init.__qualname__ = "__init__"
    return init
