"""``docs/language.md``, made of the table of constructs and the programs: ``python -m tests.language.page``.

What the page says of a construct follows from what its programs say, and those claims are tests
(``tests/language/test_programs.py``): that a program works here, that it is refused, and what torch.jit does with it.
"""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from tests.language.constructs import CONSTRUCTS, Construct
from tests.language.corpus import Program, corpus
from tests.language.gaps import GAPS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "language.md"

HEAD = """\
# The language

Constructs of Python, and what `torch.jit` and rekindle do with each. The last column links the programs that show it.
`make pages` writes this page. Tests compile every program with both and run those that compile on two sets of inputs.
They fail if the page is wrong.

- **works**: it compiles, and agrees with Python on these inputs: the same values and types, the same exceptions and
  messages, the same output, and the same changes to its arguments. For `torch.jit`, messages, output and arguments are
  not compared, and lists count as sizes, numbers as dtypes.
- **differs**: it compiles, and does something else than Python.
- **refuses**: it does not compile. The error of rekindle has the source location and the reason, and often what to
  write instead.
- If the programs of a row have different outcomes, the numbers count them.

[The tutorial](tutorial.md) shows how to write such programs. [Where results differ](differences.md) lists more.
"""


def _state_here(program: Program) -> str:
    if program.refusal is not None:
        return "refuses"
    return "differs" if program.name in GAPS else "works"


def _summary(states: Sequence[str]) -> str:
    counts = Counter(states)
    if len(counts) == 1:
        return states[0]
    return ", ".join(f"{state} {counts[state]}" for state in ("works", "differs", "refuses") if counts[state])


def _here(programs: list[Program]) -> str:
    errors = sorted({program.refusal[0].__name__ for program in programs if program.refusal is not None})
    told = f" (`{'`, `'.join(errors)}`)" if errors else ""
    return _summary([_state_here(program) for program in programs]) + told


def _links(programs: list[Program]) -> str:
    return ", ".join(
        f"[{program.name.partition('.')[2]}](../{program.file.relative_to(ROOT).as_posix()})" for program in programs
    )


def by_construct(programs: list[Program]) -> dict[str, list[Program]]:
    """The programs of each key."""
    found: dict[str, list[Program]] = defaultdict(list)
    for program in programs:
        for key in program.constructs:
            found[key].append(program)
    return found


def _section(title: str, constructs: list[Construct], programs: dict[str, list[Program]]) -> list[str]:
    lines = ["", f"## {title}", "", "| construct | `torch.jit` | rekindle | programs |", "| --- | --- | --- | --- |"]
    for construct in constructs:
        shown = programs[construct.key]
        theirs = _summary([program.torch for program in shown])
        lines.append(f"| {construct.title} | {theirs} | {_here(shown)} | {_links(shown)} |")
    return lines


def _figures(programs: list[Program]) -> str:
    here, theirs = (
        Counter(_state_here(program) for program in programs),
        Counter(program.torch for program in programs),
    )
    differing = f"{here['differs']} differ{'s' if here['differs'] == 1 else ''}"
    return (
        f"Of {len(programs)} programs over {len(CONSTRUCTS)} constructs, {here['works']} work here, "
        f"{differing} and {here['refuses']} are refused; in `torch.jit` {theirs['works']} work, "
        f"{theirs['differs']} differ and {theirs['refuses']} are refused."
    )


def render() -> str:
    """The text of the page."""
    programs = corpus()
    shown = by_construct(programs)
    lines = [HEAD, _figures(programs)]
    for title, constructs in groupby(CONSTRUCTS, key=lambda construct: construct.section):
        lines += _section(title, list(constructs), shown)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    PAGE.write_text(render(), encoding="utf-8")
