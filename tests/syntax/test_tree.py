"""The printed form of trees, and the typed views of them."""

from __future__ import annotations

import pytest

from rekindle.errors import UNKNOWN_RANGE
from rekindle.syntax.parser import parse_expression, parse_function
from rekindle.syntax.tree import Tree
from rekindle.syntax.views import (
    Apply,
    Assign,
    BinOp,
    Const,
    Def,
    Expr,
    For,
    Ident,
    ListLiteral,
    Param,
    Pass,
    Return,
    Select,
    SliceExpr,
    Stmt,
    Subscript,
    Var,
    bare,
    list_tree,
    option_tree,
)


def test_the_overviews_tree() -> None:
    """``z.sigmoid() - (x + y)``, as the technical overview prints it.

    The overview has one brace too many at the end, and its operands in the wrong order: a tree holds what is to the
    left first.
    """
    assert (
        str(parse_expression("z.sigmoid() - (x + y)"))
        == """\
(-
  (apply (. (variable (ident z)) (ident sigmoid)) (list) (list))
  (+ (variable (ident x)) (variable (ident y))))"""
    )
    # The overview's own order is that of this expression.
    assert (
        str(parse_expression("(x + y) - z.sigmoid()"))
        == """\
(-
  (+ (variable (ident x)) (variable (ident y)))
  (apply (. (variable (ident z)) (ident sigmoid)) (list) (list)))"""
    )


def test_a_long_tree_takes_a_line_for_each_child() -> None:
    assert (
        str(parse_function("def f(x: int, *, y=1):\n    for i in range(x):\n        y += i\n    return y\n"))
        == """\
(def
  (ident f)
  (list
    (param (ident x) (option (variable (ident int))) (option) "")
    (param (ident y) (option) (option (const 1)) *))
  (option)
  (list
    (for
      (variable (ident i))
      (apply (variable (ident range)) (list (variable (ident x))) (list))
      (list (aug_assign (variable (ident y)) + (variable (ident i)))))
    (return (variable (ident y)))))"""
    )


def test_strings_that_are_no_words_stand_in_quotes() -> None:
    assert (
        str(parse_expression("f('a b', '', '(', 'é', 'line\\n', 'a.b')"))
        == """\
(apply
  (variable (ident f))
  (list
    (string_literal "a b")
    (string_literal "")
    (string_literal "(")
    (string_literal é)
    (string_literal "line\\n")
    (string_literal a.b))
  (list))"""
    )


def test_a_deep_tree_can_be_printed_walked_and_compared() -> None:
    def chain() -> Tree:
        tree = Tree("leaf", UNKNOWN_RANGE, ("x",))
        for _ in range(20_000):
            tree = Tree("node", UNKNOWN_RANGE, (tree,))
        return tree

    a, b = chain(), chain()
    assert a.same_as(b)
    assert sum(1 for _ in a.walk()) == 20_001
    assert str(a).count("(node") == 20_000


def test_walk_goes_parents_first_and_left_to_right() -> None:
    tree = parse_expression("f(a + b, c)").tree
    assert [t.string(0) for t in tree.walk() if t.kind == "ident"] == ["f", "a", "b", "c"]
    assert [t.kind for t in tree.walk()][:4] == ["apply", "variable", "ident", "list"]


@pytest.mark.parametrize(
    ("a", "b"),
    [("a", "b"), ("a + b", "a - b"), ("f(a)", "f(a, b)"), ("a", "'a'"), ("1", "1.0"), ("x[0:]", "x[:0]")],
)
def test_different_trees_are_not_the_same(a: str, b: str) -> None:
    assert not parse_expression(a).tree.same_as(parse_expression(b).tree)
    assert parse_expression(a).tree.same_as(parse_expression(f"({a}) # elsewhere").tree)


def test_subtrees_and_strings_are_told_apart() -> None:
    tree = parse_expression("x").tree
    assert tree.subtree(0).string(0) == "x"
    with pytest.raises(AssertionError, match="a string"):
        tree.subtree(0).subtree(0)
    with pytest.raises(AssertionError, match="a tree"):
        tree.string(0)


def test_views_take_trees_apart() -> None:
    call = Apply(parse_expression("a.b(c, *d, e=1)").tree)
    callee = Select(call.callee.tree)
    assert Var(callee.value.tree).name.name == "a"
    assert callee.selector.name == "b"
    assert [argument.tree.kind for argument in call.inputs] == ["variable", "starred"]
    assert [(a.name.name, Const(a.value.tree).value) for a in call.attributes] == [("e", 1)]

    subscript = Subscript(parse_expression("x[1:, y]").tree)
    first = SliceExpr(subscript.indices[0].tree)
    assert first.start is not None
    assert first.stop is None
    assert first.step is None

    binary = BinOp(parse_expression("1 not in x").tree)
    assert (binary.operator, str(binary.lhs), str(binary.rhs)) == ("not_in", "(const 1)", "(variable (ident x))")

    definition = parse_function(
        "def f(a, *, b: int = 2) -> int:\n    c: int = a = 1\n    return c\n".replace("a = 1", "1")
    )
    assert definition.name.name == "f"
    assert [(p.name.name, p.kwarg_only) for p in definition.params] == [("a", False), ("b", True)]
    assert str(definition.params[1].annotation) == "(variable (ident int))"
    assert str(definition.params[1].default) == "(const 2)"
    assert str(definition.return_type) == "(variable (ident int))"
    assign = Assign(definition.body[0].tree)
    assert str(assign.value) == "(const 1)"
    assert str(assign.annotation) == "(variable (ident int))"
    assert definition.with_name("g").name.name == "g"
    assert definition.with_name("g").body[0].tree is assign.tree


def test_views_build_trees() -> None:
    r = UNKNOWN_RANGE
    i = Var.create(r, Ident.create(r, "i"))
    body: list[Stmt] = [For.create(r, i, ListLiteral.create(r, [i]), [bare(Pass, r)]), Return.create(r, i)]
    built = Def.create(r, Ident.create(r, "f"), [Param.create(r, Ident.create(r, "i"), None, None)], None, body)
    assert built.tree.same_as(parse_function("def f(i):\n    for i in [i]: pass\n    return i\n").tree)
    assert str(list_tree(r, [i, i])) == "(list (variable (ident i)) (variable (ident i)))"
    assert str(option_tree(r, None)) == "(option)"


def test_a_view_refuses_a_tree_of_another_kind() -> None:
    with pytest.raises(AssertionError, match="a apply view of a variable tree"):
        Apply(parse_expression("x").tree)
    assert str(Expr(parse_expression("x").tree)) == "(variable (ident x))"


@pytest.mark.parametrize(
    "text",
    ["0", "1_000", "0x_ff", "0b11", "0O17", "1.", ".5", "1e-5", "1E5", "2j", "1.5e3J", "1_0.0_1"],
)
def test_numbers_keep_their_text_and_tell_their_value(text: str) -> None:
    const = Const(parse_expression(text).tree)
    assert const.text == text
    expected = (
        complex(text)
        if text[-1] in "jJ"
        else float(text)
        if set(text) & set(".eE") and "x" not in text
        else int(text, 0)
    )
    assert const.value == expected
    assert type(const.value) is type(expected)
