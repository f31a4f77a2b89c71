"""other text: UnboundLocalError

Program 5450 of seed 3005; unoptimised, call 0.

"cannot access local variable 'item2' where it is not associated with a value", not "cannot access local variable 'k' where it is not associated with a value"
"""
import math
from typing import Dict, List
def note(v: int):
    return 0
def f(n: List[None], opt: Dict[str, float]):
    u = 1.5
    for item in 'a':
        for i3, item2 in zip('a', n):
            k = [+-1 >> 1, sum((math.ceil(1.5) for e in n)), math.trunc(math.atan2(u, 2.0))]
        ~next((e3 for e3 in k if False), item2)
    return 1
SUBJECT = f
CALLS = [lambda: ([], {'k': 4.5, 'a': 0.25, 's': 2.0})]
WAYS = ('unoptimised',)
