"""Code that knows nothing of this package uses it under torch.jit's names, and everything is as before afterwards."""

from __future__ import annotations

import copy
import importlib
import io
import itertools
import json
import re
import threading
import types
import unittest.mock
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import rekindle
from rekindle.api.drop_in.torch_jit_shims import SHIMS

# A program as people write it: names taken at import, decorators at import.
PROGRAM = """
import torch
from torch import jit
from torch.jit import Final, script


@script
def scaled(x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
    return x * factor


@torch.jit.script
class Pair:
    def __init__(self, first: torch.Tensor, second: torch.Tensor) -> None:
        self.first = first
        self.second = second

    def total(self) -> torch.Tensor:
        return self.first + self.second


class Net(torch.nn.Module):
    width: Final[int]

    def __init__(self) -> None:
        super().__init__()
        self.width = 3
        self.linear = torch.nn.Linear(2, 3)
        self.names = torch.jit.Attribute([], list[str])

    @torch.jit.export
    def doubled(self, x: torch.Tensor) -> torch.Tensor:
        return scaled(x)

    @torch.jit.ignore
    def described(self, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @jit.unused
    def never(self, x: torch.Tensor) -> torch.Tensor:
        return sorted(x, key=lambda item: item)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if torch.jit.is_scripting():
            future: torch.jit.Future[torch.Tensor] = torch.jit.fork(scaled, self.linear(x))
            return self.described(torch.jit.wait(future)) + self.width
        return self.described(scaled(self.linear(x))) + self.width
"""


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    names = {module: dict(vars(module)) for module in (torch.jit, torch.jit._script, torch.jit._async)}
    yield
    assert not rekindle.is_installed()
    for module, before in names.items():
        assert type(module) is types.ModuleType
        assert vars(module) | before == vars(module)
        assert {*vars(module)} - {*before} <= {"__warningregistry__"}


def test_a_program_that_knows_nothing_of_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "program_that_knows_nothing.py").write_text(PROGRAM, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with rekindle.installed() as usage:
        names = importlib.import_module("program_that_knows_nothing")
        scripted = torch.jit.script(names.Net())
        assert isinstance(scripted, torch.jit.ScriptModule)
        assert isinstance(names.scaled, torch.jit.ScriptFunction)
    assert isinstance(scripted, rekindle.ScriptModule)
    assert isinstance(names.scaled, rekindle.Function)
    assert usage.programs == {("function", "scaled"): 1, ("class", "Pair"): 1, ("module", "Net"): 1}
    assert (usage.count(), usage.count("class")) == (3, 1)
    assert repr(usage) == "<Usage: class 1, function 1, module 1>"

    x = torch.randn(4, 2)
    assert torch.equal(scripted(x), scripted.linear(x) * 2.0 + 3)
    assert torch.equal(scripted.doubled(x), x * 2.0)
    assert torch.equal(names.Pair(x, x).total(), x + x)
    assert torch.jit.script is not SHIMS["script"]


@pytest.mark.parametrize("name", sorted(SHIMS))
def test_every_name_that_is_taken_is_one_of_torch_jits(name: str) -> None:
    original = getattr(torch.jit, name)
    with rekindle.installed():
        assert getattr(torch.jit, name) is SHIMS[name]
    assert getattr(torch.jit, name) is original


# Public names of torch.jit that stay what they are, with the reason.
NOT_TAKEN = {
    "annotate": "means the same to either compiler",
    "enable_onednn_fusion": "a switch of torch.jit's fuser",
    "onednn_fusion_enabled": "a switch of torch.jit's fuser",
    "strict_fusion": "a switch of torch.jit's fuser",
}


def test_the_other_public_names_stay_for_a_reason() -> None:
    assert {*torch.jit.__all__} - {*SHIMS} == {*NOT_TAKEN}


def test_functions_that_are_compiled_if_traced_keep_their_loops() -> None:
    """torchvision marks them with the private name."""
    with rekindle.installed():
        for mark in (torch.jit.script_if_tracing, torch.jit._script_if_tracing):

            @mark
            def positive(x: torch.Tensor) -> torch.Tensor:
                if bool(x.sum() > 0):
                    return x
                return -x

            traced = torch.jit.trace(lambda x: positive(x) + 1, torch.ones(2))
            assert torch.equal(traced(torch.ones(2)), torch.full((2,), 2.0))
            assert torch.equal(traced(-torch.ones(3)), torch.full((3,), 2.0))


def test_freezing_goes_through() -> None:
    with rekindle.installed():
        compiled = torch.jit.script(torch.nn.Linear(2, 2).eval())
        frozen = torch.jit.freeze(compiled)
        torch.jit.run_frozen_optimizations(frozen)
        optimized = torch.jit.optimize_for_inference(compiled)
    for module in (frozen, optimized):
        assert isinstance(module, rekindle.ScriptModule)
        assert list(module.parameters()) == []


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_torch_jit_compiled_is_frozen_by_nobody() -> None:
    theirs = torch.jit.script(torch.nn.ReLU().eval())
    told = "'freeze': torch.jit compiled the module, not rekindle: it is returned as it is"
    with rekindle.installed(), pytest.warns(UserWarning, match=f"^{told}$"):
        assert torch.jit.freeze(theirs) is theirs
    told = told.replace("freeze", "optimize_for_inference")
    with rekindle.installed(), pytest.warns(UserWarning, match=f"^{told}$"):
        assert torch.jit.optimize_for_inference(theirs) is theirs


# ----------------------------------------------------------------------------------------------------- in and out again


def test_install_and_uninstall() -> None:
    original = torch.jit.script
    rekindle.uninstall()  # without an install there is nothing to undo
    rekindle.install()
    rekindle.install()
    assert torch.jit.script is SHIMS["script"]
    rekindle.uninstall()
    assert torch.jit.script is original


def test_nested() -> None:
    original = torch.jit.script
    with rekindle.installed() as outer:
        with rekindle.installed() as inner:
            torch.jit.script(torch.nn.ReLU())
        assert torch.jit.script is not original
        torch.jit.script(torch.nn.Tanh())
    assert torch.jit.script is original
    assert (outer.count(), inner.count()) == (2, 1)


def test_within_an_install() -> None:
    rekindle.install()
    with rekindle.installed():
        rekindle.uninstall()
        assert rekindle.is_installed()
    assert not rekindle.is_installed()

    rekindle.install()
    with rekindle.installed():
        pass
    assert rekindle.is_installed()
    rekindle.uninstall()


def test_an_error_on_the_way() -> None:
    original = torch.jit.script
    with pytest.raises(ZeroDivisionError), rekindle.installed():
        1 / 0
    assert torch.jit.script is original


def test_threads_that_overlap() -> None:
    started, leave = threading.Event(), threading.Event()
    usages: list[Any] = []

    def other() -> None:
        with rekindle.installed() as usage:
            usages.append(usage)
            started.set()
            leave.wait(60)

    thread = threading.Thread(target=other)
    with rekindle.installed():
        thread.start()
        assert started.wait(60)
    assert rekindle.is_installed()  # the other thread is still within
    torch.jit.script(torch.nn.ReLU())
    leave.set()
    thread.join(60)
    assert not rekindle.is_installed()
    assert usages[0].programs == {("module", "ReLU"): 1}


# ------------------------------------------------------------------------------------------------ who was there before


def test_names_that_were_taken_before_are_kept() -> None:
    script = torch.jit.script

    class Inner(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.relu(x)

    class Outer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()
            self.act = torch.nn.functional.gelu

        @torch.jit.export
        def other(self, x: torch.Tensor) -> torch.Tensor:
            return self.act(x)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.other(self.inner(x))

    with rekindle.installed() as usage:
        made = script(Outer())
        # It is torch.jit's, works, and counts as a compiled module.
        assert isinstance(made, torch.jit.ScriptModule)
        assert torch.jit.script(made) is made
        assert made(torch.ones(2)).shape == (2,)
    assert usage.count() == 0
    assert not isinstance(made, rekindle.ScriptModule)


class Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)
        self.act = torch.nn.functional.relu

    @torch.jit.export
    def extra(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(self.linear(x))


def test_objects_of_classes_of_compiled_modules_are_counted() -> None:
    with rekindle.installed() as usage:

        class Doubled(torch.jit.ScriptModule):
            @torch.jit.script_method
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return x * 2

        assert torch.equal(Doubled()(torch.ones(2)), torch.full((2,), 2.0))
        assert torch.equal(copy.deepcopy(Doubled())(torch.ones(2)), torch.full((2,), 2.0))
    assert usage.programs == {("module", "Doubled"): 2}


def test_the_trace_that_was_taken_before_stays_torch_jits() -> None:
    trace = torch.jit.trace
    x, module = torch.ones(1, 2), Scaled()
    with rekindle.installed() as usage:
        scripted = torch.jit.script(torch.nn.Linear(2, 2))
        traced = trace(module, x)
        assert isinstance(traced, torch.jit.ScriptModule)
        assert not isinstance(traced, rekindle.ScriptModule)
        assert torch.equal(traced(x), module(x))
        assert torch.equal(traced.extra(x), x + 1)
        mixed = trace(torch.nn.Sequential(module, scripted), x)
        assert torch.equal(mixed(x), scripted(module(x)))
    assert usage.count() == 1


def test_traces() -> None:
    def summed(x: torch.Tensor) -> torch.Tensor:
        return total(x, 2)

    with rekindle.installed() as usage:

        @torch.jit.script_if_tracing
        def total(x: torch.Tensor, n: int) -> torch.Tensor:
            for i in range(n):
                x = x + i
            return x

        x, module = torch.ones(1, 2), Scaled()
        traced = torch.jit.trace(module, x)
        assert isinstance(traced, torch.jit.ScriptModule)
        both = torch.jit.trace_module(module, {"forward": x, "extra": x})
        function = torch.jit.trace(summed, (x,))
        assert isinstance(function, torch.jit.ScriptFunction)
        assert torch.equal(torch.jit.script(torch.nn.Sequential(traced))(x), module(x))
    assert torch.equal(traced(x), module(x))
    assert torch.equal(both.extra(x), x + 1)
    assert torch.equal(function(x), x + 1)
    assert usage.programs == {
        ("module", "Scaled"): 2,
        ("function", "test_traces.<locals>.summed"): 1,
        ("module", "Sequential"): 1,
    }


def test_archives(tmp_path: Path) -> None:
    module, x, path = Scaled(), torch.ones(1, 2), tmp_path / "scaled.pt"
    torch.jit.save(torch.jit.script(module), path, _extra_files={"notes.txt": "kept"})
    with rekindle.installed() as usage:
        files = {"notes.txt": b""}
        loaded = torch.jit.load(path, "cpu", files, _restore_shapes=True)
        assert isinstance(loaded, torch.jit.ScriptModule)
        assert torch.equal(torch.jit.script(torch.nn.Sequential(loaded))(x), module(x))
        torch.jit.save(loaded, path)
        with path.open("rb") as file:
            again = torch.jit.load(file)
    assert files == {"notes.txt": b"kept"}
    assert isinstance(loaded, rekindle.ScriptModule)
    assert torch.equal(again.extra(x), x + 1)
    assert torch.equal(torch.jit.load(path)(x), module(x))
    assert usage.programs == {("archive", "scaled.pt"): 1, ("module", "Sequential"): 1, ("archive", "Scaled"): 1}


def test_warnings_of_traces_have_torch_jits_name() -> None:
    def clipped(x: torch.Tensor) -> torch.Tensor:
        return x.clamp(max=1.0) if bool(x.sum() > 3) else x

    with rekindle.installed(), pytest.warns(torch.jit.TracerWarning):
        torch.jit.trace(clipped, torch.ones(2))


def test_what_torch_jit_compiled_cannot_become_a_part_of_our_programs() -> None:
    traced = torch.jit.trace(torch.nn.Linear(2, 2), torch.ones(1, 2))
    with rekindle.installed(), pytest.raises(RuntimeError) as caught:
        torch.jit.script(torch.nn.Sequential(traced))
    assert str(caught.value) == (
        "the module was compiled by torch.jit, which does not keep what it was made from\n"
        "Hint: compile the Python module instead"
    )


# ---------------------------------------------------------------------------------------------------------- other tools


def test_patches_by_others_count() -> None:
    def other(obj: Any) -> Any:
        return obj

    with rekindle.installed():
        with unittest.mock.patch("torch.jit.script", other):
            assert torch.jit.script is other
        assert torch.jit.script is SHIMS["script"]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch.jit, "script", other)
            assert torch.jit.script is other
        assert torch.jit.script is SHIMS["script"]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch.jit, "fork", other)
            assert torch.jit.fork is other
    with unittest.mock.patch("torch.jit.script", other):
        with rekindle.installed():
            assert torch.jit.script is SHIMS["script"]
        assert torch.jit.script is other


def test_modules_that_lack_a_name_lack_it_still() -> None:
    with rekindle.installed():
        assert not hasattr(torch.jit._async, "script")
        with pytest.raises(AttributeError) as caught:
            torch.jit._async.script
    assert str(caught.value) == "module 'torch.jit._async' has no attribute 'script'"


def test_names_within_the_package_of_torch_jit() -> None:
    with rekindle.installed():
        from torch.jit._script import RecursiveScriptModule, ScriptModule, script

        assert script is SHIMS["script"]
        assert RecursiveScriptModule is ScriptModule is SHIMS["ScriptModule"]


# ------------------------------------------------------------------------------------------------------------ the forms


def test_parameters_that_torch_jit_has() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    with rekindle.installed():
        assert torch.equal(torch.jit.script(f, None, 0, None)(torch.ones(1)), torch.full((1,), 2.0))
        with pytest.warns(UserWarning, match="^example_inputs are not looked at; annotate the parameters instead$"):
            torch.jit.script(f, example_inputs=[(torch.ones(1),)])
        with pytest.raises(RuntimeError) as caught:
            torch.jit.script(f, _rcb=lambda name: None)
    assert str(caught.value) == (
        "a resolution callback (_rcb) is not supported: names are looked up where Python would\nHint: leave _rcb out"
    )


def test_compiling_what_is_compiled_counts_once() -> None:
    with rekindle.installed() as usage:
        made = torch.jit.script(torch.nn.ReLU())
        assert torch.jit.script(made) is made
    assert usage.count() == 1


def test_errors_are_caught_as_before() -> None:
    def wrong(x: torch.Tensor) -> torch.Tensor:
        return undefined(x)  # type: ignore[name-defined] # noqa: F821

    def raises(x: torch.Tensor) -> torch.Tensor:
        raise ValueError("no")

    with rekindle.installed():
        with pytest.raises(RuntimeError):
            torch.jit.script(wrong)
        with pytest.raises(torch.jit.Error, match=r"^no$"):
            torch.jit.script(raises)(torch.ones(1))


def test_the_exporter_to_onnx_sees_what_was_there_before() -> None:
    """It passes graphs to C++, which takes PyTorch's own."""
    exporter: dict[str, Any] = {"__name__": "torch.onnx.utils", "torch": torch}
    others: dict[str, Any] = {"__name__": "some.exporter", "torch": torch}
    before = torch.jit._get_trace_graph
    with rekindle.installed():
        for namespace in (exporter, others):
            exec("found = torch.jit._get_trace_graph, torch.jit.trace", namespace)
    assert exporter["found"] == (before, torch.jit.trace)
    assert others["found"][0] is not before
    assert others["found"][1] is not torch.jit.trace


RELEASES: dict[str, list[str]] = json.loads(
    Path(__file__).with_name("torch_jit_names.json").read_text(encoding="utf-8")
)
"""The public names of ``torch.jit``, modules left out, of each release of PyTorch."""


def test_every_public_name_is_documented() -> None:
    """The page says for each name of each release whether it is replaced."""
    page = (Path(__file__).parents[2] / "docs" / "drop_in.md").read_text(encoding="utf-8")
    taken, kept = ({*re.findall(r"`(\w+)`", row)} for row in _names_of_tables(page))
    public = {name for name in dir(torch.jit) if not name.startswith("_")}
    public = {name for name in public if not isinstance(getattr(torch.jit, name), types.ModuleType)}
    assert taken | kept == public.union(*RELEASES.values())
    assert taken == {name for name in SHIMS if not name.startswith("_")}
    assert not taken & kept
    installed = ".".join(torch.__version__.split(".")[:2])
    assert sorted(public) == RELEASES.get(installed, sorted(public))


def _names_of_tables(page: str) -> Iterator[str]:
    """The first columns of the two tables of names."""
    for title in ("| name | refers to |", "| name | why it is not replaced |"):
        rows = itertools.takewhile(lambda line: line.startswith("|"), page.partition(title)[2].splitlines()[1:])
        yield " ".join(row.split("|")[1] for row in rows)


def test_names_of_operators_and_what_ran_last() -> None:
    with rekindle.installed():
        net = torch.jit.script(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh()))
        assert torch.jit.export_opnames(net) == ["aten::linear", "aten::tanh"]
        with torch.jit.optimized_execution(False):
            net(torch.ones(2))
        assert torch.jit.last_executed_optimized_graph() == net.graph


def test_units_see_the_names_of_their_callers() -> None:
    def unit(frames: int) -> Any:
        factor = 2
        return torch.jit.CompilationUnit("def f(x: int) -> int:\n    return x * factor\n", _frames_up=frames)

    factor = 3
    with rekindle.installed():
        assert (unit(0).f(5), unit(1).f(5)) == (10, 15)
        other = torch.jit.CompilationUnit()
        other.define("def g(x: int) -> int:\n    return x * factor\n")
        assert other.g(5) == 15
        with pytest.raises(rekindle.RekindleError, match="a resolution callback"):
            other.define("def h(x: int) -> int:\n    return x\n", rcb=lambda name: None)


def test_tensors_of_one_element_are_numbers() -> None:
    """As in torch.jit, where nothing is lost: it would cut a float off, and lose a gradient."""

    def scaled(x: torch.Tensor, n: int, factor: float, sizes: list[int], flag: bool) -> tuple[torch.Tensor, int]:
        return x * factor if flag else x, n + sizes[0]

    numbers = (torch.tensor(3), torch.tensor([0.5]), [torch.tensor(2)], torch.tensor(True))
    stock = torch.jit.script(scaled)
    with rekindle.installed():
        ours = torch.jit.script(scaled)
    x = torch.ones(2)
    assert ours(x, *numbers)[1] == stock(x, *numbers)[1] == 5
    assert torch.equal(ours(x, *numbers)[0], stock(x, *numbers)[0])
    grad = torch.tensor(0.5, requires_grad=True)
    with torch.no_grad():
        assert torch.equal(ours(x, 1, grad, [2], True)[0], x / 2)
    refused = {
        "the Tensor requires grad, and no gradient flows through a float; declare a Tensor, or pass .item() if no "
        "gradient is wanted": (1, grad, [2], True),
        "an int does not hold what this Tensor may hold; convert it, or declare a Tensor": (
            *(torch.tensor(3.7), 0.5, [2], True),
        ),
    }
    for hint, args in refused.items():
        with pytest.raises(TypeError) as caught:
            ours(x, *args)
        assert str(caught.value).endswith(f"Hint: {hint}")


def filtered(x: torch.Tensor, gain: float, times: int) -> torch.Tensor:
    """``gain`` is documented as a float or a Tensor, as in the filters of torchaudio."""
    return x * torch.as_tensor(gain, dtype=x.dtype) * times


def designed(x: torch.Tensor, frequency: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
    return filtered(x, torch.cos(frequency), times)


def test_functions_of_a_program_pass_tensors_for_numbers() -> None:
    """As from Python: the callee gets the number, and a gradient is not lost."""
    stock = torch.jit.script(designed)
    with rekindle.installed():
        ours = torch.jit.script(designed)
    x, frequency, times = torch.ones(2), torch.tensor(0.5), torch.tensor(3)
    expected = designed(x, frequency, times)
    for _ in range(3):
        assert torch.allclose(ours(x, frequency, times), expected)
    assert torch.allclose(stock(x, frequency, times), expected)
    loaded = torch.jit.load(io.BytesIO(ours.save_to_buffer()))
    assert torch.allclose(loaded(x, frequency, times), expected)
    with pytest.raises(RuntimeError, match="a tensor that requires grad cannot stand for a number"):
        ours(x, frequency.clone().requires_grad_(), times)
    with pytest.raises(RuntimeError, match=r"a tensor of dtype torch\.float32 cannot stand for an int"):
        ours(x, frequency, torch.tensor(3.5))


def test_functions_of_a_program_pass_no_tensors_for_numbers_without_the_drop_in() -> None:
    def halved(x: torch.Tensor) -> torch.Tensor:
        return filtered(x, x.mean() / 2, 1)

    with pytest.raises(rekindle.errors.SchemaError, match="argument 'gain': expected float, got Tensor"):
        rekindle.script(halved)


@torch.jit._overload  # type: ignore[attr-defined]
def kind_of(x: int) -> str: ...


@torch.jit._overload  # type: ignore[attr-defined]
def kind_of(x: torch.Tensor) -> str: ...  # noqa: F811


def kind_of(x):  # type: ignore[no-untyped-def]  # noqa: F811
    return "int" if isinstance(x, int) else "Tensor"


def test_overloads_tell_tensors_from_numbers() -> None:
    with rekindle.installed():
        ours = torch.jit.script(kind_of)
    assert ours(3) == "int"
    assert ours(torch.tensor(3)) == "Tensor"


def test_tensors_are_no_numbers_without_the_drop_in() -> None:
    def more(n: int) -> int:
        return n + 1

    with pytest.raises(TypeError, match="a Tensor is not converted to an int"):
        rekindle.script(more)(torch.tensor(3))


def test_a_name_that_is_read_often() -> None:
    """Python specializes bytecode that runs often: 3.14 reads attributes of modules without asking their class."""

    def read() -> Any:
        return torch.jit.script

    original = torch.jit.script
    for _ in range(3):
        assert {read() for _ in range(200)} == {original}
        with rekindle.installed():
            assert len({read() for _ in range(200)} | {original}) == 2
        assert {read() for _ in range(200)} == {original}


def test_other_names_of_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    with rekindle.installed():
        with pytest.raises(AttributeError, match=r"^module 'torch\.jit' has no attribute 'no_such_name'$"):
            torch.jit.no_such_name
        monkeypatch.setattr(torch.jit, "__getattr__", lambda name: f"own {name}", raising=False)
        assert torch.jit.no_such_name == "own no_such_name"
        assert torch.jit.__name__ == "torch.jit"
