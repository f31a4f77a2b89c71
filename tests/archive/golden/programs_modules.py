"""Programs that people saved: networks, traced and scripted, quantised, frozen, with hooks and packed weights."""

from typing import Dict, Optional, Tuple

import torch
import torch.nn.functional as F
from registry import Made, program
from torch import Tensor, nn

ROWS = torch.tensor([[1.0, -2.0, 3.0], [0.5, 0.25, -4.0]])
IMAGE = torch.arange(16.0).view(1, 1, 4, 4) / 16


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 3))
        self.tied = nn.Linear(3, 3, bias=False)
        self.tied.weight = nn.Parameter(torch.randn(3, 3))
        self.again = nn.Linear(3, 3)
        self.again.weight = self.tied.weight

    def forward(self, x: Tensor):
        return self.again(self.tied(self.layers(x)))


@program("1.3 1.7")
def perceptron():
    return Made(torch.jit.script(Perceptron().eval()), [("forward", [ROWS]), ("forward", [ROWS * 2])])


@program("1.5 2.1")
def perceptron_training():
    """Still in training mode: every call moves the statistics of the normalization, and the record goes in order."""
    module = torch.jit.script(nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)))
    return Made(module, [("forward", [ROWS]), ("forward", [ROWS]), ("forward", [ROWS - 1])])


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3, padding=1)
        self.norm = nn.BatchNorm2d(2)
        self.up = nn.ConvTranspose2d(2, 1, 2, stride=2)
        self.pool = nn.MaxPool2d(2)
        self.linear = nn.Linear(1, 2)

    def forward(self, x: Tensor):
        x = self.pool(F.relu(self.norm(self.conv(x))))
        x = F.adaptive_avg_pool2d(self.up(x), (1, 1))
        return F.softmax(self.linear(torch.flatten(x, 1)), dim=1)


@program("1.5 2.4")
def convolutions():
    return Made(
        torch.jit.script(Convolutions().eval()), [("forward", [IMAGE]), ("forward", [IMAGE.repeat(2, 1, 1, 1)])]
    )


@program("1.4 1.7 2.0")
def convolutions_traced():
    traced = torch.jit.trace(Convolutions().eval(), IMAGE)
    return Made(traced, [("forward", [IMAGE]), ("forward", [IMAGE.repeat(2, 1, 1, 1) - 0.5])])


@program("1.5 1.9 2.13")
def convolutions_frozen():
    module = torch.jit.script(Convolutions().eval())
    frozen = torch.jit.freeze(module) if hasattr(torch.jit, "freeze") else torch._C._freeze_module(module._c)
    if not isinstance(frozen, torch.jit.ScriptModule):
        frozen = torch.jit._recursive.wrap_cpp_module(frozen)
    return Made(frozen, [("forward", [IMAGE])])


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 2, num_layers=1, batch_first=True)
        self.gru = nn.GRU(3, 2, bidirectional=True)
        self.cell = nn.LSTMCell(2, 2)

    def forward(self, x: Tensor, state: Optional[Tuple[Tensor, Tensor]] = None):
        out, (h, c) = self.lstm(x, state)
        second, last = self.gru(x)
        h2, c2 = self.cell(out[:, -1])
        return out, h, c, second, last, h2, c2


@program("1.3 2.1")
def recurrent():
    x = torch.arange(6.0).view(1, 2, 3) / 6
    state = (torch.ones(1, 1, 2), torch.zeros(1, 1, 2))
    return Made(torch.jit.script(Recurrent()), [("forward", [x]), ("forward", [x, state])])


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2)
        self.norm = nn.LayerNorm(4)

    def forward(self, x: Tensor):
        out, weights = self.attention(x, x, x)
        return self.norm(out + x), weights


@program("1.6")
def attention():
    return Made(torch.jit.script(Attention().eval()), [("forward", [torch.arange(12.0).view(3, 1, 4) / 12])])


@program("2.0")
def transformer_layer():
    module = torch.jit.script(nn.TransformerEncoderLayer(4, 2, dim_feedforward=4, dropout=0.0).eval())
    return Made(module, [("forward", [torch.arange(12.0).view(3, 1, 4) / 12])])


class Embeddings(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(5, 3, padding_idx=0)
        self.bag = nn.EmbeddingBag(5, 2, mode="sum")

    def forward(self, words: Tensor, offsets: Tensor):
        return self.table(words), self.bag(words, offsets), F.one_hot(words, 5)


@program("1.4 1.10 2.7")
def embeddings():
    calls = [("forward", [torch.tensor([1, 0, 4, 2]), torch.tensor([0, 2])])]
    return Made(torch.jit.script(Embeddings()), calls)


class Containers(nn.Module):
    def __init__(self):
        super().__init__()
        self.list = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
        self.dict = nn.ModuleDict({"first": nn.Linear(3, 3), "second": nn.ReLU()})
        self.deep = nn.Sequential(nn.Sequential(nn.Linear(3, 3), nn.Sigmoid()), nn.Tanh())

    def forward(self, x: Tensor):
        results = []
        for layer in self.list:
            x = layer(x)
            results.append(x)
        for name, layer in self.dict.items():
            x = layer(x)
        return self.deep(x), results


@program("1.9 2.4")
def containers():
    return Made(torch.jit.script(Containers()), [("forward", [ROWS])])


class Storages(nn.Module):
    def __init__(self):
        super().__init__()
        base = torch.arange(6.0)
        self.register_buffer("whole", base)
        self.register_buffer("part", base[2:4])
        self.register_buffer("turned", base.view(2, 3).t())
        self.register_buffer("stretched", torch.tensor([1.5]).expand(3))
        self.register_buffer("ints", torch.tensor([1, -2], dtype=torch.int8))
        self.register_buffer("flags", torch.tensor([True, False]))
        self.register_buffer("narrow", torch.tensor([0.5, 2.0], dtype=torch.float16))
        self.register_buffer("wide", torch.tensor([1e300, -1.0], dtype=torch.float64))
        self.register_buffer("scalar", torch.tensor(3))
        self.register_buffer("nothing", torch.zeros(0, 2))
        self.register_buffer("unset", None)

    def forward(self, x: Tensor):
        return x + self.whole, self.part, self.turned, self.stretched, self.ints, self.flags, self.scalar

    @torch.jit.export
    def change(self):
        self.whole.add_(1)
        return self.part, self.turned, self.narrow, self.wide, self.nothing


@program("1.3 1.5 1.8 2.1 2.13")
def storages():
    """Tensors that share a storage: what changes one changes the others."""
    return Made(
        torch.jit.script(Storages()), [("forward", [torch.ones(6)]), ("change", []), ("forward", [torch.ones(6)])]
    )


class ComplexStorage(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("turn", torch.tensor([1 + 2j, 0 - 1j], dtype=torch.complex64))
        self.register_buffer("brain", torch.tensor([1.5, -2.0], dtype=torch.bfloat16))

    def forward(self, x: Tensor):
        return x * self.turn, torch.real(self.turn), self.brain + 1, torch.view_as_real(self.turn)


@program("1.8 2.13")
def storages_complex():
    return Made(torch.jit.script(ComplexStorage()), [("forward", [torch.tensor([2.0, 3.0])])])


class Quantized(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.second = nn.Linear(4, 2)

    def forward(self, x: Tensor):
        return self.second(F.relu(self.first(x)))


@program("1.3 1.4 1.5 1.6 1.8 1.10 1.13 2.13")
def quantized_dynamic():
    """Linear layers whose weights are packed for int8, of the classes that torch.quantization makes."""
    quantize = torch.quantization.quantize_dynamic
    module = quantize(Quantized().eval(), {nn.Linear}, dtype=torch.qint8)
    return Made(torch.jit.script(module), [("forward", [ROWS])])


@program("1.4 1.7 2.1")
def quantized_lstm():
    module = torch.quantization.quantize_dynamic(nn.LSTM(3, 2), {nn.LSTM}, dtype=torch.qint8)
    return Made(torch.jit.script(module), [("forward", [torch.arange(6.0).view(2, 1, 3) / 6])])


class Static(nn.Module):
    def __init__(self):
        super().__init__()
        self.quant = torch.quantization.QuantStub()
        self.conv = nn.Conv2d(1, 2, 3)
        self.relu = nn.ReLU()
        self.linear = nn.Linear(8, 2)
        self.dequant = torch.quantization.DeQuantStub()

    def forward(self, x: Tensor):
        x = self.relu(self.conv(self.quant(x)))
        return self.dequant(self.linear(x.reshape(x.size(0), -1)))


@program("1.4 1.9 2.0")
def quantized_static():
    torch.backends.quantized.engine = "fbgemm"
    module = Static().eval()
    module.qconfig = torch.quantization.default_qconfig
    prepared = torch.quantization.prepare(module)
    prepared(IMAGE)
    return Made(torch.jit.script(torch.quantization.convert(prepared)), [("forward", [IMAGE])])


class Traced(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("scale", torch.tensor(2.0))

    def forward(self, x: Tensor, named: Dict[str, Tensor]):
        y = self.linear(x) * self.scale + named["bias"]
        return {"out": y, "size": y.sum()}, [x, y], (x[0], y.view(-1, y.size(0)))

    def doubled(self, x: Tensor):
        return self.linear(x) * 2


@program("1.6 1.9 2.4")
def traced_structures():
    arguments = (ROWS, {"bias": torch.ones(3)})
    inputs = {"forward": arguments, "doubled": (ROWS,)}
    traced = torch.jit.trace_module(Traced(), inputs, strict=False)
    return Made(traced, [("forward", list(arguments)), ("doubled", [ROWS + 1])])


@torch.jit.script
def positive_part(x: Tensor, low: float) -> Tensor:
    if bool(x.sum() > 0):
        return x.clamp(min=low)
    return x - low


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: Tensor):
        return positive_part(self.linear(x), 0.25)


@program()
def traced_with_script():
    """A trace keeps the control flow of the functions that were scripted."""
    traced = torch.jit.trace(Mixed(), ROWS)
    return Made(traced, [("forward", [ROWS]), ("forward", [-ROWS]), ("forward", [ROWS * 10])])


class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


def before(self, input: Tuple[Tensor]) -> Tensor:
    return input[0] * 2


def after(self, input: Tuple[Tensor], output: Tensor) -> Tensor:
    return output + 1


@program("1.8 1.12 2.7")
def hooks():
    module = Hooked()
    module.inner.register_forward_pre_hook(before)
    module.inner.register_forward_hook(after)
    module.register_forward_hook(after)
    return Made(torch.jit.script(module), [("forward", [ROWS])])


class Parallel(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: Tensor):
        waiting = torch.jit._fork(self.linear, x)
        other = x * 2
        return torch.jit._wait(waiting) + other


@program("1.3 1.6 1.9 2.13")
def parallel():
    return Made(torch.jit.script(Parallel()), [("forward", [ROWS])])


class Optimizable(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x: Tensor):
        return F.relu(self.norm(self.linear(x)))


@program("1.10 1.13 2.4")
def frozen_linear():
    """Frozen: the weights are constants of the code, and the normalization is folded into them."""
    return Made(torch.jit.freeze(torch.jit.script(Optimizable().eval())), [("forward", [ROWS])])


@program("1.3 1.6 1.10 2.7")
def extra_files():
    module = torch.jit.script(nn.Linear(3, 1))
    return Made(module, [("forward", [ROWS])], extra_files={"labels.txt": "cat\ndog\n", "deep/config.json": '{"a": 1}'})
