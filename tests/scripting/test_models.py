"""Real models: compiled from PyTorch's own Python source, they answer as eager does, and so do their gradients."""

from typing import Optional, Tuple

import pytest
import torch
from torch import nn

import rekindle


class Residual(nn.Module):
    def __init__(self, channels: int, downsample: Optional[nn.Module] = None, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels // stride, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.downsample = downsample

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2))
        down = nn.Sequential(nn.Conv2d(4, 8, 1, 2, bias=False), nn.BatchNorm2d(8))
        self.blocks = nn.Sequential(Residual(4), Residual(8, down, 2), Residual(8))
        self.pool = nn.AdaptiveAvgPool2d((1, 1))
        self.head = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(self.blocks(self.stem(x)))
        return self.head(torch.flatten(x, 1))


class Recurrent(nn.Module):
    def __init__(self, cell) -> None:
        super().__init__()
        self.rnn = cell

    def forward(self, x):
        out, state = self.rnn(x)
        again, _ = self.rnn(x, state)
        return out + again, state


class Packed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(3, 4, batch_first=True)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        out, _ = self.rnn(packed)
        padded, _ = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
        return padded


class Attention(nn.Module):
    def __init__(self, **options) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, **options)

    def forward(self, q: torch.Tensor, k: torch.Tensor, mask: Optional[torch.Tensor] = None):
        return self.attention(q, k, k, attn_mask=mask, need_weights=True)


class Decoder(nn.Module):
    """A loop that stops on the data."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(4, 4)
        self.stop = nn.Linear(4, 1)

    def forward(self, x: torch.Tensor, limit: int) -> Tuple[torch.Tensor, int]:
        state = torch.zeros_like(x)
        steps = 0
        while steps < limit:
            state = self.cell(x, state)
            steps += 1
            if bool(torch.sigmoid(self.stop(state)).mean() > 0.7):
                break
        return state, steps


def images():
    return (torch.randn(2, 3, 8, 8),)


def sequence():
    return (torch.randn(5, 2, 3),)


MODELS = {
    "resnet": (ResNet, images),
    "lstm": (lambda: Recurrent(nn.LSTM(3, 4, 2, bidirectional=False)), sequence),
    "gru": (lambda: Recurrent(nn.GRU(3, 4, 2)), sequence),
    "rnn": (lambda: Recurrent(nn.RNN(3, 4)), sequence),
    "attention": (lambda: Attention(), lambda: (torch.randn(5, 2, 8), torch.randn(6, 2, 8))),
    "attention_masked": (
        lambda: Attention(batch_first=True, add_bias_kv=True),
        lambda: (torch.randn(2, 5, 8), torch.randn(2, 6, 8), torch.zeros(5, 6, dtype=torch.bool)),
    ),
    "encoder": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), 2, enable_nested_tensor=False),
        lambda: (torch.randn(5, 2, 8),),
    ),
    "transformer": (
        lambda: nn.Transformer(8, 2, 1, 1, 16, dropout=0.0),
        lambda: (torch.randn(5, 2, 8), torch.randn(4, 2, 8)),
    ),
    "decoder": (Decoder, lambda: (torch.randn(2, 4), 9)),
}


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("name", MODELS)
def test_answers_and_gradients(name, training):
    make, inputs = MODELS[name]
    module = make().train(training)
    arguments = inputs()
    scripted = rekindle.script(module)
    # Train mode writes statistics: both start from the same.
    before = {key: value.clone() for key, value in module.state_dict().items()}
    torch.manual_seed(1)
    expected = module(*arguments)
    expected_gradients = gradients(module, expected)
    module.load_state_dict(before)
    torch.manual_seed(1)
    actual = scripted(*arguments)
    torch.testing.assert_close(actual, expected)
    torch.testing.assert_close(gradients(module, actual), expected_gradients)


def gradients(module: nn.Module, result) -> list:
    tensors = [item for item in (result if isinstance(result, tuple) else (result,)) if isinstance(item, torch.Tensor)]
    parameters = list(module.parameters())
    return list(torch.autograd.grad(sum(t.sum() for t in tensors), parameters, allow_unused=True))


def test_packed_sequences():
    module = Packed()
    x, lengths = torch.randn(3, 5, 3), torch.tensor([5, 3, 2])
    torch.testing.assert_close(rekindle.script(module)(x, lengths), module(x, lengths))


def test_overloaded_forward_from_python():
    module = nn.LSTM(3, 4)
    scripted = rekindle.script(module)
    x = torch.randn(5, 2, 3)
    torch.testing.assert_close(scripted(x), module(x))
    packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 4]))
    torch.testing.assert_close(scripted(packed)[0].data, module(packed)[0].data)
    assert [method.name for method in scripted.forward.overloads] == ["forward__0", "forward__1"]


def test_shapes_may_change_between_calls():
    module = ResNet().eval()
    scripted = rekindle.script(module)
    for size in (8, 12, 16, 8):
        x = torch.randn(1, 3, size, size)
        torch.testing.assert_close(scripted(x), module(x))


def test_a_graph_module_of_fx():
    module = torch.fx.symbolic_trace(nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).eval())
    x = torch.randn(2, 3, 6, 6)
    torch.testing.assert_close(rekindle.script(module)(x), module(x))
