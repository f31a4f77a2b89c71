"""Functions of ``operator``, and methods of tensors and strings that are not operators."""

from typing import List

from torch import Tensor

from rekindle.frontend.prelude.primitives import int_of_tensor


def operator_add(a, b):
    return a + b


def operator_sub(a, b):
    return a - b


def operator_mul(a, b):
    return a * b


def operator_truediv(a, b):
    return a / b


def operator_floordiv(a, b):
    return a // b


def operator_mod(a, b):
    return a % b


def operator_pow(a, b):
    return a**b


def operator_matmul(a, b):
    return a @ b


def operator_and_(a, b):
    return a & b


def operator_or_(a, b):
    return a | b


def operator_xor(a, b):
    return a ^ b


def operator_lshift(a, b):
    return a << b


def operator_rshift(a, b):
    return a >> b


def operator_lt(a, b):
    return a < b


def operator_le(a, b):
    return a <= b


def operator_eq(a, b):
    return a == b


def operator_ne(a, b):
    return a != b


def operator_gt(a, b):
    return a > b


def operator_ge(a, b):
    return a >= b


def operator_is_(a, b):
    return a is b


def operator_is_not(a, b):
    return a is not b


def operator_iadd(a, b):
    a += b
    return a


def operator_isub(a, b):
    a -= b
    return a


def operator_imul(a, b):
    a *= b
    return a


def operator_itruediv(a, b):
    a /= b
    return a


def operator_ifloordiv(a, b):
    a //= b
    return a


def operator_imod(a, b):
    a %= b
    return a


def operator_ipow(a, b):
    a **= b
    return a


def operator_iand(a, b):
    a &= b
    return a


def operator_ior(a, b):
    a |= b
    return a


def operator_ixor(a, b):
    a ^= b
    return a


def operator_ilshift(a, b):
    a <<= b
    return a


def operator_irshift(a, b):
    a >>= b
    return a


def operator_neg(a):
    return -a


def operator_pos(a):
    return +a


def operator_invert(a):
    return ~a


def operator_not_(a):
    return not a


def operator_truth(a):
    return bool(a)


def operator_abs(a):
    return abs(a)


def operator_index(a):
    if isinstance(a, Tensor):
        return int_of_tensor(a)
    n: int = int(a) if isinstance(a, bool) else a
    return n


def operator_concat(a, b):
    return a + b


def operator_contains(a, b):
    return b in a


def operator_getitem(a, b):
    return a[b]


def operator_setitem(a, b, c):
    a[b] = c


def operator_delitem(a, b):
    del a[b]


def operator_count_of(a, b) -> int:
    count = 0
    for x in a:
        if x == b:
            count += 1
    return count


def operator_index_of(a, b) -> int:
    for i, x in enumerate(a):
        if x == b:
            return i
    raise ValueError("sequence.index(x): x not in sequence")


def tensor_contains(x, item) -> bool:
    return bool((x == item).any())


def tensor_lshift_of(x, other):
    return other << x


def tensor_rshift_of(x, other):
    return other >> x


def removeprefix(text: str, prefix: str) -> str:
    return text[len(prefix) :] if text.startswith(prefix) else text


def removesuffix(text: str, suffix: str) -> str:
    if len(suffix) > 0 and text.endswith(suffix):
        return text[: len(text) - len(suffix)]
    return text


def rsplit_at_white_space(text: str, limit: int = -1) -> List[str]:
    words = text.split()
    if limit < 0 or len(words) <= limit:
        return words
    rest = text.rstrip()
    found: List[str] = []
    for i in range(limit):
        word = words[len(words) - 1 - i]
        rest = rest[: len(rest) - len(word)].rstrip()
        found.insert(0, word)
    if len(rest) > 0:
        found.insert(0, rest)
    return found


def isascii(text: str) -> bool:
    for character in text:
        if ord(character) > 127:
            return False
    return True
