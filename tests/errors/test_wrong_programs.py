"""Errors of wrong programs: the whole text, and never an internal error."""

from __future__ import annotations

import importlib.util
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType

import pytest
import torch

import rekindle
from rekindle.errors import CompileError, InternalError, RekindleError
from tests.errors.wrong_program_causes import CAUSES
from tests.errors.wrong_programs import CALLS, LIVE, TEXTS
from tests.support.golden import GoldenTexts

PRELUDE = "import numpy, torch; from torch import nn, Tensor; from typing import Dict, Final, List, Optional, Tuple"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def test_there_are_many() -> None:
    assert len(LIVE) + len(TEXTS) + len(CALLS) >= 60


@pytest.mark.parametrize("name", LIVE)
def test_wrong_live_program(name: str, folder: Path, golden: GoldenTexts) -> None:
    module = load(name, LIVE[name], folder)
    subject = module.M() if hasattr(module, "M") else module.f
    with pytest.raises(RekindleError) as caught:
        rekindle.script(subject)
    check(name, caught.value, folder, golden)


@pytest.mark.parametrize("name", TEXTS)
def test_wrong_program_text(name: str, folder: Path, golden: GoldenTexts) -> None:
    with pytest.raises(RekindleError) as caught:
        rekindle.CompilationUnit(TEXTS[name])
    check(name, caught.value, folder, golden)


@pytest.mark.parametrize("name", CALLS)
def test_wrong_call(name: str, folder: Path, golden: GoldenTexts) -> None:
    text, arguments = CALLS[name]
    compiled = rekindle.script(load(name, "\n" + text, folder).f)
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the class is part of the golden text
        eval(f"call({arguments})", {"torch": torch, "call": compiled})  # noqa: S307
    assert not isinstance(caught.value, (InternalError, CompileError))
    golden(f"errors/{name}", told(caught.value, folder) + frames_of_the_program(caught.value, folder))


def check(name: str, error: RekindleError, folder: Path, golden: GoldenTexts) -> None:
    assert not isinstance(error, InternalError)
    assert isinstance(error, CompileError), "an error of the compiler's own, with a place in the program"
    assert error.errors == (error,), "one mistake, one report"
    assert name in CAUSES[error.cause]
    assert error.suggestion
    golden(f"errors/{name}", told(error, folder))


def told(error: BaseException, folder: Path) -> str:
    """Class and text, without the folders that differ from machine to machine."""
    if isinstance(error, ZeroDivisionError):
        return "ZeroDivisionError: …"  # releases of Python word it differently
    text = f"{type(error).__name__}: {error}".replace(f"{folder}/", "")
    return re.sub(r'File "[^"]*/(torch/[^"]*)", line \d+', r'File "\1", line …', text)


def frames_of_the_program(error: BaseException, folder: Path) -> str:
    """The lines of the program that a traceback shows."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if str(folder) in frame.filename]
    lines = [f"  {Path(frame.filename).name}:{frame.lineno} in {frame.name}: {frame.line}" for frame in frames]
    return "\ntraceback in the program:\n" + "\n".join(lines) if lines else ""


def load(name: str, text: str, folder: Path) -> ModuleType:
    """The program as a module in a file of its own; its first line is the prelude."""
    path = folder / f"{name}.py"
    path.write_text(PRELUDE + text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(f"wrong_program_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[spec.name]
    return module
