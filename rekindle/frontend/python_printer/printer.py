"""Print functions and named types as source text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from rekindle.errors import UNKNOWN_RANGE, SourceRange, UnsupportedError
from rekindle.frontend.python_printer.constants import ConstantTable, format_constant
from rekindle.frontend.python_printer.functions import FunctionPrinter
from rekindle.frontend.python_printer.named_types import print_class, print_enum, print_interface, print_named_tuple
from rekindle.frontend.python_printer.names import (
    NamedType,
    Names,
    TypeNames,
    named_types_in,
    qualified_name,
    spell,
)
from rekindle.frontend.python_printer.tagged_text import TaggedText
from rekindle.frontend.recursion_limit import room_to_recurse
from rekindle.ir.graph import Graph, Node
from rekindle.ir.graph_function import GraphFunction, called_function
from rekindle.ir.operators.schema import Argument
from rekindle.ir.scalar_types import NUMBERED_CLASSES, number_of
from rekindle.ir.types import (
    ClassType,
    EnumType,
    FloatType,
    FunctionType,
    InterfaceType,
    ListType,
    TupleType,
    Type,
    without_none,
)
from rekindle.ops.tensor.scalar_operands import scalar_operand


class PythonPrinter:
    """Printer of functions and named types, one after the other, to one text.

    ``constants`` collects values without a text form; one table serves all texts of an archive. ``type_name`` maps
    named types to other names than their own. With ``importable``, the methods raise UnsupportedError for constructs
    that could not be read back.
    """

    def __init__(
        self,
        constants: ConstantTable | None = None,
        type_name: TypeNames | None = None,
        *,
        importable: bool = False,
    ) -> None:
        self.constants = ConstantTable() if constants is None else constants
        self.importable = importable
        self._name_of = type_name or qualified_name
        self._out = TaggedText()
        self._level = 0
        self._names = Names()
        self._dependencies: dict[NamedType, None] = {}

    @property
    def text(self) -> str:
        return str(self._out)

    @property
    def ranges(self) -> list[tuple[int, SourceRange]]:
        """The source map: each offset in the text (in characters) at which the location in the author's source changes,
        with that location."""
        return self._out.ranges

    @property
    def dependencies(self) -> list[NamedType]:
        """The named types that the text mentions, in the order of their first mention."""
        return list(self._dependencies)

    def mention(self, type: Type) -> None:
        """Add the named types in ``type`` to the dependencies of the text."""
        for named in named_types_in(type):
            self._dependencies.setdefault(named)

    def spell(self, type: Type) -> str:
        """Format ``type`` with the names that this text uses, and add its named types to the dependencies of the
        text."""
        self.mention(type)
        return spell(type, self._name_of)

    def line(self, text: str) -> None:
        """Append a line that has no source location."""
        self._out.range = UNKNOWN_RANGE
        self._out.add(f"{'  ' * self._level}{text}\n")

    @contextmanager
    def indented(self) -> Iterator[None]:
        self._level += 1
        try:
            yield
        finally:
            self._level -= 1

    # -------------------------------------------------------------------------------------------------- named types

    def print_named_type(self, type: NamedType) -> None:
        """Print the definition of ``type``: a class with its methods, an interface, an enum, a NamedTuple, a
        function.
        """
        basename = self._name_of(type).rpartition(".")[2]
        if isinstance(type, FunctionType):
            self.print_function(type.function, basename)
        elif isinstance(type, ClassType):
            print_class(self, type, basename)
        elif isinstance(type, InterfaceType):
            print_interface(self, type, basename)
        elif isinstance(type, EnumType):
            print_enum(self, type, basename)
        else:
            print_named_tuple(self, type, basename)

    # ---------------------------------------------------------------------------------------------------- functions

    def print_function(self, record: GraphFunction, basename: str | None = None) -> None:
        """Print ``def f(x: Tensor, …) -> Tensor:`` and its body, under the name ``basename`` if one is given.

        Raises:
            UnsupportedError: source cannot express a part of the function, or the function nests too deeply.
        """
        self._function(record, basename or record.basename, types_self=True)

    def print_method(self, record: GraphFunction) -> None:
        """Print a method: a function whose first parameter, ``self``, has no type in the text.

        Raises:
            UnsupportedError: as for :meth:`print_function`.
        """
        self._function(record, record.basename, types_self=False)

    def _function(self, record: GraphFunction, basename: str, types_self: bool) -> None:
        graph = without_builtin_calls(record.graph)
        if self.importable:
            graph = with_tensor_operands(graph)
        self._names.forget()
        printer = FunctionPrinter(
            self._out, self.constants, self._name_of, self.mention, self.importable, self._level, self._names
        )
        self._out.range = graph.param_node.range
        without_defaults = self._needed_behind_defaults(record) if self.importable else 0
        out = self._out.add("  " * self._level, f"def {basename}(")
        for index, (argument, value) in enumerate(zip(record.schema.arguments, graph.inputs, strict=True)):
            name = printer.names.fresh(argument.name)
            printer.assign(value, name)
            out.add(",\n    " if index else "", name)
            if index or types_self:
                out.add(f": {self.spell(argument.type)}")
            else:
                self.mention(argument.type)
            if argument.has_default and index >= without_defaults:
                out.add(f"={self._default(argument)}")
        out.add(f") -> {self.spell(record.schema.returns[0].type)}:\n")
        with room_to_recurse(graph.param_node.range):
            printer.body(graph.block)
        self._out.range = UNKNOWN_RANGE

    def _needed_behind_defaults(self, record: GraphFunction) -> int:
        """Return the number of parameters before the last required one, if an earlier one is optional; else 0. Readers
        do not support the keyword-only parameters that this needs, so the text omits the defaults before it; its calls
        pass all arguments.

        Raises:
            UnsupportedError: the function is the method of a module, which callers outside the text may call.
        """
        arguments = record.schema.arguments
        needed = max((index for index, argument in enumerate(arguments) if not argument.has_default), default=0)
        if not any(argument.has_default for argument in arguments[:needed]):
            return 0
        owner = arguments[0].type
        if isinstance(owner, ClassType) and owner.is_module:
            raise UnsupportedError(
                f"the parameter '{arguments[needed].name}' of '{record.basename}' can be given by keyword only, which "
                "source of archives cannot say",
                record.graph.param_node.range,
                hint="give it a default, or put it before those that have one",
            )
        return needed

    def _default(self, argument: Argument) -> str:
        value = _as_declared(argument.default, argument.type, argument.size)
        return format_constant(value, argument.type, self.spell, self.constants)


def _as_declared(value: object, type: Type, size: int | None = None) -> object:
    """Return a default converted to the type of its parameter, as readers of archives require: ``0.`` for a float,
    ``[0, 0]`` for a number that represents a list of two, the number of a layout."""
    type = without_none(type)
    if value is None:
        return None
    if isinstance(value, NUMBERED_CLASSES):
        return number_of(value)
    if isinstance(type, FloatType) and isinstance(value, int):
        return float(value)
    if isinstance(type, ListType):
        items = list(value) if isinstance(value, (list, tuple)) else [value] * (size or 1)
        return [_as_declared(item, type.element) for item in items]
    if isinstance(type, TupleType) and isinstance(value, tuple) and type.name is None:
        return tuple(_as_declared(item, part) for item, part in zip(value, type.elements, strict=True))
    return value


def without_builtin_calls(graph: Graph) -> Graph:
    """Return ``graph``, or a copy in which calls of functions with an operator's name are inlined, if it has any: these
    are written in TorchScript by this package, and readers do not know them."""
    if not any(_calls_builtin(node) for node in graph.all_nodes()):
        return graph
    copy = graph.copy()
    for node in list(copy.all_nodes()):
        callee = _calls_builtin(node)
        if callee is None:
            continue
        with copy.inserting_before(node):
            results = copy.insert_graph(callee.graph, node.inputs[1:])
        node.replace_with(results[0])
    return copy


def with_tensor_operands(graph: Graph) -> Graph:
    """Return ``graph``, or a copy if it has constant tensors that a reader would mistake for numbers: in the copy their
    users take results of ``aten::to`` instead, as in PyTorch's traces."""
    if all(scalar_operand(node) is None for node in graph.all_nodes()):
        return graph
    copy = graph.copy()
    for node in list(copy.all_nodes()):
        if scalar_operand(node) is None:
            continue
        constant = node.inputs[1]
        tensor, device = constant.to_python(), torch.device("cpu")
        assert isinstance(tensor, torch.Tensor)
        with copy.inserting_before(node):
            node.replace_input(
                1, copy.insert("aten::to", [constant, device, number_of(tensor.dtype), False, False, None])
            )
    return copy


def _calls_builtin(node: Node) -> GraphFunction | None:
    callee = called_function(node) if node.kind == "prim::CallFunction" else None
    return callee if callee is not None and "::" in callee.name else None
