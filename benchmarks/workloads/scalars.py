"""Loops over numbers, lists and strings, and loops on conditions that read tensors."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.workloads.case import Case, Workload


def collatz(limit: int) -> int:
    """Return the number below ``limit`` with the longest Collatz sequence."""
    best, longest = 1, 0
    for start in range(1, limit):
        n, steps = start, 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        if steps > longest:
            best, longest = start, steps
    return best


def sum_of_squares(n: int) -> int:
    """Return the sum of squares modulo a prime."""
    total = 0
    for i in range(n):
        total = (total + i * i) % 1000003
    return total


def primes_below(n: int) -> int:
    """Return the number of primes below a limit, by a sieve in a list."""
    is_prime = [True] * n
    count = 0
    for i in range(2, n):
        if is_prime[i]:
            count += 1
            j = i * i
            while j < n:
                is_prime[j] = False
                j += i
    return count


def mandelbrot(size: int, depth: int) -> int:
    """Return the number of points of a grid that are in the Mandelbrot set."""
    inside = 0
    for row in range(size):
        for column in range(size):
            a = -2.0 + 3.0 * column / size
            b = -1.5 + 3.0 * row / size
            x, y, n = 0.0, 0.0, 0
            while n < depth and x * x + y * y <= 4.0:
                x, y = x * x - y * y + a, 2.0 * x * y + b
                n += 1
            if n == depth:
                inside += 1
    return inside


def edit_distance(a: str, b: str) -> int:
    """Return the edit distance of ``a`` and ``b``: the number of letters to insert, delete or replace."""
    row = list(range(len(b) + 1))
    for i in range(len(a)):
        corner = row[0]
        row[0] = i + 1
        for j in range(len(b)):
            cost = corner if a[i] == b[j] else corner + 1
            corner = row[j + 1]
            row[j + 1] = min(cost, min(row[j] + 1, corner + 1))
    return row[len(b)]


def nms(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """Return the indices that non-maximum suppression keeps: of boxes [n, 4] that overlap by more than ``threshold``,
    the one with the highest score."""
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    order = torch.argsort(scores, descending=True)
    kept: list[int] = []
    while order.numel() > 0:
        best = int(order[0])
        kept.append(best)
        rest = order[1:]
        corner = torch.maximum(boxes[best, :2], boxes[rest, :2])
        opposite = torch.minimum(boxes[best, 2:], boxes[rest, 2:])
        shared = (opposite - corner).clamp(min=0.0).prod(1)
        overlap = shared / (areas[best] + areas[rest] - shared)
        order = rest[overlap <= threshold]
    return torch.tensor(kept)


def _nms() -> Case:
    corners = torch.rand(100, 2) * 100
    return Case(nms, (torch.cat([corners, corners + 5 + torch.rand(100, 2) * 20], 1), torch.rand(100), 0.5))


def _words() -> Case:
    letters = "abcdefgh"
    a, b = ("".join(letters[i] for i in torch.randint(8, (90,)).tolist()) for _ in range(2))
    return Case(edit_distance, (a, b))


SCALARS: tuple[Workload, ...] = (
    Workload("NMS of 100 boxes", _nms),
    Workload("edit distance, 90 letters", _words),
    Workload("Collatz below 1,000", lambda: Case(collatz, (1_000,))),
    Workload("sum of 100,000 squares", lambda: Case(sum_of_squares, (100_000,))),
    Workload("primes below 20,000", lambda: Case(primes_below, (20_000,))),
    Workload("Mandelbrot 30×30", lambda: Case(mandelbrot, (30, 50))),
)
