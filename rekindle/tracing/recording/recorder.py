"""The recorder: maps Python objects of the run to values of the graph, and records calls as nodes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol

import torch

from rekindle.errors import UNKNOWN_RANGE, SourceRange, TracingError
from rekindle.frontend.calls.builtin_calls import insert_builtin_call
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.operators.schema_matching import NamedValue, unpack_tuple
from rekindle.ir.types import (
    DTYPE,
    FLOAT,
    INT,
    LAYOUT,
    MEMORY_FORMAT,
    TENSOR,
    DictType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
    unify_all,
)
from rekindle.ops.registration.traits import queried_properties
from rekindle.ops.tensor.torchbind_objects import class_of_library_object
from rekindle.runtime.calls.arguments import Runner
from rekindle.tracing.recording.dtypes import DtypeOrigins
from rekindle.tracing.recording.grad_mode import GradMode
from rekindle.tracing.recording.numbers import TracedFloat, TracedInt, all_plain, plain, traced_number, value_of_number
from rekindle.tracing.report import Baked, TraceReport
from rekindle.tracing.source_locations import current_place, module_in_torch, name_of_local, users_place

SCOPE: Final = "prim::TracedModuleForward"
"""The kind of the nodes whose block is one call of a sub-module; lowering turns them into calls of methods."""
ATTRIBUTE: Final = "prim::TracedAttr"
"""The kind of the nodes that represent a parameter, a buffer or a sub-module, by its path from the root."""
WRITE: Final = "prim::TracedSetAttr"
"""The kind of the nodes that represent the new value of an attribute, by its path from the root."""

Path = tuple[str, ...]

_NUMBERED: Final[dict[type, Type]] = {torch.dtype: DTYPE, torch.layout: LAYOUT, torch.memory_format: MEMORY_FORMAT}
"""The IR types of constants that are ints in the IR, by their Python class."""

_OF_ANY_LENGTH: Final = frozenset(
    f"aten::{name}" for name in ("split", "unsafe_split", "unbind", "tensor_split", "nonzero_numpy")
)
"""Kinds whose number of results depends on sizes; a trace unpacks a fixed number."""


class TracerWarning(UserWarning):
    """Warning of :func:`rekindle.trace`, as a rule that a trace is valid for its example only, with the line that
    caused it.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     traced = rekindle.trace(lambda x: x * float(x.sum()), torch.ones(2))
        >>> caught[0].category is rekindle.TracerWarning
        True
    """


class CallObserver(Protocol):
    """The interface of observers of the operators that are called within a recorded call."""

    def note(self, function: Any, args: tuple[Any, ...], result: Any) -> None: ...


class UnnamedScopes:
    """The result of ``torch._C._get_tracing_state()`` if the scopes of nodes are modules: the names that code pushes
    are not recorded."""

    def push_scope(self, name: str) -> None:
        """Do nothing."""

    def pop_scope(self) -> None:
        """Do nothing."""


UNNAMED_SCOPES: Final = UnnamedScopes()


class TracingScopes:
    """The result of ``torch._C._get_tracing_state()`` for code that names the scopes of nodes: ``push_scope(name)``,
    ``pop_scope()``. Nodes get the names of all open scopes, ``outer/inner``."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._open: list[tuple[str, Node]] = []
        """The names, and the nodes before the first that belong to them."""

    def push_scope(self, name: str) -> None:
        end = self._graph.block.return_node
        self._open.append((name, end.prev))

    def pop_scope(self) -> None:
        name = self.current_scope()
        _, before = self._open.pop()
        node = before.next
        while node is not self._graph.block.return_node:
            node.scope = node.scope or name
            node = node.next

    def current_scope(self) -> str:
        return "/".join(name for name, _ in self._open)


class Recorder:
    """The state of a trace that is being recorded. ``modules`` and ``tensors`` map the submodules and tensors of the
    traced module, by identity, to their paths; one object may have several."""

    def __init__(
        self,
        modules: Mapping[int, list[Path]],
        tensors: Mapping[int, Path],
        report: TraceReport | None = None,
        call_compiled: Runner | None = None,
    ) -> None:
        self.graph = Graph()
        self.call_compiled = call_compiled
        """Handler of calls of compiled functions while this is the recorder of a thread."""
        self.report = TraceReport() if report is None else report
        self._modules = modules
        self._tensors = tensors
        self._values: dict[int, tuple[object, Value]] = {}
        self._devices: dict[int, tuple[torch.device, torch.Tensor]] = {}
        self._attributes: dict[Path, Value] = {}
        self.dtypes = DtypeOrigins()
        self.grad_mode = GradMode(self.bake_setting)
        self.casts: CallObserver | None = None
        """Observer of the operators within the current call."""
        self.within_calls = 0
        """Number of recorded calls in progress: their inner calls are not recorded."""
        self.fresh_constants: list[Any] = []
        """Constants that the code creates in each call; see :mod:`rekindle.tracing.recording.creation`."""
        self.path: Path = ()
        """Path of the module whose ``forward`` runs."""
        self.scopes: TracingScopes | None = None
        """The scopes that the traced code names, where it may: see :mod:`rekindle.tracing.trace_graph`."""
        self.leave_module: Callable[[torch.nn.Module, Path], None] = lambda module, path: None
        """Called at the end of a call of a submodule."""

    def close(self) -> None:
        """Release all tensors and modules, once the graph is read: the recorder is part of a reference cycle with
        the functions that it installs, and would otherwise keep them until garbage collection."""
        self._values.clear()
        self._devices.clear()
        self.dtypes = DtypeOrigins()
        self.fresh_constants.clear()
        self.leave_module = lambda module, path: None

    # -------------------------------------------------------------------------------------------------- objects

    def bind(self, thing: object, value: Value) -> None:
        """Record that ``thing``, a tensor, has the graph value ``value`` from now on."""
        self._values[id(thing)] = (thing, value)
        if value.recorded_type is None and isinstance(thing, torch.Tensor):
            value.recorded_type = _type_now(thing)

    def forget(self, thing: object) -> None:
        """Remove the graph value of ``thing``: it is an attribute of the module or a constant from now on."""
        self._values.pop(id(thing), None)

    def known(self, thing: object) -> Value | None:
        """Return the graph value that ``thing`` is bound to: a computed value, an input, an attribute or a constant
        that was used before. Return None if it is not bound."""
        found = self._values.get(id(thing))
        return None if found is None else found[1]

    def is_computed(self, tensor: torch.Tensor) -> bool:
        """Return whether the tensor may be different in another call: its graph value is not a constant."""
        value = self.known(tensor)
        return value is not None and value.node.kind != "prim::Constant"

    def is_of_module(self, item: object) -> bool:
        """Return whether a tensor or C++ object is an attribute of the traced module."""
        return id(item) in self._tensors

    def value_of_tensor(self, tensor: torch.Tensor) -> Value:
        """Return the graph value of ``tensor``: the value it is bound to, an attribute of the module, or otherwise a
        new constant, which the trace report lists.

        Raises:
            TracingError: the tensor requires grad and is neither bound nor an attribute.
        """
        found = self._values.get(id(tensor))
        if found is not None:
            value = found[1]
            if not value.has_name and value.node.kind not in (ATTRIBUTE, "prim::Constant"):
                value.set_name(name_of_local(tensor))
            return value
        path = self._tensors.get(id(tensor))
        value = self._captured(tensor) if path is None else self.attribute(path)
        self.bind(tensor, value)
        return value

    def attribute(self, path: Path, type: Type = TENSOR) -> Value:
        """Return the graph value of the attribute at ``path`` of the root module; its node is inserted on the first
        use."""
        found = self._attributes.get(path)
        if found is None:
            node = self.graph.create(ATTRIBUTE, types=[type], attributes={"path": list(path)}, range=current_place())
            self.graph.block.prepend(node)
            found = self._attributes[path] = node.output
        return found

    def write(self, path: Path, item: object) -> None:
        """Record that the attribute at ``path`` of the root module is ``item``, a tensor or a number, from now on."""
        value = self.argument(item).materialize(self.graph)
        node = self.graph.create(WRITE, [value], outputs=0, attributes={"path": list(path)}, range=current_place())
        self.graph.insert_node(node)

    def _captured(self, tensor: torch.Tensor) -> Value:
        place = users_place()
        if tensor.requires_grad:
            raise TracingError(
                "a tensor that requires grad is used and is neither an input nor part of the traced module; "
                "as a constant it would get no gradient",
                place,
                hint="pass it as an input, make it a parameter of the module, or detach() it",
            )
        self.report.add(Baked.CONSTANT, "a tensor from outside", description(tensor), place)
        return self.constant(tensor.detach())

    def constant(self, value: object) -> Value:
        """Insert a constant at the start of the graph, and return its value."""
        node = self.graph.create_constant(value, range=current_place())
        self.graph.block.prepend(node)
        return node.output

    def is_traced_number(self, item: object) -> bool:
        """Return whether ``item`` is a number that this recording computes."""
        return value_of_number(item, self) is not None

    def remember_device(self, device: torch.device, tensor: torch.Tensor) -> None:
        """Record that ``device``, an object unique to this query, is the device of ``tensor``."""
        self._devices[id(device)] = (device, tensor)

    # ------------------------------------------------------------------------------------------------ arguments

    def argument(self, item: object, name: str | None = None) -> NamedValue:
        """Return an argument of a call as a graph value or a constant, with its name. Dtypes, devices and generators,
        which are constants, are listed in the trace report.

        Raises:
            TracingError: ``item`` has a tensor that requires grad and is neither an input nor part of the traced
                module.
        """
        place = current_place()
        value = self._value(item, place)
        if value is not None:
            return NamedValue(value, range=place, name=name)
        if isinstance(item, torch.dtype):
            self.report.add(Baked.DTYPE, "a dtype that the code names", item, users_place())
        elif isinstance(item, torch.device) or (name == "device" and isinstance(item, (str, int))):
            self.report_device(item)
        elif isinstance(item, torch.Generator):
            self.report.add(Baked.CONSTANT, "a generator of random numbers", "one and the same", users_place())
        declared = _NUMBERED.get(type(item))  # so that a dtype is not a size: x.view(torch.int32)
        return NamedValue(constant=_as_constant(item), range=place, name=name, declared=declared)

    def report_device(self, device: torch.device | str | int) -> None:
        """List a device that the code names, by an object, a string or a number, in the trace report."""
        self.report.add(Baked.DEVICE, "a device that the code names", device, users_place())

    def _value(self, item: object, place: SourceRange) -> Value | None:
        """Return the graph value of ``item``; None if it is a constant. Containers are inserted as new nodes."""
        if isinstance(item, torch.Tensor):
            return self.value_of_tensor(item)
        number = value_of_number(item, self)
        if number is not None:
            return number
        if isinstance(item, torch.ScriptObject):
            path = self._tensors.get(id(item))
            return None if path is None else self.attribute(path, class_of_library_object(item))
        if isinstance(item, torch.device) and id(item) in self._devices:
            return self.insert("prim::device", [self._devices[id(item)][1]])
        if isinstance(item, (list, tuple)) and item:
            return self.sequence(item, place)
        if isinstance(item, dict) and item:
            return self._dict(item, place)
        return None

    def _dict(self, items: dict[Any, Any], place: SourceRange) -> Value | None:
        """Insert a dict of the items and return it; None if its keys or its values have no common type."""
        pairs = [self._item(item, place) for pair in items.items() for item in pair]
        keys, values = unify_all([pair.type for pair in pairs[::2]]), unify_all([pair.type for pair in pairs[1::2]])
        if keys is None or values is None:
            return None
        node = self.graph.create("prim::DictConstruct", pairs, types=[DictType(keys, values)], range=place)
        return self.graph.insert_node(node).output

    def _item(self, item: object, place: SourceRange) -> Value:
        """Return the graph value of an item of a dict. A list whose items have a common type stays a list; other lists
        become tuples."""
        if isinstance(item, list) and item:
            values = [self._item(each, place) for each in item]
            element = unify_all([value.type for value in values])
            if element is not None:
                node = self.graph.create("prim::ListConstruct", values, types=[ListType(element)], range=place)
                return self.graph.insert_node(node).output
        return self.argument(item).materialize(self.graph)

    def dtype_argument(self, dtype: torch.dtype, argument: int | str) -> NamedValue:
        """Return a dtype that is an argument of the current call: a query of a tensor's dtype if its origin is known,
        else a constant.

        ``argument`` is the name of a keyword argument, or a negative position counted from the end.
        """
        name = argument if isinstance(argument, str) else None
        tensor = self.dtypes.origin(dtype, argument)
        if tensor is None or not (self.known(tensor) or self.is_of_module(tensor)):
            return self.argument(dtype, name)
        return NamedValue(self.insert("prim::dtype", [tensor]).set_type(DTYPE), range=current_place(), name=name)

    def sequence(self, items: Sequence[object], place: SourceRange) -> Value:
        """Insert a tuple of the items and return it. It is converted to a list if an operator takes one. Ints among
        floats become floats."""
        numbers = [item for item in items if isinstance(item, (int, float))]
        if len(numbers) == len(items) and any(isinstance(item, float) for item in numbers):
            items = [item if isinstance(item, bool) else self.as_float(item) for item in numbers]
        values = [self.argument(item).materialize(self.graph) for item in items]
        tuple_type = TupleType(tuple(value.type for value in values))
        node = self.graph.create("prim::TupleConstruct", values, types=[tuple_type], range=place)
        return self.graph.insert_node(node).output

    # ---------------------------------------------------------------------------------------------------- nodes

    def insert(
        self,
        kind: str,
        arguments: Sequence[object],
        keywords: Mapping[str, object] | None = None,
        *,
        is_method: bool = False,
    ) -> Value:
        """Insert a call of the operator ``kind``, and return its result. Arguments are objects of the run, or graph
        values as :class:`NamedValue`. With ``is_method``, the first argument is the one that the schema calls ``self``,
        at any position.

        Raises:
            SchemaError: the arguments fit no overload.
        """
        args = [self._as_argument(item) for item in arguments]
        kwargs = [self._as_argument(item, name) for name, item in (keywords or {}).items()]
        if kind != "aten::Int" and not queried_properties(kind):  # whose answers do not depend on the mode
            self.grad_mode.sync(self.graph)
        self_value = args.pop(0) if is_method else None
        return insert_builtin_call(current_place(), self.graph, kind, args, kwargs, self_value)

    def _as_argument(self, item: object, name: str | None = None) -> NamedValue:
        return item if isinstance(item, NamedValue) else self.argument(item, name)

    def node(self, kind: str, inputs: Sequence[Value], types: Sequence[Type]) -> Node:
        """Insert a node with outputs of the given types, and return it."""
        return self.graph.insert_node(self.graph.create(kind, inputs, types=types, range=current_place()))

    def bind_result(self, result: object, value: Value) -> Any:
        """Bind the result of a call to its value in the graph: tensors and numbers, also within lists, tuples and
        dicts.

        Return the result with traced numbers in place of its numbers. Containers with such numbers, lists and dicts are
        new.
        """
        if isinstance(value.type, OptionalType) and result is not None:
            value = self.insert("aten::_unwrap_optional", [NamedValue(value)])
        if isinstance(result, torch.Tensor):
            self.bind(result, value)
            return result
        if isinstance(result, (list, tuple)):
            if isinstance(value.type, TupleType):
                parts = unpack_tuple(self.graph, value, value.node.range)
            elif isinstance(value.type, ListType):
                parts = self.unpacked(value, len(result))
            else:
                return result
            items = [self.bind_result(item, part) for item, part in zip(result, parts, strict=True)]
            if isinstance(result, list) or all(item is given for item, given in zip(items, result, strict=True)):
                return items if isinstance(result, list) else result
            return type(result)(*items) if hasattr(result, "_fields") else tuple(items)
        if isinstance(result, dict) and isinstance(value.type, DictType):
            parts = [self.insert("aten::__getitem__", [NamedValue(value), key]) for key in result]
            return {key: self.bind_result(item, part) for (key, item), part in zip(result.items(), parts, strict=True)}
        if isinstance(result, (int, float)) and not isinstance(result, bool) and value.type in (INT, FLOAT):
            return traced_number(self, result, value)
        return result

    def unpacked(self, value: Value, count: int) -> list[Value]:
        """Insert the unpacking of a list of ``count`` elements, and return them. If the number depends on sizes, report
        it."""
        assert isinstance(value.type, ListType)
        if value.node.kind in _OF_ANY_LENGTH:
            self.report.add(Baked.SIZE, f"the number of tensors that {value.node.kind} gives", count, users_place())
        return list(self.node("prim::ListUnpack", [value], [value.type.element] * count).outputs)

    # -------------------------------------------------------------------------------------------------- numbers

    def size(self, tensor: torch.Tensor, dim: int) -> int:
        """Return the size of dimension ``dim`` as a traced number, and record its computation."""
        value = self.insert("aten::size", [tensor, dim])
        return traced_number(self, tensor.size(dim), value)  # type: ignore[return-value]

    def shape(self, tensor: torch.Tensor) -> torch.Size:
        """Return all sizes as traced numbers."""
        return torch.Size([self.size(tensor, dim) for dim in range(tensor.dim())])

    def as_float(self, number: int | float) -> float:
        """Return a number as a float; a traced int as a traced float, whose conversion is recorded."""
        if isinstance(number, float):
            return number
        if not self.is_traced_number(number):
            return float(plain(number))
        found: float = traced_number(self, float(plain(number)), self.insert("aten::Float", [number]))
        return found

    def arithmetic(self, kind: str, operands: Sequence[object], result: Any) -> Any:
        """Record the operator ``kind`` on numbers, and return ``result`` as a traced number."""
        value = self.insert(kind, operands)
        if isinstance(result, int) and value.type == FLOAT:
            value = self.insert("aten::Int", [NamedValue(value)])
        return traced_number(self, result, value)

    # --------------------------------------------------------------------------------------------------- baking

    def bake_number(self, what: str, result: object, kind: Baked | None = None) -> None:
        """Add to the trace report, and warn, that the trace fixes ``result``, which the code computed from a traced
        number. There is no warning if PyTorch's own code did."""
        kind = kind or (Baked.BRANCH if isinstance(result, bool) else Baked.NUMBER)
        place = users_place()
        within = module_in_torch()
        if within is not None:
            self.report.add(kind, f"{what}, in {within},", result, place)
        elif self.report.add(kind, what, result, place):
            self.warn(what, result, place)

    def bake_tensor(self, what: str, result: object, kind: Baked = Baked.NUMBER) -> None:
        """Add to the trace report, and warn, that the trace fixes a Python value that the code read from a computed
        tensor."""
        place = users_place()
        if self.report.add(kind, what, _short(result), place):
            self.warn(what, result, place)

    def bake_list(self, what: str, length: int) -> None:
        """Add to the trace report, and warn, that the trace fixes the length of a list that the code returns."""
        place = users_place()
        if self.report.add(Baked.SIZE, what, length, place):
            self.warn_of(
                f"{_where(place)}{what} is a list of {length}, which might cause the trace to be incorrect: it always "
                "returns a list of that length. Return a tuple, or trace with strict=False if the length never changes",
                place,
            )

    def bake_setting(self, what: str, result: object, consequence: str) -> None:
        """Add to the trace report, and warn, that the code ran under a setting or had an effect that the trace does not
        reproduce. ``consequence`` is a clause for the warning."""
        place = users_place()
        if self.report.add(Baked.STATE, what, result, place):
            self.warn_of(f"{_where(place)}{what} was {result}: {consequence}", place)

    def warn(self, what: str, result: object, place: SourceRange) -> None:
        line = place.text if place.is_known else ""
        text = f"{what} was {_short(result)} in the example, and the trace takes it to be so always: {line}"
        self.warn_of(f"{_where(place)}{text}", place)

    def warn_of(self, text: str, place: SourceRange = UNKNOWN_RANGE) -> None:
        """Warn about a value that the trace holds constant, at the user's line if it is known."""
        original = place.original
        if original.source.filename is None:
            warnings.warn(text, TracerWarning, stacklevel=2)
        else:
            warnings.warn_explicit(text, TracerWarning, original.source.filename, original.line)

    # --------------------------------------------------------------------------------------------------- scopes

    def place_of_module(self, module: torch.nn.Module) -> Path | None:
        """Return the first path of ``module`` strictly below the module whose ``forward`` is running; None if it has
        none."""
        depth = len(self.path)
        for path in self._modules.get(id(module), ()):
            if len(path) > depth and path[:depth] == self.path:
                return path
        return None

    @contextmanager
    def within_call(self) -> Iterator[None]:
        """Do not record the operators that are called within the ``with`` block."""
        self.within_calls += 1
        try:
            yield
        finally:
            self.within_calls -= 1

    @contextmanager
    def scope(self, path: Path, place: SourceRange) -> Iterator[None]:
        """Attribute the nodes recorded while the body runs to a call of the module at ``path``."""
        self.grad_mode.sync(self.graph)
        node = self.graph.create(SCOPE, outputs=0, attributes={"path": list(path)}, range=place)
        block = self.graph.insert_node(node).add_block()
        saved, self.path = self.path, path
        try:
            with self.graph.inserting_at_end(block), self.grad_mode.method(self.graph):
                yield
        finally:
            self.path = saved


def _as_constant(item: object) -> object:
    """Return a Python value in the form that a constant of the graph has: a traced number as a plain one, a Python
    number class as a dtype, a tuple as a list, a numpy scalar as a Python number."""
    if isinstance(item, (TracedInt, TracedFloat)):
        return plain(item)
    if item is float or item is int or item is bool or item is complex:
        return {float: torch.float64, int: torch.int64, bool: torch.bool, complex: torch.complex128}[item]
    if isinstance(item, tuple):
        return list(item)
    if type(item).__module__ == "numpy" and hasattr(item, "item"):
        return item.item()
    return item


def _type_now(tensor: torch.Tensor) -> TensorType | None:
    """Return the type of a tensor with its sizes; None for tensors without sizes, such as nested ones."""
    try:
        with torch._C.DisableTorchFunction():
            return TensorType.of(tensor)
    except (RuntimeError, NotImplementedError):
        return None


def description(tensor: torch.Tensor) -> str:
    """Return the dtype and the shape of a tensor: ``float32[2x3]``."""
    return f"{str(tensor.dtype)[6:]}[{'x'.join(map(str, all_plain(tensor.shape))) or 'a number'}]"


def _where(place: SourceRange) -> str:
    """Return ``file:line: ``, with which warnings begin; empty if the source is unknown."""
    return f"{place.place.rpartition(':')[0]}: " if place.is_known else ""


def _short(value: object) -> str:
    text = repr(all_plain(value))
    return text if len(text) <= 60 else text[:57] + "..."
