"""Conversion to SSA: loads and stores of variables become values, loops get their conditions, jumps disappear.

The emitter writes variables with ``prim::Store[name="x"](%v)`` and reads them with ``prim::Load[name="x"]()``. Then:

1. :func:`add_control_flow_loads_and_stores`: what an ``if`` or a loop assigns becomes outputs of its node;
2. :func:`add_loop_continuations`: ``break`` and ``continue`` become ``prim::LoopContinuation(%condition, carried…)``;
3. :func:`inline_loop_conditions`: the condition of a loop runs before it and at the end of its body;
4. :func:`erase_loads_and_stores`: a load becomes the value in scope;
5. :func:`rekindle.frontend.ssa.exits.transform_exits`: loop continuations and returns become outputs of blocks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from rekindle.errors import InternalError
from rekindle.frontend.ssa.assignedness import join, stored_types
from rekindle.frontend.ssa.exits import transform_exits
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.types import Type, join_values, unify


def convert_to_ssa(
    graph: Graph, result: Type | None = None, *, as_printed: bool = False, partial: Collection[str] = ()
) -> None:
    """Convert a graph of the emitter to SSA form, in place. ``result`` is the return type: a graph that always raises
    gets an output of it, too. ``partial`` are the variables with guards, which may be unassigned.

    Source that was printed from a graph (``as_printed``) is converted to the same graph again: loop-carried values and
    results of an ``if`` are in the order in which the source assigns them, and branches that raise have the outputs
    that they assign.

    Raises:
        InternalError: a variable is read before it is stored, or control may reach the end of a function with a result.
    """
    if result is not None and not graph.outputs:
        graph.add_output(graph.append_node(graph.create("prim::Uninitialized", types=[result])).output)
    add_control_flow_loads_and_stores(graph, as_printed=as_printed, partial=partial)
    if any(map(graph.find_nodes, ("prim::Loop", "prim::BreakStmt", "prim::ContinueStmt"))):
        add_loop_continuations(graph)
        inline_loop_conditions(graph)
    erase_loads_and_stores(graph)
    transform_exits(graph)


# --------------------------------------------------------------------------------- 1. loads and stores


@dataclass(slots=True)
class _Scope:
    """The types of the variables assigned in a block, with those of the enclosing blocks (``parent``).

    ``own`` are those that its statements and branches assign, but not its loops. ``exits`` says that control never
    reaches the end of the block, and ``leaves`` that it then leaves the function, or raises.
    """

    block: Block
    parent: _Scope | None = None
    as_printed: bool = False
    partial: Collection[str] = ()
    types: dict[str, Type] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)
    exits: bool = False
    leaves: bool = False

    def in_order(self, names: Iterable[str]) -> list[str]:
        """Return the distinct ``names`` in an order that makes graphs reproducible: the alphabetic one, as in
        TorchScript; with ``as_printed`` the given one."""
        found = dict.fromkeys(names)
        return list(found) if self.as_printed else sorted(found)

    def find(self, name: str) -> Type | None:
        scope: _Scope | None = self
        while scope is not None:
            type = scope.types.get(name)
            if type is not None:
                return type
            scope = scope.parent
        return None


def add_control_flow_loads_and_stores(graph: Graph, *, as_printed: bool = False, partial: Collection[str] = ()) -> None:
    """Add the variables that a ``prim::If`` or ``prim::Loop`` changes to its inputs and outputs.

    .. code-block:: text

        prim::If(%c)                                    %y : int = prim::If(%c)
          block0():                                       block0():
            = prim::Store[name="y"](%1)                     = prim::Store[name="y"](%1)
            -> ()                                           %3 : int = prim::Load[name="y"]()
          block1():                             becomes     -> (%3)
            = prim::Store[name="y"](%2)                   block1():
            -> ()                                           = prim::Store[name="y"](%2)
                                                            %4 : int = prim::Load[name="y"]()
                                                            -> (%4)
                                                        = prim::Store[name="y"](%y)
    """
    _visit_block(graph.block, _Scope(graph.block, as_printed=as_printed, partial=partial))


def _visit_block(block: Block, parent: _Scope) -> _Scope:
    scope = _Scope(block, parent, parent.as_printed, parent.partial)
    for node in list(block.nodes):
        match node.kind:
            case "prim::BreakStmt" | "prim::ContinueStmt":
                scope.exits = True
            case "prim::ReturnStmt" | "prim::RaiseException":
                scope.exits = scope.leaves = True
            case "prim::If":
                _visit_if(node, scope)
            case "prim::Loop":
                _visit_loop(node, scope)
            case "prim::Store":
                name = node.get_string("name")
                scope.types[name] = node.input.type
                scope.own.add(name)
            case _:
                for inner in node.blocks:
                    _visit_block(inner, scope)
    return scope


def _visit_if(node: Node, scope: _Scope) -> None:
    branches = [_visit_block(block, scope) for block in node.blocks]
    leaving = [branch for branch in branches if branch.leaves]
    scope.leaves |= len(leaving) == 2
    scope.exits |= all(branch.exits for branch in branches)
    for name in scope.in_order(name for branch in branches for name in branch.types):
        type = _joined_type(name, branches, is_partial=name in scope.partial)
        if type is None:
            continue
        is_own = any(name in branch.own for branch in branches)
        forget = is_own and not scope.as_printed
        for branch in branches:
            branch.block.add_output(_result(branch, node, name, type, forget=forget and leaving == [branch]))
        _add_stored_output(node, name, type)
        scope.types[name] = type
        if is_own and len(leaving) < 2:
            scope.own.add(name)


def _result(branch: _Scope, node: Node, name: str, type: Type, *, forget: bool) -> Value:
    """Return the value of a variable at the end of a branch of ``node``: a load, or an uninitialized value if the end
    is unreachable or the variable unassigned. With ``forget`` the value is always uninitialized."""
    found = branch.find(name)
    if forget:
        return branch.block.append(node.graph.create("prim::Uninitialized", types=[type])).output
    if found is None or (branch.exits and not found.is_subtype_of(type)):
        # At the top: were it here, the exit transform would see something to guard.
        return node.graph.block.prepend(node.graph.create("prim::Uninitialized", types=[type])).output
    return branch.block.append(_load(node, name, found)).output


def _joined_type(name: str, branches: list[_Scope], *, is_partial: bool) -> Type | None:
    """Return the type of a variable after an ``if``; None if it is not defined there.

    Only branches whose end can be reached count. If there are none, those count that do not leave the function: the
    statements after the ``if`` are unreachable, but a loop around it must know that its variable was assigned before
    the jump. With ``is_partial`` one branch that assigns the variable is enough.
    """
    counting = [branch for branch in branches if not branch.exits]
    counting = counting or [branch for branch in branches if not branch.leaves] or branches
    found = [branch.find(name) for branch in counting]
    if is_partial:
        found = [type for type in found if type is not None] or [None]
    joined = found[0]
    for other in found[1:]:
        if joined is None or other is None:
            return None
        joined = unify(joined, other, default_to_union=True)
    return joined


def _visit_loop(node: Node, scope: _Scope) -> None:
    body, condition = node.blocks
    _begin_partial(node, body, scope)
    entered = _Scope(scope.block, scope, scope.as_printed, scope.partial, _widened(body, scope))
    assigned = _visit_block(body, entered)
    _visit_block(condition, entered)
    for name in scope.in_order(assigned.types):
        type = scope.find(name)
        if type is None:
            # The loop may run zero times, so that the variable is undefined after it.
            continue
        # The body may run any number of times: what it starts from is of the first type or of the body's.
        joined = entered.types.get(name) or _joined(type, assigned.types[name]) or type
        node.add_input(_load(node, name, type).insert_before(node).output)
        carried = body.add_input(name if is_meaningful_name(name) else "", joined)
        body.prepend(_store(node, name, carried))
        body.add_output(body.append(_load(node, name, assigned.types[name])).output)
        _add_stored_output(node, name, joined)
        scope.types[name] = joined


def _begin_partial(loop: Node, body: Block, scope: _Scope) -> None:
    """Store, before the loop, a value to each variable in ``scope.partial`` that the loop's body assigns: an
    uninitialized one if the variable is unassigned there, and a cast one if the body assigns a wider type."""
    if not scope.partial:
        return
    for name, type in sorted(stored_types(body).items()):
        if name not in scope.partial:
            continue
        before = scope.find(name)
        if before is None:
            begun = loop.graph.create("prim::Uninitialized", types=[type], range=loop.range)
        elif not type.is_subtype_of(before):
            type = join(before, type)
            held = _load(loop, name, before).insert_before(loop).output
            begun = loop.graph.create("prim::unchecked_cast", [held], types=[type], range=loop.range)
        else:
            continue
        _store(loop, name, begun.insert_before(loop).output).insert_before(loop)
        scope.types[name] = type


def _widened(body: Block, scope: _Scope) -> dict[str, Type]:
    """Return the wider types of those variables to which the loop's body assigns more types than they have before the
    loop. A value assigned anywhere in the body may be present in the next iteration, or after the loop through
    ``break``."""
    found: dict[str, Type] = {}
    _widen(body, scope, found)
    return found


def _widen(block: Block, scope: _Scope, found: dict[str, Type]) -> None:
    for node in block.nodes:
        if node.kind == "prim::Store":
            name = node.get_string("name")
            before = found.get(name) or scope.find(name)
            joined = None if before is None else _joined(before, node.input.type)
            if joined is not None and joined != before:
                found[name] = joined
        for inner in node.blocks:
            _widen(inner, scope, found)


def _joined(one: Type, other: Type) -> Type | None:
    """Return the type of a loop-carried variable that is ``one`` before the loop, and ``other`` after an iteration;
    None if they have no common type."""
    return unify(one, other) or join_values(one, other)


def is_meaningful_name(name: str) -> bool:
    """Return whether values are named after the variable ``name``: not after variables of the emitter (``$x``), and not
    after ``_`` and ``_1``."""
    if not name or name.startswith("$"):
        return False
    return not (name.startswith("_") and (len(name) == 1 or name[1:].isdigit()))


def _load(near: Node, name: str, type: Type) -> Node:
    return near.graph.create("prim::Load", types=[type], attributes={"name": name}, range=near.range)


def _store(near: Node, name: str, value: Value) -> Node:
    return near.graph.create("prim::Store", [value], outputs=0, attributes={"name": name}, range=near.range)


def _add_stored_output(node: Node, name: str, type: Type) -> None:
    output = node.add_output(type)
    if is_meaningful_name(name):
        output.set_name(name)
    _store(node, name, output).insert_after(node)


# ------------------------------------------------------------------------------------ 2. continuations


def add_loop_continuations(graph: Graph) -> None:
    """Replace ``break`` and ``continue`` by ``prim::LoopContinuation``: whether to continue, and the carried variables.

    .. code-block:: text

        = prim::BreakStmt()         becomes    %1 : bool = prim::Constant[value=0]()
                                               %2 : int = prim::Load[name="y"]()
                                               = prim::LoopContinuation(%1, %2)

    For ``prim::ContinueStmt`` the first value is the condition of the loop, computed before the node.
    """
    _continue_block(graph.block, None)


def _continue_block(block: Block, loop: Node | None) -> None:
    for node in block.nodes:
        match node.kind:
            case "prim::Loop":
                body, condition = node.blocks
                _continue_block(body, node)
                _continue_block(condition, None)
            case "prim::Try":
                for inner in node.blocks:
                    _continue_block(inner, None)
            case "prim::BreakStmt" | "prim::ContinueStmt":
                if loop is None:
                    raise InternalError(f"{node.kind} is not in a loop")
                _replace_jump(node, loop)
            case _:
                for inner in node.blocks:
                    _continue_block(inner, loop)


def _replace_jump(jump: Node, loop: Node) -> None:
    graph = jump.graph
    held: list[tuple[str, Value]] = []
    if jump.kind == "prim::BreakStmt":
        # At the top: were it here, the exit transform would see something to guard.
        condition = graph.block.prepend(graph.create_constant(False, range=jump.range)).output
    else:
        # Refinements by the condition hold for the next iteration, not for code after the jump.
        for node in loop.blocks[1].nodes:
            if node.kind == "prim::Store":
                load = _load(jump, node.get_string("name"), node.input.type).insert_before(jump)
                held.append((node.get_string("name"), load.output))
        condition = _clone_before(loop.blocks[1], jump)
    continuation = graph.create("prim::LoopContinuation", [condition], outputs=0, range=jump.range)
    body = loop.blocks[0]
    for carried, entered in zip(body.outputs, body.inputs[1:], strict=True):
        # At the end of the body is a load of each variable that is carried from one iteration to the next. Here the
        # variable may be of another type than there: of any that the next iteration takes.
        load = graph.create_clone(carried.node).insert_before(jump)
        load.output.set_type(entered.type)
        continuation.add_input(load.output)
    continuation.insert_before(jump)
    for name, value in held:
        _store(jump, name, value).insert_before(jump)
    jump.destroy()


def _clone_before(block: Block, place: Node) -> Value:
    """Insert a copy of the nodes of ``block`` before ``place``, and return the copy of the block's only output."""
    copies: dict[Value, Value] = {}

    def mapped(value: Value) -> Value:
        return copies.get(value, value)

    for node in block.nodes:
        copy = place.graph.create_clone(node, mapped).insert_before(place)
        copies.update(zip(node.outputs, copy.outputs, strict=True))
    (result,) = block.outputs
    return mapped(result)


# ---------------------------------------------------------------------------------- 3. loop conditions


def inline_loop_conditions(graph: Graph) -> None:
    """Copy the condition block of every loop to where it runs: before the loop, and at the end of its body.

    .. code-block:: text

        %y : int = prim::Loop(%max, %y.1)           %c.1 : bool = aten::lt(…)
          block0(%i : int, %y.2 : int):             %y : int = prim::Loop(%max, %c.1, %y.1)
            …                                         block0(%i : int, %y.2 : int):
            -> (%y.3)                       becomes     …
          block1():                                     %c.2 : bool = aten::lt(…)
            %c : bool = aten::lt(…)                     -> (%c.2, %y.3)
            -> (%c)
    """
    _inline_conditions(graph.block)


def _inline_conditions(block: Block) -> None:
    for node in block.nodes:
        for inner in node.blocks:
            _inline_conditions(inner)
        if node.kind == "prim::Loop":
            body, condition = node.blocks
            node.insert_input(1, _clone_before(condition, node))
            body.insert_output(0, _clone_before(condition, body.return_node))
            node.erase_block(1)


# ------------------------------------------------------------------------------ 4. no loads, no stores


def erase_loads_and_stores(graph: Graph) -> None:
    """Replace every load by the last stored value in its scope, cast if the load has a narrower type, and remove the
    stores.

    .. code-block:: text

        = prim::Store[name="x"](%1)
        %2 : int = prim::Load[name="x"]()    becomes
        %3 : int = aten::neg(%2)                       %3 : int = aten::neg(%1)

    Raises:
        InternalError: a variable is read before it is stored.
    """
    _erase_in_block(graph.block, {})


def _erase_in_block(block: Block, values: dict[str, Value]) -> None:
    for node in block.nodes:
        if node.kind == "prim::Store":
            values[node.get_string("name")] = node.input
            node.destroy()
        elif node.kind == "prim::Load":
            name = node.get_string("name")
            found = values.get(name)
            if found is None:
                raise InternalError(f"the variable '{name}' is read before anything is stored to it")
            if not found.type.is_subtype_of(node.output.type) and node.output.type.is_subtype_of(found.type):
                cast = node.graph.create("prim::unchecked_cast", [found], types=[node.output.type], range=node.range)
                found = cast.insert_before(node).output
            node.replace_with(found)
        else:
            for inner in node.blocks:
                _erase_in_block(inner, values.copy())
