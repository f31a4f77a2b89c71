"""Printer of kernels in the loop IR.

.. code-block:: text

    kernel(in0: f32, in1: f32; a0: f64) -> (out0: f32)
      for 2 loops:
        %0 = load in0[*, 1]
        %1 = load in1[*, 0]
        %2 : f32 = add(%0, %1)
        store out0[*, 1] = %2

The brackets contain the stride of an access along each loop: ``0`` for loop-invariant, ``1`` for the next element,
``s`` for another stride; ``*`` stands for any of these in loops that are not vectorized. ``in0'`` is another access to
the same tensor, with another offset or other strides.
"""

from __future__ import annotations

from collections.abc import Iterator

from rekindle.codegen.loop_ir.nodes import Expression, Kernel, LoopNest, MatmulNest, Reduction, Store


def kernel_text(kernel: Kernel) -> str:
    """Return the text form of ``kernel``. Only equal kernels have equal texts."""
    inputs = ", ".join(f"in{n}: {scalar}" for n, scalar in enumerate(kernel.inputs))
    if kernel.arguments:
        inputs += "; " + ", ".join(f"a{n}: {scalar}" for n, scalar in enumerate(kernel.arguments))
    outputs = ", ".join(f"out{n}: {scalar}" for n, scalar in enumerate(kernel.outputs))
    head = f"kernel({inputs}) -> ({outputs})"
    if kernel.temporaries:
        head += " with (" + ", ".join(f"temp{n}: {scalar}" for n, scalar in enumerate(kernel.temporaries)) + ")"
    lines = [head]
    for nest in kernel.nests:
        lines += [_product(kernel, nest)] if isinstance(nest, MatmulNest) else _NestText(kernel, nest).lines()
    return "\n".join(lines) + "\n"


def _names(kernel: Kernel) -> list[str]:
    """Return the names of the kernel's buffers."""
    names = [f"in{number}" for number in range(len(kernel.inputs))]
    names += [f"out{number}" for number in range(len(kernel.outputs))]
    return names + [f"temp{number}" for number in range(len(kernel.temporaries))]


def _product(kernel: Kernel, nest: MatmulNest) -> str:
    a, b, out = (_names(kernel)[access.buffer] for access in nest.accesses)
    m = "0" if nest.is_row else "m"
    within = ["*"] * (nest.rank - 3)
    places = [", ".join([*within, *own]) for own in ((m, "k"), ("k", "n"), (m, "n"))]
    along = "n" if nest.vectorizes_outer else "k"
    return f"  store {out}[{places[2]}] = sum of {a}[{places[0]}] * {b}[{places[1]}] for all k, along {along}"


class _NestText:
    def __init__(self, kernel: Kernel, nest: LoopNest) -> None:
        self.nest = nest
        self.names: dict[Expression, str] = {}
        self.count = 0
        self.accesses: list[str] = []
        seen: dict[int, int] = {}
        names = _names(kernel)
        for access in nest.accesses:
            name = names[access.buffer]
            primes = "'" * seen.get(access.buffer, 0)
            seen[access.buffer] = len(primes) + 1
            places = ["0" if access.is_fixed else "*"] * (nest.rank - nest.reduction_rank)
            places += ["0" if access.is_invariant else "*"] * nest.reduction_rank
            places[nest.vector_loop] = access.step.value
            self.accesses.append(f"{name}{primes}[{', '.join(places)}]")

    def lines(self) -> Iterator[str]:
        nest = self.nest
        head = f"for {nest.rank} loop{'s' if nest.rank != 1 else ''}"
        if nest.reduction_rank > 1 or nest.vectorizes_outer:
            head += f", {nest.reduction_rank} folded" + (", across" if nest.vectorizes_outer else "")
        yield f"  {head}:"
        several = bool(nest.reduction_rank)
        indent = "      " if several else "    "
        for phase in self.nest.phases:
            self._forget()
            if several:
                which = "innermost" if nest.reduction_rank == 1 else f"{nest.reduction_rank} innermost"
                yield f"    along the {which}:"
            for store in phase.stores:
                yield from self._store(store, indent)
            for reduction in phase.reductions:
                yield from self._reduction(reduction, indent)
        self._forget()
        if self.nest.last:
            yield "    at its end:"
            for store in self.nest.last:
                yield from self._store(store, indent)

    def _forget(self) -> None:
        """Forget the names of expressions, which are not valid in the next phase."""
        self.names.clear()
        self.count = 0

    def _store(self, store: Store, indent: str) -> Iterator[str]:
        yield from self._expression(store.value, indent)
        yield f"{indent}store {self.accesses[store.access]} = {self.names[store.value]}"

    def _reduction(self, reduction: Reduction, indent: str) -> Iterator[str]:
        yield from self._expression(reduction.value, indent)
        result, value = reduction.result, self.names[reduction.value]
        yield f"{indent}r{result.payload} : {result.scalar} = {reduction.kind} of {value}"

    def _expression(self, expression: Expression, indent: str) -> Iterator[str]:
        """Yield the lines that compute ``expression`` and were not written yet."""
        if expression in self.names:
            return
        for operand in expression.operands:
            yield from self._expression(operand, indent)
        if expression.kind == "constant":
            self.names[expression] = f"{expression.scalar}({expression.payload!r})"
            return
        if expression.kind == "length":
            self.names[expression] = "n"
            return
        if expression.kind in ("argument", "reduced", "given"):
            self.names[expression] = f"{expression.kind[0]}{expression.payload}"
            return
        name = self.names[expression] = f"%{self.count}"
        self.count += 1
        if expression.kind == "load":
            assert isinstance(expression.payload, int)
            yield f"{indent}{name} = load {self.accesses[expression.payload]}"
            return
        operands = ", ".join(self.names[operand] for operand in expression.operands)
        if expression.kind == "lookup":
            assert isinstance(expression.payload, int)
            yield f"{indent}{name} = lookup {self.accesses[expression.payload]} at ({operands})"
            return
        yield f"{indent}{name} : {expression.scalar} = {expression.kind}({operands})"
