"""Exit transform: convert ``prim::LoopContinuation`` and ``prim::ReturnStmt`` to outputs of blocks.

A loop continuation leaves the innermost loop's body, a return the graph or the closure. Nodes after a definite exit are
deleted. Nodes after a possible exit move into an ``if``, whose condition is a flag for whether the exit was taken:

.. code-block:: text

    prim::If(%c)                                  %y : int = prim::If(%c)
      block0():                                     block0():
        = prim::ReturnStmt(%a)                        -> (%a)
        -> ()                            becomes    block1():
      block1():                                       %b : int = aten::neg(%a)
        -> ()                                         -> (%b)
    %b : int = aten::neg(%a)                      return (%y)
    = prim::ReturnStmt(%b)

Values that are never read, because control has left, come from ``prim::Uninitialized`` nodes at the start of the graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from rekindle.errors import InternalError
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.types import BOOL, Type, unify


def transform_exits(graph: Graph) -> None:
    """Replace all loop continuations and returns in ``graph`` by outputs of blocks, and guard the nodes that they may
    skip.

    Raises:
        InternalError: control may reach the end of a function that returns a value, or ``prim::Enter`` and
            ``prim::Exit`` do not match.
    """
    has_with_bodies = any(map(graph.find_nodes, ("prim::Enter", "prim::Exit")))
    if has_with_bodies:
        wrap_with_bodies(graph.block)
    for kind in ("prim::LoopContinuation", "prim::ReturnStmt"):
        _ExitTransform(graph, kind).run()
    merge_consecutive_ifs(graph.block)
    if has_with_bodies:
        unwrap_with_bodies(graph.block)


_LEAVING: Final = frozenset({"prim::RaiseException", "prim::If", "prim::Loop", "prim::With", "prim::Try"})
"""Kinds of nodes, other than the exits themselves, after which control may not continue."""


class _Status(Enum):
    """Whether control leaves a node or a block early."""

    WILL = auto()
    MIGHT = auto()
    WONT = auto()
    THROWS = auto()


@dataclass(slots=True)
class _Exit:
    """How control may leave a node or a block early: ``flag`` is true at run time if it does, and ``values`` are then
    passed to the target block."""

    status: _Status
    flag: Value
    values: list[Value]

    @property
    def leaves_nothing(self) -> bool:
        """Whether no values are passed to the target."""
        return self.status in (_Status.WONT, _Status.THROWS)


class _ExitTransform:
    """The transform of the exits of one kind: returns, or loop continuations."""

    def __init__(self, graph: Graph, kind: str) -> None:
        self.graph = graph
        self.kind = kind
        self.target: Block | None = None
        self._uninitialized: dict[Type, Value] = {}
        with graph.inserting_before(graph.return_node.next):
            self.true = graph.insert_constant(True)
            self.false = graph.insert_constant(False)
        self.thrown = self._uninitialized_value(BOOL)

    def run(self) -> None:
        self.transform_block(self.graph.block)
        for value in (self.true, self.false, *self._uninitialized.values()):
            if not value.has_uses:
                value.node.destroy()

    # ------------------------------------------------------------------------------------------ blocks

    def transform_block(self, block: Block) -> _Exit:
        outer_target = self.target
        if self._is_target(block):
            self.target = block
        exit = self._transform_nodes(block)
        if self.target is block:
            exit = self._deliver(block, exit)
        self.target = outer_target
        return exit

    def _is_target(self, block: Block) -> bool:
        owner = block.owning_node
        if self.kind == "prim::LoopContinuation":
            return owner is not None and owner.kind == "prim::Loop"
        # A return in the block of a try returns from the block, rather than from the function around it.
        return owner is None or owner.kind == "prim::Try"

    def _transform_nodes(self, block: Block) -> _Exit:
        """Transform the nodes of ``block``, and return how control leaves it. Nodes after a possible exit are guarded,
        the last first."""
        possible: list[tuple[_Exit, Node]] = []
        exit = self._wont()
        node = block.return_node.next
        while node is not block.return_node:
            following = node.next
            if node.kind not in _LEAVING and node.kind != self.kind:
                node = following
                continue
            exit = self._transform_node(node)
            if exit.status in (_Status.WILL, _Status.THROWS):
                self._delete_from(block, following)
                break
            if exit.status is _Status.MIGHT and following is not block.return_node:
                possible.append((exit, node))
                exit = self._wont()
            node = following
        for before, place in reversed(possible):
            exit = self._guard_rest(block, before, place, exit)
        return exit

    def _transform_node(self, node: Node) -> _Exit:
        if node.kind == self.kind:
            exit = _Exit(_Status.WILL, self.true, list(node.inputs))
            node.destroy()
            return exit
        match node.kind:
            case "prim::RaiseException":
                return _Exit(_Status.THROWS, self.thrown, [])
            case "prim::If":
                return self._transform_if(node)
            case "prim::Loop":
                return self._transform_loop(node)
            case "prim::With":
                return self.transform_block(node.blocks[0])
            case "prim::Try":
                self.transform_block(node.blocks[0])
        return self._wont()

    def _deliver(self, block: Block, exit: _Exit) -> _Exit:
        """Make the exit's values the outputs of ``block``, the target of the exit, and return how control leaves the
        block then: by an exception, or not at all.

        Raises:
            InternalError: control may reach the end of a function that returns a value.
        """
        if exit.status is _Status.WILL:
            _set_outputs(block, exit.values)
        elif exit.status is _Status.MIGHT:
            if len(exit.values) != len(block.outputs):
                raise InternalError("control reaches the end of a function that returns a value")
            choice = self._new_if(exit.flag).insert_before(block.return_node)
            _add_if_outputs(choice, exit.values, block.outputs)
            _set_outputs(block, choice.outputs)
        return exit if exit.status is _Status.THROWS else self._wont()

    def _delete_from(self, block: Block, first: Node) -> None:
        """Delete ``first`` and the nodes after it, which are unreachable. Remaining uses get uninitialized values."""
        while first is not block.return_node:
            last = block.return_node.prev
            for value in [*last.outputs, *(value for inner in last.blocks for value in _visible_values(inner))]:
                if value.has_uses:
                    value.replace_all_uses_with(self._uninitialized_value(value.type))
            is_first = last is first
            last.destroy()
            if is_first:
                return

    def _guard_rest(self, block: Block, exit: _Exit, place: Node, rest: _Exit) -> _Exit:
        """Move the nodes after ``place`` into a branch that runs only if control has not left by ``exit``. ``rest`` is
        how control leaves from these nodes; return how it leaves in total."""
        guard = self._new_if(exit.flag).insert_after(place)
        stayed = guard.blocks[1]
        while guard.next is not block.return_node:
            guard.next.move_before(stayed.return_node)
        _add_if_outputs(guard, self._like(block.outputs), block.outputs)
        _set_outputs(block, guard.outputs)
        if block.owning_node is not None and block.owning_node.kind == "prim::With":
            self._pass_on_escaping(guard)
        return self._join(guard, _Exit(_Status.WILL, self.true, exit.values), rest)

    def _pass_on_escaping(self, guard: Node) -> None:
        """Add outputs to ``guard`` for values of its block that are used outside of it. The body of a ``with`` has such
        values."""
        stayed = guard.blocks[1]
        for value in list(_visible_values(stayed)):
            outside = [use for use in value.uses if not stayed.contains(use.user)]
            if outside:
                (output,) = _add_if_outputs(guard, self._like([value]), [value])
                for use in outside:
                    use.user.replace_input(use.offset, output)

    # ------------------------------------------------------------------------------------------- nodes

    def _transform_if(self, node: Node) -> _Exit:
        then_block, else_block = node.blocks
        then_exit = self.transform_block(then_block)
        return self._join(node, then_exit, self.transform_block(else_block))

    def _join(self, node: Node, then_exit: _Exit, else_exit: _Exit) -> _Exit:
        """Return the exit of an ``if``, given the exits of its branches. The flag and the values become outputs of the
        node."""
        status = _joined_status(then_exit.status, else_exit.status)
        if status is _Status.THROWS:
            return _Exit(status, self.thrown, [])
        if status is _Status.WONT:
            return self._wont()
        if then_exit.leaves_nothing:
            then_exit.values = self._like(else_exit.values)
        elif else_exit.leaves_nothing:
            else_exit.values = self._like(then_exit.values)
        flag = self.true
        if status is _Status.MIGHT:
            (flag,) = _add_if_outputs(node, [then_exit.flag], [else_exit.flag])
        return _Exit(status, flag, _add_if_outputs(node, then_exit.values, else_exit.values))

    def _transform_loop(self, node: Node) -> _Exit:
        (body,) = node.blocks
        exit = self.transform_block(body)
        if exit.leaves_nothing:
            # The body may not run at all, so that a loop does not definitely raise.
            return self._wont()
        # Leaving the function leaves the loop: it continues only if control has not left.
        choice = body.append(self._new_if(exit.flag))
        (condition,) = _add_if_outputs(choice, [self.false], [body.outputs[0]])
        body.replace_output(0, condition)
        carried = [(self.false, exit.flag)]
        carried += [(self._uninitialized_value(value.type), value) for value in exit.values]
        outputs = []
        for initial, value in carried:
            node.add_input(initial)
            body.add_input(type=value.type)
            body.add_output(value)
            outputs.append(node.add_output(value.type))
        return _Exit(_Status.MIGHT, outputs[0], outputs[1:])

    # ------------------------------------------------------------------------------------------ values

    def _wont(self) -> _Exit:
        return _Exit(_Status.WONT, self.false, [])

    def _new_if(self, condition: Value) -> Node:
        node = self.graph.create("prim::If", [condition], outputs=0)
        node.add_block()
        node.add_block()
        return node

    def _like(self, values: Iterable[Value]) -> list[Value]:
        return [self._uninitialized_value(value.type) for value in values]

    def _uninitialized_value(self, type: Type) -> Value:
        found = self._uninitialized.get(type)
        if found is None:
            node = self.graph.block.prepend(self.graph.create("prim::Uninitialized", types=[type]))
            found = self._uninitialized[type] = node.output
        return found


def _visible_values(block: Block) -> Iterator[Value]:
    """Yield the values of ``block``, and of the ``with`` bodies in it, which nodes outside of them may use."""
    for node in block.nodes:
        yield from node.outputs
        if node.kind == "prim::With":
            for inner in node.blocks:
                yield from _visible_values(inner)


def _joined_status(then: _Status, otherwise: _Status) -> _Status:
    """Return the status of an ``if``. If one branch raises, it is that of the other, since nothing after the ``if``
    sees the difference."""
    if then is _Status.THROWS:
        return otherwise
    if otherwise is _Status.THROWS or then is otherwise:
        return then
    return _Status.MIGHT


def _add_if_outputs(node: Node, then: Sequence[Value], otherwise: Sequence[Value]) -> list[Value]:
    """Add outputs to an ``if`` and return them: their values are ``then`` in the first block, ``otherwise`` in the
    second."""
    outputs = []
    for then_value, else_value in zip(list(then), list(otherwise), strict=True):
        node.blocks[0].add_output(then_value)
        node.blocks[1].add_output(else_value)
        outputs.append(node.add_output(_joined(then_value.type, else_value.type)))
    return outputs


def _joined(a: Type, b: Type) -> Type:
    joined = unify(a, b, default_to_union=True)
    assert joined is not None
    return joined


def _set_outputs(block: Block, values: Sequence[Value]) -> None:
    new = list(values)
    block.return_node.remove_all_inputs()
    for value in new:
        block.add_output(value)


# ------------------------------------------------------------------------------------- consecutive ifs


def merge_consecutive_ifs(block: Block) -> bool:
    """Merge an ``if`` into the one before it, if its condition is an output of that one, a constant true in one branch
    and a constant false in the other. Return whether anything changed.

    .. code-block:: text

        %left : bool = prim::If(%c)
          block0():
            -> (%true)
          block1():                           %y : int = prim::If(%c)
            -> (%false)                         block0():
        %y : int = prim::If(%left)                -> (%a)
          block0():                   becomes   block1():
            -> (%a)                               %b : int = aten::neg(%a)
          block1():                               -> (%b)
            %b : int = aten::neg(%a)
            -> (%b)
    """
    changed = False
    for node in block.nodes:
        while _merge_next_if(node):
            changed = True
        for inner in node.blocks:
            changed |= merge_consecutive_ifs(inner)
    return changed


def _merge_next_if(first: Node) -> bool:
    if first.kind != "prim::If":
        return False
    second = first.next
    if second.kind != "prim::If" or second.input.node is not first:
        return False
    decisions = [_constant_bool(block.outputs[second.input.offset]) for block in first.blocks]
    if None in decisions or decisions[0] == decisions[1]:
        # Where both are the same, constant propagation will do; merging would double the code.
        return False
    for block, decision in zip(first.blocks, decisions, strict=True):
        _move_branch(first, block, second.blocks[0 if decision else 1])
    for output in second.outputs:
        new = first.add_output(output.type)
        output.replace_all_uses_with(new)
        new.copy_metadata(output)
    second.destroy()
    return True


def _move_branch(first: Node, block: Block, branch: Block) -> None:
    """Move the nodes of ``branch`` to the end of ``block``, one of the blocks of ``first``, and append its results to
    the outputs of ``block``. Uses of ``first``'s outputs in ``block`` become uses of the values that it has for
    them."""
    known = list(block.outputs)
    results = list(branch.outputs)
    branch.return_node.remove_all_inputs()
    moved = list(branch.nodes)
    for node in moved:
        node.move_before(block.return_node)
    for output, value in zip(first.outputs, known, strict=False):
        for use in output.uses:
            if block.contains(use.user):
                use.user.replace_input(use.offset, value)
    own = dict(zip(first.outputs, known, strict=False))
    for result in results:
        block.add_output(own.get(result, result))


def _constant_bool(value: Value) -> bool | None:
    if value.node.kind == "prim::Constant" and value.type == BOOL:
        return bool(value.node["value"])
    return None


# ------------------------------------------------------------------------------------- with statements


def wrap_with_bodies(block: Block) -> None:
    """Move the nodes between ``prim::Enter`` and ``prim::Exit`` into a ``prim::With``.

    An exit within the body then still runs the ``prim::Exit``.

    .. code-block:: text

        %m : T = prim::Enter(%c)                     %m : T = prim::Enter(%c)
        %y : T = aten::neg(%m)             becomes   = prim::With()
        %e : T = prim::Exit(%c)                        block0():
                                                         %y : T = aten::neg(%m)
                                                         -> ()
                                                       block1():
                                                         %e : T = prim::Exit(%c)
                                                         -> ()

    Raises:
        InternalError: ``prim::Enter`` and ``prim::Exit`` do not match.
    """
    entered: list[Node] = []
    node = block.return_node.next
    while node is not block.return_node:
        following = node.next
        for inner in node.blocks:
            wrap_with_bodies(inner)
        if node.kind == "prim::Enter":
            entered.append(node)
        elif node.kind == "prim::Exit":
            if not entered:
                raise InternalError("prim::Exit has no prim::Enter")
            _wrap(entered.pop(), node)
        node = following
    if entered:
        raise InternalError("prim::Enter has no prim::Exit")


def _wrap(enter: Node, exit: Node) -> None:
    wrapper = enter.graph.create("prim::With", outputs=0, range=exit.range).insert_after(exit)
    body, end = wrapper.add_block(), wrapper.add_block()
    while enter.next is not exit:
        enter.next.move_before(body.return_node)
    exit.move_before(end.return_node)


def unwrap_with_bodies(block: Block) -> None:
    """Undo :func:`wrap_with_bodies`."""
    for node in block.nodes:
        for inner in node.blocks:
            unwrap_with_bodies(inner)
        if node.kind == "prim::With":
            for inner in node.blocks:
                for moved in list(inner.nodes):
                    moved.move_before(node)
            node.destroy()
