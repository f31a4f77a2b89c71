"""``rekindle.show``: a page that shows the graphs of a program from source to kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from rekindle.api.drop_in.entry_points import EntryPoint, entry_point_of
from rekindle.api.stages import COMPILED, Stage, stages_of
from rekindle.codegen.fusion import KIND as GROUP
from rekindle.codegen.fusion_executor import group_of
from rekindle.errors import UNKNOWN_RANGE, Source
from rekindle.frontend.recursion_limit import room_to_recurse
from rekindle.importing.compiled_graphs import CompiledGraph, graphs_of
from rekindle.ir.graph import Graph, Node
from rekindle.ir.graph_function import GraphFunction
from rekindle.passes import Pass
from rekindle.passes.canonicalization.inlining import inline
from rekindle.runtime.executable import Executable
from rekindle.runtime.executor import pipeline_of_calls
from rekindle.runtime.optimization import optimize
from rekindle.runtime.pipelines import OPTIMIZATION
from rekindle.viz import Page, PageStage as Shown, page
from rekindle.viz.boxes import MAX_BOXES_IN_VIEW, Picture, picture_of

MAX_NODES: Final = 2_000
"""Graphs with more nodes are shown as compiled and as optimized only, without the passes in between and without
aliases."""


def show(f: Any, /, *args: Any, **kwargs: Any) -> Page:
    """Return a page for browsers with the graph of ``f`` after each pass that changed it, and the graphs and kernels
    that calls have run so far.

    Boxes fold; source lines, nodes and kernels link to each other. The page is one file that needs no network.
    Notebooks display it; ``.save("f.html")`` writes it. ``f`` is not called.

    Args:
        f: a function, a method or a module, compiled or not; a graph; or a result of ``torch.compile(…,
            backend="rekindle")``, whose graphs are shown.
        args, kwargs: the arguments of one call, as they would be passed to ``f``: not in a tuple. With them, the passes
            are those that run before such a call. They have no effect if ``f`` is a graph or a result of
            ``torch.compile``.

    Raises:
        ArgumentError: there are arguments, and they do not fit.
        CompileError, NotScriptableError: ``f`` cannot be compiled.
        TypeError: ``f`` is an overloaded function, or a class.

    Example:
        >>> page = rekindle.show(lambda x: torch.sigmoid(x) * x, torch.ones(2))
        >>> page.save("gate.html").name
        'gate.html'
    """
    files: list[Source] = []
    compiled = graphs_of(f)
    if isinstance(f, Graph):
        with room_to_recurse(UNKNOWN_RANGE):
            return page("graph", [Shown("graph", _picture(f, files))], files)
    if compiled is not None:
        kernels: list[str] = []
        with room_to_recurse(UNKNOWN_RANGE):
            shown = list(_of_compiled(compiled, files, kernels))
        return page(getattr(f, "__name__", type(f).__name__), shown, files, kernels)
    subject = entry_point_of(f)
    return page_of(subject, subject.bind(args, kwargs) if args or kwargs else None)


def page_of(subject: EntryPoint, arguments: Sequence[Any] | None, seconds: Mapping[Node, float] | None = None) -> Page:
    """Return the page of a compiled function: the graph after each pass for a call with these ``arguments``, or after
    the default passes if that is None, and the graphs that calls run. ``seconds`` are the measured times of nodes."""
    files: list[Source] = []
    kernels: list[str] = []
    with room_to_recurse(UNKNOWN_RANGE):
        passes = OPTIMIZATION if arguments is None else pipeline_of_calls(subject.record, arguments)
        shown = [
            Shown(name, _picture(graph, files), diff) for name, graph, diff in _on_the_way(subject.record.graph, passes)
        ]
        seconds_of = (seconds or {}).get
        numbered = _numbered(kernels)
        for name, graph in _versions(subject.record):
            picture = _picture(graph, files, kernels_of=numbered, seconds_of=seconds_of)
            shown.append(Shown(name, picture))
    return page(subject.record.name.rsplit(".", 1)[-1], shown, files, kernels)


def _picture(graph: Graph, files: list[Source], **options: Any) -> Picture:
    """Return the boxes of ``graph``, with aliases if it is small."""
    return picture_of(graph, files=files, aliases=_is_small(graph), max_boxes=MAX_BOXES_IN_VIEW, **options)


def _of_compiled(graphs: Sequence[CompiledGraph], files: list[Source], kernels: list[str]) -> Iterator[Shown]:
    """Yield the functions of a result of ``torch.compile``: the captured graph, and the versions that calls run."""
    for graph in graphs:
        for function in graph.functions:
            for name, each in ((COMPILED, function._record.graph), *_versions(function._record)):
                picture = _picture(each, files, kernels_of=_numbered(kernels))
                yield Shown(f"[{graph.compile_id}] {function.name}: {name}", picture)


def _is_small(graph: Graph) -> bool:
    return sum(1 for _ in graph.all_nodes()) <= MAX_NODES


def _on_the_way(graph: Graph, passes: Sequence[Pass]) -> Iterator[tuple[str, Graph, str]]:
    """Yield a title, a graph and the diff from the previous graph: before the first pass, and after each pass that
    changed the graph. A large graph is only yielded before and after all passes, without diffs."""
    whole = graph.copy()
    inline(whole)
    if not _is_small(whole):
        optimized = graph.copy()
        optimize(optimized, passes)
        yield COMPILED, graph, ""
        yield "after all passes", optimized, ""
        return
    found: list[Stage] = [stage for stage in stages_of(graph, passes) if stage.diff or stage.name == COMPILED]
    for number, stage in enumerate(found):
        yield f"{number}. {stage.name}" if number else stage.name, stage.graph, stage.diff


def _versions(record: GraphFunction) -> Iterator[tuple[str, Graph]]:
    """Yield the title and the graph of each version that calls run."""
    executable = record.executable
    if isinstance(executable, Executable) and executable.strategy is not None:
        for number, version in enumerate(executable.strategy.versions, start=1):
            yield f"version {number}: what calls run", version.graph


def _numbered(kernels: list[str]) -> Callable[[Node], Sequence[int]]:
    """Return a function that maps a node to the indices of its kernels in ``kernels``, to which it appends new kernels'
    texts. Nodes other than fusion groups have no kernels."""

    def kernels_of(node: Node) -> list[int]:
        group = group_of(node.get_graph("Subgraph")) if node.kind == GROUP else None
        found: list[int] = []
        for launch in [] if group is None else list(group.launches.values()):
            if launch is not None:
                if launch.kernel.text not in kernels:
                    kernels.append(launch.kernel.text)
                found.append(kernels.index(launch.kernel.text))
        return sorted(set(found))

    return kernels_of
