"""The table of operator traits names operators that exist, and nothing that PyTorch already reports; what it claims of
ranks, sizes and dtypes is what the rules of result types say."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

import rekindle
import rekindle.runtime.executor
from rekindle.ir.operators.registry import REGISTRY, Operator
from rekindle.ir.operators.traits import PROPERTY_QUERIES, Trait
from rekindle.ir.types import DictType, ListType, TensorType, has_free_variables
from rekindle.ops.registration.aliasing import is_composite
from rekindle.ops.registration.trait_table import FRESH_COMPOSITES, TABLE
from rekindle.ops.registration.traits import (
    kinds_with,
    queried_properties,
    queries_of,
    trait_table,
    traits_of_kind,
    traits_of_overload,
)
from rekindle.ops.result_types import result_facts
from tests.versions.differences import removed_operators

FROM_PYTORCH = {Trait.POINTWISE, Trait.VIEW, Trait.DATA_DEPENDENT}


def _overloads(kind: str) -> Iterator[tuple[Operator, list[torch.Tag]]]:
    """The dispatcher's operators of a kind, with their tags."""
    known = set(torch._C._dispatch_get_all_op_names())
    for operator in REGISTRY.overloads(kind):
        if operator.schema.qualified_name in known:
            packet = getattr(torch.ops.aten, kind.removeprefix("aten::"))
            yield operator, getattr(packet, operator.schema.overload or "default").tags


def test_every_name_is_that_of_an_operator() -> None:
    unknown = {kind for kind in trait_table() if not REGISTRY.overloads(kind)}
    assert unknown == removed_operators() & trait_table().keys()


def test_every_name_stands_once_and_in_order() -> None:
    names = [line.split()[0] for line in TABLE.strip().splitlines()]
    aten = [name for name in names if "::" not in name]
    assert names == [*sorted(set(aten)), *sorted(name for name in set(names) if "::" in name)]
    assert FRESH_COMPOSITES.split() == sorted(set(FRESH_COMPOSITES.split()) - set(names))


@pytest.mark.parametrize("trait", sorted(FROM_PYTORCH, key=lambda trait: trait.value))
def test_the_table_leaves_out_what_pytorch_tells(trait: Trait) -> None:
    redundant = []
    for kind in sorted(kinds_with(trait)):
        for operator, tags in _overloads(kind):
            bare = traits_of_overload(
                operator.schema, tags, is_composite=is_composite(operator.schema.qualified_name), known=frozenset()
            )
            if trait in bare:
                redundant.append(operator.schema.qualified_name)
    assert redundant == []


def test_traits_come_from_the_table_from_tags_and_from_schemas() -> None:
    def traits(name: str) -> set[str]:
        operator = REGISTRY.find(name)
        assert operator is not None
        return {trait.value for trait in operator.traits}

    assert "pointwise" in traits("aten::addcmul")
    assert "commutative" in traits("aten::mul.Tensor")
    assert traits("aten::select.int") == {"view"}
    assert traits("aten::t_") == {"reshapes"}
    assert {"same_rank", "same_sizes"} <= traits("aten::sub_.Tensor")
    assert "same_rank" in traits("aten::clamp")
    assert all("same_rank" not in traits(f"aten::{name}.Tensor") for name in ("clamp", "clamp_min", "clamp_max"))
    assert "pointwise" not in traits("aten::max.dim")
    assert "pointwise" in traits("aten::max.other")
    assert traits_of_kind("aten::no_such_operator") == frozenset()


@pytest.mark.parametrize("kind", sorted(kinds_with(Trait.SAME_SIZES) | kinds_with(Trait.SAME_DTYPE)))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.uint8])
def test_sizes_and_dtypes_are_those_of_the_first_operand(kind: str, dtype: torch.dtype) -> None:
    given = TensorType(dtype, torch.device("cpu"), (2, 3))
    for operator, _ in _overloads(kind):
        if operator.schema.is_mutable or not isinstance(operator.schema.arguments[0].type, TensorType):
            continue
        facts = [given, *[None] * (len(operator.schema.arguments) - 1)]
        (found,) = result_facts(operator.schema, facts, default_dtype=None)
        assert isinstance(found, TensorType)
        if Trait.SAME_SIZES in operator.traits:
            assert found.sizes == given.sizes
        if Trait.SAME_DTYPE in operator.traits:
            assert found.dtype == dtype


def _tensors() -> Iterator[torch.Tensor]:
    """Pairs of tensors that differ in one property, or in their elements alone."""
    for dtype in (torch.float32, torch.float64, torch.int32, torch.uint8, torch.bool, torch.complex64):
        for sizes in ((2, 3), (3, 2), (6,), (1, 6), ()):
            for device in ("cpu", "meta"):
                yield torch.ones(sizes, dtype=dtype, device=device)
                yield torch.zeros(sizes, dtype=dtype, device=device)
    yield torch.ones(2, 3).t()
    yield torch.ones(12)[6:].view(2, 3)
    yield torch.ones(2, 3).to_sparse()
    yield torch.ones(2, 3).to_sparse_csr()
    yield torch.ones(2, 3).to_mkldnn()
    yield torch.ones(2, 3, requires_grad=True)
    yield torch.ones(2, 3, dtype=torch.complex64).conj()
    yield torch.ones(2, 3, dtype=torch.complex64).conj().imag
    yield torch.ones(2, dtype=torch.uint8).view(torch.bits8)
    yield torch.ones(2).to(torch.float8_e4m3fn)
    yield torch.quantize_per_tensor(torch.ones(2, 3), 0.1, 0, torch.qint8)
    yield torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    with torch.inference_mode():
        yield torch.ones(2, 3)


def _strides(x: torch.Tensor) -> object:
    return (x.shape, x.stride(), x.storage_offset()) if x.layout == torch.strided and not x.is_nested else object()


_PROPERTIES = {
    Trait.READS_DTYPE: lambda x: x.dtype,
    Trait.READS_RANK: lambda x: x.dim(),
    Trait.READS_SIZES: lambda x: object() if x.is_nested else x.shape,
    Trait.READS_STRIDES: _strides,
    Trait.READS_DEVICE: lambda x: x.device,
    Trait.READS_LAYOUT: lambda x: (x.layout, x.is_nested, x.is_conj(), x.is_neg()),
    Trait.READS_REQUIRES_GRAD: lambda x: x.requires_grad,
    Trait.READS_IDENTITY: id,
}


def _queries_of_one_tensor() -> Iterator[Operator]:
    for kind in sorted(queries_of(*PROPERTY_QUERIES)):
        for operator in REGISTRY.overloads(kind):
            if [argument.type for argument in operator.schema.arguments] == [TensorType()]:
                yield operator


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "operator", list(_queries_of_one_tensor()), ids=lambda operator: operator.schema.qualified_name
)
def test_properties_decide_what_a_query_returns(operator: Operator) -> None:
    known: dict[tuple[object, ...], object] = {}
    for tensor in _tensors():
        key = tuple(_PROPERTIES[trait](tensor) for trait in queried_properties(operator.name))
        try:
            assert operator.operation is not None
            answer = operator.operation(tensor)
        except (RuntimeError, TypeError, NotImplementedError):
            assert Trait.TOTAL not in operator.traits
            continue
        assert known.setdefault(key, answer) == answer


def test_a_query_returns_no_tensor_and_writes_to_nothing() -> None:
    for kind in queries_of(*PROPERTY_QUERIES):
        for operator in REGISTRY.overloads(kind):
            if not any(argument.is_out for argument in operator.schema.arguments):
                assert not operator.schema.is_mutable
                assert not any(isinstance(result.type, TensorType) for result in operator.schema.returns)


def test_queries_of_some_properties_read_no_others() -> None:
    found = queries_of(Trait.READS_DTYPE, Trait.READS_RANK)
    assert {"aten::dim", "prim::dtype", "aten::is_complex", "aten::result_type"} <= found
    assert not found & {"aten::size", "prim::device", "prim::nbytes", "aten::relu"}


def test_elements_are_carried_or_inspected() -> None:
    assert not kinds_with(Trait.CARRIES_ELEMENTS) & kinds_with(Trait.INSPECTS_ELEMENTS)
    for kind in kinds_with(Trait.CARRIES_ELEMENTS) | kinds_with(Trait.INSPECTS_ELEMENTS):
        assert any(_takes_containers(operator) for operator in REGISTRY.overloads(kind)), kind


def _takes_containers(operator: Operator) -> bool:
    types = [argument.type for argument in operator.schema.arguments]
    return any(has_free_variables(type) or isinstance(type, (DictType, ListType)) for type in types)


_DTYPES = (
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.bool),
    *(torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8),
)


def _attempt(function: object, arguments: list[object]) -> object:
    try:
        return function(*arguments).dtype  # type: ignore[operator]
    except Exception as error:
        return str(error)


@pytest.mark.parametrize("kind", sorted(kinds_with(Trait.SAME_DTYPE)))
@pytest.mark.parametrize("autocast", [False, True])
def test_operators_that_keep_the_dtype(kind: str, autocast: bool) -> None:
    """They do, or raise; and the operator that writes to its operand raises then too, with the same text."""
    name = kind.removeprefix("aten::")
    in_place = getattr(torch.ops.aten, f"{name}_", None)
    (operator, *_) = REGISTRY.overloads(kind)
    numbers = [0.5 for argument in operator.schema.arguments[1:] if not argument.has_default]
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        for dtype in _DTYPES:
            found = _attempt(getattr(torch.ops.aten, name), [torch.ones(2, 2, dtype=dtype), *numbers])
            assert found == dtype or isinstance(found, str)
            if in_place is not None:
                assert _attempt(in_place, [torch.ones(2, 2, dtype=dtype), *numbers]) == found


class Limited(torch.nn.Module):
    """A module whose result has the rank of the limit, which is broadcast with the input."""

    limit: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("limit", torch.zeros(2, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.clamp(x, self.limit)
        return y * 2 if y.dim() == 2 else y * 3


def test_a_limit_may_have_more_dimensions_than_what_it_limits() -> None:
    module, x = Limited().eval(), torch.tensor([-1.0, 0.0, 1.0])
    frozen = rekindle.freeze(rekindle.script(module))
    assert torch.equal(frozen(x), module(x))
