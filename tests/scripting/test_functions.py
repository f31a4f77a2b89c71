"""Functions: the names they see, the decorators on them, overloads, what they call."""

import cmath
import contextlib
import functools
import math
from typing import Dict, List, NamedTuple, Optional, Tuple, Union

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import rekindle
from rekindle.errors import ArgumentError
from rekindle.ir.types import INT, STRING, TENSOR, ListType, optional
from rekindle.scripting.callables import overloads
from tests.support.equality import assert_same

LIMIT = 4
SCALES = (1.0, 2.0)
NAMES = ["a", "b"]
DTYPE = torch.float64
DEVICE = torch.device("cpu")


def uses_globals(x: torch.Tensor) -> Tuple[torch.Tensor, float, str]:
    y = x.to(DTYPE).to(device=DEVICE)
    for _ in range(LIMIT):
        y = y + 1
    total = 0.0
    for scale in SCALES:
        total += scale
    return y, total + math.pi, NAMES[1]


def test_globals_are_constants():
    y, total, name = rekindle.script(uses_globals)(torch.ones(2))
    assert torch.equal(y, torch.full((2,), 5.0, dtype=torch.float64))
    assert (total, name) == (3.0 + math.pi, "b")


def test_closed_over_names():
    power = 3

    def cube(x):
        return x**power

    def f(x, n: int = power):
        return cube(x) + n

    assert torch.equal(rekindle.script(f)(torch.full((2,), 2.0)), torch.full((2,), 11.0))


def test_a_users_own_name_wins_over_a_builtin():
    def sum(x):
        return x.sum() * 100

    def f(x):
        return sum(x)

    assert rekindle.script(f)(torch.ones(2)).item() == 200


shorter = len


def test_builtins_under_other_names():
    def f(xs: List[int]) -> int:
        return shorter(xs)

    assert rekindle.script(f)([1, 2]) == 2


class Pair(NamedTuple):
    left: torch.Tensor
    right: Optional[int] = None


def make_pair(x) -> Pair:
    return Pair(left=x)


def test_named_tuples_come_back_as_their_class():
    pair = rekindle.script(make_pair)(torch.ones(1))
    assert isinstance(pair, Pair)
    assert pair.right is None


def test_local_classes_in_annotations():
    class Local(NamedTuple):
        n: int

    def f(pair: Local) -> int:
        return pair.n + 1

    assert rekindle.script(f)(Local(2)) == 3

    def g(pairs: List[Local]) -> List[Local]:
        found: List[Local] = []
        for pair in pairs:
            found.append(pair)
        return found

    assert rekindle.script(g)([Local(1)]) == [Local(1)]


def commented(x, n, names):
    # type: (Tensor, Optional[int], List[str]) -> Tuple[Tensor, int]
    return x, len(names) if n is None else n


def test_type_comments():
    scripted = rekindle.script(commented)
    assert [argument.type for argument in scripted.schema.arguments] == [TENSOR, optional(INT), ListType(STRING)]
    assert scripted(torch.ones(1), None, ["a"])[1] == 1


def new_style(x: torch.Tensor, n: int | None, table: dict[str, list[int]]) -> tuple[torch.Tensor, int]:
    return x * len(table), n if n is not None else 0


def test_builtin_generics_and_unions():
    assert str(rekindle.script(new_style).schema) == (
        "new_style(Tensor x, int? n, Dict(str, int[]) table) -> ((Tensor, int))"
    )


# ---------------------------------------------------------------------------------------------------------- decorators


@rekindle.script
def decorated(x):
    return x + 1


def calls_decorated(x):
    return decorated(x) * 2


def test_compiled_functions_are_called():
    assert torch.equal(rekindle.script(calls_decorated)(torch.ones(1)), torch.full((1,), 4.0))


def passes_through(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


@passes_through
def wrapped(x, n: int):
    return x * n + LIMIT


def test_decorated_functions_are_compiled_without_their_decorators():
    scripted = rekindle.script(wrapped)
    assert torch.equal(scripted(torch.ones(1), 2), torch.full((1,), 6.0))
    assert scripted.graph is not rekindle.script(wrapped.__wrapped__).graph


@torch.no_grad()
def frozen(x, n: int):
    if n > 2:
        return x * 2
    return x * n


@torch.enable_grad()
@torch.no_grad()
def inner_counts(x):
    return x * 2


@torch.set_grad_enabled(False)
def switched_off(x):
    return x * 2


@torch.inference_mode()
def inferred(x):
    return x * 2


def test_gradient_mode_decorators_count():
    x = torch.ones(2, requires_grad=True)
    assert not rekindle.script(frozen)(x, 3).requires_grad
    assert not rekindle.script(inner_counts)(x).requires_grad
    assert not rekindle.script(switched_off)(x).requires_grad
    assert rekindle.script(inferred)(x).is_inference()
    assert (x * 2).requires_grad


@torch.autocast("cpu", dtype=torch.bfloat16)
def reduced(x):
    return x @ x


@torch.autocast("cpu", enabled=False)
def not_reduced(x):
    return x @ x


def calls_reduced(x):
    with torch.autocast("cpu"):
        return reduced(x), not_reduced(x), x @ x


@torch.autograd.profiler.record_function("profiled")
def profiled(x):
    return x + 1


def test_autocast_decorators_count():
    x = torch.ones(2, 2)
    assert rekindle.script(reduced)(x).dtype == torch.bfloat16
    scripted = rekindle.script(calls_reduced)
    assert [y.dtype for y in scripted(x)] == [torch.bfloat16, torch.float32, torch.bfloat16]
    assert torch.equal(rekindle.script(profiled)(x), x + 1)


@torch.random.fork_rng(devices=[])
@torch.no_grad()
def forked(x):
    return x * torch.rand(2)


@sdpa_kernel([SDPBackend.MATH])
def attended(x):
    return F.scaled_dot_product_attention(x, x, x)


def test_decorators_of_functions_that_make_context_managers_count():
    x = torch.ones(2, requires_grad=True)
    scripted = rekindle.script(forked)
    torch.manual_seed(3)
    expected = forked(x)
    for _ in range(4):  # each call leaves the state of the generator as it was
        found = scripted(x)
        assert torch.equal(found, expected)
        assert not found.requires_grad


def test_a_decorator_selects_the_implementation_of_attention():
    x = torch.randn(1, 3, 4)
    with torch.profiler.profile() as profile:
        found = rekindle.script(attended)(x)
    assert "aten::_scaled_dot_product_attention_math" in {event.key for event in profile.key_averages()}
    torch.testing.assert_close(found, attended(x))


@functools.singledispatch
def size_of(x):
    return 0


@size_of.register(int)
def _(x):
    return 1


@torch.vmap
def sums(x):
    return x.sum()


@contextlib.contextmanager
def quietly():
    yield


@quietly()
def silenced(x):
    return x + 1


def calls_size(n: int):
    return size_of(n)


@pytest.mark.parametrize(
    ("function", "module"), [(sums, "torch._functorch.apis"), (silenced, "contextlib"), (size_of, "functools")]
)
def test_decorators_that_only_python_can_run_are_rejected(function, module):
    message = (
        f"the function '{function.__name__}' has a decorator of {module}, which only Python can run\n"
        "Hint: compile the function without the decorator, or call it in a function marked with @ignore"
    )
    with pytest.raises(rekindle.errors.NotScriptableError) as caught:
        rekindle.script(function)
    assert str(caught.value) == message
    assert caught.value.hint is not None


def test_a_call_of_a_function_that_only_python_can_run_is_rejected_at_its_place():
    with pytest.raises(rekindle.errors.NotScriptableError, match=r"return size_of\(n\)\n +\^"):
        rekindle.script(calls_size)


def differentiates(x):
    return rekindle.grad(cubes)(x)


def maps(x):
    return rekindle.vmap(lambda each: each * 2)(x)


def cubes(x):
    return (x**3).sum()


derivative = rekindle.grad(cubes)


def calls_derivative(x):
    return derivative(x)


@pytest.mark.parametrize(("function", "called"), [(differentiates, "grad"), (maps, "vmap")])
def test_what_works_on_programs_cannot_be_called_in_them(function, called):
    with pytest.raises(rekindle.errors.NotScriptableError) as caught:
        rekindle.script(function)
    first, *_, hint = str(caught.value).splitlines()
    assert first == f"'rekindle.{called}' cannot be called within a program"
    assert hint == "Hint: call it outside of the program, which can call the function that it returns"


def test_what_was_made_of_programs_can_be_called_in_them():
    x = torch.tensor([1.0, 2.0])
    assert torch.equal(rekindle.script(calls_derivative)(x), 3 * x**2)


def with_statements(x, mode: bool):
    with torch.no_grad():
        a = x * 2
        with torch.enable_grad():
            b = x * 2
    with torch.set_grad_enabled(mode):
        c = x * 2
    with torch.autocast("cpu", dtype=torch.bfloat16):
        d = x @ x
    with torch.autograd.profiler.record_function("inside"):
        e = x + 1
    return a, b, c, d, e


@pytest.mark.parametrize("mode", [True, False])
def test_context_managers(mode):
    x = torch.ones(2, 2, requires_grad=True)
    a, b, c, d, e = rekindle.script(with_statements)(x, mode)
    assert [t.requires_grad for t in (a, b, c, e)] == [False, True, mode, True]
    assert d.dtype == torch.bfloat16


# ------------------------------------------------------------------------------------------------------ what is called


def number_functions(x: float, n: int, z: complex):
    return (
        math.ceil(x), math.floor(x), math.sqrt(x), math.gcd(n, 12), math.isfinite(x), math.copysign(x, -1.0),
        cmath.phase(z), math.hypot(x, 2.0) if False else math.log(x, 2.0),
    )  # fmt: skip


def test_functions_of_math():
    result = rekindle.script(number_functions)(2.5, 18, 1 + 2j)
    assert result == number_functions(2.5, 18, 1 + 2j)


def tensor_functions(x):
    y = torch.add(x, x, alpha=2)
    z = torch.special.erf(y) + torch.fft.fft(x).real + F.gelu(x) + torch.linalg.norm(x)
    return torch.ops.aten.relu(z) + torch.ops.aten.mul.Tensor(x, x) + torch._VF.tanh(x) + torch.Tensor.neg(x)


def test_functions_of_torch():
    x = torch.randn(4)
    torch.testing.assert_close(rekindle.script(tensor_functions)(x), tensor_functions(x))


def einsum_and_friends(x):
    a, b = torch.split(x, 1)
    return (
        torch.einsum("ij,kj->ik", x, x),
        torch.norm(x),
        torch.cdist(x, x),
        torch.stack([a, b]),
        torch.tensordot(x, x, 2),
    )


def test_functions_of_torch_written_in_python():
    x = torch.randn(2, 3)
    for actual, expected in zip(rekindle.script(einsum_and_friends)(x), einsum_and_friends(x)):
        torch.testing.assert_close(actual, expected)


def pools(x):
    a = F.max_pool2d(x, 2)
    b, where = F.max_pool2d(x, 2, return_indices=True)
    return a, b, where, F.adaptive_avg_pool2d(x, (None, 2)), F.adaptive_max_pool2d(x, [1, 2])


def test_functions_chosen_by_a_boolean_argument():
    x = torch.randn(1, 2, 4, 4)
    for actual, expected in zip(rekindle.script(pools)(x), pools(x)):
        torch.testing.assert_close(actual, expected)


def resize(x, size: List[int]):
    return F.interpolate(x, size=size, mode="nearest"), F.interpolate(x, scale_factor=2.0), F.interpolate(x, 3)


def test_overloads_that_torch_declares():
    x = torch.randn(1, 1, 4, 4)
    for actual, expected in zip(rekindle.script(resize)(x, [2, 2]), resize(x, [2, 2])):
        torch.testing.assert_close(actual, expected)


@torch.jit._overload
def either(x: int) -> int: ...


@torch.jit._overload
def either(x: torch.Tensor) -> torch.Tensor: ...  # noqa: F811


def either(x):  # noqa: F811
    return x + x


def calls_either(x):
    return either(x) * either(3)


def test_overloads_of_the_user():
    assert torch.equal(rekindle.script(calls_either)(torch.ones(1)), torch.full((1,), 12.0))


@torch.jit._overload  # what the decorators and the lines between say does not matter
# nor what comments do
def doubled(x: int, times: int = 2) -> int: ...


@torch.jit._overload
def doubled(x: Optional[torch.Tensor], times: int = 2) -> Optional[torch.Tensor]: ...  # noqa: F811


def doubled(x, times=2):  # noqa: F811
    return None if x is None else x * times


def test_overloads_that_torch_jit_has_forgotten(monkeypatch):
    """It compiled the function before anything of the package saw the declarations."""
    name = f"__torch__.{__name__}.doubled"
    assert torch._jit_internal._overloaded_fns.pop(name)
    monkeypatch.setattr(overloads, "_declared", {})
    scripted = rekindle.script(doubled)
    assert [str(overload.schema) for overload in scripted.overloads] == [
        "doubled(int x, int times=2) -> int",
        "doubled(Tensor? x, int times=2) -> Tensor?",
    ]
    assert (scripted(3), scripted(3, 4), scripted(None)) == (6, 12, None)
    assert torch.equal(scripted(torch.ones(1)), torch.full((1,), 2.0))


def test_overloaded_functions_from_python():
    scripted = rekindle.script(either)
    assert scripted(3) == 6
    assert torch.equal(scripted(torch.ones(1)), torch.full((1,), 2.0))
    assert [str(overload.schema) for overload in scripted.overloads] == [
        "either(int x) -> int",
        "either(Tensor x) -> Tensor",
    ]
    with pytest.raises(ArgumentError, match="the arguments fit none of the overloads"):
        scripted("a")


def limits(x):
    masked = torch.where(x > 0, x, torch.finfo(x.dtype).min)
    known = torch.finfo(torch.float16).max
    return masked, known, torch.iinfo(torch.int32).max, torch.finfo(x.dtype).eps, torch.finfo().bits


def test_limits_of_dtypes():
    scripted = rekindle.script(limits)
    for dtype in (torch.float32, torch.float64):
        x = torch.randn(3, dtype=dtype)
        assert_same(scripted(x), limits(x))
    assert len(scripted.graph.find_nodes("prim::PythonOp")) == 2, "what is known while compiling is a constant"


class Refusal(ValueError):
    """An exception of the user."""


def raises(n: int) -> int:
    if n < 0:
        raise Refusal("negative")
    return n


def test_exceptions_of_the_user():
    assert rekindle.script(raises)(1) == 1
    with pytest.raises(Refusal, match="negative"):
        rekindle.script(raises)(-1)


@torch.jit.ignore
def in_python(x: torch.Tensor, names: List[str], n: int = 2) -> Dict[str, torch.Tensor]:
    return {name: x * n for name in names}


def calls_python(x):
    return in_python(x, ["a"])["a"] + in_python(x, n=3, names=["b"])["b"]


def test_ignored_functions_are_called_in_python():
    assert torch.equal(rekindle.script(calls_python)(torch.ones(1)), torch.full((1,), 5.0))


def asks_the_compiler(x: Union[int, str, List[int]]) -> str:
    if torch.jit.is_scripting() and not torch.jit.is_tracing():
        if torch.jit.isinstance(x, List[int]):
            return "list" + str(x[0])
        if isinstance(x, int):
            return "int" + str(x + 1)
        return "str"
    return "eager"


def test_questions_to_the_compiler():
    scripted = rekindle.script(asks_the_compiler)
    assert (scripted([7]), scripted(7), scripted("x")) == ("list7", "int8", "str")
    assert asks_the_compiler(7) == "eager"


def annotated(n: int) -> Tuple[List[int], Optional[str]]:
    xs = torch.jit.annotate(List[int], [])
    ys = rekindle.annotate(Optional[str], None)
    for i in range(n):
        xs.append(i)
    return xs, ys


def test_annotate():
    assert rekindle.script(annotated)(2) == ([0, 1], None) == annotated(2)


def counted(x, *args):
    # type: (int, *int) -> int
    return x + len(args)


def test_types_in_comments_of_variable_arguments():
    def calls(n: int) -> Tuple[int, int]:
        return counted(n), counted(n, 1, 2)

    assert rekindle.script(calls)(3) == calls(3) == (3, 5)
