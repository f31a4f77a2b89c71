"""The verdict on a program: eager Python's observations beside those of each way of executing it."""

from __future__ import annotations

import contextlib
import io
import itertools
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

import torch

import rekindle
from rekindle.errors import ArgumentError, CompileError, InternalError
from rekindle.errors.archives import SaveError
from tests.fuzzing.comparison import Difference, difference, sharing, snapshot, tensors_in
from tests.fuzzing.conversions import NAME, Conversions, converting
from tests.fuzzing.known import Attempt, row_of
from tests.fuzzing.noise import Noise
from tests.fuzzing.program import Loaded, Program
from tests.fuzzing.transformed import TRANSFORMED, UNSTABLE
from tests.fuzzing.witness import gradients_of_call, gradients_of_call_by_forward, is_undefined, without_zeros

Stage = Callable[[str, "Verdict | None"], None]
"""Hears what is about to run, and the finding about which more is to be known."""


@dataclass(slots=True)
class Observation:
    """What there is to see of a call: a result or an error, the arguments afterwards, gradients, attributes."""

    result: Any = None
    error: str | None = None
    text: str = ""
    refused: bool = False
    internal: bool = False
    arguments: Any = ()
    gradients: Any = ()
    backward: str = ""
    shared: Any = ()
    state: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Verdict:
    """``status``: passed, rejected, finding, known, unstable or invalid. Of a finding, ``failure`` is the class and
    ``kind`` what differs without its values, ``way`` and ``call`` where."""

    status: str
    failure: str = ""
    kind: str = ""
    way: str = ""
    call: int = -1
    detail: str = ""
    values: int = 0
    """Calls that return a value in eager Python."""
    calls: int = 0
    native: bool = False
    """Whether machine code ran."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def signature(self) -> tuple[str, str, str]:
        """Equal for findings that are likely to have one cause."""
        return (self.failure, self.kind, "optimized" if self.way in _OPTIMIZED else self.way)


_OPTIMIZED: Final = ("optimized", "profiling")
_INTERNAL: Final = (AssertionError, KeyError, AttributeError, NotImplementedError, RecursionError, InternalError)
_PROMISED: Final = ("ZeroDivisionError", "IndexError", "KeyError", "ValueError", "UnboundLocalError", "OverflowError")
"""Errors whose text is Python's."""


def observe(subject: Any, arguments: tuple[Any, ...], names: tuple[str, ...]) -> Observation:
    """Call ``subject``; ``names`` are the attributes of a module to look at afterwards."""
    seen = Observation(arguments=arguments)
    torch.default_generator.manual_seed(0)  # torch.manual_seed also seeds devices that are not there
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            seen.result = subject(*arguments)
    except Exception as error:
        seen.error = type(error).__name__
        seen.text = str(error)
        seen.refused = isinstance(error, ArgumentError)
        seen.internal = isinstance(error, (InternalError, CompileError))
    seen.shared = sharing([seen.result, *arguments])
    _go_back(seen)
    seen.state = {name: snapshot(getattr(subject, name, "missing")) for name in names}
    seen.result, seen.arguments = snapshot(seen.result), snapshot(arguments)
    return seen


def _go_back(seen: Observation) -> None:
    roots = [each for each in tensors_in(seen.result) if each.requires_grad and each.grad_fn is not None]
    leaves = [each for each in tensors_in(list(seen.arguments)) if each.requires_grad]
    if not roots or not leaves:
        return
    try:
        sum((each * 0.5).abs().sum() if each.is_complex() else (each * 0.5).sum() for each in roots).backward()  # type: ignore[union-attr]
    except Exception as error:
        seen.backward = type(error).__name__
    seen.gradients = [each.grad for each in leaves]


def _normal(text: str) -> str:
    """The first line of a message, without names and numbers."""
    return re.sub(r"'[^']*'|-?\d+", "_", text.partition("\n")[0])[:80]


def compare(actual: Observation, expected: Observation, exact: bool) -> tuple[str, Difference] | None:
    """The class of failure, and what differs."""
    if expected.error is None and actual.error is not None:
        normal = _normal(actual.text)
        failure = "internal error" if actual.internal else "error instead"
        return failure, Difference(f"{actual.error}: {normal}", f"{actual.error}: {actual.text}")
    if expected.error is not None and actual.error is None:
        normal = _normal(expected.text)
        text = f"returns {_short(actual.result)}, but eager raises {expected.error}: {expected.text[:200]}"
        return "missing error", Difference(f"{expected.error}: {normal}", text)
    if actual.error != expected.error:
        text = f"raises {actual.error}: {actual.text[:300]}, not {expected.error}: {expected.text[:300]}"
        return "other error", Difference(f"{actual.error} instead of {expected.error}", text)
    if expected.error in _PROMISED and actual.text.partition("\n")[0] != expected.text.partition("\n")[0]:
        return "other text", Difference(str(expected.error), f"{actual.text[:300]!r}, not {expected.text[:300]!r}")
    for name, failure in _LOOKED_AT:
        is_exact = exact and name != "gradients"  # derivatives are summed up in another order
        found = difference(getattr(actual, name), getattr(expected, name), is_exact, name)
        if found is not None and expected.error is not None:
            text = f"{found.text}, after {actual.error}: {actual.text[:300]}"
            return f"{failure} after an error", Difference(found.kind, text)
        if found is not None:
            return failure, found
    return None


_LOOKED_AT: Final = (
    ("result", "wrong answer"),
    ("arguments", "wrong arguments"),
    ("state", "wrong state"),
    ("backward", "other error of backward"),
    ("gradients", "wrong gradient"),
    ("shared", "wrong sharing"),
)


def _short(value: Any) -> str:
    return " ".join(repr(value).split())[:200]


class Judge:
    """Judges programs one by one; ``stage`` hears what is about to run, for the sake of crashes."""

    def __init__(self, stage: Stage = lambda text, found: None) -> None:
        self._stage = stage

    def verdict(self, program: Program) -> Verdict:
        """What comes of a program."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self._verdict(program)

    def _verdict(self, program: Program) -> Verdict:
        self._stage("eager", None)
        try:
            with program.load() as loaded:
                names = _attributes(loaded.subject)
                expected = list(observations(loaded.subject, loaded, names))
        except Exception as error:
            return Verdict("invalid", detail=f"{type(error).__name__}: {error}")
        with program.load() as loaded:
            return self._executed(program, loaded, expected, names)

    def _executed(
        self, program: Program, loaded: Loaded, expected: list[Observation], names: tuple[str, ...]
    ) -> Verdict:
        if any(each.error == "MemoryError" for each in expected):
            return Verdict("invalid", detail="eager Python runs out of memory")
        values = sum(each.error is None for each in expected)
        total = Verdict("passed", values=values, calls=len(expected))
        for way in loaded.ways:
            self._stage(way, None)
            try:
                found = _WAYS[way](loaded, expected, names)
            except Exception as error:
                kind = f"{type(error).__name__}: {_normal(str(error))}"
                found = Verdict("finding", "internal error", kind, detail=f"{type(error).__name__}: {error}")
            total.native |= found.native
            found.way = way
            if found.status == UNSTABLE or (
                found.status == "finding" and way in _INEXACT and self._is_unstable(program, expected, names, found)
            ):
                total.status = UNSTABLE
                continue
            if found.status == "finding" and (row := self._known(program, found, way, names)):
                total.status, total.kind = "known", row
                continue
            if found.status != "passed":
                found.values, found.calls, found.way = values, len(expected), way
                found.native = total.native
                return found
        return total

    def _known(self, program: Program, found: Verdict, way: str, names: tuple[str, ...]) -> str:
        """The row of docs/differences.md that explains a finding; where there are several, the first."""
        self._stage("known", found)
        return row_of(found, lambda: _attempts(program, way, names))

    def _is_unstable(
        self, program: Program, expected: list[Observation], names: tuple[str, ...], found: Verdict
    ) -> bool:
        self._stage("noise", found)
        for seed in range(4):
            with program.load() as loaded, contextlib.suppress(Exception), Noise(seed):
                for number, seen in enumerate(observations(loaded.subject, loaded, names)):
                    if compare(seen, expected[number], exact=False) is not None:
                        return True
        return False


_INEXACT: Final = ("optimized", "profiling", "saved")
_AGAIN: Final = (0, 0, 1)
"""The calls that are repeated at the end: kernels are compiled in the third call of a version."""


def _attributes(subject: Any) -> tuple[str, ...]:
    if not isinstance(subject, torch.nn.Module):
        return ()
    own = [name for name in vars(subject) if not name.startswith("_") and name != "training"]
    return (*own, *(name for name, _ in subject.named_buffers(recurse=False)))


def _order(loaded: Loaded) -> list[int]:
    count = len(loaded.calls)
    return [*range(count), *(each for each in _AGAIN if each < count)]


@contextlib.contextmanager
def _attempts(program: Program, way: str, names: tuple[str, ...]) -> Iterator[Attempt]:
    """Compare one execution of ``program`` with several of eager Python."""
    with program.load() as loaded:
        loaded.keeps_results = True

        def attempt(conversions: Conversions | None) -> Verdict:
            eager = program
            if conversions is not None:
                eager = Program(converting(program.source), program.name, {NAME: conversions})
            with eager.load() as reference:
                if conversions is not None:
                    conversions.module = vars(reference.module)
                loaded.eager = reference.subject
                expected = list(observations(reference.subject, reference, names))
                try:
                    return _WAYS[way](loaded, expected, names)
                except Exception as error:
                    return Verdict("finding", "internal error", detail=f"{type(error).__name__}: {error}")

        yield attempt


def observations(subject: Any, loaded: Loaded, names: tuple[str, ...]) -> Iterator[Observation]:
    calls = loaded.calls
    for number in _order(loaded):
        mode = torch.no_grad() if number in loaded.without_gradients else contextlib.nullcontext()
        arguments = calls[number]()
        with mode:
            seen = observe(subject, arguments, names)
        yield seen


def _compile(loaded: Loaded) -> Any:
    """The scripted subject: a function is compiled once for all ways, a module, which has state, for each way."""
    subject = loaded.subject
    if isinstance(subject, torch.nn.Module) and not loaded.keeps_results:
        return rekindle.script(subject)
    if loaded.compiled is None:
        loaded.compiled = rekindle.script(subject)
    return loaded.compiled


def _scripted(loaded: Loaded) -> tuple[Any, Verdict | None]:
    try:
        return _compile(loaded), None
    except CompileError as error:
        reasons = sorted({re.sub(r"'[^']*'|\d+", "_", each.message)[:120] for each in error.errors})
        return None, Verdict("rejected", kind="; ".join(reasons)[:300], detail=str(error)[:2000])
    except Exception as error:
        normal = _normal(str(error))
        kind = f"{type(error).__name__}: {normal}"
        return None, Verdict("finding", "internal error", kind, detail=f"{type(error).__name__}: {error}")


def _judged(
    subject: Any, loaded: Loaded, expected: list[Observation], names: tuple[str, ...], exact: bool, calls: int = 99
) -> Verdict:
    for number, seen in enumerate(_results(subject, loaded, names, calls)):
        if seen.refused:  # an argument that its annotation forbids
            if names:
                break  # the state of the module is another one from here on
            continue
        found = compare(seen, expected[number], exact)
        if found is not None:
            failure, what = found
            if failure == "wrong gradient" and not exact and _has_no_gradient(seen, expected[number], loaded, number):
                return Verdict(UNSTABLE, call=number, detail=what.text)
            return Verdict("finding", failure, what.kind, call=number, detail=what.text)
    return Verdict("passed")


def _results(subject: Any, loaded: Loaded, names: tuple[str, ...], calls: int) -> Iterable[Observation]:
    found = itertools.islice(observations(subject, loaded, names), calls)
    if not loaded.keeps_results:
        return found
    if loaded.results is None:
        loaded.results = list(found)
    return loaded.results


def _has_no_gradient(seen: Observation, expected: Observation, loaded: Loaded, number: int) -> bool:
    """Whether the witnesses disagree with the gradients of eager Python too, where those that were seen do."""

    def before() -> tuple[Any, tuple[Any, ...]]:
        subject, calls, order = loaded.subject, loaded.calls, _order(loaded)
        for each in order[:number]:
            with contextlib.suppress(Exception):
                subject(*calls[each]())
        return subject, calls[order[number]]()

    witnesses = [
        lambda: gradients_of_call_by_forward(*before()),
        without_zeros(lambda: gradients_of_call(*before())),
    ]
    return is_undefined(seen.gradients, expected.gradients, witnesses)


def _unoptimized(loaded: Loaded, expected: list[Observation], names: tuple[str, ...]) -> Verdict:
    with rekindle.optimized_execution(False):
        subject, refused = _scripted(loaded)
        return refused or _judged(subject, loaded, expected, names, exact=True, calls=len(loaded.calls))


def _optimized(loaded: Loaded, expected: list[Observation], names: tuple[str, ...]) -> Verdict:
    subject, refused = _scripted(loaded)
    if refused is not None:
        return refused
    verdict = _judged(subject, loaded, expected, names, exact=False)
    verdict.native = bool(rekindle.report(subject).machines)
    return verdict


def _profiling(loaded: Loaded, expected: list[Observation], names: tuple[str, ...]) -> Verdict:
    before = rekindle.set_execution_strategy("profiling")
    try:
        return _optimized(loaded, expected, names)
    finally:
        rekindle.set_execution_strategy(before)


def _saved(loaded: Loaded, expected: list[Observation], names: tuple[str, ...]) -> Verdict:
    subject, refused = _scripted(loaded)
    if refused is not None:
        return refused
    buffer = io.BytesIO()
    try:
        rekindle.save(subject, buffer)
    except SaveError:
        return Verdict("passed")  # TorchScript's files have no form for it
    buffer.seek(0)
    plain = [replace(each, result=_without_names(each.result)) for each in expected]
    verdict = _judged(rekindle.load(buffer), loaded, plain, names, exact=False)
    if verdict.status == "finding" and _is_refused_unsaved(loaded, verdict.call):
        return Verdict("passed")  # a loaded archive takes a Tensor for a number, as TorchScript does
    return verdict


def _without_names(value: Any) -> Any:
    """``value`` with tuples in place of operators' named results: TorchScript's files have no form for these."""
    if type(value) in (list, tuple):
        return type(value)(_without_names(each) for each in value)
    if isinstance(value, dict):
        return {key: _without_names(each) for key, each in value.items()}
    return tuple(value) if type(value).__module__ == "torch.return_types" else value


def _is_refused_unsaved(loaded: Loaded, call: int) -> bool:
    """Return whether the compiled subject refuses the arguments of one of the calls up to ``call``."""
    subject = _compile(loaded)
    return any(seen.refused for seen in itertools.islice(observations(subject, loaded, ()), call + 1))


def _transformed(name: str) -> Any:
    def way(loaded: Loaded, expected: list[Observation], names: tuple[str, ...]) -> Verdict:
        found = TRANSFORMED[name](loaded)
        if found is None:
            return Verdict("passed")
        failure, what, call = found
        if failure == UNSTABLE:
            return Verdict(UNSTABLE, call=call, detail=what.text)
        return Verdict("finding", failure, what.kind, call=call, detail=what.text)

    return way


_WAYS: Final = {
    "unoptimized": _unoptimized,
    "optimized": _optimized,
    "profiling": _profiling,
    "saved": _saved,
    **{name: _transformed(name) for name in TRANSFORMED},
}
