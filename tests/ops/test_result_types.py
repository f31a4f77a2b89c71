"""Rules of result types, each beside what PyTorch does with real tensors."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from rekindle.autodiff import backward_operators as backward_operators, operators as operators
from rekindle.ir.operators.registry import REGISTRY
from rekindle.ir.types import TENSOR, TensorType
from rekindle.ops.result_types import PROPERTIES, RULES, result_facts
from rekindle.ops.result_types.dtypes import ORDINARY, promote_types, promoted
from rekindle.ops.result_types.facts import Constant, Fact, Unknown
from tests.versions.differences import NEW_DTYPES, RELEASE, removed_operators

DTYPES = sorted(ORDINARY - {torch.complex32}, key=str)
NUMBERS: tuple[Any, ...] = (True, 3, 0.5, 1j)


def type_of(value: Any) -> Fact:
    return replace(TensorType.of(value), strides=None) if isinstance(value, torch.Tensor) else Constant(value)


def unknown_number(value: Any) -> Unknown:
    return Unknown(type(value).__name__)


# ------------------------------------------------------------------------------------------------------ type promotion


def operands() -> list[Any]:
    tensors = [torch.ones([1] * rank, dtype=dtype) for dtype in DTYPES for rank in (0, 2)]
    return [*tensors, *NUMBERS]


def test_the_smallest_common_dtype() -> None:
    for a, b in itertools.product(ORDINARY, repeat=2):
        assert promote_types(a, b) == torch.promote_types(a, b), (a, b)


@pytest.mark.parametrize("default", [torch.float32, torch.float64])
def test_promotion_of_two_is_that_of_pytorch(default: torch.dtype) -> None:
    before = torch.get_default_dtype()
    torch.set_default_dtype(default)
    try:
        for a, b in itertools.product(operands(), repeat=2):
            expected: torch.dtype | None = torch.result_type(a, b)
            if expected in NEW_DTYPES:
                expected = None  # programs have no such dtype: nothing is known of the result
            assert promoted([type_of(a), type_of(b)], default) == expected, (a, b)
            kinds = [unknown_number(each) if not isinstance(each, torch.Tensor) else type_of(each) for each in (a, b)]
            assert promoted(kinds, default) == expected, (a, b)
    finally:
        torch.set_default_dtype(before)


def test_promotion_without_the_rank_is_what_all_ranks_agree_on() -> None:
    for a, b in itertools.product(DTYPES, repeat=2):
        possible = {
            torch.result_type(torch.ones(shape, dtype=a), torch.ones([1] * rank, dtype=b))
            for shape in ((), (1, 1))
            for rank in (0, 2)
        }
        found = promoted([TensorType(a), TensorType(b)], torch.float32)
        assert found == (possible.pop() if len(possible) == 1 else None), (a, b)


def test_promotion_of_a_number_of_any_kind() -> None:
    for dtype in DTYPES:
        possible = {torch.result_type(torch.ones(1, dtype=dtype), number) for number in NUMBERS}
        found = promoted([TensorType(dtype, None, (1,)), Unknown("number")], torch.float32)
        assert found == (possible.pop() if len(possible) == 1 else None), dtype


def test_promotion_of_three_is_that_of_where_and_addcmul() -> None:
    some = [torch.float16, torch.float32, torch.float64, torch.int64, torch.complex64]
    for dtypes in itertools.product(some, repeat=3):
        for ranks in itertools.product((0, 1), repeat=3):
            a, b, c = (torch.ones([1] * rank, dtype=dtype) for dtype, rank in zip(dtypes, ranks, strict=True))
            check("aten::addcmul", a, b, c, 1)
            check("aten::where.self", a.bool(), b, c)


def test_a_default_dtype_that_is_not_known() -> None:
    ints, floats = TensorType(torch.int64, None, (2,)), TensorType(torch.float16, None, (2,))
    assert promoted([ints, Constant(0.5)], None) is None
    assert promoted([floats, Constant(0.5)], None) == torch.float16  # whatever the default is
    scalars = TensorType(torch.float16, None, ())
    assert promoted([scalars, Constant(0.5)], None) == torch.float16
    assert promoted([ints, Unknown("number")], None) is None
    assert promoted([ints, floats], None) == torch.float16


# ------------------------------------------------------------------------------------------- rules, beside real results


def infer(name: str, arguments: Sequence[Fact]) -> Fact:
    operator = REGISTRY.find(name)
    assert operator is not None, name
    rest = [Constant(argument.default) for argument in operator.schema.arguments[len(arguments) :]]
    found = result_facts(operator.schema, [*arguments, *rest], default_dtype=torch.get_default_dtype())
    return found[0] if found else None


def run(name: str, *arguments: Any) -> Any:
    packet, _, overload = name.removeprefix("aten::").partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")(*arguments)


def check(name: str, *arguments: Any) -> None:
    """Compare the rule with the result, where there is one: what is said holds, for what is known in several ways."""
    try:
        result = run(name, *arguments)
    except (RuntimeError, IndexError, NotImplementedError):
        return
    except TypeError:
        if RELEASE >= (2, 15):  # of numbers that are complex
            return
        raise
    for forget in (lambda t: t, TensorType.with_rank_only, lambda t: replace(t, sizes=None)):
        facts = [forget(type_of(each)) if isinstance(each, torch.Tensor) else type_of(each) for each in arguments]
        found = infer(name, facts)
        assert isinstance(found, TensorType), name
        assert replace(TensorType.of(result), strides=None).is_subtype_of(found), f"{name}{arguments}: not {found}"


UNARY = [
    *("abs", "acos", "angle", "ceil", "deg2rad", "digamma", "erf", "exp", "floor", "frac", "gelu", "i0", "isnan"),
    *("log_sigmoid", "logical_not", "logit", "neg", "reciprocal", "relu", "relu6", "round", "rsqrt", "sgn", "sigmoid"),
    *("sign", "sinc", "sqrt", "square", "tanh", "trunc", "hardswish", "selu", "silu", "softplus", "elu", "celu"),
    *("logcumsumexp", "sum", "prod", "mean", "nansum", "std", "var", "amax", "argmax", "all", "any", "max", "median"),
    *("count_nonzero", "trace", "cumsum", "nan_to_num", "isfinite", "signbit", "mvlgamma", "polygamma"),
]


@pytest.mark.parametrize("name", UNARY)
def test_one_tensor(name: str) -> None:
    more: dict[str, tuple[Any, ...]] = {"cumsum": (0,), "logcumsumexp": (0,), "mvlgamma": (1,)}
    for dtype, shape in itertools.product(DTYPES, [(), (0,), (2,), (1, 3), (2, 0)]):
        value = torch.ones(shape, dtype=dtype)
        arguments = (1, value) if name == "polygamma" else (value, *more.get(name, ()))
        check(f"aten::{name}", *arguments)


BINARY = [
    *("add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor", "maximum", "fmin", "fmod.Tensor", "remainder.Tensor"),
    *("floor_divide", "pow.Tensor_Tensor", "float_power.Tensor_Tensor", "atan2", "hypot", "copysign.Tensor", "gcd"),
    *("logaddexp", "logaddexp2", "xlogy.Tensor", "ldexp.Tensor", "nextafter", "heaviside", "eq.Tensor", "lt.Tensor"),
    *("logical_and", "bitwise_and.Tensor", "bitwise_left_shift.Tensor", "special_zeta", "igamma", "isclose", "kron"),
    *("outer", "inner", "dot", "matmul", "cross", "dist", "l1_loss", "mse_loss", "kl_div", "cosine_similarity"),
    *("pairwise_distance", "soft_margin_loss", "cdist", "complex", "polar", "rsub.Tensor", "clamp_min.Tensor"),
    *("hinge_embedding_loss", "huber_loss", "smooth_l1_loss", "poisson_nll_loss", "masked_fill.Tensor", "lerp.Scalar"),
]


@pytest.mark.parametrize("name", BINARY)
def test_two_tensors(name: str) -> None:
    shapes = [((), ()), ((), (3,)), ((3,), ()), ((3,), (3,)), ((1,), (3,)), ((2, 3), (3,)), ((0, 1), (1, 3))]
    more: dict[str, tuple[Any, ...]] = {"lerp.Scalar": (0.5,), "poisson_nll_loss": (True, False, 1e-8, 0)}
    for a, b in itertools.product(DTYPES, repeat=2):
        for left, right in shapes:
            check(f"aten::{name}", torch.ones(left, dtype=a), torch.ones(right, dtype=b), *more.get(name, ()))
            if name.endswith("_loss") and name != "poisson_nll_loss":
                reduction = {"hinge_embedding_loss": (1.0, 0)}.get(name, (0,))
                check(f"aten::{name}", torch.ones(left, dtype=a), torch.ones(right, dtype=b), *reduction)


@pytest.mark.parametrize("name", ["cat", "stack", "hstack", "vstack", "dstack", "column_stack", "block_diag"])
def test_lists_of_tensors(name: str) -> None:
    shapes = [(), (0,), (1,), (3,), (1, 3), (2, 3), (0, 3), (1, 2, 3)]
    some = [torch.float16, torch.float32, torch.int64]
    for (a, b), (left, right) in itertools.product(
        itertools.product(some, repeat=2), itertools.product(shapes, repeat=2)
    ):
        tensors = [torch.ones(left, dtype=a), torch.ones(right, dtype=b)]
        for dim in (0, 1, -1) if name in ("cat", "stack") else (None,):
            rest = () if dim is None else (dim,)
            try:
                result = run(f"aten::{name}", tensors, *rest)
            except (RuntimeError, IndexError):
                continue
            for forget in (lambda t: t, TensorType.with_rank_only, lambda t: TENSOR if t.rank == 1 else t):
                types = tuple(forget(replace(TensorType.of(each), strides=None)) for each in tensors)
                found = infer(f"aten::{name}", [types, *map(Constant, rest)])
                assert isinstance(found, TensorType)
                assert replace(TensorType.of(result), strides=None).is_subtype_of(found), f"{types} {rest}: {found}"


FEW_SIZES: list[tuple[str, list[Any]]] = [
    ("aten::multi_margin_loss", [torch.rand(5), torch.tensor([1]), 1, 1, None, 0]),
    ("aten::multi_margin_loss", [torch.rand(5), torch.tensor(1), 1, 1, None, 0]),
    ("aten::multi_margin_loss", [torch.rand(2, 5), torch.tensor([1, 2]), 1, 1, None, 0]),
    ("aten::multi_margin_loss", [torch.rand(5), torch.tensor([1]), 1, 1, None, 1]),
    ("aten::mse_loss", [torch.rand(3), torch.rand(3), -1]),
    ("aten::nuclear_norm", [torch.rand(2, 3, 4, 4)]),
    ("aten::nuclear_norm", [torch.rand(2, 3, 4, 4), True]),
    ("aten::nuclear_norm.dim", [torch.rand(2, 3, 4, 4), [0, 1]]),
    ("aten::binomial", [torch.full((2, 3), 4.0), torch.rand(2, 1, 3)]),
    ("aten::combinations", [torch.rand(3), 0]),
    ("aten::combinations", [torch.rand(3), 2]),
    ("aten::cosine_similarity", [torch.rand(2, 3, dtype=torch.float16), torch.rand((), dtype=torch.float64), -1]),
    ("aten::batch_norm", [torch.ones(2, 3).long(), None, None, torch.rand(3), torch.rand(3), False, 0.5, 0.5, True]),
    ("aten::view_copy.dtype", [torch.rand(3, 2), torch.int32]),
    ("aten::view_copy", [torch.rand(3, 2), [2, -1]]),
]


@pytest.mark.parametrize(("name", "arguments"), FEW_SIZES)
def test_samples_that_pytorch_lacks(name: str, arguments: list[Any]) -> None:
    check(name, *arguments)


# ----------------------------------------------------------------------------------------------------------- the tables


def test_every_rule_is_of_an_operator() -> None:
    unknown = {kind for kind in (*RULES, *PROPERTIES) if not REGISTRY.overloads(kind)}
    assert unknown == removed_operators()


def test_dtypes_that_rules_do_not_know_have_unknown_results() -> None:
    """The sigmoid of a quantized tensor is quantized, that of integers is not."""
    assert infer("aten::sigmoid", [TensorType(torch.quint8)]) is None


def test_an_operator_without_a_rule() -> None:
    assert infer("aten::_make_dual", [TENSOR, TENSOR, Constant(0)]) is None


# ---------------------------------------------------------------------------------------------------------- the process

JVP = """
import torch

import rekindle


def f(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    q = x @ w
    y = torch.softmax(q @ q.t() / 2.0, -1) @ x
    return torch.nn.functional.layer_norm(y, (4,)).tanh().pow(3).sum()


torch.manual_seed(0)
x, w = torch.randn(3, 4), torch.randn(4, 4)
ours = rekindle.jvp(f, argnums=(0, 1))(x, w, (torch.ones(3, 4), torch.ones(4, 4)))
theirs = torch.func.jvp(f, (x, w), (torch.ones(3, 4), torch.ones(4, 4)))
for a, b in zip(ours, theirs):
    torch.testing.assert_close(a, b)
print("done")
"""


def test_forward_derivatives_of_a_norm_do_not_crash_the_process(tmp_path: Path) -> None:
    """Type propagation called ``native_layer_norm_backward`` with statistics of sizes that do not fit: SIGSEGV."""
    (tmp_path / "program.py").write_text(JVP, encoding="utf-8")
    command = [sys.executable, str(tmp_path / "program.py")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr


def test_take_along_dim_of_an_unknown_dim_may_flatten() -> None:
    operator = REGISTRY.overloads("aten::take_along_dim")[0]
    x, indices = (TensorType(dtype, torch.device("cpu"), (3, 4)) for dtype in (torch.float32, torch.int64))
    (unknown,) = result_facts(operator.schema, [x, indices, None], default_dtype=torch.float32)
    (flat,) = result_facts(operator.schema, [x, indices, Constant(None)], default_dtype=torch.float32)
    assert isinstance(unknown, TensorType)
    assert isinstance(flat, TensorType)
    assert unknown.sizes is None
    assert flat.sizes == (12,)
