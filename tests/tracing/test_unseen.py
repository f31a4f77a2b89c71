"""What PyTorch's function mode does not see is recorded all the same, or reported."""

import copy
import pickle

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import rekindle
from rekindle.tracing.recording.recorder import TracerWarning
from tests.support.equality import assert_same


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(7)


def assert_traced(function, example, *others):
    traced = rekindle.trace(function, example)
    for inputs in (example, *others):
        assert_same(traced(*inputs), function(*inputs))
    return traced


def kinds(graph) -> list[str]:
    return [node.kind for node in graph.nodes if node.kind != "prim::Constant"]


def test_methods_that_python_extends():
    traced = assert_traced(lambda x: x.unflatten(-1, (2, x.size(1) // 2)), (torch.randn(3, 4),), (torch.randn(5, 6),))
    assert kinds(traced.graph)[-1] == "aten::unflatten"


def test_attention():
    attention = nn.MultiheadAttention(8, 2, batch_first=True)
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2, enable_nested_tensor=False
    )
    mask = torch.arange(5) >= torch.tensor([[5], [3]])

    class Encode(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention, self.encoder = attention.eval(), encoder.eval()

        def forward(self, x, mask):
            return self.attention(x, x, x, need_weights=False)[0], self.encoder(x, src_key_padding_mask=mask)

    inputs = (torch.randn(2, 5, 8), mask), (torch.randn(2, 5, 8), mask.flip(0))
    assert_traced(Encode(), *inputs)
    with torch.no_grad():
        assert_traced(Encode(), *inputs)


def test_packed_sequences():
    class Packed(nn.Module):
        def __init__(self):
            super().__init__()
            self.recurrent = nn.LSTM(4, 5, batch_first=True)

        def forward(self, x, lengths):
            packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            packed, (h, _) = self.recurrent(packed)
            padded, counts = nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
            return padded, h, counts

    first = torch.randn(2, 5, 4), torch.tensor([5, 3])
    assert_traced(Packed(), first, (torch.randn(3, 6, 4), torch.tensor([2, 6, 1])))


def test_vmap_is_recorded_as_what_it_becomes():
    x, y = torch.randn(3, 4), torch.randn(2, 4)
    with pytest.warns(TracerWarning, match=r"a transform of torch.func was applied: the trace keeps the sizes"):
        traced = rekindle.trace(torch.vmap(lambda row: row * 2), (x,))
    assert kinds(traced.graph) == ["aten::mul"]
    assert_same(traced(torch.ones(5, 2)), torch.full((5, 2), 2.0))
    with pytest.warns(TracerWarning):
        traced = rekindle.trace(lambda x, y: torch.vmap(lambda row: y @ row)(x), (x, y))
    other = torch.randn(3, 4)
    assert_same(traced(other, y), other @ y.t())
    assert [fact.kind.value for fact in traced.report if fact.kind.value != "branch"][0] == "state"


def test_torch_func():
    def function(x):
        return torch.func.jacrev(lambda y: (y**2).sum(0))(x), torch.func.grad(lambda y: y.sin().sum())(x)

    with pytest.warns(TracerWarning):
        traced = rekindle.trace(function, (torch.randn(2, 3),))
    x = torch.randn(2, 3)
    assert_same(traced(x), function(x))
    assert any(fact.kind.value == "size" for fact in traced.report)


def test_parts_and_data_of_tensors_that_are_replaced():
    def function(x):
        z = torch.complex(x, x)
        z.real = x * 2
        z.imag = 3
        y = x.clone()
        y.data = x * 4
        w = x.clone()
        w.data.add_(1)
        return z, y, w

    assert_traced(function, (torch.randn(2, 3),), (torch.randn(4, 5),))


def test_the_data_of_an_input_are_not_replaced():
    def function(x):
        x.data = x * 2
        return x + 1

    with pytest.warns(TracerWarning, match="the data of a tensor from outside was replaced: the trace does not"):
        traced = rekindle.trace(function, (torch.ones(2),))
    x = torch.ones(2)
    assert_same((traced(x), x), (torch.full((2,), 3.0), torch.ones(2)))


def test_deep_copies():
    assert_traced(lambda x: copy.deepcopy(x.detach()).add_(1) + x, (torch.randn(2),), (torch.randn(3, 4),))


@pytest.mark.parametrize("through", [copy.copy, lambda x: pickle.loads(pickle.dumps(x))])  # noqa: S301
def test_tensors_that_are_taken_apart_are_told(through):
    with pytest.warns(TracerWarning, match="the contents of a tensor was 'float32\\[2\\]' in the example"):
        traced = rekindle.trace(lambda x: through(x.detach()) + 0 * x, (torch.ones(2),))
    assert_same(traced(torch.full((2,), 3.0)), torch.ones(2))
    assert {"number", "constant"} <= {fact.kind.value for fact in traced.report}


class Named(torch.Tensor):
    pass


def test_subclasses_of_tensors():
    def function(x):
        return (x.as_subclass(Named) * 2).as_subclass(torch.Tensor), x.view(x.size(0), -1).as_subclass(Named)

    traced = assert_traced(lambda x: function(x)[0], (torch.randn(2, 3),), (torch.randn(4, 3),))
    assert kinds(traced.graph) == ["aten::alias", "aten::mul", "aten::alias"]
    assert_traced(lambda x: x + 1, (torch.randn(2).as_subclass(Named),))


def test_parameters_and_modules_that_the_code_makes():
    class Fresh(nn.Module):
        def forward(self, x):
            return nn.LayerNorm(x.size(-1))(x) * nn.Parameter(x)

    x = torch.randn(2, 3)
    traced = assert_traced(Fresh(), (x,))
    assert traced(x).requires_grad


def test_printing_is_no_computation():
    def function(x):
        return x + len(f"{x} {x!r} {x.sum()}") * 0

    traced = rekindle.trace(function, (torch.randn(2, 3),))
    assert kinds(traced.graph) == ["aten::add"]
    assert len(traced.report) == 0


def test_reading_a_tensor_as_numbers_of_another_dtype():
    assert_traced(lambda x: x.view(torch.int32) + 1, (torch.randn(2, 3),), (torch.randn(4),))


def test_numbers_where_operators_take_other_numbers():
    def function(x):
        return F.interpolate(x, scale_factor=2), F.interpolate(x, size=x.size(-1) * 2), torch.floor_divide(7, x)

    assert_traced(function, (torch.randn(2, 3, 4),), (torch.randn(1, 2, 6),))
