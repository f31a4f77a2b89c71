"""A library refuses to run on a processor that lacks instructions it was built for, and says which."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest
import torch

import rekindle
from rekindle.building.cpu_check import FEATURES, check_module
from rekindle.building.shared_library import shared_library
from rekindle.codegen.llvm.target import LEVELS, Target, native_target
from tests.building.c_process import memory_checker, run

_FLAGS = {
    **{"sse3": "pni", "sse4.1": "sse4_1", "sse4.2": "sse4_2", "lzcnt": "abm", "bmi": "bmi1", "sahf": "lahf_lm"},
    **{"avx512vbmi2": "avx512_vbmi2", "avx512vnni": "avx512_vnni", "avx512bitalg": "avx512_bitalg"},
    **{"avx512vpopcntdq": "avx512_vpopcntdq", "avx512vp2intersect": "avx512_vp2intersect"},
    **{"avx512fp16": "avx512_fp16", "avxvnni": "avx_vnni", "avx512bf16": "avx512_bf16"},
}
"""The names of the Linux kernel for features, where they differ from LLVM's."""


def missing(target: Target, folder: Path) -> str | None:
    """Return what the check for a target reports on this machine."""
    path = folder / f"lib{target.features.strip('+').replace(',+', '.')[:100]}.so"
    image = shared_library(
        [], [check_module({"": target}, "lacks {}")], ["missing_feature"], soname="check", needed=(), runpath=""
    )
    path.write_bytes(image)
    function = ctypes.CDLL(str(path)).missing_feature
    function.restype = ctypes.c_char_p
    found: bytes | None = function()
    return None if found is None else found.decode()


@pytest.mark.parametrize("feature", FEATURES)
def test_every_feature_is_found_as_the_kernel_finds_it(feature: str, tmp_path: Path) -> None:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    flags = next(line for line in lines if line.startswith("flags")).split()
    expected = None if _FLAGS.get(feature, feature) in flags else f"lacks {feature}"
    assert missing(Target("x86-64", f"+{feature}"), tmp_path) == expected


def test_this_machine_runs_what_is_built_for_it(tmp_path: Path) -> None:
    assert missing(native_target(), tmp_path) is None
    assert missing(Target("x86-64-v2", ",".join(f"+{each}" for each in LEVELS["x86-64-v2"])), tmp_path) is None


def doubled(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x) * 2


@pytest.mark.skipif(memory_checker() is None, reason="this machine has no valgrind")
@pytest.mark.skipif(not native_target().has("avx512f"), reason="this processor has no AVX-512")
def test_a_processor_without_avx512_is_refused(tmp_path: Path) -> None:
    x = torch.rand(3)
    built = rekindle.build(rekindle.script(doubled), tmp_path, [(x,)], cpu="x86-64-v4", freestanding=True)
    assert run(built, "call", [(x,)], tmp_path)[0].code == 0
    with pytest.raises(subprocess.CalledProcessError) as raised:  # valgrind's processor has no AVX-512
        run(built, "call", [(x,)], tmp_path, prefix=memory_checker() or ())
    assert raised.value.returncode == 5
    assert raised.value.stderr.splitlines()[0] == (
        "this processor lacks 'avx512f', which the library was built for (cpu: x86-64-v4)"
    )
