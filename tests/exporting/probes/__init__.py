"""Small programs that use what TorchScript programs are made of, each with calls that take other branches and trip
counts than the example does."""

import tests.exporting.probes.branches
import tests.exporting.probes.hard_loops
import tests.exporting.probes.hard_values
import tests.exporting.probes.loops
import tests.exporting.probes.modules
import tests.exporting.probes.state
import tests.exporting.probes.values  # noqa: F401  (these fill the table)
from tests.exporting.probes.registry import PROBES, Probe

__all__ = ["PROBES", "Probe"]
