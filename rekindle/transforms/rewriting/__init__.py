"""Rules that put one piece of program in the place of another; those that come with the package."""

from rekindle.transforms.rewriting import builtin_rules as builtin_rules
from rekindle.transforms.rewriting.rule import (
    RewriteRule as RewriteRule,
    apply_rules as apply_rules,
    rewrite as rewrite,
)
