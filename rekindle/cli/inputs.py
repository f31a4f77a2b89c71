"""Arguments of a call on the command line."""

from __future__ import annotations

import pickle
import re
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import click
import torch

from rekindle.cli.exit_codes import Trouble, first_line

numpy: ModuleType | None
try:
    import numpy
except ImportError:
    numpy = None

SHORT_NAMES: Final[dict[str, torch.dtype]] = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "c64": torch.complex64,
    "c128": torch.complex128,
    "u8": torch.uint8,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "bool": torch.bool,
}
DTYPES: Final = SHORT_NAMES | {str(dtype).removeprefix("torch."): dtype for dtype in SHORT_NAMES.values()}
_SHAPE: Final = re.compile(r"(\w+)\[([\d, ]*)\](?:=(.*))?")
_KEYWORD: Final = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_WORDS: Final[dict[str, object]] = {"none": None, "true": True, "false": False}

FORMS: Final = (
    "a file (.pt, .npy; a .pt file of torch.save may hold a list, a tuple or a dict), a shape such as f32[1,3,224,224] "
    "(random numbers) or i64[2,5]=1 (all of them 1), a number, true, false, none, or str:text"
)


def read_inputs(texts: tuple[str, ...]) -> tuple[list[Any], dict[str, Any]]:
    """Parse the inputs on the command line. Return those without a name in order, and those with one: ``scale=2.0``.

    Raises:
        UsageError: an input has none of the :data:`FORMS`, or a name is given twice.
        Trouble: a file cannot be read, or a tensor cannot be created.
    """
    in_order: list[Any] = []
    by_name: dict[str, Any] = {}
    for text in texts:
        named = _KEYWORD.fullmatch(text)
        if named is None:
            in_order.append(read_input(text))
        elif named[1] in by_name:
            raise click.UsageError(f"the input '{named[1]}' is given twice")
        else:
            by_name[named[1]] = read_input(named[2])
    return in_order, by_name


def read_input(text: str) -> Any:
    """Parse one input; see :data:`FORMS`. Random numbers are drawn from torch's generator: normally distributed for
    floats and complex numbers, integers from 0 to 9 for ints, 0 or 1 for bools.

    Raises:
        UsageError: the input has none of these forms.
        Trouble: the file cannot be read, or the tensor cannot be created, for example because it is too large.
    """
    if text.endswith((".pt", ".npy")):
        return _read_file(Path(text))
    shape = _SHAPE.fullmatch(text)
    if shape is not None:
        return _tensor(text, shape[1], [int(size) for size in shape[2].replace(" ", "").split(",") if size], shape[3])
    if text.startswith("str:"):
        return text.removeprefix("str:")
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    number = _number(text)
    if number is None:
        raise click.UsageError(f"'{text}' is not an input; an input is {FORMS}")
    return number


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def _read_file(path: Path) -> Any:
    """Read tensors, numbers and containers of them from a file, without executing code in it.

    Raises:
        Trouble: the file cannot be read, holds other objects, or NumPy is missing for an ``.npy`` file.
    """
    try:
        if path.suffix == ".pt":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that it is a program: an error says so in a moment
                return torch.load(path, map_location="cpu", weights_only=True)
        if numpy is None:
            raise Trouble(f"{path}: numpy is not installed: pip install numpy")
        return torch.from_numpy(numpy.load(path, allow_pickle=False))
    except Trouble:
        raise
    except Exception as error:  # the readers raise anything for a broken file
        if isinstance(error, pickle.UnpicklingError) or "weights_only" in str(error):
            reason = "no file of tensors, numbers, lists, tuples and dicts alone"
        else:
            reason = first_line(error)
        raise Trouble(f"{path}: {reason}") from None


def _tensor(text: str, name: str, sizes: list[int], filling: str | None) -> torch.Tensor:
    """Create the tensor of the input ``text``: of the dtype ``name``, filled with a number or with random ones.

    Raises:
        UsageError: the dtype or the number is not one.
        Trouble: PyTorch cannot create the tensor.
    """
    dtype = DTYPES.get(name)
    if dtype is None:
        raise click.UsageError(f"'{name}' is not a dtype; there are {', '.join(SHORT_NAMES)}")
    number = None
    if filling is not None:
        number = {"true": 1, "false": 0}.get(filling.lower(), _number(filling))
        if number is None:
            raise click.UsageError(f"'{filling}' is not a number, in '{text}'")
    try:
        return _random(dtype, sizes) if number is None else torch.full(sizes, number, dtype=dtype)
    except (RuntimeError, OverflowError, TypeError) as error:
        is_large = "memory" in str(error) or "verflow when unpacking" in str(error)
        raise Trouble(f"{text}: {'too large for this machine' if is_large else first_line(error)}") from None


def _random(dtype: torch.dtype, sizes: list[int]) -> torch.Tensor:
    if dtype.is_floating_point or dtype.is_complex:
        wide = torch.complex64 if dtype.is_complex else torch.float32
        return torch.randn(sizes, dtype=wide).to(dtype)
    return torch.randint(0, 2 if dtype == torch.bool else 10, sizes).to(dtype)
