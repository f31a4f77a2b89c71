"""Modules of libraries: every module of ``torch.nn``, and models and layers of other packages, compared with eager and
``torch.jit``."""

from benchmarks.modules.measure import LIMIT as LIMIT, ROUNDS as ROUNDS, SLICE as SLICE
from benchmarks.modules.report import PATH as PATH, save as save, summary as summary, table as table
from benchmarks.modules.selection import chosen as chosen, measured as measured
