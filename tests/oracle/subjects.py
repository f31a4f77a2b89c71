"""What goes into archives and comes back: the programs of both corpora, and whole models, in one list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from tests.language.corpus import corpus as language_corpus
from tests.oracle.corpus import Sample, corpus as oracle_corpus
from tests.scripting.test_models import MODELS


@dataclass(slots=True, frozen=True)
class Subject:
    """``make`` gives what is compiled: a function, or a fresh module, the same at each call."""

    name: str
    make: Callable[[], Any]
    samples: tuple[Sample, ...]
    traced: bool = False
    """Whether it is traced with the first sample, not scripted."""

    def __str__(self) -> str:
        return self.name


def subjects() -> list[Subject]:
    """All of them, by where they come from: ``oracle.loops.nested``, ``language.named.enum_value``, ``model.rnn``."""
    return [
        *(Subject(f"oracle.{program.name}", program.subject, program.samples) for program in oracle_corpus()),
        *(
            Subject(f"language.{program.name}", program.subject, program.inputs)
            for program in language_corpus()
            if program.refusal is None
        ),
        *(Subject(f"model.{name}", _model(make), (_seeded(inputs),)) for name, (make, inputs) in MODELS.items()),
    ]


def traced_models() -> list[Subject]:
    """The models whose control flow does not depend on values, to be traced in evaluation mode; but one that holds a
    parameter in an attribute that may be None, which the tracer does not take yet."""
    return [
        Subject(f"traced.{name}", _model(lambda make=make: make().eval()), (_seeded(inputs),), traced=True)
        for name, (make, inputs) in MODELS.items()
        if name not in ("decoder", "attention_masked")
    ]


def _seeded(inputs: Callable[[], Sample]) -> Sample:
    torch.manual_seed(2)
    return inputs()


def _model(make: Callable[[], Any]) -> Callable[[], Any]:
    def seeded() -> Any:
        torch.manual_seed(0)
        return make()

    return seeded
