"""Programs of the kinds that are deployed, each called from C in a process without Python, and compared with eager."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

import rekindle
from benchmarks.libraries.programs import GreedyDecoder
from benchmarks.numeric_loops import edit_distance
from tests.building.c_process import compiler, run
from tests.building.corpus import same
from tests.building.test_user_programs import suppress

pytestmark = pytest.mark.skipif(compiler() is None, reason="this machine has no C compiler")


class Recurrent(nn.Module):
    """``nn.LSTM`` of two layers, and a loop over the cells of another one."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(5, 7, num_layers=2)
        self.cell = nn.LSTMCell(7, 4)

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor], list[Tensor]]:
        outputs, (h, c) = self.lstm(x, state)
        at = torch.zeros(x.size(1), 4), torch.zeros(x.size(1), 4)
        steps: list[Tensor] = []
        for step in outputs:
            at = self.cell(step, at)
            steps.append(at[0])
        return outputs, (h, c), steps


class Hypothesis(NamedTuple):
    score: float
    tokens: list[int]


class BeamSearch(nn.Module):
    """Beam search over a table of transitions: hypotheses grow until they end with the last token."""

    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.transitions = nn.Parameter(torch.randn(words, words))
        self.width = width

    def forward(self, start: int, steps: int) -> list[Hypothesis]:
        table = torch.log_softmax(self.transitions, -1)
        beam = [Hypothesis(0.0, [start])]
        for _ in range(steps):
            grown: list[Hypothesis] = []
            for each in beam:
                last = each.tokens[-1]
                if last == 0:
                    grown.append(each)
                    continue
                for word in range(table.size(1)):
                    grown.append(Hypothesis(each.score + float(table[last, word]), each.tokens + [word]))
            order = sorted([(-each.score, index) for index, each in enumerate(grown)])
            beam = [grown[index] for _, index in order[: self.width]]
            if all([each.tokens[-1] == 0 for each in beam]):
                break
        return beam


class Tokenizer(nn.Module):
    """Splits a text at spaces and punctuation, and words into the longest pieces of a vocabulary."""

    def __init__(self, pieces: list[str]) -> None:
        super().__init__()
        self.numbers: dict[str, int] = {piece: number for number, piece in enumerate(pieces)}

    def forward(self, text: str) -> tuple[list[int], list[str]]:
        words: list[str] = []
        word = ""
        for letter in text.lower():
            if letter.isalnum():
                word += letter
                continue
            if word:
                words.append(word)
                word = ""
            if not letter.isspace():
                words.append(letter)
        if word:
            words.append(word)
        found: list[int] = []
        unknown: list[str] = []
        for word in words:
            start = 0
            while start < len(word):
                end = len(word)
                piece = word
                while end > start and piece not in self.numbers:
                    end -= 1
                    piece = ("##" if start > 0 else "") + word[start:end]
                if end == start:
                    unknown.append(f"{word}[{start}]")
                    break
                found.append(self.numbers[piece])
                start = end
        return found, unknown


def _boxes(count: int) -> tuple[Tensor, Tensor, float]:
    corners = torch.rand(count, 2) * 10
    return torch.cat([corners, corners + torch.rand(count, 2) * 5 + 0.1], 1), torch.rand(count), 0.3


def _decoder() -> nn.Module:
    module = GreedyDecoder(width=16, words=8)
    with torch.no_grad():
        module.from_state.weight.mul_(4.0)
    return module


_VOCABULARY = ["un", "##want", "##ed", "want", "runn", "##ing", ",", "è", "the", "##s", "!"]
_PROGRAMS: dict[str, tuple[Callable[[], Any], Callable[[], list[tuple[Any, ...]]]]] = {
    "LSTM": (Recurrent, lambda: [(torch.randn(n, 3, 5), (torch.randn(2, 3, 7), torch.randn(2, 3, 7))) for n in (9, 4)]),
    "decoder": (_decoder, lambda: [(torch.randn(1, 16) * scale,) for scale in (1.0, 3.0, 0.1)]),
    "NMS": (lambda: suppress, lambda: [_boxes(count) for count in (20, 1, 50, 0)]),
    "beam search": (lambda: BeamSearch(6, 3), lambda: [(1, 8), (2, 1), (5, 20), (0, 3)]),
    "edit distance": (
        lambda: edit_distance,
        lambda: [("kitten", "sitting"), ("", "abc"), ("größer", "grosser"), ("same", "same")],
    ),
    "tokenizer": (
        lambda: Tokenizer(_VOCABULARY),
        lambda: [("Unwanted, the RUNNING wants!",), ("",), ("  è the\txyz unx",)],
    ),
}


@pytest.mark.parametrize("name", _PROGRAMS)
def test_from_c(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    make, make_calls = _PROGRAMS[name]
    program, calls = make(), make_calls()
    program = program.eval() if isinstance(program, nn.Module) else program
    with torch.no_grad():
        expected = [program(*copy.deepcopy(call)) for call in calls]
    build = rekindle.build(rekindle.script(program), tmp_path, copy.deepcopy(calls))
    for answer, value in zip(run(build, build.methods[0], calls, tmp_path), expected, strict=True):
        assert answer.code == 0, answer.message
        assert same(answer.value, value), f"{answer.value} instead of {value}"
