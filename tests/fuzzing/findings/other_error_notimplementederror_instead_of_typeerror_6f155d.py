"""other error: NotImplementedError instead of TypeError

Program 13 of seed 5; unoptimised, call 0.

raises NotImplementedError: "bitwise_not_cpu" not implemented for 'Float', not TypeError: ~ (operator.invert) is only implemented on integer and Boolean-type tensors
"""
import math
import torch
def f(x):
    pass
    return x @ ~x
SUBJECT = f
CALLS = [lambda: (torch.tensor(math.inf, dtype=torch.float32),)]
WAYS = ('unoptimised',)
