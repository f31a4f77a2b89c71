"""What users write again and again: accumulators, the best so far, counting, searches, retries."""

from __future__ import annotations

from tests.fuzzing.generating.core import Writer, indented, statement
from tests.fuzzing.generating.kinds import BOOL, FLOAT, INT, NUM, STR, dict_of, list_of, tensor
from tests.fuzzing.generating.numbers import any_tensor, element


def _rows(w: Writer) -> tuple[str, str] | None:
    """A Tensor to go over, and what turns a row into an element."""
    found = any_tensor(w, 0, least=1)
    if found is None or found[1].dtype == "bool":
        return None
    return found[0], "" if len(found[1].shape) == 1 else ".sum()"


@statement(3)
def _accumulate(w: Writer, depth: int) -> list[str] | None:
    rows = _rows(w)
    if rows is None:
        return None
    name, one = rows
    total, v = w.scope.fresh("total", "loss_sum", "acc"), w.scope.fresh("v", "row")
    value = w.pick(f"{v}{one}.item()", f"float({v}{one})", f"{v}{one}.item() * 2", f"int({v}{one})", f"{v}{one}")
    kind = tensor("float32", ()) if value == f"{v}{one}" else NUM
    lines = [f"{total} = {w.pick('0', '0', '0.0', '1')}", f"for {v} in {name}:"]
    if w.chance(0.4):
        lines.append(f"    if {v}{one} {w.pick('>', '<')} {w.pick('0', '0.5', '1')}:")
        lines.append(f"        {total} {w.pick('+=', '-=')} {value}")
    else:
        lines.append(f"    {total} {w.pick('+=', '-=', '+=')} {value}")
    w.scope.add(total, kind)
    if w.chance(0.3) and kind == NUM:
        mean = w.scope.fresh("mean")
        lines.append(f"{mean} = {total} / len({name})")
        w.scope.add(mean, FLOAT)
    return lines


@statement(3)
def _best(w: Writer, depth: int) -> list[str] | None:
    rows = _rows(w)
    if rows is None:
        return None
    name, one = rows
    best, v = w.scope.fresh("best", "top"), w.scope.fresh("v", "row")
    start = w.pick("0", "0.0", "-math.inf", "math.inf", "-1", "None", 'float("-inf")')
    value = w.pick(f"{v}{one}.item()", f"{v}{one}", f"float({v}{one})", f"int({v}{one})")
    test = f"{best} is None or {value} > {best}" if start == "None" else f"{value} {w.pick('>', '<', '>=')} {best}"
    lines = [f"{best} = {start}"]
    if w.chance(0.4):
        where, i = w.scope.fresh("where", "at"), w.scope.fresh("i", "j")
        lines += [
            f"{where} = {w.pick('-1', 'None', '0')}",
            f"for {i}, {v} in enumerate({name}):",
            f"    if {test}:",
            f"        {best} = {value}",
            f"        {where} = {i}",
        ]
        w.scope.add(where, INT)
    else:
        lines += [f"for {v} in {name}:", f"    if {test}:", f"        {best} = {value}"]
    w.scope.add(best, NUM if start != "None" else FLOAT)
    return lines


@statement(1.5)
def _gather(w: Writer, depth: int) -> list[str] | None:
    rows = _rows(w)
    if rows is None:
        return None
    name, one = rows
    out, v = w.scope.fresh("out", "values", "seen"), w.scope.fresh("v", "row")
    kind = w.random.choice((FLOAT, INT))
    start = w.pick("[]", "[0]", "[0, 0]", "[0.5]")
    annotated = f": {list_of(kind).annotation}" if start == "[]" or w.chance(0.3) else ""
    adding = w.pick(
        f"{out}.append({v}{one}.item())",
        f"{out}.append(float({v}{one}))",
        f"{out}.append(int({v}{one}))",
        f"{out} += [{v}{one}.item()]",
    )
    lines = [f"{out}{annotated} = {start}", f"for {v} in {name}:", f"    {adding}"]
    w.scope.add(out, list_of(NUM))
    return lines


@statement(1.5)
def _count(w: Writer, depth: int) -> list[str] | None:
    values = w.scope.find(lambda kind: kind in (list_of(INT), list_of(STR)))
    if values is None:
        return None
    counts, v = w.scope.fresh("counts", "sums"), w.scope.fresh("v", "e")
    key = values.kind.of[0]
    value = w.pick("1", "1", "0.5", w.of(NUM, 1))
    lines = (
        [f"{counts}: {dict_of(key, INT if value == '1' else FLOAT).annotation} = {{}}"]
        if w.chance(0.7)
        else [f"{counts} = {{}}"]
    )
    if w.chance(0.5):
        lines += [f"for {v} in {values.name}:", f"    {counts}[{v}] = {counts}.get({v}, 0) + {value}"]
    else:
        lines += [
            f"for {v} in {values.name}:",
            f"    if {v} not in {counts}:",
            f"        {counts}[{v}] = 0",
            f"    {counts}[{v}] += {value}",
        ]
    w.scope.add(counts, dict_of(key, INT if value == "1" else NUM))
    return lines


@statement(1.5)
def _totals_in_a_dict(w: Writer, depth: int) -> list[str] | None:
    one = element(w)
    if one is None:
        return None
    d = w.scope.fresh("stats", "d")
    lines = [f'{d} = {{"s": 0, "n": 0}}', f'{d}["s"] += {one}.item()', f'{d}["n"] += {w.of(INT, 1)}']
    w.scope.add(d, dict_of(STR, NUM))
    return lines


@statement(1.5)
def _search(w: Writer, depth: int) -> list[str] | None:
    values = w.scope.find(lambda kind: kind in (list_of(INT), list_of(FLOAT)))
    source, kind = ("range(6)", INT) if values is None else (values.name, values.kind.of[0])
    found, v = w.scope.fresh("found", "hit"), w.scope.fresh("v", "e")
    with w.scope.inner():
        w.scope.add(v, kind, fixed=True)
        test = w.of(BOOL, 2)
    if w.chance(0.35):
        w.scope.add(found, kind)
        return [
            f"for {v} in {source}:",
            f"    if {test}:",
            f"        {found} = {v}",
            "        break",
            "else:",
            f"    {found} = {w.of(kind, 1)}",
        ]
    if w.chance(0.3):
        w.scope.add(v, kind)
        w.scope.variables[-1].maybe = True
        return [f"for {v} in {source}:", f"    if {test}:", "        break"]
    if w.chance(0.5):
        w.scope.add(found, kind)
        return [
            f"{found} = {w.of(kind, 0)}",
            f"for {v} in {source}:",
            f"    if {test}:",
            f"        {found} = {v}",
            f"        {w.pick('break', 'continue', 'break')}",
        ]
    w.scope.add(found, kind)
    w.scope.variables[-1].maybe = True
    return [f"for {v} in {source}:", f"    if {test}:", f"        {found} = {v}"]


@statement(1.5)
def _changed_in_its_loop(w: Writer, depth: int) -> list[str] | None:
    found = w.scope.find(lambda kind: kind.name in ("list", "dict") and kind.of[0] in (INT, STR))
    if found is None:
        return None
    e = w.scope.fresh("e", "key")
    name = found.name
    if found.kind.name == "dict":
        key, value = w.of(found.kind.of[0], 0), w.of(found.kind.of[1], 1)
        over = w.pick(
            f"{e} in {name}",
            f"{e} in {name}.keys()",
            f"{e}, _ in {name}.items()",
            f"_ in {name}.values()",
            f"{e} in list({name})",
        )
        change = w.pick(
            f"{name}[{key}] = {value}", f"{name}.pop({key}, None)", f"{name}[{key}] = {value}", f"{name}.clear()"
        )
        test = f"{w.of(BOOL, 1)}"
        return (
            [f"for {over}:", f"    if {test}:", f"        {change}"]
            if w.chance(0.5)
            else [f"for {over}:", f"    {change}"]
        )
    alias = w.scope.fresh("same")
    over = w.pick(f"for {e} in {name}:", f"for _, {e} in enumerate({name}):", f"for {e}, _ in zip({name}, range(20)):")
    change = w.pick(
        f"if len({alias}) < 8:\n{alias}.append({e})",
        f"if len({alias}) > 1:\n{alias}.pop()",
        f"if {e} in {alias}:\n{alias}.remove({e})",
    )
    test, _, action = change.partition("\n")
    return [f"{alias} = {name}", over, f"    {test}", f"        {action}"]


@statement(2)
def _side_effects_of_generators(w: Writer, depth: int) -> list[str] | None:
    """What a generator expression calls is visible: it appends to a list."""
    logger = next((each for each in w.scope.helpers if each.logs), None)
    if logger is None:
        return None
    log, result, i = w.scope.fresh("log", "calls"), w.scope.fresh(), w.scope.fresh("i", "e")
    values = w.scope.find(lambda kind: kind == list_of(INT))
    source = w.pick("range(4)", "[3, 1, 2]") if values is None else values.name
    call = f"{logger.name}({log}, {i})"
    lines = [f"{log}: List[int] = []"]
    match w.pick("any", "all", "next", "sum", "sorted", "for", "max", "list", "zip", "tuple", "in"):
        case "any" | "all" as name:
            lines.append(f"{result} = {name}({call} > {w.of(INT, 1)} for {i} in {source})")
            w.scope.add(result, BOOL)
        case "next":
            lines.append(
                f"{result} = next(({call} for {i} in {source} if {call} > {w.pick('0', '1', '2')}), {w.of(INT, 0)})"
            )
            w.scope.add(result, INT)
        case "sum":
            lines.append(f"{result} = sum({call} for {i} in {source})")
            w.scope.add(result, INT)
        case "sorted":
            lines.append(f"{result} = sorted({call} for {i} in {source})")
            w.scope.add(result, list_of(INT))
        case "max":
            lines.append(f"{result} = max(({call} for {i} in {source}), default=0)")
            w.scope.add(result, INT)
        case "list" | "tuple":
            lines.append(f"{result} = list({call} for {i} in {source})")
            w.scope.add(result, list_of(INT))
        case "zip":
            lines += [
                f"{result} = 0",
                f"for p, q in zip(range(2), ({call} for {i} in {source})):",
                f"    {result} += p * q",
            ]
            w.scope.add(result, INT)
        case "in":
            lines.append(f"{result} = {w.pick('1', '2')} in ({call} for {i} in {source})")
            w.scope.add(result, BOOL)
        case "for":
            lines += [
                f"{result} = 0",
                f"for p in ({call} for {i} in {source}):",
                f"    {log}.append(-1)",
                f"    {result} += p",
                f"    if p > {w.pick('1', '2')}:",
                "        break",
            ]
            w.scope.add(result, INT)
    w.scope.add(log, list_of(INT))
    return lines


@statement(1)
def _short_circuits(w: Writer, depth: int) -> list[str] | None:
    logger = next((each for each in w.scope.helpers if each.logs), None)
    if logger is None:
        return None
    log, result = w.scope.fresh("log", "calls"), w.scope.fresh()
    a, b = f"{logger.name}({log}, {w.of(INT, 1)})", f"{logger.name}({log}, {w.of(INT, 1)})"
    c = f"{logger.name}({log}, {w.of(INT, 1)})"
    expression = w.pick(
        f"{a} or {b}",
        f"{a} and {b}",
        f"{a} if {c} > 1 else {b}",
        f"{a} < {b} < {c}",
        f"max({a}, {b})",
        f"[{a}, {b}][{c} % 2]",
        f"{a} + {b} * {c}",
        f"({a}, {b})[0]",
    )
    w.scope.add(log, list_of(INT))
    w.scope.add(result, BOOL if " < " in expression else INT)
    return [f"{log}: List[int] = []", f"{result} = {expression}"]


@statement(1)
def _retry(w: Writer, depth: int) -> list[str] | None:
    n, tries = w.scope.fresh("left"), w.scope.fresh("tries")
    w.scope.add(tries, INT)
    return [
        f"{tries} = 0",
        "while True:",
        "    try:",
        f"        {tries} += 1",
        f"        if {tries} < {w.pick('2', '3')}:",
        f'            raise {w.pick("ValueError", "KeyError")}("again")',
        f"        {n} = {w.of(INT, 2)} // ({tries} - {w.pick('1', '2', '3')})",
        "        break",
        f"    except {w.pick('ValueError', '(ValueError, KeyError)', 'Exception')}:",
        f"        if {tries} > 3:",
        f"            {w.pick('raise', 'break')}",
        *(["    finally:", f"        {tries} += 1"] if w.chance(0.4) else []),
    ]


@statement(1)
def _named_results(w: Writer, depth: int) -> list[str] | None:
    found = any_tensor(w, 0, "float32", least=2)
    if found is None:
        return None
    r = w.scope.fresh("r", "pair")
    method = w.pick("max(1)", "min(0)", "median(1)", "sort(1)", "topk(1)", "mode(0)", "cummax(0)", "kthvalue(1, 1)")
    values = w.scope.fresh()
    w.scope.add(r, tensor("float32", ("?",)))
    w.scope.add(values, tensor("float32", ("?",)))
    return [f"{r} = {found[0]}.{method}", f"{values} = {r}{w.pick('.values', '[0]')}"]


@statement(1)
def _maybe_unassigned(w: Writer, depth: int) -> list[str] | None:
    name = w.scope.fresh()
    kind = w.random.choice((INT, FLOAT))
    lines = [f"if {w.of(BOOL, 2)}:", *indented([f"{name} = {w.of(kind, 2)}"])]
    w.scope.add(name, kind)
    w.scope.variables[-1].maybe = True
    return lines
