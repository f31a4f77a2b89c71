"""other text: OverflowError

Program 13796 of seed 3015; saved, call 0.

"(34, 'Numerical result out of range')", not 'math range error'
"""
import math
def f():
    math.pow(1e+300, 2)
SUBJECT = f
CALLS = [lambda: ()]
WAYS = ('saved',)
