"""Syntax highlighting of the IR's text form."""

from __future__ import annotations

from typing import ClassVar

from pygments.lexer import RegexLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text


class IRLexer(RegexLexer):
    """Lexer of graphs as ``print(f.graph)`` shows them."""

    name = "IR"
    aliases: ClassVar[list[str]] = ["ir"]
    tokens: ClassVar[dict[str, list[tuple[str, object]]]] = {
        "root": [
            (r"#.*", Comment.Single),
            (r'"(?:\\.|[^"\\])*"', String),
            (r"%[\w.]+", Name.Variable),
            (r"\b(graph|return|block\d*|with|scope|for)\b", Keyword),
            (r"[A-Za-z_]\w*::\w+", Name.Function),
            (r"-?\d+\.?\d*(?:e[-+]?\d+)?", Number),
            (r"[A-Za-z_][\w.]*", Name),
            (r"->|=|\*|\?|\|", Operator),
            (r"[()\[\]{}:,.<>;^]", Punctuation),
            (r"\s+", Text.Whitespace),
            (r".", Text),
        ]
    }
