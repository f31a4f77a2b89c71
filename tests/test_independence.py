"""The package never calls PyTorch's TorchScript. And the checks of that can fail."""

from __future__ import annotations

import ast
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import rekindle
from tests.oracle.corpus import Program, corpus, fresh
from tests.oracle.known_differences import WRONG_ANSWERS
from tests.support import torchscript_names
from tests.support.equality import assert_same
from tests.support.independence import PACKAGE, forbidden_torchscript
from tests.support.references import dotted_names, forbidden_references, programs_in_strings

pytestmark = pytest.mark.sets_traps

FILES = sorted(Path(PACKAGE).rglob("*.py"))


# -------------------------------------------------------------------------------------------------- reading the source


@pytest.mark.parametrize(
    "use",
    [
        "class X(torch.jit.ScriptModule): pass",
        "@torch.jit.fork\ndef f(): pass",
        "list(map(torch.jit.fork, []))",
        "torch.jit.annotate(int, 1)",
        "f = torch.jit.fork\nf(1)",
        "x = [torch.jit.fork]",
    ],
)
def test_a_name_known_by_identity_is_good_for_nothing_else(use: str) -> None:
    assert forbidden_references(f"import torch\n{use}")


@pytest.mark.parametrize(
    "use",
    [
        "id(torch.jit.annotate)",
        "isinstance(x, (int, torch.jit.Attribute))",
        "x = {torch.jit.Future: 1}",
        "x = [(torch.jit.is_tracing, False)]",
        "issubclass(x, torch.jit.ScriptModule)",
    ],
)
def test_a_name_may_be_known_by_identity(use: str) -> None:
    assert forbidden_references(f"import torch\n{use}") == []


ONE_MODULE = "program/torch_jit.py"
"""The only file that refers to ``torch.jit`` at all: it reads what is there, and the drop-in replaces classes by it."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_no_file_refers_to_torchscript(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    found = forbidden_references(source)
    if path.relative_to(PACKAGE).as_posix() == ONE_MODULE:
        lines = source.splitlines()
        assert [lines[line - 1].partition("  #")[0].strip() for line, _ in found] == ["torch.jit = _JIT"]
        return
    assert found == []
    named = {name for name in dotted_names(source) if f"{name}.".startswith(("torch.jit.", "torch._jit_internal."))}
    assert named == set()


RECORDER = "doctor/stock.py"
"""The file with a program for the user, who runs it with stock PyTorch to compare answers."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_no_string_is_a_program_that_calls_torchscript(path: Path) -> None:
    found = programs_in_strings(path.read_text(encoding="utf-8"))
    expected = [["torch.jit.load"]] if path.relative_to(PACKAGE).as_posix() == RECORDER else []
    assert list(found.values()) == expected


def test_the_recorder_is_written_and_never_run() -> None:
    code = list(ast.walk(ast.parse((Path(PACKAGE) / RECORDER).read_text(encoding="utf-8"))))
    reads = [
        node for node in code if isinstance(node, ast.Name) and node.id == "_SCRIPT" and isinstance(node.ctx, ast.Load)
    ]
    calls = [ast.unparse(node.func) for node in code if isinstance(node, ast.Call) and {*reads} & {*node.args}]
    assert (len(reads), calls) == (1, ["(folder / SCRIPT).write_text"])


def test_programs_in_strings_are_found() -> None:
    source = "TEXT = 'import torch\\ntorch.jit.script(f)'\nNAME = 'torch.jit.script'"
    assert programs_in_strings(source) == {"import torch": ["torch.jit.script"]}


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import torch\ntorch.jit.script(f)", "torch.jit.script"),
        ("import torch\ntorch._C._jit_pass_dce(g)", "torch._C._jit_pass_dce"),
        ("import torch\ng = torch._C.Graph()", "torch._C.Graph"),
        ("import torch\nt = torch._C.TensorType.get()", "torch._C.TensorType.get"),
        ("\nimport torch.jit", "torch.jit"),
        ("\nfrom torch import jit", "torch.jit"),
        ("\nfrom torch.jit import frontend", "torch.jit.frontend"),
        ("\nfrom torch.jit._script import script as s", "torch.jit._script.script"),
        ("\nfrom torch._C import _jit_pass_inline", "torch._C._jit_pass_inline"),
        ("import torch as t\nt.jit.trace(f, ())", "torch.jit.trace"),
        ("from torch import _C as c\nc.parse_ir('graph(): return ()')", "torch._C.parse_ir"),
        ("import torch; peer = torch\npeer.jit.load('x.pt')", "torch.jit.load"),
        ("import torch\ndef f(m):\n  return isinstance(m, torch.jit.CompilationUnit)", "torch.jit.CompilationUnit"),
        ("import torch\ngetattr(torch, 'jit').script(f)", "torch.jit.script"),
        ("import torch\nstate = torch._C._get_tracing_state()", "torch._C._get_tracing_state"),
        ("import importlib\nimportlib.import_module('torch.jit').script(f)", "torch.jit.script"),
    ],
)
def test_references_are_found_in_every_guise(source: str, name: str) -> None:
    assert [found for _, found in forbidden_references(source)] == [name]
    assert [line for line, _ in forbidden_references(source)] in ([2], [3])


@pytest.mark.parametrize(
    "source",
    [
        '"""torch.jit.script is what users wrote."""',
        "NAMES = {'torch.jit.annotate', 'torch._C._jit_pass_dce'}  # torch.jit.annotate",
        "import torch\nfrom torch._jit_internal import FunctionModifiers\nmark = torch._jit_internal.FunctionModifiers",
        "import torch\nnames = torch._C._dispatch_get_all_op_names()",
        "import torch\nschema = str(torch.ops.aten.add.int._schema)",
        "import torch\nBUILTINS = [(torch._C._get_tracing_state, 'aten::_get_tracing_state')]",
        "jit = object()\njit.script(f)",
        "def f(torch_like):\n  return torch_like.jit.script",
    ],
)
def test_what_is_allowed_is_not_reported(source: str) -> None:
    assert forbidden_references(source) == []


def test_the_names_that_are_closed_exist() -> None:
    """A name that PyTorch has no longer would be a trap that never springs."""
    closed = torchscript_names.FUNCTIONS | torchscript_names.CLASSES | torchscript_names.READABLE_CLASSES
    assert sorted(name for name in closed if not hasattr(torch._C, name)) == []


# ---------------------------------------------------------------------------------------------------- traps at run time


def in_package(source: str, **names: Any) -> Callable[..., Any]:
    """The function ``f`` of ``source``, compiled as if it were in a file of the package."""
    module: dict[str, Any] = {"torch": torch, **names}
    exec(compile(source, str(Path(rekindle.__file__).parent / "passes" / "imagined.py"), "exec"), module)
    return module["f"]


def message(line: int, what: str) -> str:
    return f"rekindle/passes/imagined.py:{line} calls {what}: the package does not use TorchScript"


@torch.jit.ignore
def times_two(x: torch.Tensor) -> torch.Tensor:
    return x * 2.0


CALLS = {
    "torch.jit.annotate(int, 1)": "torch.jit.annotate",
    "torch.jit.script(torch.nn.ReLU())": "torch.jit._script.script",
    # By the name at its home: Dynamo, once loaded, wraps `torch.jit.trace`, and the call is the wrapper's then.
    "torch.jit._trace.trace(torch.relu, torch.ones(1))": "torch.jit._trace.trace",
    "torch.jit._recursive.get_module_concrete_type(torch.nn.ReLU())": "torch.jit._recursive.get_module_concrete_type",
    "torch.jit.frontend.get_jit_def(torch.relu, 'relu')": "torch.jit.frontend.get_jit_def",
    "torch.jit._builtins._find_builtin(torch.relu)": "torch.jit._builtins._find_builtin",
    "torch.jit._state.disable()": "torch.jit._state.disable",
    "torch.jit.ScriptModule()": "torch.jit._script.",
    "torch.jit.optimized_execution(True).__enter__()": "torch.jit._fuser.optimized_execution",
    "list(map(torch.jit.annotate, [int], [1]))": "torch.jit.annotate",
    "torch._C._jit_set_profiling_mode(True)": "torch._C._jit_set_profiling_mode",
    "torch._C._jit_get_operation('aten::add')": "torch._C._jit_get_operation",
    "torch._C.parse_ir('graph(): return ()')": "torch._C.parse_ir",
    "torch._C.parse_schema('a::b() -> ()')": "torch._C.parse_schema",
    "torch._C.Graph()": "torch._C.Graph",
    "torch.jit.CompilationUnit()": "torch._C.CompilationUnit",
    "torch._C.ScriptModule('m')": "torch._C.ScriptModule",
    "torch._C.ScriptFunction()": "torch._C.ScriptFunction",
    "torch._C.ListType(None)": "torch._C.ListType",
    "torch._C.TensorType.get()": "torch._C.TensorType.get",
    "torch._C._jit_tree_views.SourceRangeFactory('x', None, 0, 0)": "torch._C.SourceRangeFactory",
}


@pytest.mark.parametrize(("call", "what"), CALLS.items(), ids=CALLS)
def test_torchscript_called_from_the_package_is_caught(call: str, what: str) -> None:
    f = in_package(f"def f():\n    return {call}")
    with pytest.raises(AssertionError) as caught, forbidden_torchscript():
        f()
    told, _, rest = str(caught.value).partition(what)
    assert told == "rekindle/passes/imagined.py:2 calls "
    assert rest.endswith(": the package does not use TorchScript")


@pytest.mark.parametrize(
    ("call", "operator"),
    [
        ("torch.ops.aten.add.int(1, 2)", "aten::add.int"),
        ("torch.ops.aten.neg(2)", "aten::neg.int"),
        ("torch.ops.aten.neg(2.0)", "aten::neg.float"),
        ("torch.ops.aten.len.str('abc')", "aten::len.str"),
        ("torch.ops.aten.add.int._op(1, 2)", "aten::add.int"),
        ("torch.ops.prim.min.int(1, 2)", "prim::min.int"),
        ("list(map(torch.ops.aten.add.int, [1], [2]))", "aten::add.int"),
    ],
)
def test_operators_outside_the_dispatcher_are_caught(call: str, operator: str) -> None:
    f = in_package(f"def f():\n    return {call}")
    with pytest.raises(AssertionError) as caught, forbidden_torchscript():
        f()
    assert str(caught.value) == message(2, f"the operator {operator}, which the dispatcher does not have")


def test_a_packet_by_its_naked_function_is_caught_where_any_overload_is_outside_the_dispatcher() -> None:
    f = in_package("def f(x):\n    return torch.ops.aten.neg._op(x)")
    with pytest.raises(AssertionError) as caught, forbidden_torchscript():
        f(torch.ones(1))
    assert str(caught.value) == message(2, "the operator aten::neg.Scalar, which the dispatcher does not have")


@pytest.mark.parametrize(
    "call",
    [
        "torch.ops.aten.add.Tensor(x, x)",
        "torch.ops.aten.add(x, x)",
        "torch.ops.aten.neg(x)",
        # PyTorch takes the numbers for tensors here: aten::add.Tensor runs.
        "torch.ops.aten.add(1, 2)",
        "torch.ops.aten.relu.default(x)",
        "torch.ops.aten.add.Tensor._op(x, x)",
        "torch.add(x, x)",
        "torch._C._VariableFunctions.add(x, x)",
        "str(torch.ops.aten.add.int._schema)",
        "[argument.name for argument in torch.ops.aten.add.int._schema.arguments]",
        "torch._C._dispatch_get_all_op_names()",
        "torch._C._get_schema('aten::add', 'int')",
        "torch._jit_internal.get_torchscript_modifier(marked)",
        "torch._jit_internal.is_ignored_fn(marked)",
        "marked._torchscript_modifier",
        # PyTorch calls into torch.jit here, and that is its own affair.
        "torch.nn.LSTM(2, 2)(x.expand(1, 2))",
        "torch.nn.functional.max_pool2d(x.expand(1, 4, 4), 2)",
    ],
)
def test_what_the_package_may_do_passes(call: str) -> None:
    f = in_package(f"def f(x):\n    return {call}", marked=times_two)
    with forbidden_torchscript():
        f(torch.ones(1))


def test_names_bound_before_are_caught() -> None:
    f = in_package(
        "def f():\n    return script(torch.nn.ReLU()), inline",
        script=torch.jit.script,
        inline=torch._C._jit_pass_inline,
    )
    with pytest.raises(AssertionError) as caught, forbidden_torchscript():
        f()
    assert str(caught.value).startswith("rekindle/passes/imagined.py:2 calls torch.jit._script.script")
    g = in_package("def f():\n    return parse('graph(): return ()')", parse=torch._C.parse_ir)
    with pytest.raises(AssertionError) as caught, forbidden_torchscript():
        g()
    assert str(caught.value) == message(2, "torch._C.parse_ir")


def test_methods_of_torchscript_objects_are_caught() -> None:
    graph = torch._C.Graph()
    f = in_package("def f(graph):\n    return graph.nodes()")
    with pytest.raises(AssertionError) as caught, forbidden_torchscript():
        f(graph)
    assert str(caught.value) == message(2, "torch._C.Graph.nodes")


def test_a_swallowed_error_is_raised_again_on_leaving() -> None:
    f = in_package("def f():\n    try:\n        torch._C.Graph()\n    except Exception:\n        pass")
    with pytest.raises(AssertionError) as caught, forbidden_torchscript():
        f()
    assert str(caught.value) == message(3, "torch._C.Graph")


def test_threads_are_watched() -> None:
    f = in_package("def f():\n    try:\n        torch.jit.annotate(int, 1)\n    except AssertionError:\n        pass")
    thread = threading.Thread(target=f)

    def run() -> None:
        with forbidden_torchscript():
            thread.start()
            thread.join()

    with pytest.raises(AssertionError) as caught:
        run()
    assert str(caught.value) == message(3, "torch.jit.annotate")


def test_tests_may_use_torchscript_meanwhile() -> None:
    def add_twice(x: torch.Tensor, y: int) -> torch.Tensor:
        return x + y + y

    with forbidden_torchscript():
        scripted = torch.jit.script(add_twice)
        assert torch.equal(scripted(torch.ones(2), 3), torch.full((2,), 7.0))
        assert "aten::add" in str(scripted.graph)
        assert torch.ops.aten.add.int(1, 2) == 3
        assert torch._C.Graph().str().startswith("graph(")


def test_everything_is_as_before_afterwards() -> None:
    constructor = vars(torch._C.Graph)["__init__"]
    with forbidden_torchscript():
        assert vars(torch._C.Graph)["__init__"] is not constructor
    assert vars(torch._C.Graph)["__init__"] is constructor
    f = in_package("def f():\n    return torch.jit.annotate(int, 1), torch.ops.aten.add.int(1, 2), torch._C.Graph()")
    assert f()[:2] == (1, 3)


# ------------------------------------------------------------------------------------------- the main suite's samples


@pytest.mark.parametrize("program", corpus()[::4], ids=lambda program: program.name)
def test_programs_compile_and_run_within_the_traps(program: Program) -> None:
    """Every fourth program of the corpus; all tests run so with ``pytest --independence``."""
    with forbidden_torchscript():
        compiled = rekindle.script(program.subject())
        answers = [compiled(*fresh(sample)) for sample in program.samples if not _raises(program, sample)]
    eager = program.subject()
    expected = [eager(*fresh(sample)) for sample in program.samples if not _raises(program, sample)]
    if program.name not in WRONG_ANSWERS:
        assert_same(answers, expected)


def _raises(program: Program, sample: tuple[Any, ...]) -> bool:
    """Whether eager raises on the sample; that both then raise the same is tested with the corpus."""
    try:
        program.subject()(*fresh(sample))
    except Exception:
        return True
    return False
