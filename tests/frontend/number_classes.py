"""Programs whose objects hold numbers of several types, as Python's do: meters, statistics, schedules."""

from __future__ import annotations

import math
from typing import Optional

import torch
from torch import Tensor

FLOATS = torch.tensor([0.5, 1.25, 2.0])
INTS = torch.tensor([3, 1, 2])
BOOLS = torch.tensor([True, False, True])
NANS = torch.tensor([math.nan, -0.0, 1.0])
LARGE = torch.tensor([2**60 + 1, 2, -3])
INPUTS = (FLOATS, INTS, BOOLS, NANS, LARGE)


class Meter:
    def __init__(self):
        self.sum = 0
        self.n = 0

    def update(self, v, k=1):
        self.sum += v * k
        self.n += k

    @property
    def avg(self):
        return self.sum / self.n if self.n else 0


def meter(x: Tensor):
    m = Meter()
    for v in x:
        m.update(v.item(), 1)
    return m.sum, m.n, m.avg


class AverageMeter:
    """Computes and stores the average and current value"""

    def __init__(self):
        self.reset()

    def reset(self):
        self.val = 0
        self.avg = 0
        self.sum = 0
        self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


def average_meter(x: Tensor):
    m = AverageMeter()
    for v in x:
        m.update(v.item(), x.size(0))
    return m.val, m.avg, m.sum, m.count


class M2:
    def __init__(self):
        self.val = 0
        self.avg = 0
        self.sum = 0
        self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


def average_meter2(x: Tensor):
    m = M2()
    for v in x:
        m.update(v.item(), x.size(0))
    return m.val, m.avg, m.sum, m.count


class Halves:
    def __init__(self):
        self.sum = 0

    def step(self):
        self.sum += 0.5


def halves(x: Tensor):
    h = Halves()
    a = h.sum
    for v in x:
        if v > 1:
            h.step()
    return a, h.sum


class Outside:
    def __init__(self):
        self.sum = 0


def written_outside(x: Tensor):
    h = Outside()
    for v in x:
        h.sum += v.item()
    return h.sum


class EarlyStopping:
    def __init__(self, patience: int = 2, delta=0):
        self.patience = patience
        self.delta = delta
        self.counter = 0
        self.best_score: Optional[float] = None
        self.early_stop = False

    def __call__(self, loss: float):
        score = -loss
        if self.best_score is None:
            self.best_score = score
        elif score < self.best_score + self.delta:
            self.counter += 1
            if self.counter >= self.patience:
                self.early_stop = True
        else:
            self.best_score = score
            self.counter = 0


def early_stopping(x: Tensor):
    e = EarlyStopping()
    for v in x:
        e(float(v.item()))
        if e.early_stop:
            break
    return e.best_score, e.counter, e.early_stop


class Early2:
    def __init__(self, patience=2):
        self.patience = patience
        self.counter = 0
        self.best = None
        self.stop = False

    def step(self, loss):
        if self.best is None or loss < self.best:
            self.best = loss
            self.counter = 0
        else:
            self.counter += 1
            if self.counter >= self.patience:
                self.stop = True
        return self.stop


def early2(x: Tensor):
    e = Early2()
    for v in x:
        e.step(v.item())
    return e.best, e.counter, e.stop


class RunningStats:
    def __init__(self):
        self.n = 0
        self.mean = 0
        self.M2 = 0
        self.low = math.inf
        self.high = -math.inf

    def push(self, x):
        self.n += 1
        delta = x - self.mean
        self.mean += delta / self.n
        self.M2 += delta * (x - self.mean)
        self.low = min(self.low, x)
        self.high = max(self.high, x)

    def variance(self):
        return self.M2 / (self.n - 1) if self.n > 1 else 0.0


def running(x: Tensor):
    s = RunningStats()
    for v in x:
        s.push(v.item())
    return s.n, s.mean, s.variance(), s.low, s.high


class InList:
    def __init__(self, k):
        self.k = k
        self.sum = 0


def in_list(x: Tensor):
    ms = [InList(i) for i in range(3)]
    for i, v in enumerate(x):
        ms[i].sum += v.item()
    return [m.sum for m in ms], sum([m.sum for m in ms])


class Base:
    def __init__(self):
        self.sum = 0

    def add(self, v):
        self.sum += v


class Derived(Base):
    def __init__(self):
        super().__init__()
        self.seen = 0

    def add(self, v):
        super().add(v)
        self.seen = v


def derived(x: Tensor):
    d = Derived()
    b = Base()
    for v in x:
        d.add(v.item())
        b.add(1)
    return d.sum, d.seen, b.sum


def returned(x: Tensor):
    h = Outside()
    h.sum += x[0].item()
    return h


def helper(m: Outside, v):
    m.sum += v
    return m.sum


def passed(x: Tensor):
    m = Outside()
    r = helper(m, x[0].item())
    return r, helper(m, 1), m.sum


class Sched:
    def __init__(self, lr=1, gamma=0.5, step_size=2):
        self.lr = lr
        self.gamma = gamma
        self.step_size = step_size
        self.last = 0

    def step(self):
        self.last += 1
        if self.last % self.step_size == 0:
            self.lr *= self.gamma


def sched(x: Tensor):
    s = Sched()
    out = []
    for v in x:
        s.step()
        out.append(s.lr)
    return out, s.last


class EMA:
    def __init__(self, beta=0.9):
        self.beta = beta
        self.value = 0
        self.steps = 0

    def update(self, v):
        self.value = self.beta * self.value + (1 - self.beta) * v
        self.steps += 1
        return self.value / (1 - self.beta**self.steps)


def ema(x: Tensor):
    e = EMA()
    return [e.update(v.item()) for v in x], e.value


PROGRAMS = [
    *(meter, average_meter, average_meter2, halves, written_outside, early_stopping, early2, running, in_list),
    *(derived, returned, passed, sched, ema),
]
