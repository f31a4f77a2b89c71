"""A model and its loss as one program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor, nn

from rekindle.errors import UNKNOWN_RANGE
from rekindle.frontend.calls.insertion import insert_function_constant, insert_method_call
from rekindle.ir.graph import Graph, Value
from rekindle.ir.operators.schema import Argument
from rekindle.ir.operators.schema_matching import argument, match_schemas
from rekindle.program.function import Function
from rekindle.program.modules.module import ScriptModule
from rekindle.scripting.script import script
from rekindle.transforms.editing.from_graph import create_module


class LossProgram:
    """Callable that returns the loss of a batch.

    The model is compiled unless it is compiled already or wraps compiled modules; a compiled copy shares the original's
    parameters and buffers, and follows changes of its training mode. Model and loss are one program for each number of
    arguments. If hooks have to see the call of the model or of the loss, or the model is not a compiled module, the
    model is called, then the compiled loss.
    """

    def __init__(self, model: nn.Module, loss: Callable[..., Any] | None) -> None:
        self.model: nn.Module = model if isinstance(model, ScriptModule) or _wraps_compiled(model) else script(model)
        self._keywords: dict[str, object] = {}
        if isinstance(loss, partial) and not loss.args:
            self._keywords = dict(loss.keywords)
            loss = loss.func
        self._loss: Any = None if loss is None else script(loss)
        originals = {} if self.model is model else dict(model.named_modules())
        parts = self.model.named_modules()
        self._followed = [_Followed(part, originals[name]) for name, part in parts if name in originals]
        for each in self._followed:
            # One table for both: either may replace its tensors, as `original.double()` does with buffers.
            vars(each.compiled).update(_parameters=each.original._parameters, _buffers=each.original._buffers)
        self._programs: dict[tuple[int, int], ScriptModule] = {}

    def follow_modes(self) -> None:
        """Put the compiled modules in the training mode of the originals whose mode has changed since the last call."""
        for each in self._followed:
            if each.training is not each.original.training:
                each.training = each.compiled.training = each.original.training

    def __call__(self, inputs: Sequence[Any], targets: Sequence[Any]) -> Tensor:
        self.follow_modes()
        result: Tensor
        model, loss = self.model, self._loss
        if loss is None:
            result = model(*inputs)
        elif not isinstance(model, ScriptModule) or _has_hooks(model) or _has_hooks(loss):
            result = loss(model(*inputs), *targets, **self._keywords)
        else:
            key = len(inputs), len(targets)
            program = self._programs.get(key)
            if program is None:
                program = self._programs[key] = _composed(model, loss, *key, self._keywords)
            result = program(*inputs, *targets)
        return result


@dataclass(slots=True)
class _Followed:
    """A compiled module with the original, whose training mode was ``training`` when the compiled one took it."""

    compiled: nn.Module
    original: nn.Module
    training: bool | None = None


def _wraps_compiled(model: nn.Module) -> bool:
    """Return whether ``model`` is a result of ``torch.compile``, or has a compiled submodule."""
    return hasattr(model, "_orig_mod") or any(isinstance(each, ScriptModule) for each in model.modules())


def _has_hooks(callee: object) -> bool:
    return isinstance(callee, nn.Module) and bool(
        callee._forward_hooks or callee._forward_pre_hooks or callee._backward_hooks or callee._backward_pre_hooks
    )


def _composed(
    model: ScriptModule, loss: ScriptModule | Function, inputs: int, targets: int, keywords: Mapping[str, object]
) -> ScriptModule:
    """Return a module that calls ``model`` on its first ``inputs`` arguments, and ``loss`` on the result, the remaining
    ``targets`` arguments, and the constants ``keywords``.

    Raises:
        SchemaError: the numbers of arguments do not fit, or the loss does not take what the model returns.
    """
    graph = Graph()
    attributes: dict[str, object] = {"model": model}
    of_model = graph.add_input("model", model.script_type)
    of_loss = None
    if isinstance(loss, ScriptModule):
        attributes["loss"] = loss
        of_loss = graph.add_input("loss", loss.script_type)
    formals = (*model.forward.schema.arguments[1 : 1 + inputs], *_parameters(loss)[1 : 1 + targets])
    names = _distinct([each.name for each in formals], {"self", "model", "loss"})
    values = [graph.add_input(name, each.type) for name, each in zip(names, formals, strict=True)]
    result = _call(graph, "forward of the model", model.forward, of_model, values[:inputs], {})
    callee = loss.forward if isinstance(loss, ScriptModule) else loss
    graph.add_output(_call(graph, "the loss", callee, of_loss, [result, *values[inputs:]], keywords))
    return create_module(graph, attributes, "ModelWithLoss")


def _parameters(loss: ScriptModule | Function) -> tuple[Argument, ...]:
    return loss.forward.schema.arguments[1:] if isinstance(loss, ScriptModule) else loss.schema.arguments


def _distinct(names: Sequence[str], taken: set[str]) -> list[str]:
    """Return ``names`` with underscores appended to those that are ``taken`` or occur earlier."""
    distinct: list[str] = []
    for name in names:
        while name in taken or name in distinct:
            name += "_"
        distinct.append(name)
    return distinct


def _call(
    graph: Graph,
    what: str,
    callee: Function,
    own: Value | None,
    arguments: Sequence[Value],
    keywords: Mapping[str, object],
) -> Value:
    """Insert a call of ``forward`` of the module ``own``, or of the function ``callee`` if ``own`` is None. Return the
    output. ``what`` names the callee in errors.

    Raises:
        SchemaError: the arguments do not fit the schema.
    """
    record = callee._record
    values = [argument(each) for each in (arguments if own is None else [own, *arguments])]
    constants = [argument(each, name=name) for name, each in keywords.items()]
    _, plan = match_schemas(what, [record.schema], UNKNOWN_RANGE, values, constants)
    inputs = plan.inputs(graph, UNKNOWN_RANGE)
    if own is not None:
        return insert_method_call(UNKNOWN_RANGE, graph, "forward", inputs, plan.return_types)
    constant = insert_function_constant(UNKNOWN_RANGE, graph, record)
    call = graph.create("prim::CallFunction", [constant, *inputs], types=plan.return_types)
    return graph.insert_node(call).output
