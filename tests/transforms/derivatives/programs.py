"""Programs whose derivatives are compared: control flow, lists, tuples, dicts, writes.

Each takes tensors of three floats ``x`` and ``y`` and an int, and returns a tensor without dimensions.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Program = Callable[[Tensor, Tensor, int], Tensor]
PROGRAMS: list[Program] = []


def program(function: Program) -> Program:
    PROGRAMS.append(function)
    return function


# -------------------------------------------------------------------------------------------------------- control flow


@program
def straight(x: Tensor, y: Tensor, n: int) -> Tensor:
    return (x.sin() * y).sum()


@program
def loop(x: Tensor, y: Tensor, n: int) -> Tensor:
    for _ in range(n):
        x = torch.tanh(x * y)
    return x.sum()


@program
def loop_with_branch(x: Tensor, y: Tensor, n: int) -> Tensor:
    for i in range(n):
        if i % 2 == 0:
            x = x * y + 0.1
        else:
            y = y.cos()
    return (x * y).sum()


@program
def nested_loops(x: Tensor, y: Tensor, n: int) -> Tensor:
    for i in range(n):
        for j in range(i):
            x = x * 0.5 + y.sin() * j
        y = y * x
    return (x + y).sum()


@program
def condition_on_data(x: Tensor, y: Tensor, n: int) -> Tensor:
    while bool(x.sum() < 5.0):
        x = x * 1.5 + y * y
    return (x * y).sum()


@program
def leaves_early(x: Tensor, y: Tensor, n: int) -> Tensor:
    for i in range(n):
        if bool((x * y).sum() > 2.0):
            break
        if i == 1:
            continue
        x = x + y.exp()
    return x.sum()


@program
def returns_early(x: Tensor, y: Tensor, n: int) -> Tensor:
    for i in range(n):
        x = x * y
        if i == 2:
            return (x * x).sum()
    return x.sum()


@program
def branches_that_use_different_things(x: Tensor, y: Tensor, n: int) -> Tensor:
    if n > 2:
        z = x * x
    elif n > 0:
        z = y.exp()
    else:
        z = torch.ones_like(x)
    return (z * x).sum()


@program
def expression_of_branches(x: Tensor, y: Tensor, n: int) -> Tensor:
    z = x * y if n > 1 else x / (y + 1)
    return z.prod()


@program
def only_the_last_turn_counts(x: Tensor, y: Tensor, n: int) -> Tensor:
    z = y
    for i in range(n):
        z = (x * (i + 1)).sqrt()
    return z.sum()


@program
def swaps(x: Tensor, y: Tensor, n: int) -> Tensor:
    for _ in range(n):
        x, y = y, x * y + 0.2
    return (x - 2 * y).sum()


@program
def shapes_change(x: Tensor, y: Tensor, n: int) -> Tensor:
    for _ in range(n):
        x = torch.cat([x, y[:1] * x[-1:]])
    return (x * x).mean()


@program
def broadcasts(x: Tensor, y: Tensor, n: int) -> Tensor:
    z = x[:1]
    for i in range(n):
        z = z + y.unsqueeze(0) * (i + 1)
    return z.pow(2).sum()


@program
def optional(x: Tensor, y: Tensor, n: int) -> Tensor:
    best: Tensor | None = None
    for _ in range(n):
        x = x * y
        if best is None or bool(x.sum() > best.sum()):
            best = x + y
    return y.sum() if best is None else best.sum()


@program
def enumerates(x: Tensor, y: Tensor, n: int) -> Tensor:
    total = x.sum()
    for i, (a, b) in enumerate(zip([x, y], [y, x], strict=False)):
        total = total + (a * b * i).sum() * n
    return total


@program
def unused(x: Tensor, y: Tensor, n: int) -> Tensor:
    return (x * 2).sum()


# ------------------------------------------------------------------------------------------- lists, tuples and dicts


@program
def appends(x: Tensor, y: Tensor, n: int) -> Tensor:
    states = [x]
    for _ in range(n):
        states.append(torch.tanh(states[-1] * y))
    return torch.stack(states).sum()


@program
def appends_in_a_branch(x: Tensor, y: Tensor, n: int) -> Tensor:
    states = [x, y]
    for i in range(n):
        if i % 2 == 1:
            states.append(states[i // 2] * states[-2])
    return torch.cat(states).pow(2).sum()


@program
def list_comprehension(x: Tensor, y: Tensor, n: int) -> Tensor:
    parts = [x * i + y for i in range(n + 1)]
    return torch.stack([part.sum() * part[0] for part in parts]).sum()


@program
def walks_through_a_list(x: Tensor, y: Tensor, n: int) -> Tensor:
    total = torch.zeros_like(x)
    for part in [x, y, x * y]:
        total = total + part * part
    return total.sum() * n


@program
def sets_items(x: Tensor, y: Tensor, n: int) -> Tensor:
    values = [x, y]
    for i in range(n):
        values[i % 2] = values[0] * values[1]
    return (values[0] + 2 * values[1]).sum()


@program
def pops(x: Tensor, y: Tensor, n: int) -> Tensor:
    stack = [x, y]
    for _ in range(n):
        stack.append(stack[-1] * x)
    total = stack.pop().sum()
    while len(stack) > 1:
        total = total + stack.pop(0).prod()
    return total


@program
def adds_lists(x: Tensor, y: Tensor, n: int) -> Tensor:
    a = [x]
    b = [y]
    for _ in range(n):
        a, b = a + b[:1], b + a[-1:]
    a += b
    return torch.stack(a[1:]).sum() + b[0].sum()


@program
def splits(x: Tensor, y: Tensor, n: int) -> Tensor:
    total = y.sum()
    for i, part in enumerate(x.split(1)):
        total = total + part.sum() * (i + n)
    first, second = torch.cat([x, y]).chunk(2)
    return total * (first / (second + 1)).sum()


@program
def unbinds(x: Tensor, y: Tensor, n: int) -> Tensor:
    h = y[0]
    for item in x.unbind():
        for _ in range(n):
            h = h * item.cos() + y[1]
    return h


@program
def carries_a_tuple(x: Tensor, y: Tensor, n: int) -> Tensor:
    state = (x, y)
    for _ in range(n):
        state = (state[1], state[0] * state[1])
    return (state[0] * state[1]).sum()


def cell(x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    h, c = state
    c = c * x.sigmoid() + h.tanh()
    h = c.sin()
    return h * 2, (h, c)


@program
def calls_a_cell(x: Tensor, y: Tensor, n: int) -> Tensor:
    state = (x, y)
    outputs: list[Tensor] = []
    for _ in range(n):
        output, state = cell(x, state)
        outputs += [output]
    return torch.stack(outputs + [state[0]]).sum()


@program
def list_of_tuples(x: Tensor, y: Tensor, n: int) -> Tensor:
    pairs = [(x, y)]
    for _ in range(n):
        a, b = pairs[-1]
        pairs.append((b, a * b))
    return (pairs[-1][0] + pairs[-1][1]).sum()


@program
def list_of_lists(x: Tensor, y: Tensor, n: int) -> Tensor:
    rows: list[list[Tensor]] = []
    for i in range(n):
        row = [x]
        for _ in range(i):
            row.append(row[-1] * y)
        rows.append(row)
    total = y.sum()
    for row in rows:
        total = total + row[-1].sum()
    return total


@program
def dict_of_tensors(x: Tensor, y: Tensor, n: int) -> Tensor:
    state = {"x": x, "y": y}
    for _ in range(n):
        state["x"] = state["x"] * state["y"]
        state["z"] = state["x"] + 1
    return sum_of(state)


def sum_of(state: dict[str, Tensor]) -> Tensor:
    total = torch.zeros([], dtype=torch.float64)
    for key in state:
        total = total + state[key].sum()
    return total


@program
def dict_with_a_default(x: Tensor, y: Tensor, n: int) -> Tensor:
    state = {"x": x}
    if n > 1:
        state["y"] = y * x
    if "y" in state:
        return (state["y"] * state["x"]).sum()
    return state["x"].sum()


# --------------------------------------------------------------------------------------------------------------- writes


@program
def writes_elements(x: Tensor, y: Tensor, n: int) -> Tensor:
    z = torch.zeros_like(x)
    for i in range(3):
        z[i] = x[i] * y[0] * n
    return (z * z).sum()


@program
def writes_a_table(x: Tensor, y: Tensor, n: int) -> Tensor:
    table = torch.zeros(4, 3, dtype=torch.float64)
    table[0] = x
    for i in range(1, 4):
        for j in range(3):
            above = table[i - 1].clone()
            table[i, j] = above[j] * y[j] + above[(j + 1) % 3]
    return table[3].sum() * n


@program
def adds_in_place(x: Tensor, y: Tensor, n: int) -> Tensor:
    total = torch.zeros_like(x)
    for i in range(n):
        total += x * y * i
        total.mul_(y)
    return total.sum()


@program
def writes_to_views(x: Tensor, y: Tensor, n: int) -> Tensor:
    z = torch.cat([x, y]).view(2, 3)
    row, column = z[0], z[:, 1]
    row.mul_(y)
    column.add_(row.sum())
    z.t()[2] = x[:2] * n
    return (z * z).sum() + row.prod()


@program
def writes_in_a_branch(x: Tensor, y: Tensor, n: int) -> Tensor:
    z = x.clone()
    if n > 1:
        z[1:] = y[:2] * x[1:]
        z.sin_()
    else:
        z.exp_()
    z = z + y
    return (z * x).sum()


@program
def items_of_rows(x: Tensor, y: Tensor, n: int) -> Tensor:
    z = x * y
    i = torch.zeros_like(x[0], dtype=torch.int64)
    k = i.sum()
    z[i] += x[0]
    z[k] *= 2
    z[k] = 0.5
    return (z * x[k] * x[i, ...]).sum() + z[..., k].sum()


@program
def number_until_a_tensor_is_added(x: Tensor, y: Tensor, n: int) -> Tensor:
    total = 0
    decayed = 1.0
    for i in range(n):
        total += (x * i).sin()
        if i > 1:
            decayed = decayed * y[i % 3]
    return (total * x).sum() / 2 + decayed * y.sum()


@program
def number_or_tensor(x: Tensor, y: Tensor, n: int) -> Tensor:
    weight = x.sum() if n > 3 else 2
    worst = 0
    for v in x * y:
        worst = max(worst, v)
    return weight * y.prod() + worst + sum([v * v for v in x])


@program
def items_updated_in_place(x: Tensor, y: Tensor, n: int) -> Tensor:
    z = x * y
    k = torch.zeros_like(x[0], dtype=torch.int64).sum()
    for _ in range(n):
        z[k] = z[k] * 2 + y[k] * x[1]
    return (z * z).sum()


@program
def masks(x: Tensor, y: Tensor, n: int) -> Tensor:
    z = x * y
    z[x > 0.5] = 0.25
    z.masked_fill_(y > 0.9, 2.0)
    z.clamp_(min=0.1)
    for _ in range(n):
        z[y < 0.2] += x[0]
    return z.sum()


@program
def fills(x: Tensor, y: Tensor, n: int) -> Tensor:
    z = torch.empty(3, dtype=torch.float64)
    z.fill_(2.0)
    z[0].copy_(x[1])
    z[1:].zero_()
    z[2] = x.sum() * n
    return (z * y).sum()


@program
def writes_of_other_dtypes(x: Tensor, y: Tensor, n: int) -> Tensor:
    z = torch.ones(3, dtype=torch.float64)
    z += (x * y).to(torch.float32)
    z.mul_(n)
    z[0] = x[0].to(torch.float32)
    return (z * z).sum()


@program
def index_put(x: Tensor, y: Tensor, n: int) -> Tensor:
    z = torch.zeros(4, dtype=torch.float64)
    z[torch.tensor([0, 2, 3])] = x * y
    z.index_add_(0, torch.tensor([1, 1, 2]), x)
    z.scatter_(0, torch.tensor([0]), y[:1])
    return (z * z).sum() * n


@program
def a_new_tensor_each_turn(x: Tensor, y: Tensor, n: int) -> Tensor:
    total = x.sum()
    for i in range(n):
        part = torch.zeros_like(x)
        part[i % 3] = y[0] * x[1]
        part.add_(x)
        total = total + part.prod()
    return total


@program
def while_and_writes(x: Tensor, y: Tensor, n: int) -> Tensor:
    z = x.clone()
    i = 0
    while i < n and bool(z.max() < 3.0):
        z[i % 3] *= 1 + y[0]
        i += 1
    return z.sum()


# ------------------------------------------------------------------------------------------------- operators, numbers


@program
def no_formula(x: Tensor, y: Tensor, n: int) -> Tensor:
    for _ in range(n):
        x = torch.special.i1e(x) * y
    return x.sum()


@program
def several_results(x: Tensor, y: Tensor, n: int) -> Tensor:
    total = y.sum()
    for i in range(n):
        values, indices = torch.sort(x * (i + 1) - y)
        top, _ = values.max(dim=0)
        total = total + top * values[0] + indices.sum()
    return total


@program
def numbers_of_tensors(x: Tensor, y: Tensor, n: int) -> Tensor:
    scale = float(y.sum().detach())
    for i in range(n):
        x = x * scale + i
    return x.sum()


@program
def detaches(x: Tensor, y: Tensor, n: int) -> Tensor:
    for _ in range(n):
        x = x.detach() * y + x
    return x.sum()


@program
def matrices(x: Tensor, y: Tensor, n: int) -> Tensor:
    matrix = x.unsqueeze(1) * y.unsqueeze(0)
    power = torch.eye(3, dtype=torch.float64)
    for _ in range(n):
        power = power @ matrix + matrix.t()
    return power.diagonal().sum()


@program
def layers(x: Tensor, y: Tensor, n: int) -> Tensor:
    h = x.unsqueeze(0)
    weight = y.unsqueeze(0) * x.unsqueeze(1)
    for _ in range(n):
        h = torch.nn.functional.layer_norm(torch.relu(torch.nn.functional.linear(h, weight)) + h, [3])
    return torch.nn.functional.log_softmax(h, dim=1)[0, 1]


@program
def newton(x: Tensor, y: Tensor, n: int) -> Tensor:
    root = y + 1
    for _ in range(n):
        root = root - (root * root - x) / (2 * root)
    return root.sum()


@program
def runge_kutta(x: Tensor, y: Tensor, n: int) -> Tensor:
    h = 0.1
    for _ in range(n):
        k1 = torch.sin(x) * y
        k2 = torch.sin(x + h / 2 * k1) * y
        k3 = torch.sin(x + h / 2 * k2) * y
        k4 = torch.sin(x + h * k3) * y
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return x.pow(2).sum()


@program
def edit_distance(x: Tensor, y: Tensor, n: int) -> Tensor:
    """Soft, by a table whose rows are made one from the other."""
    before = [x.sum() * 0 + i for i in range(4)]
    for i in range(3):
        row = [before[0] + 1]
        for j in range(3):
            costs = torch.stack([before[j] + (x[i] - y[j]).pow(2), before[j + 1] + 1, row[j] + 1])
            row.append(-torch.logsumexp(-costs, dim=0))
        before = row
    return before[3] * n
