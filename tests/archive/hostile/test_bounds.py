"""Input without end, and texts that made the lexer take far more memory than they have characters."""

import inspect
import io
import os
import socket
import tracemalloc
from dataclasses import replace

import pytest
import torch

import rekindle
from rekindle.archive.limits import DEFAULT_LIMITS
from rekindle.errors import ArchiveLimitError, CompileError, ParseError, Source, UnsupportedArchiveError
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.text.schema_parser import parse_schema
from rekindle.ir.text.type_parser import parse_type
from rekindle.syntax.parser import parse_module
from tests.archive.hostile.containers import Member, packed, unpacked
from tests.archive.hostile.programs import program, refusal

# --------------------------------------------------------------------------------------------------------- what is read


def refused(f) -> str:
    with pytest.raises(UnsupportedArchiveError) as caught:
        rekindle.load(f)
    return str(caught.value)


def test_a_named_pipe_is_not_waited_for(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert refused(path) == f"An archive is read from a regular file, but '{path}' is a named pipe."
    assert refused(str(path)) == f"An archive is read from a regular file, but '{path}' is a named pipe."


def test_devices_and_directories(tmp_path):
    assert refused("/dev/zero") == "An archive is read from a regular file, but '/dev/zero' is a device."
    with open("/dev/zero", "rb") as file:
        assert refused(file) == "An archive is read from a regular file, but the file that was given is a device."
    assert refused(tmp_path) == f"An archive is read from a regular file, but '{tmp_path}' is a directory."


def test_sockets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        with pytest.raises(OSError, match="No such device or address"):
            rekindle.load("socket")


def test_links_lead_to_regular_files(tmp_path):
    path, link = tmp_path / "program.pt", tmp_path / "link.pt"
    path.write_bytes(program("  n : int\n", n=b"K\1"))
    link.symlink_to(path)
    for use_mmap in (True, False):
        assert rekindle.load(link, mmap=use_mmap).n == 1
    missing = tmp_path / "missing"
    with pytest.raises(FileNotFoundError):
        rekindle.load(missing)


def test_pipes_that_are_open_are_read_up_to_a_limit():
    data = program("  n : int\n", n=b"K\1")

    def through_a_pipe(limits):
        reading, writing = os.pipe()
        with os.fdopen(writing, "wb") as file:
            file.write(data)
        with os.fdopen(reading, "rb") as file:
            return rekindle.load(file, limits=limits)

    assert through_a_pipe(DEFAULT_LIMITS).n == 1
    with pytest.raises(ArchiveLimitError) as caught:
        through_a_pipe(replace(DEFAULT_LIMITS, decompressed=100))
    assert str(caught.value) == (
        "The stream has more than 100 bytes.\n"
        "Hint: If you trust it, raise the limit: limits=rekindle.ArchiveLimits(decompressed=…)."
    )
    assert rekindle.load(io.BytesIO(data), limits=replace(DEFAULT_LIMITS, decompressed=100)).n == 1


# --------------------------------------------------------------------------------------------------------------- lexing


def peak_of(run) -> int:
    """The most bytes that Python had taken at once while ``run`` ran."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


COUNT = 300_000
LONG = {
    "digits": "    return " + "1" * COUNT,
    "digits in groups": "    return " + "1_" * (COUNT // 2) + "1",
    "hexadecimal digits": "    return 0x" + "f" * COUNT,
    "a fraction": "    return 0." + "1" * COUNT,
    "an exponent": "    return 1e" + "1" * COUNT,
}


@pytest.mark.parametrize("body", LONG.values(), ids=LONG)
def test_long_numbers(body):
    archive = program(f"  def g(self) -> int:\n{body}\n")

    def load() -> None:
        text = refusal(archive, ParseError)
        assert text.startswith("A number has more than 1000 characters.\n")
        assert len(text) < 2000

    load()
    assert peak_of(load) < 12 * len(archive)


WITHIN = {
    "blank lines": ("\n" * COUNT, "1"),
    "lines of blanks": (" \t\n" * (COUNT // 3), "1"),
    "comments": ("#\n" * (COUNT // 2), "1"),
    "escapes": ("", "len('" + "\\n" * (COUNT // 2) + "')"),
    "escaped quotes": ("", "len('''" + "\\'" * (COUNT // 2) + "''')"),
    "quotes in quotes": ("", "len('''" + "a'" * (COUNT // 2) + " ''')"),
}


@pytest.mark.parametrize(("before", "expression"), WITHIN.values(), ids=WITHIN)
def test_long_runs_take_a_small_multiple_of_their_length(before, expression):
    archive = program(f"{before}\n  def g(self) -> int:\n    return torch.{expression}\n".replace("torch.1", "1"))
    rekindle.load(archive)
    assert peak_of(lambda: rekindle.load(archive)) < 20 * len(archive)


def test_braces_of_formatted_strings_are_read_in_linear_time():
    """Each pair was appended to a string that grew: a quadratic number of characters was copied."""
    source = "x = f'" + "{{" * 400_000 + "'\n"
    (statement,) = parse_module(Source(source))
    assert "{" * 100 in str(statement)


def test_the_number_of_tokens_is_limited():
    limits = replace(DEFAULT_LIMITS, code_tokens=1000)
    archive = program(f"  def g(self) -> int:\n    n = [{'1, ' * 2000}1]\n    return 1\n")
    assert rekindle.load(archive).g() == 1
    with pytest.raises(ParseError) as caught:
        rekindle.load(archive, limits=limits)
    assert caught.value.message == "The text has more than 1000 tokens."
    assert caught.value.hint == (
        "If you trust this file, raise the limit: limits=rekindle.ArchiveLimits(code_tokens=…)."
    )
    assert caught.value.range.source.filename == "code/__torch__.py"


GRAPH = "graph(%x : Tensor):\n  %n : int = prim::Constant[value={}]()\n  return (%x)\n"


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_graph, GRAPH.format("1" * COUNT)),
        (parse_schema, f"f(int n={'1' * COUNT}) -> int"),
        (parse_type, f"Tensor[{'1' * COUNT}]"),
    ],
    ids=["graph", "schema", "type"],
)
def test_the_other_texts(parse, text):
    def read() -> None:
        with pytest.raises(ParseError) as caught:
            parse(text)
        assert caught.value.message == "A number has more than 1000 characters."
        assert len(str(caught.value)) < 2000

    read()
    assert peak_of(read) < 12 * len(text)


# ----------------------------------------------------------------------------------------------------- where errors are


class Doubled(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)


def broken(old: str, new: str) -> bytes:
    """An archive that this package wrote, with another text: its records of the author's places still fit."""
    buffer = io.BytesIO()
    rekindle.save(rekindle.script(Doubled()), buffer)
    members = unpacked(buffer.getvalue())
    for index, member in enumerate(members):
        if member.name.endswith("test_bounds.py"):
            assert old in member.content.decode()
            members[index] = Member(member.name, member.content.decode().replace(old, new).encode())
    return packed(members)


@pytest.mark.parametrize(
    ("new", "error", "message", "marks"),
    [
        ("torch.rulu(x)", CompileError, "there is no operator 'aten::rulu'", "           ^^^^^^^^^^"),
        ("torch.relu(x]", ParseError, "']' does not close '(' of line 7.", "                       ^"),
    ],
)
def test_errors_are_where_the_text_of_the_archive_is_wrong(new, error, message, marks):
    """They showed the file of the author, which the reader of the archive need not have, and which may say anything."""
    with pytest.raises(error) as caught:
        _ = rekindle.load(broken("torch.relu(x)", new)).graph
    line = inspect.getsourcelines(Doubled)[1] + 2
    assert (
        str(caught.value)
        == f"""\
{message}
  File "code/__torch__/tests/archive/hostile/test_bounds.py", line 7
      training : bool
      def forward(self: __torch__.tests.archive.hostile.test_bounds.Doubled,
        x: Tensor) -> Tensor:
        return {new}
    {marks}
  compiled from "{__file__}", line {line}"""
    )
