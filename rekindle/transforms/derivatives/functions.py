"""``grad``, ``vjp``, ``jvp`` and what is made of them: programs that compute derivatives of programs.

Each takes a program and returns one: a compiled function, whose graph can be read, which can be saved, and
differentiated again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from rekindle.errors import DifferentiationError
from rekindle.errors.gc_pause import gc_paused
from rekindle.ir.graph import Graph, Value
from rekindle.ir.types import INT, TENSOR, ListType, TensorType
from rekindle.program.function import Function
from rekindle.transforms.derivatives.derivative_builder import DerivativeBuilder
from rekindle.transforms.derivatives.pytrees import Pytree, leaves, unflatten_like
from rekindle.transforms.derivatives.vjp_builder import Vjp, build_vjp

Numbers = int | Sequence[int]


def grad(func: Any, argnums: Numbers = 0, has_aux: bool = False, memory_limit: int | None = None) -> Function:
    """Return the program that computes the gradient of ``func``.

    ``func`` returns a tensor with one element and no dimensions; with ``has_aux``, a tuple of that and an auxiliary
    value. The gradient has the structure of the argument: a tensor, or a tuple, list or dict of tensors; None for a
    tensor that is None. If ``argnums`` is a sequence, the result is a tuple of gradients. Arguments that the result
    does not depend on have zero gradients. Control flow and in-place writes are differentiated.

    Args:
        func: a function or a module, compiled or not. A module is a function of a dict of its parameters, followed by
            the arguments of ``forward``.
        argnums: the position of the argument, or a sequence of positions.
        has_aux: whether ``func`` returns an auxiliary value, which the program returns second.
        memory_limit: bytes for residuals of loops. Beyond it, residuals are recomputed from some of the iterations.
            Random numbers are reproduced.

    Returns:
        A function that takes the arguments of ``func``. It raises a RuntimeError if the result has dimensions or is not
        of a floating dtype.

    Raises:
        DifferentiationError: ``func`` has no derivative as a program. The message names the line and the reason.
        CompileError: ``func`` cannot be compiled.

    Example:
        >>> gradient = rekindle.grad(lambda x: (x ** 3).sum())
        >>> gradient(torch.tensor([1.0, 2.0]))
        tensor([ 3., 12.])
    """
    return _grad(func, argnums, has_aux, memory_limit, with_value=False)


def value_and_grad(func: Any, argnums: Numbers = 0, has_aux: bool = False, memory_limit: int | None = None) -> Function:
    """Return the program that computes the result of ``func`` and its gradient. See :func:`grad` for the arguments.

    Returns:
        A function that returns a tuple of the result and the gradient. ``torch.func.grad_and_value`` has the other
        order.

    Raises:
        DifferentiationError: ``func`` has no derivative as a program.
        CompileError: ``func`` cannot be compiled.

    Example:
        >>> rekindle.value_and_grad(lambda x: (x * x).sum())(torch.tensor([3.0]))
        (tensor(9.), tensor([6.]))
    """
    return _grad(func, argnums, has_aux, memory_limit, with_value=True)


@gc_paused()
def _grad(func: Any, argnums: Numbers, has_aux: bool, limit: int | None, *, with_value: bool) -> Function:
    work = DerivativeBuilder.of(func, argnums, has_aux, limit)
    value = work.value
    if not isinstance(value, Value) or not isinstance(value.type, TensorType):
        raise DifferentiationError(
            f"'{work.program.basename}' returns {_spelled(value)}, not a tensor, which a gradient could be taken of",
            work.range,
            hint=_hint_of_result(value, has_aux),
        )
    way = work.build_vjp()
    graph = work.graph
    seed = graph.insert_node(graph.create("autodiff::seed", [way.results[0]], range=work.range)).output
    gradients = work.shaped(way.gradients([seed]))
    rest = tuple(way.results[1:])
    results: Pytree = ((way.results[0], *rest) if rest else way.results[0], gradients)
    if not with_value:
        results = (gradients, *rest) if rest else gradients
    description = "value and gradient" if with_value else "gradient"
    return work.finished(results, "value_and_grad" if with_value else "grad", f"The {description} of")


def _spelled(tree: Pytree) -> str:
    return str(tree.type) if isinstance(tree, Value) else f"a tuple of {len(tree)}"


def _hint_of_result(value: Pytree, has_aux: bool) -> str:
    if isinstance(value, tuple) and not has_aux:
        return "with has_aux=True the first of two results is differentiated; rekindle.vjp takes any number of tensors"
    return "return the tensor that is to be differentiated"


@gc_paused()
def vjp(func: Any, argnums: Numbers = 0, has_aux: bool = False, memory_limit: int | None = None) -> Function:
    """Return the program that computes the result of ``func`` and the product of a vector with its Jacobian.

    Args:
        func: a function or a module, compiled or not, as in :func:`grad`. It returns a tensor, or a list, tuple or
            dict of tensors.
        argnums: the position of the argument, or a sequence of positions.
        has_aux: whether ``func`` returns an auxiliary value, which the program returns third.
        memory_limit: bytes for residuals of loops, as in :func:`grad`.

    Returns:
        A function that takes the arguments of ``func``, followed by ``cotangents``, which has the structure of its
        result. It returns a tuple of the result and the gradients.

    Raises:
        DifferentiationError: ``func`` has no derivative as a program.
        CompileError: ``func`` cannot be compiled.

    Example:
        >>> back = rekindle.vjp(lambda x: x * x)
        >>> back(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 10.0]))
        (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    work = DerivativeBuilder.of(func, argnums, has_aux, memory_limit)
    work.check_result()
    cotangents = work.add_parameter("cotangents", work.value)
    way = work.build_vjp()
    gradients = work.shaped(way.gradients(list(leaves(cotangents))))
    results = work.results(way.results, gradients)
    return work.finished(results, "vjp", "The result and the product of a vector with the Jacobian of")


@gc_paused()
def jvp(func: Any, argnums: Numbers = 0, has_aux: bool = False) -> Function:
    """Return the program that computes the result of ``func`` and its directional derivative.

    The tangent is computed by reverse mode applied twice: the result of :func:`vjp` is linear in the cotangents, and
    its transpose is the forward derivative.

    Args:
        func: a function or a module, compiled or not. A module is a function of a dict of its parameters, followed by
            the arguments of ``forward``.
        argnums: the position of the argument, or a sequence of positions.
        has_aux: whether ``func`` returns an auxiliary value, which the program returns third.

    Returns:
        A function that takes the arguments of ``func``, followed by ``tangents``, which has the structure of the
        argument; a tuple if ``argnums`` is a sequence. It returns a tuple of the result and its tangent.

    Raises:
        DifferentiationError: ``func`` has no derivative as a program.
        CompileError: ``func`` cannot be compiled.

    Example:
        >>> forward = rekindle.jvp(lambda x: x * x)
        >>> forward(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0]))
        (tensor([1., 4.]), tensor([2., 0.]))
    """
    work = DerivativeBuilder.of(func, argnums, has_aux)
    work.check_result()
    results, tangents = _forward(work, work.build_vjp())
    return work.finished(work.results(results, tangents), "jvp", "The result and the tangent of")


def _forward(work: DerivativeBuilder, way: Vjp) -> tuple[list[Value], Pytree]:
    """Add the forward derivative to the graph, computed as the vector-Jacobian product of a vector-Jacobian product.
    Return the results of the program, and the tangents of its value. A new parameter takes the tangents of the
    arguments."""
    graph, value = work.graph, work.value
    tangents = list(leaves(work.add_parameter("tangents", work.wanted)))
    count = len(list(leaves(value)))
    cotangents = [graph.add_input("cotangent", result.type) for result in way.results[:count]]
    gradients = way.gradients(cotangents)
    for each in (*gradients, *way.results):
        graph.add_output(each)
    again = build_vjp(graph, cotangents, range(len(gradients)))
    found = again.gradients(tangents)
    results = again.results[len(gradients) :]
    for cotangent, result in zip(cotangents, results, strict=False):
        with graph.inserting_after(result.node):
            zeros = _zeros_like(graph, result)
        cotangent.replace_all_uses_with(zeros)
        _move_users_after(zeros)
        graph.block.erase_input(cotangent.offset)
    return results, unflatten_like(value, found)


def _move_users_after(value: Value) -> None:
    """Move the users of ``value`` that precede it in its block after it, and then the users of their results. An input
    was in the place of ``value`` before."""
    last = value.node
    for use in value.uses:
        if use.user.owning_block is last.owning_block and use.user.is_before(last):
            use.user.move_after(last)
            last = use.user
            for output in use.user.outputs:
                _move_users_after(output)


def _zeros_like(graph: Graph, value: Value) -> Value:
    if isinstance(value.type, TensorType):
        return graph.insert("aten::zeros_like", [value])
    inputs = [graph.insert_constant(None), value]
    return graph.insert_node(graph.create("autodiff::or_zeros", inputs, types=[value.type])).output


@gc_paused()
def jacrev(func: Any, argnums: Numbers = 0, has_aux: bool = False) -> Function:
    """Return the program that computes the Jacobian of ``func`` row by row, in reverse mode.

    The differentiated arguments and the results are tensors or tuples of tensors, or the parameters of a module.

    Args:
        func: a function or a module, compiled or not. A module is a function of a dict of its parameters, followed by
            the arguments of ``forward``.
        argnums: the position of the argument, or a sequence of positions.
        has_aux: whether ``func`` returns an auxiliary value, which the program returns second.

    Returns:
        A function that takes the arguments of ``func``. The Jacobian of a tensor with respect to a tensor has the shape
        of the first, followed by that of the second. If ``func`` returns a tuple, or ``argnums`` is a sequence, the
        result is a tuple of Jacobians: results outside, arguments inside.

    Raises:
        DifferentiationError: ``func`` has no derivative as a program.
        CompileError: ``func`` cannot be compiled.

    Example:
        >>> rekindle.jacrev(lambda x: x * x)(torch.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    work = DerivativeBuilder.of(func, argnums, has_aux)
    work.check_result()
    flat = list(leaves(work.value))
    for each in (*flat, *leaves(work.wanted)):
        if not isinstance(each.type, TensorType):
            raise DifferentiationError(
                f"there is no Jacobian of or by a value of type {each.type}",
                work.range,
                hint="use tensors, and tuples of them",
            )
    work.return_results()
    found: list[Pytree] = [work.shaped(_jacobian(work, index)) for index in range(len(flat))]
    results = [*work.graph.outputs]
    work.return_nothing()
    rows = iter(found)
    jacobian = _filled(work.value, rows)
    rest = tuple(results[len(flat) :])
    return work.finished((jacobian, *rest) if rest else jacobian, "jacrev", "The Jacobian of")


def _filled(tree: Pytree, each: Iterator[Pytree]) -> Pytree:
    """Return ``tree`` with its leaves replaced by the items of ``each``, in order."""
    assert not isinstance(tree, dict)
    return next(each) if isinstance(tree, Value) else tuple(_filled(part, each) for part in tree)


_ROWS: Final = ListType(TENSOR)


def _jacobian(work: DerivativeBuilder, index: int) -> list[Value]:
    """Insert a loop over the elements of one result that computes its Jacobians with respect to all wanted arguments;
    return the Jacobians. The results of the program are outputs of the graph afterwards."""
    graph = work.graph
    way = build_vjp(graph, list(leaves(work.wanted)), [index])
    result = way.results[index]
    count = graph.insert("aten::numel", [result])
    true = graph.insert_constant(True)
    lists = [graph.insert_node(graph.create("prim::ListConstruct", types=[_ROWS])).output for _ in way.wanted]
    loop = graph.insert_node(graph.create("prim::Loop", [count, true], outputs=0))
    block = loop.add_block()
    iteration = block.add_input(type=INT)
    block.add_output(true)
    with graph.inserting_at_end(block):
        unit = graph.insert("autodiff::unit", [result, iteration])
        for rows, row in zip(lists, way.gradients({index: unit}), strict=True):
            graph.insert_node(graph.create("aten::append", [rows, row], types=[_ROWS]))
    found = zip(lists, way.wanted, strict=True)
    jacobians = [graph.insert("autodiff::jacobian", [rows, result, leaf]) for rows, leaf in found]
    for each in way.results:
        graph.add_output(each)
    return jacobians


def hessian(func: Any, argnums: Numbers = 0, has_aux: bool = False) -> Function:
    """Return the program that computes the second derivatives of ``func``: the Jacobian of its Jacobian, see
    :func:`jacrev`.

    The differentiated arguments and the results are tensors or tuples of tensors, or the parameters of a module.

    Args:
        func: a function or a module, compiled or not. A module is a function of a dict of its parameters, followed by
            the arguments of ``forward``.
        argnums: the position of the argument, or a sequence of positions.
        has_aux: whether ``func`` returns an auxiliary value, which the program returns second.

    Returns:
        A function that takes the arguments of ``func``. For a result without dimensions and one argument, the Hessian
        has the shape of the argument twice.

    Raises:
        DifferentiationError: ``func`` has no derivative as a program.
        CompileError: ``func`` cannot be compiled.

    Example:
        >>> rekindle.hessian(lambda x: (x ** 3).sum())(torch.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    return jacrev(jacrev(func, argnums, has_aux), argnums, has_aux)
