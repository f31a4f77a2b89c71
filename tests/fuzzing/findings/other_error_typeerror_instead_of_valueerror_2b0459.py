"""other error: TypeError instead of ValueError

Program 11737 of seed 3017; unoptimized, call 0.

raises TypeError: remove(): argument 'el' (position 1) must be Tensor, not int, not ValueError: list.remove(x): x not in list
"""
def f():
    b = list()
    b.remove(b[0] if 0 else 1)
SUBJECT = f
CALLS = [lambda: ()]
WAYS = ('unoptimized',)
