"""Whole programs: helpers, classes, modules, the subject, and the arguments of its calls."""

from __future__ import annotations

import ast
import random
from dataclasses import dataclass, field
from typing import Final

from tests.fuzzing.generating import containers, idioms, numbers, tensors  # noqa: F401 - they register productions
from tests.fuzzing.generating.core import Writer, indented
from tests.fuzzing.generating.kinds import (
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    NUM,
    STR,
    Kind,
    dict_of,
    list_of,
    literal,
    optional,
    tensor,
    tensor_literal,
    tuple_of,
)
from tests.fuzzing.generating.scope import ClassShape, Helper, Scope
from tests.fuzzing.generating.statements import DEPTH, any_kind, returned
from tests.fuzzing.program import HEAD, Program

CALLS: Final = 4
"""How many calls with arguments of their own a program gets."""


@dataclass(slots=True)
class Draft:
    """A program while it is being written."""

    random: random.Random
    parts: list[str] = field(default_factory=list)
    helpers: list[Helper] = field(default_factory=list)
    classes: list[ClassShape] = field(default_factory=list)
    exceptions: list[str] = field(default_factory=list)

    def scope(self) -> Scope:
        taken = (
            {each.name for each in self.helpers}
            | {each.name for each in self.classes}
            | {"math", "torch", "F", "nn", "f", "M"}
        )
        return Scope(
            self.random,
            helpers=list(self.helpers),
            classes=list(self.classes),
            names=taken,
            exceptions=list(self.exceptions),
        )

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability


def generate(seed: int, number: int) -> Program:
    """Program ``number`` of ``seed``: always the same text."""
    draft = Draft(random.Random(f"{seed}/{number}"))
    if draft.chance(0.15):
        draft.exceptions.append("Refused")
        draft.parts.append(
            f"class Refused({draft.random.choice(('Exception', 'ValueError', 'RuntimeError'))}):\n    pass"
        )
    if draft.chance(0.35):
        _logger(draft)
    for _ in range(draft.random.choice((0, 0, 1, 1, 2))):
        _helper(draft)
    if draft.chance(0.3):
        _class(draft)
    style = draft.random.choices(("function", "module", "smooth"), (6, 3, 1))[0]
    parameters = _module(draft) if style == "module" else _smooth(draft) if style == "smooth" else _function(draft)
    calls, without = _calls(draft, parameters)
    ways = ["unoptimized", "optimized"]
    if style == "smooth":
        ways += ["jvp", "grad", "vmap"]
    elif draft.chance(0.1):
        ways.append("profiling")
    elif draft.chance(0.1):
        ways.append("saved")
    subject = "M" if style == "module" else "f"
    text = "\n\n".join(
        [
            HEAD,
            *draft.parts,
            f"SUBJECT = {subject}",
            f"CALLS = [{', '.join(f'lambda: ({each})' for each in calls)}]",
            f"NO_GRAD = {tuple(without)}",
            f"WAYS = {tuple(ways)}",
        ]
    )
    return Program(ast.unparse(ast.parse(text)) + "\n", f"{seed}_{number}")


# -------------------------------------------------------------------------------------------------------------- helpers


def _logger(draft: Draft) -> None:
    """A function whose calls are visible."""
    value = draft.random.choice(("v", "v * 2", "v % 3", "-v", "v"))
    draft.parts.append(f"def note(log: List[int], v: int) -> int:\n    log.append(v)\n    return {value}")
    draft.helpers.append(Helper("note", (list_of(INT), INT), INT, logs=True))


def _helper(draft: Draft) -> None:
    scope = draft.scope()
    w = Writer(draft.random, scope)
    name = scope.fresh("helper", "mix", "combine")
    kinds = tuple(
        draft.random.choice((INT, INT, FLOAT, FLOAT, BOOL, STR, list_of(INT), tensor(), tensor("float32", ("m",)), NUM))
        for _ in range(draft.random.choice((1, 2, 2)))
    )
    result = any_kind(w)
    parameters, optional_count = [], 0
    for index, kind in enumerate(kinds):
        p = scope.fresh("p", "q", "s")
        scope.add(p, kind)
        text = p if kind.name == "tensor" and w.chance(0.6) else f"{p}: {kind.annotation}"
        if index == len(kinds) - 1 and kind.name in ("int", "float", "str") and w.chance(0.4):
            text += f"={literal(draft.random, kind, 0)}"
            optional_count = 1
        parameters.append(text)
    scope.result = (result,)
    body = w.statements(1, draft.random.choice((0, 1, 1, 2)))
    body.append(f"return {w.of(result, DEPTH)}")
    arrow = f" -> {result.annotation}" if w.chance(0.5) else ""
    draft.parts.append("\n".join([f"def {name}({', '.join(parameters)}){arrow}:", *indented(body)]))
    draft.helpers.append(Helper(name, kinds, result, optional_count))


def _class(draft: Draft) -> None:
    scope = draft.scope()
    w = Writer(draft.random, scope)
    name = draft.random.choice(("Point", "State", "Meter"))
    kinds = [
        draft.random.choice((INT, FLOAT, INT, FLOAT, STR, list_of(INT), tensor("float32", ())))
        for _ in range(draft.random.choice((1, 2, 3)))
    ]
    attributes = tuple(zip(("value", "count", "rest"), kinds))
    form = draft.random.choice(("dataclass", "plain", "named"))
    lines = [f"class {name}{'(NamedTuple)' if form == 'named' else ''}:"]
    if form == "dataclass":
        lines.insert(0, "@dataclass")
    if form == "plain":
        lines.append(f"    def __init__(self, {', '.join(f'{a}: {k.annotation}' for a, k in attributes)}):")
        lines += [f"        self.{a} = {a}" for a, _ in attributes]
    else:
        lines += [f"    {a}: {k.annotation}" for a, k in attributes]
    methods: list[tuple[str, tuple[Kind, ...], Kind]] = []
    properties: list[tuple[str, Kind]] = []
    for method in ("update", "get")[: draft.random.choice((0, 1, 2))]:
        with scope.inner():
            for a, k in attributes:
                scope.add(f"self.{a}", k)
            parameter = draft.random.choice((INT, FLOAT, NUM))
            body = []
            if form != "named":
                body = [_attribute_update(w, a, k) for a, k in attributes if w.chance(0.6)]
            result = draft.random.choice((INT, FLOAT, NUM, STR))
            if method == "get" and w.chance(0.5):
                lines += ["    @property", f"    def {method}(self):", f"        return {w.of(result, 2)}"]
                properties.append((method, result))
                continue
            annotation = "" if parameter == NUM else f": {parameter.annotation}"
            scope.add("n", parameter, fixed=True)
            lines += [
                f"    def {method}(self, n{annotation or ': float'}):",
                *indented(indented([*body, f"return {w.of(result, 2)}"])),
            ]
            methods.append((method, (parameter,), result))
    draft.parts.append("\n".join(lines))
    draft.classes.append(ClassShape(name, attributes, tuple(methods), form != "named", tuple(properties)))


def _attribute_update(w: Writer, name: str, kind: Kind) -> str:
    if kind.name == "list":
        return f"self.{name}.append({w.of(INT, 1)})"
    if kind == STR:
        return f"self.{name} += {w.of(STR, 1)}"
    if kind.name == "tensor":
        return w.pick(f"self.{name} = self.{name} + 1", f"self.{name} += 1")
    return f"self.{name} {w.pick('+=', '=', '-=')} {w.of(kind if w.chance(0.8) else NUM, 2)}"


def _uses_of_classes(w: Writer, draft: Draft) -> list[str]:
    """Statements that make an object and use it."""
    lines: list[str] = []
    for shape in draft.classes:
        name = w.scope.fresh("point", "state", "obj")
        lines.append(f"{name} = {shape.name}({', '.join(w.of(kind, 2) for _, kind in shape.attributes)})")
        for method, parameters, result in shape.methods:
            target = w.scope.fresh()
            lines.append(f"{target} = {name}.{method}({', '.join(w.of(each, 1) for each in parameters)})")
            w.scope.add(target, result)
        for attribute, kind in shape.attributes:
            if shape.mutable and kind.name in ("int", "float") and w.chance(0.5):
                lines.append(f"{name}.{attribute} {w.pick('+=', '=', '*=')} {w.of(kind if w.chance(0.8) else NUM, 2)}")
            w.scope.add(f"{name}.{attribute}", kind, fixed=True)
        for attribute, kind in shape.properties:
            w.scope.add(f"{name}.{attribute}", kind, fixed=True)
    return lines


# ------------------------------------------------------------------------------------------------------------- subjects

Parameters = list[tuple[str, Kind, "str | None"]]
"""Names, kinds and defaults."""

_OTHERS: Final = (
    INT,
    INT,
    INT,
    FLOAT,
    FLOAT,
    BOOL,
    STR,
    list_of(INT),
    list_of(INT),
    list_of(FLOAT),
    list_of(STR),
    dict_of(STR, INT),
    dict_of(STR, FLOAT),
    optional(INT),
    optional(FLOAT),
    tuple_of(INT, FLOAT),
    COMPLEX,
    dict_of(INT, INT),
    list_of(tensor("float32", ("m",))),
    NUM,
)


def _parameters(draft: Draft, scope: Scope) -> Parameters:
    parameters: Parameters = []
    tensors_wanted = draft.random.choices((0, 1, 2, 3), (2, 5, 3, 1))[0]
    for index in range(tensors_wanted):
        dtype = draft.random.choices(("float32", "int64", "float64", "bool"), (8, 2, 1, 0.5))[0]
        shape = (
            ("n", "m") if index == 0 and draft.chance(0.6) else draft.random.choice((("n", "m"), ("m",), ("n",), ()))
        )
        parameters.append((("x", "y", "z")[index], tensor(dtype, shape), None))
    names = iter(draft.random.sample(("n", "m", "k", "w", "s", "items", "flag", "opt"), 5))
    for _ in range(draft.random.choice((0, 1, 2, 2, 3)) or (0 if tensors_wanted else 2)):
        kind = draft.random.choice(_OTHERS)
        default = (
            literal(draft.random, kind, 0.02)
            if kind.name in ("int", "float", "str", "opt", "bool") and draft.chance(0.2)
            else None
        )
        parameters.append((next(names), kind, default))
    parameters.sort(key=lambda each: each[2] is not None)
    for name, kind, _ in parameters:
        scope.add(name, kind)
    return parameters


def _signature(draft: Draft, parameters: Parameters) -> str:
    texts = []
    for name, kind, default in parameters:
        text = name if kind.name == "tensor" and draft.chance(0.6) else f"{name}: {kind.annotation}"
        texts.append(text + (f"={default}" if default is not None else ""))
    return ", ".join(texts)


def _results(draft: Draft, w: Writer) -> tuple[Kind, ...]:
    return tuple(any_kind(w) for _ in range(draft.random.choice((1, 2, 3, 4)))) if draft.chance(0.45) else ()


def _body(draft: Draft, w: Writer) -> list[str]:
    scope = w.scope
    scope.result = _results(draft, w)
    body = _uses_of_classes(w, draft)
    body += w.statements(3, draft.random.choice((2, 3, 4, 5, 6)))
    if scope.result:
        body.append(f"return {returned(w)}")
    else:
        live = [each.name for each in scope.variables if not each.maybe or draft.chance(0.3)]
        live = list(dict.fromkeys(live))
        count = min(len(live), draft.random.choice((1, 2, 3, 4, 5)))
        body.append(f"return {', '.join(live[-count:]) or '0'}")
    return body


def _function(draft: Draft) -> Parameters:
    scope = draft.scope()
    w = Writer(draft.random, scope)
    parameters = _parameters(draft, scope)
    signature = _signature(draft, parameters)
    body = _body(draft, w)
    arrow = f" -> {scope.result[0].annotation}" if len(scope.result) == 1 and draft.chance(0.5) else ""
    draft.parts.append("\n".join([f"def f({signature}){arrow}:", *indented(body)]))
    return parameters


def _smooth(draft: Draft) -> Parameters:
    """A function of Tensors whose result is a Tensor of floats: for derivatives and batches."""
    scope = draft.scope()
    w = Writer(draft.random, scope)
    parameters: Parameters = [("x", tensor(), None)]
    if draft.chance(0.5):
        parameters.append(("y", tensor("float32", draft.random.choice((("n", "m"), ("m",), ("n",), ()))), None))
    for name, kind, _ in parameters:
        scope.add(name, kind)
    body = []
    for _ in range(draft.random.choice((1, 2, 3, 4))):
        if draft.chance(0.25):
            test = w.pick("x.sum() > 0", "x.size(0) > 1", "x.dim() == 2", "(x[0, 0] > 0).item()")
            body += [f"if {test}:", *indented(w.block(0, 1))]
        elif draft.chance(0.2):
            body += [f"for i in range({w.pick('2', '3', 'x.size(0)')}):", *indented(w.block(0, 1))]
        else:
            kind = tensor("float32", draft.random.choice((("n", "m"), ("m",), ("n",), ())))
            value = w.of(kind, DEPTH + 1)
            name = scope.fresh()
            scope.add(name, kind)
            body.append(f"{name} = {value}")
    result = w.of(tensor("float32", draft.random.choice(((), ("n", "m"), ("n",)))), DEPTH)
    body.append(f"return {result}")
    draft.parts.append("\n".join([f"def f({', '.join(name for name, _, _ in parameters)}):", *indented(body)]))
    return parameters


def _module(draft: Draft) -> Parameters:
    scope = draft.scope()
    w = Writer(draft.random, scope)
    kinds = {
        "count": (INT, "0"),
        "total": (NUM if draft.chance(0.5) else FLOAT, draft.random.choice(("0", "0.0"))),
        "scale": (draft.random.choice((INT, FLOAT)), None),
        "history": (list_of(FLOAT), "[0.5]"),
        "sizes": (list_of(INT), "[1, 2]"),
        "table": (dict_of(STR, INT), '{"a": 1}'),
        "mode": (STR, '"a"'),
        "flag": (BOOL, "True"),
        "buf": (tensor("float32", ()), None),
        "last": (optional(FLOAT), None),
        "names": (list_of(STR), '["a", "b"]'),
    }
    chosen = draft.random.sample(sorted(kinds), draft.random.choice((1, 2, 3)))
    lines = ["class M(nn.Module):", "    def __init__(self):", "        super().__init__()"]
    before: list[str] = []
    for name in chosen:
        kind, value = kinds[name]
        if name == "buf":
            lines.append('        self.register_buffer("buf", torch.zeros(()))')
        elif name == "last":
            lines.append("        self.last: Optional[float] = None")
        else:
            value = literal(draft.random, kind, 0) if value is None else value
            annotated = f": {kind.annotation}" if kind.name in ("list", "dict") or draft.chance(0.15) else ""
            lines.append(f"        self.{name}{annotated} = {value}")
        scope.add(f"self.{name}", kind)
    if draft.chance(0.3):
        lines.append("        self.act = nn.ReLU()")
        before.append("act")
    parameters = _parameters(draft, scope)
    signature = _signature(draft, parameters)
    if draft.chance(0.35):
        with scope.inner():
            result = any_kind(w)
            p = scope.fresh("p")
            scope.add(p, INT)
            lines += [
                f"    def part(self, {p}: int):",
                *indented(indented([*w.statements(1, 1), f"return {w.of(result, 2)}"])),
            ]
        scope.helpers.append(Helper("self.part", (INT,), result))
    updates = []
    for name in chosen:
        if name == "last":
            updates.append(f"self.last = {w.of(FLOAT, 2)}")
        elif name in ("count", "total", "history", "buf"):
            kind = kinds[name][0]
            if kind.name == "list":
                updates.append(f"self.{name}.append({w.of(FLOAT, 2)})")
            else:
                value = (
                    w.of(NUM if name == "total" and kind == NUM else kind, 3)
                    if kind.name != "tensor"
                    else w.of(FLOAT, 2)
                )
                updates.append(f"self.{name} += {value}")
    body = _body(draft, w)
    at = draft.random.randint(0, 1)
    body = body[:0] + updates + body if at == 0 else _before_return(body, updates)
    if before and (
        found := next((n for n, k, _ in parameters if k.name == "tensor" and k.dtype.startswith("float")), None)
    ):
        body.insert(0, f"{found} = self.act({found})")
    lines += [f"    def forward(self{', ' + signature if signature else ''}):", *indented(indented(body))]
    draft.parts.append("\n".join(lines))
    return parameters


def _before_return(body: list[str], lines: list[str]) -> list[str]:
    return [*body[:-1], *lines, body[-1]]


# ---------------------------------------------------------------------------------------------------------------- calls


def _calls(draft: Draft, parameters: Parameters) -> tuple[list[str], list[int]]:
    calls, without = [], []
    for number in range(CALLS):
        sizes = {"n": draft.random.choice((1, 2, 2, 3, 4)), "m": draft.random.choice((1, 2, 3, 3)), "1": 1}
        if draft.chance(0.03):
            sizes["n"] = 0
        gradients = number in (1, 3) and draft.chance(0.6)
        if number == 2 or draft.chance(0.1):
            without.append(number)
        texts = []
        for _, kind, default in parameters:
            if default is not None and draft.chance(0.5):
                break
            texts.append(_argument(draft, kind, sizes, gradients, number))
        calls.append("".join(f"{each}, " for each in texts))
    return calls, without


def _argument(draft: Draft, kind: Kind, sizes: dict[str, int], gradients: bool, number: int) -> str:
    if kind.name == "tensor":
        dtype = kind.dtype
        if number == 3 and draft.chance(0.25):
            dtype = draft.random.choice(
                ("float64", "int64", "float32", "int32", "float16", "complex64", "bool", "uint8")
            )
        text = tensor_literal(draft.random, dtype, tuple(sizes[each] for each in kind.shape))
        if draft.chance(0.06) and len(kind.shape) == 2:
            text = f"{text}.t().contiguous().t()"
        return f"{text}.requires_grad_()" if gradients and dtype.startswith("float") else text
    if kind.name == "list" and kind.of[0].name == "tensor":
        count = draft.random.choice((1, 2, 3))
        return f"[{', '.join(_argument(draft, kind.of[0], sizes, gradients, 0) for _ in range(count))}]"
    if kind == FLOAT and draft.chance(0.04):
        return draft.random.choice(("2", "3", "torch.tensor(0.5)", "torch.tensor(1.5, requires_grad=True)", "True"))
    if kind == INT and draft.chance(0.02):
        return draft.random.choice(("True", "torch.tensor(3)"))
    return literal(draft.random, kind, 0.04)
