"""other text: KeyError

Program 1787 of seed 1003; unoptimised, call 0.

"'-3'", not "'a'"
"""
from typing import Dict
def f(n: Dict[str, int]):
    n['a'] += n['-3']
SUBJECT = f
CALLS = [lambda: ({},)]
WAYS = ('unoptimised',)
