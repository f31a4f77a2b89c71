"""Self-test: whether native plans return the results of Python plans in this build of PyTorch.

No interface promises what C++ types are like in memory (``c10::Scalar``, ``std::optional``, ``c10::IListRef``, a
tuple). So before the first native plan of a process runs, one does that passes every type at least once, and its
results are compared. The verdict is kept on disk.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import torch

from rekindle.codegen.llvm.engine import NativeCode, disk_cache, generator_state
from rekindle.ir.text.parser import parse_graph
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.native_plans.native_plan import compiled_plan
from rekindle.runtime.plans.plan import ExecutionPlan

TESTED: Final = ("2.11.", "2.12.", "2.13.", "2.14.", "2.15.")
"""The releases of PyTorch that the whole suite of tests runs on. In others a type that is passed in another way might
crash before any result can be compared."""

PROGRAM: Final = """\
graph(%x : Tensor,
      %w : Tensor,
      %n : int,
      %s : float,
      %b : bool):
  %164 : bool = prim::Constant[value=1]()
  %156 : float = prim::Constant[value=0.33333333333333331]()
  %155 : float = prim::Constant[value=0.125]()
  %148 : str = prim::Constant[value="ij,kj->ik"]()
  %136 : int = prim::Constant[value=5]()
  %133 : str = prim::Constant[value="tanh"]()
  %118 : str = prim::Constant[value="floor"]()
  %97 : int = prim::Constant[value=7]()
  %57 : bool = prim::Constant[value=0]()
  %15 : NoneType = prim::Constant()
  %10 : int = prim::Constant[value=-1]()
  %7 : int = prim::Constant[value=1]()
  %8 : int = prim::Constant[value=2]()
  %16 : int = prim::Constant[value=0]()
  %19 : int = prim::Constant[value=3]()
  %27 : float = prim::Constant[value=2.]()
  %31 : int = prim::Constant[value=6]()
  %46 : int = prim::Constant[value=8]()
  %53 : float = prim::Constant[value=0.001]()
  %11 : int[] = prim::ListConstruct(%7, %8, %n, %10)
  %image : Tensor = aten::view(%x, %11)
  %17 : int[] = prim::ListConstruct(%16, %16)
  %20 : int = aten::sub(%n, %8)
  %21 : int[] = prim::ListConstruct(%7, %7)
  %22 : int[] = prim::ListConstruct(%7, %7)
  %y : Tensor = aten::conv2d(%image, %w, %15, %21, %17, %22, %20)
  %28 : float[] = prim::Constant[value=[2., 2.]]()
  %up : Tensor = aten::upsample_bilinear2d(%y, %15, %b, %28)
  %32 : int[] = prim::ListConstruct(%31, %31)
  %near : Tensor = aten::upsample_nearest2d(%y, %32, %27, %15)
  %36 : int[] = prim::ListConstruct(%8, %19)
  %total : Tensor = aten::sum(%y, %36, %b, %15)
  %43 : int[] = prim::ListConstruct(%n, %10)
  %flat : Tensor = aten::reshape(%x, %43)
  %47 : int[] = prim::ListConstruct(%46)
  %50 : int = aten::sub(%n, %7)
  %51 : Tensor = aten::select(%flat, %16, %50)
  %normal : Tensor = aten::layer_norm(%flat, %47, %51, %15, %53, %b)
  %values : Tensor, %indices : Tensor = aten::max(%flat, %7, %57)
  %63 : int = aten::sub(%n, %7)
  %top : Tensor, %places : Tensor = aten::topk(%flat, %63, %7, %b, %b)
  %71 : int = aten::sub(%n, %8)
  %row : Tensor = aten::narrow(%flat, %7, %71, %8)
  %77 : Tensor = aten::slice(%flat, %16, %15, %15, %7)
  %80 : int = aten::sub(%n, %8)
  %part : Tensor = aten::slice(%77, %7, %80, %15, %7)
  %85 : Tensor[] = prim::ListConstruct(%row, %part)
  %both : Tensor = aten::cat(%85, %7)
  %90 : Tensor = aten::add(%row, %s, %7)
  %91 : Tensor[] = prim::ListConstruct(%row, %90)
  %piled : Tensor = aten::stack(%91, %16)
  %pieces : Tensor[] = aten::chunk(%flat, %8, %7)
  %96 : int[] = prim::ListConstruct(%8, %n)
  %made : Tensor = aten::zeros(%96, %97, %15, %15, %15)
  %103 : int[] = prim::ListConstruct(%n)
  %filled : Tensor = aten::full(%103, %s, %15, %15, %15, %15)
  %count : Tensor = aten::arange(%n, %15, %15, %15, %15)
  %floor : Tensor = aten::div(%flat, %flat, %118)
  %122 : float = aten::neg(%s)
  %bounded : Tensor = aten::clamp(%flat, %122, %15)
  %126 : int[] = prim::ListConstruct(%7)
  %spread : Tensor = aten::var(%flat, %126, %7, %b)
  %soft : Tensor = aten::softmax(%flat, %7, %97)
  %bent : Tensor = aten::gelu(%flat, %133)
  %140 : Tensor = aten::to(%flat, %136, %57, %57, %15)
  %142 : Scalar = prim::unchecked_cast(%b)
  %144 : Tensor = aten::add(%140, %142, %7)
  %kept : Tensor = aten::add_(%144, %n, %7)
  %151 : Tensor[] = prim::ListConstruct(%flat, %flat)
  %sums : Tensor = aten::einsum(%148, %151, %15)
  %leaky : Tensor = aten::rrelu(%flat, %155, %156, %57, %15)
  %162 : int[] = prim::ListConstruct(%46)
  %165 : int[] = prim::ListConstruct(%7)
  %m : Tensor = aten::mean(%flat, %165, %164, %15)
  %170 : int[] = prim::ListConstruct(%7)
  %d : Tensor = aten::std(%flat, %170, %164, %164)
  %178 : bool[] = prim::Constant[value=[1, 0, 0]]()
  %g : Tensor, %u : Tensor, %v : Tensor = aten::native_layer_norm_backward(%flat, %flat, %162, %m, %d, %15, %15, %178)
  %same : bool = aten::is_same_size(%row, %part)
  %197 : Tensor = aten::__getitem__(%pieces, %16)
  %first : Tensor[] = prim::ListConstruct(%up, %near, %total, %normal, %values, %indices, %top, %places)
  %second : Tensor[] = prim::ListConstruct(%both, %piled, %197, %made, %filled, %count, %floor, %bounded)
  %third : Tensor[] = prim::ListConstruct(%spread, %soft, %bent, %kept, %sums, %leaky, %g)
  %214 : int = aten::numel(%flat)
  %numbers : (bool, int) = prim::TupleConstruct(%same, %214)
  return (%first, %second, %third, %numbers)
"""
"""One call at least with an argument and a result of each type, in registers and on the stack."""

_VERDICT: Final = b"native plans pass their test"
_logger = logging.getLogger(__name__)


def passes_self_test(library: NativeCode) -> bool:
    """Return whether the machine code of native plans works in this process: whether :data:`PROGRAM` returns the same
    by a native plan and by a plan in Python. A positive verdict is stored on disk, and the test is skipped if one is
    there. Return False in releases of PyTorch that are not :data:`TESTED`. Log a warning if the test fails."""
    if not torch.__version__.startswith(TESTED):
        return False
    disk = disk_cache()
    key = "\n".join(["native plans", generator_state(), PROGRAM]).encode()
    if disk is not None and disk.load(key) == _VERDICT:
        return True
    try:
        # Modes of PyTorch, in which native plans take no calls, are those of a thread: a new one has none.
        with ThreadPoolExecutor(1) as threads:
            passed = threads.submit(_is_right, library).result()
    except RecursionError:  # that depends on the caller: the next one tests again
        raise
    except RuntimeError as error:
        _logger.warning("native plans are not used: they could not be tested: %s", error)
        return False
    if not passed:
        _logger.warning("native plans are not used: they do not compute what PyTorch %s does", torch.__version__)
    elif disk is not None:
        disk.store(key, _VERDICT)
    return passed


def _is_right(library: NativeCode) -> bool:
    """Return whether :data:`PROGRAM` returns the same by a native plan and by a plan in Python."""
    code = Code(parse_graph(PROGRAM), "native plans")
    function = compiled_plan(code, library, _refused)
    return function is not None and _agrees(function, ExecutionPlan(code).function)


def arguments() -> tuple[Any, ...]:
    """Return the arguments of :data:`PROGRAM`."""
    x = torch.linspace(-2, 3, 32).reshape(4, 8)
    return x, torch.linspace(-1, 1, 8).reshape(2, 1, 2, 2), 4, 1.5, True


def _agrees(native: Callable[..., Any], python: Callable[..., Any]) -> bool:
    with torch.no_grad():
        found, expected = native(*arguments()), python(*arguments())
    *lists, numbers = zip(found, expected, strict=True)
    pairs = [pair for one, other in lists for pair in zip(one, other, strict=True)]
    return numbers[0] == numbers[1] and all(_is_same(one, other) for one, other in pairs)


def _is_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and torch.allclose(one, other, equal_nan=True)


def _refused(*arguments: object) -> Any:
    raise RuntimeError("a native plan does not take plain tensors and numbers")
