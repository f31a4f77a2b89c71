"""Debug records of archives: the source ranges of their code."""

from __future__ import annotations

from rekindle.archive.code.debug_records import DebugRecords, write_debug_records
from rekindle.archive.limits import DEFAULT_LIMITS
from rekindle.archive.pickles.reader import read_pickle
from rekindle.errors import Source, SourceRange

TEXT = "first()\nsecond()\n"


def come_back(*ranges: tuple[int, SourceRange]) -> tuple[bytes, DebugRecords]:
    pickle = write_debug_records(TEXT, ranges)
    return pickle, DebugRecords(lambda: read_pickle(memoryview(pickle), "code.debug_pkl", DEFAULT_LIMITS), TEXT)


def test_only_the_lines_around_a_place_are_kept() -> None:
    lines = [f"line({number})  # é" for number in range(1, 1001)]
    source = Source("".join(f"{line}\n" for line in lines), "file.py", first_line=11, dedent=4)
    here = source.offset(500, 5)
    last = source.offset(999, 0)
    pickle, records = come_back((0, source.range(here, here + 3)), (8, source.range(last, len(source.text))))
    text = pickle.decode("utf-8", "replace")
    assert [number for number in range(1, 1001) if f"line({number})" in text] == [*range(498, 505), 997, 998, 999, 1000]

    first = records.origin(0)
    assert first is not None
    assert (first.place, first.text) == ("file.py:511:9", "501")
    assert first.highlight() == (
        '  File "file.py", line 511\n'
        "        line(498)  # é\n"
        "        line(499)  # é\n"
        "        line(500)  # é\n"
        "        line(501)  # é\n"
        "             ^^^"
    )
    second = records.origin(8)
    assert second is not None
    assert (second.place, second.text) == ("file.py:1010:4", "line(1000)  # é\n")


def test_what_came_from_an_archive_is_written_as_it_was() -> None:
    source = Source("".join(f"line({number})\n" for number in range(100)), "file.py")
    at = source.offset(50, 0)
    pickle, records = come_back((0, source.range(at, at + 4)))
    again = records.origin(0)
    assert again is not None
    assert write_debug_records(TEXT, [(0, again)]) == pickle
