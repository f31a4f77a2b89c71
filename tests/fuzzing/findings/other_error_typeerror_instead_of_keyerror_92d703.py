"""other error: TypeError instead of KeyError

Program 2493 of seed 3009; unoptimised, call 0.

raises TypeError: expected an int, got 0.5, not KeyError: 4
"""
from typing import Dict
def f(opt: Dict[int, int]):
    for j in range(4, 0, -1):
        z = opt
        z[sum((0.5 for j2 in 'a'))] = 1
        if opt[j]:
            pass
SUBJECT = f
CALLS = [lambda: ({0: 1},)]
WAYS = ('unoptimised',)
