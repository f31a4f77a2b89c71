"""Native regions: compile loops over numbers, lists of numbers and characters to machine code.

The files define the types of values (``native_types``), the lowering of operators (``arithmetic``, ``numbers``,
``lists``, ``strings``) and of control flow (``writer``), the unboxing and boxing of Python objects (``wrapper``,
``boxing_ir``), the parts of a graph that are compiled (``regions``), and their execution (``region_executor``).

Ints in native code are words of 64 bits; Python's are unbounded. If an int does not fit, or an operation would raise,
the execution plan takes over. Native code works on copies of the lists that it writes to, so that it can stop without
side effects. The plan then runs the region from its start.
"""

from rekindle.codegen.native.region_executor import NativeRegion as NativeRegion, region_text as region_text
from rekindle.codegen.native.regions import FormNativeRegions as FormNativeRegions
