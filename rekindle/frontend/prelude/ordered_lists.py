"""``heapq`` and ``bisect``."""

from typing import Optional


def _rise(heap, top: int, at: int):
    item = heap[at]
    place = at
    above = (place - 1) // 2
    while place > top and item < heap[above]:
        heap[place] = heap[above]
        place = above
        above = (place - 1) // 2
    heap[place] = item


def _sink(heap, at: int):
    item = heap[at]
    place = at
    while 2 * place + 1 < len(heap):
        below = 2 * place + 1
        if below + 1 < len(heap) and not (heap[below] < heap[below + 1]):
            below += 1
        heap[place] = heap[below]
        place = below
    heap[place] = item
    _rise(heap, at, place)


def heappush(heap, item):
    heap.append(item)
    _rise(heap, 0, len(heap) - 1)


def heappop(heap):
    if len(heap) == 0:
        raise IndexError("index out of range")
    result = heap.pop()
    if len(heap) > 0:
        last = result
        result = heap[0]
        heap[0] = last
        _sink(heap, 0)
    return result


def heapify(x):
    for i in range(len(x) // 2):
        _sink(x, len(x) // 2 - 1 - i)


def heapreplace(heap, item):
    if len(heap) == 0:
        raise IndexError("index out of range")
    result = heap[0]
    heap[0] = item
    _sink(heap, 0)
    return result


def heappushpop(heap, item):
    result = item
    if len(heap) > 0 and heap[0] < item:
        result = heap[0]
        heap[0] = item
        _sink(heap, 0)
    return result


def nlargest(n: int, iterable):
    return sorted(iterable, reverse=True)[: max(n, 0)]


def nlargest_by(n: int, iterable, key):
    return sorted(iterable, key=key, reverse=True)[: max(n, 0)]


def nsmallest_by(n: int, iterable, key):
    return sorted(iterable, key=key)[: max(n, 0)]


def merge_two(a, b, reverse: bool):
    found = a[:0]
    i = 0
    j = 0
    while i < len(a) and j < len(b):
        if (a[i] < b[j]) if reverse else (b[j] < a[i]):
            found.append(b[j])
            j += 1
        else:
            found.append(a[i])
            i += 1
    found.extend(a[i:])
    found.extend(b[j:])
    return found


def nsmallest(n: int, iterable):
    return sorted(iterable)[: max(n, 0)]


def bisect_right(a, x, lo: int = 0, hi: Optional[int] = None):
    if lo < 0:
        raise ValueError("lo must be non-negative")
    low = lo
    high = len(a) if hi is None else hi
    while low < high:
        mid = (low + high) // 2
        if x < a[mid]:
            high = mid
        else:
            low = mid + 1
    return low


def bisect_left(a, x, lo: int = 0, hi: Optional[int] = None):
    if lo < 0:
        raise ValueError("lo must be non-negative")
    low = lo
    high = len(a) if hi is None else hi
    while low < high:
        mid = (low + high) // 2
        if a[mid] < x:
            low = mid + 1
        else:
            high = mid
    return low


def bisect_right_by(a, x, lo: int, hi: Optional[int], key):
    if lo < 0:
        raise ValueError("lo must be non-negative")
    low = lo
    high = len(a) if hi is None else hi
    while low < high:
        mid = (low + high) // 2
        if x < key(a[mid]):
            high = mid
        else:
            low = mid + 1
    return low


def bisect_left_by(a, x, lo: int, hi: Optional[int], key):
    if lo < 0:
        raise ValueError("lo must be non-negative")
    low = lo
    high = len(a) if hi is None else hi
    while low < high:
        mid = (low + high) // 2
        if key(a[mid]) < x:
            low = mid + 1
        else:
            high = mid
    return low


def insort_right_by(a, x, lo: int, hi: Optional[int], key):
    a.insert(bisect_right_by(a, key(x), lo, hi, key), x)


def insort_left_by(a, x, lo: int, hi: Optional[int], key):
    a.insert(bisect_left_by(a, key(x), lo, hi, key), x)


def insort_right(a, x, lo: int = 0, hi: Optional[int] = None):
    a.insert(bisect_right(a, x, lo, hi), x)


def insort_left(a, x, lo: int = 0, hi: Optional[int] = None):
    a.insert(bisect_left(a, x, lo, hi), x)
