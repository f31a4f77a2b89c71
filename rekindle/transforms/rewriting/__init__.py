"""Rewrite rules written as Python functions, and the built-in ones."""

from rekindle.transforms.rewriting import builtin_rules as builtin_rules
from rekindle.transforms.rewriting.rewrite_rules import (
    RewriteRule as RewriteRule,
    apply_rules as apply_rules,
    rewrite as rewrite,
)
