"""Programs of each kind, exported and held beside what they were made from; `tests.sweeps.exports` does so for all
probes."""

from __future__ import annotations

import pytest
import torch

import rekindle
from tests.exporting.checking import compared, exported
from tests.exporting.probes import PROBES
from tests.oracle.programs.interfaces import InterfacePart, NamesLayers

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")  # PyTorch's own

SAMPLE = (
    *("if.early_return", "if.lists", "for.dynamic_size", "for.long_break", "while.if_inside", "args.nested"),
    *("state.int_decides", "state.buffer_returned", "raise.nested", "fork.list", "class.in_branch", "nn.GRU"),
    *(
        "hard.none_before",
        "hard.append_and_break",
        "hard.bidirectional",
        "hard.ring_buffer",
        "hard.roots",
        "hard.backwards",
    ),
)


@pytest.mark.parametrize("name", SAMPLE)
def test_exported_programs_agree(name: str) -> None:
    probe = PROBES[name]
    assert compared(exported(probe).module(), rekindle.script(probe.make()), probe).verdict == "agrees"


def test_a_part_by_its_name() -> None:
    """Which part of a container an argument names is known while exporting, as every string is."""
    module = NamesLayers()
    program = rekindle.to_exported(rekindle.script(module), (torch.ones(3), "affine"))
    x = torch.arange(3.0)
    torch.testing.assert_close(program.module()(x, "affine"), module(x, "affine"))
    with pytest.raises(AssertionError, match=r"^Guard failed: name == 'affine'$"):
        program.module()(x, "one")


def test_a_part_that_is_an_interface() -> None:
    """What class stands behind an interface is known while exporting; its parameters are inputs like others."""
    module = InterfacePart()
    program = rekindle.to_exported(rekindle.script(module), (torch.ones(3),))
    assert {*program.state_dict} == {*module.state_dict()}
    x = torch.arange(3.0)
    torch.testing.assert_close(program.module()(x), module(x))
