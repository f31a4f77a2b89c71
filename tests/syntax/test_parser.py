"""The trees of every construct, from program text. `tests/golden/syntax` holds them beside the text."""

from __future__ import annotations

import pytest

from rekindle.errors import Source
from rekindle.syntax.parser import parse_expression, parse_function, parse_module
from rekindle.syntax.tree import Tree
from tests.support.golden import GoldenTexts

EXPRESSIONS = [
    *("x", "3", "1e-5", "True", "False", "None", "...", "Ellipsis", "a.b"),
    *("''", "'a' \"b\\n\" r'\\c'", "'quotes \"'", "'(a)'"),
    *("f()", "f(a, *b, c=1)", "f(a for a in b)", "f(c=1, *a)"),
    *("x[0]", "x[(0, 1)]", "x[0,]", "x[()]", "x[1:, ::2, ...]", "x[:]", "x[*a, 1]"),
    *("[]", "[a, *b]", "()", "(a,)", "a,", "a, b", "(a)", "{}", "{a: b, c: d}", "{a, b}"),
    *("[a for a in b if c if d]", "[a for a, b in c for d in a]", "(a for a in b)", "{a: b for a in c}"),
    *("a if b else c", "a if b else c if d else e", "(a if b else c) if d else e"),
    *("-a ** b", "a ** -b ** c", "a - b - c", "a + b * c", "(a + b) * c", "a << b | c & d ^ e", "a @ b % c // d / e"),
    *("not a == b", "not not -~+a", "a or b and not c", "a and b and c"),
    *("a < b", "a < b <= c", "a is not b", "a is b", "a not in b", "a in b", "not a in b"),
    *('f"plain"', 'f"{a} {b!r:>4} {{c}} {d:{e}}"', '"x" f"{a}" "{y}"', 'f"{a = }"', 'f"{a=:>3}"', 'f"{d["k"]}"'),
]

STATEMENTS = [
    *("x", "'text'", "a; b", "a = 1", "a = b = 1", "a, *b = c", "(a, [b, c]) = d", "a.b = c[0] = 1", "a, = b"),
    *("a: int = 1", "a: int", "a.b: List[int] = []", "a: Tuple[int, int] = 1, 2", "a = []  # type: List[int]"),
    *(f"a {operator}= b" for operator in "+ - * / // % ** @ & | ^ << >>".split()),
    *("a[0] += 2", "a.b -= c, d"),
    *("return", "return a", "return a, b", 'raise E("a")', "raise E from None", "assert a", 'assert a, "b"'),
    *("del a, b[0]", "del (a, b)", "pass", "break", "continue"),
    *("if a: b", "if a: b\nelse: c", "if a: b\nelif c: d\nelse: e", "if a:\n  b\n  c\nelse:\n  d"),
    *("while a: b", "while a:\n  b\n  break"),
    *("for a in b: c", "for a, (b, c) in d, e: pass", "for a[0] in b: pass"),
    *(
        "try: a\nexcept: b",
        "try: a\nexcept E as e: raise\nexcept (F, G):\n  b\nelse: c\nfinally: d",
        "try: a\nfinally: b",
    ),
    *("with a: b", "with a as b, c: d", "with (a as b, c): d", "with (a, b) as c: d", "with (a): b"),
]

DEFINITIONS = [
    "def f(): pass",
    "def f(a, b: int, c=1, *, d: str = 'x') -> Tensor: return a",
    "def f(a, /, b): pass",
    "@g(1)\n@h\ndef f(): pass",
    'def f():\n    """Text\n    over lines."""\n    return 1',
    "def f(a, b):\n    # type: (int, Tensor) -> None\n    pass",
    "def f(a,  # type: int\n      b=2,  # type: float\n      ):\n    # type: (...) -> Tensor\n    pass",
    "    def f(self, x):\n        return x",
]

ARCHIVE = """\
op_version_set = 1
import __torch__.torch.nn.modules.conv
class Net(Module):
  __parameters__ = ["weight", ]
  __buffers__ = []
  __annotations__ = []
  __annotations__["0"] = __torch__.torch.nn.modules.conv.Conv2d
  weight : Tensor
  training : bool
  _is_full_backward_hook : Optional[bool]
  conv : __torch__.torch.nn.modules.conv.___torch_mangle_0.Conv2d
  def forward(self: __torch__.Net,
    x: Tensor,
    n: Optional[int]=None) -> Tuple[Tensor, int]:
    _0 = getattr(self, "0")
    if torch.__is__(n, None):
      k = 1
    else:
      k = unchecked_cast(int, n)
    x0 = x
    for i in range(k):
      _1 = torch.add(torch.mul(x0, self.weight), x0, alpha=-1)
      x0 = annotate(Tensor, _1)
    _2 = ops.prim.NumToTensor(k)
    a, b, = (_0).forward(x0, ), k
    _3 = uninitialized(int)
    if torch.gt(float("inf"), 5.):
      ops.prim.RaiseException("bad \\\\n", "builtins.ValueError")
    else:
      pass
    return (a, b)
class Pair(NamedTuple):
  first : Tensor
  second : int
def function(x: Tensor) -> List[Tensor]:
  _0 = annotate(List[Tensor], [])
  y = CONSTANTS.c0
  return [x, torch.slice(y, 0, 0, 9223372036854775807, 1)]
"""


def told(text: str, trees: list[Tree]) -> str:
    lines = [f"| {line}" for line in text.split("\n")]
    return "\n".join([*lines, *map(str, trees), ""])


def test_expressions(golden: GoldenTexts) -> None:
    golden("syntax/expressions", "\n".join(told(text, [parse_expression(text).tree]) for text in EXPRESSIONS))


def test_statements(golden: GoldenTexts) -> None:
    golden("syntax/statements", "\n".join(told(text, [s.tree for s in parse_module(text)]) for text in STATEMENTS))


def test_definitions(golden: GoldenTexts) -> None:
    golden("syntax/definitions", "\n".join(told(text, [parse_function(text).tree]) for text in DEFINITIONS))


def test_a_program_as_archives_hold_it(golden: GoldenTexts) -> None:
    golden("syntax/archive", told(ARCHIVE, [s.tree for s in parse_module(ARCHIVE)]))


@pytest.mark.parametrize(
    ("text", "places"),
    [
        # A compound expression starts where its first operand does, without the parentheses around that.
        ("(a + b) * c", {"*": "a + b) * c", "+": "a + b"}),
        ("((a)).b(c)", {"apply": "a)).b(c)", ".": "a)).b", "variable": "a"}),
        ("(a)[0]", {"subscript": "a)[0]"}),
        ("(a) if (b) else (c)", {"if_expr": "a) if (b) else (c)"}),
        ("a < (b) < c", {"and": "a < (b) < c"}),
        ("-(a)", {"unary_minus": "-(a)"}),
        ("(a), b", {"tuple_literal": "(a), b"}),
        ("((a), b)", {"tuple_literal": "((a), b)"}),
        ("f(a for a in b)", {"generator": "(a for a in b)", "comprehension": "a in b"}),
        ("f(a, b = 1)", {"attribute": "b = 1"}),
        ("x[1 : 2, 3]", {"slice": "1 : 2"}),
        ("'a'  'b'", {"string_literal": "'a'  'b'"}),
    ],
)
def test_ranges(text: str, places: dict[str, str]) -> None:
    found: dict[str, str] = {}
    for tree in parse_expression(text).tree.walk():
        found.setdefault(tree.kind, tree.range.text)
    assert {kind: found[kind] for kind in places} == places


def test_ranges_of_statements() -> None:
    text = "if a:\n  b = 1\nelif c:\n  (d).e()\nfor x in y:\n  pass  # text\n\nz"
    found = [(tree.kind, tree.range.text) for s in parse_module(text) for tree in s.tree.walk()]
    assert ("if", text[: text.index("\nfor")]) in found
    assert ("if", "elif c:\n  (d).e()") in found
    assert ("assign", "b = 1") in found
    assert ("expression_statement", "d).e()") in found
    assert ("for", "for x in y:\n  pass") in found


def test_a_text_or_a_source() -> None:
    assert parse_expression("x").range.place == ""
    assert parse_expression(Source("\n x", "f.py", first_line=3)).range.place == "f.py:4:1"
    assert parse_function(Source("def f(): pass", "f.py", dedent=4)).range.place == "f.py:1:4"
    assert parse_module("") == []
    assert parse_module("# nothing\n\n") == []


def test_an_expression_may_go_over_lines() -> None:
    assert parse_expression("a\n +\n\n b").tree.same_as(parse_expression("a + b").tree)
