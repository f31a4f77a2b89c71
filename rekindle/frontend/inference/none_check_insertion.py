"""Insert checks of values that may be None where Python would raise: ``x.size()`` of an ``Optional[Tensor]``.

.. code-block:: text

    y = x + 1        %n : NoneType = prim::Constant()
                     %c : bool = aten::__is__(%x, %n)
                     prim::If(%c)
                       block0():
                         = prim::RaiseException("unsupported operand type(s) for +: …", "builtins.TypeError")
                         -> ()
                       block1():
                         -> ()
                     %x.1 : int = prim::unchecked_cast(%x)
                     %y : int = aten::add(%x.1, %one)

If the value was read from a variable, the variable is known not to be None from there on. Values that are a Tensor or a
number are checked in the same way where only one of the two is accepted.
"""

from __future__ import annotations

from typing import Final

from rekindle.errors import SourceRange
from rekindle.frontend.inference.none_error_messages import TYPE_ERROR, none_argument, takes_none
from rekindle.frontend.python.library import library_function
from rekindle.frontend.scopes.environment import Environment
from rekindle.frontend.sugared_values.values import SimpleValue
from rekindle.ir.graph import AttributeValue, Graph, Node, Value
from rekindle.ir.operators.none_checking import takes_number
from rekindle.ir.operators.schema import Argument, FunctionSchema
from rekindle.ir.types import (
    BOOL,
    COMPLEX,
    NUMBER,
    TENSOR,
    BoolType,
    ComplexType,
    DictType,
    FloatType,
    IntType,
    ListType,
    StringType,
    TupleType,
    Type,
    UnionBase,
    UnionType,
    number_beside_tensor,
    present,
    union_members,
)

_NUMBERS: Final = (IntType, FloatType, ComplexType, BoolType)
_CONTAINERS: Final = (ListType, TupleType, DictType, StringType)


class NoneCheckInserter:
    """Inserter of the checks with which programs from Python unwrap Optionals; it implements the hooks of
    ``Graph.none_checks``."""

    def __init__(self, graph: Graph, environment: Environment) -> None:
        self.graph = graph
        self.environment = environment

    def can_check(self, value: Value) -> bool:
        if number_beside_tensor(value.type) is not None:
            return True
        if not isinstance(value.type, UnionBase) or not value.type.is_optional:
            return False
        load = value.node
        return load.kind != "prim::Load" or not self.environment.is_known_none(load.get_string("name"))

    def takes_none(self, schema: FunctionSchema, formal: Argument) -> bool:
        return takes_none(schema, formal)

    def check_argument(
        self, value: Value, range: SourceRange, name: str, schema: FunctionSchema, formal: Argument, is_method: bool
    ) -> Value:
        message = none_argument(name, schema, formal, is_method=is_method)
        return self.check(value, range, TYPE_ERROR, message, is_number_wanted=takes_number(formal))

    def check(
        self, value: Value, range: SourceRange, error: str, message: str, *, is_number_wanted: bool = False
    ) -> Value:
        graph, number = self.graph, number_beside_tensor(value.type)
        type = present(value.type) if number is None or not is_number_wanted else number
        if number is not None:
            for member in union_members(value.type):
                if not member.is_subtype_of(type):
                    name = {NUMBER: "number", TENSOR: "Tensor"}.get(member, str(member))
                    self._raise_if(self._is_a(value, member, range), error, message.replace("NoneType", name), range)
        else:
            is_none = graph.insert("aten::__is__", [value, graph.insert_constant(None, range=range)], range=range)
            self._raise_if(is_none, error, message, range)
        return self._narrowed(value, type, range)

    def container_in(self, value: Value, range: SourceRange, message: str) -> Value | None:
        members = union_members(value.type)
        numbers = [member for member in members if isinstance(member, _NUMBERS)]
        others = [member for member in members if not isinstance(member, _NUMBERS)]
        if not numbers or len(others) != 1 or not isinstance(others[0], _CONTAINERS):
            return None
        for number in sorted(numbers, key=lambda number: not isinstance(number, BoolType)):  # a bool is an int, too
            self._raise_if(self._is_a(value, number, range), TYPE_ERROR, message.format(number), range)
        return self._narrowed(value, others[0], range)

    def _narrowed(self, value: Value, type: Type, range: SourceRange) -> Value:
        """Emit a cast of the value to ``type``, and return it. The variable that it was read from has this type from
        here on."""
        cast = self.graph.create("prim::unchecked_cast", [value], types=[type], range=range)
        found = self.graph.insert_node(cast).output
        variable = self._variable_that_holds(value)
        if variable is not None:
            self.environment.narrow(variable, range, found)
        return found

    def tensors_in(self, values: Value, range: SourceRange) -> Value:
        call = library_function("tensors_in").call_with
        return call(range, self.graph, [SimpleValue(values)], {}).as_value(range, self.graph)

    def ints_in(self, numbers: Value, range: SourceRange) -> Value:
        graph, wanted = self.graph, ListType(NUMBER)
        if numbers.type != wanted:
            cast = graph.create("prim::unchecked_cast", [numbers], types=[wanted], range=range)
            numbers = graph.insert_node(cast).output
        call = library_function("numbers_as_ints").call_with
        return call(range, graph, [SimpleValue(numbers)], {}).as_value(range, graph)

    def _is_a(self, value: Value, type: Type, range: SourceRange) -> Value:
        attributes: dict[str, AttributeValue] = {"types": [type]}
        test = self.graph.create("prim::isinstance", [value], types=[BOOL], attributes=attributes, range=range)
        return self.graph.insert_node(test).output

    def _raise_if(self, condition: Value, error: str, message: str, range: SourceRange) -> None:
        graph = self.graph
        node = graph.insert_node(graph.create("prim::If", [condition], outputs=0, range=range))
        with graph.inserting_at_end(node.add_block()):
            said = [graph.insert_constant(text, range=range) for text in (message, error)]
            graph.insert_node(graph.create("prim::RaiseException", said, outputs=0, range=range))
        node.add_block()

    def truth_of_number(self, value: Value, range: SourceRange) -> Value:
        truth = library_function("truth_of_number")
        return truth.call_with(range, self.graph, [SimpleValue(value)], {}).as_value(range, self.graph)

    def number_as(self, value: Value, type: Type, range: SourceRange) -> Value:
        graph = self.graph
        if isinstance(type, UnionType):
            if value.type == NUMBER and COMPLEX not in type.members:
                real = library_function("number_as_real")
                value = real.call_with(range, graph, [SimpleValue(value)], {}).as_value(range, graph)
            return graph.insert_node(graph.create("prim::unchecked_cast", [value], types=[type], range=range)).output
        if value.type != NUMBER:
            cast = graph.create("prim::unchecked_cast", [value], types=[NUMBER], range=range)
            value = graph.insert_node(cast).output
        if type == NUMBER:
            return value
        convert = library_function(f"number_as_{type}")
        return convert.call_with(range, graph, [SimpleValue(value)], {}).as_value(range, graph)

    def _variable_that_holds(self, value: Value) -> str | None:
        """Return the variable from which the value was read in the current block, if it still holds the value; else
        None."""
        load = value.node
        if load.kind != "prim::Load" or load.owning_block is not self.graph.insert_point.owning_block:
            return None
        name = load.get_string("name")
        node: Node = load.next
        while node is not self.graph.insert_point:
            if any(each.kind == _STORE and each.get_string("name") == name for each in (node, *node.inner_nodes())):
                return None
            node = node.next
        return name


_STORE: Final = "prim::Store"
