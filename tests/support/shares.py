"""Which share of the largest families of tests ``make test`` runs; ``make test-all`` runs all of them.

A family is a module with hundreds of programs or operators, each of which is a test. The share is drawn by the names
of the tests and a seed. The seed is the commit, so that the shares rotate, and a run of one commit repeats; the header
of a run has it, and ``REKINDLE_SHARES=<seed>`` asks for that share again.
"""

from __future__ import annotations

import os
import subprocess
import zlib
from pathlib import Path
from typing import Final

import pytest

VARIABLE: Final = "REKINDLE_SHARES"
PART: Final = "REKINDLE_ONE_IN"
"""The variable that asks for one in so many of all tests, of the families and of those that stand alone."""
OF_COMMIT: Final = "commit"
"""The value of the variable that asks for the share of the commit."""

ONE_IN: Final[dict[str, int]] = {
    "tests/analysis/test_aliasing_programs.py": 3,
    "tests/analysis/test_compile_time_operators.py": 12,
    "tests/analysis/test_liveness.py": 3,
    "tests/analysis/test_type_propagation.py": 16,
    "tests/api/test_frozen_numerics.py": 2,
    "tests/api/test_frozen_programs.py": 5,
    "tests/archive/test_golden_archives.py": 8,
    "tests/archive/test_golden_texts.py": 3,
    "tests/archive/test_module_api.py": 4,
    "tests/autodiff/test_check_ad.py": 3,
    "tests/autodiff/test_cross_entropy.py": 3,
    "tests/autodiff/test_formulas.py": 10,
    "tests/autodiff/test_recurrent_cells.py": 3,
    "tests/building/test_c.py": 32,
    "tests/codegen/convolution/test_storage.py": 2,
    "tests/codegen/cuda/test_emulated.py": 3,
    "tests/codegen/native/test_numbers.py": 3,
    "tests/codegen/test_composites.py": 3,
    "tests/codegen/test_older_processors.py": 3,
    "tests/codegen/test_pointwise.py": 5,
    "tests/codegen/test_rows.py": 3,
    "tests/differential/test_programs.py": 20,
    "tests/exporting/test_program.py": 3,
    "tests/frontend/test_exits.py": 4,
    "tests/frontend/test_forms.py": 5,
    "tests/frontend/test_number_types.py": 3,
    "tests/frontend/test_overloads.py": 3,
    "tests/frontend/test_recursion_limit.py": 8,
    "tests/frontend/test_refinement.py": 6,
    "tests/frontend/test_tensor_or_number.py": 2,
    "tests/importing/test_models.py": 12,
    "tests/importing/test_program.py": 3,
    "tests/language/test_programs.py": 10,
    "tests/ops/test_aliasing.py": 16,
    "tests/ops/test_beside_torchscript.py": 3,
    "tests/ops/test_fast_paths.py": 8,
    "tests/ops/test_result_types.py": 3,
    "tests/oracle/test_code.py": 4,
    "tests/oracle/test_corpus.py": 8,
    "tests/oracle/test_round_trip.py": 16,
    "tests/oracle/test_round_trip_of_archives.py": 16,
    "tests/oracle/test_round_trip_of_modules.py": 16,
    "tests/passes/test_answers.py": 20,
    "tests/passes/test_broken_variants.py": 3,
    "tests/property/test_view_programs.py": 2,
    "tests/runtime/test_bailouts_everywhere.py": 16,
    "tests/runtime/test_broken_bailouts.py": 2,
    "tests/runtime/test_lifetimes.py": 6,
    "tests/runtime/test_number_of_plans.py": 3,
    "tests/runtime/test_results_for_python.py": 2,
    "tests/scripting/test_models.py": 2,
    "tests/sweeps/test_compiled.py": 3,
    "tests/sweeps/test_gradients.py": 12,
    "tests/sweeps/test_module_db.py": 2,
    "tests/sweeps/test_op_db.py": 12,
    "tests/sweeps/test_vmap.py": 5,
    "tests/syntax/test_nesting_limit.py": 3,
    "tests/test_benchmarks.py": 3,
    "tests/test_docs.py": 6,
    "tests/training/test_optimizers.py": 3,
    "tests/training/test_products.py": 3,
    "tests/transforms/derivatives/test_corpus.py": 3,
    "tests/transforms/derivatives/test_derivatives.py": 5,
    "tests/transforms/derivatives/test_dtypes.py": 5,
    "tests/transforms/derivatives/test_memory_limit.py": 4,
    "tests/transforms/vmap/test_composed.py": 3,
    "tests/transforms/vmap/test_rules.py": 3,
    "tests/transforms/vmap/test_vmap.py": 5,
}


def share_seed() -> str | None:
    """The seed of the shares; None where all tests are to run."""
    asked = os.environ.get(VARIABLE)
    if asked == OF_COMMIT:
        # The processes that run the tests find the seed in the environment.
        asked = os.environ[VARIABLE] = _commit()
    return asked or None


def _commit() -> str:
    """The commit that is checked out; "0" where there is no repository."""
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    try:
        found = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "0"
    return found.stdout.strip()


def portion(count: int, one_in: int = 4) -> int:
    """Return the number of random examples to draw: ``count``, or one in ``one_in`` of them if shares are requested."""
    return count if share_seed() is None else max(1, count // one_in)


def share_number(shares: int) -> int:
    """Return which of ``shares`` equal parts of something is the share of this run."""
    return zlib.crc32((share_seed() or "").encode()) % shares


def rotating(count: int, one_in: int = 4) -> list[int]:
    """Return the seeds of random programs to test: 0 to ``count`` - 1, or the share of this run."""
    if share_seed() is None:
        return list(range(count))
    return list(range(share_number(one_in), count, one_in))


def keep_shares(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not in the share of its family, if shares are asked for. Tests that stand alone stay.

    Where ``REKINDLE_ONE_IN`` is set, one in so many stays of what is left, tests that stand alone included.
    """
    seed, part = share_seed(), int(os.environ.get(PART) or "1")
    if seed is None and part == 1:
        return
    kept = [item for item in items if _stays(item, seed) and stays_in_part(item.nodeid, part, seed or "")]
    chosen = set(kept)
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = kept


def _stays(item: pytest.Item, seed: str | None) -> bool:
    share = ONE_IN.get(item.nodeid.partition("::")[0])
    if seed is None or share is None or not hasattr(item, "callspec"):
        return True
    return zlib.crc32(f"{seed} {item.nodeid}".encode()) % share == 0


def stays_in_part(name: str, one_in: int, seed: str) -> bool:
    """Return whether a test is in the part of this run, which is one in ``one_in`` of all tests."""
    return zlib.crc32(f"{name} {seed}".encode()) % one_in == 0
