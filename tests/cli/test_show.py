"""`rekindle show` writes the methods of an archive."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

from tests.cli.conftest import Command

PART = """\
def forward(self,
    x: Tensor) -> Tensor:
  linear = self.linear
  return torch.relu((linear).forward(x, ))
"""

FAIL = """\
def fail(self,
    x: Tensor) -> Tensor:
  _0 = uninitialized(Tensor)
  ops.prim.RaiseException("as asked", "builtins.ValueError")
  return _0
"""


def test_all_methods_of_the_module(command: Command) -> None:
    done = command("show", "net.pt")
    assert (done.code, done.err) == (0, "")
    assert [line for line in done.out.splitlines() if line.startswith("#")] == ["# forward", "# classify", "# fail"]
    assert done.out.startswith("# forward\ndef forward(self,\n    x: Tensor,\n    scale: float=1.) -> Tensor:\n")
    assert done.out.endswith(f"\n\n# fail\n{FAIL}")


def test_one_method_by_its_path(command: Command) -> None:
    done = command("show", "net.pt", "--method", "second.forward")
    assert (done.code, done.out, done.err) == (0, PART, "")


def test_the_methods_of_all_parts(command: Command) -> None:
    done = command("show", "net.pt", "--all")
    headings = [line for line in done.out.splitlines() if line.startswith("#")]
    assert headings == [
        "# forward",
        "# classify",
        "# fail",
        "# first.forward",
        "# first.linear.forward",
        "# second.forward",
        "# second.linear.forward",
    ]


def test_graphs(command: Command) -> None:
    done = command("show", "net.pt", "--method", "first.forward", "--graph")
    places = [line.partition(" # ")[0] for line in done.out.splitlines()]
    assert "\n".join(places) + "\n" == textwrap.dedent(
        """\
        graph(%self.1 : __torch__.tests.cli.conftest.Part,
              %x.1 : Tensor):
          %linear.1 : __torch__.torch.nn.modules.linear.Linear = prim::GetAttr[name="linear"](%self.1)
          %6 : Tensor = prim::CallMethod[name="forward"](%linear.1, %x.1)
          %7 : Tensor = aten::relu(%6)
          return (%7)
        """
    )
    inlined = command("show", "net.pt", "--method", "first.forward", "--inlined-graph").out
    assert "prim::CallMethod" not in inlined
    assert "aten::linear" in inlined


def test_json(command: Command) -> None:
    done = command("show", "net.pt", "--json", "--method", "first.forward")
    schema = "forward(__torch__.tests.cli.conftest.Part self, Tensor x) -> Tensor"
    assert json.loads(done.out) == {"first.forward": {"schema": schema, "code": PART}}


def test_what_is_not_there(command: Command) -> None:
    done = command("show", "net.pt", "--method", "second.backward")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "rekindle: error: there is no method 'second.backward'; there are: forward (see 'rekindle show --help')\n"
    )
    assert command("show", "net.pt", "--method", "third.forward").err == (
        "rekindle: error: there is no part 'third' (see 'rekindle show --help')\n"
    )


def test_a_page_for_browsers(command: Command, folder: Path) -> None:
    done = command("show", "net.pt", "--html", "net.html")
    assert (done.code, done.out, done.err) == (0, "", "")
    page = (folder / "net.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>\n")
    assert "<title>forward</title>" in page
    done = command("show", "net.pt", "--html", "net.html", "--method", "nothing")
    assert (done.code, done.out) == (2, "")
