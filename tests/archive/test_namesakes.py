"""Programs that were loaded take objects of Python's classes of the same name, as those of torch.jit do."""

from enum import Enum
from typing import List, Optional

import pytest

import rekindle
from rekindle.errors import ArgumentError


class Color(Enum):
    RED = 1
    BLUE = 2


class Node:
    def __init__(self, value: int, next: Optional["Node"]):
        self.value = value
        self.next = next


def total(nodes: List[Node], color: Color) -> int:
    result = color.value
    for node in nodes:
        next = node.next
        if next is not None:
            result += 10 * next.value
        result += node.value
        node.value = 0
    return result


def loaded():
    return rekindle.load(rekindle.script(total).save_to_buffer())


def test_objects_and_members():
    last = Node(2, None)
    assert loaded()([Node(1, last), last], Color.BLUE) == 2 + 20 + 1 + 2
    assert last.value == 2  # the program has objects of its own


def test_an_object_stays_one_object():
    node = Node(3, None)
    node.next = node
    assert loaded()([node], Color.RED) == 1 + 30 + 3


def test_attributes_must_fit():
    node = Node(3, None)
    node.value = "three"
    with pytest.raises(ArgumentError) as caught:
        loaded()([node], Color.RED)
    assert str(caught.value).splitlines()[0] == (
        "forward() argument 'nodes' (position 1) takes List[__torch__.tests.archive.test_namesakes.Node], but got a "
        "list, in which nodes[0].value is a str: 'three' instead of int"
    )


def test_others_are_refused():
    class Other(Enum):
        RED = 1

    class Stranger:
        value = 1
        next = None

    program = loaded()
    with pytest.raises(ArgumentError, match=r"takes __torch__\.tests\.archive\.test_namesakes\.Color, but got"):
        program([], Other.RED)
    with pytest.raises(ArgumentError, match=r"nodes\[0\] is a .*Stranger instead of"):
        program([Stranger()], Color.RED)
