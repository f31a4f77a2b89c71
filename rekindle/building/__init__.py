"""Native libraries: programs that run without Python.

:func:`~rekindle.building.library.build` writes a shared library and a C header. ``preparation`` specializes and fuses
the graphs, ``lowering`` translates them to LLVM IR, ``runtime`` is the run-time library of programs, written in the
language of ``lowlevel``, and ``elf`` links the objects.
"""

from rekindle.building.library import Build as Build, build as build
from rekindle.building.lowering.representation import NotBuildable as NotBuildable
