"""wrong tangent: Tensor value

Program 1240 of seed 1003; jvp, call 0.

tangent[1] is tensor([[-9.8545e-06, 9.9340e-06], [-4.1060e-05, 2.5232e-05]]), not tensor([[-9.8944e-06, 9.9540e-06], [-6.1452e-05, 4.5598e-05]])
"""
import torch
import torch.nn.functional as F
def f(x):
    return F.layer_norm((x + 100).float(), x.float().shape[1:])
SUBJECT = f
CALLS = [lambda: (torch.tensor([[1.5, 0], [1.0, 0.1]]),)]
WAYS = ('jvp',)
