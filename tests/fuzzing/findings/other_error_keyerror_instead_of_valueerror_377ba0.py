"""other error: KeyError instead of ValueError

Program 1184 of seed 3005; unoptimised, call 0.

raises KeyError: '12', not ValueError: math domain error
"""
import math
from typing import Dict
def f(s: Dict[str, None]):
    u: float = math.inf
    math.fmod(u, 2.5)
    s['12']
SUBJECT = f
CALLS = [lambda: ({},)]
WAYS = ('unoptimised',)
