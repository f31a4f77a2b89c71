"""The native plans of rekindle in a process of Python. The artifact is the name of the program."""

import sys

import torch
from report import run
from torch.utils._pytree import tree_leaves

import rekindle
from benchmarks.libraries.programs import PROGRAMS

torch.set_num_threads(1)
module, arguments = next(each for each in PROGRAMS if each.name == sys.argv[1]).make()
compiled = rekindle.script(module)


def leaves(result: object) -> list[object]:
    return [each.numpy() if isinstance(each, torch.Tensor) else each for each in tree_leaves(result)]


with torch.no_grad():
    for _ in range(3):
        compiled(*arguments)
    run(lambda: compiled(*arguments), leaves, sys.argv[1:])
