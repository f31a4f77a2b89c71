"""The types that the generator thinks in, their annotations, and literal values of them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final


@dataclass(slots=True, frozen=True)
class Kind:
    """``name`` and the kinds within it. ``num`` is an int or a float, which is known at run time alone. Of a Tensor,
    ``dtype`` and ``shape`` (of ``n``, ``m`` and ``1``) say what the generator believes."""

    name: str
    of: tuple[Kind, ...] = ()
    dtype: str = ""
    shape: tuple[str, ...] = ()

    @property
    def annotation(self) -> str:
        """As Python has it."""
        match self.name:
            case "tensor":
                return "Tensor"
            case "num":
                return "Union[int, float]"
            case "list" | "dict" | "tuple" | "set" | "opt":
                outer = {"list": "List", "dict": "Dict", "tuple": "Tuple", "set": "Set", "opt": "Optional"}[self.name]
                return f"{outer}[{', '.join(each.annotation for each in self.of)}]"
            case _:
                return self.name

    @property
    def is_number(self) -> bool:
        return self.name in ("int", "float", "num", "bool")


INT: Final = Kind("int")
FLOAT: Final = Kind("float")
NUM: Final = Kind("num")
BOOL: Final = Kind("bool")
STR: Final = Kind("str")
COMPLEX: Final = Kind("complex")


def list_of(kind: Kind) -> Kind:
    return Kind("list", (kind,))


def dict_of(key: Kind, value: Kind) -> Kind:
    return Kind("dict", (key, value))


def tuple_of(*kinds: Kind) -> Kind:
    return Kind("tuple", kinds)


def set_of(kind: Kind) -> Kind:
    return Kind("set", (kind,))


def optional(kind: Kind) -> Kind:
    return Kind("opt", (kind,))


def tensor(dtype: str = "float32", shape: tuple[str, ...] = ("n", "m")) -> Kind:
    return Kind("tensor", dtype=dtype, shape=shape)


INTS: Final = ("0", "1", "2", "3", "4", "5", "7", "-1", "-2", "-3", "10", "12", "-7", "100")
ODD_INTS: Final = (
    "(2**31)",
    "(-2**31)",
    "(2**53 + 1)",
    "(2**62)",
    "(2**63 - 1)",
    "(-2**63)",
    "(2**63)",
    "(10**20)",
    "255",
    "-128",
)
FLOATS: Final = ("0.0", "0.5", "1.0", "-0.5", "1.5", "2.0", "-1.25", "3.75", "0.1", "-2.5", "10.0", "0.25", "4.5")
ODD_FLOATS: Final = (
    "-0.0",
    "1e10",
    "1e-10",
    "1e300",
    "-1e300",
    "math.inf",
    "-math.inf",
    "math.nan",
    "1e18",
    "16777217.0",
)
STRS: Final = ('"a"', '"b"', '"ab"', '""', '"abc"', '"x y"', '"12"', '"-3"', '"A b"', '"key"')
KEYS: Final = ('"a"', '"b"', '"c"', '"k"', '"s"')


def literal(random: random.Random, kind: Kind, odd: float = 0.06) -> str:
    """A value of a kind, as Python writes it, for numbers, texts and containers of them."""
    match kind.name:
        case "int":
            return random.choice(ODD_INTS if random.random() < odd else INTS)
        case "float":
            return random.choice(ODD_FLOATS if random.random() < odd else FLOATS)
        case "num":
            return literal(random, random.choice((INT, FLOAT)), odd)
        case "bool":
            return random.choice(("True", "False"))
        case "str":
            return random.choice(STRS)
        case "complex":
            return f"complex({literal(random, FLOAT, 0)}, {literal(random, FLOAT, 0)})"
        case "opt":
            return "None" if random.random() < 0.4 else literal(random, kind.of[0], odd)
        case "list":
            count = random.choice((0, 1, 2, 3, 3, 4, 5))
            return f"[{', '.join(literal(random, kind.of[0], odd) for _ in range(count))}]"
        case "tuple":
            return f"({', '.join(literal(random, each, odd) for each in kind.of)},)"
        case "set":
            items = [literal(random, kind.of[0], odd) for _ in range(random.choice((1, 2, 3)))]
            return f"{{{', '.join(dict.fromkeys(items))}}}"
        case "dict":
            keys = random.sample(KEYS, 3) if kind.of[0].name == "str" else random.sample(INTS[:6], 3)
            pairs = [f"{key}: {literal(random, kind.of[1], odd)}" for key in keys[: random.choice((0, 1, 2, 3, 3))]]
            return f"{{{', '.join(pairs)}}}"
    raise ValueError(f"no literal of {kind}")


def tensor_literal(random: random.Random, dtype: str, sizes: tuple[int, ...], odd: float = 0.02) -> str:
    """``torch.tensor(…)`` of some sizes."""

    def element() -> str:
        if dtype == "bool":
            return random.choice(("True", "False"))
        if "int" in dtype:
            big = dtype in ("int64",) and random.random() < odd
            return random.choice(
                ("(2**40)", "(2**53 + 1)", "(-2**62)") if big else ("0", "1", "2", "3", "-1", "5", "-4", "7")
            )
        if dtype.startswith("complex"):
            return f"complex({random.choice(FLOATS)}, {random.choice(FLOATS)})"
        if random.random() < odd:
            return random.choice(("math.inf", "math.nan", "-0.0", "1e10", "-math.inf"))
        return random.choice(FLOATS)

    def nested(sizes: tuple[int, ...]) -> str:
        if not sizes:
            return element()
        return f"[{', '.join(nested(sizes[1:]) for _ in range(sizes[0]))}]"

    if 0 in sizes:
        return f"torch.zeros({sizes}, dtype=torch.{dtype})"
    return f"torch.tensor({nested(sizes)}, dtype=torch.{dtype})"
