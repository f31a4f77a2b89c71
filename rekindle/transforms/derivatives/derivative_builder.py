"""A program during its transformation to a derivative: the arguments to differentiate by, and the results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rekindle.errors import DifferentiationError, SourceRange
from rekindle.ir.graph import Graph, Value
from rekindle.ir.operators.schema import Argument
from rekindle.ir.types import TupleType
from rekindle.passes import LowerSimpleTuples, run_passes
from rekindle.program.function import Function
from rekindle.transforms.derivatives.programs import Program, kept, numbers_of, program_of
from rekindle.transforms.derivatives.pytrees import (
    Pytree,
    check_differentiable,
    flatten,
    leaves,
    taken_apart_like,
    type_of,
    unflatten,
    unflatten_like,
)
from rekindle.transforms.derivatives.vjp_builder import Vjp, build_vjp, clean_up


@dataclass(slots=True)
class DerivativeBuilder:
    """A builder of the derivative of a program. ``wanted`` are the arguments with respect to which it is taken,
    ``value`` is the result that is differentiated, and ``aux`` an auxiliary result. ``graph`` has no outputs during the
    work. At most ``limit`` bytes are kept for the backward of loops, if it is given."""

    program: Program
    wanted: Pytree
    value: Pytree
    aux: Value | None
    range: SourceRange
    """Where the result was computed."""
    limit: int | None = None

    @classmethod
    def of(cls, func: Any, argnums: int | Sequence[int], has_aux: bool, limit: int | None = None) -> DerivativeBuilder:
        """Return the builder for a copy of the graph of ``func``. The parameters are those of
        :func:`~rekindle.transforms.derivatives.functions.grad`.

        Raises:
            DifferentiationError: ``func`` has no derivative as a program, or an option is invalid.
            CompileError: ``func`` cannot be compiled.
        """
        _check_limit(limit)
        program = program_of(func)
        graph = program.graph
        numbers = numbers_of(argnums, program)
        arguments: list[Pytree] = []
        for number in numbers:
            arguments.append(_open_argument(program, number))
            check_differentiable(arguments[-1], f"argument {number} of '{program.basename}'")
        wanted = arguments[0] if isinstance(argnums, int) else tuple(arguments)
        with kept(graph, list(leaves(wanted))):
            run_passes(graph, (LowerSimpleTuples(),))
        (result,) = graph.outputs
        graph.block.erase_output(0)
        value = flatten(graph, result)
        aux: Value | None = None
        if has_aux:
            if not isinstance(value, tuple) or len(value) != 2:
                raise DifferentiationError(
                    f"'{program.basename}' returns {result.type}, and not a tuple of two, of which has_aux=True would "
                    "leave the second alone",
                    result.node.range,
                )
            value, rest = value
            aux = unflatten(graph, rest)
        return cls(program, wanted, value, aux, result.node.range, limit)

    @property
    def graph(self) -> Graph:
        return self.program.graph

    def check_result(self) -> None:
        """Check that the result can be differentiated.

        Raises:
            DifferentiationError: a leaf of the result is not a tensor, or a list or dict of tensors.
        """
        check_differentiable(self.value, f"the result of '{self.program.basename}'", self.range)

    def return_results(self) -> None:
        """Make the leaves of the value outputs of the graph. The auxiliary value, if there is one, is one more output,
        after them."""
        for value in (*leaves(self.value), *(() if self.aux is None else (self.aux,))):
            self.graph.add_output(value)

    def return_nothing(self) -> None:
        """Remove all outputs of the graph."""
        for index in reversed(range(len(self.graph.outputs))):
            self.graph.block.erase_output(index)

    def build_vjp(self) -> Vjp:
        """Return the vector-Jacobian product from the value to the wanted arguments. Its results are the leaves of the
        value, and the auxiliary value as one result."""
        self.return_results()
        return build_vjp(self.graph, list(leaves(self.wanted)), range(len(list(leaves(self.value)))), self.limit)

    def add_parameter(self, name: str, like: Pytree) -> Pytree:
        """Add a last parameter with the structure of ``like``, and return it."""
        known = {argument.name for argument in self.program.arguments}
        while name in known:
            name += "_"
        type = type_of(like)
        value = self.graph.add_input(name, type)
        self.program.arguments = (*self.program.arguments, Argument(name, type))
        return taken_apart_like(self.graph, value, like)

    def shaped(self, gradients: Sequence[Value]) -> Pytree:
        """Return gradients in the structure of the arguments to differentiate by."""
        return unflatten_like(self.wanted, gradients)

    def results(self, found: Sequence[Value], derivative: Pytree) -> Pytree:
        """Return the results of the new program: the value, the derivative, and the auxiliary value if there is one.
        The leaves of the first and the last are ``found``."""
        count = len(list(leaves(self.value)))
        return (unflatten_like(self.value, found[:count]), derivative, *found[count:])

    def finished(self, results: Pytree, what: str, description: str) -> Function:
        """Add ``results`` to the outputs of the graph, simplify it, and return it as a function. ``what`` is the end of
        the name of the function, ``description`` the beginning of its docstring."""
        self.graph.add_output(unflatten(self.graph, results))
        clean_up(self.graph)
        program = self.program
        return program.function(f"{program.name}_{what}", f"{description} {program.basename}.")


def _check_limit(limit: object) -> None:
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
        raise DifferentiationError(
            f"memory_limit={limit!r} is not a number of bytes", hint="pass an int, or None for no limit"
        )


def _open_argument(program: Program, number: int) -> Pytree:
    """Return the argument ``number`` as a tree. The uses of a tuple are replaced by a tuple of the tree's elements,
    except earlier unpackings."""
    graph = program.graph
    value = graph.inputs[number]
    if number in program.entries:
        return program.entries[number]
    if not isinstance(value.type, TupleType):
        return value
    with graph.inserting_before(graph.return_node.next):
        tree = flatten(graph, value)
        whole = unflatten(graph, tree)
    for use in value.uses:
        if use.user.kind != "prim::TupleUnpack" or use.user.is_after(whole.node):
            use.user.replace_input(use.offset, whole)
    return tree
