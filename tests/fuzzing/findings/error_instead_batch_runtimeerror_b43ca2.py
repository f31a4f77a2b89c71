"""error instead: batch: RuntimeError

Program 4 of seed 5; vmap, call 0.

RuntimeError: aten::full() Expected a value of type 'number' for argument 'fill_value' but instead found type 'Tensor'.
Position: 1
Value: tensor([ 4, -2,  5])
Declaration: aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
Cast error details: Cannot cast tensor([ 4, -2,  5]) to number
"""
import torch
def f(x):
    top = None
    for v in x:
        if top is None or int(v.sum()) > top:
            top = int(v.sum())
    x.to
    return torch.tensor([-1.25], dtype=torch.float32)
SUBJECT = f
CALLS = [lambda: (torch.tensor([[4.5], [0.25], [0.1]], dtype=torch.float32).requires_grad_(),)]
WAYS = ('vmap',)
