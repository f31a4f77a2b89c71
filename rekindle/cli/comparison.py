"""Compare two loaded modules: their programs and their values."""

from __future__ import annotations

import difflib
import enum
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch

from rekindle.archive.pickles.torchbind_state import state_of
from rekindle.cli.archives import all_methods
from rekindle.ir.mangling import demangled
from rekindle.ir.text.printer import print_graph
from rekindle.ops.python.values import script_class
from rekindle.program.function import Method
from rekindle.program.modules.module import ScriptModule

Step = Callable[[], None]


@dataclass(slots=True, frozen=True)
class Difference:
    """One difference between two archives: what differs, its name, and how, as the lines of a unified diff or in one
    sentence."""

    kind: str
    """``method``, ``schema``, ``code``, ``graph``, ``parameter``, ``buffer``, ``attribute`` or ``file``."""
    name: str
    difference: list[str]


# ------------------------------------------------------------------------------------------------------------- programs


FORMS: Final[dict[str, Callable[[Method], str]]] = {
    "schema": lambda method: str(method.schema.bound),
    "code": lambda method: method.code,
    "graph": lambda method: print_graph(method.graph, ranges=False),
}


def compare_programs(a: ScriptModule, b: ScriptModule, forms: tuple[str, ...]) -> Iterator[Difference]:
    """Yield how the methods of two modules and of their submodules differ, in each of ``forms``, keys of :data:`FORMS`.

    The numbers in the names of classes, which depend on what else the process had compiled, do not count.
    """
    ours, theirs = all_methods(a), all_methods(b)
    yield from one_sided("method", ours, theirs)
    for name in ours:
        if name not in theirs:
            continue
        for form in forms:
            before, after = (demangled(FORMS[form](each[name])).splitlines() for each in (ours, theirs))
            lines = list(difflib.unified_diff(before, after, lineterm="", n=2))[2:]
            if lines:
                yield Difference(form, name, lines)


def one_sided(kind: str, a: Mapping[str, object], b: Mapping[str, object]) -> Iterator[Difference]:
    """Yield the names that only one of two mappings has."""
    for name in a:
        if name not in b:
            yield Difference(kind, name, ["- only in the first"])
    for name in b:
        if name not in a:
            yield Difference(kind, name, ["+ only in the second"])


# --------------------------------------------------------------------------------------------------------------- values


def values_of(module: ScriptModule) -> dict[str, dict[str, Any]]:
    """Return the parameters, buffers and other attributes (numbers, strings, lists …) of a module and its parts, by
    path."""
    attributes = {
        f"{path}.{name}" if path else name: getattr(part, name)
        for path, part in module.named_modules(remove_duplicate=False)
        if isinstance(part, ScriptModule)
        for name, slot in part.script_type.attributes.items()
        if slot.kind == "attribute" and name not in part._modules and hasattr(part, name)
    }
    return {
        "parameter": dict(module.named_parameters(remove_duplicate=False)),
        "buffer": dict(module.named_buffers(remove_duplicate=False)),
        "attribute": attributes,
    }


def compare_values(
    kind: str, a: Mapping[str, Any], b: Mapping[str, Any], tolerance: float, step: Step
) -> Iterator[Difference]:
    """Yield how the values of two mappings differ. Numbers that differ by up to ``tolerance`` are equal. ``step`` is
    called after each value of ``a``."""
    yield from one_sided(kind, a, b)
    for name, value in a.items():
        difference = difference_of(value, b[name], tolerance) if name in b else None
        step()
        if difference is not None:
            yield Difference(kind, name, [difference])


def difference_of(a: Any, b: Any, tolerance: float = 0.0) -> str | None:
    """Describe the first difference of two values; return None if they do not differ.

    Numbers, also those in tensors, are equal if they differ by at most ``tolerance``. NaN equals NaN.
    """
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return _of_tensors(a, b, tolerance)
    if _kind(a) != _kind(b):
        return f"{_kind(a)} became {_kind(b)}"
    if isinstance(a, enum.Enum):
        return None if a.name == b.name else f"{a.name} became {b.name}"
    parts, others = _parts(a), _parts(b)
    if parts is None or others is None:
        same = a == b or (a != a and b != b) or (isinstance(a, (int, float, complex)) and abs(a - b) <= tolerance)
        return None if same else f"{a!r} became {b!r}"
    if isinstance(a, (list, tuple)) and len(parts) != len(others):
        return f"{len(parts)} items became {len(others)}"
    if parts.keys() != others.keys():
        return f"the keys {list(parts)} became {list(others)}"
    differences = ((key, difference_of(parts[key], others[key], tolerance)) for key in parts)
    return next((f"{key}: {text}" for key, text in differences if text is not None), None)


def _kind(value: Any) -> str:
    """Return the name of a value's class, as its author would know it."""
    owner = script_class(value)
    if owner is not None:
        return demangled(owner.name).rpartition(".")[2]
    return type(value).__name__


def _parts(value: Any) -> dict[Any, Any] | None:
    """Return the elements or attributes of a value, by how a message names them; None for a value without parts."""
    if isinstance(value, (list, tuple)):
        return {f"[{index}]": item for index, item in enumerate(value)}
    if isinstance(value, dict):
        return {f"[{key!r}]": item for key, item in value.items()}
    state = state_of(value)
    if state is not None:
        return {"its state": state[0]}
    owner = script_class(value)
    if owner is not None:
        return {f".{name}": getattr(value, name) for name in owner.attributes if hasattr(value, name)}
    return None


def _of_tensors(a: torch.Tensor, b: torch.Tensor, tolerance: float) -> str | None:
    kinds = [_type_of(tensor) for tensor in (a, b)]
    if kinds[0] != kinds[1]:
        return f"{kinds[0]} became {kinds[1]}"
    if a.is_meta or b.is_meta:
        return None
    a, b = (_dense(tensor) for tensor in (a, b))
    if torch.equal(a, b):
        return None
    same = (a == b) | (a.isnan() & b.isnan())
    if a.is_floating_point() or a.is_complex():
        off = (a.to(torch.complex128) - b.to(torch.complex128)).abs()
    else:
        off = (a.double() - b.double()).abs().clamp(min=1.0)  # large ones that are not equal may look so as floats
    off = off.masked_fill(same, 0.0)
    differ = ~same & ~(off <= tolerance)
    if not bool(differ.any()):
        return None
    return f"{kinds[0]}: {int(differ.sum())} of {a.numel()} numbers differ, by up to {float(off.max()):.3g}"


def _type_of(tensor: torch.Tensor) -> str:
    layout = "" if tensor.layout == torch.strided else f"{str(tensor.layout).removeprefix('torch.')} "
    return f"{layout}{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.detach()
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    return tensor.dequantize() if tensor.is_quantized else tensor
