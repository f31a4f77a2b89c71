"""other error: ArgumentError instead of ZeroDivisionError

Program 7 of seed 5; unoptimised, call 0.

raises ArgumentError: f() argument 'w' (position 2) takes int, but got a Tensor of shape () and dtype torch.int64
Signature: f(x: Tensor, w: int, s: float) -> Tuple[number, Tensor, Tensor]
Hint: a Tensor is not converted to an int; pass .item(), or declare a Tensor, not ZeroDivisionError: integer division or modulo by zero
"""
import math
import torch
import torch.nn.functional as F
from torch import Tensor
def helper(s: float, s2: float):
    pass
class State:

    def __init__(self, value: Tensor, count: float):
        self.value = value
        self.count = count

    def update(self, n: int):
        self.value = self.value + 1
        self.count -= self.count
        return (self.count >= n) + n

    @property
    def get(self):
        return 2.0 % 0.5 - self.value.item()
def f(x: Tensor, w: int, s: float):
    state = State(F.leaky_relu((torch.tensor(0.5, dtype=torch.float32).abs() + 1).log(), 0.1), s % -1.5)
    w2 = state.update((q := w) - q)
    state.count *= state.value.item()
    state.value.neg_()
    try:
        if False == (not True ^ True):
            if bool(w2 & 5) and math.isnan(state.get - w2):
                raise ValueError('A b' * 0)
        else:
            a = helper(state.get, state.count if True and True else state.get)
            if torch.equal(state.value, state.value):
                if all((False for j3 in range(5))) and True:
                    raise ZeroDivisionError('bad')
                tries = 0
                while True:
                    try:
                        tries += 1
                        if tries < 3:
                            raise ValueError('again')
                        left = -2 // (tries - 3)
                        break
                    except (ValueError, KeyError):
                        if tries > 3:
                            break
                    finally:
                        tries += 1
        for i in range(3):
            if math.factorial(tries % 25) | i // -3 > tries * i // 1:
                acc = 0
                for row in x:
                    if row < 1:
                        acc -= row.item() * 2
                x.neg_()
            else:
                v2 = torch.tensor([[False], [True], [False]], dtype=torch.bool)
                u = state.value

            def g(q2: int):
                return sum((len([e2 for e2 in range(4) if False]) * sum([i, j4]) for j4 in range(4)))
            a2 = g(w2)
            top = 0
            where = 0
            for i2, v3 in enumerate(x):
                if int(v3) < top:
                    top = int(v3)
                    where = i2
        if True:
            raise ValueError('late')
    except RuntimeError as error:
        c, w3 = divmod((-3 | 12) * w2, -2)
        text = str(error)
    else:
        tries2 = 0
        while tries2 < 4 and False:
            tries2 += 1
            u2 = helper((q3 := w2) + q3 - (state.get - state.get), state.get + math.exp(min(state.get, 5.0)))
            try:
                t: Tensor = (state.value * torch.tensor([0.25], dtype=torch.float32) * state.value).view(-1)
                u2.setdefault('12'[1:], t.shape[-1] % -2)
                if isinstance(state.get - state.get, float):
                    raise KeyError('bad')
            finally:
                w2 /= 2
    finally:
        acc2 = 0
        for v4 in x:
            acc2 -= v4
    b = (torch.tensor([-0.5], dtype=torch.float32) * torch.tensor([10.0, 0.0], dtype=torch.float32) - state.value) * state.value
    w2 = math.fmod(state.get, 2.5) * (1.5 + state.get) if int(state.get) == w | 100 else state.count * w + b.size(0)
    w4 = torch.tensor([[True]], dtype=torch.bool).view(torch.tensor([[True]], dtype=torch.bool).shape).contiguous().expand_as(torch.tensor([[True]], dtype=torch.bool).view(torch.tensor([[True]], dtype=torch.bool).shape).contiguous())
    return (state.get, b, w4)
SUBJECT = f
CALLS = [lambda: (torch.tensor([4.5], dtype=torch.float64), torch.tensor(3), -2.5)]
WAYS = ('unoptimised',)
