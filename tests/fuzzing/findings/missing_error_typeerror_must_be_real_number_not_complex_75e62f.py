"""missing error: TypeError: must be real number, not complex

Program 2605 of seed 3005; unoptimised, call 0.

returns None, but eager raises TypeError: must be real number, not complex
"""
import math
def combine():
    c = (-2) ** 0.5
    if math.isnan(c):
        pass
def f():
    try:
        combine()
    except ValueError as error:
        pass
SUBJECT = f
CALLS = [lambda: ()]
WAYS = ('unoptimised',)
