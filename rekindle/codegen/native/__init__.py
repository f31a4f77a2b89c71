"""Loops over numbers, lists of numbers and characters become machine code.

Each file answers one question: which types there are (``native_types``), what an operator is in machine code
(``arithmetic``, ``numbers``, ``lists``, ``strings``), what control flow is (``writer``), how Python's objects are
unboxed and boxed (``wrapper``, ``boxing_ir``), which parts of a graph are compiled (``regions``), and what runs them
(``region_executor``).

Ints are words of 64 bits there, and Python's are not; what does not fit, and everything that raises, is left to the
plan: the code works on copies of the lists that it writes to, and stops without a trace. The plan then runs the region
from its start.
"""

from rekindle.codegen.native.region_executor import NativeRegion as NativeRegion, region_text as region_text
from rekindle.codegen.native.regions import FormNativeRegions as FormNativeRegions
