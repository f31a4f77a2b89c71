"""State of a ``try`` while its body is compiled. Assignments in the body also write to cells, which are lists of one
element; the handlers, and the code after the ``try``, read these."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

from rekindle.errors import SourceRange
from rekindle.frontend.scopes.frames import EnvironmentFrame, LoopKind
from rekindle.frontend.ssa.assignedness import FLAG
from rekindle.ir.graph import Graph
from rekindle.ir.node import Node, Value
from rekindle.ir.types import BOOL, ListType, Type, unify


@dataclass(slots=True)
class VariableCell:
    """A list of one element, to which each assignment of a variable in the body of a ``try`` writes, so that its last
    value is known wherever control leaves the body."""

    made: Node
    type: Type
    writes: list[Node]

    def write(self, graph: Graph, value: Value, type: Type, range: SourceRange) -> None:
        zero = graph.insert_constant(0, range=range)
        node = graph.create("aten::_set_item", [self.made.output, zero, value], types=[ListType(type)], range=range)
        self.writes.append(graph.insert_node(node))
        joined = unify(self.type, type, default_to_union=True)
        assert joined is not None
        self.type = joined

    def finish(self) -> None:
        """Set the type of the cell to the common one of all its writes, and cast the values written to it."""
        self.made.output.type = ListType(self.type)
        self.writes = [each for each in self.writes if not each.is_destroyed]  # those of branches that are left out
        for node, offset in ((self.made, 0), *((write, 2) for write in self.writes)):
            value = node.inputs[offset]
            if value.type != self.type:
                cast = node.graph.create("prim::unchecked_cast", [value], types=[self.type], range=node.range)
                node.replace_input(offset, cast.insert_before(node).output)
        for write in self.writes:
            write.output.type = ListType(self.type)

    def read(self, graph: Graph, range: SourceRange) -> Value:
        zero = graph.insert_constant(0, range=range)
        node = graph.create("aten::__getitem__", [self.made.output, zero], types=[self.type], range=range)
        return graph.insert_node(node).output


@dataclass(slots=True)
class TryBody:
    """The body of a ``try`` statement, and the variables that it assigns."""

    node: Node
    outer: EnvironmentFrame
    """The enclosing frame."""
    loop: LoopKind
    """Kind of the enclosing loop, to which ``break`` and ``continue`` in the body belong."""
    cells: dict[str, VariableCell] = field(default_factory=dict)
    """The cells of variables: of those from outside that the body assigns, and of others that are read later."""
    returned: VariableCell | None = None
    jumps: list[str] = field(default_factory=list)
    new: dict[str, Type] = field(default_factory=dict)
    """The types of the body's new variables at its end."""
    ends: bool = True
    """Whether control may reach the end of the body."""
    tree: int = 0
    """The id of the statement's tree."""
    observed: Set[str] = frozenset()
    """Variables that the body assigns, and that are read where it may have raised before it assigned them."""
    flags: dict[str, VariableCell] = field(default_factory=dict)
    """For each of the ``observed`` variables, the cell of its flag, whether it has been assigned."""
    assigned: dict[str, Type] = field(default_factory=dict)
    """Types of the variables that the body may assign, and that are unassigned before it."""

    def note(
        self,
        graph: Graph,
        name: str,
        value: Value,
        type: Type,
        range: SourceRange,
        assigned: Value | None = None,
    ) -> None:
        """Emit a write of ``value`` to the cell of the variable ``name``, if that needs one: if it exists outside the
        body or is ``observed``. The cell is created by the first write. ``assigned`` is a bool value for whether the
        variable is assigned at run time; None if it always is."""
        known = self.outer.find_type(name)
        if known is None:
            if name in self.observed:
                self._note_observed(graph, name, value, type, range, assigned)
            return
        cell = self.cells.get(name)
        if cell is None:
            with graph.inserting_before(self.node):
                load = graph.create("prim::Load", types=[known], attributes={"name": name}, range=range)
                cell = self.cells[name] = self.make_cell(graph, graph.insert_node(load).output, range)
        cell.write(graph, value, type, range)

    def _note_observed(
        self, graph: Graph, name: str, value: Value, type: Type, range: SourceRange, assigned: Value | None
    ) -> None:
        if name not in self.flags:
            before = self.outer.find_partial(name)
            with graph.inserting_before(self.node):
                if before is None:
                    self.cells[name] = self.empty_cell(graph, type, range)
                    flag = graph.insert_constant(False, range=range)
                else:
                    self.cells[name] = self.make_cell(graph, _load(graph, name, before.type, range), range)
                    flag = _load(graph, FLAG + name, BOOL, range)
                self.flags[name] = self.make_cell(graph, flag, range)
        self.cells[name].write(graph, value, type, range)
        self.set_flag(graph, name, graph.insert_constant(True, range=range) if assigned is None else assigned, range)

    def set_flag(self, graph: Graph, name: str, assigned: Value, range: SourceRange) -> None:
        """Emit a write of ``assigned``, whether the variable is assigned, to the flag of the variable, if it has
        one."""
        if name in self.flags:
            self.flags[name].write(graph, assigned, BOOL, range)

    def make_cell(self, graph: Graph, value: Value, range: SourceRange) -> VariableCell:
        made = graph.create("prim::ListConstruct", [value], types=[ListType(value.type)], range=range)
        return VariableCell(made.insert_before(self.node), value.type, [])

    def empty_cell(self, graph: Graph, type: Type, range: SourceRange) -> VariableCell:
        nothing = graph.create("prim::Uninitialized", types=[type], range=range).insert_before(self.node)
        return self.make_cell(graph, nothing.output, range)


def _load(graph: Graph, name: str, type: Type, range: SourceRange) -> Value:
    return graph.insert_node(graph.create("prim::Load", types=[type], attributes={"name": name}, range=range)).output
