"""other error: ArgumentError instead of RuntimeError

Program 175 of seed 5; unoptimised, call 0.

raises ArgumentError: f() argument 'w' (position 1) takes float, but got a Tensor of shape () and dtype torch.float32
Signature: f(w: float) -> NoneType
Hint: the Tensor requires grad, and no gradient flows through a float; declare a Tensor, or pass .item() if no gradient is wanted, not RuntimeError: a leaf Variable that requires grad is being used in an in-place operation.
"""
import torch
def f(w: float):
    w -= 2
SUBJECT = f
CALLS = [lambda: (torch.tensor(1.5, requires_grad=True),)]
WAYS = ('unoptimised',)
