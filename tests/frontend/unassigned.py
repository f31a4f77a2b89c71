"""Functions that read variables which not every path assigns."""

# ruff: noqa: F821, E731

import math
from typing import List, Optional

import torch
from torch import Tensor


class Pair:
    def __init__(self, number: int, tensor: Tensor):
        self.number = number
        self.tensor = tensor


def in_one_branch(c: bool):
    if c:
        y = 1
    return y


def loop_variable_or_else(n: int):
    for j in range(n):
        if j > 2:
            break
    else:
        j = 100
    return j


def endless_loop():
    while True:
        k = 3
        break
    return k


def walrus_in_a_condition(m: int):
    while (n := m) > 1:
        m = m // 2
    return n


def first_iteration_assigns(x: Tensor, n: int):
    for i in range(n):
        if i == 0:
            out = x
        else:
            out = out + x
    return out


def deleted(x: int):
    y = x
    del y
    return y


def same_condition_twice(c: bool, x: Tensor):
    if c:
        y = x + 1
    z = x
    if c:
        z = y * 2
    return z


def in_a_loop(n: int):
    for i in range(n):
        last = i
    return last, i


def deleted_in_a_branch(c: bool):
    y = 3
    if c:
        del y
    return y


def deleted_in_a_loop(n: int):
    y = 3
    for i in range(n):
        z = y
        del y
    return z


def two_kinds_of_numbers(c: bool, d: bool):
    if c:
        y = 1
    elif d:
        y = 2.5
    return y


def of_two_types(c: bool, d: bool):
    if c:
        y = 1
    elif d:
        y = "s"
    return y


def in_a_comprehension(c: bool):
    if c:
        y = 1
    return [y + i for i in range(2)]


def in_a_lambda(c: bool):
    if c:
        y = 1
    g = lambda i: i + y
    return g(2)


def loop_that_runs(n: int):
    for i in range(3):
        pass
    return i


def of_the_iteration_before(n: int):
    t = 0
    for i in range(n):
        if i > 1:
            t += prev
        prev = i
    return t


def never_of_the_iteration_before(n: int):
    t = 0
    for i in range(n):
        t += prev
        prev = i
    return t


def of_a_local_function(c: bool):
    def g(d: bool):
        if d:
            q = 1
        return q

    t = 0
    for i in range(2):
        t += g(i == 0)
    return t


def name_of_a_global(c: bool):
    if c:
        sys = 3
    return sys


def optional(c: bool, x: Optional[Tensor]):
    if c:
        y = x
    if c and y is not None:
        return y + 1
    return y


def breaks_of_an_endless_loop(n: int):
    while True:
        if n > 3:
            k = "big"
            break
        if n < 0:
            k = "neg"
            break
        n += 1
    return k


def caught(c: bool):
    if c:
        y = 1
    try:
        return y
    except UnboundLocalError as e:
        return -1


def augmented(c: bool):
    if c:
        y = 1
    y += 1
    return y


def method_of_a_list(c: bool):
    if c:
        y = [1]
    y.append(2)
    return y


def checked(n: int) -> int:
    if n < 0:
        raise ValueError("neg")
    return n


def body_of_a_try(n: int):
    try:
        y = checked(n)
    except ValueError:
        pass
    return y


def in_a_handler(n: int):
    try:
        y = 5
        z = checked(n)
    except ValueError:
        return y
    return z + y


def branch_in_a_try(n: int):
    try:
        if n > 2:
            y = 5
        checked(n)
    except ValueError:
        pass
    return y


def in_a_try_within_a_try(n: int):
    try:
        if n > 2:
            raise TypeError("early")
        try:
            z = checked(n)
        except IndexError:
            pass
        finally:
            n += 1
        if n > 1:
            raise TypeError("late")
    except TypeError:
        return z
    return -1


def in_a_branch_that_is_left_out(n: int):
    z = 3
    try:
        if True:
            z += checked(n)
        else:
            z = 0
    except ValueError:
        pass
    return z


def jumps_out_of_a_try(n: int):
    for i in range(4):
        try:
            k = checked(n + i)
            break
        except ValueError:
            continue
    return k, i


def iterations_with_a_try(n: int):
    r = 0
    for i in range(4):
        try:
            if i > 0:
                r += k
            k = checked(n + i)
            checked(n + i - 1)
        except ValueError:
            r += 100
    return r


def final_reads(n: int, log: List[int]):
    try:
        try:
            y = n * 2
            checked(n)
        finally:
            q = 1
            log.append(y)
    except ValueError:
        log.append(y + q)
    return y + q


def deleted_in_a_try(n: int):
    try:
        z = 1
        if n > 0:
            del z
        checked(n - 5)
    except ValueError:
        pass
    return z


def of_two_types_by_handlers(n: int):
    try:
        v = checked(n)
    except ValueError:
        v = "s"
    return v


def read_in_a_try(n: int):
    if n > 0:
        v = 1
    try:
        return v
    except NameError as e:
        return -1


def before_and_in_a_try(n: int):
    if n > 1:
        y = 1
    try:
        if n > 0:
            y = 2
        checked(n)
        checked(n - 2)
    except ValueError:
        pass
    return y


def else_breaks(n: int):
    while True:
        try:
            w = checked(n)
        except ValueError:
            n += 1
        else:
            break
    return w


def with_a_target(c: bool):
    if c:
        with torch.no_grad():
            y = 1
    return y


def matched(n: int):
    match n:
        case 1:
            y = "one"
        case 2:
            y = "two"
    return y


def unpacked(c: bool):
    if c:
        a, (b, *rest) = 1, (2, 3, 4)
    return a, b, rest


def read_where_it_may_be_skipped(c: bool, d: bool):
    if c:
        y = 1
    return d and y == 1, y if c else 2


def in_nested_loops(n: int, m: int):
    for i in range(n):
        for j in range(m):
            if j > i:
                found = (i, j)
                break
        else:
            continue
        break
    return found, i, j


def continues(n: int):
    total = 0
    for i in range(n):
        if i % 2 == 0:
            even = i
            continue
        total += even
    return total, even


def known_in_the_loop_only(n: int):
    total = 0
    for i in range(n):
        if i == 0:
            start = 5
        total += start
    return total


def of_objects(n: int):
    for i in range(n):
        pair = Pair(i, torch.ones(i))
    return pair.number, pair.tensor


def in_while(n: int):
    while n > 0:
        n -= 1
        last = str(n)
    return last


def asked_by_the_condition(n: int):
    first = True
    while first or step < n:
        first = False
        step = 1 if n < 5 else n
        n -= 1
    return step, n


def raises_otherwise(n: int):
    if n > 1:
        y = 1
    elif n > 0:
        raise ValueError("n")
    else:
        return -1
    return y


def twice_deleted(c: bool):
    y = 1
    del y
    if c:
        del y
    y = "s"
    return y


def deleted_and_assigned(c: bool):
    y = 1
    if c:
        del y
        y = 2
    return y


def dict_and_list(c: bool, n: int):
    if c:
        d = {"a": 1}
        xs = [1, 2]
    for i in range(n):
        d["a"] += xs[i]
    return d, xs


def loop_over_no_tensors(xs: List[Tensor]):
    for x in xs:
        pass
    return x * 2


def loop_over_rows(x: Tensor):
    for row in x:
        total = row.sum()
    return row, total


def two_types_by_a_break(n: int):
    while True:
        if n > 3:
            k = 1.5
            break
        k = n
        if n < 0:
            break
        n += 1
    return k


def generator_reads(c: bool):
    if c:
        y = 1
    return sum(y + i for i in range(3))


def first_iterable_reads(c: bool):
    if c:
        y = [1]
    return [i for i in y]


def nested_function_reads(c: bool):
    if c:
        y = 1

    def g():
        return y

    return g()


def assigned_by_a_nested_function(c: bool):
    if c:
        y = 1

    def g():
        nonlocal y
        y = 2

    if not c:
        g()
    return y


def invariant_in_a_loop(n: int, c: bool):
    if c:
        a = 3
    b = 0
    for _ in range(n):
        b += a - 1
    return b


def never_assigned_in_a_loop(n: int):
    if n > 100:
        a = 3
    for _ in range(n):
        n += sorted([a - a])[0]
    return n


def read_after_other_work(x: Tensor, n: int):
    for i in range(n):
        for row in x:
            if float(row.sum()) >= top:
                top = float(row.sum())
        x -= x + x + x.floor()
    x[:1].add_(float(x.min()))
    return math.sin(i)


def default_after_the_generator(n: int):
    for i in range(n - 1):
        numbers = [i, n]
        other = 7
    return next((each for each in numbers if each > 1), other)


def default_after_the_list(n: int):
    for i in range(n - 1):
        numbers = [i, n]
        other = 7
    return max(numbers, default=other), next(iter(numbers), other)


def default_of_the_largest(n: int):
    for i in range(n - 1):
        numbers = [i, n]
        other = 7
    return max((each // n for each in numbers), default=other)


def generator_after_a_try(n: int):
    try:
        10 // n
    except ZeroDivisionError:
        least = 3.0
    finally:
        found = any(least > i for i in range(5))
    return found


def kept_from_an_earlier_iteration(n: int):
    found = [0]
    for e in (3, n, 0, n):
        try:
            10 // e
            last = e
        except ZeroDivisionError:
            found.append(last)
    return found


def changed_by_a_handler(n: int):
    found = [0]
    for e in range(n - 4, n):
        try:
            if e == 0:
                raise ValueError(str(e))
            last = e
        except ValueError:
            last = last + 10
        found.append(last)
    return found, last


def kept_in_nested_loops(n: int):
    i, found = 0, [0]
    while i < 3:
        for k in range(2):
            try:
                10 // (n - i - k)
                last = i
            except ZeroDivisionError as error:
                if last > 0:
                    found.append(last)
                raise ValueError(str(error)) from error
            finally:
                found.append(k)
        i += 1
    return found


def _assigned_by_some(q):
    if q > 2:
        found = q
    return found


def _first_of_generated(q):
    return next(e for e in range(q, 4) if e % 2)


def generic_functions(n: int):
    return _assigned_by_some(n), _first_of_generated(n - 5)
