"""The programs of the golden archives, by name. Written for Python 3.6, as all of this folder is."""

PROGRAMS = {}

SPREAD = "1.3 1.4 1.6 1.8 1.11 2.0 2.13"
"""The releases that most programs are written by: one for every change of the format or of what is written into it."""


class Program:
    """A way to make a program, and the releases of PyTorch that write it."""

    def __init__(self, make, releases):
        self.make = make
        self.releases = releases


class Made:
    """A program ready to be saved: its module, the calls to record, and what else goes into the archive."""

    def __init__(self, module, calls, extra_files=None):
        self.module = module
        self.calls = calls
        self.extra_files = extra_files or {}


def parse_release(text):
    """``(1, 10)`` for ``1.10.2+cu102``."""
    return tuple(int(part) for part in text.split(".")[:2])


def program(releases=SPREAD, since="1.0"):
    """Register the decorated function as the program of its name, for these releases from ``since`` on."""
    chosen = [parse_release(text) for text in releases.split()]

    def decorate(make):
        assert make.__name__ not in PROGRAMS
        PROGRAMS[make.__name__] = Program(make, [item for item in chosen if item >= parse_release(since)])
        return make

    return decorate
