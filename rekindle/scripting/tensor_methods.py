"""Methods of tensors that are written in Python: they mean the function of ``torch`` that they call.

Several have an operator of the same name, which does less (``aten::stft`` does not pad) or gives more
(``aten::unique_consecutive`` always gives three results).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from rekindle.errors import SchemaError, SourceRange
from rekindle.frontend.sugared import SugaredValue
from rekindle.frontend.tensor_attributes import PYTHON_METHODS
from rekindle.frontend.values import BuiltinFunction
from rekindle.ir.graph import Graph
from rekindle.ir.matching import CallArgument
from rekindle.scripting.python_values import function_value
from rekindle.scripting.resolver import PythonResolver

_NAMES = ("lu", "stft", "unique", "unique_consecutive")


class OperatorFirst(SugaredValue):
    """An operator where the arguments fit it, else the function, which takes more."""

    def __init__(self, operator: SugaredValue, function: SugaredValue) -> None:
        self.operator = operator
        self.function = function

    @property
    def description(self) -> str:
        return self.operator.description

    def call(
        self,
        range: SourceRange,
        graph: Graph,
        args: Sequence[CallArgument],
        kwargs: Sequence[CallArgument],
        targets: int,
    ) -> SugaredValue:
        try:
            return self.operator.call(range, graph, args, kwargs, targets)
        except SchemaError as why:
            try:
                return self.function.call(range, graph, args, kwargs, targets)
            except SchemaError:
                raise why from None


def _function(function: Any) -> SugaredValue:
    return function_value(function, PythonResolver.of_function(function))


def _norm() -> SugaredValue:
    return OperatorFirst(BuiltinFunction("aten::norm"), _function(torch.norm))


PYTHON_METHODS.update({name: partial(_function, getattr(torch, name)) for name in _NAMES})
PYTHON_METHODS["norm"] = _norm
PYTHON_METHODS["to_sparse_coo"] = partial(BuiltinFunction, "aten::to_sparse")
