"""Union, Optional and Any, and how isinstance and comparison with None refine them."""

from typing import Any, Dict, List, Optional, Tuple, Union

import torch
from torch import Tensor

from tests.language.corpus import program


@program("type.union expression.isinstance", (3,), ("abc",))
def union_refined(x: Union[int, str]) -> int:
    if isinstance(x, int):
        return x + 1
    return len(x)


@program("type.union_bar", (3,), (2.5,))
def union_with_bar(x: int | float) -> float:
    if isinstance(x, float):
        return x * 2.0
    else:
        return float(x)


@program("refine.isinstance_tuple", (3,), ("a",))
def isinstance_of_types(x: Union[int, float, str]) -> str:
    if isinstance(x, (int, float)):
        return "number"
    return x + "!"


@program("refine.isinstance_tuple", (2.5,), ("a",))
def isinstance_of_types_refines(x: Union[int, float, str]) -> int:
    if not isinstance(x, (int, float)):
        return len(x)
    if isinstance(x, int):
        return x
    return 100


@program("refine.isinstance_container", ([1, 2],), (["a"],))
def union_of_lists(x: Union[List[int], List[str]]) -> int:
    if torch.jit.isinstance(x, List[int]):
        return sum(x)
    return len(x)


@program("refine.isinstance_container", ({"a": 1},), ([4],))
def union_of_containers(x: Union[Dict[str, int], List[int]]) -> int:
    if torch.jit.isinstance(x, Dict[str, int]):
        return x["a"]
    if torch.jit.isinstance(x, List[int]):
        return x[0] * 10
    return -1


@program("refine.isinstance_list", ([1, 2],), (5,))
def isinstance_list(x: Union[List[int], int]) -> int:
    if isinstance(x, list):
        return len(x)
    return x


@program("type.union", (torch.ones(2), True), (torch.zeros(1), False))
def union_returned(x: Tensor, flag: bool) -> Union[Tensor, int]:
    if flag:
        return x
    return 3


@program("type.union", (1,), (-1,))
def union_variable(n: int) -> str:
    x: Union[int, str] = n
    if n > 0:
        x = "positive"
    if isinstance(x, str):
        return x
    return "other"


@program("type.union type.list", ([1, "a", 2],), ([],))
def list_of_unions(xs: List[Union[int, str]]) -> Tuple[int, int]:
    numbers, letters = 0, 0
    for x in xs:
        if isinstance(x, int):
            numbers += x
        else:
            letters += len(x)
    return numbers, letters


@program("type.union refine.assert", (3,), ("a",))
def union_asserted(x: Union[int, str]) -> int:
    assert isinstance(x, int), "an int is wanted"
    return x + 1


@program("type.union refine.and", (3, 1), ("a", 1))
def union_refined_by_and(x: Union[int, str], n: int) -> bool:
    return isinstance(x, int) and x > n


@program("type.union refine.or", (3, 1), ("a", 1))
def union_refined_by_or(x: Union[int, str], n: int) -> bool:
    return not isinstance(x, int) or x > n


@program("type.optional refine.none", (3,), (None,))
def optional_refined(x: Optional[int]) -> int:
    if x is None:
        return -1
    return x + 1


@program("type.optional_bar refine.none", (3,), (None,))
def optional_with_bar(x: int | None) -> int:
    if x is not None:
        return x * 2
    return 0


@program("type.optional default_arguments", (), (2.5,))
def optional_default(x: Optional[float] = None) -> float:
    return 1.0 if x is None else x


@program("refine.none", (None, 1), (3, 2))
def optional_early_return(x: Optional[int], y: int) -> int:
    if x is None:
        return y
    y = y + x
    return y * x


@program("refine.assert", (None,), (torch.ones(2),))
def optional_asserted(x: Optional[Tensor]) -> Tensor:
    assert x is not None
    return x + 1


@program("refine.and", (None, 2), (3, 2))
def optional_in_and(x: Optional[int], y: int) -> bool:
    return x is not None and x > y


@program("refine.or", (None, 2), (1, 2))
def optional_in_or(x: Optional[int], y: int) -> int:
    if x is None or x < y:
        return y
    return x


@program("refine.raise", (None,), (4,))
def optional_raise(x: Optional[int]) -> int:
    if x is None:
        raise ValueError("nothing there")
    return x


@program("refine.assign", (None,), (4,))
def optional_given_a_default(x: Optional[int]) -> int:
    if x is None:
        x = 10
    return x + 1


@program("refine.loop", ([1, 2, 3],), ([],))
def optional_in_loop(xs: List[int]) -> Optional[int]:
    best: Optional[int] = None
    for x in xs:
        if best is None:
            best = x
        elif x > best:
            best = x
    return best


@program("refine.while", (3,), (0,), torch="refuses")
def optional_in_while(n: int) -> int:
    left: Optional[int] = n
    total = 0
    while left is not None:
        total += left
        left = left - 1 if left > 0 else None
    return total


@program("type.optional type.list", ([1, None, 3],), ([None],))
def list_of_optionals(xs: List[Optional[int]]) -> int:
    total = 0
    for x in xs:
        if x is not None:
            total += x
    return total


@program("type.optional", (None, None), ([1], "a"))
def optional_equal_none(xs: Optional[List[int]], s: Optional[str]) -> Tuple[bool, bool]:
    return xs is None, s is not None


@program("type.optional_equals", (None,), ([1],), torch="refuses")
def optional_equals_none(xs: Optional[List[int]]) -> bool:
    return xs == None


@program("type.optional refine.attribute", (torch.ones(2),), (torch.zeros(1),))
class OptionalAttribute(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bias: Optional[Tensor] = None
        self.scale: Optional[float] = 2.0

    def forward(self, x: Tensor) -> Tensor:
        bias = self.bias
        if bias is not None:
            x = x + bias
        scale = self.scale
        assert scale is not None
        return x * scale


@program("type.any expression.isinstance", (3,), ("abc",))
def any_refined(x: Any) -> int:
    if isinstance(x, int):
        return x + 1
    if isinstance(x, str):
        return len(x)
    return -1


@program("type.any", (3.5,), ([1, 2],))
def any_passed_through(x: Any) -> Any:
    return x


@program("type.any refine.isinstance_container", ([1, 2],), (torch.ones(1),))
def any_container(x: Any) -> int:
    if torch.jit.isinstance(x, List[int]):
        return x[0]
    if isinstance(x, Tensor):
        return x.dim() + 10
    return -1


@program("type.any", (torch.ones(2), 2), (torch.zeros(1), 0))
def any_holds(x: Tensor, n: int) -> bool:
    y: Any = x
    if n > 1:
        y = n
    return isinstance(y, int)


@program("type.any refine.isinstance_container", ({"a": 1},), (((1, 2.0)),))
def any_of_dict_or_tuple(x: Any) -> int:
    if torch.jit.isinstance(x, Dict[str, int]):
        return x["a"]
    if torch.jit.isinstance(x, Tuple[int, float]):
        return x[0] + 100
    return 0


@program("type.any type.list", ([1, "a", 2.5],), ([],))
def list_of_any(xs: List[Any]) -> int:
    count = 0
    for x in xs:
        if isinstance(x, (int, float)):
            count += 1
    return count


@program("expression.isinstance", (torch.ones(1), 1, 1.0, "s"), (torch.ones(2), 0, -1.0, ""))
def isinstance_known_at_compile_time(a: Tensor, b: int, c: float, d: str) -> Tuple[bool, bool, bool, bool, bool]:
    return (
        isinstance(a, Tensor),
        isinstance(b, int),
        isinstance(c, float),
        isinstance(d, str),
        isinstance(d, (int, float)),
    )


@program("refine.isinstance_is_compile_time", (3,), (0,))
def dead_branch_is_not_compiled(n: int) -> int:
    if isinstance(n, str):
        return n.no_such_method()
    return n


@program("refine.none_is_compile_time", (torch.ones(1),), (torch.zeros(2),))
class NoneAttribute(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.part = None

    def forward(self, x: Tensor) -> Tensor:
        if self.part is not None:
            x = self.part(x)
        return x + 1


@program("refine.ternary", (None,), (5,))
def optional_in_ternary(x: Optional[int]) -> int:
    return x + 1 if x is not None else 0


@program("type.union refine.isinstance_tuple", (None,), (2.5,))
def union_with_none(x: Union[int, float, None]) -> float:
    if x is None:
        return -1.0
    if isinstance(x, float):
        return x
    return float(x)


@program("type.number", (3, 2.5), (0, -1.0))
def number_arguments(a: int, b: float) -> Tuple[float, float]:
    return a + b, b * a
