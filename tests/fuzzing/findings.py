"""Findings: programs that fail, as files that can be read, run and replayed."""

from __future__ import annotations

import ast
import builtins
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.fuzzing.judge import Verdict
from tests.fuzzing.program import Program

FOLDER: Final = Path(__file__).parent / "findings"


@dataclass(slots=True)
class Finding:
    """A program that fails: where it comes from, its text after shrinking, what comes of it."""

    seed: int
    number: int
    source: str
    verdict: Verdict

    @property
    def signature(self) -> str:
        """Equal for programs of one shape that fail in one way: names and values do not count."""
        shape = ast.dump(_Anonymous().visit(ast.parse(_without_calls(self.source))))
        text = "/".join([*self.verdict.signature, shape])
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def file_name(self) -> str:
        stem = re.sub(r"\W+", "_", f"{self.verdict.failure} {self.verdict.kind}").strip("_").lower()[:60]
        return f"{stem}_{self.signature[:6]}.py"

    def text(self) -> str:
        """The file: a docstring that says what is wrong, and the program."""
        verdict = self.verdict
        detail = verdict.detail.replace("\\", "\\\\").replace('"""', "'''")
        head = (
            f'"""{verdict.failure}: {verdict.kind}\n\nProgram {self.number} of seed {self.seed}; '
            f"{verdict.way}, call {verdict.call}.\n\n{detail.strip()}\n" + '"""\n'
        )
        return head.replace("\x00", "?") + tidied(self.source)


def replay(path: Path) -> Program:
    """The program in a file of a finding."""
    return Program(path.read_text(encoding="utf-8"), re.sub(r"\W", "_", path.stem))


def tidied(source: str) -> str:
    """Without the imports that nothing uses."""
    tree = ast.parse(source)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    kept: list[ast.stmt] = []
    for statement in tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            statement.names = [each for each in statement.names if (each.asname or each.name.split(".")[0]) in names]
            if not statement.names:
                continue
        if isinstance(statement, ast.Assign) and ast.unparse(statement) == "NO_GRAD = ()":
            continue
        kept.append(statement)
    return "\n".join(ast.unparse(each) for each in kept) + "\n"


def subject_text(source: str) -> str:
    """The program without imports and calls."""
    return tidied(source).partition("SUBJECT =")[0].strip()


def _without_calls(source: str) -> str:
    return source.partition("SUBJECT =")[0]


class _Anonymous(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.AST:
        known = hasattr(builtins, node.id) or node.id in ("math", "torch", "F", "nn")
        return node if known else ast.Name("v", ast.Load())

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg("v", None)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant(type(node.value).__name__)
