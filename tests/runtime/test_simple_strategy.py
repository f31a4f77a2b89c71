"""One version of a function for each kind of arguments: which there are, and that they answer alike."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, Dict, List, Optional, Tuple, Union

import pytest
import torch

import rekindle
from rekindle.ir.text.printer import print_graph
from rekindle.runtime.strategies import simple_strategy
from rekindle.runtime.strategies.argument_spec import ArgumentSpecCreator


@pytest.fixture(autouse=True)
def _settings() -> Iterator[None]:
    before = rekindle.set_execution_strategy("simple")
    yield
    rekindle.set_execution_strategy(before)
    rekindle.set_fusion_strategy([("STATIC", 2), ("DYNAMIC", 5)])
    rekindle.set_background_compilation(False)


def versions_of(function: Any) -> int:
    return len(function.get_debug_state().execution_plans)


def text_for(function: Any, *args: Any) -> str:
    return print_graph(function.graph_for(*args).copy(), ranges=False)


def masked(x, mask: Optional[torch.Tensor] = None):
    if x.dim() == 2:
        y = x + 1
    else:
        y = x * 2
    if mask is not None:
        y = y * mask
    if y.dtype == torch.float32:
        y = y.relu()
    return y


def test_what_is_asked_of_arguments_is_known_in_their_version() -> None:
    function = rekindle.script(masked)
    x = torch.ones(2, 2)
    assert (
        text_for(function, x)
        == """\
graph(%x.1 : Float(*, *, device=cpu),
      %mask.1 : Tensor?):
  %2 : int = prim::Constant[value=1]()
  %y.1 : Float(*, *, device=cpu) = aten::add(%x.1, %2, %2)
  %y.13 : Float(*, *, device=cpu) = aten::relu(%y.1)
  return (%y.13)
"""
    )
    assert (
        text_for(function, x.int().sum(), x)
        == """\
graph(%x.1 : Long(device=cpu),
      %mask.1 : Tensor?):
  %2 : int = prim::Constant[value=2]()
  %3 : Float(*, *, device=cpu) = prim::unchecked_unwrap_optional(%mask.1)
  %y.3 : Long(requires_grad=0, device=cpu) = aten::mul(%x.1, %2)
  %y.7 : Float(*, *, device=cpu) = aten::mul(%y.3, %3)
  %y.13 : Float(*, *, device=cpu) = aten::relu(%y.7)
  return (%y.13)
"""
    )


def test_every_version_answers_as_python_does() -> None:
    function = rekindle.script(masked)
    arguments = [torch.randn(3, 3), torch.randn(3), torch.tensor(2), torch.randn(2, 2, 2, dtype=torch.float64)]
    for _ in range(3):
        for x in arguments:
            for mask in (None, torch.tensor(-1.0), torch.tensor(3)):
                expected = masked(x, mask)
                found = function(x, mask)
                assert torch.equal(found, expected)
                assert found.dtype == expected.dtype


def shifts(x, y):
    return x + y * 2


def test_a_graph_that_asks_nothing_has_one_version() -> None:
    function = rekindle.script(shifts)
    for shape in ((), (1,), (2, 2), (0, 3, 1)):
        assert torch.equal(function(torch.ones(shape), torch.ones(shape)), torch.full(shape, 3.0))
    assert versions_of(function) == 1


def ranks(x):
    return x.dim() * x.sum()


def test_there_are_at_most_eight_versions_whatever_the_shapes() -> None:
    function = rekindle.script(ranks)
    for rank in range(30):
        for size in range(1, 40):
            x = torch.ones([1] * (rank - 1) + [size] if rank else [])
            assert function(x) == rank * x.numel()
    assert versions_of(function) == 8


def test_how_many_versions_there_may_be_is_a_setting() -> None:
    before = rekindle.set_fusion_strategy([("STATIC", 1), ("DYNAMIC", 1)])
    assert before == [("STATIC", 2), ("DYNAMIC", 5)]
    function = rekindle.script(ranks)
    for rank in (1, 2, 3, 4, 2, 1):
        assert function(torch.ones([1] * rank)) == rank
    assert versions_of(function) == 3
    rekindle.set_fusion_strategy([])
    assert versions_of(function) == 0
    assert function(torch.ones(1, 1)) == 2
    assert versions_of(function) == 1


def test_settings_that_mean_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="SOMETIMES") as error:
        rekindle.set_fusion_strategy([("SOMETIMES", 2)])  # type: ignore[list-item]
    assert str(error.value) == 'the behavior \'SOMETIMES\' is not known: it is "STATIC" or "DYNAMIC"'
    with pytest.raises(ValueError, match="STATIC") as error:
        rekindle.set_fusion_strategy([("STATIC", -1)])
    assert str(error.value) == "STATIC has the number -1: how many versions there are cannot be negative"
    with pytest.raises(ValueError, match="there is no strategy 'fast'; there are: 'simple', 'profiling', 'native'"):
        rekindle.set_execution_strategy("fast")
    assert rekindle.set_execution_strategy("simple") == "simple"


def pair(t: Tuple[torch.Tensor, Optional[torch.Tensor]], n: Optional[int]):
    a, b = t
    if b is not None:
        a = a + b
    if n is not None:
        a = a * n
    return a.sum() if a.dim() > 1 else a


def test_elements_of_tuples_count_as_arguments() -> None:
    function = rekindle.script(pair)
    x = torch.ones(2, 2)
    for t in ((x, None), (x, x), (x[0], None)):
        for n in (None, 3):
            assert torch.equal(function(t, n), pair(t, n))
    assert versions_of(function) == 6
    assert (
        text_for(function, (x[0], None), 3)
        == """\
graph(%t.1 : (Tensor, Tensor?),
      %n.1 : int?):
  %2 : int = prim::unchecked_unwrap_optional(%n.1)
  %a.1 : Float(*, device=cpu), %b.1 : Tensor? = prim::TupleUnpack(%t.1)
  %a.9 : Float(*, device=cpu) = aten::mul(%a.1, %2)
  return (%a.9)
"""
    )


def grows(x, d: int):
    before = x.dim()
    for _ in range(d):
        x.unsqueeze_(0)
    return x, before, x.dim()


def test_an_argument_that_the_program_reshapes() -> None:
    function = rekindle.script(grows)
    for _ in range(3):
        for rank in (1, 2):
            found, before, after = function(torch.ones([2] * rank), 2)
            assert (found.dim(), before, after) == (rank + 2, rank, rank + 2)


def looks(xs: List[torch.Tensor], ys: Dict[str, Optional[torch.Tensor]]):
    xs.append(xs[0].unsqueeze(0))
    y = ys["y"]
    return [x.dim() for x in xs], y is None


def test_what_lists_and_dicts_hold_is_asked_each_time() -> None:
    function = rekindle.script(looks)
    assert function([torch.ones(2)], {"y": None}) == ([1, 2], True)
    assert function([torch.ones(2, 2)], {"y": torch.ones(1)}) == ([2, 3], False)
    assert versions_of(function) == 1


def of_a_union(x: Union[torch.Tensor, int], y: torch.Tensor):
    if isinstance(x, torch.Tensor):
        z = x * 2
        if z.dim() == 2 and z.dtype == torch.float32:
            return z.sum(0) + y
        return z.sum() + y
    else:
        return y + x


def test_facts_of_tensors_are_not_asked_of_an_argument_that_may_be_something_else() -> None:
    function = rekindle.script(of_a_union)
    creator = ArgumentSpecCreator.of(function.inlined_graph)
    assert all(creator.graph.inputs[path.input].name == "y.1" for path, _ in creator.queried_properties)
    y = torch.ones(3)
    for _ in range(3):
        for x in (torch.ones(2, 3), torch.ones(3), 4, torch.ones(2, 3, dtype=torch.float64)):
            assert torch.equal(function(x, y), of_a_union(x, y))


def test_specs_in_words() -> None:
    creator = ArgumentSpecCreator.of(rekindle.script(pair).inlined_graph)
    assert creator.key is not None
    spec = creator.key((torch.ones(2), None), 3)
    of_the_first = "t.1[0]: device cpu; t.1[0]: dtype torch.float32; t.1[0]: rank 1"
    assert creator.describe(spec) == f"{of_the_first}; t.1[1] is None; n.1 is not None"


def state_of_a_loop(x: torch.Tensor, h: torch.Tensor, c: torch.Tensor, n: int):
    state = (h, c + 1)
    for i in range(n):
        a, b = state
        if a.dim() != 2 or b.dim() != 1:
            raise ValueError(f"expected a matrix and a vector, got {a.dim()} and {b.dim()} dimensions")
        state = (a + x[i], b * 2)
    return state[0]


def test_facts_of_what_loops_carry_are_asked_of_what_they_start_with() -> None:
    function = rekindle.script(state_of_a_loop)
    creator = ArgumentSpecCreator.of(function.inlined_graph)
    asked = {creator.graph.inputs[path.input].name for path, _ in creator.queried_properties}
    assert {"h.1", "c.1"} <= asked
    matrix, vector = torch.ones(2, 2), torch.ones(2)
    for _ in range(3):
        assert torch.equal(function(matrix, matrix, vector, 2), state_of_a_loop(matrix, matrix, vector, 2))
        with pytest.raises(ValueError, match="got 1 and 1 dimensions"):
            function(matrix, vector, vector, 2)
        with pytest.raises(ValueError, match="got 2 and 2 dimensions"):
            function(matrix, matrix, matrix, 2)
        assert torch.equal(function(matrix, vector, matrix, 0), vector)


def queried_in_a_short_loop(x: torch.Tensor, y: torch.Tensor):
    n = y.dim()
    for _ in range(3):
        n += x.dim()
        if x.dim() == 2:
            x = x * 3
        x = x * 2
    return x * n


def test_versions_assume_no_more_than_what_chose_them() -> None:
    function, y = rekindle.script(queried_in_a_short_loop), torch.ones(2)
    for size in ((2,), (1, 2), (1, 1, 2), (2,)):
        x = torch.ones(size)
        assert torch.equal(function(x, y), queried_in_a_short_loop(x, y))


class Projected(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3, bias=False)

    def forward(self, x: torch.Tensor):
        y = torch.relu(self.linear(x))
        if y.dim() != 2:
            return y.sum()
        return y * 2


def test_types_of_parameters_are_assumed_where_they_decide_a_question() -> None:
    module = Projected()
    compiled = rekindle.script(module)
    matrix, vector = torch.ones(2, 3), torch.ones(3)
    for _ in range(3):
        torch.testing.assert_close(compiled(matrix), module(matrix))
        torch.testing.assert_close(compiled(vector), module(vector))
    graph = compiled.graph_for(matrix)
    assert not graph.find_nodes("prim::If")
    assert not graph.find_nodes("aten::dim")
    compiled.linear.weight = torch.nn.Parameter(torch.ones(3))
    module.linear.weight = compiled.linear.weight
    for _ in range(3):
        torch.testing.assert_close(compiled(matrix), module(matrix))


class Counted:
    """Counts how often graphs are optimized."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        optimize = simple_strategy.optimize

        def counting(*args: Any, **kwargs: Any) -> bool:
            self.count += 1
            return optimize(*args, **kwargs)

        monkeypatch.setattr(simple_strategy, "optimize", counting)


def test_compiling_ahead_leaves_nothing_to_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def local(x):
        return x.dim() + x

    counted = Counted(monkeypatch)
    function = rekindle.script(local)
    function.compile(torch.ones(2))
    assert counted.count == 3  # for any arguments, then for a vector, twice
    assert torch.equal(function(torch.ones(3)), torch.full((3,), 2.0))
    assert counted.count == 3
    function(torch.ones(3, 3))
    assert counted.count == 5
    with pytest.raises(rekindle.errors.ArgumentError):
        function.compile(1)
    module = rekindle.script(torch.nn.Linear(2, 2))
    module.compile(torch.ones(1, 2))
    assert versions_of(module) == 1


def test_calls_do_not_wait_for_what_is_compiled_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    def local(x):
        return x.dim() + x

    assert rekindle.set_background_compilation(True) is False
    allowed, done = threading.Event(), threading.Event()
    optimize = simple_strategy.optimize

    def waits(*args: Any, **kwargs: Any) -> bool:
        allowed.wait()
        return optimize(*args, **kwargs)

    monkeypatch.setattr(simple_strategy, "optimize", waits)
    function = rekindle.script(local)
    x = torch.ones(3)
    for _ in range(3):
        assert torch.equal(function(x), x + 1)
    assert versions_of(function) == 0
    allowed.set()
    simple_strategy.in_background(done.set)
    done.wait()
    assert versions_of(function) == 1
    assert torch.equal(function(x), x + 1)
    assert versions_of(function) == 1


def test_what_the_background_cannot_optimize_runs_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def local(x):
        return x - 1

    def fails(*args: Any, **kwargs: Any) -> bool:
        raise RuntimeError("a broken pass")

    monkeypatch.setattr(simple_strategy, "optimize", fails)
    rekindle.set_background_compilation(True)
    function = rekindle.script(local)
    for _ in range(3):
        done = threading.Event()
        assert function(torch.tensor(3)) == 2
        simple_strategy.in_background(done.set)
        done.wait()
    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
        "could not be optimized, and runs as it was compiled"
    ]
