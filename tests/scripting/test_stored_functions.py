"""Compiled functions on disk: what is read is what would be compiled, and nothing is read that would be compiled
differently."""

from __future__ import annotations

import enum
import importlib.util
import os
import re
import subprocess
import sys
import textwrap
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, NewType, TypeVar

import pytest
import torch
import torch.nn.functional as F

import rekindle
from rekindle.errors import CompileError
from rekindle.ir.text.printer import print_graph
from rekindle.runtime.strategies import graph_cache
from rekindle.scripting.callables import functions, stored_functions
from rekindle.scripting.callables.dependencies import (
    NotKept,
    annotation_text,
    describe,
    described_function,
    described_value,
)

Compiled = list[str]


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Compiled]:
    """The names of the functions that are compiled, with an empty cache."""
    names: Compiled = []
    compile_function = functions.compile_function

    def counting(record: Any, function: types.FunctionType, *arguments: Any, **keywords: Any) -> None:
        names.append(function.__name__)
        compile_function(record, function, *arguments, **keywords)

    monkeypatch.setenv("REKINDLE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(stored_functions, "are_passes_watched", lambda: False)
    monkeypatch.setattr(functions, "compile_function", counting)
    forget()
    yield names
    forget()


def forget() -> None:
    """Forget what the functions of PyTorch were compiled to, as in a new process."""
    for module in (F, torch.functional, torch.nn._reduction, torch._jit_internal, torch.overrides):
        for value in vars(module).values():
            if isinstance(value, types.FunctionType):
                vars(value).pop("__rekindle_records__", None)


def module_of(path: Path, text: str) -> types.ModuleType:
    """A module of a file with this text."""
    text = "from __future__ import annotations\nimport math\nimport torch\n" + textwrap.dedent(text)
    if not path.exists() or path.read_text() != text:  # the time of a change counts
        path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def text_of(function: types.FunctionType) -> str:
    """What a function was compiled to: schema and graph with places."""
    (record,) = functions.records_of(function)
    return re.sub(r"___torch_mangle_\d+\.", "", f"{record.schema}\n{print_graph(record.graph)}")


def compilable() -> list[types.FunctionType]:
    """The functions of ``torch.nn.functional`` that compile and have one record."""
    found = []
    for name, value in sorted(vars(F).items()):
        if isinstance(value, types.FunctionType) and not name.startswith("__") and value.__module__ == F.__name__:
            try:
                records = functions.records_of(value)
                for record in records:
                    record.ensure_defined()
            except CompileError:
                continue
            if len(records) == 1:
                found.append(value)
    return found


def test_functions_of_torch(compiled: Compiled) -> None:
    every = compilable()
    expected = {function: text_of(function) for function in every}
    assert not any(record.is_recursive for function in every for record in functions.records_of(function))
    first = len(compiled)
    compiled.clear()
    forget()
    again = {function: text_of(function) for function in every}
    read = [function for function in every if function.__name__ not in compiled]
    assert [again[function] for function in read] == [expected[function] for function in read]
    assert len(read) > 85
    assert len(compiled) < first / 8


def test_a_function_is_read_with_what_it_calls(compiled: Compiled) -> None:
    x = torch.randn(3, 4)
    expected = rekindle.script(F.hinge_embedding_loss)(x, x.sign())
    assert "hinge_embedding_loss" in compiled
    compiled.clear()
    forget()
    assert torch.equal(rekindle.script(F.hinge_embedding_loss)(x, x.sign()), expected)
    assert compiled == []


CALLS = """
    FACTOR = 2.0
    BACKEND = torch.relu

    def inner(x: torch.Tensor) -> torch.Tensor:
        return x + 1.0

    def outer(x: torch.Tensor) -> torch.Tensor:
        return BACKEND(inner(x) * FACTOR) + math.pi
"""


def twice(path: Path, change: Callable[[types.ModuleType], object], text: str = CALLS) -> tuple[Any, Any]:
    """The results of eager and of the compiled function, after the module was compiled once and then changed."""
    x = torch.randn(3)
    made = module_of(path, text)
    rekindle.script(made.outer)(x)
    made = module_of(path, text)
    change(made)
    return made.outer(x), rekindle.script(made.outer)(x)


CHANGES: dict[str, Callable[[types.ModuleType], object]] = {
    "a constant": lambda module: setattr(module, "FACTOR", 3.0),
    "the class of a constant": lambda module: setattr(module, "FACTOR", 2),
    "an operator": lambda module: setattr(module, "BACKEND", torch.tanh),
    "a function": lambda module: setattr(module, "inner", module_of_other(module).inner),
    "the module of a name": lambda module: setattr(module, "math", types.SimpleNamespace(pi=1.0)),
    "a builtin by a global": lambda module: setattr(module, "len", lambda x: 7),
}


def module_of_other(module: types.ModuleType) -> types.ModuleType:
    path = Path(str(module.__file__))
    return module_of(path.with_name("other.py"), "def inner(x: torch.Tensor) -> torch.Tensor:\n    return x - 1.0\n")


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_a_name_means_decides(
    change: Callable[[types.ModuleType], object], compiled: Compiled, tmp_path: Path
) -> None:
    text = CALLS.replace("+ math.pi", "+ math.pi + len(x.size())")
    eager, found = twice(tmp_path / "changed.py", change, text)
    torch.testing.assert_close(found, eager)
    assert compiled.count("outer") == 2


def test_nothing_changed(compiled: Compiled, tmp_path: Path) -> None:
    eager, found = twice(tmp_path / "same.py", lambda module: None)
    torch.testing.assert_close(found, eager)
    assert compiled == ["outer", "inner"]


def test_another_callee_of_the_same_signature(compiled: Compiled, tmp_path: Path) -> None:
    """The loop that the caller has depends on whether the callee writes to the list."""
    text = """
        def inner(values: list[int]) -> int:
            {body}

        def outer(values: list[int]) -> int:
            total = 0
            for value in values:
                total += inner(values) + value
            return total
    """
    path = tmp_path / "callee.py"
    for body in ("return len(values)", "return values.pop() if len(values) > 3 else 0"):
        made = module_of(path, text.format(body=body))
        assert rekindle.script(made.outer)([1, 2, 3, 4, 5]) == made.outer([1, 2, 3, 4, 5])


REFUSED = """
    import enum
    import typing

    class Color(enum.Enum):
        RED = 1

    class Pair(typing.NamedTuple):
        a: torch.Tensor
        b: torch.Tensor

    def _scaled(factor: float):
        def scaled(x: torch.Tensor) -> torch.Tensor:
            return x * factor
        return scaled

    closure = _scaled(2.0)

    def of_tuple(x: torch.Tensor) -> torch.Tensor:
        return Pair(x, x).a

    def of_enum(x: torch.Tensor) -> torch.Tensor:
        return x if Color.RED == Color.RED else -x

    def of_closure(x: torch.Tensor) -> torch.Tensor:
        return closure(x)

    def within(x: torch.Tensor) -> torch.Tensor:
        import math as m
        return x * m.pi
"""


@pytest.mark.parametrize("name", ["of_tuple", "of_enum", "of_closure", "within", "closure"])
def test_what_only_one_process_has_is_not_kept(name: str, compiled: Compiled, tmp_path: Path) -> None:
    x = torch.randn(3)
    for _ in range(2):
        made = module_of(tmp_path / "refused.py", REFUSED)
        function = getattr(made, name)
        torch.testing.assert_close(rekindle.script(function)(x), function(x))
    assert compiled.count(function.__name__) == 2


def test_functions_with_the_same_code_and_other_variables(compiled: Compiled, tmp_path: Path) -> None:
    """The functions that PyTorch dispatches by a boolean differ in what they close over."""
    text = """
        import torch.nn.functional as F
        POOL = F.max_pool2d

        def outer(x: torch.Tensor) -> torch.Tensor:
            return POOL(F._max_pool2d(F._max_pool3d(x, 1), 1), 2)
    """
    x = torch.randn(2, 4, 4, 4)
    made = module_of(tmp_path / "pools.py", text)
    torch.testing.assert_close(rekindle.script(made.outer)(x), F.max_pool2d(x, 2))
    made = module_of(tmp_path / "pools.py", text)
    made.POOL = F.max_pool3d
    torch.testing.assert_close(rekindle.script(made.outer)(x), F.max_pool3d(x, 2))


def test_custom_exceptions_are_known(compiled: Compiled, tmp_path: Path) -> None:
    text = """
        class Refused(ValueError):
            pass

        def outer(x: torch.Tensor) -> torch.Tensor:
            if x.dim() == 1:
                raise Refused("one dimension")
            return x
    """
    for _ in range(2):
        made = module_of(tmp_path / "raising.py", text)
        stored_functions.EXCEPTION_CLASSES.pop("raising.Refused", None)
        with pytest.raises(made.Refused, match="one dimension"):
            rekindle.script(made.outer)(torch.randn(3))
    assert compiled == ["outer"]


def test_errors_show_the_source(compiled: Compiled, tmp_path: Path) -> None:
    text = """
        def outer(x: torch.Tensor) -> torch.Tensor:
            return x.view(7)
    """
    found = []
    for _ in range(2):
        made = module_of(tmp_path / "failing.py", text)
        with pytest.raises(RuntimeError) as caught:
            rekindle.script(made.outer)(torch.randn(3))
        found.append([frame.lineno for frame in caught.traceback][-1])
        assert "x.view(7)" in str(caught.traceback[-1].statement)
    assert compiled == ["outer"]
    assert found[0] == found[1]


def test_damaged_files_are_compiled_anew(compiled: Compiled, tmp_path: Path) -> None:
    made = module_of(tmp_path / "damaged.py", CALLS)
    rekindle.script(made.outer)
    for file in (tmp_path / "cache").iterdir():
        file.write_bytes(file.read_bytes()[:-3] + b"???")
    made = module_of(tmp_path / "damaged.py", CALLS)
    x = torch.randn(3)
    torch.testing.assert_close(rekindle.script(made.outer)(x), made.outer(x))
    assert compiled == ["outer", "inner"] * 2


PROCESS = """
import torch, torch.nn.functional as F, rekindle
from rekindle.scripting.callables import functions
compiled = []
compile_function = functions.compile_function
functions.compile_function = lambda record, function, *a, **k: (
    compiled.append(function.__name__), compile_function(record, function, *a, **k))
result = rekindle.script(F.soft_margin_loss)(torch.ones(3), torch.ones(3))
print(round(float(result), 5), compiled)
"""


def test_the_next_process_compiles_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "REKINDLE_CACHE_DIR": str(tmp_path / "cache"), "REKINDLE_VERIFY": "0"}
    run = [sys.executable, "-c", PROCESS]
    texts = [subprocess.run(run, env=environment, check=True, capture_output=True, text=True).stdout for _ in range(2)]
    assert texts[0].startswith("0.31326 ['soft_margin_loss', ")
    assert texts[1] == "0.31326 []\n"


OPERATOR = """
import os

import torch
import rekindle

schema, kernel = {
    "fresh": ("f(Tensor x) -> Tensor", lambda x: x + 1),
    "in place": ("f(Tensor(a!) x) -> Tensor(a!)", lambda x: x.add_(1)),
}[os.environ["OPERATOR"]]
library = torch.library.Library("changing", "DEF")
library.define(schema)
library.impl("f", kernel, "CompositeExplicitAutograd")


def twice(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    torch.ops.changing.f(y)
    return y + torch.ops.changing.f(y)


if __name__ == "__main__":
    print(rekindle.script(twice)(torch.zeros(())).item(), twice(torch.zeros(())).item())
"""


def test_a_library_changes_the_schema_of_its_operator(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(OPERATOR)
    environment = {**os.environ, "REKINDLE_CACHE_DIR": str(tmp_path / "cache"), "REKINDLE_VERIFY": "0"}
    found = []
    for operator in ("fresh", "fresh", "in place", "in place", "fresh"):
        run = [sys.executable, str(program)]
        environment["OPERATOR"] = operator
        found.append(subprocess.run(run, env=environment, check=True, capture_output=True, text=True).stdout)
    assert found == ["1.0 1.0\n", "1.0 1.0\n", "4.0 4.0\n", "4.0 4.0\n", "1.0 1.0\n"]


def test_watched_passes_see_every_function() -> None:
    assert graph_cache.are_passes_watched()  # as tests are, which verify graphs
    assert stored_functions.StoredFunction.of(F.relu, "relu", functions.records_of) is None


def of_constant(number: slice) -> types.FunctionType:
    """Return a function with a constant slice, in a tuple and in a function within it, as compiled by Python 3.14."""

    def outer(x):  # without annotations, which are code too since 3.14
        def inner():
            return x

        return inner

    consts = outer.__code__.co_consts
    [place] = [index for index, each in enumerate(consts) if isinstance(each, types.CodeType)]
    inner = consts[place].replace(co_consts=(*consts[place].co_consts, (number, 0)))
    return types.FunctionType(outer.__code__.replace(co_consts=(*consts[:place], inner, number)), globals())


def test_functions_with_constant_slices_are_described() -> None:
    assert described_function(of_constant(slice(1, None))) == described_function(of_constant(slice(1, None)))
    assert described_function(of_constant(slice(1, None))) != described_function(of_constant(slice(2, None)))
    assert described_function(of_constant(slice(1, None))) != described_function(of_constant(slice(1, None, 1)))


def two_of(source: str, old: str, new: str) -> tuple[Any, Any]:
    """What ``made`` is in a source, and in the source with ``new`` in place of ``old``."""
    found = []
    for text in (source, source.replace(old, new)):
        names: dict[str, Any] = {"__name__": "helper", "NamedTuple": NamedTuple, "NewType": NewType, "enum": enum}
        exec(textwrap.dedent(text), names)
        found.append(names["made"])
    assert source != source.replace(old, new)
    return found[0], found[1]


@pytest.mark.parametrize(
    ("source", "old", "new"),
    [
        ("class P(NamedTuple):\n    x: int\n    y: int\nmade = P(1, 2)", "x: int\n    y: int", "y: int\n    x: int"),
        ("class P(NamedTuple):\n    x: int\nmade = P(1)", "P", "Q"),
        ("class E(enum.Enum):\n    A = 1\n    def __repr__(self): return 'E'\nmade = E.A", "A = 1", "A = 5"),
        ("class E(enum.IntEnum):\n    A = 1\n    def __repr__(self): return 'E'\nmade = [E.A]", "A = 1", "A = 5"),
        ("made = {1: 2}", "1:", "'1':"),
        ("def made(x): return x * 2.5", "2.5", "9.5"),
    ],
)
def test_descriptions_of_different_values_differ(source: str, old: str, new: str) -> None:
    first, second = two_of(source, old, new)
    assert described_value(first) == described_value(two_of(source, old, new)[0])
    assert described_value(first) != described_value(second)


def test_descriptions_include_the_supertype_of_a_new_type() -> None:
    for source in (
        "made = NewType('N', int)",
        "made = list[NewType('N', int)]",
        "made = NewType('M', NewType('N', int))",
    ):
        first, second = two_of(source, "int", "float")
        assert repr(first) == repr(second)
        assert annotation_text(first) == annotation_text(two_of(source, "int", "float")[0])
        assert annotation_text(first) != annotation_text(second)
        if isinstance(first, NewType):
            assert describe(first) != describe(second)


def test_annotations_whose_text_hides_more_are_not_kept() -> None:
    with pytest.raises(NotKept, match="the annotation '~T'"):
        annotation_text(TypeVar("T", bound=int))
