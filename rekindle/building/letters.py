"""Characters as code points: compare characters of strings without a string object for each.

.. code-block:: text

    %a : str = aten::__getitem__(%s, %i)                 %a : int = rekindle::letter_at(%s, %i)
    %b : str = aten::__getitem__(%t, %j)      becomes    %b : int = rekindle::letter_at(%t, %j)
    %same : bool = aten::eq(%a, %b)                      %same : bool = aten::eq(%a, %b)

A character is rewritten if it is only compared for equality, with another such character or a constant of one
character, or converted by ``ord``.
"""

from __future__ import annotations

from collections.abc import Collection

from rekindle.analysis.constants import is_constant
from rekindle.building.internal_operators import LETTER_AT
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.types import BOOL, INT, STRING

_COMPARISONS = ("aten::eq", "aten::ne")


def compare_letters(graph: Graph) -> None:
    """Rewrite the characters in ``graph`` and its nested blocks that are only compared as code points, in place."""
    letters = {
        node.output: node
        for node in graph.all_nodes()
        if node.kind == "aten::__getitem__" and node.inputs[0].type == STRING
    }
    while True:
        rejected = [letter for letter in letters if not _is_only_compared(letter, letters.keys())]
        if not rejected:
            break
        for letter in rejected:
            del letters[letter]
    points: dict[Value, Value] = {}
    for letter, node in letters.items():
        point = graph.create(LETTER_AT, node.inputs, types=[INT], range=node.range).insert_before(node)
        points[letter] = point.output
    for letter in letters:
        for user, _ in letter.uses:
            _rewrite(graph, user, points)
    for node in letters.values():
        node.destroy()


def _is_only_compared(letter: Value, letters: Collection[Value]) -> bool:
    for user, _ in letter.uses:
        if user.kind == "aten::ord":
            continue
        if user.kind not in _COMPARISONS:
            return False
        if not all(each in letters or _is_one_character(each) for each in user.inputs):
            return False
    return True


def _is_one_character(value: Value) -> bool:
    if not is_constant(value) or value.type != STRING:
        return False
    text = value.to_python()
    return isinstance(text, str) and len(text) == 1


def _rewrite(graph: Graph, user: Node, points: dict[Value, Value]) -> None:
    """Replace a comparison or ``ord`` of characters with the operator on their code points, ``points``."""
    if user.owning_block is None:  # both operands of a comparison are characters, and it is replaced
        return
    if user.kind == "aten::ord":
        user.replace_with(points[user.input])
        return
    operands = []
    for each in user.inputs:
        if each in points:
            operands.append(points[each])
        else:
            operands.append(graph.create_constant(ord(str(each.to_python()))).insert_before(user).output)
    compared = graph.create(user.kind, operands, types=[BOOL], range=user.range).insert_before(user)
    user.replace_with(compared.output)
