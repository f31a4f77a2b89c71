"""Programs out of archives: what PyTorch wrote opens here, and means the same."""

import copy
import io
from dataclasses import replace
from enum import Enum
from typing import Dict, List, NamedTuple, Optional, Tuple

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.archive.limits import DEFAULT_LIMITS
from rekindle.errors import ArchiveLimitError, UnsafeArchiveError, UnsupportedError
from tests.archive.archives import members_of, with_members, written_by_torch
from tests.support.equality import assert_same


class Color(Enum):
    RED = 1
    BLUE = 2


class Pair(NamedTuple):
    first: Tensor
    second: int


class Counter:
    def __init__(self, start: int):
        self.count = start
        self.seen = [start]

    def up(self) -> int:
        self.count += 1
        return self.count


@torch.jit.interface
class Layer(nn.Module):
    def forward(self, input: Tensor) -> Tensor:
        pass


class Everything(nn.Module):
    names: Dict[str, List[int]]
    nothing: Optional[int]
    nested: List[Optional[List[str]]]
    layer: Layer
    pair: Pair
    mixed: Dict[str, Tuple[int, Optional[Tensor]]]

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 3)
        self.same = self.linear
        self.weight = self.linear.weight
        self.register_buffer("steps", torch.arange(4).view(2, 2))
        self.pair = Pair(torch.ones(2), 3)
        self.counter = Counter(5)
        self.color = Color.BLUE
        self.names = {"a": [1, 2], "b": []}
        self.mixed = {"a": (1, None), "b": (2, torch.ones(1))}
        self.nothing = None
        self.nested = [["x"], None]
        self.numbers = (1, 2.5, True, 3j, -(2**40), "täxt")
        self.device = torch.device("cpu")
        self.layer = nn.ReLU()
        self.parts = nn.ModuleDict({"one": nn.ReLU(), "two": nn.Linear(3, 3)})
        self.shared = [1.5]
        self.shared_too = self.shared

    def forward(self, x):
        pair, names, numbers = self.pair, self.names, self.numbers
        self.counter.up()
        self.shared.append(2.5)
        x = self.layer.forward(self.parts["two"](self.same(x)) + self.steps.sum() + self.counter.count)
        return x, pair.first, pair.second, names, numbers, self.nested, self.color.value, self.device, self.shared_too

    @torch.jit.export
    def other(self, n: int = 3) -> List[int]:
        return [n for _ in range(n)]


def test_answers_and_states_are_those_of_torch():
    archive = written_by_torch(Everything(), {"a.txt": "hello"})
    extra = {"a.txt": "", "b.txt": "untouched"}
    ours, theirs = rekindle.load(archive, _extra_files=extra), torch.jit.load(io.BytesIO(archive))
    assert extra == {"a.txt": b"hello", "b.txt": "untouched"}
    x = torch.randn(4, 2)
    for _ in range(2):
        assert_same(ours(x), theirs(x))
    assert ours.other() == [3, 3, 3]
    assert_same(dict(ours.state_dict()), dict(theirs.state_dict()))
    assert str(ours.schema) == str(theirs.forward.schema).partition(" (of")[0]
    assert (ours.original_name, ours.training) == ("Everything", True)


def test_what_is_one_object_stays_one():
    ours = rekindle.load(rekindle.script(Everything()).save_to_buffer())  # PyTorch writes two modules for one
    assert ours.same is ours.linear
    assert ours.weight is ours.linear.weight
    assert isinstance(ours.weight, nn.Parameter)
    assert ours.shared is ours.shared_too
    assert [name for name, _ in ours.named_parameters()] == [
        "weight",
        "linear.bias",
        "parts.two.weight",
        "parts.two.bias",
    ]


def test_values_are_those_that_the_program_declares():
    ours = rekindle.load(written_by_torch(Everything()))
    assert ours.pair._fields == ("first", "second")
    assert ours.counter.up() == 6
    assert (type(ours.color).__name__, ours.color.name, ours.color.value) == ("Color", "BLUE", 2)
    assert ours.mixed["b"][1].tolist() == [1]
    assert len(ours.parts) == 2
    assert list(ours.parts.keys()) == ["one", "two"]


def test_it_is_a_module_like_any_other(tmp_path):
    path = tmp_path / "model.pt"
    path.write_bytes(written_by_torch(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Dropout())))
    ours = rekindle.load(path)
    assert ours.eval()(torch.ones(1, 2)).shape == (1, 2)
    assert not ours[1].training
    assert copy.deepcopy(ours).half()[0].weight.dtype == torch.float16
    before = copy.deepcopy(ours.state_dict())
    optimizer = torch.optim.SGD(ours.parameters(), lr=0.1)
    ours.train()(torch.randn(4, 2)).sum().backward()
    optimizer.step()
    assert not torch.equal(ours[0].weight, before["0.weight"])
    ours.load_state_dict(before)
    assert torch.equal(ours[0].weight, before["0.weight"])
    assert torch.equal(rekindle.load(path)[0].weight, before["0.weight"])  # the file is as it was


def test_saved_again_it_is_the_same_program():
    first = rekindle.load(written_by_torch(Everything()))
    archive = first.save_to_buffer()
    again, theirs = rekindle.load(archive), torch.jit.load(io.BytesIO(archive))
    x = torch.randn(4, 2)
    expected = first(x)
    assert_same(again(x), expected)
    assert_same(theirs(x), expected)
    assert rekindle.load(archive).save_to_buffer() == archive


def test_map_location():
    archive = written_by_torch(nn.Linear(2, 2))
    assert rekindle.load(archive, map_location="meta").weight.device.type == "meta"
    assert rekindle.load(archive, map_location={"cpu": "meta"}).bias.device.type == "meta"


def test_places_survive():
    class Wrong(nn.Module):
        def forward(self, x, y):
            # ä: a comment in another alphabet
            return x + y  # here

    for archive in (written_by_torch(Wrong()), rekindle.script(Wrong()).save_to_buffer()):
        ours = rekindle.load(archive)
        line = Wrong.forward.__code__.co_firstlineno + 2
        assert f"# {__file__}:{line}:19" in str(ours.graph)
        with pytest.raises(RuntimeError) as caught:
            ours(torch.ones(2), torch.ones(3))
        lines = [entry.frame.code.raw.co_firstlineno and entry.lineno + 1 for entry in caught.traceback]
        assert line in lines


# ------------------------------------------------------------------------------------------------------- __setstate__


class Kept(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.total = 0

    @torch.jit.export
    def __getstate__(self) -> Tuple[Tensor, int, bool]:
        return self.weight, 7, self.training

    @torch.jit.export
    def __setstate__(self, state: Tuple[Tensor, int, bool]):
        self.weight = state[0] * 2
        self.total = 0
        for i in range(state[1]):
            self.total += i
        self.training = state[2]

    def forward(self):
        return self.total


def text_of(archive):
    (name,) = (name for name in members_of(archive) if name.endswith("test_load.py"))
    return name, members_of(archive)[name].decode()


def with_text(archive, old, new):
    name, text = text_of(archive)
    assert old in text
    return with_members({**members_of(archive), name: text.replace(old, new).encode(), f"{name}.debug_pkl": None})


def test_setstate_runs_here():
    ours = rekindle.load(written_by_torch(Kept()))
    assert ours() == 21
    assert ours.weight.tolist() == [2, 2]


def test_setstate_can_be_refused():
    with pytest.raises(UnsafeArchiveError) as caught:
        rekindle.load(written_by_torch(Kept()), allow_setstate=False)
    assert str(caught.value) == (
        "The archive holds an object that '__torch__.tests.archive.test_load.Kept.__setstate__' would have to make.\n"
        "Hint: Load with allow_setstate=True if you trust this file: it runs in rekindle's interpreter, without access "
        "to files or the system."
    )


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ('torch.save(state[0], "/tmp/evil")', "aten::save"),
        ('self.weight = torch.from_file("/etc/passwd")', "aten::from_file"),
        ('ops.evil.system("rm")', "evil::system"),
        ('print("hello")', "archive::Print"),
    ],
)
def test_what_setstate_may_not_call(call, kind):
    archive = with_text(written_by_torch(Kept()), "self.total = 0\n", f"self.total = 0\n    {call}\n")
    with pytest.raises(UnsafeArchiveError) as caught:
        rekindle.load(archive)
    assert str(caught.value) == (
        f"'__torch__.tests.archive.test_load.Kept.__setstate__' calls '{kind}', which may not run while an archive is "
        "loaded.\nHint: Do not trust this file, unless you know why it does that."
    )


def test_setstate_that_does_not_end():
    archive = with_text(written_by_torch(Kept()), "range(", "range(9223372036854775807 + 0 * ")
    with pytest.raises(ArchiveLimitError, match="'__setstate__' takes too many steps"):
        rekindle.load(archive, limits=replace(DEFAULT_LIMITS, steps=1000))


# ------------------------------------------------------------------------------------------- what loading does not do


@pytest.mark.parametrize(
    "default", ['torch.from_file("/etc/passwd", False, 100)', "torch.ones([2])", "[torch.ones([2])]"]
)
def test_defaults_are_constants(default):
    archive = with_text(
        written_by_torch(Kept()),
        "self: __torch__.tests.archive.test_load.Kept) -> int:",
        f"self: __torch__.tests.archive.test_load.Kept, x: Tensor={default}) -> int:",
    )
    module = rekindle.load(archive)
    with pytest.raises(UnsupportedError) as caught:
        module.forward.schema
    assert str(caught.value).startswith(f"'{default}' is not a constant, which must be here\n")


def test_operators_of_libraries_do_not_run_before_the_program_does():
    calls = []
    with torch.library._scoped_library("rekindle_test_load", "DEF") as library:
        library.define("touch(int n) -> int")
        library.impl("touch", lambda n: calls.append(n) or n, "CompositeExplicitAutograd")
        archive = with_text(written_by_torch(Kept()), "return self.total", "return ops.rekindle_test_load.touch(3)")
        module = rekindle.load(archive)
        assert "= rekindle_test_load::touch(" in str(module.graph)
        assert calls == []
        assert (module(), calls) == (3, [3])
