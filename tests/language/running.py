"""What a call does, all of it: its answer or its exception, what it prints, and what becomes of its inputs."""

from __future__ import annotations

import contextlib
import copy
import io
import warnings
from dataclasses import dataclass
from typing import Any

import torch

import rekindle
from rekindle.ir.scalar_types import number_of
from tests.language.corpus import Inputs, Program, fresh
from tests.support.equality import assert_same
from tests.support.oracle import script_with_torch


@dataclass(slots=True)
class Outcome:
    answer: Any
    error: BaseException | None
    printed: str
    inputs: Inputs


def outcome(function: Any, inputs: Inputs) -> Outcome:
    """One call, on copies of the inputs."""
    torch.manual_seed(1)
    inputs = fresh(inputs)
    printed = io.StringIO()
    answer: Any = None
    raised: BaseException | None = None
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"`torch\.(cpu|cuda)\.amp\.autocast", FutureWarning)
        try:
            answer = copy.deepcopy(function(*inputs))
        except Exception as error:
            raised = error
    return Outcome(answer, raised, printed.getvalue(), inputs)


def assert_same_outcome(actual: Outcome, expected: Outcome, where: str) -> None:
    """The same answer to its types, or an exception of the same class and text; the same output and inputs."""
    if expected.error is None and actual.error is not None:
        raise AssertionError(f"{where} raises {actual.error!r}") from actual.error
    if expected.error is not None:
        assert actual.error is not None, f"{where} gives {actual.answer!r}, and does not raise {expected.error!r}"
        assert type(actual.error) is type(expected.error), f"{where} raises {actual.error!r}, not {expected.error!r}"
        assert str(actual.error) == str(expected.error), f"{where} raises {actual.error!r}, not {expected.error!r}"
    assert_same(actual.answer, expected.answer, where)
    assert actual.printed == expected.printed, f"{where} prints {actual.printed!r}, not {expected.printed!r}"
    assert_same(actual.inputs, expected.inputs, f"inputs of {where}")


def assert_same_state(compiled: Any, eager: Any, where: str) -> None:
    """The parameters, buffers and plain attributes of a module after its calls."""
    if not isinstance(eager, torch.nn.Module):
        return
    assert_same(dict(compiled.state_dict()), dict(eager.state_dict()), f"state of {where}")
    for name, value in vars(eager).items():
        if not name.startswith("_") and isinstance(value, (bool, int, float, str, list, dict)):
            assert_same(getattr(compiled, name), value, f"{name} of {where}")


def torch_state(program: Program) -> str:
    """What torch.jit does with a program: "works", "differs" or "refuses". See :class:`Program`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compiled = script_with_torch(program.subject())
        except Exception:
            return "refuses"
        eager = program.subject()
        return "works" if all(answers_alike(compiled, eager, inputs) for inputs in program.inputs) else "differs"


def answers_alike(compiled: Any, eager: Any, inputs: Inputs, *, is_archive: bool = False) -> bool:
    """torch.jit wraps exceptions, copies the lists that it is given, and prints without Python's ``sys.stdout``: not
    compared.

    It gives lists for sizes. From what is saved here it gives lists for all tuples whose length is known at run time
    alone, and numbers for dtypes: ``is_archive``.
    """
    actual, expected = outcome(compiled, inputs), outcome(eager, inputs)
    if (actual.error is None) != (expected.error is None):
        return False
    lists = (torch.Size, tuple) if is_archive else (torch.Size,)
    try:
        assert_same(_plain(actual.answer, lists), _plain(expected.answer, lists))
    except AssertionError:
        return False
    return True


def _plain(value: Any, lists: tuple[type, ...]) -> Any:
    """``value`` with lists for what is of the classes ``lists``, and numbers for dtypes."""
    if isinstance(value, torch.dtype):
        return number_of(value)
    if type(value) in lists or isinstance(value, list):
        return [_plain(item, lists) for item in value]
    if isinstance(value, dict):
        return {_plain(key, lists): _plain(item, lists) for key, item in value.items()}
    if type(value) is tuple:
        return tuple(_plain(item, lists) for item in value)
    return value


def torch_loaded(compiled: Any) -> Any:
    """The compiled program as torch.jit loads it from what is saved here."""
    file = io.BytesIO()
    rekindle.save(compiled, file)
    file.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.load(file)


def torch_result_type(program: Program) -> str | None:
    """The type of the result in torch.jit's schema; None where it does not compile the program."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compiled = script_with_torch(program.subject())
        except Exception:
            return None
    schema = compiled.forward.schema if isinstance(compiled, torch.nn.Module) else compiled.schema
    return _arrow(str(schema))


def result_type(compiled: Any) -> str:
    schema = (
        compiled.script_type.methods["forward"].schema if isinstance(compiled, torch.nn.Module) else compiled.schema
    )
    return _arrow(str(schema))


def _arrow(schema: str) -> str:
    return schema.rpartition(" -> ")[2]
