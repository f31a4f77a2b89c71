"""Lowering of fused groups: kernels, with checks of the sizes for which they are valid.

A group was run on the examples, and has recipes for the combinations of sizes that occurred
(:class:`rekindle.codegen.compiled_kernels.KernelRecipe`). The shape program of a recipe becomes straight-line code: it
checks the sizes and strides of the inputs, and computes the parameters of the kernel and the sizes of the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch

from rekindle.building.lowering.constants import scalar_type
from rekindle.building.lowering.control import kind_of, word_in_box
from rekindle.building.lowering.emitters import emits
from rekindle.building.lowering.representation import NotBuildable, descriptor_of, is_object
from rekindle.building.lowering.writer import ProgramWriter
from rekindle.building.runtime.objects import ErrorCode, Kind
from rekindle.building.runtime.tensors import empty_strided, sizes_of, strides_of
from rekindle.codegen.compiled_kernels import KernelRecipe
from rekindle.codegen.emission.nests import expressions_of
from rekindle.codegen.kernel_status import KernelStatus
from rekindle.codegen.loop_ir.nodes import Kernel, LoopNest
from rekindle.codegen.loop_ir.scalar_types import F64
from rekindle.codegen.symbolic_sizes import ShapeOp, ShapeProgram
from rekindle.ir.graph import Node, Value


@emits("prim::FusionGroup")
def fused_group(w: ProgramWriter, node: Node) -> None:
    recipes = w.parts.recipes.get(node.get_graph("Subgraph"), ())
    results = [w.owned_slot() for _ in node.outputs]
    done = w.fresh("launched")
    for recipe in recipes:
        following = w.fresh("another")
        _launch(w, node.inputs, recipe, results, following)
        w.line(f"br label %{done}")
        w.start_block(following)
    w.fail_if("true", ErrorCode.NOT_BUILT, _NOT_BUILT)
    w.line(f"br label %{done}")
    w.start_block(done)
    for value, slot in zip(node.outputs, results, strict=True):
        w.define(value, w.take(slot))


_NOT_BUILT = "the library has no kernel for such sizes or dtypes: build it with an example that has them"


def _launch(
    w: ProgramWriter, inputs: Sequence[Value], recipe: KernelRecipe, results: Sequence[str], other: str
) -> None:
    """Emit a test whether a kernel recipe is valid for the inputs, and a launch of its kernel, which stores its outputs
    in the slots ``results``. Branch to ``other`` if the recipe is not valid.

    Raises:
        NotBuildable: the kernel depends on a default dtype that has changed.
    """
    if recipe.default_dtype is not None and recipe.default_dtype is not torch.get_default_dtype():
        raise NotBuildable("a kernel depends on the default dtype, which is another now")
    require = partial(_require, w, other)
    is_narrow = _computes_narrow_floats(recipe.kernel)
    given: list[str] = []
    pointers: list[str] = []
    numbers: list[str] = []
    for value, wanted in zip(inputs, recipe.inputs, strict=True):
        if isinstance(wanted, type):
            numbers.append(_number(w, value, wanted, other, is_narrow=is_narrow))
            continue
        register, (dtype, rank) = w.name(value), wanted
        for index, number in ((4, scalar_type(dtype)), (5, rank)):
            have = w.emit(f"load i64, ptr {w.emit(f'getelementptr i64, ptr {register}, i64 {index}')}")
            require(w.emit(f"icmp eq i64 {have}, {number}"))
        for function in (sizes_of, strides_of):
            base = w.call(function, register)
            for dim in range(rank):
                given.append(w.emit(f"load i64, ptr {w.emit(f'getelementptr i64, ptr {base}, i64 {dim}')}"))
        pointers.append(w.emit(f"load ptr, ptr {w.emit(f'getelementptr i64, ptr {register}, i64 2')}"))
    found = _computed(w, recipe.formula, given, other)
    at = recipe.parameters
    for (dtype, rank), slot in zip(recipe.outputs, results, strict=True):
        sizes, strides = found[at : at + rank], found[at + rank : at + 2 * rank]
        at += 2 * rank
        made = w.call_or_fail(
            empty_strided, "%context", str(scalar_type(dtype)), str(rank), w.words(sizes), w.words(strides)
        )
        w.line(f"store ptr {made}, ptr {slot}")
        pointers.append(w.emit(f"load ptr, ptr {w.emit(f'getelementptr i64, ptr {made}, i64 2')}"))
    symbol = w.parts.kernels.symbol(recipe.kernel)
    w.parts.runtime.declarations[symbol] = f"declare i64 @{symbol}(ptr, ptr, ptr)"
    words = [w.emit(f"ptrtoint ptr {each} to i64") for each in pointers]
    parameters = w.words(found[: recipe.parameters])
    call = f"call i64 @{symbol}(ptr {w.words(words)}, ptr {parameters}, ptr {w.words(numbers)})"
    status = w.emit(call)
    if recipe.kernel.temporaries:
        failed = w.emit(f"icmp eq i64 {status}, {int(KernelStatus.NO_MEMORY)}")
        w.fail_if(failed, ErrorCode.MEMORY_ERROR, "there is no memory for the intermediate results of a kernel")
    if recipe.kernel.has_gathers:
        failed = w.emit(f"icmp eq i64 {status}, {int(KernelStatus.FAILED)}")
        w.fail_if(failed, ErrorCode.INDEX_ERROR, "index out of range in self")


def _require(w: ProgramWriter, other: str, condition: str) -> None:
    label = w.fresh("holds")
    w.line(f"br i1 {condition}, label %{label}, label %{other}")
    w.start_block(label)


def _computes_narrow_floats(kernel: Kernel) -> bool:
    """Return whether a kernel has elements or intermediate values that are floats of less than 64 bits."""
    buffers = (*kernel.inputs, *kernel.outputs, *kernel.temporaries)
    nests = [nest for nest in kernel.nests if isinstance(nest, LoopNest)]
    computed = [each.scalar for nest in nests for each in expressions_of(nest)]
    return any(scalar.is_float and scalar is not F64 for scalar in (*buffers, *computed))


def _number(w: ProgramWriter, value: Value, wanted: type, other: str, *, is_narrow: bool) -> str:
    """Emit an argument of a kernel as a 64-bit word. Branch to ``other`` if its type at run time is not ``wanted``, or
    if the kernel ``is_narrow``, computing with floats of less than 64 bits, and it is a finite float beyond the range
    of float32."""
    kinds = {int: ("i", Kind.INT), float: ("f", Kind.FLOAT), bool: ("b", Kind.BOOL)}
    letter, kind = kinds[wanted]
    have = descriptor_of(value.type)
    if is_object(value.type):
        register = w.name(value)
        _require(w, other, w.emit(f"icmp eq i64 {kind_of(w, register)}, {int(kind)}"))
        word = word_in_box(w, register)
    elif have == letter:
        word = w.word_of(w.name(value), value.type)
    else:
        _require(w, other, "false")
        return "0"
    if wanted is float and is_narrow:
        _require(w, other, _is_float32(w, w.emit(f"bitcast i64 {word} to double")))
    return word


def _is_float32(w: ProgramWriter, number: str) -> str:
    """Emit a test whether a float is infinite, NaN, or within the range of float32. PyTorch raises for other floats."""
    size = w.emit(f"call double @llvm.fabs.f64(double {number})")
    w.parts.runtime.declarations["llvm.fabs.f64"] = "declare double @llvm.fabs.f64(double)"
    fits = w.emit(f"fcmp ole double {size}, 0x47EFFFFFE0000000")
    other = w.emit(f"fcmp ueq double {size}, 0x7FF0000000000000")
    return w.emit(f"or i1 {fits}, {other}")


_INSTRUCTIONS = {ShapeOp.ADD: "add", ShapeOp.SUBTRACT: "sub", ShapeOp.MULTIPLY: "mul"}
_PREDICATES = {ShapeOp.EQUAL: "eq", ShapeOp.DIFFERENT: "ne", ShapeOp.LESS: "slt", ShapeOp.NOT_LESS: "sge"}


def _computed(w: ProgramWriter, formula: ShapeProgram, given: Sequence[str], other: str) -> list[str]:
    """Emit a shape program (arithmetic and checks on ints); return its results. If a check fails, branch to
    ``other``."""
    words = [*given, *map(str, formula.constants)]
    for step, a, b in formula.steps:
        if step in _PREDICATES:
            _require(w, other, w.emit(f"icmp {_PREDICATES[step]} i64 {words[a]}, {words[b]}"))
        elif step is ShapeOp.DIVIDE:
            quotient = w.emit(f"sdiv i64 {words[a]}, {words[b]}")
            rest = w.emit(f"srem i64 {words[a]}, {words[b]}")
            below = w.emit(f"sext i1 {w.emit(f'icmp slt i64 {rest}, 0')} to i64")
            words.append(w.emit(f"add i64 {quotient}, {below}"))
        else:
            words.append(w.emit(f"{_INSTRUCTIONS[step]} i64 {words[a]}, {words[b]}"))
    return [words[index] for index in formula.results]
