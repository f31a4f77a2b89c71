"""Script classes at compile time: a call of a class creates an object, and ``__init__`` declares its attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from rekindle.errors import CascadingError, Cause, SourceRange, TypeMismatchError, UndefinedNameError, UnsupportedError
from rekindle.frontend.containers.set_values import check_attribute
from rekindle.frontend.inference.type_inference import RestartEmission
from rekindle.frontend.sugared_values.base import CallSite, SugaredValue
from rekindle.frontend.sugared_values.special_forms import SpecialForm
from rekindle.frontend.sugared_values.values import FunctionValue, MethodValue, SimpleValue
from rekindle.ir.graph import AttributeValue, Graph, Value
from rekindle.ir.operators.schema_matching import NamedValue
from rekindle.ir.types import TENSOR, ClassType, Type, unshaped


def construct(
    type: ClassType, range: SourceRange, graph: Graph, args: Sequence[NamedValue], kwargs: Sequence[NamedValue]
) -> SugaredValue:
    """Emit ``type(args, kwargs)``: the creation of an object with the initial values of the class body, then the call
    of its ``__init__``. Return the object.

    Raises:
        CascadingError: the class could not be compiled.
        TypeMismatchError: there are arguments, and the class has no ``__init__``.
    """
    init = type.methods.get("__init__")
    if init is None and type.is_incomplete:
        raise CascadingError(f"the class '{type.basename}' could not be compiled")
    if init is None and (args or kwargs):
        raise TypeMismatchError(f"'{type.basename}' takes no arguments: it has no __init__", range)
    made = graph.insert_node(graph.create("prim::CreateObject", types=[type], range=range)).output
    for name, slot in type.attributes.items():
        if slot.initial is not None:
            value = graph.insert_constant(slot.initial(), range=range)
            attributes: dict[str, AttributeValue] = {"name": name}
            graph.insert_node(
                graph.create("prim::SetAttr", [made, value], outputs=0, attributes=attributes, range=range)
            )
    if init is not None:
        MethodValue(made, init).call(CallSite(range, graph, args, kwargs))
    return SimpleValue(made)


class ScriptClassValue(SugaredValue):
    """A class defined in a program. A call of it creates an object."""

    def __init__(self, type: ClassType) -> None:
        self.type = type

    @property
    def description(self) -> str:
        return f"the class '{self.type.basename}'"

    def as_type(self, range: SourceRange) -> Type:
        return self.type

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        record = self.type.methods.get(name) or self.type.static_methods.get(name)
        if record is not None:
            return FunctionValue(record)
        if name in self.type.constants:
            return SimpleValue(graph.insert_constant(self.type.constants[name], range=range))
        return super().attribute(range, graph, name)

    def call(self, call: CallSite) -> SugaredValue:
        return construct(self.type, call.range, call.graph, call.args, call.kwargs)


class NewObject(SpecialForm):
    """``C.__new__``: called with the class, which is not a value of the graph, it returns an object without
    attributes."""

    def __init__(self, type: ClassType) -> None:
        super().__init__("__new__")
        self.type = type


class ObjectBinding:
    """The binding of ``self`` in a method of a script class or a module, as a value of the graph."""

    def __init__(self, type: ClassType) -> None:
        self._type = type

    @property
    def type(self) -> ClassType:
        return self._type

    def sugared(self, value: Value) -> SugaredValue:
        return SimpleValue(value)


class InitBinding:
    """The binding of ``self`` in ``__init__``, where the first assignment of an attribute declares it.

    ``declared`` are the types that the body of the class declares. ``assumed`` are the parameters that are assumed to
    be Tensors because they have no annotation. ``find_method`` returns the method of an object by name, since methods
    that ``__init__`` calls may declare attributes, too; None for an unknown name.
    """

    def __init__(
        self,
        type: ClassType,
        declared: Mapping[str, Type] | None = None,
        assumed: frozenset[str] = frozenset(),
        find_method: Callable[[Value, str], SugaredValue | None] = lambda value, name: None,
    ) -> None:
        self._type = type
        self.declared = declared or {}
        self.assumed = assumed
        self.find_method = find_method

    @property
    def type(self) -> ClassType:
        return self._type

    @contextmanager
    def beginning_again(self) -> Iterator[None]:
        """Return a context manager that removes the attributes declared in its block if the block raises
        RestartEmission."""
        attributes, constants = dict(self._type.attributes), dict(self._type.constants)
        try:
            yield
        except RestartEmission:
            self._type.attributes.clear()
            self._type.attributes.update(attributes)
            self._type.constants.clear()
            self._type.constants.update(constants)
            raise

    def sugared(self, value: Value) -> SugaredValue:
        return ObjectInMaking(value, self)


class _Unfinished(SimpleValue):
    """An object whose ``__init__`` still assigns its attributes."""

    def check_not_frozen(self, range: SourceRange, type: ClassType, name: str) -> None:
        """Allow the assignment, since ``__init__`` of a frozen class assigns attributes, too."""


class ObjectInMaking(SugaredValue):
    """An object in its ``__init__``, which is being compiled."""

    def __init__(self, value: Value, binding: InitBinding) -> None:
        self.value = value
        self.binding = binding
        self.type = binding.type
        self.simple = _Unfinished(value)

    @property
    def description(self) -> str:
        return self.simple.description

    def as_value(self, range: SourceRange, graph: Graph) -> Value:
        return self.value

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        if not self.simple.has_attribute(range, graph, name):
            if self.type.is_incomplete:
                raise CascadingError(f"the assignment of '{name}' may have been given up")
            raise UndefinedNameError(
                f"attribute '{name}' of '{self.type.basename}' is used before __init__ has assigned it", range
            )
        method = self.binding.find_method(self.value, name)
        if method is not None:
            return method
        return self.simple.attribute(range, graph, name)

    def has_attribute(self, range: SourceRange, graph: Graph, name: str) -> bool:
        return self.simple.has_attribute(range, graph, name)

    def attribute_type(self, name: str) -> Type | None:
        return self.type.attribute_type(name) or self.binding.declared.get(name)

    # ------------------------------------------------------------------------------------------------------ assignments

    def declare_attribute(self, range: SourceRange, name: str, type: Type) -> None:
        """Declare an attribute with its type, for ``self.name: type = …`` in ``__init__``.

        Raises:
            TypeMismatchError: the attribute is declared with another type.
            UnsupportedError: a method has this name.
        """
        known = self.attribute_type(name)
        if known is not None and known != type:
            raise TypeMismatchError(
                f"attribute '{name}' of '{self.type.basename}' is declared twice: "
                f"as {known.annotation} and as {type.annotation}",
                range,
                cause=Cause.INVALID_CLASS,
            )
        self._add(range, name, type, is_declared=True)

    def set_attribute(self, range: SourceRange, graph: Graph, name: str, value: Value) -> None:
        if name not in self.type.attributes and name not in self.type.properties:
            declared = self.binding.declared.get(name)
            if declared is not None:
                self._add(range, name, declared, is_declared=True)
            else:
                self._add_from_value(range, graph, name, value)
        self.simple.set_attribute(range, graph, name, value)

    def _add_from_value(self, range: SourceRange, graph: Graph, name: str, value: Value) -> None:
        if graph.insert_point.owning_block is not graph.block:
            raise UnsupportedError(
                f"attribute '{name}' of '{self.type.basename}' is first assigned within an if or a loop, "
                "so that it may not exist afterwards",
                range,
                hint=f"assign it before, or declare its type in the body of the class: {name}: "
                f"{unshaped(value.type).annotation}",
                cause=Cause.INVALID_CLASS,
            )
        self._add(range, name, unshaped(value.type))
        self.type.attributes[name].note = self._note(name, value)

    def _note(self, name: str, value: Value) -> str | None:
        """Return a note for error messages about the attribute's type, if the type was assumed; else None."""
        if value.node.kind == "prim::EmptyListLiteral":
            return f"an empty list without an annotation is a List[Tensor]; write self.{name}: List[…] = []"
        given = value.node.attributes.get("name") if value.node.kind == "prim::Load" else None
        if value.type == TENSOR and given in self.binding.assumed:
            return f"parameter '{given}' of __init__ was assumed to be a Tensor because it has no annotation"
        return None

    def _add(self, range: SourceRange, name: str, type: Type, *, is_declared: bool = False) -> None:
        if name in self.type.attributes:
            return
        if name in self.type.methods or name in self.type.static_methods:
            raise UnsupportedError(
                f"'{name}' is a method of '{self.type.basename}' and cannot be assigned",
                range,
                cause=Cause.INVALID_CLASS,
            )
        check_attribute(self.type.basename, name, type, range)
        self.type.constants.pop(name, None)  # the object's own attribute hides that of the class
        self.type.add_attribute(name, type, is_declared=is_declared)

    # --------------------------------------------------------------------------------------------- as any other object

    def call(self, call: CallSite) -> SugaredValue:
        return self.simple.call(call)

    def length(self, range: SourceRange, graph: Graph) -> Value:
        return self.simple.length(range, graph)

    def item(self, range: SourceRange, graph: Graph, index: Value, type_hint: Type | None = None) -> SugaredValue:
        return self.simple.item(range, graph, index, type_hint)
