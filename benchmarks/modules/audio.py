"""Transforms and models of torchaudio."""

from __future__ import annotations

from typing import Any, Final

import torch

from benchmarks.modules.case import BOTH, INFERENCE, Excluded, Modes, ModuleCase, found, maker, normal

WAVE: Final = (1, 16000)
"""A second of sound."""
SPECTROGRAM: Final = (1, 201, 81)


def _spectrum() -> tuple[Any, ...]:
    return (torch.randn(SPECTROGRAM, dtype=torch.complex64),)


def _transform(
    kind: str,
    *arguments: Any,
    on: Any = WAVE,
    differentiated: tuple[int, ...] = (0,),
    modes: Modes = BOTH,
    **keywords: Any,
) -> ModuleCase:
    inputs = normal(on) if isinstance(on, tuple) else on
    make = maker(f"torchaudio.transforms.{kind}", *arguments, **keywords)
    return ModuleCase("torchaudio", kind, make, inputs, differentiated=differentiated, modes=modes)


def _noisy() -> tuple[Any, ...]:
    return torch.randn(4, 16000), torch.randn(4, 16000), torch.tensor([3.0, 6.0, 9.0, 12.0])


def _rnnt() -> tuple[Any, ...]:
    targets = torch.randint(1, 20, (2, 6), dtype=torch.int32)
    return torch.randn(2, 12, 7, 20), targets, *(torch.full((2,), n, dtype=torch.int32) for n in (12, 6))


def _power() -> tuple[Any, ...]:
    return (torch.rand(SPECTROGRAM),)


def _beams() -> tuple[Any, ...]:
    spectrum = torch.randn(4, 129, 60, dtype=torch.complex128)
    return spectrum, torch.rand(129, 60, dtype=torch.float64), torch.rand(129, 60, dtype=torch.float64)


def _psd() -> tuple[Any, ...]:
    return torch.randn(4, 129, 60, dtype=torch.complex64), torch.rand(129, 60)


_TRANSFORMS: Final = (
    _transform("Spectrogram"),
    _transform("InverseSpectrogram", on=_spectrum),
    _transform("MelSpectrogram"),
    _transform("MelScale", on=_power),
    _transform("MFCC"),
    _transform("LFCC"),
    _transform("SpectralCentroid", 16000),
    _transform("AmplitudeToDB", on=_power),
    _transform("ComputeDeltas", on=_power),
    _transform("SlidingWindowCmn", on=(1, 81, 40)),
    _transform("GriffinLim", n_iter=4, on=_power),
    _transform("InverseMelScale", 201, 64, driver="gelsd", on=lambda: (torch.rand(1, 64, 81),), modes=INFERENCE),
    _transform("TimeStretch", fixed_rate=1.2, on=_spectrum),
    _transform("FrequencyMasking", 20, on=_power),
    _transform("TimeMasking", 20, on=_power),
    _transform("SpecAugment", 2, 10, 2, 10, on=_power),
    _transform("MuLawEncoding", modes=INFERENCE),
    _transform("MuLawDecoding", on=lambda: (torch.randint(0, 256, WAVE),), modes=INFERENCE, differentiated=()),
    _transform("Resample", 16000, 8000),
    _transform("Speed", 16000, 1.1, on=(2, 16000)),
    _transform("SpeedPerturbation", 16000, [0.9, 1.1], on=(2, 16000)),
    _transform("PitchShift", 16000, 12),
    _transform("Fade", 1000, 1000),
    _transform("Vol", 0.5),
    _transform("Preemphasis"),
    _transform("Deemphasis"),
    _transform("Loudness", 16000, on=(1, 16000)),
    _transform("Vad", 16000, modes=INFERENCE),
    _transform("AddNoise", on=_noisy),
    _transform("Convolve", on=normal((4, 800), (4, 100))),
    _transform("FFTConvolve", on=normal((4, 8000), (4, 1000))),
    _transform("PSD", on=_psd, modes=INFERENCE),
    _transform("MVDR", on=_beams, modes=INFERENCE),
    _transform("RNNTLoss", on=_rnnt),
)


def _lengths(*values: int) -> torch.Tensor:
    return torch.tensor(values)


def _model(name: str, make: Any, inputs: Any, result: Any = lambda found: found) -> ModuleCase:
    return ModuleCase("torchaudio", name, make, inputs, result=result)


def _path(name: str, *arguments: Any, **keywords: Any) -> Any:
    return maker(f"torchaudio.models.{name}", *arguments, **keywords)


def _wav2vec() -> Any:
    return found("torchaudio.models.wav2vec2_model")(
        extractor_mode="group_norm",
        extractor_conv_layer_config=[(64, 10, 5), (64, 3, 2), (64, 3, 2), (64, 2, 2)],
        extractor_conv_bias=False,
        encoder_embed_dim=128,
        encoder_projection_dropout=0.1,
        encoder_pos_conv_kernel=32,
        encoder_pos_conv_groups=16,
        encoder_num_layers=4,
        encoder_num_heads=4,
        encoder_attention_dropout=0.1,
        encoder_ff_interm_features=256,
        encoder_ff_interm_dropout=0.0,
        encoder_dropout=0.1,
        encoder_layer_norm_first=False,
        encoder_layer_drop=0.0,
        aux_num_out=29,
    )


_MODELS: Final = (
    _model("Wav2Letter", _path("Wav2Letter", num_classes=40, input_type="mfcc", num_features=13), normal((2, 13, 100))),
    _model(
        "WaveRNN",
        _path("WaveRNN", [4, 5], n_classes=64, hop_length=20, n_res_block=2, n_rnn=64, n_fc=64, n_freq=40, n_hidden=32),
        normal((1, 1, 320), (1, 1, 40, 20)),
    ),
    _model(
        "ConvTasNet",
        _path("ConvTasNet", enc_num_feats=64, msk_num_feats=32, msk_num_hidden_feats=64, msk_num_layers=4),
        normal((1, 1, 4000)),
    ),
    _model("DeepSpeech", _path("DeepSpeech", 40, 128, 30), normal((2, 1, 50, 40))),
    _model(
        "Tacotron2",
        _path(
            "Tacotron2",
            symbol_embedding_dim=128,
            decoder_rnn_dim=128,
            attention_rnn_dim=128,
            encoder_embedding_dim=128,
            prenet_dim=64,
        ),
        lambda: (torch.randint(0, 148, (2, 20)), _lengths(20, 16), torch.randn(2, 80, 30), _lengths(30, 24)),
    ),
    _model("Conformer", _path("Conformer", 80, 4, 128, 4, 31), lambda: (torch.randn(2, 60, 80), _lengths(60, 50))),
    _model(
        "Emformer",
        _path("Emformer", 128, 4, 256, 4, segment_length=4, right_context_length=1),
        lambda: (torch.randn(2, 41, 128), _lengths(40, 36)),
    ),
    _model(
        "HDemucs",
        _path("HDemucs", ["drums", "vocals"], audio_channels=1, channels=8, nfft=1024, depth=5),
        normal((1, 1, 16000)),
    ),
    _model("Wav2Vec2Model", _wav2vec, normal((1, 8000))),
    _model("SquimObjective", _path("squim_objective_model", 64, 64, 32, 4, 64, 2, "LSTM", 71), normal((1, 8000))),
)

CASES: Final[tuple[ModuleCase, ...]] = (*_TRANSFORMS, *_MODELS)
EXCLUDED: Final = (
    Excluded("RTFMVDR", "MVDR with the estimates as inputs"),
    Excluded("SoudenMVDR", "MVDR with the estimates as inputs"),
)


def available() -> set[str]:
    """Return the names of all transforms."""
    return set(found("torchaudio.transforms.__all__"))


def covered() -> set[str]:
    """Return the names of the transforms that are cases."""
    return {case.name for case in _TRANSFORMS}
