"""other text: KeyError

Program 7036 of seed 3003; unoptimised, call 0.

'', not "''"
"""
def f():
    raise KeyError('')
SUBJECT = f
CALLS = [lambda: ()]
WAYS = ('unoptimised',)
