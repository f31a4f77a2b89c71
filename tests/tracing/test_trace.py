"""trace: what a run does to tensors becomes a program, which holds for other sizes too."""

import io
import math
import threading
import warnings
from functools import partial
from typing import Tuple

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import rekindle
from rekindle.errors import TracingError
from rekindle.tracing.check import TracingCheckError
from rekindle.tracing.recording.active import active_recorder
from rekindle.tracing.recording.recorder import TracerWarning
from tests.support.equality import assert_same
from tests.support.messages import message_of

SEED = 7


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(SEED)


def kinds(graph) -> list[str]:
    return [node.kind for node in graph.nodes if node.kind != "prim::Constant"]


def assert_traced(function, example, *others, strict=True):
    """The trace agrees with the code, on the example and on other inputs."""
    traced = rekindle.trace(function, example, strict=strict)
    for inputs in (example, *others):
        assert_same(traced(*inputs), function(*inputs))
    return traced


# ------------------------------------------------------------------------------------------------------------ operators


def test_operators_are_recorded_as_they_are_written():
    def block(x, w, b):
        x = F.layer_norm(F.linear(x, w, b), (4,))
        return F.softmax(x, dim=-1) @ torch.relu(x).mT

    traced = assert_traced(block, (torch.randn(2, 3, 5), torch.randn(4, 5), torch.randn(4)))
    assert kinds(traced.graph) == [
        "aten::linear",
        "prim::ListConstruct",
        "aten::layer_norm",
        "aten::softmax",
        "aten::relu",
        "aten::mT",
        "aten::matmul",
    ]


def test_the_graph_has_the_authors_names_and_lines():
    def twice(value, other):
        return value * 2 + other

    traced = rekindle.trace(twice, (torch.ones(2), torch.ones(2)))
    first, second = (node for node in traced.graph.nodes if node.kind.startswith("aten::"))
    assert [value.name for value in traced.graph.inputs] == ["value", "other"]
    assert first.range.text == second.range.text == "return value * 2 + other"
    assert str(traced.schema) == "twice(Tensor value, Tensor other) -> Tensor"


def test_writes_and_views_stay_writes_and_views():
    def write(x):
        row = x[0]
        row += 1
        x[1:, None] = 5.0
        x[x > 4] = -x[x > 4]
        x.t().mul_(2)
        return x, row

    inputs = [torch.randn(3, 4) * 4, torch.randn(5, 2) * 4]
    traced = rekindle.trace(write, (inputs[0].clone(),))
    for given in inputs:
        mine, theirs = given.clone(), given.clone()
        assert_same(traced(mine), write(theirs))
        assert_same(mine, theirs)


def test_what_is_written_to_an_example_is_not_seen_outside():
    x = torch.zeros(2)
    rekindle.trace(lambda x: x.add_(1), (x,))
    assert_same(x, torch.zeros(2))


@pytest.mark.parametrize(
    "index",
    [0, -1, slice(1, None), None, ..., (slice(None), 1), (..., None, 0), ([0, 1], slice(None)), (0, [1, 0]), True],
    ids=str,
)
def test_subscripts(index):
    def read_and_write(x):
        y = x.clone()
        y[index] = 7.0
        return x[index], y

    assert_traced(read_and_write, (torch.randn(3, 4, 5),), (torch.randn(4, 6, 2),))


def test_subscripts_with_tensors():
    def index(x, i, mask):
        return x[i], x[:, i], x[mask], x[i, mask.nonzero()[:1, 0]]

    first = torch.randn(3, 3), torch.tensor([2]), torch.tensor([True, False, True])
    assert_traced(index, first, (torch.randn(3, 3), torch.tensor([0]), torch.tensor([False, True, True])))


def test_subscripts_with_lists():
    def ends(x):
        y = x * 2
        y[[x.size(0) - 1]] = 1.0
        return x[[0, x.size(0) - 1]], x[:, [x.size(1) - 1, -2]], x[[True] * 3], y

    assert_traced(ends, (torch.randn(3, 4),), (torch.randn(3, 6),))


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
def test_lists_that_are_like_tuples():
    def subscripts(x, i):
        return x[[i, 0]], x[[[0, 1], [1, 0]]], x[[slice(1), 0]], x[[None, 0]]

    assert_traced(subscripts, (torch.randn(3, 3), torch.tensor(2)), (torch.randn(4, 3), torch.tensor(3)))


def test_subscripts_with_masks_without_dimensions():
    def masked(x, total):
        y, z = x * 2, total * 2
        y[total > 1] = 5.0
        z[total > 1] = y.sum() + z[total > 1]
        return x[total > 1], x[:, total > 1], total[total > 1], y, z

    first = torch.randn(3, 3), torch.tensor(2.0)
    assert_traced(masked, first, (torch.randn(2, 3), torch.tensor(0.5)), (torch.randn(2, 3), torch.tensor(1.5)))


# ---------------------------------------------------------------------------------------------------------------- sizes


def test_sizes_are_computed_and_not_fixed():
    def sizes(x):
        batch, width = x.shape
        flat = x.view(x.size(0) * x.size(-1))
        half = x[:, : width // 2]
        scale = 1 / math.sqrt(width) + width**-0.5
        rows = torch.zeros(len(x), width + 1, device=x.device)
        return flat * scale, half, rows, torch.arange(batch - 1), x.numel() * x

    traced = assert_traced(sizes, (torch.randn(2, 6),), (torch.randn(5, 3),), (torch.randn(1, 8),))
    assert len(traced.report) == 0


def test_sizes_can_be_returned():
    traced = assert_traced(lambda x: (x, x.size(0)), (torch.ones(2),), (torch.ones(5),))
    assert type(traced(torch.ones(4))[1]) is int


def test_a_branch_on_a_size_is_reported_and_told_once():
    def branch(x):
        for _ in range(2):
            if x.size(0) > 3:
                x = x + 1
        return x

    with pytest.warns(TracerWarning, match=r"a comparison of a size was False in the example") as caught:
        traced = rekindle.trace(branch, (torch.ones(2),))
    assert len(caught) == 1
    (fact,) = traced.report
    assert (fact.kind.value, fact.what, fact.value) == ("branch", "a comparison of a size", "False")
    assert fact.place.text == "if x.size(0) > 3:"


def test_devices_follow_the_input():
    traced = rekindle.trace(lambda x: torch.ones(2, device=x.device) + x, (torch.ones(2),))
    assert "prim::device" in kinds(traced.graph)
    assert traced(torch.ones(2, device="meta")).device.type == "meta"


# -------------------------------------------------------------------------------------------------------------- baking


@pytest.mark.parametrize(
    ("take", "what"),
    [
        (lambda x: x * x.sum().item(), "the number in a tensor"),
        (lambda x: x * int(x.sum()), "int() of a tensor"),
        (lambda x: x * float(x.sum()), "float() of a tensor"),
        (lambda x: x if x.sum() > 100 else -x, "the truth of a tensor"),
        (lambda x: x * x.tolist()[0], "the list of a tensor's numbers"),
        (lambda x: x * x.numpy()[0].item(), "the array of a tensor's numbers"),
        (lambda x: sum(row for row in x), "the trip count of a loop over a tensor"),
    ],
)
def test_what_is_taken_from_tensors_is_told(take, what):
    with pytest.warns(TracerWarning) as caught:
        traced = rekindle.trace(take, (torch.tensor([1.0, 2.0]),))
    assert what in [fact.what for fact in traced.report]
    assert any(what in str(warning.message) for warning in caught)


def test_constants_are_reported():
    outside = torch.ones(2, 3)
    traced = assert_traced(lambda x: x + outside + torch.tensor([1.0, 2.0, 3.0]), (torch.ones(2, 3),))
    assert [fact.kind.value for fact in traced.report] == ["constant"]
    assert str(traced.report).startswith("the trace assumes that\n  constant: a tensor from outside was float32[2x3] (")


def test_a_constant_that_requires_grad_is_refused():
    weight = torch.ones(2, requires_grad=True)

    def scaled(x):
        return x * weight

    text = message_of(TracingError, lambda: rekindle.trace(scaled, (torch.ones(2),)))
    assert text == (
        "a tensor that requires grad is used and is neither an input nor part of the traced module; as a constant it "
        "would get no gradient\n"
        '  File "FILE", line N\n'
        "        weight = torch.ones(2, requires_grad=True)\n"
        "\n"
        "        def scaled(x):\n"
        "            return x * weight\n"
        "            ^^^^^^^^^^^^^^^^^\n"
        "Hint: pass it as an input, make it a parameter of the module, or detach() it"
    )


# -------------------------------------------------------------------------------------------------- inputs and outputs


def test_nested_inputs_and_outputs():
    def nested(pair, items, table):
        (a, (b, c)) = pair
        return (a + b, (c * items[0], items[1] - table["k"]))

    def inputs(n):
        tensors = list(torch.randn(6, n))
        return ((tensors[0], (tensors[1], tensors[2])), tensors[3:5], {"k": tensors[5]})

    assert_traced(nested, inputs(2), inputs(5))


def test_lists_and_dicts_as_results_are_asked_for():
    function = lambda x: {"a": x + 1, "b": x * 2}  # noqa: E731
    with pytest.raises(TracingError, match="the result is a dict, of which a trace would fix the keys"):
        rekindle.trace(function, (torch.ones(2),))
    assert_traced(function, (torch.ones(2),), (torch.ones(3),), strict=False)
    assert_traced(lambda x: [x, x + 1], (torch.ones(2),), strict=False)
    with pytest.warns(TracerWarning) as warned:
        traced = rekindle.trace(lambda x: [x, x + 1], (torch.ones(2),))
    assert_same(traced(torch.zeros(3)), [torch.zeros(3), torch.ones(3)])
    assert str(warned[0].message).partition(": ")[2] == (
        "the result is a list of 2, which might cause the trace to be incorrect: it always returns a list of that "
        "length. Return a tuple, or trace with strict=False if the length never changes"
    )


def test_results_of_mixed_types():
    assert_traced(lambda x: {"s": x, "t": (x + 1, x * 2)}, (torch.ones(2),), (torch.zeros(3),), strict=False)
    assert_traced(lambda x: [x, (x, x + 1), [x]], (torch.ones(2),), (torch.zeros(3),), strict=False)


def test_results_that_are_not_tensors_are_constants():
    function = lambda x: (x + 1, 2.5, True, "name", None, x.size(0))  # noqa: E731
    traced = rekindle.trace(function, (torch.ones(2),))
    assert_same(traced(torch.zeros(3)), function(torch.zeros(3)))
    assert [(each.what, each.value) for each in traced.report if "result" in each.what] == [
        ("the result[1]", "2.5"),
        ("the result[2]", "True"),
        ("the result[3]", "name"),
        ("the result[4]", "None"),
    ]
    assert_same(rekindle.trace(lambda x: 3, (torch.ones(1),))(torch.ones(2)), 3)


@pytest.mark.parametrize(
    ("function", "example", "message"),
    [
        (lambda x: x.size, (torch.ones(1),), "the result is a value of class 'builtin_function_or_method'"),
        (lambda x: (x, b"a"), (torch.ones(1),), r"the result\[1\] is a value of class 'bytes'"),
        (lambda x: None, (torch.ones(1),), "the result is None"),
        (lambda x: x, (3,), "the argument 'x' is a value of class 'int'; a trace takes tensors"),
        (lambda x: x[0], ([],), "the argument 'x' is an empty list"),
        (lambda x: x, None, "a trace needs examples of the arguments"),
        (5, (torch.ones(1),), "a value of class 'int' cannot be traced"),
    ],
)
def test_what_cannot_be_traced(function, example, message):
    with pytest.raises(TracingError, match=message):
        rekindle.trace(function, example)
    assert active_recorder() is None


def test_example_kwarg_inputs():
    def function(x, *, scale, shift):
        return x * scale + shift

    x, scale, shift = torch.randn(3, 2)
    traced = rekindle.trace(function, (x,), example_kwarg_inputs={"shift": shift, "scale": scale})
    assert_same(traced(x, shift=shift, scale=scale), function(x, shift=shift, scale=scale))


# -------------------------------------------------------------------------------------------------------------- modules


class OfItself(nn.Module):
    """A part that is called with the same three times."""

    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, x):
        return self.part(x, x, x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2))
        self.norm = nn.LayerNorm(4)
        self.recurrent = nn.LSTM(4, 5)
        self.scale = nn.Parameter(torch.ones(()))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.steps += 1
        x = self.norm(self.features(x).mean((2, 3)))
        x, (h, _) = self.recurrent(self.norm(x))
        return x * self.scale, h, self.features[0].weight.sum()


def test_a_module_keeps_its_parts():
    net = Net().eval()
    traced = assert_traced(net, (torch.randn(2, 3, 8, 8),), (torch.randn(5, 3, 10, 12),))
    assert isinstance(traced, rekindle.ScriptModule)
    assert dict(traced.named_parameters()).keys() == dict(net.named_parameters()).keys()
    assert all(mine is theirs for mine, theirs in zip(traced.parameters(), net.parameters(), strict=True))
    assert kinds(traced.norm.graph)[-1] == "aten::layer_norm"
    # The second call of a part is a method of its own.
    assert [node.attributes["name"] for node in traced.graph.find_nodes("prim::CallMethod")] == [
        "forward",
        "forward",
        "forward1",
        "forward",
    ]


def test_a_parameter_that_may_be_none_is_a_tensor_where_it_is_one():
    attention = nn.MultiheadAttention(8, 2, batch_first=True, add_bias_kv=True).eval()
    traced = rekindle.trace(OfItself(attention).eval(), (torch.randn(2, 3, 8),))
    x = torch.randn(4, 5, 8)
    assert_same(traced(x), attention(x, x, x))
    assert str(traced.part.script_type.attribute_type("bias_k")) == "Tensor"


def test_state_changes_as_it_would():
    net, plain = Net(), Net()
    plain.load_state_dict(net.state_dict())
    x = torch.randn(4, 3, 8, 8)
    traced = rekindle.trace(net, (x,))
    plain(x)
    assert_same(dict(traced.state_dict()), dict(plain.state_dict()))  # tracing is one run, checks leave nothing
    traced(x), plain(x)
    assert_same(dict(traced.state_dict()), dict(plain.state_dict()))
    assert traced.steps.item() == 2


def test_random_numbers_are_left_as_eager_leaves_them():
    dropout = nn.Dropout(0.5)
    x = torch.ones(100)
    torch.manual_seed(1)
    traced = rekindle.trace(dropout, (x,))
    after_trace = torch.rand(1)
    torch.manual_seed(1)
    expected = dropout(x)
    assert_same(torch.rand(1), after_trace)
    torch.manual_seed(1)
    assert_same(traced(x), expected)


def test_gradients_go_through():
    net = Net().eval()
    traced = rekindle.trace(net, (torch.randn(2, 3, 8, 8),))
    x = torch.randn(3, 3, 9, 9)
    grads = []
    for module in (net, traced):
        net.zero_grad()
        module(x)[0].sum().backward()
        grads.append([parameter.grad.clone() for parameter in net.parameters()])
    assert_same(grads[0], grads[1])


class TwoMethods(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        return self.fc(x)

    def twice(self, x, y):
        return self.fc(self.fc(x)) + y


def test_several_methods():
    module = TwoMethods()
    x, y = torch.randn(2, 2, 3)
    traced = rekindle.trace_module(module, {"forward": x, "twice": (x, y)})
    other, second = torch.randn(2, 5, 3)
    assert_same(traced(other), module(other))
    assert_same(traced.twice(other, second), module.twice(other, second))


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = self.first
        self.tied = nn.Linear(3, 3)
        self.tied.weight = self.first.weight

    def forward(self, x):
        return self.tied(self.second(self.first(x)))


def test_shared_parts_and_tensors():
    assert_traced(Shared(), (torch.randn(2, 3),), (torch.randn(4, 3),))


def test_parametrized_modules():
    module = nn.utils.parametrizations.weight_norm(nn.Linear(3, 4))
    assert_traced(nn.Sequential(module), (torch.randn(2, 3),), (torch.randn(5, 3),))


def test_hooks_are_recorded():
    module = nn.Sequential(nn.Linear(3, 3))
    module[0].register_forward_hook(lambda m, inputs, output: output * 2)
    module.register_forward_pre_hook(lambda m, inputs: (inputs[0] + 1,))
    assert_traced(module, (torch.randn(2, 3),), (torch.randn(4, 3),))


def doubled_result(module, input: Tuple[torch.Tensor], output: torch.Tensor) -> torch.Tensor:
    return output * 2


def test_recorded_hooks_run_once_in_archives():
    """One that could be saved by itself, and one that could not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # there is a newer weight_norm
        module = nn.Sequential(nn.utils.weight_norm(nn.Linear(2, 3)), nn.ReLU())
    module[1].register_forward_hook(doubled_result)
    x = torch.rand(4, 2)
    data = rekindle.trace(module, x).save_to_buffer()
    assert_same(rekindle.load(data)(x), module(x))
    assert_same(torch.jit.load(io.BytesIO(data))(x), module(x))


# ------------------------------------------------------------------------------------------------------- scripted code


@rekindle.script
def counted(x, n: int):
    while n > 0 and bool(x.sum() < 100):
        x = x * 2
        n -= 1
    return x


def test_scripted_functions_stay_calls():
    def function(x):
        return counted(x + 1, x.size(0))

    traced = assert_traced(function, (torch.ones(2),), (torch.ones(7),), (torch.ones(3) * 40,))
    assert kinds(traced.graph) == ["aten::add", "aten::size", "prim::CallFunction"]
    assert len(traced.report) == 0


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)

    def forward(self, x):
        if bool(x.sum() > 0):
            return self.fc(x)
        return -x


def test_scripted_parts_stay_calls():
    module = nn.Sequential(nn.Linear(2, 2), rekindle.script(Branches()), nn.ReLU())
    traced = assert_traced(module, (torch.ones(1, 2),), (torch.randn(5, 2),), (-torch.ones(3, 2) * 9,))
    assert len(traced[1].graph.find_nodes("prim::If")) == 1


def test_a_traced_function_can_be_called_from_a_script():
    doubled = rekindle.trace(lambda x: x.view(x.size(0), -1) * 2, (torch.ones(2, 2),))

    def script(x):
        return doubled(x) + 1

    x = torch.randn(3, 4)
    assert_same(rekindle.script(script)(x), x * 2 + 1)


# ------------------------------------------------------------------------------------------------------------- checking


def test_a_trace_that_depends_on_state_is_refused():
    turns = []

    def changes(x):
        turns.append(1)
        return x + 1 if len(turns) % 2 else x * 2

    with pytest.raises(TracingCheckError) as error:
        rekindle.trace(changes, (torch.ones(2),))
    text = str(error.value)
    assert text.startswith("recording 'changes' twice with the same arguments gave different programs.")
    assert "\n- %3 : Tensor = aten::add" in text
    assert "Hint: the code takes another path each time" in text


def test_check_inputs_show_what_the_example_hides():
    def branch(x):
        return x + 1 if x.size(0) > 3 else x * 3

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rekindle.trace(branch, (torch.ones(2),))
        with pytest.raises(TracingCheckError) as error:
            rekindle.trace(branch, (torch.ones(2),), check_inputs=[(torch.ones(5),)])
        with pytest.raises(TracingCheckError) as of_module:
            rekindle.trace(Branching(), (torch.ones(2),), check_inputs=[(torch.ones(5),)])
    text = str(error.value)
    assert text.startswith("recording 'branch' with a check input gave another program. The first difference:\n- ")
    assert text.endswith(
        "\nHint: the code takes another path for other arguments; compile it with script, or compile the part that does"
    )
    assert str(of_module.value).startswith("recording 'forward' with a check input gave another program.")


class Branching(nn.Module):
    def forward(self, x):
        return x + 1 if x.size(0) > 3 else x * 3


def test_check_inputs_on_which_the_same_operators_give_another_result():
    def scaled(x):
        return x * float(x.sum())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rekindle.trace(scaled, (torch.ones(2),))
    with pytest.warns(TracerWarning) as caught:
        rekindle.trace(scaled, (torch.ones(2),), check_inputs=[(torch.ones(5),)])
    assert str(caught[-1].message).startswith(
        "the trace gives another answer than the code on a check input: the result differs. Tensor-likes are not close!"
    )


# ------------------------------------------------------------------------------------------------------------ recording


def test_everybody_knows_that_a_trace_is_recorded():
    def asks(x):
        assert torch.jit.is_tracing()
        assert rekindle.is_tracing()
        return x + 1

    assert not torch.jit.is_tracing()
    rekindle.trace(asks, (torch.ones(1),), check_trace=False)
    assert not torch.jit.is_tracing()
    assert not rekindle.is_tracing()


def test_packages_may_ask_by_the_names_of_pytorch():
    """As torchvision, fvcore and asteroid ask: their functions keep control flow only where a trace is reported."""

    def limited(x):
        if bool(x.sum() > 0):
            return x
        return -x

    def by_bool(x):
        chosen = rekindle.script(limited) if torch._C._is_tracing() else limited
        return chosen(x)

    def by_state(x):
        state = torch._C._get_tracing_state()
        if not state:
            return limited(x)
        state.push_scope("a part")
        result = rekindle.script(limited)(x)
        state.pop_scope()
        return result

    for function in (by_bool, by_state):
        traced = rekindle.trace(function, torch.ones(2))
        assert traced(-torch.ones(2)).tolist() == [1.0, 1.0], function
    assert not torch._C._is_tracing()
    assert torch._C._get_tracing_state() is None


def test_errors_leave_nothing_behind():
    length, call, is_tracing = len, nn.Module.__call__, torch.jit.is_tracing

    def fails(x):
        raise ValueError("no")

    for _ in range(2):
        with pytest.raises(ValueError, match=r"^no$"):
            rekindle.trace(fails, (torch.ones(1),))
        assert active_recorder() is None
        assert (len, nn.Module.__call__, torch.jit.is_tracing) == (length, call, is_tracing)
        assert torch.overrides._get_current_function_mode() is None


def test_other_threads_notice_nothing():
    inside, done = threading.Event(), threading.Event()
    seen = []

    def other():
        inside.wait()
        x = torch.ones(3, 2)
        seen.append((len(x), type(x.size(0)), torch.jit.is_tracing(), nn.Linear(2, 2)(x).shape))
        done.set()

    thread = threading.Thread(target=other)
    thread.start()

    def waits(x):
        if not done.is_set():
            inside.set()
            done.wait()
        return x + 1

    traced = rekindle.trace(waits, (torch.ones(1),))
    thread.join()
    assert seen == [(3, int, False, torch.Size([3, 2]))]
    assert kinds(traced.graph) == ["aten::add"]


def test_traces_do_not_nest():
    def outer(x):
        return rekindle.trace(lambda y: y + 1, (x,))(x)

    with pytest.raises(TracingError, match="a trace cannot be made while another is recorded"):
        rekindle.trace(outer, (torch.ones(1),))


def test_what_is_compiled_is_returned_as_it_is():
    with pytest.warns(TracerWarning, match="what is compiled already is not traced"):
        assert rekindle.trace(counted, (torch.ones(1),)) is counted


# ---------------------------------------------------------------------------------------------------- names, containers


def test_values_have_the_names_of_local_variables():
    def scaled(x, factor):
        factor = factor + 1
        quick = torch.neg(x)
        return quick * factor

    traced = assert_traced(scaled, (torch.ones(2), torch.ones(2)), (torch.ones(3), torch.zeros(3)))
    assert [node.output.name for node in traced.graph.nodes if node.kind != "prim::Constant"][:2] == ["factor", "quick"]
    assert [argument.name for argument in traced.schema.arguments] == ["x", "factor"]
    assert_same(traced(factor=torch.zeros(2), x=torch.ones(2)), -torch.ones(2))
    assert "quick = torch.neg(x)" in traced.code


def test_assigned_tensors_with_more_dimensions():
    def assigned(target, indices, rows):
        target = target.clone()
        target[indices] = rows
        target[:2] = rows[..., :2]
        return target

    inputs = torch.zeros(9), torch.tensor([1, 2, 3]), torch.rand(1, 1, 3)
    assert_traced(assigned, inputs, (torch.zeros(12), torch.tensor([4, 2]), torch.rand(1, 1, 2)))


class TakesLists(nn.Module):
    def forward(self, features: dict[str, list[torch.Tensor]]) -> torch.Tensor:
        return torch.stack([value[0] for value in features.values()])


def test_a_scripted_part_that_takes_a_dict_of_lists():
    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = rekindle.script(TakesLists())

        def forward(self, x):
            return self.part({"a": [x], "b": [x + 1]})

    module = Whole()
    traced = rekindle.trace(module, torch.ones(2))
    assert_same(traced(torch.zeros(3)), module(torch.zeros(3)))


@pytest.mark.parametrize("kind", ["register_full_backward_hook", "register_full_backward_pre_hook"])
def test_modules_with_backward_hooks_are_refused(kind):
    module = nn.Sequential(nn.Linear(2, 2))
    handle = getattr(module[0], kind)(lambda *args: None)
    with pytest.raises(TracingError) as raised:
        rekindle.trace(module, torch.ones(1, 2))
    assert str(raised.value) == (
        "the module '0' has backward hooks, which a trace would not run\n"
        "Hint: remove them before tracing; those of the whole module may be registered on the trace"
    )
    handle.remove()
    assert_traced(module, (torch.ones(1, 2),))


def test_generators_are_left_as_one_call_leaves_them() -> None:
    def noisy(x):
        return torch.nn.functional.dropout(x + torch.rand(3))

    def next_number(run) -> torch.Tensor:
        torch.manual_seed(3)
        run()
        return torch.rand(2)

    x = torch.ones(3)
    after_a_call = next_number(lambda: noisy(x))
    assert torch.equal(next_number(lambda: torch.jit.trace(noisy, (x,), check_trace=False)), after_a_call)
    for check in (True, False):
        assert torch.equal(next_number(partial(rekindle.trace, noisy, (x,), check_trace=check)), after_a_call)
