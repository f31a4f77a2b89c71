"""torchaudio scripts its transforms, filters and models in its own tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torchaudio.functional as F
from keeping import compared, main
from library_cases import part_of

from benchmarks.modules.audio import CASES

FILTERS: dict[str, tuple[Any, ...]] = {
    "contrast": (),
    "dcshift": (0.5, 0.05),
    "gain": (3.0,),
    "flanger": (16000,),
    "overdrive": (),
    "phaser": (16000,),
    "riaa_biquad": (44100,),
    "deemph_biquad": (44100,),
    "lfilter": (torch.tensor([1.0, 0.1, 0.2]), torch.tensor([0.5, 0.3, 0.1])),
    "filtfilt": (torch.tensor([1.0, 0.1, 0.2]), torch.tensor([0.5, 0.3, 0.1])),
    "vad": (16000,),
}
NAMED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "detect_pitch_frequency": (F.detect_pitch_frequency, (torch.linspace(0, 400, 16000).sin().view(2, 8000), 16000)),
    "amplitude_to_DB": (F.amplitude_to_DB, (torch.linspace(0.1, 4, 40).view(1, 5, 8), 20.0, 1e-10, 0.0, 80.0)),
    "DB_to_amplitude": (F.DB_to_amplitude, (torch.linspace(-4, 4, 40).view(1, 5, 8), 1.0, 1.0)),
    "melscale_fbanks": (F.melscale_fbanks, (101, 0.0, 8000.0, 20, 16000)),
    "linear_fbanks": (F.linear_fbanks, (101, 0.0, 8000.0, 20, 16000)),
    "create_dct": (F.create_dct, (13, 20, "ortho")),
    "mask_along_axis": (F.mask_along_axis, (torch.ones(2, 20, 30), 8, 0.0, 2)),
    "resample": (F.resample, (torch.linspace(-1, 1, 4000).sin().view(1, -1), 16000, 11025)),
    "fftconvolve": (F.fftconvolve, (torch.linspace(-1, 1, 400).view(2, 200), torch.ones(2, 20))),
}


def scripted(function: Callable[..., Any], inputs: tuple[Any, ...]) -> Callable[[], Any]:
    return lambda: compared(function, inputs, archive=False)


BIQUADS = ("allpass", "band", "bandpass", "bandreject", "bass", "equalizer", "highpass", "lowpass", "treble")


def biquad(name: str) -> Callable[[], Any]:
    others = (5.0,) if name in ("bass", "treble") else (1000.0, 3.0) if name == "equalizer" else (1000.0,)
    x = torch.linspace(-1, 1, 800).mul(40).sin().view(2, 400) / 2
    return scripted(getattr(F, f"{name}_biquad"), (x, 16000, *others))


if __name__ == "__main__":
    wave = torch.linspace(-1, 1, 1200).mul(60).sin().view(2, 600) / 2
    main(
        {
            **{case.name: part_of(case, needs="torchaudio") for case in CASES},
            **{f"{name}_biquad": biquad(name) for name in BIQUADS},
            **{f"F.{name}": scripted(getattr(F, name), (wave, *others)) for name, others in FILTERS.items()},
            **{f"F.{name}": scripted(*case) for name, case in NAMED.items()},
        }
    )
