"""What is executed: the programs of both corpora and of the overview, models, operators and modules of PyTorch."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch

import rekindle
from tests import overview_programs as overview
from tests.language.gaps import GAPS
from tests.oracle.corpus import ramp
from tests.oracle.subjects import subjects, traced_models
from tests.sweeps import cases as op_cases, module_db, op_db
from tests.sweeps.ways import SCRIPT

Sample = tuple[Any, dict[str, Any]]
"""The arguments of a call, by position and by keyword."""

GROUPS = ("programs", "modules", "operators")
UNCHECKED = (
    *("_native_batch_norm_legit", "native_batch_norm", "_batch_norm_with_update"),
    *("lu_unpack", "_segment_reduce.offsets"),
)
"""Operators that read beyond their memory where sizes do not fit together, or where indices are not there."""

UNSTEADY = {
    "module.nn_MultiMarginLoss": ("empty",),
    "op.linalg.ldl_solve": ("overlapping",),
    "op.linalg.lstsq": ("doubled",),
    "op.linalg.lstsq.grad_oriented": ("doubled",),
    **dict.fromkeys(["op.median", "op.nanmedian"], ("expanded",)),
    "op.nn.functional.embedding_bag": ("doubled",),
    "op.nn.functional.multi_margin_loss": ("empty",),
}
"""Arguments for which PyTorch itself answers differently from call to call: it reads uninitialized memory,
or a discrete result, such as a rank, depends on the last bits."""

OPERATOR_CASES, MODULE_CASES = 5, 3
"""How many cases of an operator and of a module are called in the full sweep."""


@dataclass(slots=True, frozen=True)
class Subject:
    """``compiled`` gives the compiled function, or a fresh compiled module, the same at each call."""

    name: str
    compiled: Callable[[], Any]
    samples: tuple[Sample, ...]
    without: tuple[str, ...] = ()
    """Kinds of arguments that begin so are left out: PyTorch answers now this, now that."""
    filled: bool = False
    """Whether it returns uninitialized memory, which is filled so that results can be compared."""

    def __str__(self) -> str:
        return self.name


def names(group: str | None = None) -> list[str]:
    """What :func:`of` takes: programs, ``module.nn_Linear``, ``op.add``."""
    found: list[str] = []
    if group in (None, "programs"):
        found += programs()
    if group in (None, "modules"):
        found += [f"module.{name}" for name in module_db.taken_names(SCRIPT)]
    if group in (None, "operators"):
        taken = [name for name, entry in sorted(op_db.load_record(SCRIPT).items()) if entry["taken"]]
        found += [f"op.{name}" for name in taken if name not in UNCHECKED]
    return found


def of(name: str) -> Iterator[Subject]:
    """What a name stands for: a program, some cases of a module or of an operator."""
    kind, _, entry = name.partition(".")
    if kind == "module":
        yield from _modules(entry)
    elif kind == "op":
        yield from _operators(entry)
    else:
        yield programs()[name]


def _modules(name: str) -> Iterator[Subject]:
    cases = module_db.cases_of(module_db.database()[name])
    taken = module_db.taken_by_torch(cases, SCRIPT, module_db.load_record(SCRIPT).get(name))  # what torch.jit compiles
    cases = [case for case in cases if case.key in taken]
    for case in random.Random(name).sample(cases, min(MODULE_CASES, len(cases))):
        compiled = lambda case=case: rekindle.script(case.make())  # noqa: E731
        without = UNSTEADY.get(f"module.{name}", ())
        yield Subject(f"module.{name} {case.key}", compiled, ((case.arguments, case.keywords),), without)


def _operators(name: str) -> Iterator[Subject]:
    taken = set(op_db.load_record(SCRIPT)[name]["taken"])
    cases = [case for case in op_cases.cases_of(op_db.database()[name]) if case.key in taken]
    cases = random.Random(name).sample(cases, min(OPERATOR_CASES, len(cases)))
    with tempfile.TemporaryDirectory() as folder:
        module = op_cases.load(cases, Path(folder), name)
        for case in cases:
            function = getattr(module, case.name)
            compiled = lambda function=function: rekindle.script(function)  # noqa: E731
            samples = ((tuple(case.arguments), {}),)
            # PyTorch's polynomials give for NaN what was in a register.
            without = ("not_a_number",) if "_polynomial_" in name else UNSTEADY.get(f"op.{name}", ())
            filled = name.startswith(op_db.UNINITIALIZED)
            yield Subject(f"op.{name} {case.key}", compiled, samples, without, filled)


@cache
def programs() -> dict[str, Subject]:
    """Both corpora, models, traces of models, and the programs of the overview."""
    found = [
        Subject(
            each.name, lambda make=each.make: rekindle.script(make()), tuple((sample, {}) for sample in each.samples)
        )
        for each in subjects()
        if each.name.removeprefix("language.") not in GAPS
    ]
    found += [
        Subject(
            each.name,
            lambda each=each: _traced(each.make(), each.samples[0]),
            ((each.samples[0], {}),),
            # PyTorch's operator writes beyond its memory where sizes do not fit; nn.LSTM would have looked at them.
            without=("doubled",) if each.name == "traced.lstm" else (),
        )
        for each in traced_models()
    ]
    found += [
        Subject(f"overview.{function.__name__}", lambda f=function: rekindle.script(f), ((sample, {}),))
        for function, sample in _of_the_overview().items()
    ]
    return {subject.name: subject for subject in found}


def _of_the_overview() -> dict[Callable[..., Any], tuple[Any, ...]]:
    x, y = ramp(2, 3), ramp(2, 3, start=-1.0)
    lstm = (ramp(3, 10), ramp(3, 20), ramp(3, 20), *(ramp(80, size) * 0.01 for size in (10, 20)), ramp(80), ramp(80))
    return {
        overview.arithmetic: (x, y),
        overview.branch: (x, y, True),
        overview.loop: (x,),
        overview.continues: (2,),
        overview.continues_transformed: (2,),
        overview.raises: (4,),
        overview.refined: (True, 2),
        overview.refined_rearranged: (True, 2),
        overview.constant_of_a_module: (2.0,),
        overview.lstm_cell: lstm,
        overview.views: (y,),
        overview.forked: (x, y),
        overview.with_statement: (x, overview.Multiplier(2)),
    }


def _traced(model: Any, sample: Any) -> Any:
    with torch.random.fork_rng(devices=()):
        return rekindle.trace(model, sample, check_trace=False)
