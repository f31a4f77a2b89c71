"""What is done with exported programs: each way gives something that is called as the program is.

Every way begins with a program from a file, so that none sees what another has changed.
"""

from __future__ import annotations

import io
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

import rekindle
from tests.exporting.checking import Outcome, calls_of, compared, equal, result_of
from tests.exporting.probes import Probe

LIMIT: Final = 180
"""Seconds that a way may take."""

Way = Callable[[ExportedProgram], Callable[..., Any]]


def in_file(program: ExportedProgram) -> bytes:
    """The program as a file of ``torch.export.save``."""
    file = io.BytesIO()
    torch.export.save(program, file)
    return file.getvalue()


def loaded(file: bytes) -> ExportedProgram:
    """The program in a file."""
    return torch.export.load(io.BytesIO(file))


def module(program: ExportedProgram) -> Callable[..., Any]:
    """``program.module()``, which checks what PyTorch's guards check."""
    program.validate()
    return program.module()


def decomposed(program: ExportedProgram) -> Callable[..., Any]:
    """After ``run_decompositions()``, with the verifier of what comes out."""
    return module(program.run_decompositions())


def compiled(backend: str) -> Way:
    """By ``torch.compile``. Numbers that are read off tensors are captured, as PyTorch asks for where they are: else it
    breaks graphs there, and cannot within loops."""

    def way(program: ExportedProgram) -> Callable[..., Any]:
        torch._dynamo.reset()
        return torch.compile(program.module(), backend=backend)

    return way


def packaged(program: ExportedProgram) -> Callable[..., Any]:
    """Machine code in a package of AOTInductor, which runs without Python."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "program.pt2")
        torch._inductor.aoti_compile_and_package(program, package_path=path)
        return torch._inductor.aoti_load_package(path)  # type: ignore[no-any-return]


def onnx(program: ExportedProgram) -> Callable[..., Any]:
    """The program in ONNX, run by onnxruntime: the tensors and numbers of the result, one after the other."""
    made = torch.onnx.export(program, dynamo=True, verbose=False)
    assert made is not None

    def call(*args: Any) -> list[Any]:
        return list(made(*[each for each in pytree.tree_leaves(args) if isinstance(each, Tensor)]))

    return call


CHEAP: Final[Mapping[str, Way]] = {
    "module()": module,
    "run_decompositions": decomposed,
    "torch.compile: aot_eager": compiled("aot_eager"),
}
"""Ways that compile nothing."""

FULL: Final[Mapping[str, Way]] = {**CHEAP, "torch.compile: Inductor": compiled("inductor")}
"""Ways that every program goes in the sweep."""

SAMPLED: Final[Mapping[str, Way]] = {"AOTInductor": packaged}
"""Ways that a sample of programs goes in the sweep."""


def outcome(way: Way, file: bytes, probe: Probe, reference: Callable[[], Any] | None = None) -> Outcome:
    """What comes of a program on a way, beside the compiled program, or what ``reference`` makes, over all calls."""
    with torch.no_grad(), _limited(), torch._dynamo.config.patch(capture_scalar_outputs=True):
        try:
            made = way(loaded(file))
        except Exception as error:
            return Outcome("error", _told(error))
        return compared(made, rekindle.script(probe.make()) if reference is None else reference(), probe)


def outcome_in_onnx(file: bytes, probe: Probe, reference: Callable[[], Any] | None = None) -> Outcome:
    """What comes of a program in ONNX, which keeps no state: each call is a first one, of tensors."""
    with torch.no_grad(), _limited():
        try:
            made = onnx(loaded(file))
        except Exception as error:
            return Outcome("error", _told(error))
        for number, args in enumerate(calls_of(probe)):
            other = rekindle.script(probe.make()) if reference is None else reference()
            wanted, found = result_of(other, args), result_of(made, args)
            if isinstance(wanted, Exception):
                continue  # ONNX has no checks
            if isinstance(found, Exception):
                return Outcome("raises", f"call {number}: {_told(found)}")
            if not equal(_numbers(found[0]), _numbers(wanted[0])):
                return Outcome("wrong", f"call {number}: {found[0]} instead of {wanted[0]}")
    return Outcome("agrees")


def _numbers(result: Any) -> list[Tensor]:
    return [torch.as_tensor(each).to(torch.float64) for each in pytree.tree_leaves(result) if each is not None]


def is_for_onnx(probe: Probe, program: ExportedProgram) -> bool:
    """Whether what ONNX can hold is all of the program: tensors come in, and it keeps no state."""
    leaves: Sequence[Any] = pytree.tree_leaves(probe.args)
    return not program.graph_signature.buffers_to_mutate and all(isinstance(each, Tensor) for each in leaves)


def _told(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]


class TooLongError(Exception):
    """A way takes too long."""


@contextmanager
def _limited() -> Iterator[None]:
    def end(signal: int, frame: Any) -> None:
        raise TooLongError(f"more than {LIMIT} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(LIMIT)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
