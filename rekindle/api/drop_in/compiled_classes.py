"""The classes of ``torch.jit`` while the drop-in is installed, and what is compiled through it.

Compiled functions and modules are this package's own. Where code reads their graphs, those that were compiled through
``torch.jit``'s names give views with ``torch.jit``'s names (:mod:`rekindle.api.drop_in.graph_views`).
"""

from __future__ import annotations

from typing import Any

from rekindle.api.drop_in.graph_views.passes import inline_with_scopes
from rekindle.api.drop_in.graph_views.views import GraphView, graph_of
from rekindle.api.drop_in.usage import count
from rekindle.errors import NotScriptableError
from rekindle.ir.graph import Graph
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.verifier import verify
from rekindle.program import torch_jit
from rekindle.program.function import Function, Method
from rekindle.program.modules.module import ScriptModule
from rekindle.program.sources.compilation_unit import CompilationUnit, caller_resolver


class _ShowsViews:
    """Mixin of functions and methods whose graphs are views, which have the interface of ``torch._C.Graph``."""

    __slots__ = ()

    _record: GraphFunction

    @property
    def graph(self) -> GraphView:
        """The graph, in which calls of other functions are not inlined."""
        return GraphView(self._record.graph)

    @property
    def inlined_graph(self) -> GraphView:
        """A copy of the graph with every call inlined, except recursive ones. The scope of an inlined node names the
        module that it runs in."""
        graph = self._record.graph.copy()
        inline_with_scopes(graph)
        return GraphView(graph)

    def graph_for(self, /, *args: Any, **kwargs: Any) -> GraphView:
        """Return the graph that a call with these arguments would run. Nothing is called."""
        return GraphView(super().graph_for(*args, **kwargs))  # type: ignore[misc]


class ScriptMethodShim(_ShowsViews, Method):  # type: ignore[misc]
    """``torch.jit.ScriptMethod``: methods of modules that were compiled through the drop-in."""

    __slots__ = ()


class _StandsForModules(type):
    """Metaclass of the class that replaces ``torch.jit.ScriptModule``: modules that ``torch.jit`` compiled are
    instances of that class too. Classes derived from it have ordinary instance checks; each object of one is counted as
    a use of the drop-in."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__call__(*args, **kwargs)
        if cls is not ScriptModuleShim:
            count("module", cls.__name__)
        return made

    def __instancecheck__(cls, instance: object) -> bool:
        if cls is not ScriptModuleShim:
            return type.__instancecheck__(cls, instance)
        return isinstance(instance, (ScriptModule, *torch_jit.SCRIPT_MODULE))

    def __subclasscheck__(cls, subclass: type) -> bool:
        if cls is not ScriptModuleShim:
            return type.__subclasscheck__(cls, subclass)
        return issubclass(subclass, (ScriptModule, *torch_jit.SCRIPT_MODULE))


class ScriptModuleShim(ScriptModule, metaclass=_StandsForModules):
    """``torch.jit.ScriptModule``: modules that PyTorch or rekindle compiled."""

    _rekindle_method_class = ScriptMethodShim


class _StandsForFunctions(type):
    """Metaclass of the class that replaces ``torch.jit.ScriptFunction``: functions that ``torch.jit`` compiled are
    instances of that class too."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, (Function, *torch_jit.SCRIPT_FUNCTION))

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, (Function, *torch_jit.SCRIPT_FUNCTION))


class ScriptFunctionShim(_ShowsViews, Function, metaclass=_StandsForFunctions):  # type: ignore[misc]
    """``torch.jit.ScriptFunction``: functions that PyTorch or rekindle compiled."""


class CompilationUnitShim(CompilationUnit):
    """``torch.jit.CompilationUnit``: names in the source are resolved in the caller's frame, or ``_frames_up`` frames
    above it. A resolution callback is not supported."""

    _function_class = ScriptFunctionShim

    def __init__(self, lang: str | None = None, _frames_up: int = 0) -> None:
        super().__init__()
        if lang is not None:
            self._define(lang, caller_resolver(_frames_up + 1))

    def define(self, lang: str, rcb: None = None, _frames_up: int = 0) -> None:
        check_no_callback(rcb)
        self._define(lang, caller_resolver(_frames_up + 1))

    def create_function(self, name: str, graph: GraphView | Graph) -> Function:
        """Add a function named ``name`` that runs a copy of a graph, and return it.

        Raises:
            VerificationError: the graph is not valid.
            CompileError: the name is taken.
        """
        copied = graph_of(graph).copy()
        verify(copied)
        return super().create_function(name, copied)


def check_no_callback(callback: object) -> None:
    """Check that no resolution callback is given.

    Raises:
        NotScriptableError: ``callback`` is not None.
    """
    if callback is not None:
        raise NotScriptableError(
            "a resolution callback (_rcb) is not supported: names are looked up where Python would",
            hint="leave _rcb out",
        )


def through_drop_in(compiled: Any) -> Any:
    """Make the graphs of ``compiled`` views, as under ``torch.jit``'s names, and return the result.

    A function of another class is returned as a new object of :class:`ScriptFunctionShim`. A module and its compiled
    submodules are modified in place. Anything else is returned unchanged.
    """
    if type(compiled) is not ScriptFunctionShim and isinstance(compiled, Function):
        function = ScriptFunctionShim.__new__(ScriptFunctionShim)
        function.__dict__.update(compiled.__dict__)
        return function
    if isinstance(compiled, ScriptModule):
        for part in compiled.modules():
            if isinstance(part, ScriptModule):
                part.__dict__["_rekindle_method_class"] = ScriptMethodShim
    return compiled
