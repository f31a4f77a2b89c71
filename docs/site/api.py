"""The pages of the API reference: every public name, by subject."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from textwrap import indent
from typing import Any, Final

import rekindle


@dataclass(frozen=True, slots=True)
class Subject:
    """A page of the reference. ``names`` are relative to ``module``; without any, those that the module exports."""

    page: str
    title: str
    introduction: str
    names: tuple[str, ...] = ()
    module: str = "rekindle"

    @property
    def paths(self) -> list[str]:
        """The full names on this page."""
        return [f"{self.module}.{name}" for name in self.names or exported(self.module)]


SUBJECTS: Final = (
    Subject(
        "compiling",
        "Compiling and tracing",
        "Compile Python functions, modules and source text. See the [tutorial](/docs/tutorial.md) and "
        "[tracing](/docs/tracing.md).",
        (
            *("script", "trace", "trace_module", "script_if_tracing", "CompilationUnit", "Function", "Method"),
            *("ScriptModule", "script_method", "TracerWarning", "TracingCheckError"),
        ),
    ),
    Subject(
        "annotations",
        "Annotations in programs",
        "Decorators and types that programs use. The compiler and Python both understand them.",
        (
            *("annotate", "Attribute", "Final", "export", "ignore", "unused", "interface"),
            *("is_scripting", "is_tracing", "isinstance"),
        ),
    ),
    Subject(
        "asynchrony",
        "Asynchronous calls",
        "Run calls on other threads, or later.",
        ("fork", "wait", "Future", "awaitable", "awaitable_wait", "awaitable_nowait", "Await"),
    ),
    Subject(
        "archives",
        "Archives",
        "Read and write `.pt` files. See [archives](/docs/archives.md) and [safety](/docs/safety.md).",
        ("load", "save", "inspect", "ArchiveLimits", "add_torchbind_schemas"),
    ),
    Subject(
        "drop_in",
        "Drop-in for torch.jit",
        "Let `torch.jit`'s names mean rekindle. See [the drop-in](/docs/drop_in.md).",
        ("install", "installed", "is_installed", "uninstall"),
    ),
    Subject(
        "execution",
        "Execution and freezing",
        "Choose how programs are optimized and run. See [execution](/docs/execution.md) and "
        "[freezing](/docs/freezing.md).",
        (
            *("set_execution_strategy", "set_background_compilation", "set_fusion_strategy", "set_profiled_runs"),
            "set_cuda_graphs",
            *("optimized_execution", "freeze", "optimize_for_inference", "run_frozen_optimizations", "backend"),
        ),
    ),
    Subject(
        "inspection",
        "Inspection",
        "See what the compiler does with a program. See [inspecting the compiler](/docs/seeing.md).",
        (
            *(
                "report",
                "Report",
                "collect_env",
                "measure",
                "require_fused",
                "stages",
                "show",
                "bisect",
                "last_executed_graph",
            ),
            *("to_svg", "to_dot", "to_mermaid"),
        ),
    ),
    Subject(
        "derivatives",
        "Derivatives and batching",
        "Programs that compute derivatives of programs, or run them on batches. See "
        "[gradients](/docs/gradients.md) and [batching](/docs/batching.md).",
        ("compile_step", "TrainingStep", "grad", "value_and_grad", "vjp", "jvp", "jacrev", "hessian", "vmap"),
    ),
    Subject(
        "graphs",
        "Graphs, rules and passes",
        "Edit graphs, rewrite them by rules, add passes to the pipeline. See [editing](/docs/editing.md) and "
        "[rewriting](/docs/rewriting.md).",
        (
            *("Graph", "create_function", "create_method", "create_module", "rewrite", "apply_rules"),
            *("add_pass", "register_pass", "known_passes"),
        ),
    ),
    Subject(
        "exporting",
        "Export IR",
        "Convert programs to and from `torch.export`. See [exporting](/docs/export.md) and "
        "[importing](/docs/import.md).",
        ("to_exported", "to_exported_methods", "from_exported"),
    ),
    Subject(
        "building",
        "Native libraries",
        "Compile programs to shared libraries that run without Python. See [native libraries](/docs/libraries.md).",
        ("build", "Build", "NativeLibrary", "LibraryError", "NotBuildable"),
    ),
    Subject(
        "errors",
        "rekindle.errors",
        "Exceptions, warnings, and what they hold. See [errors](/docs/errors.md).",
        (
            *("RekindleError", "CompileError", "ProgramErrors", "Cause", "Edit", "SourceRange", "Source"),
            *("UndefinedNameError", "TypeMismatchError", "UnsupportedError", "ParseError", "SchemaError"),
            *("NotScriptableError", "TracingError", "BatchingError", "DifferentiationError", "RuleError"),
            *("CaptureError", "UnknownLibraryClassError", "ArgumentError", "GraphError", "VerificationError"),
            *("InternalError", "ArchiveError", "CorruptArchiveError", "ArchiveLimitError", "UnsafeArchiveError"),
            *("UnsupportedArchiveError", "MissingLibraryError", "SaveError", "ExportError", "ExportProblem"),
            *("ArchiveWarning", "DraftWarning", "NotFusedError", "FusionBlocker"),
        ),
        module="rekindle.errors",
    ),
    Subject(
        "editing",
        "rekindle.transforms.editing",
        "Regions of graphs: move, extract, outline, split and replace them.",
        module="rekindle.transforms.editing",
    ),
    Subject(
        "vmap",
        "rekindle.transforms.vmap",
        "Batching as a graph transformation.",
        module="rekindle.transforms.vmap",
    ),
    Subject(
        "ir",
        "rekindle.ir",
        "The text form of graphs, and the verifier. See [the IR](/docs/ir.md).",
        ("text.parser.parse_graph", "text.printer.print_graph", "text.printer.tensor_constants", "verifier.verify"),
        module="rekindle.ir",
    ),
    Subject(
        "operators",
        "rekindle.ops",
        "Declarations of operators. See [adding an operator](/docs/adding_an_operator.md).",
        ("registration.declare.declare", "registration.declare.implements"),
        module="rekindle.ops",
    ),
    Subject("passes", "rekindle.passes", "Passes, each from graph to graph.", module="rekindle.passes"),
    Subject(
        "node_rules",
        "rekindle.rewriting",
        "Rewrites of single nodes. See [adding a pass](/docs/adding_a_pass.md).",
        ("node_rules.apply_node_rules", "node_rules.RewriteSite", "changes.may_change"),
        module="rekindle.rewriting",
    ),
    Subject("autodiff", "rekindle.autodiff", "Differentiation of graphs.", module="rekindle.autodiff"),
    Subject("viz", "rekindle.viz", "Pictures of graphs.", ("Page",), module="rekindle.viz"),
)
UNDOCUMENTED: Final = {"__version__", "errors", "isinstance_", "RekindleError"}
"""Names of the package that are documented elsewhere: ``rekindle.errors`` has a page of its own."""


def exported(module: str) -> list[str]:
    """Return the functions and classes that a package exports."""
    loaded = import_module(module)
    return [
        name
        for name, value in vars(loaded).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__.startswith(module)
    ]


def docstring_of(value: Any) -> str:
    """Return the docstring of a class or function from its source: objects may have a docstring of their own."""
    module = import_module(value.__module__)
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    kinds = (ast.ClassDef, ast.FunctionDef)
    found = [node for node in tree.body if isinstance(node, kinds) and node.name == value.__name__]
    return (ast.get_docstring(found[-1]) if found else "") or ""


def public_names() -> list[str]:
    """Return the names of ``rekindle`` itself that the reference has to document."""
    return [name for name in dir(rekindle) if name not in UNDOCUMENTED]


def _directive(path: str) -> str:
    module, _, name = path.rpartition(".")
    value = getattr(import_module(module), name)
    if inspect.isclass(value):
        text = value.__doc__
        if isinstance(text, str) and "The docstring of the module" in " ".join(text.split()):
            return f".. automodule:: {value.__module__}\n   :members: {name}"
        if not isinstance(text, str):  # a property of the objects
            return f".. autoclass:: {path}\n   :members:\n\n{indent(docstring_of(value), '   ')}"
        options = ["   :members:", "   :show-inheritance:"] if issubclass(value, Exception) else ["   :members:"]
        return "\n".join([f".. autoclass:: {path}", *options])
    return f".. autofunction:: {path}" if callable(value) and path != "rekindle.Final" else f".. autodata:: {path}"


def pages() -> Iterator[tuple[str, str]]:
    """Yield the file name and the MyST source of each page."""
    index = ["# API reference", "", "Every public name, by subject. The names of `rekindle` itself:", ""]
    for subject in SUBJECTS:
        directives = "\n\n".join(map(_directive, subject.paths))
        yield (
            f"{subject.page}.md",
            f"# {subject.title}\n\n{subject.introduction}\n\n```{{eval-rst}}\n{directives}\n```\n",
        )
        if subject.module == "rekindle":
            names = ", ".join(f"{{py:obj}}`{name} <rekindle.{name}>`" for name in subject.names)
            index.append(f"- [{subject.title}]({subject.page}.md): {names}")
    index += ["", "Packages for those who change graphs or the compiler:", ""]
    index += [
        f"- [{subject.title}]({subject.page}.md): {subject.introduction}"
        for subject in SUBJECTS
        if subject.module != "rekindle"
    ]
    toctree = "\n".join(["```{toctree}", ":hidden:", "", *(subject.page for subject in SUBJECTS), "```"])
    yield "index.md", "\n".join([*index, "", toctree, ""])
