import torch
import torch.jit as J
from torch import jit
from torch.jit import script as s

from .compat import jit_script, maybe_script

torch._C._jit_set_profiling_executor(False)


@s
def scaled(x: torch.Tensor, times: int):
    for _ in range(times):
        x = x * 2
    return x


@jit.script
def repeated(x, times):
    for _ in range(times):
        x = x + 1
    return x


@jit_script
def read(path: str):
    with open(path) as file:
        return file.read()


@maybe_script
def shifted(x: torch.Tensor):
    return x - 1


@torch.jit.script_if_tracing
def positive(x):
    if bool(x.sum() > 0):
        return x
    return -x


@J.script
class Pair:
    def __init__(self, first: torch.Tensor):
        self.first = first


doubled = jit.trace(lambda x: x * 2, torch.ones(2, 3))


def legacy(enabled: bool) -> None:
    if enabled:
        torch._C._jit_set_profiling_mode(False)
    with torch.jit.fuser("fuser1"):
        print(torch._C._jit_set_bailout_depth(2))
