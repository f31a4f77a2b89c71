"""Programs through files, from one compiler to the other: what may differ, and what not.

Three ways: what is saved here and loaded by torch.jit; the same, loaded here; what torch.jit saves and is loaded here.
Each time the program that was loaded is called as the one that was saved, on copies of the same inputs, and all that
comes of it is compared: answers, exceptions, what becomes of the inputs, the state of the module, and the schemas.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import enum
import io
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

import rekindle
from rekindle.ir.scalar_types import number_of
from rekindle.program.function import Method
from tests.archive.archives import members_of
from tests.oracle.subjects import Subject
from tests.support.equality import assert_same
from tests.support.oracle import CONTAINER_METHODS, script_with_torch

Problem = str


class NotApplicable(Exception):
    """torch.jit does not compile, save or load the program itself: there is nothing to compare with."""


def ours_to_torch(subject: Subject) -> Iterator[Problem]:
    """``rekindle.save``, then ``torch.jit.load``."""
    compiled = compile_here(subject)
    yield from _compare(subject, compiled, torch.jit.load(io.BytesIO(compiled.save_to_buffer())))


def ours_to_ours(subject: Subject) -> Iterator[Problem]:
    """``rekindle.save``, then ``rekindle.load``; saved again, the file is the same."""
    compiled = compile_here(subject)
    archive = compiled.save_to_buffer()
    loaded = rekindle.load(archive)
    before = members_of(archive)
    # The places of nodes in the author's source come through for the most part only; what a trace reads where it is
    # used is read by a statement of its own later.
    aside = (".debug_pkl", "serialization_id", ".py" if subject.traced else ".debug_pkl")
    for member, content in members_of(loaded.save_to_buffer()).items():
        if not member.endswith(aside) and content != before.get(member):
            yield f"saved again, the archive has another {member}"
    yield from _compare(subject, compiled, loaded)


def torch_to_ours(subject: Subject) -> Iterator[Problem]:
    """``torch.jit.save``, then ``rekindle.load``.

    Raises:
        NotApplicable: torch.jit has no such archive.
    """
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            torch.jit.save(_compile_with_torch(subject), buffer)
            theirs = torch.jit.load(io.BytesIO(buffer.getvalue()))
        except Exception as error:
            raise NotApplicable(str(error)) from None
    yield from _compare(subject, theirs, rekindle.load(buffer.getvalue()))


WAYS = (ours_to_torch, ours_to_ours, torch_to_ours)


def compile_here(subject: Subject) -> Any:
    torch.manual_seed(0)
    return rekindle.trace(subject.make(), subject.samples[0]) if subject.traced else rekindle.script(subject.make())


def _compile_with_torch(subject: Subject) -> Any:
    torch.manual_seed(0)
    if subject.traced:
        return torch.jit.trace(subject.make(), subject.samples[0], check_trace=False)
    return script_with_torch(subject.make())


# ------------------------------------------------------------------------------------------------------------ comparing


def _compare(subject: Subject, saved: Any, loaded: Any) -> Iterator[Problem]:
    """How ``loaded`` is not what was ``saved``."""
    if _schemas(saved) != _schemas(loaded):
        yield f"schemas: {_schemas(saved)} became {_schemas(loaded)}"
    if isinstance(saved, torch.nn.Module):
        yield from _unequal(dict(loaded.state_dict()), dict(saved.state_dict()), "state")
    for index, sample in enumerate(subject.samples):
        for call in range(2):
            expected, actual = _outcome(saved, sample), _outcome(loaded, sample)
            where = f"sample {index + 1}, call {call + 1}"
            if isinstance(expected, Raised) or isinstance(actual, Raised):
                if not (isinstance(expected, Raised) and isinstance(actual, Raised) and expected.same_as(actual)):
                    yield f"{where}: {expected!r} became {actual!r}"
            else:
                yield from _unequal(actual, expected, where)
    if isinstance(saved, torch.nn.Module):
        yield from _unequal(dict(loaded.state_dict()), dict(saved.state_dict()), "state after the calls")


def _unequal(actual: Any, expected: Any, where: str) -> Iterator[Problem]:
    try:
        assert_same(actual, expected, where)
    except AssertionError as error:
        yield str(error)


_OF_OPERATORS = ("IndexError", "KeyError", "ValueError", "ZeroDivisionError")


@dataclasses.dataclass(slots=True, frozen=True)
class Raised:
    """An exception, its class by name. torch.jit wraps all of them into one of its own, and gives the text of the
    first at the end of its own text."""

    kind: str
    text: str

    def same_as(self, other: Raised) -> bool:
        """The same class and text. Of calls that do not fit, texts differ; torch.jit's scalar, list and string
        operators raise a RuntimeError where Python raises another."""
        if self == other or self.kind == other.kind == "ArgumentError":
            return True
        kinds = {self.kind, other.kind}
        return len(kinds) == 2 and kinds <= {"RuntimeError", *_OF_OPERATORS}


def _outcome(function: Callable[..., Any], sample: tuple[Any, ...]) -> Any:
    torch.manual_seed(1)
    inputs = copy.deepcopy(sample)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _plain(function(*inputs))
        except Exception as error:
            return _raised(error)


_INTERPRETER = "The following operation failed in the TorchScript interpreter."


def _raised(error: Exception) -> Raised:
    """What the program raised. torch.jit's text ends in ``RuntimeError: text``: the last line that begins with the name
    of a class."""
    text = str(error)
    found = re.findall(r"^(?:[\w.]+\.)?(\w+): (.*)$", text, re.MULTILINE)
    if text.startswith(_INTERPRETER) and found:
        kind, text = found[-1]
    else:
        kind, text = type(error).__name__, text.partition("\n")[0]
    if text.startswith("AssertionError: "):
        kind, _, text = text.partition(": ")
    if kind == "UnknownExceptionError":
        kind, text = re.findall(r"(\w+): (.*)", text)[0]
    if "is missing value for argument" in text or "Expected a value of type" in text:
        kind = "ArgumentError"
    return Raised(kind, text)


def _plain(value: Any) -> Any:
    """A result without what its class is called: programs that were loaded have classes of their own. What is a tuple
    and what is a list by the schemas; where Python has a tuple or a dtype, archives have a list and a number."""
    if isinstance(value, torch.dtype):
        return number_of(value)
    if isinstance(value, enum.Enum):
        return value.name, value.value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if type(value).__module__.startswith(("tests.", "__torch__")):
        return type(value).__name__, {name: _plain(item) for name, item in vars(value).items()}
    return value


def _schemas(compiled: Any) -> dict[str, str]:
    """The schemas of the methods by name, of a function as of a forward, without what types are called."""
    found: dict[str, str] = {}
    if isinstance(compiled, torch.jit.ScriptFunction):
        found["forward"] = str(compiled.schema)
    elif isinstance(compiled, torch.jit.ScriptModule):
        for name in compiled._c._method_names():
            found[name] = str(compiled._c._get_method(name).schema)
    elif isinstance(compiled, torch.nn.Module):
        for name, record in compiled.script_type.methods.items():
            found[name] = str(Method(compiled, record).schema)
    else:
        found["forward"] = str(compiled.schema)
    return {name: _simple(text) for name, text in sorted(found.items()) if name not in CONTAINER_METHODS}


_UNNAMED = re.compile(r"\w+ : ")


def _simple(schema: str) -> str:
    schema = re.sub(r"\.___torch_mangle_\d+", "", schema)
    schema = re.sub(r" \(of [^)]*\)", "", schema)
    # What an operator returns has names, but no class: in a text it is a tuple.
    schema = re.sub(r"-> NamedTuple\(([^()]*)\)", lambda found: f"-> (({_UNNAMED.sub('', found[1])}))", schema)
    arguments = schema.partition("(")[2]
    return re.sub(r"^__torch__[\w.]* self(, )?", "", arguments).replace("*, ", "")
