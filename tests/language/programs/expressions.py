"""Expressions: numbers, math, complex numbers, comparison, logic, conversions."""

import cmath
import math
from typing import Dict, List, Optional, Tuple

import torch
from torch import Tensor

from rekindle.errors import UnsupportedError
from tests.language.corpus import program, refused


@program("int.arithmetic", (7, 3), (-7, 3))
def int_arithmetic(a: int, b: int) -> Tuple[int, int, int, int, int, float]:
    return a + b, a - b, a * b, a // b, a % b, a / b


@program("int.negative_divisor", (7, -3), (-7, -2))
def int_negative_divisors(a: int, b: int) -> Tuple[int, int, Tuple[int, int]]:
    return a // b, a % b, divmod(a, b)


@program("float.arithmetic", (7.5, 2.0), (-7.5, 2.0))
def float_arithmetic(a: float, b: float) -> Tuple[float, float, float, float, float, float]:
    return a + b, a - b, a * b, a / b, a // b, a % b


@program("float.mixed", (7, 2.5), (-3, 0.5))
def mixed_arithmetic(a: int, b: float) -> Tuple[float, float, float, float, float, bool]:
    return a + b, b - a, a * b, a / b, a // b, a > b


@program("int.pow", (2.0, 3), (-1.5, -2))
def powers(x: float, n: int) -> Tuple[float, float]:
    return x**n, pow(x, n)


@program("int.pow_constant", (3,), (-7,), torch="refuses")
def power_of_ints(n: int) -> int:
    return n**2


@program("int.bits", (12, 10), (-5, 3))
def int_bits(a: int, b: int) -> Tuple[int, int, int, int, int]:
    return a & b, a | b, a ^ b, a << 2, a >> 1


@program("int.invert", (12,), (-5,), torch="refuses")
def int_invert(n: int) -> int:
    return ~n


@program("int.unary", (5,), (-5,))
def unary(n: int) -> Tuple[int, int, bool]:
    return -n, abs(n), not n


@program("int.plus", (5,), (-5,), torch="refuses")
def unary_plus(n: int) -> int:
    return +n


@program("bool.arithmetic", (True, False), (True, True))
def bool_arithmetic(a: bool, b: bool) -> Tuple[int, int]:
    return a + b, a * b


@program("bool.bits", (True, False), (True, True))
def bool_bits(a: bool, b: bool) -> Tuple[bool, bool, bool]:
    return a & b, a | b, a ^ b


@program("compare.chain", (1, 2, 3), (3, 2, 1))
def chained_comparison(a: int, b: int, c: int) -> Tuple[bool, bool]:
    return a < b < c, a <= b == b


@program("compare.numbers", (1, 1.0), (2, -1.5))
def compare_numbers(a: int, b: float) -> Tuple[bool, bool, bool, bool, bool, bool]:
    return a == b, a != b, a < b, a <= b, a > b, a >= b


@program("compare.is_none", (None,), (1,))
def is_none(x: Optional[int]) -> Tuple[bool, bool]:
    return x is None, x is not None


@program("compare.in", (2, [1, 2]), (5, []))
def in_list(n: int, xs: List[int]) -> Tuple[bool, bool]:
    return n in xs, n not in xs


@program("logic.short_circuit", ([],), ([3],))
def short_circuit(xs: List[int]) -> Tuple[bool, bool]:
    return len(xs) > 0 and xs[0] > 1, len(xs) == 0 or xs[0] < 1


@program("logic.not", (True, 0), (False, 5))
def logic_not(a: bool, n: int) -> Tuple[bool, bool]:
    return not a, not n


@program("logic.values", (0, 3), (2, 5), torch="differs")
def logic_of_values(a: int, b: int) -> Tuple[int, int]:
    return a or b, a and b


@program("expression.ternary", (1,), (-1,))
def ternary(n: int) -> Tuple[str, float]:
    return "positive" if n > 0 else "other", 1.0 if n == 1 else 2.5


@program("expression.walrus", (1,), (7,), torch="refuses")
def walrus(n: int) -> int:
    if (m := n * 2) > 5:
        return m
    return -m


@program("convert.numbers", (3.7, 5, True), (-3.7, 0, False))
def conversions(f: float, n: int, b: bool) -> Tuple[int, float, bool, int, float, bool]:
    return int(f), float(n), bool(n), int(b), float(b), bool(f)


@program("convert.tensor", (torch.tensor(3),), (torch.tensor(2.5),))
def conversions_of_tensors(x: Tensor) -> Tuple[int, float, bool]:
    return int(x), float(x), bool(x)


@program("convert.item", (torch.tensor(3),), (torch.tensor(7),))
def item(x: Tensor) -> Tuple[int, float]:
    n = int(x.item())
    return n, float(x.item())


@program("convert.inf", ("inf",), ("-inf",))
def infinities(s: str) -> Tuple[float, bool, bool]:
    x = float(s)
    return x, math.isinf(x), math.isnan(x - x)


@program("builtin.round", (2.5,), (-0.7,), torch="refuses")
def rounding(x: float) -> int:
    return round(x)


@program("builtin.round_digits", (2.675, 2), (12345.5, -2), torch="refuses")
def rounding_to_digits(x: float, n: int) -> float:
    return round(x, n)


@program("builtin.min_max", (3, 2.5), (-1, 4.0))
def min_max(a: int, b: float) -> Tuple[int, float, int, float]:
    return min(a, 2), max(b, 1.0), max(a, 1, 2), min(b, -1.0, 5.0)


@program("builtin.abs_sum", (-3, [1.5, 2.5]), (0, [0.0]))
def abs_sum(n: int, xs: List[float]) -> Tuple[int, float, float]:
    return abs(n), abs(-1.5), sum(xs)


@program("builtin.abs_sum", ([],), ([1.5],), torch="differs")
def sum_of_no_floats(xs: List[float]) -> float:
    return sum(xs)


@program("builtin.divmod", (7, 3), (-7, 3))
def divmods(a: int, b: int) -> Tuple[int, int]:
    return divmod(a, b)


@program("builtin.len", ([1], {"a": 1}, "abc", torch.ones(2, 3)), ([], {}, "", torch.ones(1)))
def lengths(a: List[int], b: Dict[str, int], c: str, d: Tensor) -> Tuple[int, int, int, int]:
    return len(a), len(b), len(c), len(d)


@program("builtin.range", (5,), (0,))
def ranges(n: int) -> Tuple[List[int], List[int]]:
    return list(range(n)), [i for i in range(n, 0, -2)]


@program("builtin.range_value", (3,), (-2,), torch="refuses")
def length_of_range(n: int) -> int:
    return len(range(n))


@program("builtin.hash", ("a", 1), ("b", 2))
def hashes(s: str, n: int) -> bool:
    return hash(n) == n


@program("builtin.getattr", (torch.ones(2),), (torch.zeros(1),))
class GetattrOfModule(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1) * 2)

    def forward(self, x: Tensor) -> Tensor:
        if hasattr(self, "bias"):
            return x
        return x * self.weight + getattr(self, "missing", 5)


@program("builtin.map", ([1, -2],), ([],), torch="refuses")
def mapped(xs: List[int]) -> List[int]:
    return list(map(abs, xs))


@program("builtin.filter", ([1, 0, -2],), ([],), torch="refuses")
def filtered(xs: List[int]) -> List[int]:
    return list(filter(bool, xs))


@program("builtin.set", ([1, 2, 1],), ([],), torch="refuses")
def sets(xs: List[int]) -> int:
    return len(set(xs))


@program("math.rounding", (2.5,), (-2.5,))
def math_rounding(x: float) -> Tuple[int, int, float, float]:
    return math.floor(x), math.ceil(x), math.fabs(x), math.copysign(3.0, x)


@program("math.exponential", (2.5,), (0.5,))
def math_exponential(x: float) -> Tuple[float, float, float, float, float, float]:
    return math.exp(x), math.expm1(x), math.log(x), math.log10(x), math.log1p(x), math.sqrt(x)


@program("math.others", (0.3,), (8.0,), torch="refuses")
def math_log2(x: float) -> float:
    return math.log2(x)


@program("math.others", (0.3, -4.0), (3.0, 4.0), torch="refuses")
def math_hypot(x: float, y: float) -> float:
    return math.hypot(x, y)


@program("math.trunc", (2.5,), (-0.5,), torch="refuses")
def math_trunc(x: float) -> int:
    return math.trunc(x)


@program("math.others", ([0.1] * 10,), ([],), torch="refuses")
def math_fsum(xs: List[float]) -> float:
    return math.fsum(xs)


@program("math.trigonometry", (0.5,), (-0.25,))
def math_trigonometry(x: float) -> Tuple[float, float, float, float, float, float, float]:
    return math.sin(x), math.cos(x), math.tan(x), math.asin(x), math.acos(x), math.atan(x), math.atan2(x, 2.0)


@program("math.hyperbolic", (0.5,), (-0.25,))
def math_hyperbolic(x: float) -> Tuple[float, float, float, float, float]:
    return math.sinh(x), math.cosh(x), math.tanh(x), math.asinh(x), math.atanh(x)


@program("math.integers", (12, 18), (7, 0))
def math_integers(a: int, b: int) -> Tuple[int, int]:
    return math.gcd(a, b), math.factorial(a)


@program("math.special", (2.5,), (0.5,))
def math_special(x: float) -> Tuple[float, float, float, float]:
    return math.gamma(x), math.lgamma(x), math.erf(x), math.erfc(x)


@program("math.parts", (2.5,), (-0.75,))
def math_parts(x: float) -> Tuple[Tuple[float, float], Tuple[float, int], float, float]:
    return math.modf(x), math.frexp(x), math.ldexp(x, 3), math.fmod(x, 0.5)


@program("math.angles", (90.0,), (-45.0,))
def math_angles(x: float) -> Tuple[float, float]:
    return math.radians(x), math.degrees(x)


@program("math.constants", (2.0,), (-1.0,))
def math_constants(x: float) -> Tuple[float, float, bool, bool]:
    return x * math.pi, x * math.e, x < math.inf, math.isnan(math.nan)


@program("math.tests", (2.0,), (float("nan"),))
def math_tests(x: float) -> Tuple[bool, bool, bool]:
    return math.isnan(x), math.isinf(x), math.isfinite(x)


@program("math.domain", (-1.0,), (0.0,), torch="differs")
def math_domain_errors(x: float) -> Tuple[float, float]:
    return math.sqrt(x), math.log(x)


@program("math.overflow", (1000.0,), (1.0,), torch="differs")
def math_overflow(x: float) -> float:
    return math.exp(x)


@program("math.pow", (2.0, 3.0), (-8.0, 2.0))
def math_pow(x: float, y: float) -> float:
    return math.pow(x, y)


@program("complex.literal", (1.5,), (-2.0,))
def complex_literals(x: float) -> Tuple[complex, complex, complex]:
    return 2j, complex(x, 1.0), 1 + 2j


@program("complex.arithmetic", (1 + 2j, 0.5 - 1j), (2j, 1 + 0j))
def complex_arithmetic(a: complex, b: complex) -> Tuple[complex, complex, complex, complex, complex]:
    return a + b, a - b, a * b, a / b, -a


@program("complex.mixed", (1 + 2j, 2, 0.5), (-1j, -1, 2.0))
def complex_mixed(z: complex, n: int, x: float) -> Tuple[complex, complex, complex]:
    return z + n, x * z, n - z


@program("complex.mixed_division", (1 + 2j, 0.5), (-1j, 2.0), torch="refuses")
def complex_divided(z: complex, x: float) -> complex:
    return z / x


@program("complex.mixed_division", (1 + 2j, 3, 0.5), (-1j, -2, 2.0), torch="refuses")
def complex_in_division(z: complex, n: int, x: float) -> Tuple[complex, complex]:
    return n / z, x / (z + 1)


@program("complex.attributes", (1 + 2j,), (-0.5j,), torch="refuses")
def complex_attributes(z: complex) -> Tuple[float, float]:
    return z.real, z.imag


@program("complex.conjugate", (1 + 2j,), (-0.5j,), torch="refuses")
def complex_conjugate(z: complex) -> complex:
    return z.conjugate()


@program("complex.abs", (3 + 4j,), (-0.5j,))
def complex_abs(z: complex) -> Tuple[float, bool, bool]:
    return abs(z), z == 3 + 4j, z != 1j


@program("complex.cmath", (1 + 2j,), (0.5 - 0.25j,))
def complex_cmath(z: complex) -> Tuple[complex, complex, complex, complex, complex]:
    return cmath.sqrt(z), cmath.exp(z), cmath.log(z), cmath.sin(z), cmath.cos(z)


@program("complex.cmath", (1 + 2j,), (0.5 - 0.25j,))
def complex_more_cmath(z: complex) -> Tuple[complex, complex, complex, complex]:
    return cmath.tan(z), cmath.sinh(z), cmath.cosh(z), cmath.atan(z)


@program("complex.polar", (1 + 2j,), (-0.5j,), torch="refuses")
def complex_polar(z: complex) -> Tuple[float, Tuple[float, float]]:
    return cmath.phase(z), cmath.polar(z)


@program("complex.polar", (1 + 2j,), (-0.5j,))
def complex_phase(z: complex) -> float:
    return cmath.phase(z)


@program("complex.polar", (1.0, 2.0), (0.0, -0.5))
def complex_rect(r: float, phi: float) -> complex:
    return cmath.rect(r, phi)


@program("complex.tensor", (1 + 2j, torch.ones(2)), (-0.5j, torch.zeros(1)))
def complex_tensors(z: complex, x: Tensor) -> Tuple[Tensor, Tensor]:
    y = x * z
    return y.real, y.imag


@program("complex.list", ([1j, 2 + 1j],), ([],))
def complex_list(zs: List[complex]) -> complex:
    total = 0j
    for z in zs:
        total += z
    return total


@program("tensor.methods", (torch.arange(6.0).reshape(2, 3),), (torch.zeros(1, 2),))
def tensor_methods(x: Tensor) -> Tuple[Tensor, Tensor, List[int], int]:
    return x.sum(dim=0), x.relu().t(), x.shape, x.size(1)


@program("tensor.attributes", (torch.ones(2, 3),), (torch.zeros(1),))
def tensor_attributes(x: Tensor) -> Tuple[int, bool, bool, List[int], int]:
    return x.ndim, x.requires_grad, x.is_cuda, list(x.shape), x.numel()


@program("tensor.dtype_device", (torch.ones(2),), (torch.zeros(1, dtype=torch.float64),))
def tensor_dtype_device(x: Tensor) -> Tuple[bool, bool, str, Tensor]:
    return x.dtype == torch.float32, x.device.type == "cpu", str(x.device), x.to(torch.int64)


@program("tensor.cuda", (torch.ones(2),), (torch.zeros(1),), torch="refuses")
def tensor_cuda(x: Tensor) -> Tuple[Tensor, bool, bool]:
    device = torch.device("cuda:0") if torch.cuda.is_available() else torch.device("cpu")
    if torch.cuda.device_count() > 0:
        s = torch.cuda.Stream(device)
        s.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(s):
            x = x + 1
        torch.cuda.current_stream(device).wait_stream(s)
    return x, x.is_cuda, torch.is_autocast_enabled("cuda")


@program(
    "tensor.index", (torch.arange(12.0).reshape(3, 4), torch.tensor([0, 2])), (torch.ones(3, 2), torch.tensor([1]))
)
def tensor_indexing(x: Tensor, i: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    return x[i], x[0, 1:], x[x > 1], x[..., 0]


@program("tensor.index_assign", (torch.zeros(3, 4),), (torch.ones(2, 2),))
def tensor_index_assign(x: Tensor) -> Tensor:
    x[0] = 5
    x[:, 1] += 2
    x[x > 6] = -1
    return x


@program("tensor.operators", (torch.ones(2), torch.ones(2) * 3), (torch.zeros(1), torch.ones(2)))
def tensor_operators(x: Tensor, y: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    return x + y, 2 - x, x * y, y / 2, y // 2, x**2


@program("tensor.matmul", (torch.ones(2, 3), torch.ones(3, 2)), (torch.ones(1, 2), torch.ones(2, 4)))
def tensor_matmul(x: Tensor, y: Tensor) -> Tensor:
    return x @ y


@program("tensor.compare", (torch.ones(2), torch.ones(2) * 3), (torch.zeros(1), torch.ones(2)))
def tensor_comparison(x: Tensor, y: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    return x < y, x == y, ~(x > 0), (x < 1) | (y > 2)


@program("tensor.factories", (2,), (0,))
def tensor_factories(n: int) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    return torch.zeros(n), torch.tensor([1.0, 2.0]), torch.full([n], 3), torch.arange(n, dtype=torch.float32)


@program("tensor.inplace", (torch.ones(2),), (torch.zeros(1),))
def tensor_inplace(x: Tensor) -> Tuple[Tensor, Tensor]:
    y = x.view(-1)
    y.add_(1).mul_(2)
    return x, y


@program("tensor.functional", (torch.arange(4.0).reshape(2, 2) - 1,), (torch.zeros(1, 2),))
def functional(x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    return torch.nn.functional.relu(x), torch.nn.functional.softmax(x, dim=1), torch.sigmoid(x)


@program("tensor.multiple_results", (torch.tensor([3.0, 1.0, 2.0]),), (torch.tensor([5.0]),))
def multiple_results(x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    values, indices = torch.sort(x)
    return values, indices, torch.max(x, 0)[1]


@program("tensor.named_results", (torch.tensor([3.0, 1.0, 2.0]),), (torch.tensor([5.0]),))
def named_results(x: Tensor) -> Tuple[Tensor, Tensor]:
    found = torch.sort(x, descending=True)
    return found.values, found.indices


@program("expression.set_literal", (1,), (2,), torch="refuses")
def set_literal(n: int) -> int:
    return len({n, 1})


@program("expression.set_comprehension", (3,), (0,), torch="refuses")
def set_comprehension(n: int) -> int:
    return len({i for i in range(n)})


@program("expression.generator", (4,), (0,))
def generator_expression(n: int) -> int:
    return sum(i for i in range(n))


@refused("expression.yield", UnsupportedError, "Generators ('yield') are not supported.")
def yield_expression(n: int) -> int:
    m = yield n
    return m


@refused("expression.await", UnsupportedError, "Asynchronous functions are not supported.")
async def await_expression(n: int) -> int:
    return await n


@refused("expression.bytes", UnsupportedError, "Byte strings are not supported.")
def bytes_literal(n: int) -> int:
    return len(b"abc")


@program("tensor.identity", (torch.ones(2), 1), (torch.zeros(0), 1))
def identity_of_tensors(x: Tensor, n: int) -> Tuple[bool, bool, bool, bool, bool, bool, bool, bool, bool]:
    y = x + 1
    items = [x]
    for _ in range(n):
        items.append(y)
    first, second = items
    pair = (y, x)
    if n > 5:
        pair = (x, y)
    a, b = pair
    table = {"x": x}
    same = x.contiguous() if n > 0 else y
    return first is x, second is y, second is x, a is y, b is y, table["x"] is x, items[-1] is y, y is x, same is x
