"""Expressions of ints, floats, numbers of either kind, bools and complex numbers."""

from __future__ import annotations

from tests.fuzzing.generating.core import Writer, expression
from tests.fuzzing.generating.kinds import (
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    NUM,
    STR,
    Kind,
    list_of,
    literal,
)

_NONZERO = ("1", "2", "3", "5", "-2", "-3", "7")


def positive(w: Writer, d: int, most: str = "5") -> str:
    return f"({w.of(INT, d)} % {most})"


def any_tensor(w: Writer, d: int, dtype: str | None = None, least: int = 0) -> tuple[str, Kind] | None:
    """A variable that holds a Tensor."""
    found = w.scope.find(
        lambda kind: kind.name == "tensor" and (dtype is None or kind.dtype == dtype) and len(kind.shape) >= least
    )
    return None if found is None else (found.name, found.kind)


def element(w: Writer, dtype: str | None = None) -> str | None:
    """A Tensor with a single element."""
    found = any_tensor(w, 0, dtype)
    if found is None:
        return None
    name, kind = found
    if not kind.shape:
        return name
    reduced = [f"{name}.sum()", f"{name}.max()", f"{name}.min()"]
    if kind.dtype.startswith("float"):
        reduced += [f"{name}.mean()"]
    if kind.dtype == "bool":
        reduced = [f"{name}.any()", f"{name}.all()"]
    index = ", ".join(w.pick("0", "0", "-1") for _ in kind.shape)
    return w.random.choice([*reduced, f"{name}[{index}]"])


# ----------------------------------------------------------------------------------------------------------------- ints


@expression("int", 6)
def _arithmetic(w: Writer, k: Kind, d: int) -> str:
    a, b = w.of(INT, d), w.of(INT, d)
    match w.pick("+", "-", "*", "//", "%", "**", "<<", ">>", "&", "|", "^"):
        case "//" | "%" as op:
            return f"({a} {op} {w.pick(*_NONZERO) if w.chance(0.6) else b})"
        case "**":
            return f"({a} ** {w.pick('2', '3', '2', positive(w, d, '4'))})"
        case "<<" | ">>" as op:
            return f"({a} {op} {w.pick('1', '2', '5', positive(w, d, '70'))})"
        case op:
            return f"({a} {op} {b})"


@expression("int", 2)
def _unary(w: Writer, k: Kind, d: int) -> str:
    a = w.of(INT, d)
    return w.pick(f"-{a}", f"abs({a})", f"(~{a})", f"+{a}", f"int({a})", f"round({a})", f"({a}).bit_length()")


@expression("int", 3)
def _to_int(w: Writer, k: Kind, d: int) -> str:
    x = w.of(w.random.choice((FLOAT, NUM)), d)
    return w.pick(
        f"int({x})", f"round({x})", f"math.floor({x})", f"math.ceil({x})", f"math.trunc({x})", f"int({x} // 1)"
    )


@expression("int", 2)
def _of_bools(w: Writer, k: Kind, d: int) -> str:
    b = w.of(BOOL, d)
    return w.pick(f"int({b})", f"({b} + {w.of(INT, d)})", f"({w.of(INT, d)} if {b} else {w.of(INT, d)})")


@expression("int", 3)
def _extremes(w: Writer, k: Kind, d: int) -> str:
    a, b = w.of(INT, d), w.of(INT, d)
    values = w.scope.find(lambda kind: kind == list_of(INT))
    items = (
        [] if values is None else [f"sum({values.name})", f"max({values.name} + [{a}])", f"min([{b}, *{values.name}])"]
    )
    return w.random.choice(
        [
            f"max({a}, {b})",
            f"min({a}, {b}, {w.pick(*_NONZERO)})",
            f"divmod({a}, {w.pick(*_NONZERO)})[{w.pick('0', '1')}]",
            f"pow({a}, 2)",
            f"sum([{a}, {b}])",
            *items,
        ]
    )


@expression("int", 1)
def _math_of_ints(w: Writer, k: Kind, d: int) -> str:
    a, b = w.of(INT, d), w.of(INT, d)
    return w.pick(
        f"math.gcd({a}, {b})",
        f"math.factorial({positive(w, d, '25')})",
        f"math.isqrt(abs({a}))",
        f"math.comb({positive(w, d, '9')}, 2)",
    )


@expression("int", 3)
def _counted(w: Writer, k: Kind, d: int) -> str | None:
    found = w.scope.find(lambda kind: kind.name in ("list", "dict", "set", "str"))
    if found is None:
        return None
    if found.kind.name == "list" and found.kind.of[0] == INT:
        return w.pick(
            f"{found.name}[{w.pick('0', '-1', w.of(INT, d))}]",
            f"{found.name}.count({w.of(INT, d)})",
            f"len({found.name})",
            f"sum({found.name}, {w.of(INT, d)})",
            f"({found.name}[0] if {found.name} else {w.of(INT, d)})",
        )
    if found.kind.name == "dict" and found.kind.of[1] == INT:
        key = w.of(found.kind.of[0], 0)
        return w.pick(f"{found.name}.get({key}, {w.of(INT, d)})", f"{found.name}[{key}]", f"sum({found.name}.values())")
    if found.kind == STR:
        return w.pick(f"len({found.name})", f"{found.name}.count('a')", f"{found.name}.find('b')")
    return f"len({found.name})"


@expression("int", 3)
def _of_a_tensor(w: Writer, k: Kind, d: int) -> str | None:
    found = any_tensor(w, d)
    if found is None:
        return None
    name, kind = found
    options = [f"{name}.numel()", f"{name}.dim()"]
    if kind.shape:
        options += [f"{name}.size(0)", f"{name}.shape[-1]", f"len({name})", f"{name}.size({w.pick('-1', '0')})"]
    if kind.dtype.startswith("int") or kind.dtype == "uint8":
        one = element(w, kind.dtype)
        options += [f"{one}.item()", f"int({one})"] * 2
    one = element(w)
    options += [f"int({one})", f"int({one}.item())"]
    return w.random.choice(options)


@expression("int", 2)
def _generators(w: Writer, k: Kind, d: int) -> str | None:
    values = w.scope.find(lambda kind: kind == list_of(INT))
    name = "range(4)" if values is None else values.name
    i = w.scope.fresh("i", "j", "e")
    with w.scope.inner():
        w.scope.add(i, INT, fixed=True)
        a, test = w.of(INT, d), w.of(BOOL, d)
    return w.pick(
        f"sum({a} for {i} in {name})",
        f"sum({a} for {i} in {name} if {test})",
        f"next(({a} for {i} in {name} if {test}), {w.of(INT, d)})",
        f"max(({a} for {i} in {name}), default={w.of(INT, 0)})",
        f"len([{i} for {i} in {name} if {test}])",
    )


@expression("int", 1)
def _walrus(w: Writer, k: Kind, d: int) -> str | None:
    if w.chance(0.5):
        return None
    value = w.of(INT, d)
    name = w.scope.fresh("q", "r")
    return f"(({name} := {value}) {w.pick('+', '*', '-')} {name})"


# --------------------------------------------------------------------------------------------------------------- floats


@expression("float", 6)
def _float_arithmetic(w: Writer, k: Kind, d: int) -> str:
    a, b = w.of(FLOAT, d), w.of(w.random.choice((FLOAT, FLOAT, INT, NUM)), d)
    match w.pick("+", "-", "*", "+", "-", "*", "/", "//", "%", "**"):
        case "/" | "//" | "%" as op:
            return f"({a} {op} {w.pick(*_NONZERO, '0.5', '-1.5') if w.chance(0.7) else b})"
        case "**":
            return f"({a} ** {w.pick('2', '3', '-1', '2.0', '0.5')})"
        case op:
            return f"({a} {op} {b})" if w.chance(0.7) else f"({b} {op} {a})"


@expression("float", 2)
def _float_of(w: Writer, k: Kind, d: int) -> str:
    a = w.of(FLOAT, d)
    return w.pick(
        f"-{a}",
        f"abs({a})",
        f"float({w.of(INT, d)})",
        f"float({w.of(NUM, d)})",
        f"({w.of(INT, d)} / {w.pick(*_NONZERO)})",
        f"round({a}, {w.pick('1', '2', '0')})",
        f"float({w.pick(repr('nan'), repr('inf'), repr('-inf'), repr('1.5'))})",
        f"max({a}, {w.of(FLOAT, d)})",
        f"min({a}, {w.of(FLOAT, d)})",
        f"divmod({a}, {w.pick('2.0', '-1.5', '3')})[{w.pick('0', '1')}]",
        f"({a} if {w.of(BOOL, d)} else {w.of(FLOAT, d)})",
    )


@expression("float", 2)
def _math_of_floats(w: Writer, k: Kind, d: int) -> str:
    a = w.of(w.random.choice((FLOAT, NUM)), d)
    return w.pick(
        f"math.sqrt(abs({a}))",
        f"math.sin({a})",
        f"math.tanh({a})",
        f"math.exp(min({a}, 5.0))",
        f"math.fabs({a})",
        f"math.copysign({a}, {w.of(FLOAT, d)})",
        f"math.hypot({a}, 1.0)",
        f"math.fmod({a}, 2.5)",
        f"math.sqrt({a})",
        f"math.log(abs({a}) + 1.0)",
        f"math.atan2({a}, 2.0)",
        f"math.fsum([{a}, 0.1, 0.2])",
        f"math.pow({a}, 2)",
        f"math.degrees({a})",
        f"math.exp({a})",
        f"math.log({a})",
    )


@expression("float", 3)
def _float_items(w: Writer, k: Kind, d: int) -> str | None:
    found = w.scope.find(lambda kind: kind.name in ("list", "dict") and kind.of[-1] == FLOAT)
    if found is None:
        return None
    if found.kind.name == "dict":
        key = w.of(found.kind.of[0], 0)
        return w.pick(f"{found.name}.get({key}, {w.of(FLOAT, d)})", f"{found.name}[{key}]")
    return w.pick(
        f"{found.name}[{w.pick('0', '-1', w.of(INT, d))}]",
        f"sum({found.name}, 0.0)",
        f"max({found.name} + [{w.of(FLOAT, d)}])",
        f"min({found.name}, default={w.of(FLOAT, d)})",
    )


@expression("float", 4)
def _float_of_a_tensor(w: Writer, k: Kind, d: int) -> str | None:
    one = element(w, w.pick("float32", "float32", "float64"))
    return None if one is None else w.pick(f"{one}.item()", f"float({one})", f"float({one}.item())", f"{one}.tolist()")


@expression("num", 4)
def _either(w: Writer, k: Kind, d: int) -> str:
    return w.of(w.random.choice((INT, FLOAT)), d)


@expression("num", 3)
def _mixed(w: Writer, k: Kind, d: int) -> str:
    a, b = w.of(INT, d), w.of(FLOAT, d)
    return w.pick(
        f"({a} if {w.of(BOOL, d)} else {b})",
        f"max({a}, {b})",
        f"min({b}, {a})",
        f"sum([{w.of(NUM, d)}, {w.of(NUM, d)}])",
        f"({a} ** {w.pick('-1', '-2', '((' + w.of(INT, d) + ') % 3 - 1)')})",
        f"(2 ** -({a} % 5))",
        f"max({b}, {a}, {w.of(NUM, d)})",
    )


@expression("num", 4)
def _arithmetic_of_numbers(w: Writer, k: Kind, d: int) -> str:
    a, b = w.of(NUM, d), w.of(NUM, d)
    op = w.pick("+", "-", "*", "//", "%", "/")
    return f"({a} {op} {w.pick(*_NONZERO, '1.5') if op in ('//', '%', '/') else b})"


@expression("num", 2)
def _number_of_a_tensor(w: Writer, k: Kind, d: int) -> str | None:
    one = element(w)
    return None if one is None else f"{one}.item()"


# ---------------------------------------------------------------------------------------------------------------- bools


@expression("bool", 6)
def _comparison(w: Writer, k: Kind, d: int) -> str:
    kind = w.random.choice((INT, FLOAT, NUM))
    a, b, op = w.of(kind, d), w.of(w.random.choice((kind, INT, FLOAT)), d), w.pick("<", "<=", ">", ">=", "==", "!=")
    if w.chance(0.15):
        return f"({a} {op} {b} {w.pick('<', '<=', '!=', '==')} {w.of(kind, d)})"
    return f"({a} {op} {b})"


@expression("bool", 3)
def _logic(w: Writer, k: Kind, d: int) -> str:
    a, b = w.of(BOOL, d), w.of(BOOL, d)
    return w.pick(
        f"(not {a})", f"({a} and {b})", f"({a} or {b})", f"({a} == {b})", f"({a} ^ {b})", f"bool({w.of(INT, d)})"
    )


@expression("bool", 2)
def _questions(w: Writer, k: Kind, d: int) -> str | None:
    x = w.of(w.random.choice((FLOAT, NUM)), d)
    options = [
        f"math.isnan({x})",
        f"math.isinf({x})",
        f"({x} == int({x} // 1))",
        f"isinstance({x}, int)",
        f"isinstance({x}, float)",
    ]
    if (found := w.scope.find(lambda kind: kind.name == "opt")) is not None:
        options += [f"({found.name} is None)", f"({found.name} is not None)"] * 2
    if (
        found := w.scope.find(lambda kind: kind.name in ("list", "set", "dict") and kind.of[0] in (INT, STR))
    ) is not None:
        options += [f"({w.of(found.kind.of[0], d)} {w.pick('in', 'not in')} {found.name})", f"bool({found.name})"]
    if (tensor := any_tensor(w, d)) is not None:
        name = tensor[0]
        options += [
            f"bool(({name} > 0).any())",
            f"bool(({name} >= 0).all())",
            f"({element(w)} > {w.of(NUM, 0)}).item()",
            f"bool({element(w)} < 2)",
            f"{name}.requires_grad",
            f"torch.equal({name}, {name})",
            f"({name}.dim() == 2)",
            f"({name}.shape[0] == 2)" if tensor[1].shape else "True",
            f"{name}.is_floating_point()",
            f"({name}.dtype == torch.float32)",
            f"(list({name}.shape) == [2, 3])",
            f"({name}.size() == (2, 3))",
        ]
        if len(tensor[1].shape) == 2:
            options.append(f"([{name}.size(0), {name}.size(1)] == [2, 3])")
    return w.random.choice(options)


@expression("bool", 3)
def _any_of_generators(w: Writer, k: Kind, d: int) -> str:
    values = w.scope.find(lambda kind: kind in (list_of(INT), list_of(FLOAT)))
    source, kind = ("range(5)", INT) if values is None else (values.name, values.kind.of[0])
    i = w.scope.fresh("i", "j", "e")
    with w.scope.inner():
        w.scope.add(i, kind, fixed=True)
        test = w.of(BOOL, d)
    return f"{w.pick('any', 'all')}({test} for {i} in {source})"


@expression("bool", 1)
def _compared_texts(w: Writer, k: Kind, d: int) -> str:
    a, b = w.of(STR, d), w.of(STR, d)
    return w.pick(
        f"({a} == {b})", f"({a} < {b})", f"({a} in {b})", f"{a}.startswith({b})", f"{a}.isdigit()", "__debug__"
    )


# -------------------------------------------------------------------------------------------------------------- complex


@expression("complex", 3)
def _complex(w: Writer, k: Kind, d: int) -> str:
    a, b = w.of(COMPLEX, d), w.of(w.random.choice((COMPLEX, FLOAT, INT)), d)
    return w.pick(
        f"({a} + {b})",
        f"({a} * {b})",
        f"({a} - {b})",
        f"complex({w.of(FLOAT, d)}, {w.of(FLOAT, d)})",
        f"{a}.conjugate()",
    )


@expression("float", 0.4)
def _part(w: Writer, k: Kind, d: int) -> str:
    z = w.of(COMPLEX, d)
    return w.pick(f"({z}).real", f"({z}).imag", f"abs({z})")


@expression("opt", 2)
def _optional_value(w: Writer, k: Kind, d: int) -> str:
    value = w.of(k.of[0], d)
    return w.random.choice([value, "None", f"({value} if {w.of(BOOL, d)} else None)"])


__all__ = ["literal"]
