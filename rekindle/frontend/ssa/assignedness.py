"""Definite assignment: which variables have a value where they are read.

A variable that only some paths assign is *partial* after them. A read of it emits a guard, which tests a flag:

.. code-block:: text

    for i in xs:                   %ok : bool = prim::Load[name="$assigned.y"]()
        if i > 0:                  prim::If(%ok)
            y = i                    block0():
    return y             becomes       -> ()
                                     block1():
                                       prim::RaiseException("cannot access local variable 'y' …", "builtins.Unb…")
                                       -> ()
                                   %y : int = prim::Load[name="y"]()

Then :func:`settle_guards` removes guards of reads that an assignment precedes on every path, and inserts the updates of
the remaining flags. What precedes a read includes what the truth of a condition implies: ``v`` is definitely assigned
where ``n > 0 and (v := n - 1) > 0`` is true, because one branch of its ``if`` yields a constant false:

.. code-block:: text

    %c : bool = prim::If(%positive)
      block0():
        = prim::Store[name="v"](%1)
        %2 : bool = aten::gt(%1, %0)
        -> (%2)
      block1():
        -> (%false)
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Final

from rekindle.errors import InternalError
from rekindle.ir.control_flow import MAX_TRIP_COUNT, LoopView
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.types import BOOL, Type, unify

FLAG: Final = "$assigned."
"""Prefix of a variable's name in the name of its flag, which is true if the variable has been assigned."""


@dataclass(slots=True, frozen=True)
class Partial:
    """A variable that may be unassigned. ``type`` is its type if it is assigned. ``tries`` are the ids of the ``try``
    statements whose bodies may have assigned it before they raised."""

    type: Type
    tries: frozenset[int] = frozenset()

    def joined(self, other: Partial) -> Partial:
        return Partial(join(self.type, other.type), self.tries | other.tries)


def join(a: Type, b: Type) -> Type:
    """Return the type of a variable that holds a value of either type: the common supertype, or a Union.

    Raises:
        InternalError: there is none.
    """
    found = unify(a, b, default_to_union=True)
    if found is None:
        raise InternalError(f"{a} and {b} have no type in common")
    return found


def unassigned_text(name: str, *, is_free: bool) -> tuple[str, str]:
    """Return the message and the class of Python's error for a read of the unassigned variable ``name``. ``is_free``
    says that the read is in a function within the one that assigns it."""
    if is_free:
        text = f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope"
        if sys.version_info < (3, 11):
            text = f"free variable '{name}' referenced before assignment in enclosing scope"
        return text, "builtins.NameError"
    text = f"cannot access local variable '{name}' where it is not associated with a value"
    if sys.version_info < (3, 11):
        text = f"local variable '{name}' referenced before assignment"
    return text, "builtins.UnboundLocalError"


def stored_types(block: Block) -> dict[str, Type]:
    """Return the types of the variables that ``block`` assigns, including its inner blocks."""
    found: dict[str, Type] = {}
    for node in block.all_nodes():
        if node.kind == "prim::Store":
            name = node.get_string("name")
            before = found.get(name)
            found[name] = node.input.type if before is None else join(before, node.input.type)
    return found


# ------------------------------------------------------------------------------------------- the pass


def settle_guards(graph: Graph, guarded: set[str]) -> None:
    """Remove the guards of variables that are definitely assigned, and make the flags of the others true where they
    are.

    Before, guards read flags that only ``del`` and inlined functions store. After, the flag of each variable with a
    remaining guard is false at the start of the graph, and true after each assignment; stores of other flags are
    removed. ``guarded`` are the variables with a guard.
    """
    loads = [node for node in graph.find_nodes("prim::Load") if node.get_string("name").startswith(FLAG)]
    guards: dict[Node, bool] = {}
    _Flow(guarded, guards).block(graph.block, frozenset())
    left: set[str] = set()
    for load in loads:
        if _is_guard(load) and guards.get(load, True):  # proven, or never reached
            load.output.uses[0].user.destroy()
            load.destroy()
        else:
            left.add(load.get_string("name").removeprefix(FLAG))
    _set_flags(graph.block, left)
    if left:
        with graph.inserting_before(graph.block.return_node.next):
            false = graph.insert_constant(False)
            for name in sorted(left):
                graph.insert_node(_store(graph, FLAG + name, false))


def _is_guard(load: Node) -> bool:
    """Return whether ``load``, of a flag, belongs to a guard: its only use is the condition of an ``if``."""
    uses = load.output.uses
    return len(uses) == 1 and uses[0].user.kind == "prim::If"


def _store(graph: Graph, name: str, value: Value) -> Node:
    return graph.create("prim::Store", [value], outputs=0, attributes={"name": name})


def _set_flags(block: Block, names: set[str]) -> None:
    """Store true to the flag of each name in ``names`` after each of its assignments, and remove the stores of other
    flags."""
    graph = block.graph
    true: Value | None = None
    for node in list(block.nodes):
        for inner in node.blocks:
            _set_flags(inner, names)
        if node.kind != "prim::Store":
            continue
        name = node.get_string("name")
        if name in names:
            with graph.inserting_before(node):
                true = graph.insert_constant(True)
            _store(graph, FLAG + name, true).insert_after(node)
        elif name.startswith(FLAG) and name.removeprefix(FLAG) not in names:
            node.destroy()


_State = frozenset[str] | None
"""The variables that are definitely assigned at a place; None if the place is never reached."""


def _both(a: _State, b: _State) -> _State:
    if a is None or b is None:
        return b if a is None else a
    return a & b


def _with(state: _State, more: _State) -> _State:
    return None if state is None or more is None else state | more


@dataclass(slots=True, frozen=True)
class _Implication:
    """The variables that are definitely assigned where a bool is true, and where it is false; None if it never is.
    ``time`` is the number of deletions before."""

    if_true: _State
    if_false: _State
    time: int

    def negated(self) -> _Implication:
        return _Implication(self.if_false, self.if_true, self.time)


@dataclass(slots=True)
class _Loop:
    """The variables that are definitely assigned at the ``break`` and ``continue`` statements of a loop's body."""

    broken: _State = None
    continued: _State = None


@dataclass(slots=True)
class _Flow:
    """A forward dataflow analysis: which variables are definitely assigned at each guard."""

    names: set[str]
    guards: dict[Node, bool]
    """Whether each path to a load of a flag has assigned the variable, by the load. The analysis fills it."""
    loops: list[_Loop] = field(default_factory=list)
    entered: dict[Node, _State] = field(default_factory=dict)
    """The state in which each loop that has been visited begins an iteration."""
    implications: dict[Value, _Implication] = field(default_factory=dict)
    deleted: dict[str, int] = field(default_factory=dict)
    """The time of the last deletion of each deleted variable."""
    time: int = 0

    def block(self, block: Block, state: _State) -> _State:
        for node in block.nodes:
            if state is None:
                return None
            state = self._node(node, state)
        return state

    def _node(self, node: Node, state: frozenset[str]) -> _State:
        match node.kind:
            case "prim::Store":
                return self._store(node, state)
            case "prim::Load":
                name = node.get_string("name")
                if name.startswith(FLAG):
                    name = name.removeprefix(FLAG)
                    self.implications[node.output] = _Implication(frozenset({name}), frozenset(), self.time)
                    if _is_guard(node):
                        self.guards[node] = self.guards.get(node, True) and name in state
            case "aten::__not__":
                implied = self.implications.get(node.input)
                if implied is not None:
                    self.implications[node.output] = implied.negated()
            case "prim::If":
                return self._if(node, state)
            case "prim::Loop":
                return self._loop(node, state)
            case "prim::ReturnStmt" | "prim::RaiseException":
                return None
            case "prim::BreakStmt":
                self.loops[-1].broken = _both(self.loops[-1].broken, state)
                return None
            case "prim::ContinueStmt":
                self.loops[-1].continued = _both(self.loops[-1].continued, state)
                return None
            case _:
                for inner in node.blocks:
                    self.block(inner, state)
        return state

    def _store(self, node: Node, state: frozenset[str]) -> frozenset[str]:
        name = node.get_string("name")
        if name in self.names:
            return state | {name}
        if name.startswith(FLAG):
            name = name.removeprefix(FLAG)
            self.time += 1
            self.deleted[name] = self.time
            return state - {name}
        return state

    def _if(self, node: Node, state: frozenset[str]) -> _State:
        entered = self._decided(node.input, state)
        ends = [self.block(block, state) for block, state in zip(node.blocks, entered, strict=True)]
        for index, output in enumerate(node.outputs):
            if output.type == BOOL:
                (one, other), (another, last) = (
                    self._decided(block.outputs[index], end) for block, end in zip(node.blocks, ends, strict=True)
                )
                self.implications[output] = _Implication(_both(one, another), _both(other, last), self.time)
        return _both(*ends)

    def _decided(self, condition: Value, state: _State) -> tuple[_State, _State]:
        """Return the variables that are definitely assigned if ``condition`` is true, and if it is false, at a place
        with ``state``."""
        constant = _constant(condition)
        if constant is not None:
            return (state, None) if constant else (None, state)
        implied = self.implications.get(condition)
        if implied is None:
            return state, state
        return _with(state, self._kept(implied.if_true, implied)), _with(state, self._kept(implied.if_false, implied))

    def _kept(self, names: _State, implied: _Implication) -> _State:
        """Return those of ``names`` that have not been deleted since the bool of ``implied`` was computed."""
        if names is None:
            return None
        return frozenset(name for name in names if self.deleted.get(name, -1) <= implied.time)

    def _loop(self, node: Node, state: frozenset[str]) -> _State:
        body, condition = node.blocks
        # The state only shrinks in the iterations of a loop around this one. Starting from that of the iteration before
        # keeps the time polynomial in the depth.
        entered = _both(state, self.entered.get(node))
        while True:
            loop = _Loop()
            self.loops.append(loop)
            tested = self.block(condition, entered)
            ended = _both(self.block(body, tested), loop.continued)
            self.loops.pop()
            again = _both(entered, ended)
            if again == entered:
                break
            entered = again
        self.entered[node] = entered
        first = self.block(condition, state)
        later = None if ended is None else self.block(condition, ended)
        is_endless = bool(condition.outputs) and bool(_constant(condition.outputs[0]))
        count = _constant(LoopView(node).trip_count)
        left = loop.broken
        if not is_endless or count != MAX_TRIP_COUNT:
            left = _both(left, later)
            if not (is_endless and isinstance(count, int) and count > 0):
                left = _both(left, first)
        return left


def _constant(value: Value) -> object:
    return value.node.attributes.get("value") if value.node.kind == "prim::Constant" else None
