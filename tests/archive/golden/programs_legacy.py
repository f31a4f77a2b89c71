"""Programs in the spelling of PyTorch 1.0 to 1.2: classes that derive from ScriptModule, and script methods."""

from typing import List, Tuple

import torch
import torch.nn.functional as F
from registry import Made, program

X = [[1.0, -2.0, 3.0], [0.5, 0.25, -4.0]]


class Affine(torch.jit.ScriptModule):
    __constants__ = ["steps"]

    def __init__(self):
        super().__init__()
        self.steps = 3
        self.weight = torch.nn.Parameter(torch.randn(3, 3))
        self.register_buffer("offset", torch.tensor([1.0, 2.0, 3.0]))

    @torch.jit.script_method
    def forward(self, x):
        for i in range(self.steps):
            x = torch.mm(x, self.weight) + self.offset * float(i)
        return x


@program("1.0 1.1 1.2")
def legacy_affine():
    return Made(Affine(), [("forward", [torch.tensor(X)])])


class Arithmetic(torch.jit.ScriptModule):
    @torch.jit.script_method
    def forward(self, x):
        return x / 2, x * 3 - 1, x % 4, x + x, -x, 2 * x

    @torch.jit.script_method
    def between(self, x, y):
        return x / y

    @torch.jit.script_method
    def filled(self, n):
        # type: (int) -> Tuple[Tensor, Tensor, Tensor]
        return torch.full([n], 3), torch.full([n], 2.5), torch.full([n], 3, dtype=torch.int64)

    @torch.jit.script_method
    def spaced(self, n):
        # type: (int) -> Tuple[Tensor, Tensor, Tensor, Tensor]
        return torch.linspace(0, n), torch.logspace(0, n), torch.linspace(0, n, 3), torch.arange(n)


@program("1.0 1.1 1.2")
def legacy_arithmetic():
    ints = torch.tensor([7, -7, 9])
    calls = [("forward", [ints]), ("forward", [torch.tensor(X)]), ("between", [ints, torch.tensor([2, 2, -2])])]
    return Made(Arithmetic(), calls + [("filled", [2]), ("spaced", [5])])


class Control(torch.jit.ScriptModule):
    @torch.jit.script_method
    def forward(self, x, n):
        # type: (Tensor, int) -> Tuple[Tensor, int, List[int]]
        seen = [0]
        total = 0
        while total < n:
            total += 2
            if total % 4 == 0:
                seen.append(total)
                x = x + 1
            else:
                x = x * 2
        return x, total, seen

    @torch.jit.script_method
    def shapes(self, x):
        # type: (Tensor) -> Tuple[int, int, List[int], float]
        return x.size(0), x.dim(), x.size(), float(x.sum()) * 0.5

    @torch.jit.script_method
    def cut(self, x):
        return x[0], x[:, 1:], x[0, 1], torch.cat([x, x], dim=1), x.view(-1), x.t()


@program("1.0 1.1 1.2")
def legacy_control():
    x = torch.tensor(X)
    return Made(Control(), [("forward", [x, 7]), ("shapes", [x]), ("cut", [x])])


class Layers(torch.jit.ScriptModule):
    __constants__ = ["layers"]

    def __init__(self):
        super().__init__()
        modules = [torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)]
        if torch.__version__.startswith("1.0"):
            modules = [torch.jit.trace(layer, torch.rand(2, layer.in_features)) for layer in (modules[0], modules[2])]
        self.layers = torch.nn.ModuleList(modules)
        self.tail = torch.jit.trace(torch.nn.Conv2d(1, 2, 2), torch.rand(1, 1, 3, 3))

    @torch.jit.script_method
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return F.softmax(x, dim=1)

    @torch.jit.script_method
    def images(self, x):
        return F.max_pool2d(F.relu(self.tail(x)), 2)


@program("1.0 1.1")
def legacy_layers():
    return Made(Layers(), [("forward", [torch.tensor(X)]), ("images", [torch.arange(16.0).view(1, 1, 4, 4) / 4])])


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 2, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(2)
        self.linear = torch.nn.Linear(8, 3)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        return F.log_softmax(self.linear(x.view(x.size(0), -1)), dim=1)


@program("1.0 1.1 1.2")
def legacy_traced():
    net = Net().eval()
    x = torch.arange(16.0).view(1, 1, 4, 4) / 16
    return Made(torch.jit.trace(net, x), [("forward", [x]), ("forward", [x.repeat(2, 1, 1, 1) - 0.5])])


class Kept(torch.jit.ScriptModule):
    def __init__(self):
        super().__init__()
        base = torch.arange(6.0)
        self.register_buffer("whole", base)
        self.register_buffer("part", base[2:4])
        self.register_buffer("matrix", base.view(2, 3).t())
        self.register_buffer("numbers", torch.tensor([1, 2, 3]))
        self.weight = torch.nn.Parameter(torch.ones(2))

    @torch.jit.script_method
    def forward(self, x):
        return x + self.whole, self.part * 2, self.matrix, self.numbers, self.weight + 1


@program("1.0 1.1 1.2")
def legacy_buffers():
    extra_files = {} if torch.__version__.startswith("1.0") else {"labels.txt": "cat\ndog\n"}
    return Made(Kept(), [("forward", [torch.ones(6)])], extra_files)


class Holder(torch.jit.ScriptModule):
    def __init__(self):
        super().__init__()
        self.sizes = torch.jit.Attribute([3, 4, 5], List[int])
        self.pair = torch.jit.Attribute((1.5, "two"), Tuple[float, str])
        self.name = torch.jit.Attribute("holder", str)

    @torch.jit.script_method
    def forward(self, x):
        # type: (Tensor) -> Tuple[Tensor, int, float, str]
        return x + self.sizes[1], len(self.sizes), self.pair[0], self.name


@program("1.1 1.2")
def legacy_attributes():
    return Made(Holder(), [("forward", [torch.zeros(2)])])
