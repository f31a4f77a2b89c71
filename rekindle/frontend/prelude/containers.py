"""Lists, dicts, sets and texts: what Python does with them and no operator does."""

from typing import Dict, List, Optional

from torch import Tensor

from rekindle.frontend.prelude.iteration import sorted_by
from rekindle.frontend.prelude.primitives import (
    MAX_OF_NOTHING,
    MIN_OF_NOTHING,
    NOT_IN_LIST,
    drop,
    members,
    put,
    put_at,
    removed,
)


def list_contains(items, wanted) -> bool:
    for item in items:
        if item == wanted:
            return True
    return False


def list_index(items, wanted, start: int, stop: Optional[int] = None) -> int:
    first = max(start + len(items), 0) if start < 0 else start
    last = len(items) if stop is None else stop
    if last < 0:
        last += len(items)
    for i in range(first, min(last, len(items))):
        if items[i] == wanted:
            return i
    raise ValueError(NOT_IN_LIST.format(repr(wanted)))


def tuple_index(items, wanted, start: int = 0, stop: Optional[int] = None) -> int:
    first = max(start + len(items), 0) if start < 0 else start
    last = len(items) if stop is None else stop
    if last < 0:
        last += len(items)
    for i, item in enumerate(items):
        if first <= i and i < last:
            if item == wanted:
                return i
    raise ValueError("tuple.index(x): x not in tuple")


def tuple_count(items, wanted) -> int:
    count = 0
    for item in items:
        if item == wanted:
            count += 1
    return count


def startswith_any(text: str, prefixes, start: int = 0, stop: Optional[int] = None) -> bool:
    for prefix in prefixes:
        if text.startswith(prefix, start, len(text) if stop is None else stop):
            return True
    return False


def endswith_any(text: str, suffixes, start: int = 0, stop: Optional[int] = None) -> bool:
    for suffix in suffixes:
        if text.endswith(suffix, start, len(text) if stop is None else stop):
            return True
    return False


def sum_of_tensors(xs: List[Tensor]):
    total = xs[0] + 0
    for i in range(1, len(xs)):
        total = total + xs[i]
    return total


def tensors_in(values) -> List[Tensor]:
    found: List[Tensor] = []
    for at, value in enumerate(values):
        if not isinstance(value, Tensor):
            raise TypeError(f"expected Tensor as element {at} in argument 0, but got a number")
        found.append(value)
    return found


def min_row(xs):
    if len(xs) == 0:
        raise ValueError(MIN_OF_NOTHING)
    best = xs[0]
    for i in range(1, len(xs)):
        if bool(xs[i] < best):
            best = xs[i]
    return best


def max_row(xs):
    if len(xs) == 0:
        raise ValueError(MAX_OF_NOTHING)
    best = xs[0]
    for i in range(1, len(xs)):
        if bool(xs[i] > best):
            best = xs[i]
    return best


def any_of_rows(xs):
    for x in xs:
        if bool(x):
            return True
    return False


def all_rows(xs):
    for x in xs:
        if not bool(x):
            return False
    return True


def first_of(xs):
    if len(xs) == 0:
        raise StopIteration
    return xs[0]


def text_of_tuple(xs):
    shown = str(xs)
    return "(" + shown[1:-1] + (",)" if len(xs) == 1 else ")")


def text_of_size(xs: List[int]):
    return "torch.Size(" + str(xs) + ")"


def text_of_tuple_or_none(xs):
    return "None" if xs is None else text_of_tuple(xs)


def text_of_size_or_none(xs: Optional[List[int]]):
    return "None" if xs is None else text_of_size(xs)


def range_item(index: int, start: int, stop: int, step: int):
    found = start + index * step
    if index < 0:
        length = len(range(start, stop, step))
        found = start + (index + length) * step
        if index < -length:
            raise IndexError("range object index out of range")
    elif index >= len(range(start, stop, step)):
        raise IndexError("range object index out of range")
    return found


def range_contains(item: int, start: int, stop: int, step: int):
    if step > 0:
        return start <= item and item < stop and (item - start) % step == 0
    return stop < item and item <= start and (item - start) % step == 0


def numel_of_size(xs: List[int]):
    count = 1
    for x in xs:
        count = count * x
    return count


def text_of_dtype(n: int):
    names = (
        "uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool qint8 "
        "quint8 qint32 bfloat16 quint4x2 quint2x4 bits1x8 bits2x4 bits4x2 bits8 bits16 float8_e5m2 "
        "float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz uint16 uint32 uint64 uint1 uint2 uint3 uint4 uint5 "
        "uint6 uint7 int1 int2 int3 int4 int5 int6 int7 float8_e8m0fnu float4_e2m1fn_x2 bcomplex32"
    )
    return "torch." + names.split(" ")[n]


def text_of_layout(n: int):
    names = "strided sparse_coo sparse_csr _mkldnn sparse_csc sparse_bsr sparse_bsc jagged"
    return "torch." + names.split(" ")[n]


def text_of_layout_or_none(n: Optional[int]):
    return "None" if n is None else text_of_layout(n)


def text_of_memory_format(n: int):
    return "torch." + ["contiguous_format", "preserve_format", "channels_last", "channels_last_3d"][n]


def text_of_memory_format_or_none(n: Optional[int]):
    return "None" if n is None else text_of_memory_format(n)


def text_of_qscheme(n: int):
    names = (
        "per_tensor_affine per_channel_affine per_tensor_symmetric per_channel_symmetric "
        "per_channel_affine_float_qparams"
    )
    return "torch." + names.split(" ")[n]


def text_of_qscheme_or_none(n: Optional[int]):
    return "None" if n is None else text_of_qscheme(n)


def text_of_dtype_or_none(n: Optional[int]):
    return "None" if n is None else text_of_dtype(n)


def dtype_is_floating_point(n: int):
    return n in [5, 6, 7, 15, 23, 24, 25, 26, 44, 45]


def dtype_is_complex(n: int):
    return n in [8, 9, 10]


def dtype_is_signed(n: int):
    return n in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 23, 24, 25, 26, 45]


def dtype_itemsize(n: int):
    if n in [2, 5, 15, 22, 27]:
        return 2
    if n in [3, 6, 8, 14, 28]:
        return 4
    if n in [4, 7, 9, 29]:
        return 8
    return 16 if n == 10 else 1


def assign_slice(xs, start: Optional[int], stop: Optional[int], items):
    head = xs[:0] if start is None else xs[:start]
    tail = xs[:0] if stop is None else xs[stop:]
    if len(head) + len(tail) > len(xs):
        tail = xs[len(head) :]
    head.extend(items)
    head.extend(tail)
    xs.clear()
    xs.extend(head)


def places(start: Optional[int], stop: Optional[int], step: int, length: int) -> List[int]:
    if step == 0:
        raise ValueError("slice step cannot be zero")
    low = 0 if step > 0 else -1
    high = length if step > 0 else length - 1
    first = low if step > 0 else high
    last = high if step > 0 else low
    if start is not None:
        first = min(max(start + length if start < 0 else start, low), high)
    if stop is not None:
        last = min(max(stop + length if stop < 0 else stop, low), high)
    return list(range(first, last, step))


def assign_places(xs, start: Optional[int], stop: Optional[int], step: int, items):
    if step == 1:
        assign_slice(xs, start, stop, items)
    else:
        at = places(start, stop, step, len(xs))
        if len(at) != len(items):
            raise ValueError(f"attempt to assign sequence of size {len(items)} to extended slice of size {len(at)}")
        new = items[:]
        for i in range(len(at)):
            xs[at[i]] = new[i]


def delete_places(xs, start: Optional[int], stop: Optional[int], step: int):
    for i in sorted(places(start, stop, step, len(xs)), reverse=True):
        del xs[i]


def merged_dicts(a, b):
    merged = a.copy()
    merged.update(b)
    return merged


def parameter_at(items: List[Tensor], at: int):
    if at < -len(items) or at >= len(items):
        raise IndexError(f"index {at} is out of range")
    return items[at]


def parameter_named(items: Dict[str, Tensor], name: str):
    if name not in items:
        raise AttributeError(f"'ParameterDict' object has no attribute '{name}'")
    return items[name]


def dict_from_keys(keys, value=None):
    return {key: value for key in keys}


def equal_dicts(a, b):
    if len(a) != len(b):
        return False
    for key in a:
        if key not in b:
            return False
        if not (a[key] == b[key]):
            return False
    return True


def less_lists(a, b, if_equal: bool):
    for i in range(min(len(a), len(b))):
        if not (a[i] == b[i]):
            return a[i] < b[i]
    if len(a) == len(b):
        return if_equal
    return len(a) < len(b)


def equal_items(xs, ys) -> bool:
    if len(xs) != len(ys):
        return False
    for i in range(len(xs)):
        if xs[i] != ys[i]:
            return False
    return True


def check_length(length: int, least: int):
    if length < least:
        raise ValueError(f"not enough values to unpack (expected at least {least}, got {length})")


def repeated_text(text: str, times: int):
    out = ""
    for _ in range(times):
        out += text
    return out


def put_all(found, xs):
    for x in xs:
        put(found, x, True)


def keep_all(found, xs):
    for x in list(members(found)):
        if x not in xs:
            drop(found, x)


def drop_all(found, xs):
    for x in xs:
        if x in found:
            drop(found, x)


def swap_all(found, xs):
    for x in xs:
        if x in found:
            drop(found, x)
        else:
            put(found, x, True)


def discard(found, x):
    if x in found:
        drop(found, x)


def has_all(found, xs):
    for x in xs:
        if x not in found:
            return False
    return True


def has_none(found, xs):
    for x in xs:
        if x in found:
            return False
    return True


def has_more(found, xs):
    return len(found) > len(xs) and has_all(found, xs)


def same_set(found, xs):
    return len(found) == len(xs) and has_all(found, xs)


def appendleft_(q, x):
    put_at(q, 0, x)


def popleft_(q):
    if len(q) == 0:
        raise IndexError("pop from an empty deque")
    return removed(q, 0)


def pop_(q):
    if len(q) == 0:
        raise IndexError("pop from an empty deque")
    return removed(q, -1)


def extendleft_(q, xs):
    for x in xs:
        put_at(q, 0, x)


def rotate_(q, n: int = 1):
    if len(q) > 0:
        for _ in range(n % len(q)):
            put_at(q, 0, removed(q, -1))


def shorten_left(q, at_most: int):
    while len(q) > at_most:
        removed(q, 0)


def shorten_right(q, at_most: int):
    while len(q) > at_most:
        removed(q, -1)


def move_to_end_(d, key, last: bool = True):
    if key not in d:
        raise KeyError(key)
    value = d.pop(key)
    if last:
        d[key] = value
    else:
        rest = list(d.items())
        d.clear()
        d[key] = value
        for k, v in rest:
            d[k] = v


def popitem_(d, last: bool = True):
    if len(d) == 0:
        raise KeyError("dictionary is empty")
    keys = list(d.keys())
    key = keys[-1] if last else keys[0]
    return key, d.pop(key)


def count_all(found, xs):
    for x in xs:
        found[x] = found.get(x, 0) + 1


def uncount_all(found, xs):
    for x in xs:
        found[x] = found.get(x, 0) - 1


def count_pairs(found, counts):
    for key, count in counts.items():
        found[key] = found.get(key, 0) + count


def uncount_pairs(found, counts):
    for key, count in counts.items():
        found[key] = found.get(key, 0) - count


def most_common(found, n: Optional[int] = None):
    order = list(found.items())
    counts = [-count for _, count in order]
    ordered = sorted_by(order, counts, False)
    return ordered if n is None else ordered[: max(n, 0)]


def total(found) -> int:
    return sum(list(found.values()))


def elements(found):
    return [key for key, count in found.items() for _ in range(count)]


def counters_added(found, other):
    for key, count in other.items():
        found[key] = found.get(key, 0) + count
    keep_positive(found)


def counters_subtracted(found, other):
    for key, count in other.items():
        found[key] = found.get(key, 0) - count
    keep_positive(found)


def counters_joined(found, other):
    for key, count in other.items():
        if found.get(key, 0) < count:
            found[key] = count
    keep_positive(found)


def counters_shared(found, other):
    for key in list(found.keys()):
        found[key] = min(found[key], other.get(key, 0))
    keep_positive(found)


def keep_positive(found):
    for key in list(found.keys()):
        if found[key] <= 0:
            del found[key]


def equal_counters(a, b) -> bool:
    for key, count in a.items():
        if b.get(key, 0) != count:
            return False
    for key, count in b.items():
        if a.get(key, 0) != count:
            return False
    return True


def member_of_name(name, names, members):
    for i in range(len(names)):
        if names[i] == name:
            return members[i]
    raise KeyError(name)


def member_of_value(value, values, members, enum: str):
    for i in range(len(values)):
        if values[i] == value:
            return members[i]
    raise ValueError(f"{value!r} is not a valid {enum}")
