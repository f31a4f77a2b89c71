"""Loops over containers that their bodies change.

If the body may change the length of the list, through any variable, the length is computed before each iteration:

.. code-block:: text

    for y in xs:                       %n : int = aten::len(%xs)         # computed where $at is compared, instead
        ys.append(y)        becomes    prim::Loop(%forever)
                                         block0(%i : int):
                                           = prim::Store[name="$at"](%i + 1)
                                           …
                                         block1():
                                           -> ($at < aten::len(%xs))

If the body may change the length of a dict, a set or a deque, the loop raises before the next iteration if it has done
so. If the body may assign to keys of a dict, each iteration reads the value of its key from the dict
(:func:`read_live`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from rekindle.errors import SourceRange
from rekindle.frontend.ssa.assignedness import stored_types
from rekindle.ir.graph import Block, Node, Value
from rekindle.ir.graph_function import called_function
from rekindle.ir.operators.registry import AliasAnalysisKind
from rekindle.ir.types import DictType, ListType, Type, is_python_key

Private = Callable[[str], bool]
"""Function that returns whether a variable has the only reference to its container."""

_VIEWS: Final = ("keys", "values", "items")
_KEEPS_LENGTH: Final = frozenset({"sort", "reverse"})
_ONLY_ADDS: Final = frozenset({"_set_item", "setdefault", "update"})
_LOOKS: Final = frozenset({"len", "__getitem__", "Loop"})


def _name(node: Node) -> str:
    """Return the name of an operator without its namespace, since operators of dicts whose keys are of several types
    are ``python::keys`` instead of ``aten::keys``."""
    return node.kind.partition("::")[2]


def library_of_keys(type: Type) -> str:
    """Return the namespace of the operators of a dict of this type: ``python`` for key types that TorchScript does not
    have, else ``aten``."""
    return "python" if isinstance(type, DictType) and is_python_key(type.key) else "aten"


def underlying_dict(value: Value) -> Value | None:
    """Return the dict of which ``value`` is the list of keys, values or items; None for other values."""
    if _name(value.node) not in _VIEWS:
        return None
    container, *_ = value.node.inputs
    return container if isinstance(container.type, DictType) else None


def read_live(view: Value, loop: Node, range: SourceRange) -> None:
    """Read the items of a loop over ``d.values()`` or ``d.items()`` from the dict itself, because the body may write to
    it.

    .. code-block:: text

        %items = aten::items(%d)                     %keys = aten::keys(%d)
        prim::Loop(aten::len(%items))     becomes    prim::Loop(aten::len(%keys))
          %e = aten::__getitem__(%items, %i)           %k = aten::__getitem__(%keys, %i)
                                                       %v = aten::__getitem__(%d, %k)
                                                       %e = prim::TupleConstruct(%k, %v)
    """
    container, graph = view.node.input, loop.graph
    library = view.node.kind.partition("::")[0]
    if _name(view.node) == "keys" or not isinstance(container.type, DictType):
        return
    with graph.inserting_before(view.node):
        keys = graph.insert(f"{library}::keys", [container], range=range)
    for use in list(view.uses):
        node = use.user
        if node.kind == "aten::len":
            node.replace_input(0, keys)
        elif node.kind == "aten::__getitem__" and loop.blocks[0].contains(node):
            with graph.inserting_before(node):
                _, index = node.inputs
                key = graph.insert("aten::__getitem__", [keys, index], range=node.range)
                item = graph.insert(f"{library}::__getitem__", [container, key], range=node.range)
                if _name(view.node) == "items":
                    pair = graph.create("prim::TupleConstruct", [key, item], types=[node.output.type], range=range)
                    item = graph.insert_node(pair).output
            node.replace_with(item)


def error_of(type: Type) -> tuple[str, str]:
    """Return the message and the class of Python's error for a container of this type that changes during a loop over
    it."""
    python = type.python.partition(":")[0] if isinstance(type, (DictType, ListType)) else ""
    said = {
        "deque": "deque mutated during iteration",
        "set": "Set changed size during iteration",
        "frozenset": "Set changed size during iteration",
        "OrderedDict": "OrderedDict mutated during iteration",
    }
    return said.get(python, "dictionary changed size during iteration"), "builtins.RuntimeError"


def may_change_length(block: Block, value: Value, is_private: Private) -> bool:
    """Return whether ``block`` may make the container ``value``, which exists before it, longer or shorter."""
    return any(_changes(node, value, block, is_private) for node in block.all_nodes())


def may_delete(block: Block, value: Value, is_private: Private) -> bool:
    """Return whether ``block``, which may change the length of the container ``value``, may do so by removing
    elements."""
    nodes = (node for node in block.all_nodes() if _name(node) not in _ONLY_ADDS)
    return any(_changes(node, value, block, is_private) for node in nodes)


def _changes(node: Node, value: Value, body: Block, is_private: Private) -> bool:
    if node.kind in ("prim::CallFunction", "prim::CallMethod"):
        if _is_alone(value, is_private) and not any(_same(item, value) for item in node.inputs):
            return False
        return _callee_changes(node, value.type, set())
    return any(
        _same_kind(written, value)
        and not _is_made_within(written, body)
        and (_same(written, value) or not _are_apart(written, value, is_private))
        for written in _lengths_changed(node)
    )


def _lengths_changed(node: Node) -> Iterator[Value]:
    """Yield the containers that ``node`` may make longer or shorter."""
    schema = node.schema
    if schema is None or not schema.is_mutable or _name(node) in _KEEPS_LENGTH:
        return
    for value, argument in zip(node.inputs, schema.arguments, strict=False):
        if argument.alias is None or not argument.alias.is_write:
            continue
        if isinstance(value.type, DictType) or (isinstance(value.type, ListType) and _name(node) != "_set_item"):
            yield value


def _callee_changes(node: Node, type: Type, seen: set[int]) -> bool:
    """Return whether the function called by ``node`` may change the length of a container of this type that it has not
    created. ``seen`` are the ids of functions already searched; new ones are added."""
    record = called_function(node)
    if record is None or not record.is_defined:
        return True
    if id(record) in seen:
        return False
    seen.add(id(record))
    for inner in record.graph.block.all_nodes():
        if inner.kind in ("prim::CallFunction", "prim::CallMethod"):
            if _callee_changes(inner, type, seen):
                return True
        elif any(_kind(_source(item).type) == _kind(type) and not _is_new(item) for item in _lengths_changed(inner)):
            return True
    return False


def _kind(type: Type) -> str:
    if isinstance(type, ListType):
        return f"list of {type.element}"
    return f"dict of {type.key}, {type.value}" if isinstance(type, DictType) else str(type)


def _same_kind(a: Value, b: Value) -> bool:
    return _kind(_source(a).type) == _kind(_source(b).type)


def _source(value: Value) -> Value:
    while value.node.kind == "prim::unchecked_cast":
        value = value.node.input
    return value


def _variable(value: Value) -> str | None:
    node = _source(value).node
    return node.get_string("name") if node.kind == "prim::Load" else None


def _same(a: Value, b: Value) -> bool:
    name = _variable(a)
    return _source(a) is _source(b) or (name is not None and name == _variable(b))


def _are_apart(a: Value, b: Value, is_private: Private) -> bool:
    """Return whether two values are certainly different containers."""
    return _is_alone(a, is_private) or _is_alone(b, is_private)


def _is_alone(value: Value, is_private: Private) -> bool:
    name = _variable(value)
    return is_private(name) if name is not None else _is_new(value)


def _is_made(node: Node) -> bool:
    """Return whether the first output of ``node``, a container, is new."""
    if node.kind in ("prim::ListConstruct", "prim::EmptyListLiteral", "prim::DictConstruct"):
        return True
    operator = node.operator
    if operator is None or operator.effects not in (AliasAnalysisKind.FROM_SCHEMA, AliasAnalysisKind.PURE):
        return False  # the schemas of ``prim::TupleIndex`` and the like do not say what their results alias
    returns = operator.schema.returns
    return bool(returns) and returns[0].alias is None


def _is_made_within(value: Value, body: Block) -> bool:
    """Return whether ``value`` is a container that the same iteration of ``body`` has created, so that the loop does
    not iterate over it."""
    node: Node | None = _source(value).node
    if node is None or node.kind != "prim::Load":
        return node is not None and body.contains(node) and _is_made(node)
    name = node.get_string("name")
    while node is not None and body.contains(node):
        node = node.prev
        if node.kind == "prim::Return":
            block = node.owning_block
            node = None if block is None else block.owning_node
        elif node.kind == "prim::Store" and node.get_string("name") == name:
            return _is_made_within(node.input, body)
        elif any(name in stored_types(inner) for inner in node.blocks):
            return False
    return False


def _is_new(value: Value) -> bool:
    """Return whether ``value`` is a newly created container to which nothing else refers."""
    return _is_made(_source(value).node) and all(
        _name(use.user) in _LOOKS or _is_changed_by(use.user, value) for use in value.uses
    )


def _is_changed_by(node: Node, value: Value) -> bool:
    return any(written is value for written in _lengths_changed(node))
