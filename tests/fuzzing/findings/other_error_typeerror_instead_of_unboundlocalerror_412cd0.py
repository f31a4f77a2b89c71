"""other error: TypeError instead of UnboundLocalError

Program 3905 of seed 3003; unoptimised, call 0.

raises TypeError: expected an int, got -1e+300, not UnboundLocalError: cannot access local variable 'b' where it is not associated with a value
"""
import math
from typing import List, Tuple
import torch
def note(log: List[int], v: int) -> int:
    return v
def f(w: float, k: Tuple[int, float]):
    try:
        if isinstance(max(-3 if True else 2, w), int):
            w = divmod(math.sin(w), -1.5)[1] ** 0.5
            w = 1 >> ((r := (-7)) + r) % 70
        else:
            tries = 0
            while True:
                try:
                    tries += 1
                    if tries < 3:
                        raise KeyError('again')
                    left = min(math.isqrt(abs(tries)), int(tries), 2) // (tries - 3)
                    break
                except (ValueError, KeyError):
                    if tries > 3:
                        raise
            b = math.atan2(tries, 2.0) ** (-1) - 0.0
        calls: List[int] = []
        w2 = list((note(calls, i) for i in range(4)))
    except ValueError as error:
        u, w3 = (w, math.copysign(math.fabs(w), math.atan2(10, 2.0)))
        text = str(error)
    else:
        if True:
            k2 = w + (w + w)
        else:
            k2 = max(w, w) << 1
    w ^= 5
    if bool(pow(math.ceil(w), 2)):
        a = torch.tensor([[-1.25], [0.5]], dtype=torch.float32)
        w += b
    a2, y = divmod(math.gcd(12 ** (-1 % 4), int(True)), 3)
SUBJECT = f
CALLS = [lambda: (-1e+300, (4, 0.5))]
WAYS = ('unoptimised',)
