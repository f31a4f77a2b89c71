"""wrong answer: int value

Program 1225 of seed 1003; unoptimised, call 0.

result is 41, not 37
"""
from dataclasses import dataclass
@dataclass
class Point:
    value: float
    count: str
    rest: float

    def update(self):
        self.count = '%d-%s' % (2, self)
def f():
    state = Point(0, 'abc', 1)
    state.update()
    k = len(state.count)
    return k
SUBJECT = f
CALLS = [lambda: ()]
WAYS = ('unoptimised',)
