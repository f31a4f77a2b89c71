"""Random calls of operators: our choice of overload and of conversions is torch.jit's, or both refuse."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
import torch

from rekindle.errors import RekindleError, SourceRange
from rekindle.frontend.sugared_values.base import SugaredValue
from rekindle.frontend.sugared_values.values import BuiltinFunction
from rekindle.ir.graph import Graph
from rekindle.ir.operators.registry import REGISTRY
from rekindle.ir.operators.schema import Argument
from rekindle.ir.types import ListType, OptionalType, Type, VarType
from tests.support.frontend import compiled

KINDS = """
    add sub mul div pow sum mean reshape zeros ones full cat stack max min where clamp index_select transpose
    permute squeeze unsqueeze flatten softmax norm std var all any argmax eq lt ge remainder fmod floor_divide
    arange linspace normal to expand repeat split chunk select gather scatter masked_fill fill_ conv1d conv2d
    max_pool2d avg_pool2d layer_norm embedding dropout bitwise_and logical_and atan2 lerp addmm baddbmm matmul
    einsum tensordot roll flip cumsum sort topk kthvalue median std_mean quantile isin bucketize searchsorted
    histc meshgrid result_type new_zeros new_full zeros_like full_like randint empty index_put diff prod amax
    logsumexp nansum count_nonzero unbind narrow tile movedim dsplit tensor_split swapaxes index_fill index_add
    masked_select nan_to_num clip bitwise_or bitwise_left_shift add_ mul_ div_ copy_ append extend insert pop
    index remove find replace strip startswith join get setdefault update items len abs sqrt floor ceil round
    Int Float Bool str ord chr hex neg log exp list gcd copysign adaptive_avg_pool2d batch_norm group_norm
    index_fill_ squeeze_ __getitem__ __contains__ keys values
""".split()

TYPES = """
    Tensor; int; float; bool; complex; str; number; List[int]; List[float]; List[Tensor]; List[bool]; Tuple[int, int];
    Tuple[float, float]; Tuple[int, float]; Optional[int]; Optional[Tensor]; None; Device; List[str]; Dict[str, int];
    Optional[List[int]]; Any; List[Optional[Tensor]]; Optional[bool]
""".replace("\n", " ")

ANY_TYPE = [type.strip() for type in TYPES.split(";")]

SEEDS = range(20)
CALLS = 100
"""How many calls each seed makes."""


class Operators(SugaredValue):
    """``torch`` in the programs below: ``torch.ops.aten.add`` is the operator, whatever Python's ``torch.add`` does."""

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        return Operators() if name in ("ops", "aten") else BuiltinFunction(f"aten::{name}")


@dataclass(slots=True)
class Call:
    """A call of an operator with arguments of some types: one that might fit an overload, more or less."""

    kind: str
    positional: list[str] = field(default_factory=list)
    keywords: list[tuple[str, str]] = field(default_factory=list)

    @property
    def text(self) -> str:
        parameters, arguments = [], []
        named = [("", type) for type in self.positional] + self.keywords
        for position, (name, type) in enumerate(named):
            value = "None" if type == "None" else f"a{position}"
            arguments.append(f"{name}={value}" if name else value)
            if type != "None":
                parameters.append(f"{value}: {type}")
        return f"def f({', '.join(parameters)}):\n    return torch.ops.aten.{self.kind}({', '.join(arguments)})\n"


def spelled(type: Type, choose: random.Random) -> str:
    """A type that fits ``type``."""
    if isinstance(type, OptionalType):
        return choose.choice([spelled(type.element, choose), "None"])
    if isinstance(type, VarType):
        return "str" if type.name == "Key" else "int"
    parts = [VarType(part.name) if isinstance(part, VarType) else part for part in type.contained]
    if any(isinstance(part, VarType) for part in parts):
        inner = ", ".join(spelled(part, choose) for part in parts)
        return f"{'List' if isinstance(type, ListType) else 'Dict'}[{inner}]"
    return type.annotation


def random_call(choose: random.Random) -> Call:
    call = Call(choose.choice(KINDS))
    operator = choose.choice(REGISTRY.overloads(f"aten::{call.kind}"))
    for formal in operator.schema.arguments:
        if formal.has_default and choose.random() < 0.5:
            continue
        add_argument(call, formal, choose)
    if choose.random() < 0.05:
        call.positional.append(choose.choice(ANY_TYPE))
    return call


def add_argument(call: Call, formal: Argument, choose: random.Random) -> None:
    type = spelled(formal.type, choose)
    if choose.random() < 0.25:
        type = choose.choice(ANY_TYPE)
    elif formal.size is not None and choose.random() < 0.5:
        type = "int"
    if formal.kwarg_only or call.keywords or choose.random() < 0.1:
        call.keywords.append((formal.name, type))
    elif isinstance(formal.type, ListType) and choose.random() < 0.2:
        call.positional += [spelled(formal.type.element, choose)] * choose.randint(1, 3)
    else:
        call.positional.append(type)


def our_choice(text: str) -> list[str] | None:
    """The overloads of the operators in the graph; None where the call is refused."""
    try:
        graph = compiled(text, {"torch": Operators()}).graph
    except RekindleError:
        return None
    if graph.find_node("prim::RaiseException") is not None:
        return None  # no overload takes an argument that may be None: the program checks that it is not
    found = [REGISTRY.resolve(node) for node in graph.all_nodes() if node.kind.startswith("aten::")]
    return [operator.schema.qualified_name for operator in found if operator is not None]


def their_choice(text: str) -> list[str] | None:
    try:
        graph = torch.jit.CompilationUnit(text).f.graph
    except RuntimeError:
        return None
    found = [node.schema().partition("(")[0] for node in graph.nodes() if node.kind().startswith("aten::")]
    return found


def known_difference(call: Call, ours: list[str] | None, theirs: list[str] | None) -> str | None:
    """Why the two may differ here."""
    if ours is not None and theirs is not None:
        kinds, their_kinds = ([name.partition(".")[0] for name in names] for names in (ours, theirs))
        if kinds == their_kinds and any("hacked_twin" in name for name in theirs):
            return "a list of Tensors that is only read is one of Optionals; torch.jit has an overload for it"
        if "aten::Int.Scalar" in theirs and len({*kinds} - {"aten::Int"}) == 1 < len(kinds):
            return "the overload that fits the number is chosen at run time; torch.jit makes an int of it"
        if ours == [name for name in theirs if name != "aten::Int.bool"]:
            return "a bool stands for a Scalar as it is"
        if ours == [
            name for name in theirs if name not in ("aten::Int.Scalar", "aten::Float.Scalar", "aten::Complex.Scalar")
        ]:
            return "a Scalar is converted with a check: Python takes no float for an int"
        if ours[-1] in ("aten::any.bool", "aten::sum.bool", "aten::all.bool"):
            return "trailing bools are a list of bools; torch.jit makes ints of them"
    if ours is not None and theirs is None and "number" in (*call.positional, *(type for _, type in call.keywords)):
        return "Python takes the int that a Scalar holds where an int is declared; it is checked at run time"
    if ours is not None and theirs is None and "aten::Float.Scalar" in ours:
        return "Python takes an int where a float is declared"
    if ours is not None and theirs is None and ("out", "None") in call.keywords:
        return "Python takes out=None"
    return None


@pytest.mark.parametrize("seed", SEEDS)
def test_the_choice_is_that_of_torch_jit(seed: int) -> None:
    choose = random.Random(seed)
    different: list[str] = []
    fitting = 0
    for _ in range(CALLS):
        call = random_call(choose)
        ours, theirs = our_choice(call.text), their_choice(call.text)
        fitting += ours is not None
        if ours != theirs and known_difference(call, ours, theirs) is None:
            different.append(f"{call.text}    ours: {ours}\n    torch.jit: {theirs}")
    assert not different, "\n".join(different)
    assert fitting >= CALLS // 4, "too few of the calls fit to say anything"
