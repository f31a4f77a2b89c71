"""Statements: assignments, writes, branches, loops, exceptions."""

from __future__ import annotations

from tests.fuzzing.generating.core import Writer, indented, statement
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
    optional,
    set_of,
    tensor,
    tuple_of,
)
from tests.fuzzing.generating.numbers import any_tensor, element

DEPTH = 3
"""How deep expressions are."""


def any_kind(w: Writer) -> Kind:
    """A kind of value, the frequent ones more often."""
    scalar = w.random.choice((INT, INT, FLOAT, FLOAT, NUM, STR, BOOL))
    return w.random.choices(
        [
            INT,
            FLOAT,
            NUM,
            BOOL,
            STR,
            COMPLEX,
            list_of(INT),
            list_of(FLOAT),
            list_of(scalar),
            dict_of(STR, INT),
            dict_of(INT, scalar),
            dict_of(STR, FLOAT),
            set_of(INT),
            tuple_of(INT, scalar),
            optional(scalar),
            tensor_kind(w),
            list_of(list_of(INT)),
        ],
        [10, 8, 4, 4, 3, 0.7, 4, 3, 2, 3, 1, 2, 1, 2, 2, 16, 0.7],
    )[0]


def tensor_kind(w: Writer) -> Kind:
    dtype = w.random.choices(["float32", "int64", "float64", "bool"], [8, 2, 1, 1])[0]
    return tensor(dtype, w.random.choices([("n", "m"), ("m",), ("n",), (), ("n", "1")], [8, 3, 2, 3, 0.5])[0])


@statement(12)
def _assign(w: Writer, depth: int) -> list[str]:
    kind = any_kind(w)
    value = w.of(kind, DEPTH)
    old = w.scope.find(lambda other: other == kind, assignable=True) if w.chance(0.35) else None
    name = old.name if old is not None else w.scope.fresh()
    w.scope.add(name, kind)
    if w.chance(0.08) and old is None and kind.name not in ("num",):
        return [f"{name}: {kind.annotation} = {value}"]
    return [f"{name} = {value}"]


@statement(3)
def _rebind(w: Writer, depth: int) -> list[str] | None:
    """A variable that held another kind of number, or None, before."""
    old = w.scope.find(lambda kind: kind.is_number and kind.name != "bool", assignable=True)
    if old is None:
        return None
    kind = w.random.choice((INT, FLOAT, NUM))
    value = w.of(kind, DEPTH)
    old.kind = kind
    return [f"{old.name} = {value}"]


@statement(7)
def _augment(w: Writer, depth: int) -> list[str] | None:
    old = w.scope.find(lambda kind: kind.name in ("int", "float", "num", "str"), assignable=True)
    if old is None:
        return None
    if old.kind == STR:
        return [f"{old.name} += {w.of(STR, 2)}"]
    if old.kind == INT and w.chance(0.6):
        return [
            f"{old.name} {w.pick('+=', '-=', '*=', '+=')} {w.of(INT, DEPTH)}"
            if w.chance(0.8)
            else f"{old.name} {w.pick('//= 2', '%= 7', '<<= 1', '>>= 1', '**= 2', '&= 6', '|= 1', '^= 5')}"
        ]
    value = w.of(w.random.choice((FLOAT, NUM)), DEPTH)
    if old.kind == INT:
        old.kind = FLOAT if value and not w.scope.in_loop else NUM
    return [
        f"{old.name} {w.pick('+=', '-=', '*=', '+=')} {value}"
        if w.chance(0.85)
        else f"{old.name} {w.pick('/= 2', '//= 2', '%= 3')}"
    ]


@statement(3)
def _unpack(w: Writer, depth: int) -> list[str] | None:
    ints = w.scope.find(lambda kind: kind == list_of(INT))
    options: list[tuple[list[str], list[tuple[str, Kind]]]] = []
    a, b = w.scope.fresh(), w.scope.fresh()
    options.append(([f"{a}, {b} = {w.of(INT, 2)}, {w.of(FLOAT, 2)}"], [(a, INT), (b, FLOAT)]))
    options.append(([f"{a}, {b} = divmod({w.of(INT, 2)}, {w.pick('2', '3', '-2')})"], [(a, INT), (b, INT)]))
    if ints is not None:
        options.append(([f"{a}, *{b} = {ints.name}"], [(a, INT), (b, list_of(INT))]))
        options.append(([f"*{b}, {a} = [{w.of(INT, 1)}, *{ints.name}]"], [(a, INT), (b, list_of(INT))]))
    x = w.scope.find(lambda kind: kind.name == "int", assignable=True)
    y = w.scope.find(lambda kind: kind.name == "int", assignable=True)
    if x is not None and y is not None and x is not y:
        options.append(([f"{x.name}, {y.name} = {y.name}, {x.name} + {w.of(INT, 2)}"], []))
        options.append(([f"{x.name}, {y.name} = {y.name}, {x.name} + {w.of(NUM, 2)}"], [(y.name, NUM)]))
    lines, added = w.random.choice(options)
    for name, kind in added:
        w.scope.add(name, kind)
    return lines


@statement(7)
def _write_tensor(w: Writer, depth: int) -> list[str] | None:
    found = any_tensor(w, 0)
    if found is None:
        return None
    name, kind = found
    value = w.of(INT if "int" in kind.dtype else FLOAT, 2) if kind.dtype != "bool" else w.of(BOOL, 1)
    if kind.dtype == "bool":
        return [f"{name}[0] = {value}"] if kind.shape else None
    index = (
        w.pick("0", "-1", ":1", "...", "1:")
        if len(kind.shape) == 1
        else w.pick("0", ":, 0", "0, 0", ":1", "..., -1", f"{name} > 0", "1:, :1")
    )
    options = [
        f"{name} += {value}",
        f"{name} *= {value}",
        f"{name}.add_({value})",
        f"{name}.mul_(2)",
        f"{name}.zero_()",
        f"{name}.fill_({value})",
        f"{name} -= {w.of(kind, 2)}",
    ]
    if kind.shape:
        options += [
            f"{name}[{index}] = {value}",
            f"{name}[{index}] += {value}",
            f"{name}[{index}] *= 2",
            f"{name}[0] = {name}[-1]",
            f"{name}[{index}].add_({value})",
        ] * 2
    if kind.dtype.startswith("float"):
        options += [
            f"{name}.clamp_(min={value})",
            f"{name}.copy_({w.of(kind, 2)})",
            f"{name}.neg_()",
            f"{name}.tanh_()",
        ]
    return [w.random.choice(options)]


@statement(4)
def _alias(w: Writer, depth: int) -> list[str] | None:
    found = w.scope.find(lambda kind: kind.name in ("tensor", "list", "dict"))
    if found is None:
        return None
    name, kind = w.scope.fresh(), found.kind
    value = found.name
    if kind.name == "tensor" and kind.shape:
        value, kind = w.random.choice(
            [
                (found.name, kind),
                (f"{found.name}[0]", tensor(kind.dtype, kind.shape[1:])),
                (f"{found.name}[:]", kind),
                (f"{found.name}.detach()", kind),
                (f"{found.name}.view(-1)", tensor(kind.dtype, ("n",)))
                if len(kind.shape) == 1
                else (f"{found.name}.t()", tensor(kind.dtype, tuple(reversed(kind.shape)))),
            ]
        )
    w.scope.add(name, kind)
    return [f"{name} = {value}"]


@statement(6)
def _mutate_container(w: Writer, depth: int) -> list[str] | None:
    found = w.scope.find(lambda kind: kind.name in ("list", "dict", "set"))
    if found is None:
        return None
    name, kind = found.name, found.kind
    if kind.name == "list":
        item = w.of(kind.of[0], 2)
        options = [f"{name}.append({item})"] * 3 + [
            f"{name} += [{item}]",
            f"{name}.extend([{item}, {item}])",
            f"{name}.insert(0, {item})",
            f"{name}[0] = {item}",
            f"{name}[-1] = {item}",
            f"del {name}[0]",
            f"{name}.reverse()",
            f"{name}.pop()",
            f"{name}[1:2] = [{item}]",
            f"{name}.remove({item})",
        ]
        if kind.of[0].name in ("int", "float", "str"):
            options += [f"{name}.sort()"]
        if kind.of[0].is_number and kind.of[0].name != "bool":
            options += [f"{name}[0] += {item}", f"{name}[{w.of(INT, 1)}] *= 2"]
            if w.chance(0.3):
                found.kind = list_of(NUM)
                return [f"{name}[0] += {w.of(NUM, 2)}"]
        return [w.random.choice(options)]
    if kind.name == "set":
        return [
            w.pick(
                f"{name}.add({w.of(kind.of[0], 2)})",
                f"{name}.discard({w.of(kind.of[0], 1)})",
                f"{name} |= {{{w.of(kind.of[0], 1)}}}",
            )
        ]
    key, value = w.of(kind.of[0], 1), w.of(kind.of[1], 2)
    options = [f"{name}[{key}] = {value}"] * 3 + [
        f"{name}.update({{{key}: {value}}})",
        f"{name}.pop({key}, {value})",
        f"del {name}[{key}]",
        f"{name}.setdefault({key}, {value})",
    ]
    if kind.of[1].is_number and kind.of[1].name != "bool":
        options += [f"{name}[{key}] += {value}", f"{name}[{key}] = {name}.get({key}, 0) + {value}"]
    return [w.random.choice(options)]


@statement(7)
def _if(w: Writer, depth: int) -> list[str] | None:
    if depth <= 0:
        return None
    narrowed = w.scope.find(lambda kind: kind.name == "opt") if w.chance(0.2) else None
    if narrowed is not None:
        kind, narrowed.kind = narrowed.kind, narrowed.kind.of[0]
        lines = [f"if {narrowed.name} is not None:", *indented(w.block(depth - 1, 2))]
        narrowed.kind = kind
        return lines
    if w.chance(0.12):
        name = w.scope.fresh("q", "r")
        test = f"({name} := {w.of(INT, DEPTH)}) {w.pick('>', '<', '!=')} {w.of(INT, 1)}"
        w.scope.add(name, INT)
    else:
        test = w.of(BOOL, DEPTH)
    lines = [f"if {test}:", *indented(w.block(depth - 1, w.random.randint(1, 3)))]
    if w.chance(0.25):
        lines += [f"elif {w.of(BOOL, DEPTH)}:", *indented(w.block(depth - 1, 2))]
    if w.chance(0.45):
        lines += ["else:", *indented(w.block(depth - 1, 2))]
    return lines


@statement(1.5)
def _assigned_in_both(w: Writer, depth: int) -> list[str]:
    name = w.scope.fresh()
    first, second = w.random.choice([(INT, INT), (INT, FLOAT), (FLOAT, INT), (FLOAT, FLOAT), (STR, STR), (NUM, INT)])
    lines = [f"if {w.of(BOOL, 2)}:", f"    {name} = {w.of(first, 2)}", "else:", f"    {name} = {w.of(second, 2)}"]
    w.scope.add(name, first if first == second else NUM)
    return lines


def _iterable(w: Writer) -> tuple[str, list[tuple[str, Kind]]]:
    """What to go over, and the variables of the loop."""
    i, e = w.scope.fresh("i", "j"), w.scope.fresh("e", "v", "item")
    options: list[tuple[str, list[tuple[str, Kind]]]] = [
        (f"for {i} in range({w.pick('3', '4', w.of(INT, 1) + ' % 5', '1, 6, 2', '4, 0, -1')}):", [(i, INT)]),
        (f"for {i} in range({w.pick('2', '3')}):", [(i, INT)]),
    ]
    for kind, element_kind in ((list_of(INT), INT), (list_of(FLOAT), FLOAT), (list_of(STR), STR), (list_of(NUM), NUM)):
        values = w.scope.find(lambda other, kind=kind: other == kind)
        if values is not None:
            options.append((f"for {e} in {values.name}:", [(e, element_kind)]))
            options.append((f"for {i}, {e} in enumerate({values.name}):", [(i, INT), (e, element_kind)]))
            options.append((f"for {i}, {e} in zip(range(3), {values.name}):", [(i, INT), (e, element_kind)]))
            options.append((f"for {e} in ({e} * 2 for {e} in {values.name}):", [(e, element_kind)]))
    mapping = w.scope.find(lambda other: other.name == "dict")
    if mapping is not None:
        key, value = mapping.kind.of
        options += [
            (f"for {e} in {mapping.name}:", [(e, key)]),
            (f"for {i}, {e} in {mapping.name}.items():", [(i, key), (e, value)]),
            (f"for {e} in {mapping.name}.values():", [(e, value)]),
        ]
    found = any_tensor(w, 0, least=1)
    if found is not None:
        row = tensor(found[1].dtype, found[1].shape[1:])
        options += [(f"for {e} in {found[0]}:", [(e, row)])] * 2
        options += [(f"for {i}, {e} in enumerate({found[0]}):", [(i, INT), (e, row)])]
    return w.random.choice(options)


@statement(6)
def _for(w: Writer, depth: int) -> list[str] | None:
    if depth <= 0:
        return None
    head, names = _iterable(w)
    w.scope.in_loop += 1
    with w.scope.block():
        for name, kind in names:
            w.scope.add(name, kind, fixed=True)
        lines = w.statements(depth - 1, w.random.randint(1, 3))
        if w.chance(0.25):
            jump = w.pick("break", "continue", "break")
            lines += [f"if {w.of(BOOL, 2)}:", f"    {jump}"]
            lines += w.statements(depth - 1, 1)
        for name, _ in names:
            for each in w.scope.variables:
                each.fixed = each.fixed and each.name != name
    w.scope.in_loop -= 1
    lines = [head, *indented(lines or ["pass"])]
    if w.chance(0.15):
        lines += ["else:", *indented(w.block(depth - 1, 1))]
    return lines


@statement(2)
def _while(w: Writer, depth: int) -> list[str] | None:
    if depth <= 0:
        return None
    counter = w.scope.fresh("steps", "left", "tries")
    most = w.pick("3", "4", "6")
    w.scope.add(counter, INT, fixed=True)
    endless = w.chance(0.4)
    test = "True" if endless else f"{counter} < {most}" if w.chance(0.6) else f"{counter} < {most} and {w.of(BOOL, 2)}"
    w.scope.in_loop += 1
    with w.scope.block():
        lines = [f"{counter} += 1", *w.statements(depth - 1, 2)]
        if endless:
            lines += [f"if {counter} > {most}:", "    break"]
        elif w.chance(0.3):
            lines += [f"if {w.of(BOOL, 2)}:", f"    {w.pick('break', 'continue')}"]
    w.scope.in_loop -= 1
    lines = [f"{counter} = 0", f"while {test}:", *indented(lines)]
    if not endless and w.chance(0.15):
        lines += ["else:", *indented(w.block(depth - 1, 1))]
    return lines


ERRORS = ("ValueError", "KeyError", "IndexError", "ZeroDivisionError", "RuntimeError", "TypeError", "OverflowError")


@statement(2.5)
def _try(w: Writer, depth: int) -> list[str] | None:
    if depth <= 0:
        return None
    body = w.block(depth - 1, 2)
    if w.chance(0.4):
        error = w.random.choice([*ERRORS[:3], *w.scope.exceptions])
        body += [f"if {w.of(BOOL, 2)}:", f'    raise {error}("{w.pick("bad", "no", "late")}")']
    if w.chance(0.15):
        return ["try:", *indented(body), "finally:", *indented(w.block(depth - 1, 1))]
    caught = w.pick(
        *ERRORS,
        "(ValueError, KeyError, IndexError)",
        "Exception",
        "(ZeroDivisionError, OverflowError)",
        *w.scope.exceptions,
    )
    lines = ["try:", *indented(body), f"except {caught}{' as error' if w.chance(0.3) else ''}:"]
    handler = w.block(depth - 1, 1)
    if lines[-1].endswith("as error:"):
        name = w.scope.fresh("text")
        handler.append(f"{name} = str(error)")
    lines += indented(handler)
    if w.chance(0.25):
        lines += ["else:", *indented(w.block(depth - 1, 1))]
    if w.chance(0.25):
        lines += ["finally:", *indented(w.block(depth - 1, 1))]
    return lines


@statement(1.2)
def _raise(w: Writer, depth: int) -> list[str]:
    error = w.random.choice([*ERRORS, *w.scope.exceptions])
    text = w.pick('"bad"', f"str({w.of(INT, 1)})", w.of(STR, 1))
    return [f"if {w.of(BOOL, 2)} and {w.of(BOOL, 2)}:", f"    raise {error}({text})"]


@statement(0.7)
def _assert(w: Writer, depth: int) -> list[str]:
    return [f"assert {w.of(BOOL, 1)} or {w.of(BOOL, 2)}, {w.of(STR, 1)}"]


@statement(1.5)
def _early_return(w: Writer, depth: int) -> list[str] | None:
    if not w.scope.result or depth >= 3:
        return None
    return [f"if {w.of(BOOL, 2)}:", f"    return {returned(w)}"]


def returned(w: Writer) -> str:
    """The values that the function returns."""
    values = [w.leaf(kind) if w.chance(0.8) else w.of(kind, 2) for kind in w.scope.result]
    return ", ".join(values)


@statement(2)
def _call_helper(w: Writer, depth: int) -> list[str] | None:
    if not w.scope.helpers:
        return None
    helper = w.random.choice(w.scope.helpers)
    name = w.scope.fresh()
    call = call_of(w, helper)
    w.scope.add(name, helper.result)
    return [f"{name} = {call}"]


def call_of(w: Writer, helper: object) -> str:
    """A call of a helper function; arguments with defaults may be left out."""
    parameters = list(helper.parameters)  # type: ignore[attr-defined]
    optional_count = helper.optional  # type: ignore[attr-defined]
    if optional_count and w.chance(0.5):
        parameters = parameters[:-optional_count]
    return f"{helper.name}({', '.join(w.of(each, 2) for each in parameters)})"  # type: ignore[attr-defined]


@statement(1.5)
def _local_function(w: Writer, depth: int) -> list[str] | None:
    if depth < 1:
        return None
    kind = w.random.choice((INT, FLOAT, NUM))
    name, p = w.scope.fresh("step", "inner", "g", "h"), w.scope.fresh("p", "q")
    with w.scope.inner():
        w.scope.add(p, kind, fixed=True)
        result = w.of(kind, DEPTH)
    target = w.scope.fresh()
    argument = w.of(kind, 1)
    w.scope.add(target, kind)
    if w.chance(0.5):
        return [f"{name} = lambda {p}: {result}", f"{target} = {name}({argument})"]
    annotation = f": {kind.annotation}" if kind != NUM else ""
    return [f"def {name}({p}{annotation}):", f"    return {result}", f"{target} = {name}({argument})"]


@statement(1.2)
def _with_no_grad(w: Writer, depth: int) -> list[str] | None:
    if depth <= 0:
        return None
    return ["with torch.no_grad():", *indented(w.statements(depth - 1, 2) or ["pass"])]


@statement(2)
def _item_into(w: Writer, depth: int) -> list[str] | None:
    """``.item()`` into a variable that held another number."""
    old = w.scope.find(lambda kind: kind.name in ("int", "float"), assignable=True)
    one = element(w)
    if old is None or one is None:
        return None
    old.kind = NUM
    return [f"{old.name} {w.pick('=', '+=', '=')} {one}.item()"]
