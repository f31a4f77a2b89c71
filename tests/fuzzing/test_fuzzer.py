"""The fuzzer itself: it sees wrong answers, crashes and hangs, and shrinks what fails."""

from __future__ import annotations

import ast
import json
import os
import signal
import time
from collections import deque
from pathlib import Path
from typing import Any

import pytest
import torch

import rekindle
from rekindle.codegen.fusion import FuseGraph
from rekindle.ir.operators.registry import REGISTRY
from tests.fuzzing import batch, judge, workers
from tests.fuzzing.comparison import difference
from tests.fuzzing.conversions import (
    COMPLEX_POWER,
    DECLARED,
    KEYS_CHANGED,
    NAME,
    NEGATIVE_POWER,
    NO_RESULT,
    NOT_DECLARED,
    NUMBER_GIVEN,
    OTHER_ELEMENTS,
    TENSOR_GIVEN,
    Conversions,
    converting,
)
from tests.fuzzing.findings import Finding, replay
from tests.fuzzing.generating.programs import generate
from tests.fuzzing.judge import Judge, Verdict, compare, observations
from tests.fuzzing.known import ROWS, ROWS_WRITTEN, UNUSED, WRITTEN
from tests.fuzzing.program import HEAD, Program
from tests.fuzzing.results import PROGRAMS, check_shares
from tests.fuzzing.shrinking import shrink
from tests.fuzzing.witness import FAILURES, WitnessError, is_undefined

ADDS = Program(
    HEAD
    + """
def f(x, n: int):
    total = 3
    if n > 1:
        for i in range(n):
            total += i * 2
        x = x + 1
    return x, [n, total + n]
SUBJECT = f
CALLS = [lambda: (torch.ones(2), 0), lambda: (torch.ones(2, 3, requires_grad=True), 3)]
NO_GRAD = ()
WAYS = ('unoptimized', 'optimized')
"""
)


def test_passes_what_is_right():
    verdict = Judge().verdict(ADDS)
    assert (verdict.status, verdict.values, verdict.calls) == ("passed", 5, 5), verdict


def test_detects_a_wrong_operator(monkeypatch):
    operator = REGISTRY.find("aten::add.int")
    monkeypatch.setattr(operator, "operation", lambda a, b: a + b + (a == 9))
    verdict = Judge().verdict(ADDS)
    assert (verdict.status, verdict.failure, verdict.kind) == ("finding", "wrong answer", "int value"), verdict
    assert verdict.detail == "result[1][1] is 13, not 12"

    def fails(source: str) -> bool:
        return Judge().verdict(Program(source)).signature == verdict.signature

    small = shrink(ADDS.source, fails)
    assert fails(small)
    assert "total" in small
    assert "if n > 1" not in small
    assert "torch.ones" not in small


@pytest.mark.parametrize(
    ("actual", "expected", "kind"),
    [
        (1, 1.0, "int instead of float"),
        (True, 1, "bool instead of int"),
        (0.0, -0.0, "sign of zero"),
        (float("nan"), float("nan"), None),
        ([1], (1,), "list instead of tuple"),
        ([2, 3], torch.Size([2, 3]), "list instead of Size"),
        (torch.tensor(1), torch.tensor(1.0), "Tensor dtype"),
        (torch.ones(2), torch.ones(2, 1), "Tensor shape"),
        (torch.ones(1), torch.ones(1, requires_grad=True), "Tensor requires_grad"),
        (torch.tensor([1.0, float("nan")]), torch.tensor([1.0, float("nan")]), None),
        (torch.tensor(-0.0), torch.tensor(0.0), "Tensor value"),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, "str value"),
        (1.5, torch.tensor(1.5), "float instead of Tensor"),
        ("tensor(1., grad_fn=<SelectBackward0>)", "tensor(1., grad_fn=<UnbindBackward0>)", None),
        ("tensor(1., grad_fn=<SelectBackward0>)", "tensor(2., grad_fn=<UnbindBackward0>)", "str value"),
        ("tensor(1.)", "tensor(1., grad_fn=<UnbindBackward0>)", "str value"),
        ({"grad_fn=<A>": 1}, {"grad_fn=<B>": 2}, "int value"),
    ],
)
def test_compares_types_exactly(actual, expected, kind):
    found = difference(actual, expected, exact=True)
    assert (None if found is None else found.kind) == kind


@pytest.mark.parametrize("make", [float, torch.tensor], ids=["number", "Tensor"])
def test_the_sign_of_a_zero_counts_among_exact_values(make):
    assert difference(make(-0.0), make(0.0), exact=True) is not None
    assert difference(make(-0.0), make(0.0), exact=False) is None


def _run(monkeypatch, way: Any, count: int = 3) -> batch.Report:
    """Judge some programs where the second of them is executed by ``way``."""

    def second(loaded, expected, names):
        return way() if loaded.module.__name__.startswith("fuzzed_5_1_") else Verdict("passed")

    monkeypatch.setattr(judge, "_WAYS", dict.fromkeys(judge._WAYS, second))
    return batch.run(5, 0, count, 1, quiet=True)


def test_a_crash_is_a_finding(monkeypatch):
    report = _run(monkeypatch, lambda: os.kill(os.getpid(), signal.SIGSEGV))
    assert report.statuses == {"passed": 2, "finding": 1}
    assert list(report.failures) == [("crash", "crash (SIGSEGV)", "unoptimized")]
    assert [each.number for each in report.findings.values()] == [1]


def test_a_hang_is_a_finding(monkeypatch):
    def hang() -> Verdict:
        workers.limit(0.3)
        while True:
            pass

    report = _run(monkeypatch, hang)
    assert report.statuses == {"passed": 2, "finding": 1}
    assert list(report.failures) == [("hang", "hang", "unoptimized")]


def test_a_hang_that_every_operator_ends_is_documented(monkeypatch):
    def hang() -> Verdict:
        if FuseGraph.run is not fused:  # executed with every operator
            return Verdict("passed")
        workers.limit(0.3)
        while True:
            pass

    fused = FuseGraph.run
    report = _run(monkeypatch, hang)
    assert report.statuses == {"passed": 2, "known": 1}


def test_a_hang_of_the_oracle_leaves_the_finding(monkeypatch):
    def hang(*arguments: Any) -> str:
        workers.limit(0.3)
        while True:
            pass

    monkeypatch.setattr(judge, "row_of", hang)
    report = _run(monkeypatch, lambda: Verdict("finding", "wrong answer", "int value"))
    assert report.statuses == {"passed": 2, "finding": 1}
    assert list(report.failures) == [("wrong answer", "int value", "unoptimized")]


def test_waiting_for_nothing_is_a_hang(monkeypatch):
    def wait() -> Verdict:
        workers.limit(10, 0.3)
        time.sleep(60)
        return Verdict("passed")

    assert list(_run(monkeypatch, wait).failures) == [("hang", "hang", "unoptimized")]


def test_an_exception_of_a_worker_is_seen(monkeypatch, capfd):
    monkeypatch.setattr(batch, "constructs", lambda source: 1 / 0)
    report = batch.run(5, 0, 1, 1, quiet=True)
    assert report.statuses == {"finding": 1}
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_programs_are_the_same_every_time():
    first = [generate(7, number).source for number in range(20)]
    assert first == [generate(7, number).source for number in range(20)]
    assert len(set(first)) == 20
    assert all(ast.parse(each) for each in first)


def test_most_programs_run_in_python():
    verdicts = deque(_eager(generate(11, number)) for number in range(60))
    assert "invalid" not in [each.status for each in verdicts], [each.detail for each in verdicts]
    assert sum(each.values for each in verdicts) > 0.5 * sum(each.calls for each in verdicts)


def _eager(program: Program) -> Verdict:
    source = program.source.partition("WAYS =")[0] + "WAYS = ()\n"
    return Judge().verdict(Program(source))


def test_a_finding_is_a_file_that_can_be_replayed(tmp_path):
    verdict = Verdict("finding", "wrong answer", "int value", "optimized", 1, 'it is """ and \\ here')
    finding = Finding(3, 17, ADDS.source, verdict)
    path = tmp_path / finding.file_name
    path.write_text(finding.text(), encoding="utf-8")
    assert path.name.startswith("wrong_answer_int_value_")
    assert Judge().verdict(replay(path)).status == "passed"


def test_known_differences_are_told_by_a_row():
    page = Path("docs/differences.md").read_text(encoding="utf-8")
    assert [row for row in ROWS if f"| {row}" not in page] == []


def test_an_error_of_an_unused_operator_is_known():
    source = (
        HEAD
        + """
def f(x, n: int):
    x + torch.ones(17)
    return n
SUBJECT = f
CALLS = [lambda: (torch.ones(2), 1)]
WAYS = ('unoptimized', 'optimized')
"""
    )
    verdict = Judge().verdict(Program(source))
    assert (verdict.status, verdict.kind) == ("known", UNUSED)
    assert Judge().verdict(Program(source.replace("x + torch.ones(17)", "1 // 0"))).status == "passed"


_WRITES_ROWS = """
def f(x):
    x = x * 1
    for row in x:
        row *= 2
    return x
SUBJECT = f
CALLS = [lambda: (torch.ones(2, 3, requires_grad=True),)]
WAYS = ('unoptimized', 'optimized')
"""


def test_a_write_to_the_rows_of_a_loop_is_known():
    verdict = Judge().verdict(Program(HEAD + _WRITES_ROWS))
    assert (verdict.status, verdict.kind) == ("known", ROWS_WRITTEN)
    index = _WRITES_ROWS.replace("for row in x:", "for row in x.unbind():")
    assert Judge().verdict(Program(HEAD + index)).status == "passed"


def test_a_write_to_the_rows_of_a_loop_is_known_beside_an_unused_operator():
    source = _WRITES_ROWS.replace("return x", "k = torch.ones(2, dtype=torch.long)\n    k[:1, ] += 0.5\n    return x")
    calls = "[lambda: (torch.ones(2, 3, requires_grad=True),)]"
    verdict = Judge().verdict(Program(HEAD + source.replace(calls, calls.replace("]", f", {calls[1:]}"))))
    assert (verdict.status, verdict.kind) == ("known", UNUSED)


def test_a_write_to_the_rows_of_a_loop_is_known_after_a_conversion():
    source = _WRITES_ROWS.replace("return x", "n: int = x.sum().item()\n    return n")
    source = source.replace("[lambda: ", "[lambda: (torch.full((2, 3), 0.2),), lambda: ")
    verdict = Judge().verdict(Program(HEAD + source))
    assert (verdict.status, verdict.kind) == ("known", NOT_DECLARED)
    without_row = source.replace("for row in x:", "for row in x.unbind():")
    assert Judge().verdict(Program(HEAD + without_row)).status == "known"


_UNDEFINED = {
    "jvp": ("y.neg().logsumexp(0)", "torch.zeros(0)"),
    "jvp of a constant": ("0 / torch.sigmoid(y).round().sum().abs()", "torch.tensor([math.nan])"),
    "jvp of a layer": ("F.layer_norm((y + 100).float(), y.shape[1:])", "torch.tensor([[1.5, 0], [1.0, 0.1]])"),
    "optimized with roots": ("torch.cat([y.sqrt(), y.sqrt()[1:]])", "torch.tensor([0.0, -0.1]).requires_grad_()"),
    "optimized": (
        "torch.cat([(y.sort()[0] * y.sort(-1)[0])[:1], y.sort()[0] * y.sort(-1)[0]])",
        "torch.tensor([[1.0, 1.5], [4.5, math.inf]]).requires_grad_()",
    ),
}


@pytest.mark.parametrize("way", list(_UNDEFINED))
def test_derivatives_that_are_not_defined_are_unstable(way):
    result, argument = _UNDEFINED[way]
    subject = f"def f(y):\n    return {result}\nSUBJECT = f\nCALLS = [lambda: ({argument},)]\n"
    verdict = Judge().verdict(Program(f"{HEAD}{subject}WAYS = ({way.split()[0]!r},)\n"))
    assert (verdict.status, verdict.failure) == ("unstable", "")


def test_a_fault_of_a_witness_is_noticed():
    def faulty() -> Any:
        return torch.ones(2).no_such_attribute

    def without_derivative() -> Any:
        return torch.autograd.grad(torch.ones(()), torch.ones(()))

    FAILURES.clear()
    with pytest.raises(WitnessError, match="a witness fails: AttributeError: 'Tensor' object has no attribute"):
        is_undefined(torch.zeros(2), torch.ones(2), [faulty])
    assert FAILURES == {}
    assert not is_undefined(torch.zeros(2), torch.ones(2), [without_derivative, without_derivative])
    assert FAILURES == {"RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn": 2}


_DERIVATIVES = {"jvp": "wrong tangent", "grad": "wrong gradient", "vjp": "wrong cotangent"}


@pytest.mark.parametrize("way", list(_DERIVATIVES))
def test_detects_a_wrong_derivative(monkeypatch, way):
    name = {"grad": "value_and_grad"}.get(way, way)
    original = getattr(rekindle, name)

    def wrong(*options: Any) -> Any:
        function = original(*options)

        def call(*arguments: Any) -> Any:
            value, (first, *rest) = (lambda a, b: (a, b if isinstance(b, tuple) else (b,)))(*function(*arguments))
            changed = torch.cat([first.reshape(-1)[:-1], first.reshape(-1)[-1:] + 1]).view(first.shape)
            return value, changed if way == "jvp" else (changed, *rest)

        return call

    monkeypatch.setattr(rekindle, name, wrong)
    text = (
        "def f(x):\n    return (x.log() * x).sum()\nSUBJECT = f\nCALLS = [lambda: (torch.tensor([1.0, 2.0, 3.0]),)]\n"
    )
    verdict = Judge().verdict(Program(f"{HEAD}{text}WAYS = ({way!r},)\n"))
    assert (verdict.status, verdict.failure) == ("finding", _DERIVATIVES[way])


_CALLED = "def g(n: {}):\n    return n\ndef f(x):\n    top = {}\n    for v in x:\n        top = v\n    return g(top)"
KNOWN = {
    NOT_DECLARED: ("def f(x):\n    n: int = x.sum().item()\n    return n", "(torch.ones(2),)"),
    f"{NOT_DECLARED}, in a list": ("def f(x, k: List[int]):\n    k[0] += x.sum().item()", "(torch.ones(2), [1])"),
    NO_RESULT: ("def f(n: int) -> int:\n    m = None\n    if n > 1:\n        m = n\n    return m", "(1,)"),
    DECLARED: ("def f(n: float):\n    return n, [n]", "(1,)"),
    f"{DECLARED}, in a field": (
        "@dataclass\nclass P:\n    n: float\ndef f(n: int):\n    p = P(n)\n    p.n += n\n    return p.n",
        "(1,)",
    ),
    f"{DECLARED}, in a loop": (
        "def f(n: int):\n    t: float = 0\n    for t in range(n):\n        pass\n    return t",
        "(3,)",
    ),
    COMPLEX_POWER: ("def f(n: float):\n    return n ** 0.5", "(-2.0,)"),
    f"{COMPLEX_POWER}, caught": (
        "def f(n: float):\n    try:\n        pow(n, 0.5)\n    except ValueError as error:\n        return str(error)",
        "(-2.0,)",
    ),
    KEYS_CHANGED: (
        "def f(d: Dict[str, int]):\n    for k in d:\n        d.clear()\n        d['x'] = d['y'] = 2",
        "({'a': 1, 'b': 2},)",
    ),
    NEGATIVE_POWER: ("def f(n: int):\n    k = 2\n    k **= n\n    return k", "(-1,)"),
    TENSOR_GIVEN: (_CALLED.format("Union[int, float]", 0), "(torch.ones(2),)"),
    NUMBER_GIVEN: (_CALLED.format("Tensor", 0), "(torch.ones(0),)"),
    OTHER_ELEMENTS: ("def f(x):\n    v: List[float] = x.tolist()\n    return v", "(torch.tensor([1, 2]),)"),
    f"{OTHER_ELEMENTS}, in a row": ("def f(x):\n    return len(x.tolist())", "(torch.ones(2, 2),)"),
    f"{OTHER_ELEMENTS}, in a field": (
        "@dataclass\nclass P:\n    n: List[int]\ndef f(x):\n    return P(x.tolist()).n",
        "(torch.tensor([True]),)",
    ),
    WRITTEN: (
        "def f(x):\n    y = x.relu()\n    y.neg_()\n    return y",
        "(torch.ones(2, requires_grad=True),)",
    ),
}
"""Programs that show a row, and the arguments of a call."""


@pytest.mark.parametrize("row", KNOWN)
def test_a_documented_difference_is_known(row):
    text, arguments = KNOWN[row]
    rest = f"SUBJECT = f\nCALLS = [lambda: {arguments}]\nWAYS = ('unoptimized', 'optimized')\n"
    verdict = Judge().verdict(Program(f"{HEAD}\n{text}\n{rest}"))
    assert (verdict.status, verdict.kind) == ("known", row.partition(", in a ")[0].removesuffix(", caught")), verdict


def test_a_key_of_another_type_is_known():
    source = """
def f(x, k: Dict[int, int]):
    d = k
    d[x.sum().item()] = 1
    return d
SUBJECT = f
CALLS = [lambda: (torch.ones(2), {2: 0})]
WAYS = ('unoptimized',)
"""
    verdict = Judge().verdict(Program(HEAD + source))
    assert (verdict.status, verdict.kind) == ("known", NOT_DECLARED)


def test_two_documented_differences_in_one_program_are_known():
    source = (
        f"{HEAD}\n"
        """
def f(x, n: float):
    k: List[int] = []
    k += [x.sum().item()]
    w: int = n + x.max().item()
    return k, w
SUBJECT = f
CALLS = [lambda: (torch.ones(2), 1)]
WAYS = ('unoptimized',)
"""
    )
    assert Judge().verdict(Program(source)).status == "known"


_BESIDE = {
    "text": ("aten::upper", lambda text: text),
    "int": ("aten::add.int", lambda a, b: a + b + 1),
    "number": ("aten::mul.float", lambda a, b: a * b + 1),
}


@pytest.mark.parametrize("operator", _BESIDE)
def test_a_wrong_operator_beside_a_documented_difference_is_a_finding(monkeypatch, operator):
    text = """
def f(n: float, k: str, m: int, w: float):
    return n, k.upper(), m + m, w * w
SUBJECT = f
CALLS = [lambda: (1, 'a', 2, 0.5)]
WAYS = ('unoptimized',)
"""
    assert Judge().verdict(Program(f"{HEAD}\n{text}")).kind == DECLARED
    name, operation = _BESIDE[operator]
    monkeypatch.setattr(REGISTRY.find(name), "operation", operation)
    assert Judge().verdict(Program(f"{HEAD}\n{text}")).status == "finding"


@pytest.mark.filterwarnings("ignore")
def test_eager_python_without_its_conversions_does_what_it_did():
    for number in range(60):
        program = generate(11, number)
        conversions = Conversions(_Everything())
        rewritten = Program(converting(program.source), program.name, {NAME: conversions})
        with program.load() as loaded, rewritten.load() as other:
            conversions.module = vars(other.module)
            pairs = zip(observations(loaded.subject, loaded, ()), observations(other.subject, other, ()), strict=True)
            found = [compare(actual, expected, exact=True) for actual, expected in pairs]
        assert found == [None] * len(found), program.source
        assert conversions.active == {}


class _Everything(frozenset[int]):
    def __contains__(self, site: object) -> bool:
        return True


@pytest.mark.parametrize(
    "batch", json.loads(PROGRAMS.read_text(encoding="utf-8"))["batches"], ids=lambda b: str(b["seed"])
)
def test_shares_of_the_runs(batch):
    check_shares(batch)
    assert batch["statuses"].get("invalid", 0) <= 0.02 * batch["programs"]


def test_results_refuse_a_batch_beyond_the_bounds():
    batch = {"seed": 1, "programs": 1000, "rejected": 0.3, "native": 0.5}
    check_shares(batch)
    with pytest.raises(AssertionError, match=r"seed 1: 50.0% of the programs are rejected"):
        check_shares({**batch, "rejected": 0.5})
    with pytest.raises(AssertionError, match=r"seed 1: machine code runs in 10.0% of the others"):
        check_shares({**batch, "native": 0.1})
