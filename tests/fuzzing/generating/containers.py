"""Expressions of texts, lists, dicts, tuples and sets."""

from __future__ import annotations

from tests.fuzzing.generating.core import Writer, expression
from tests.fuzzing.generating.kinds import BOOL, FLOAT, INT, NUM, STR, Kind, list_of, literal
from tests.fuzzing.generating.numbers import any_tensor


@expression("str", 4)
def _text_of_numbers(w: Writer, k: Kind, d: int) -> str:
    a, x, b = w.of(INT, d), w.of(w.random.choice((FLOAT, NUM)), d), w.of(BOOL, d)
    if any(mark in a + x + b for mark in "\"'{\\"):  # the quotes of an f-string may not occur within it
        return f"str({w.pick(a, x, b)})"
    return w.pick(
        f"str({a})",
        f"str({x})",
        f'f"{{{a}}}:{{{x}}}"',
        f'f"{{{x}:.2f}}"',
        f'f"{{{a}:03d}}|"',
        f"repr({x})",
        f'f"{{{x}:.3e}}"',
        f'"%d-%s" % ({a}, {x})',
        f'"{{}} {{}}".format({a}, {x})',
        f'f"{{{b}}}"',
        f"hex({a})",
    )


@expression("str", 4)
def _text_operations(w: Writer, k: Kind, d: int) -> str:
    a, b = w.of(STR, d), w.of(STR, d)
    return w.pick(
        f"({a} + {b})",
        f"({a} * {w.pick('2', '0', '3')})",
        f"{a}.upper()",
        f"{a}[{w.pick('1:', ':2', '::-1', ':-1')}]",
        f"{a}.strip()",
        f"{a}.replace('a', {b})",
        f'"-".join([{a}, {b}])',
        f"({a} or {b})",
        f"{a}.title()",
        f"max({a}, {b})",
    )


@expression("list", 3)
def _list_display(w: Writer, k: Kind, d: int) -> str:
    count = w.random.choice((1, 2, 2, 3))
    return f"[{', '.join(w.of(k.of[0], d) for _ in range(count))}]"


@expression("list", 3)
def _comprehension(w: Writer, k: Kind, d: int) -> str:
    values = w.scope.find(lambda kind: kind.name == "list" and kind.of[0].is_number)
    source, kind = (w.pick("range(3)", "range(1, 6, 2)"), INT) if values is None else (values.name, values.kind.of[0])
    i = w.scope.fresh("i", "j", "e", "o")
    with w.scope.inner():
        w.scope.add(i, kind, fixed=True)
        item, test = w.of(k.of[0], d), w.of(BOOL, d)
    if w.chance(0.2):
        p = w.scope.fresh("p")
        return f"[{item} for {p}, {i} in enumerate({source})]"
    return f"[{item} for {i} in {source}]" if w.chance(0.6) else f"[{item} for {i} in {source} if {test}]"


@expression("list", 4)
def _list_operations(w: Writer, k: Kind, d: int) -> str:
    a, b = w.of(k, d), w.of(k, d)
    options = [
        f"({a} + {b})",
        f"({a} * 2)",
        f"[*{a}, {w.of(k.of[0], d)}]",
        f"{a}[{w.pick('1:', ':2', '::-1', ':-1', '::2')}]",
        f"list({a})",
    ]
    options += [f"({a} if {w.of(BOOL, d)} else {b})", f"list(reversed({a}))"]
    if k.of[0].name in ("int", "float", "str", "num"):
        options += [f"sorted({a})", f"sorted({a}, reverse=True)"]
    if k.of[0].name == "int":
        options += [f"sorted({a}, key=lambda e: -e)", f"list(range({w.of(INT, d)} % 6))", f"[e % 3 for e in {a}]"]
        options += [
            f"[p * r for p, r in zip({a}, {b})]",
            f"list(map(abs, {a}))",
            f"[int(e) for e in str(abs({w.of(INT, d)}))]",
        ]
    return w.random.choice(options)


@expression("list", 3)
def _list_of_a_tensor(w: Writer, k: Kind, d: int) -> str | None:
    if k.of[0] not in (INT, FLOAT):
        return None
    found = any_tensor(w, d, w.pick("float32", "float64") if k.of[0] == FLOAT else "int64")
    if found is None:
        return None
    name, kind = found
    if not kind.shape:
        return f"[{name}.item()]"
    flat = name if len(kind.shape) == 1 else w.pick(f"{name}[0]", f"{name}.flatten()", f"{name}.sum(0)")
    return w.pick(
        f"{flat}.tolist()",
        f"[e.item() for e in {flat}]",
        f"[{w.pick('float', 'int') if False else k.of[0].name}(e) for e in {flat}]",
    )


@expression("list", 1)
def _list_of_a_dict(w: Writer, k: Kind, d: int) -> str | None:
    found = w.scope.find(lambda kind: kind.name == "dict" and k.of[0] in kind.of)
    if found is None:
        return None
    method = "keys" if found.kind.of[0] == k.of[0] else "values"
    return w.pick(f"list({found.name}.{method}())", f"[e for e in {found.name}.{method}()]")


@expression("dict", 3)
def _dict_display(w: Writer, k: Kind, d: int) -> str:
    key, value = k.of
    keys = [w.of(key, 0) if w.chance(0.3) else literal(w.random, key, 0) for _ in range(w.random.choice((1, 2, 3)))]
    return f"{{{', '.join(f'{each}: {w.of(value, d)}' for each in dict.fromkeys(keys))}}}"


@expression("dict", 3)
def _dict_operations(w: Writer, k: Kind, d: int) -> str:
    key, value = k.of
    options = [f"{{**{w.of(k, d)}, {w.of(key, 0)}: {w.of(value, d)}}}", f"dict({w.of(k, d)})"]
    if key == INT:
        options.append(f"{{i: {w.of(value, d)} for i in range(3)}}")
        options.append(f"dict(zip({w.of(list_of(INT), d)}, {w.of(list_of(value), d)}))")
    if key == STR:
        options.append(f"{{s: {w.of(value, d)} for s in {w.pick('[*' + repr('abc') + ']', w.of(list_of(STR), d))}}}")
    return w.random.choice(options)


@expression("tuple", 3)
def _tuple_display(w: Writer, k: Kind, d: int) -> str:
    return f"({', '.join(w.of(each, d) for each in k.of)},)"


@expression("set", 3)
def _set(w: Writer, k: Kind, d: int) -> str:
    a, b = w.of(list_of(k.of[0]), d), w.of(k, d)
    return w.pick(f"set({a})", f"({b} | set({a}))", f"({b} & set({a}))", f"({b} - set({a}))", f"{{{w.of(k.of[0], d)}}}")


@expression("list", 0.7)
def _sorted_set(w: Writer, k: Kind, d: int) -> str | None:
    found = w.scope.find(lambda kind: kind.name == "set" and kind.of[0] == k.of[0])
    return None if found is None else f"sorted({found.name})"
