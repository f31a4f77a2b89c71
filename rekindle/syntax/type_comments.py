"""Type comments: ``# type: (int, Tensor) -> Tensor`` below the head of a function, in which the result is optional, and
``# type: int`` after a parameter or an assignment.

Both parsers find such comments by their position, and call this module.
"""

from __future__ import annotations

from collections.abc import Sequence

from rekindle.errors import ParseError, SourceRange
from rekindle.syntax.expression_parser import ExpressionParser
from rekindle.syntax.lexer import EOF, Lexer, Token
from rekindle.syntax.views import Dots, Expr, Param, Select, Subscript, Var


def assignment_type(lexer: Lexer, targets: Sequence[Expr], end: int) -> Expr | None:
    """Return the type in the comment after an assignment to ``targets``, which ends at ``end``. Return None if there is
    no comment, if it is not a type, or if the target is not a single name, attribute or item."""
    if not lexer.type_comments or len(targets) != 1 or targets[0].tree.kind not in _TYPED_TARGETS:
        return None
    end_of_line = lexer.source.text.find("\n", end)
    comment = lexer.type_comment_between(end, end_of_line if end_of_line >= 0 else len(lexer.source.text))
    if comment is None:
        return None
    try:
        return _parse_type(comment)
    except ParseError:
        return None


_TYPED_TARGETS = (Var.KIND, Select.KIND, Subscript.KIND)


def apply_type_comments(
    lexer: Lexer, head: SourceRange, first_statement: int, params: list[Param], return_type: Expr | None
) -> tuple[list[Param], Expr | None]:
    """Return the parameters and the return type of a function, completed from its type comments, which override
    annotations.

    ``head`` is the range from ``def`` to the colon. Comments belong to the function up to the offset
    ``first_statement``.

    Raises:
        ParseError: a comment is not a type, there are two comments for the whole signature, or the number of types is
            not that of the parameters.
    """
    params = list(params)
    signature: Token | None = None
    for comment in lexer.type_comments:
        if not head.start <= comment.start < first_statement:
            continue
        if comment.text.startswith("(") and ("->" in comment.text or comment.start >= head.end):
            if signature is not None:
                raise ParseError("This function has a second type comment for its whole signature.", comment.range)
            signature = comment
        elif comment.start < head.end:
            index = _owner(params, comment)
            if index is not None:
                params[index] = params[index].with_annotation(_parse_type(comment))
    if signature is not None:
        types, result = _parse_signature(signature)
        return_type = return_type if result is None else result
        if types is not None:
            params = _distribute(params, types, signature)
    return params, return_type


def _parse_type(comment: Token) -> Expr:
    """Return the type in a comment.

    Raises:
        ParseError: the comment is not an expression.
    """
    lexer = Lexer(comment.source, start=comment.start, end=comment.end, layout=False)
    return ExpressionParser(lexer).whole()


def _owner(params: list[Param], comment: Token) -> int | None:
    """Return the index of the last parameter that begins before ``comment``; None if there is none."""
    before = [index for index, param in enumerate(params) if param.range.start < comment.start]
    return before[-1] if before else None


def _parse_signature(comment: Token) -> tuple[list[Expr | None] | None, Expr | None]:
    """Return the parameter types and the result type in a signature comment. The parameter types are None for
    ``(...)``, which means that each parameter has its own comment; the result type is None without an arrow. The types
    of ``*args`` and ``**kwargs`` are None, since calls determine them.

    Raises:
        ParseError: the comment is not a signature.
    """
    lexer = Lexer(comment.source, start=comment.start, end=comment.end, layout=False)
    parser = ExpressionParser(lexer)
    lexer.expect("(")
    types: list[Expr | None] = []
    while lexer.cur.kind != ")":
        is_variadic = lexer.next_if("*") is not None or lexer.next_if("**") is not None
        type = parser.expression()
        types.append(None if is_variadic else type)
        if not lexer.next_if(","):
            break
    lexer.expect(")")
    result = None
    if lexer.cur.kind != EOF:
        lexer.expect("->")
        result = parser.whole()
    if len(types) == 1 and types[0] is not None and types[0].tree.kind == Dots.KIND:
        return None, result
    return types, result


def _distribute(params: list[Param], types: list[Expr | None], comment: Token) -> list[Param]:
    """Return the parameters with one type each; a method's comment may omit the first, ``self``. A type None leaves the
    parameter as it is.

    Raises:
        ParseError: the number of types is not that of the parameters.
    """
    if len(types) > len(params):  # a signature without those that take any number of arguments
        types = [type for type in types if type is not None]
    first = len(params) - len(types)
    if first == 0 or (first == 1 and params[0].name.name in ("self", "cls")):
        return params[:first] + [
            param if type is None else param.with_annotation(type)
            for param, type in zip(params[first:], types, strict=True)
        ]
    raise ParseError(
        f"The number of types in this comment, {len(types)}, is not that of the parameters, {len(params)}.",
        comment.range,
        hint="Write one type for each parameter, or (...) where they have comments of their own.",
    )
