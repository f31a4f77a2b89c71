"""Expressions of Tensors, with shapes of ``n``, ``m`` and 1, views among them."""

from __future__ import annotations

from tests.fuzzing.generating.core import Writer, expression
from tests.fuzzing.generating.kinds import FLOAT, INT, NUM, Kind, tensor

Shape = tuple[str, ...]


def broadcast(a: Shape, b: Shape) -> Shape | None:
    """The shape of an operator on elements, None where sizes are not known to fit."""
    result: list[str] = []
    for index in range(1, max(len(a), len(b)) + 1):
        x = a[-index] if index <= len(a) else "1"
        y = b[-index] if index <= len(b) else "1"
        if x != y and "1" not in (x, y):
            return None
        result.insert(0, y if x == "1" else x)
    return tuple(result)


def is_float(kind: Kind) -> bool:
    return kind.dtype.startswith("float")


def operand(w: Writer, k: Kind, d: int) -> str:
    """Something that broadcasts to the shape of ``k`` without widening its dtype."""
    if w.chance(0.3):
        return w.of(w.random.choice((INT, FLOAT, NUM)) if is_float(k) else INT, d)
    found = w.scope.find(
        lambda kind: kind.name == "tensor" and broadcast(kind.shape, k.shape) == k.shape and kind.dtype == k.dtype
    )
    return found.name if found is not None and w.chance(0.6) else w.of(k, d)


@expression("tensor", 8)
def _binary(w: Writer, k: Kind, d: int) -> str | None:
    a, b = w.of(k, d), operand(w, k, d)
    if k.dtype == "bool":
        other = w.of(tensor("float32", k.shape), d)
        op = w.pick("<", "<=", ">", ">=", "==", "!=")
        return w.pick(f"({other} {op} {w.of(NUM, d)})", f"({a} & ({other} > 0))", f"(~{a})", f"({a} | {a})")
    if is_float(k):
        op = w.pick("+", "-", "*", "+", "-", "*", "/")
        if w.chance(0.12):
            return w.pick(f"({a} ** {w.pick('2', '3', '2.0')})", f"({a} % {w.pick('3', '1.5', '-2')})", f"({a} // 2)")
        return f"({a} {op} {b})" if w.chance(0.75) else f"({b} {op} {a})"
    op = w.pick("+", "-", "*", "//", "%")
    if op in ("//", "%"):
        return f"({a} {op} {w.pick('2', '3', '-3')})"
    return f"({a} {op} {b})"


@expression("tensor", 6)
def _unary(w: Writer, k: Kind, d: int) -> str | None:
    a = w.of(k, d)
    if not is_float(k):
        return None if k.dtype == "bool" else w.pick(f"{a}.abs()", f"-{a}", f"{a}.clone()", f"torch.clamp({a}, min=0)")
    return w.pick(
        f"{a}.tanh()",
        f"torch.sigmoid({a})",
        f"{a}.relu()",
        f"{a}.exp()",
        f"({a}.abs() + 1).log()",
        f"{a}.sin()",
        f"-{a}",
        f"{a}.abs()",
        f"{a}.clone()",
        f"{a}.detach()",
        f"{a}.clamp(-1, 1)",
        f"F.gelu({a})",
        f"{a}.round()",
        f"{a}.floor()",
        f"({a} * {a})",
        f"{a}.sqrt()",
        f"{a}.rsqrt()",
        f"torch.nan_to_num({a})",
        f"F.softplus({a})",
        f"{a}.square()",
        f"{a}.clamp(min={w.of(NUM, d)})",
        f"F.leaky_relu({a}, 0.1)",
        f"torch.sign({a})",
        f"{a}.float()",
        f"F.silu({a})",
        f"{a}.neg()",
    )


@expression("tensor", 3)
def _along_rows(w: Writer, k: Kind, d: int) -> str | None:
    if not k.shape or not is_float(k):
        return None
    a = w.of(k, d)
    return w.pick(
        f"{a}.softmax(-1)",
        f"{a}.cumsum({w.pick('0', '-1')})",
        f"({a} - {a}.mean(-1, keepdim=True))",
        f"F.normalize({a}, dim=-1)",
        f"{a}.sort(-1)[0]",
        f"{a}.flip(0)",
        f"F.layer_norm({a}, {a}.shape[-1:])",
        f"{a}.log_softmax(-1)",
        f"torch.roll({a}, 1, 0)",
        f"({a} / ({a}.sum(-1, keepdim=True).abs() + 1))",
        f"F.dropout({a}, 0.5, False)",
        f"{a}.masked_fill({a} > 0, {w.of(FLOAT, d)})",
        f"torch.where({a} > {w.of(NUM, d)}, {a}, {w.of(k, d)})",
        f"torch.maximum({a}, {w.of(k, d)})",
        f"{a}.tril()" if len(k.shape) == 2 else a,
        f"{a}.sort(-1).values",
        f"torch.where({a} > 0, {a}, {w.of(NUM, d)})",
        f"{a}.index_select(0, torch.arange({a}.size(0)))",
    )


@expression("tensor", 5)
def _smaller(w: Writer, k: Kind, d: int) -> str | None:
    """Reductions of what has one dimension more, and its rows."""
    if len(k.shape) >= 2 or k.dtype == "bool":
        return None
    if k.shape:
        wide: Shape = ("n", "m")
        dim = "0" if k.shape == ("m",) else "1"
        if k.shape not in (("m",), ("n",)):
            return None
    else:
        wide, dim = w.random.choice((("n", "m"), ("m",), ("n",))), ""
    found = w.scope.find(lambda kind: kind.name == "tensor" and kind.dtype == k.dtype and kind.shape == wide)
    a = found.name if found is not None else w.of(tensor(k.dtype, wide), d)
    if not dim:
        options = [f"{a}.sum()", f"{a}.max()", f"{a}.min()", f"{a}{'[0, 0]' if len(wide) == 2 else '[0]'}"]
        if is_float(k):
            options += [
                f"{a}.mean()",
                f"{a}.std()",
                f"{a}.norm()",
                f"{a}.pow(2).sum()",
                f"{a}.logsumexp({list(range(len(wide)))})",
            ]
        return w.random.choice(options)
    row = f"{a}[0]" if dim == "0" else f"{a}[:, 0]"
    options = [
        f"{a}.sum({dim})",
        f"{a}.sum(dim={dim})",
        row,
        f"{a}.amax({dim})",
        f"{a}.max({dim})[0]",
        f"{a}.min({dim}).values",
        f"{a}.select({dim}, -1)",
    ]
    options += [f"{a}.unbind({dim})[0]"]
    if is_float(k):
        options += [
            f"{a}.mean({dim})",
            f"{a}.norm(dim={dim})",
            f"{a}.prod({dim})",
            f"{a}.var({dim}, unbiased=False)",
            f"{a}.logsumexp({dim})",
            f"{a}.median({dim}).values",
        ]
    return w.random.choice(options)


@expression("tensor", 4)
def _view(w: Writer, k: Kind, d: int) -> str | None:
    a = w.of(k, d)
    if len(k.shape) == 2:
        return w.pick(
            f"{a}.t().t()",
            f"{a}.view({a}.shape)",
            f"{a}.reshape(-1).view({a}.size(0), -1)",
            f"{a}[:]",
            f"{a}.transpose(0, 1).transpose(0, 1)",
            f"{a}.unsqueeze(0).squeeze(0)",
            f"{a}.contiguous()",
            f"torch.cat([{a}[:1], {a}[1:]])",
            f"{a}[None][0]",
            f"torch.stack([row for row in {a}])",
            f"{a}.expand_as({a})",
            f"torch.cat({a}.chunk(2, 0))",
            f"{a}.view_as({a})",
            f"({a} @ {a}.t() @ {a})",
            f"torch.stack(list({a}.unbind(0)))",
        )
    if len(k.shape) == 1:
        wide = w.scope.find(lambda kind: kind.name == "tensor" and kind.dtype == k.dtype and kind.shape == ("n", "m"))
        options = [
            f"{a}.view(-1)",
            f"{a}[:]",
            f"{a}.unsqueeze(0)[0]",
            f"torch.cat([{a}[:1], {a}[1:]])",
            f"{a}[torch.arange(len({a}))]",
        ]
        if wide is not None:
            options += [f"{wide.name}[-1]" if k.shape == ("m",) else f"{wide.name}[:, -1]"] * 3
        return w.random.choice(options)
    return w.pick(f"{a}.view(())", f"{a}.reshape(1)[0]", f"torch.stack([{a}, {a}])[1]", f"{a}.squeeze()")


@expression("tensor", 2)
def _made(w: Writer, k: Kind, d: int) -> str | None:
    found = w.scope.find(lambda kind: kind.name == "tensor" and kind.shape == k.shape)
    value = w.of(FLOAT if is_float(k) else INT, d)
    if k.dtype == "bool":
        return None if found is None else f"torch.zeros_like({found.name}, dtype=torch.bool)"
    if not k.shape:
        return w.pick(
            f"torch.tensor({value}, dtype=torch.{k.dtype})",
            f"torch.tensor({value})",
            f"torch.zeros((), dtype=torch.{k.dtype})",
            f"torch.as_tensor({value})",
        )
    if found is None:
        return None
    name = found.name
    return w.pick(
        f"torch.zeros_like({name}, dtype=torch.{k.dtype})",
        f"torch.full({name}.shape, {value}, dtype=torch.{k.dtype})",
        f"{name}.to(torch.{k.dtype})",
        f"torch.ones({', '.join(f'{name}.size({i})' for i in range(len(k.shape)))}, dtype=torch.{k.dtype})",
        f"{name}.new_full({name}.shape, {value})",
        f"torch.full_like({name}, {value})",
    )


@expression("tensor", 1.5)
def _listed(w: Writer, k: Kind, d: int) -> str | None:
    if k.shape != ("m",) or w.chance(0.5):
        return None
    wide = w.scope.find(lambda kind: kind.name == "tensor" and kind.dtype == k.dtype and kind.shape == ("n", "m"))
    if wide is None:
        return None
    name = wide.name
    return w.pick(
        f"sum(row for row in {name})",
        f"sum([row * {w.of(NUM, d)} for row in {name}])",
        f"max([row for row in {name}], key=lambda row: row.sum().item())",
    )
