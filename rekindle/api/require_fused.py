"""``with rekindle.require_fused():`` raise an error unless the called programs run in kernels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import get_ident
from typing import Any, Final

from rekindle.api.reports.unfused_nodes import CALLED, NO_FUSION, UnfusedNode, unfused_nodes
from rekindle.codegen.fusion_executor import NO_KERNEL, RECORDED, TOO_EARLY, FusionExecutor
from rekindle.codegen.operators.matmul import LEFT_ON_GPU, LEFT_TO_BLAS
from rekindle.errors import FusionBlocker, NotFusedError
from rekindle.ir.graph_function import GraphFunction
from rekindle.program.calling import interceptors, runner_of
from rekindle.runtime.calls.arguments import Runner, binder_of
from rekindle.runtime.executed import codes_of, groups_in
from rekindle.runtime.executor import is_optimizing, prepare
from rekindle.runtime.interpreter.code import Code


@contextmanager
def require_fused(*, allow: Iterable[str] = ()) -> Iterator[None]:
    """Raise within a ``with`` block if a compiled program runs a tensor operator outside of a kernel.

    BLAS and oneDNN count as kernels: matrix products, convolutions, attention. Views, sizes, lists and control flow are
    not tensor operators. Known misses are reported before the program runs, kernels that could not be generated for its
    inputs after it, and backward graphs that are not fused when the block ends. Kernels are generated at the first
    call. It applies to the thread that is in the block, and to the programs that Python calls there.

    Args:
        allow: kinds of operators that may run outside of kernels, such as ``"aten::cumsum"``.

    Raises:
        NotFusedError: with every operator outside of kernels, its line, and a way out.

    Example:
        >>> gate = rekindle.script(lambda x: torch.sigmoid(x) * x)
        >>> with torch.no_grad(), rekindle.require_fused():
        ...     gate(torch.zeros(4))
        tensor([0., 0., 0., 0.])
        >>> in_order = rekindle.script(lambda x: torch.sort(x)[0])
        >>> try:
        ...     with rekindle.require_fused():
        ...         in_order(torch.zeros(4))
        ... except rekindle.errors.NotFusedError:
        ...     print("not fused")
        not fused
    """
    ident = get_ident()
    before = interceptors.get(ident)
    watch = _Watch(frozenset(allow), before)
    interceptors[ident] = watch.call
    try:
        yield
    finally:
        if before is None:
            interceptors.pop(ident, None)
        else:
            interceptors[ident] = before
    watch.finish()


_NOT_OPTIMIZED: Final = "optimized_execution(False) has the interpreter run it as it was compiled"


class _Watch:
    """The calls of compiled programs within one ``with`` block. ``inner`` is the runner of an enclosing block, None if
    there is none; kinds of operators in ``allow`` may run outside of kernels."""

    def __init__(self, allow: frozenset[str], inner: Runner | None) -> None:
        self._allow = allow
        self._inner = inner
        self._called: dict[Code, str] = {}
        """The compiled code of the calls so far, with the names of the functions."""
        self._fell: dict[FusionExecutor, dict[str, int]] = {}
        """For each fusion group, the number of fallbacks by reason when the block first ran the group."""

    def call(self, record: GraphFunction, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run a call of ``record`` and return its result. The code is checked before and after the call, and recorded
        for :meth:`finish`. Within ``optimized_execution(False)`` only the graph is checked, before the call.

        Raises:
            NotFusedError: operators run outside of kernels.
        """
        run, name = self._inner or runner_of(record), record.name.rsplit(".", 1)[-1]
        if not is_optimizing():
            unfused = [UnfusedNode(each.node, _NOT_OPTIMIZED) for each in unfused_nodes(record.graph)]
            _raise(name, [_blocker(each) for each in self._unfused(unfused)])
            return run(record, args, kwargs)
        code = prepare(record, binder_of(record).bind(args, kwargs)).code
        self._check(name, code)
        self._called[code] = name
        for group in groups_in(code):
            group.compile_eagerly()
            self._fell.setdefault(group, dict(group.fallbacks))
        result = run(record, args, kwargs)
        self._check(name, code)
        return result

    def finish(self) -> None:
        """Check the code of all calls again: backward graphs may have run since.

        Raises:
            NotFusedError: operators ran outside of kernels.
        """
        for code, name in self._called.items():
            self._check(name, code)

    def _check(self, name: str, code: Code) -> None:
        found = [_blocker(each) for piece in codes_of(code) for each in self._unfused(unfused_nodes(piece.graph))]
        if code in self._called:
            found += [blocker for group in groups_in(code) for blocker in self._fallen(group)]
        _raise(name, found)

    def _unfused(self, found: Iterable[UnfusedNode]) -> Iterator[UnfusedNode]:
        return (each for each in found if not each.is_library and each.node.kind not in self._allow)

    def _fallen(self, group: FusionExecutor) -> Iterator[FusionBlocker]:
        before = self._fell.get(group, {})
        for why, count in group.fallbacks.items():
            fell = count > before.get(why, 0) or (group.has_given_up and why in (NO_KERNEL, RECORDED))
            if why == NO_KERNEL and set(group.failures) in ({LEFT_TO_BLAS}, {LEFT_ON_GPU}):
                continue  # the rest of the group has kernels of its own
            if fell and why != TOO_EARLY:
                reason = f"{why}: {group.failures[-1]}" if why == NO_KERNEL and group.failures else why
                nodes = [node for node in group.graph.nodes if node.kind != "prim::Constant"]
                what = ", ".join(node.kind for node in nodes)
                hint = _way_out(reason) or "docs/kernels.md lists what kernels are made of"
                yield FusionBlocker(what, f"a kernel was to run them, but {reason}", hint, nodes[-1].range)


def _blocker(of: UnfusedNode) -> FusionBlocker:
    kind = of.node.kind
    known = _way_out(of.reason)
    if of.reason == _UNKNOWN and kind.endswith("_"):
        known = f"use the operator that does not work in place, {kind.removesuffix('_')}"
    let = f'allow it: require_fused(allow=["{kind}"])'
    return FusionBlocker(kind, of.reason, f"{known}, or {let}" if known else let, of.node.range)


def _raise(name: str, blockers: Sequence[FusionBlocker]) -> None:
    """Raise if there are blockers; equal ones are reported once, with their number.

    Raises:
        NotFusedError: ``blockers`` is not empty.
    """
    found: dict[object, list[FusionBlocker]] = {}
    for each in blockers:
        found.setdefault((each.what, each.reason, each.range), []).append(each)
    if found:
        raise NotFusedError(name, tuple(each[0].times(len(each)) for each in found.values()))


# --------------------------------------------------------------------------------------------------------- the ways out

_UNKNOWN: Final = "kernels do not know this operator"

_WAYS_OUT: Final = {
    _UNKNOWN: "write it with operators that fuse (docs/kernels.md)",
    "no operator beside it fuses with it": "kernels run it only beside operators that compute",
    "complex": "compute with real and imaginary parts",
    "made for the CPU": "move the tensors to the CPU",
    "is not constant": "make that a constant: a literal, a Final attribute, or one of a frozen module",
    "other dimensions than the last": "transpose the tensor first, so that these dimensions are its last",
    "random numbers": "call the module's eval(), or pass training=False",
    "may share memory": "call clone() on its result, or leave it out where it changes nothing",
    "cannot move": "write to none of its inputs before the operators that use its result",
    "gradients are recorded": "call it within torch.no_grad()",
    "subclass of Tensor": "pass plain tensors",
    "no dense tensor on the CPU": "pass dense tensors on the CPU",
    "lazily": "pass x.resolve_conj().resolve_neg()",
    "have to see each operator": "call it outside of the mode, the transform or torch.autocast",
    NO_FUSION: 'choose one that does, rekindle.set_execution_strategy("native")',
    CALLED: "compile what it calls into the program, rather than leave it to Python or to an interface",
    _NOT_OPTIMIZED: "call it outside of optimized_execution(False)",
}
"""Hints: what a user can do, by a substring of the reason."""


def _way_out(reason: str) -> str | None:
    return next((hint for part, hint in _WAYS_OUT.items() if part in reason), None)
