"""What is saved: stock PyTorch reads it, it depends on nothing but the program, and what cannot be saved is named."""

import io
import os
import subprocess
import sys
import warnings
import zipfile
from enum import Enum
from typing import Any, Dict, Final, List, NamedTuple, Optional

import pytest
import torch
from torch import nn

import rekindle
from rekindle.errors import ArchiveWarning, SaveError
from tests.support.equality import assert_same


class Color(Enum):
    RED = 1
    BLUE = 2


class Pair(NamedTuple):
    first: torch.Tensor
    second: int


class Counter:
    def __init__(self, start: int):
        self.count = start
        self.seen = [start]

    def up(self) -> int:
        self.count += 1
        return self.count


class Kept:
    """An object that says itself what is kept of it."""

    def __init__(self, x: int):
        self.x = x

    def __getstate__(self) -> int:
        return self.x * 100

    def __setstate__(self, state: int):
        self.x = state + 1


class Everything(nn.Module):
    names: Dict[str, List[int]]
    nothing: Optional[int]
    nested: List[Optional[List[str]]]

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
        self.nothing = None
        self.nested = [["x"], None]
        self.numbers = (1, 2.5, True, 3j, -(2**40), "täxt")
        self.device = torch.device("cpu")
        self.parts = nn.ModuleDict({"one": nn.ReLU(), "two": nn.Linear(3, 3)})

    def forward(self, x):
        pair, names, numbers = self.pair, self.names, self.numbers
        self.counter.up()
        x = self.parts["two"](self.same(x)) + self.steps.sum() + self.counter.count
        return x, pair.first, pair.second, names, numbers, self.nested, self.nothing, self.color.value, self.device


def archive(program, **extra):
    buffer = io.BytesIO()
    rekindle.save(program, buffer, **extra)
    return buffer.getvalue()


def members(data):
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return {name.removeprefix("archive/"): file.read(name) for name in file.namelist()}


def in_torch(data):
    return torch.jit.load(io.BytesIO(data))


def test_torch_reads_it_and_answers_the_same():
    module = rekindle.script(Everything())
    data = archive(module)
    theirs = in_torch(data)
    x = torch.randn(4, 2)
    for _ in range(2):
        assert_same(theirs(x), module(x))
    assert_same(dict(theirs.state_dict()), dict(module.state_dict()))
    named = {name for name, _ in theirs.named_modules()}
    assert named == {name for name, _ in module.named_modules()} | {"same"}  # PyTorch has two objects for one there
    assert theirs.linear.weight.data_ptr() == theirs.weight.data_ptr()
    assert theirs.weight.requires_grad


def test_what_is_one_object_is_one_in_the_archive():
    data = members(archive(rekindle.script(Everything())))
    assert sorted(name for name in data if name.startswith("data/")) == [f"data/{i}" for i in range(6)]
    theirs = in_torch(archive(rekindle.script(Everything())))
    with torch.no_grad():
        theirs.same.weight.fill_(7)
    assert theirs.linear.weight.mean() == 7


class Views(nn.Module):
    def __init__(self):
        super().__init__()
        self.whole = torch.zeros(4)
        self.register_buffer("part", self.whole[2:])

    def forward(self):
        self.whole += 1
        return self.part


def test_what_shares_memory_shares_it_in_torch_jit():
    loaded = torch.jit.load(io.BytesIO(rekindle.script(Views()).save_to_buffer()))
    assert torch.equal(loaded(), torch.ones(2))
    assert torch.equal(loaded(), torch.full((2,), 2.0))


def test_functions_are_kept_as_modules():
    def double(x, times: int = 2):
        return x * times

    data = archive(rekindle.script(double))
    theirs = in_torch(data)
    assert theirs.original_name == "PlaceholderModule"
    assert theirs(torch.ones(2)).tolist() == [2, 2]
    assert theirs(torch.ones(2), 5).tolist() == [5, 5]


def test_objects_with_a_state_of_their_own():
    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            self.kept = Kept(3)

        def forward(self):
            return self.kept.x

    module = rekindle.script(Holder())
    rekindle.script(Kept)  # compiles all methods
    assert in_torch(archive(module))() == 301


class Walled(tuple):
    """A tuple that is not a sequence, as packages have them."""

    def __len__(self):
        raise NotImplementedError

    def __iter__(self):
        raise NotImplementedError


def test_a_tuple_that_cannot_be_walked_over():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.walled = Walled((1, Walled((2.5, "a"))))

        def forward(self):
            return self.walled

    archive = rekindle.script(Net()).save_to_buffer()
    assert rekindle.load(archive)() == torch.jit.load(io.BytesIO(archive))() == (1, (2.5, "a"))


class Untyped(nn.Module):
    def __init__(self):
        super().__init__()
        self.counts = [1, 2]

    @torch.jit.export
    def __getstate__(self):
        return self.counts, self.training

    @torch.jit.export
    def __setstate__(self, state):
        self.counts = state[0] + [3]
        self.training = state[1]

    def forward(self) -> List[int]:
        return self.counts


def test_a_state_without_a_type_is_of_the_type_that_is_given():
    module = rekindle.script(Untyped())
    setter = module.script_type.methods["__setstate__"]
    assert str(setter.schema).endswith("(int[], bool) state) -> NoneType")
    archive = module.save_to_buffer()
    assert rekindle.load(archive)() == torch.jit.load(io.BytesIO(archive))() == [1, 2, 3]


def test_equal_names_are_told_apart_within_the_archive():
    def make(factor):
        class Part(nn.Module):
            def __init__(self):
                super().__init__()
                self.factor: Final[int] = factor

            def forward(self, x):
                return x * factor

        return Part()

    module = rekindle.script(nn.Sequential(make(2), make(3), make(5)))
    data = archive(module)
    assert in_torch(data)(torch.ones(1)).item() == 30
    names = sorted(name for name in members(data) if name.endswith(".py") and "___torch_mangle" in name)
    assert [name.rpartition("/")[2] for name in names] == ["___torch_mangle_0.py", "___torch_mangle_1.py"]


def test_the_same_program_gives_the_same_bytes(tmp_path):
    module = Everything()
    first = archive(rekindle.script(module))
    assert archive(rekindle.script(module)) == first
    rekindle.save(rekindle.script(module), tmp_path / "a.pt")
    rekindle.script(module).save(str(tmp_path / "other name.pt"))
    assert (tmp_path / "a.pt").read_bytes() == (tmp_path / "other name.pt").read_bytes() == first
    assert rekindle.script(module).save_to_buffer() == first


def test_the_bytes_do_not_depend_on_the_process():
    text = (
        "import hashlib, sys, torch, rekindle\n"
        "for _ in range(int(sys.argv[1])): rekindle.script(torch.nn.Linear(3, int(sys.argv[1])))\n"
        "torch.manual_seed(0)\n"
        "net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))\n"
        "sys.stdout.write(hashlib.sha256(rekindle.script(net).save_to_buffer()).hexdigest())\n"
    )
    digests = {
        subprocess.run([sys.executable, "-c", text, count], check=True, capture_output=True).stdout for count in "14"
    }
    assert len(digests) == 1


def test_extra_files():
    data = archive(rekindle.script(nn.ReLU()), _extra_files={"a.txt": "täxt", "folder/b": b"\x00\xff"})
    extra = {"a.txt": "", "folder/b": ""}
    torch.jit.load(io.BytesIO(data), _extra_files=extra)
    assert extra == {"a.txt": "täxt".encode(), "folder/b": b"\x00\xff"}


def test_places_survive():
    class Wrong(nn.Module):
        def forward(self, x, y):
            # ä: a comment in another alphabet
            return x + y  # here

    theirs = in_torch(archive(rekindle.script(Wrong())))
    with pytest.raises(RuntimeError) as caught:
        theirs(torch.ones(2), torch.ones(3))
    line = Wrong.forward.__code__.co_firstlineno + 2
    assert f'File "{__file__}", line {line}, in forward' in str(caught.value)
    assert "return x + y  # here\n                   ~~~~~ <--- HERE" in str(caught.value)
    assert f"# {__file__}:{line}:19" in str(theirs.graph)


def versions():
    def plain(x):
        return x + 1

    def divided(x):
        return x / 2

    def full(n: int):
        return torch.full([n], 1.0)

    def spaced(n: int):
        return torch.linspace(0, 1, n), torch.logspace(0, 1, n)

    def smooth(x):
        return torch.nn.functional.gelu(x)

    def forked(x):
        return torch.jit.wait(torch.jit.fork(divided, x))

    return [plain, divided, full, spaced, smooth, forked]


@pytest.mark.parametrize("function", versions(), ids=lambda function: function.__name__)
def test_versions_are_those_that_torch_writes(function):
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(function), buffer)
    theirs, ours = members(buffer.getvalue()), members(archive(rekindle.script(function)))
    names = ("version", ".data/version")
    assert {name: ours.get(name) for name in names} == {name: theirs.get(name) for name in names}


def test_a_model_split_over_devices_keeps_them():
    class Split(nn.Module):
        def __init__(self):
            super().__init__()
            self.here = nn.Parameter(torch.ones(2))
            self.nowhere = nn.Parameter(torch.ones(3, device="meta"))

        def forward(self):
            return self.here

    theirs = in_torch(archive(rekindle.script(Split())))
    assert (theirs.here.device.type, theirs.nowhere.device.type) == ("cpu", "meta")


# ------------------------------------------------------------------------------------------------ what cannot be saved


class Ignoring(nn.Module):
    @torch.jit.ignore
    def python(self, x):
        return x

    def forward(self, x):
        return self.python(x)


def refusal(program):
    with pytest.raises(SaveError) as caught:
        archive(program)
    return str(caught.value)


def test_calls_of_python():
    line = Ignoring.forward.__code__.co_firstlineno + 1
    assert refusal(rekindle.script(Ignoring())) == (
        "'tests.archive.test_save.Ignoring' cannot be saved: the program calls the Python function 'python', "
        "which cannot be written as source\n"
        f'  File "{__file__}", line {line}\n'
        "        def forward(self, x):\n"
        "            return self.python(x)\n"
        "                   ^^^^^^^^^^^\n"
        "Hint: let it be compiled: it is marked with @ignore, or a module that it belongs to is"
    )


def test_nothing_is_written_where_saving_fails(tmp_path):
    path = tmp_path / "model.pt"
    path.write_bytes(b"before")
    with pytest.raises(SaveError):
        rekindle.save(rekindle.script(Ignoring()), path)
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["model.pt"]


def test_what_was_not_compiled():
    assert refusal(nn.ReLU()) == (
        "only compiled modules and functions can be saved, not a ReLU\nHint: compile it first: rekindle.script(module)"
    )
    assert refusal(3) == "only compiled modules and functions can be saved, not a int"


class Links(nn.Module):
    links: List[List[int]]

    def __init__(self):
        super().__init__()
        self.links = []

    def forward(self):
        return len(self.links)


def test_values_that_hold_themselves():
    module = rekindle.script(Links())
    module.links.append(module.links)
    assert refusal(module) == "links[0]: the value contains itself, which archives do not support"


def test_values_that_archives_cannot_hold():
    module = rekindle.script(Links())
    module.links.append([1, 2**70])
    assert refusal(module) == "links[0][1]: the integer 1180591620717411303424 has more than 64 bits"
    module.links[0] = [object()]
    assert refusal(module) == (
        "links[0][0]: archives cannot hold an object\n"
        "Hint: leave it out of the module, or recreate it from something that can be saved"
    )


@pytest.mark.filterwarnings("ignore:Sparse CSC tensor support is in beta state")
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage")
def test_layouts_that_archives_cannot_hold():
    module = rekindle.script(nn.Linear(2, 2))
    module.weight = nn.Parameter(torch.eye(2).to_sparse_coo())
    archive(module)
    module.weight = nn.Parameter(torch.eye(2).to_sparse_csc())
    assert refusal(module) == (
        "weight: archives cannot hold a tensor of layout torch.sparse_csc\nHint: make it a dense one: tensor.to_dense()"
    )
    module.weight = nn.Parameter(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]))
    assert refusal(module) == (
        "weight: archives cannot hold a nested tensor\nHint: make it a dense one: tensor.to_padded_tensor(0.0)"
    )


def test_a_folder_that_is_not_there(tmp_path):
    path = str(tmp_path / "nowhere" / "model.pt")
    with pytest.raises(FileNotFoundError) as caught:
        rekindle.save(rekindle.script(nn.Linear(1, 1)), path)
    assert caught.value.filename == path


class Chooses(nn.Module):
    def forward(self) -> Any:
        return "training" if self.training else {}


def test_a_value_of_any_type_that_branches_make():
    module = Chooses()
    archive = rekindle.script(module).save_to_buffer()
    for load in (rekindle.load, torch.jit.load):
        loaded = load(io.BytesIO(archive))
        assert loaded() == "training"
        assert loaded.eval()() == {}


class SetsOnly(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 1

    @torch.jit.export
    def __setstate__(self, state: tuple[int, bool]):
        self.count = state[0] + 100
        self.training = state[1]

    def forward(self) -> int:
        return self.count


class GetsOnly(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 1

    @torch.jit.export
    def __getstate__(self) -> int:
        return self.count + 100

    def forward(self) -> int:
        return self.count


@pytest.mark.parametrize(("cls", "has", "lacks"), [(SetsOnly, "set", "get"), (GetsOnly, "get", "set")])
def test_one_of_the_two_methods_of_a_state_is_not_enough(cls, has, lacks):
    with pytest.raises(SaveError) as caught:
        rekindle.script(cls()).save_to_buffer()
    assert str(caught.value) == (
        f"'{cls.__name__}' has a method __{has}state__ and no __{lacks}state__\nHint: define __{lacks}state__ as well"
    )


class CountsInItsStateDict(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.count = 3

    def get_extra_state(self):
        return {"count": self.count}

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}count"] = torch.tensor(self.count)

    def forward(self, x):
        return x * self.weight * self.count


def test_overrides_of_state_dict_that_archives_lose_are_reported():
    module = rekindle.script(nn.Sequential(CountsInItsStateDict()))
    with pytest.warns(UserWarning, match="the archive does not keep") as caught:
        archive = module.save_to_buffer()
    (warning,) = caught
    assert str(warning.message) == (
        "the archive does not keep _save_to_state_dict, get_extra_state of the class 'CountsInItsStateDict': "
        "state_dict() of what is loaded from it holds parameters and buffers alone. Methods that are marked with "
        "@export are kept"
    )
    assert list(rekindle.load(archive).state_dict()) == ["0.weight"]


def test_overrides_of_pytorchs_own_classes_are_not_reported(recwarn):
    module = rekindle.script(nn.Sequential(nn.BatchNorm1d(2)))
    module.load_state_dict(module.state_dict())
    module.save_to_buffer()
    assert not recwarn.list


class Settings:
    """An object that Python code reads, with a method that no program can have."""

    def __init__(self, width: int):
        self.width = width

    def is_wide(self) -> bool:
        return self.width > 10

    def names_a_class(self) -> bool:
        return issubclass(self.width, int)


class HoldsSettings(nn.Module):
    def __init__(self):
        super().__init__()
        self.settings = Settings(20)

    @torch.jit.ignore
    def ask(self) -> bool:
        return self.settings.names_a_class()

    def forward(self, x: int) -> int:
        return x + self.settings.width if self.settings.is_wide() else x


def test_methods_that_do_not_compile_and_are_not_called_are_left_out():
    archive = rekindle.script(HoldsSettings()).save_to_buffer()
    loaded = rekindle.load(archive)
    assert loaded(1) == torch.jit.load(io.BytesIO(archive))(1) == 21
    assert loaded.settings.width == 20
    assert not hasattr(loaded.settings, "names_a_class")


def two_digits(x: float) -> str:
    return f"{x:.2f}"


def percent(x: float) -> str:
    return "%.1f" % x


def rounded(x: float) -> float:
    return round(x, 1)


def plain(x: float, n: int) -> str:
    return f"{n}, {x}" + "%s %d" % (n, n)


def squared(w: torch.Tensor) -> torch.Tensor:
    return (w * w).sum()


@pytest.mark.parametrize("program", [two_digits, percent, rounded], ids=lambda each: each.__name__)
def test_warning_of_formats_that_torch_jit_reads_otherwise(program) -> None:
    with pytest.warns(ArchiveWarning) as caught:
        content = rekindle.script(program).save_to_buffer()
    (warning,) = caught
    assert warning.filename == __file__
    (problem,) = warning.message.problems
    assert "TorchScript's" in problem
    assert f'File "{__file__}", line {program.__code__.co_firstlineno + 1}' in problem
    assert rekindle.load(content)(2.25) == program(2.25)
    try:
        theirs = torch.jit.load(io.BytesIO(content))(2.25)
    except RuntimeError:
        theirs = None
    assert theirs != program(2.25)


def test_warning_of_derivatives() -> None:
    with pytest.warns(ArchiveWarning, match=r"torch\.jit\.load rejects 'autodiff::"):
        content = rekindle.grad(squared).save_to_buffer()
    with pytest.raises(RuntimeError, match="Unknown builtin op: autodiff::"):
        torch.jit.load(io.BytesIO(content))
    assert torch.equal(rekindle.load(content)(torch.ones(2)), torch.full((2,), 2.0))


def test_no_warning_of_what_torch_jit_reads() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ArchiveWarning)
        content = rekindle.script(plain).save_to_buffer()
    assert torch.jit.load(io.BytesIO(content))(2.25, 3) == plain(2.25, 3)


def test_the_truth_of_an_item_in_torch():
    def is_all(x: torch.Tensor) -> bool:
        assert x.item() or not x.item()
        return True if x.item() else False

    function = rekindle.script(is_all)
    stored = io.BytesIO()
    rekindle.save(function, stored)
    loaded = [function, *(load(io.BytesIO(stored.getvalue())) for load in (rekindle.load, torch.jit.load))]
    for given in (True, False, 2, 0, 0.5, 0.0, -0.0, float("nan"), 2.0**-1070, 1j, 0j):
        x = torch.tensor(given, dtype=torch.float64 if isinstance(given, float) else None)
        assert [each(x) for each in loaded] == [bool(given)] * 3


@pytest.mark.parametrize(
    "source",
    [
        "".join(f"    if n == {i}:\n        return x * {i}\n    x = x + 1\n" for i in range(300)),
        "    if n < 0:\n        x = -x\n" + "".join(f"    elif n == {i}:\n        x = x * {i}\n" for i in range(300)),
    ],
    ids=["early returns", "elif"],
)
def test_hundreds_of_branches(source: str) -> None:
    """In archives, each branch is a block within the block of the one before."""
    function = rekindle.CompilationUnit(f"def f(x: Tensor, n: int):\n{source}    return x\n").f
    stored = io.BytesIO()
    rekindle.save(function, stored)
    x = torch.ones(2)
    for load in (rekindle.load, torch.jit.load):
        loaded = load(io.BytesIO(stored.getvalue()))
        for n in (-1, 0, 250, 500):
            assert torch.equal(loaded(x, n), function(x, n))
