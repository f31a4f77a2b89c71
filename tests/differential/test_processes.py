"""A process that reads from disk what an earlier one has compiled gets the answers of one that compiles."""

from __future__ import annotations

import random
from pathlib import Path

from tests.differential.calls import assert_same_effects
from tests.differential.processes import run
from tests.differential.subjects import names
from tests.support.shares import share_seed

PROGRAMS, MODULES = 60, 10
"""How many are called where only a share is to be tested."""


def test_a_second_process_gives_the_same_answers(tmp_path: Path) -> None:
    seed = share_seed()
    chosen = [*names("programs"), *names("modules")]
    if seed is not None:
        chance = random.Random(seed)
        chosen = [*chance.sample(names("programs"), PROGRAMS), *chance.sample(names("modules"), MODULES)]
    cache = {"REKINDLE_CACHE_DIR": str(tmp_path / "cache")}
    expected = run(chosen, tmp_path / "without", {"REKINDLE_CACHE": "0"})
    first = run(chosen, tmp_path / "first", cache)
    second = run(chosen, tmp_path / "second", cache)
    for found in (first, second):
        assert found.effects.keys() == expected.effects.keys()
        for subject, effects in found.effects.items():
            for number, (ours, theirs) in enumerate(zip(effects, expected.effects[subject], strict=True), 1):
                assert_same_effects(ours, theirs, f"call {number} of {subject}, in the next process,")
    assert len(expected.left_out) <= len(chosen) / 10
    assert first.compiled == expected.compiled
    assert second.compiled < first.compiled / 2
