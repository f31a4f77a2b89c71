"""other error: NotImplementedError instead of TypeError

Program 1094 of seed 1003; unoptimised, call 0.

raises NotImplementedError: "bitwise_not_cpu" not implemented for 'Float', not TypeError: ~ (operator.invert) is only implemented on integer and Boolean-type tensors
"""
import torch
from torch import Tensor
def f(x: Tensor):
    z = ~x
    stats = {}
    stats['s'] = z.item()
    return stats
SUBJECT = f
CALLS = [lambda: (torch.tensor(1.0),)]
WAYS = ('unoptimised',)
