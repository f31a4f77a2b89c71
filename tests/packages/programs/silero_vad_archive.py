"""silero-vad is an archive in a wheel: a detector of speech, which keeps state from call to call."""

from __future__ import annotations

from typing import Any

import torch
from keeping import hand_over, main, reloaded
from silero_vad import VADIterator, get_speech_timestamps, load_silero_vad


def sound(seconds: int, rate: int) -> torch.Tensor:
    """Bursts of tones with harmonics, in noise."""
    time = torch.arange(seconds * rate) / rate
    tones = sum((torch.sin(2 * torch.pi * 150 * n * time) / n for n in range(1, 8)), torch.zeros(()))
    return 0.2 * tones * (torch.sin(2 * torch.pi * time) > 0) + 0.01 * torch.randn(seconds * rate)


def chunks(again: bool = False) -> Any:
    """The probability of each chunk, at both rates."""
    model = load_silero_vad()
    if again:
        model = reloaded(model)
    found = []
    for rate, size in ((16000, 512), (8000, 256)):
        model.reset_states()
        found.append(torch.cat([model(chunk, rate) for chunk in sound(2, rate).split(size)[:-1]]))
    return found


def whole() -> Any:
    return load_silero_vad().audio_forward(sound(2, 16000)[None], sr=16000)


def timestamps() -> Any:
    return get_speech_timestamps(sound(3, 16000), load_silero_vad(), threshold=0.05)


def iterated() -> Any:
    iterator = VADIterator(load_silero_vad(), threshold=0.05)
    return [iterator(chunk) or {} for chunk in sound(2, 16000).split(512)[:-1]]


def batch() -> Any:
    model = load_silero_vad()
    return torch.stack([model(sound(1, 16000)[: 512 * 3].view(3, 512), 16000) for _ in range(4)])


def passed_on() -> Any:
    model = load_silero_vad()
    inputs = (sound(1, 16000)[:512], 16000)
    answer = model(*inputs)
    model.reset_states()
    hand_over(model, inputs, answer)
    return answer


if __name__ == "__main__":
    main(
        {
            "chunks": chunks,
            "chunks, archive": lambda: chunks(again=True),
            "batch": batch,
            "audio_forward": whole,
            "timestamps": timestamps,
            "VADIterator": iterated,
            "passed on": passed_on,
        }
    )
