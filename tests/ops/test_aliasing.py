"""What the analysis believes of operators, beside what they do to PyTorch's own samples.

Each sample runs under a dispatch mode, which sees the operators that PyTorch composes it of, and is handed to the
composites of its name as well. Whatever shares storage with an argument, or was written to, must have been announced.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from rekindle.analysis.aliasing.alias_summaries import AliasSummary, alias_summary_of
from rekindle.analysis.object_identity import creates_results
from rekindle.ir.operators.registry import REGISTRY, Operator
from rekindle.ir.operators.traits import Trait
from rekindle.ops.registration.traits import kinds_with
from tests.sweeps.op_db import database
from tests.versions.differences import removed_operators

SHARDS = 16

SAMPLES = 4


class Unannounced(Exception):
    """An operator did something that its declared aliasing does not include."""


def _storages(value: Any) -> set[int]:
    found = set()
    for tensor in _tensors(value):
        if tensor.layout is torch.sparse_coo:
            found |= _storages([tensor._indices(), tensor._values()])
        elif tensor.layout is torch.strided and tensor.untyped_storage().nbytes():
            found.add(tensor.untyped_storage()._cdata)
    return found


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _may_share(plan: AliasSummary, operator: Operator, result: int, argument: int) -> bool:
    results = len(operator.schema.returns)
    if plan.may_alias_inputs or any(number == result for number, _ in plan.from_wildcard):
        return True
    return any(
        source == argument
        for (number, _), sources in plan.sources.items()
        if number == result or results == 1
        for source, _ in sources
    )


def check_call(operator: Operator, arguments: Sequence[Any], call: Callable[[], Any]) -> Any:
    """Run ``call`` of ``operator`` with ``arguments``, in the order of its schema, and compare with its plan."""
    plan, name = alias_summary_of(operator), operator.schema.qualified_name
    storages = [_storages(argument) for argument in arguments]
    versions = [[tensor._version for tensor in _tensors(argument)] for argument in arguments]
    result = call()
    written = {place[0] for place in plan.writes} | {index for index, _ in plan.writes_if}
    for index, argument in enumerate(arguments):
        if index not in written:
            now = [tensor._version for tensor in _tensors(argument)]
            if now != versions[index]:
                raise Unannounced(f"{name} writes to argument {index}")
    results = result if isinstance(result, tuple) else (result,)
    for number, part in enumerate(results):
        announced = set().union(*(s for i, s in enumerate(storages) if _may_share(plan, operator, number, i)))
        if (_storages(part) & set().union(*storages)) - announced:
            raise Unannounced(f"result {number} of {name} shares memory with an argument")
        if any((_storages(part) & _storages(other)) - set().union(*storages) for other in results[number + 1 :]):
            raise Unannounced(f"results of {name} share memory")
    if creates_results(operator):
        for index, argument in enumerate(arguments):
            if any(each is one for each in _tensors(result) for one in _tensors(argument)):
                raise Unannounced(f"{name} returns argument {index} itself")
    return result


def _in_order(operator: Operator, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
    names = [argument.name for argument in operator.schema.arguments]
    return [*args, *(kwargs.get(name) for name in names[len(args) :])]


class Checking(TorchDispatchMode):
    """Checks whatever operator runs."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        operator = _operator(func)
        if operator is None:
            return func(*args, **kwargs)
        return check_call(operator, _in_order(operator, args, kwargs), lambda: func(*args, **kwargs))


def _operator(overload: Any) -> Operator | None:
    schema = overload._schema
    return REGISTRY.find(f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name)


NAMES = frozenset(torch._C._dispatch_get_all_op_names())


def _is_composite(operator: Operator) -> bool:
    name = operator.schema.qualified_name
    return name in NAMES and torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd")


def _composites(names: Sequence[str]) -> Iterator[tuple[Any, Operator]]:
    for name in names:
        packet = getattr(torch.ops.aten, name.replace(".", "_"), None)
        for overload in [] if packet is None else packet.overloads():
            operator = _operator(getattr(packet, overload))
            if operator is not None and _is_composite(operator):
                yield getattr(packet, overload), operator


def _check_entry(entry: Any) -> int:
    """Returns how many calls could be checked."""
    names = {entry.aten_name or entry.name, entry.name, *(alias.name for alias in entry.aliases)}
    composites = list(_composites(sorted(names)))
    checked = 0
    for sample in _samples(entry):
        args, kwargs = (sample.input, *sample.args), sample.kwargs
        checked += _succeeds(lambda args=args, kwargs=kwargs: _run_watched(entry, args, kwargs))
        for overload, operator in composites:
            checked += _succeeds(
                lambda overload=overload, operator=operator, args=args, kwargs=kwargs: check_call(
                    operator, _in_order(operator, args, kwargs), lambda: overload(*args, **kwargs)
                )
            )
    return checked


def _samples(entry: Any) -> list[Any]:
    """A few samples; none where the entry is for other devices or layouts."""
    try:
        return list(islice(entry.sample_inputs("cpu", torch.float32), SAMPLES))
    except Exception:
        return []


def _run_watched(entry: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    with Checking():
        entry(*args, **kwargs)


def _succeeds(call: Callable[[], Any]) -> bool:
    """Whether the call runs: some samples are not for this overload, or not for a dispatch mode."""
    try:
        call()
    except Unannounced:
        raise
    except Exception:
        return False
    return True


@pytest.mark.parametrize("shard", range(SHARDS))
def test_operators_do_what_was_announced(shard: int) -> None:
    entries = [entry for entry in list(database().values())[shard::SHARDS] if torch.float32 in entry.dtypes]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checked = [entry.name for entry in entries if _check_entry(entry)]
    assert len(checked) > 0.9 * len(entries), sorted({entry.name for entry in entries} - set(checked))


def test_a_lie_is_found() -> None:
    """The check is able to fail: ``_unsafe_view`` returns a view, and says that it does not."""
    honest = REGISTRY.find("aten::_unsafe_view")
    assert honest is not None
    x = torch.zeros(4)
    arguments = [x, [2, 2]]
    check_call(honest, arguments, lambda: torch.ops.aten._unsafe_view(*arguments))
    lying = Operator(honest.schema, honest.operation)
    with pytest.raises(Unannounced, match="result 0 of aten::_unsafe_view shares memory with an argument"):
        check_call(lying, arguments, lambda: torch.ops.aten._unsafe_view(*arguments))
    plain = REGISTRY.find("aten::neg")
    assert plain is not None
    with pytest.raises(Unannounced, match="aten::neg writes to argument 0"):
        check_call(plain, [x], x.neg_)


def test_an_argument_that_is_returned_is_found() -> None:
    x = torch.zeros(2, 3)
    view = REGISTRY.find("aten::transpose.int")
    contiguous = REGISTRY.find("aten::contiguous")
    assert view is not None
    assert contiguous is not None
    assert creates_results(view)
    assert not creates_results(contiguous)
    check_call(view, [x, 0, 0], lambda: torch.ops.aten.transpose.int(x, 0, 0))
    with pytest.raises(Unannounced, match=r"aten::transpose\.int returns argument 0 itself"):
        check_call(view, [x, 0, 0], lambda: x)


def test_normalization_writes_its_statistics() -> None:
    operator = REGISTRY.find("aten::batch_norm")
    assert operator is not None
    arguments = [torch.rand(4, 3), None, None, torch.zeros(3), torch.ones(3), True, 0.1, 1e-5, False]
    check_call(operator, arguments, lambda: torch.batch_norm(*arguments))
    assert arguments[3].abs().sum() > 0


@pytest.mark.parametrize("kind", sorted(kinds_with(Trait.FRESH) - removed_operators()))
def test_the_table_names_composites_without_annotations(kind: str) -> None:
    overloads = [operator for operator in REGISTRY.overloads(kind) if not operator.schema.is_mutable]
    composites = [operator for operator in overloads if _is_composite(operator)]
    assert composites, f"{kind} needs no entry"
    assert not any(result.alias for operator in composites for result in operator.schema.returns)
