"""`rekindle report` calls a method, and prints which machine code ran."""

from __future__ import annotations

import json
import re

import rekindle
from tests.cli.conftest import Command


def test_what_ran(command: Command) -> None:
    done = command("report", "net.pt", "f32[2,2]")
    assert (done.code, done.err) == (0, "")
    text = re.sub(r"\d+\.\d ms", "T ms", done.out).replace("as a native plan", "as a plan")
    text = re.sub(r"(compiled|read from disk|there already) in", "made in", text)
    text = re.sub(r"1 (compiled|read from disk|there already),", "1 made,", text)
    text = re.sub(r"\b(\w+\.py):\d+", r"\1:L", text)
    assert text == (
        "forward: the strategy is 'native', with 1 version\n"
        "1 kernel: 1 made, in T ms\n"
        "\n"
        "version 1, as a plan, made in T ms\n"
        "  for %self.1 : __torch__.tests.cli.conftest.Net, %x.1 : Tensor, %scale.1 : float\n"
        "  kernel 1, made in T ms\n"
        "    for f32[2, 2], f32[2, 2], f32[2], f32[2, 2], f32[2], float, f32[2] -> f32[2, 2]\n"
        "    linear.py:L: return F.linear(input, self.weight, self.bias)\n"
        "      aten::linear × 2\n"
        "    conftest.py:L: return torch.relu(self.linear(x))\n"
        "      aten::relu × 2\n"
        "    conftest.py:L: return self.second(self.first(x)) * scale + self.offset\n"
        "      aten::mul, aten::add\n"
        "    ran one by one 2 times: it had not yet run often enough for a kernel to pay\n"
    )


def test_as_json_and_with_texts(command: Command) -> None:
    told = json.loads(command("report", "net.pt", "f32[2,2]", "--json").out)
    assert (told["name"], told["strategy"]) == ("forward", "native")
    assert "\n# kernel 1\nkernel(in0: f32" in command("report", "net.pt", "f32[2,2]", "--show", "kernels").out
    assert ".text" in command("report", "net.pt", "f32[2,2]", "--show", "assembly").out


def test_the_strategy_is_as_before(command: Command) -> None:
    assert command("report", "net.pt", "f32[2,2]", "--strategy", "simple").out.startswith(
        "forward: the strategy is 'simple', with 1 version\n"
    )
    before = rekindle.set_execution_strategy("profiling")
    try:
        command("report", "net.pt", "f32[2,2]")
    finally:
        assert rekindle.set_execution_strategy(before) == "profiling"


def test_programs_that_raise_and_inputs_that_do_not_fit(command: Command) -> None:
    done = command("report", "net.pt", "f32[2,2]", "--method", "fail")
    assert (done.code, done.out) == (1, "")
    assert done.err == "rekindle: error: the program raised ValueError: as asked\n"
    done = command("report", "net.pt")
    assert done.code == 2
    assert done.err == (
        "rekindle: error: forward() is missing 1 argument: 'x'; it is forward(Tensor x, float scale=1.) -> Tensor "
        "(see 'rekindle report --help')\n"
    )
