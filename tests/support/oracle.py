"""Graphs in a form in which those of two compilers can be compared.

Both write TorchScript's text form, so the text is what is read here, by a reader of its own: a mistake of the package's
parser or printer must not hide from the comparison. What may differ between two equal programs is taken out:

- constants are at their uses, as type and literal; so do uninitialized values. Where a pass put them means nothing;
- values are numbered in the order in which they are defined, debug names are gone;
- comments are gone, tensor types have no shapes, and type names no mangling.

What stays is what counts: the nodes and their order, kinds, attributes, blocks, inputs and types.

    graph(%x : Tensor, %y : int):                              graph(%0 : Tensor, %1 : int):
      %2 : int = prim::Constant[value=1]()             ->        %2 : Tensor = aten::add(%0, %1, int 1)
      %3 : Tensor = aten::add(%x, %y, %2) # f.py:3:9             return (%2)
      return (%3)
"""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from tests.support import deprecation


@dataclass(slots=True)
class Comparison:
    """What came of comparing two graphs: the normalized texts, and whether they are the same."""

    ours: list[str]
    theirs: list[str]

    @property
    def equal(self) -> bool:
        return self.ours == self.theirs

    @property
    def differences(self) -> str:
        """A unified diff from torch.jit's graph to ours; empty where they are the same."""
        return "\n".join(difflib.unified_diff(self.theirs, self.ours, "torch.jit", "rekindle", lineterm="", n=3))


def compare(program: Any, compiler: Callable[[Any], Any], oracle: Callable[[Any], Any] | None = None) -> Comparison:
    """Compile ``program`` with ``compiler`` and with torch.jit, and compare all the graphs that come of it."""
    ours = compiler(program)
    theirs = (oracle or script_with_torch)(program)
    return Comparison(normalize_program(ours), normalize_program(theirs))


def script_with_torch(program: Any) -> Any:
    """``torch.jit.script``, without its word that it is deprecated."""
    with warnings.catch_warnings():
        deprecation.silence()
        return torch.jit.script(program)


def normalize_program(compiled: Any) -> list[str]:
    """The graph of a compiled function, or those of all methods of a compiled module and of the modules in it.

    Methods that Python calls on its own account (``__len__`` of a container) are not looked at: nothing in the
    program asked for them. Modules of one type have one program, which is stored under the first of them.
    """
    if not isinstance(compiled, torch.nn.Module):
        return normalize(str(compiled.graph))
    lines: list[str] = []
    seen: set[str] = set()
    for path, module in compiled.named_modules():
        for method in _compiled_methods(module):
            graph = str(_method_graph(module, method))
            if method in CONTAINER_METHODS or graph.partition("):\n")[0] + method in seen:
                continue
            seen.add(graph.partition("):\n")[0] + method)
            lines.append(f"{path}.{method}" if path else method)
            lines.extend("  " + line for line in normalize(graph))
    return lines


CONTAINER_METHODS = ("__len__", "__contains__")


def _compiled_methods(module: Any) -> list[str]:
    if isinstance(module, torch.jit.ScriptModule):
        return sorted(module._c._method_names())
    return sorted(module.script_type.methods)


def _method_graph(module: Any, name: str) -> Any:
    if isinstance(module, torch.jit.ScriptModule):
        return module._c._get_method(name).graph
    return module.script_type.methods[name].graph


def normalize(text: str) -> list[str]:
    """The lines of a printed graph, and of the graphs after it that its forks run, in normal form, without the
    attributes by which numbers raise Python's errors: torch.jit writes infinity for ``x[0] = 1e300``, and has one
    operator for ``math.pow`` and ``**``."""
    return _Normalizer().run(_ATTRIBUTES_OF_ERRORS.sub("(", text))


_ATTRIBUTES_OF_ERRORS = re.compile(r"(?<=aten::tensor)\[assigned=1\]\(|(?<=aten::pow)\[math=1\]\(")


# ------------------------------------------------------------------------------------------------------- reading lines

_VALUE = re.compile(r"%[\w.]+")
_SHAPED = re.compile(
    r"\b(?:Byte|Char|Short|Int|Long|Half|Float|Double|BFloat16|ComplexHalf|ComplexFloat|ComplexDouble|Bool|Tensor)\([^()]*\)"
)
_MANGLED = re.compile(r"\.___torch_mangle_\d+")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


@dataclass(slots=True)
class TextNode:
    outputs: list[tuple[str, str]]
    kind: str
    attributes: str
    inputs: list[str]


def scan(text: str, start: int, stop: str) -> int:
    """The position of a character of ``stop`` outside of brackets and strings, from ``start`` on; -1 for nowhere."""
    depth = 0
    at = start
    while at < len(text):
        character = text[at]
        if character == '"':
            match = _STRING.match(text, at)
            assert match is not None, f"a string without an end: {text}"
            at = match.end()
            continue
        if depth == 0 and character in stop:
            return at
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        at += 1
    return -1


def split(text: str) -> list[str]:
    """The parts between commas outside of brackets and strings."""
    parts: list[str] = []
    start = 0
    while True:
        comma = scan(text, start, ",")
        part = text[start:] if comma < 0 else text[start:comma]
        if part.strip():
            parts.append(part.strip())
        if comma < 0:
            return parts
        start = comma + 1


def typed_values(text: str) -> list[tuple[str, str]]:
    """``%a : int, %b : (Tensor, int)`` as [("%a", "int"), ("%b", "(Tensor, int)")]. Without a type, it is a Tensor."""
    values: list[tuple[str, str]] = []
    for part in split(text):
        name, _, type = part.partition(" : ")
        values.append((name.strip(), _clean_type(type.strip() or "Tensor")))
    return values


def _clean_type(type: str) -> str:
    return _MANGLED.sub("", _SHAPED.sub("Tensor", type))


def parse_node(line: str) -> TextNode:
    equals = scan(line, 0, "=")
    outputs = typed_values(line[:equals])
    rest = line[equals + 1 :].strip()
    bracket = min(at for at in (rest.find("["), rest.find("(")) if at >= 0)
    kind = rest[:bracket]
    attributes = ""
    if rest[bracket] == "[":
        end = scan(rest, bracket + 1, "]")
        attributes = rest[bracket + 1 : end]
        bracket = end + 1
    close = scan(rest, bracket + 1, ")")
    return TextNode(outputs, kind, attributes, split(rest[bracket + 1 : close]))


# ------------------------------------------------------------------------------------------------------- writing lines


@dataclass(slots=True)
class _Normalizer:
    names: dict[str, str] = field(default_factory=dict)
    count: int = 0

    def run(self, text: str) -> list[str]:
        return (
            [line for raw in text.splitlines() for line in self.line(raw)]
            if "graph(" not in text
            else list(self.graphs(text))
        )

    def graphs(self, text: str) -> Iterator[str]:
        for line in _joined(text):
            stripped = line.strip()
            if stripped.startswith(("graph(", "with ")):
                self.names, self.count = {}, 0
            yield from self.line(line)

    def line(self, raw: str) -> Iterator[str]:
        stripped = raw.strip()
        indent = raw[: len(raw) - len(raw.lstrip())]
        if not stripped or stripped.startswith("#"):
            return
        if stripped.startswith("graph(") or (stripped.startswith("with ") and " = graph(" in stripped):
            yield indent + self._header(stripped)
        elif stripped.startswith("block"):
            name, _, rest = stripped.partition("(")
            yield f"{indent}{name}({self._define(typed_values(rest[: rest.rindex(')')]))}):"
        elif stripped.startswith(("-> (", "return (")):
            word, _, rest = stripped.partition("(")
            yield f"{indent}{word}({self._use(split(rest[: rest.rindex(')')]))})"
        else:
            node = parse_node(stripped)
            if node.kind in ("prim::Constant", "prim::Uninitialized"):
                self._inline(node)
                return
            inputs = self._use(node.inputs)
            attributes = f"[{_MANGLED.sub('', node.attributes)}]" if node.attributes else ""
            outputs = self._define(node.outputs)
            yield f"{indent}{outputs} = {node.kind}{attributes}({inputs})"

    def _header(self, text: str) -> str:
        start = text.index("graph(") + len("graph(")
        end = scan(text, start, ")")
        return f"{text[:start]}{self._define(typed_values(text[start:end]))}):"

    def _define(self, values: list[tuple[str, str]]) -> str:
        parts: list[str] = []
        for name, type in values:
            self.names[name] = f"%{self.count}"
            self.count += 1
            parts.append(f"{self.names[name]} : {type}")
        return ", ".join(parts)

    def _use(self, inputs: list[str]) -> str:
        return ", ".join(_VALUE.sub(lambda match: self.names[match.group()], name) for name in inputs)

    def _inline(self, node: TextNode) -> None:
        ((name, type),) = node.outputs
        if node.kind == "prim::Uninitialized":
            self.names[name] = f"uninitialized {type}"
        elif not node.attributes:
            self.names[name] = f"{type} None" if type != "NoneType" else "None"
        else:
            self.names[name] = f"{type} {node.attributes.partition('=')[2]}"


def _joined(text: str) -> Iterator[str]:
    """The lines of a graph; a head that goes over several lines, one parameter on each, becomes one line."""
    pending = ""
    for line in text.splitlines():
        if pending:
            pending += " " + line.strip()
        elif line.lstrip().startswith("graph(") or (line.lstrip().startswith("with ") and " = graph(" in line):
            pending = line
        else:
            yield line
            continue
        if pending.rstrip().endswith("):"):
            yield pending
            pending = ""
