"""Programs as users write them, built as libraries: results and state of several calls are those of eager calls."""

import copy
from typing import Dict, List, Optional, Tuple

import pytest
import torch
from torch import Tensor, nn

import rekindle
from tests.building.c_process import compiler, memory_checker, run
from tests.building.corpus import same


def check(program, folder, calls, examples=None, **options):
    """Compare calls of a library, one after the other, with those of the program."""
    reference = copy.deepcopy(program) if isinstance(program, nn.Module) else program
    rekindle.build(rekindle.script(program), folder, examples or calls, **options)
    library = rekindle.NativeLibrary(folder)
    for call in calls:
        given, expected = copy.deepcopy(call), copy.deepcopy(call)
        with torch.no_grad():
            result = reference(*expected)
        assert same(library(*given), result)
        assert all(same(ours, theirs) for ours, theirs in zip(given, expected, strict=True) if isinstance(ours, Tensor))


def suppress(boxes: Tensor, scores: Tensor, threshold: float) -> List[int]:
    order = torch.argsort(scores, descending=True)
    kept: List[int] = []
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    while order.numel() > 0:
        first = int(order[0].item())
        kept.append(first)
        if order.numel() == 1:
            break
        rest = order[1:]
        width = torch.min(boxes[first, 2], boxes[rest, 2]) - torch.max(boxes[first, 0], boxes[rest, 0])
        height = torch.min(boxes[first, 3], boxes[rest, 3]) - torch.max(boxes[first, 1], boxes[rest, 1])
        shared = width.clamp(min=0) * height.clamp(min=0)
        order = rest[shared / (area[first] + area[rest] - shared) <= threshold]
    return kept


def test_non_maximum_suppression(tmp_path):
    torch.manual_seed(0)
    calls = []
    for count, threshold in ((20, 0.5), (1, 0.5), (50, 0.1), (0, 0.1)):
        corners = torch.rand(count, 2) * 10
        boxes = torch.cat([corners, corners + torch.rand(count, 2) * 5 + 0.1], 1)
        calls.append((boxes, torch.rand(count), threshold))
    check(suppress, tmp_path, calls)


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 8, padding_idx=0)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, x: Tensor, padding: Optional[Tensor] = None) -> Tensor:
        return self.layer(self.embedding(x) * 2.0, src_key_padding_mask=padding)


def test_transformer_encoder_layer(tmp_path):
    torch.manual_seed(0)
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    calls = [(torch.randint(0, 11, (2, 5)), None), (torch.randint(0, 11, (2, 5)), padding)]
    check(Encoder().eval(), tmp_path, calls)


def write(x: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    row, columns = x[0], x.t()
    row += 1
    x[1:3] *= 2
    x[:, 1] = 7.0
    x[-1, -1] = x[0, 0]
    views = {"flat": x.view(-1)[1:3]}
    views["flat"][0] = 9
    return x, row, columns, views["flat"]


def test_writes_through_views(tmp_path):
    check(write, tmp_path, [(torch.randn(4, 3),), (torch.randn(5, 3),)])


def test_reductions_of_one_number(tmp_path):
    """A tensor without dimensions, which kernels do not reduce."""

    def program(x: Tensor) -> Tuple[Tensor, Tensor]:
        return x.sum(), x.max()

    check(program, tmp_path, [(torch.tensor(2.5),), (torch.tensor(-1.0),)])


def collect(words: List[str], count: int) -> Dict[str, List[int]]:
    found: Dict[str, List[int]] = {}
    for i in range(count):
        items: List[int] = []
        for j in range(i + 1):
            key = "k" + str(j)
            if key in found:
                items = found[key] + [i]
            if j == 3:
                raise IndexError("at " + words[j])
            found[key] = items
            if len(items) > 2:
                break
            if j % 2 == 1:
                continue
            items.append(j)
    return found


def scaled(x: Tensor, rows: List[int]) -> Tensor:
    parts: List[Tensor] = []
    for row in rows:
        part = x[row] * 2
        for k in range(3):
            parts.append(part + k)
            if float(parts[-1].sum()) > 1e6:
                raise RuntimeError("row " + str(row))
    return torch.stack(parts).sum(0)


@pytest.mark.skipif(compiler() is None or memory_checker() is None, reason="this machine has no valgrind")
@pytest.mark.parametrize(
    ("program", "calls"),
    [
        (collect, [(["a", "b"], 2), (["a"], 3), (["a", "b", "c", "d"], 6), (["a"], 6)]),
        (scaled, [(torch.ones(3, 4), [0, 1, 2]), (torch.ones(3, 4), [0, 5]), (torch.full((3, 4), 1e7), [1, -4])]),
    ],
)
def test_errors_in_loops_leak_nothing(program, calls, tmp_path):
    expected = []
    for call in calls:
        try:
            expected.append(program(*call))
        except (IndexError, RuntimeError):
            expected.append(None)
    examples = [call for call, value in zip(calls, expected, strict=True) if value is not None]
    build = rekindle.build(rekindle.script(program), tmp_path, examples, cpu="x86-64-v3", freestanding=True)
    for answer, value in zip(run(build, "call", calls, tmp_path, prefix=memory_checker()), expected, strict=True):
        assert bool(answer.code) == (value is None)
        assert value is None or same(answer.value, value)
