"""Programs whose calls are measured."""

from __future__ import annotations

from benchmarks.workloads.case import Case as Case, Workload as Workload
from benchmarks.workloads.kernels import KERNELS as KERNELS
from benchmarks.workloads.networks import NETWORKS
from benchmarks.workloads.pointwise import POINTWISE
from benchmarks.workloads.recurrent import RECURRENT
from benchmarks.workloads.scalars import SCALARS

WORKLOADS: tuple[Workload, ...] = (*RECURRENT, *POINTWISE, *NETWORKS, *SCALARS)
