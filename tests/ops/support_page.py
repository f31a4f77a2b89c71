"""``docs/operator_support.md``: each operator on tensors beside every table of the compiler that may know it, so that
gaps are visible. ``python -m tests.ops.support_page`` writes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch

import rekindle.runtime.executor  # noqa: F401  (registers the operators)
from rekindle.autodiff.formula import operators_with_formulas
from rekindle.codegen.operators import JOINS, LOOKUPS, POOLS, PRODUCTS, ROWS, RULES as ELEMENTS, STACKS, VIEWS
from rekindle.exporting.static_checks import _NEVER
from rekindle.ir.operators.registry import REGISTRY, Operator
from rekindle.ir.operators.traits import Trait
from rekindle.ir.types import BoolType, FloatType, IntType, ListType, TensorType
from rekindle.ops.registration.declare import declared_operators
from rekindle.ops.registration.traits import trait_table
from rekindle.ops.result_types import PROPERTIES, RULES
from rekindle.transforms.vmap.batching_rule import operators_with_rules, rule_for

PAGE = Path(__file__).parents[2] / "docs" / "operator_support.md"

HEAD = """\
# Operators and what the compiler knows of them

Every operator on tensors that a table of the compiler names, and the other public ones.
[operators.md](operators.md) lists the operators on numbers, strings and containers.
[adding_an_operator.md](adding_an_operator.md) explains the columns. `make pages` writes this page.

| column | entry | meaning |
| --- | --- | --- |
| runs | `PyTorch`, `rekindle` | the dispatcher runs it, or a function in `rekindle/ops/` |
| type rule | yes | `rekindle/ops/result_types/` specifies dtype, rank and sizes of the result before the program runs |
| alias rule | `schema` | the schema specifies what the result shares memory with |
| | `table` | `rekindle/ops/registration/trait_table.py` specifies it |
| | `any` | a composite of other operators: the result is taken to alias each operand |
| gradient | `formula` | a formula in `rekindle/autodiff/formulas/`: part of differentiable graphs |
| | `PyTorch` | PyTorch's autograd records it if the result is a Tensor; a number has no gradient |
| batching | `rule` | a rule in `rekindle/transforms/vmap/rules/` |
| | `loop` | runs once for each example |
| kernel | yes | may become part of a generated kernel |
| | `library` | BLAS or oneDNN runs it |
| export | no | export raises an error that gives the reason; all others are exported as they are |

"""

_KERNELS = {*ELEMENTS, *ROWS, *JOINS, *STACKS, *LOOKUPS, *POOLS, *PRODUCTS, *VIEWS}


def kinds() -> list[str]:
    """The kinds of the page: public operators of ``aten`` that take or return tensors, in-place ones left out."""
    formulas = {name.partition(".")[0] for name in operators_with_formulas()}
    rules = {name.partition(".")[0] for name in operators_with_rules()}
    public = {name for name in dir(torch.Tensor) + dir(torch) + dir(torch.nn.functional) if not name.startswith("_")}
    names = formulas | rules | public | {kind.removeprefix("aten::") for kind in (*RULES, *PROPERTIES, *trait_table())}
    return sorted(
        f"aten::{name}" for name in names if "::" not in name and not name.endswith("_") and any(_overloads(name))
    )


def _overloads(name: str) -> Iterator[Operator]:
    """The operators of a kind that take or return tensors, without those that write."""
    for operator in REGISTRY.overloads(f"aten::{name}"):
        schema = operator.schema
        types = [each.type for each in (*schema.arguments, *schema.returns)]
        tensors = (type.element if isinstance(type, ListType) else type for type in types)
        if not schema.is_mutable and any(isinstance(type, TensorType) for type in tensors):
            yield operator


def _row(kind: str) -> str:
    name = kind.removeprefix("aten::")
    overloads = list(_overloads(name))
    names = {operator.schema.qualified_name for operator in overloads}
    formulas = {f"aten::{each}" for each in operators_with_formulas()}
    own = {operator.schema.qualified_name for operator in declared_operators(kind)}
    runs = " ".join(word for word, is_it in (("PyTorch", names - own), ("rekindle", names & own)) if is_it)
    has_type = kind in RULES or kind in PROPERTIES
    batching = "rule" if any(rule_for(operator.schema) is not None for operator in overloads) else "loop"
    is_library = any(Trait.LIBRARY in operator.traits for operator in overloads)
    kernel = "library" if is_library else "yes" if names & _KERNELS else ""
    gives = any(
        not isinstance(each.type, (IntType, FloatType, BoolType)) for op in overloads for each in op.schema.returns
    )
    gradient = "formula" if names & formulas else "PyTorch" if gives else ""
    export = "no" if kind in _NEVER else "yes"
    cells = (f"`{name}`", runs, "yes" if has_type else "", _alias(kind, overloads), gradient, batching, kernel, export)
    return f"| {' | '.join(cells)} |"


def _alias(kind: str, overloads: list[Operator]) -> str:
    if trait_table().get(kind, frozenset()) & {Trait.FRESH, Trait.ALIASES_OPERANDS}:
        return "table"
    hidden = any(
        operator.may_alias_inputs and not any(result.alias for result in operator.schema.returns)
        for operator in overloads
    )
    return "any" if hidden else "schema"


def render() -> str:
    """The text of the page."""
    rows = [_row(kind) for kind in kinds()]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    counts = {
        "a type rule": sum(row[2] == "yes" for row in cells),
        "an alias rule other than `any`": sum(row[3] != "any" for row in cells),
        "a gradient formula": sum(row[4] == "formula" for row in cells),
        "a batching rule": sum(row[5] == "rule" for row in cells),
        "a kernel": sum(row[6] == "yes" for row in cells),
    }
    told = ", ".join(f"{count} have {what}" for what, count in counts.items())
    head = "| operator | runs | type rule | alias rule | gradient | batching | kernel | export |"
    return "\n".join([HEAD + f"Of {len(rows)} operators, {told}.", "", head, "| --- " * 8 + "|", *rows]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
