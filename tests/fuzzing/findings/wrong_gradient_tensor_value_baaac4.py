"""wrong gradient: Tensor value

Program 8477 of seed 3011; unoptimised, call 0.

gradients[0] is tensor([0., 0.]), not tensor([-0., -0.])
"""
import torch
from torch import Tensor, nn
class M(nn.Module):

    def forward(self, x: Tensor):
        loss_sum = 0
        for row in x:
            loss_sum -= row.sum()
        loss_sum.tanh_()
        return loss_sum
SUBJECT = M
CALLS = [lambda: (torch.tensor([10.0, 1.5]).requires_grad_(),)]
WAYS = ('unoptimised',)
