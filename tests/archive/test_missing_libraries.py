"""Programs whose libraries are not installed: what does not need them can be seen and run, and calls say what is
missing."""

import copy
from typing import List, Tuple

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.archive.pickles.torchbind_state import MissingTorchbindObject
from rekindle.errors import MissingLibraryError
from tests.archive.archives import members_of, with_members, written_by_torch


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))

    def forward(self, x: Tensor) -> Tensor:
        return torch.sigmoid(x)

    @torch.jit.export
    def fine(self, x: Tensor) -> Tensor:
        return x * self.weight


def net_that_returns(expression, *statements):
    """The archive of a ``Net`` whose ``forward`` returns this."""
    archive = written_by_torch(Net())
    (name,) = (name for name in members_of(archive) if name.endswith("test_missing_libraries.py"))
    text = members_of(archive)[name].decode()
    new = "\n    ".join([*statements, f"return {expression}"])
    text = text.replace("return torch.sigmoid(x)", new)
    return with_members({**members_of(archive), name: text.encode(), f"{name}.debug_pkl": None})


def test_the_rest_of_the_program_runs():
    module = rekindle.load(net_that_returns("ops.torchvision.nms(x, x, 0.5)"))
    assert module.fine(torch.ones(2)).tolist() == [1, 1]
    assert "Tensor = torchvision::nms(%x.1, %x.1, %" in str(module.graph)
    assert "return ops.torchvision.nms(x, x, 0.5)" in module.code
    assert list(module.state_dict()) == ["weight"]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (
            "torchvision.nms",
            (
                "The operator 'torchvision::nms' is not there: the package 'torchvision' brings it.\n"
                "Hint: Install 'torchvision' and import it, then call this again."
            ),
        ),
        (
            "torch_scatter.segment_sum_csr",
            (
                "The operator 'torch_scatter::segment_sum_csr' is not there: the package 'torch-scatter' brings it.\n"
                "Hint: Install 'torch-scatter' and import it, then call this again."
            ),
        ),
        (
            "unheard_of.f",
            (
                "The operator 'unheard_of::f' is not there: no library that is imported brings 'unheard_of'.\n"
                "Hint: Import the library that registers 'unheard_of', then call this again."
            ),
        ),
    ],
)
def test_calls_say_what_is_missing(kind, message):
    module = rekindle.load(net_that_returns(f"ops.{kind}(x)"))
    with pytest.raises(MissingLibraryError) as caught:
        module(torch.ones(2))
    assert str(caught.value) == message


def test_saved_again_the_calls_are_as_they_were():
    archive = net_that_returns("torch.add(a, b)", "a, b = ops.unheard_of.two(x, 3, eps=0.5, training=True)")
    module = rekindle.load(archive)
    again = rekindle.load(module.save_to_buffer())
    for text in (module.code, again.code):
        assert "a, b = ops.unheard_of.two(x, 3, eps=0.5, training=True)" in text


def test_a_library_that_comes_later_is_found():
    module = rekindle.load(net_that_returns("ops.rekindle_late.scale(x, by=3.)"))
    assert "rekindle_late::scale" in str(module.graph)  # it is compiled now
    with torch.library._scoped_library("rekindle_late", "DEF") as library:
        library.define("scale(Tensor x, int plus=1, *, float by=2.0) -> Tensor")
        library.impl("scale", lambda x, plus=1, *, by=2.0: x * by + plus, "CompositeExplicitAutograd")
        assert module(torch.ones(2)).tolist() == [4, 4]


def net_with_an_object():
    """The archive of a ``Net`` that holds an object of a class of a library, with a tuple for its state."""
    archive = written_by_torch(Holder())
    members = members_of(archive)
    (name,) = (name for name in members if name.endswith("test_missing_libraries.py"))
    text = (
        members[name]
        .decode()
        .replace(
            "kept : __torch__.tests.archive.test_missing_libraries.Kept",
            "kept : __torch__.torch.classes.torchaudio.Kept",
        )
    )
    pickle = members["data.pkl"].replace(
        b"c__torch__.tests.archive.test_missing_libraries\nKept\n", b"c__torch__.torch.classes.torchaudio\nKept\n"
    )
    assert pickle != members["data.pkl"]
    return with_members({**members, name: text.encode(), f"{name}.debug_pkl": None, "data.pkl": pickle})


class Kept:
    def __init__(self, n: int):
        self.n = n

    def __getstate__(self) -> Tuple[int, str, List[int]]:
        return self.n, "state", []

    def __setstate__(self, state: Tuple[int, str, List[int]]):
        self.n = state[0]

    def size(self) -> int:
        return self.n


class Holder(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = Kept(3)

    def forward(self, x: Tensor) -> Tensor:
        return x + 1

    @torch.jit.export
    def size(self) -> int:
        return self.kept.size()


def test_objects_of_missing_classes_stand_where_they_stood():
    module = rekindle.load(net_with_an_object())
    assert module(torch.ones(1)).item() == 2
    assert isinstance(module.kept, MissingTorchbindObject)
    assert repr(module.kept) == "<object of __torch__.torch.classes.torchaudio.Kept, which is not installed>"
    assert copy.deepcopy(module).kept is module.kept
    with pytest.raises(MissingLibraryError) as caught:
        module.kept.size()
    assert str(caught.value) == (
        "The class 'torch.classes.torchaudio.Kept' is not there: the package 'torchaudio' brings it.\n"
        "Hint: Install 'torchaudio' and import it, then call this again."
    )


def test_they_are_kept_when_the_program_is_saved_again():
    module = rekindle.load(net_with_an_object())
    again = rekindle.load(module.save_to_buffer())
    assert again(torch.ones(1)).item() == 2
    for kept in (module.kept, again.kept):
        assert kept.qualified_name == "__torch__.torch.classes.torchaudio.Kept"
        assert kept.state == (3, "state", [])
        assert kept.state_type.annotation == "Tuple[int, str, List[int]]"


def test_compiled_calls_of_their_methods_say_what_is_missing():
    module = rekindle.load(net_with_an_object())
    with pytest.raises(MissingLibraryError, match="the package 'torchaudio' brings it"):
        module.size()


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("annotate(List[Tensor], ops.unheard_of.f(x))[0]", "Tensor[] = unheard_of::f("),
        ("torch.mul(x, annotate(int, ops.unheard_of.f(x)))", "int = unheard_of::f("),
        ("self.fine(ops.unheard_of.f(x))", "Tensor = unheard_of::f("),
    ],
)
def test_the_place_of_a_call_tells_the_type_of_its_result(expression, shown):
    module = rekindle.load(net_that_returns(expression))
    assert shown in str(module.graph)
    assert str(rekindle.load(module.save_to_buffer()).graph.find_nodes("unheard_of::f")[0].output.type) in shown
