"""The order of the site: the sections of its menu and the pages in each."""

from __future__ import annotations

from typing import Final

SECTIONS: Final[dict[str, tuple[str, ...]]] = {
    "Start here": (
        "README",
        "docs/start/archive",
        "docs/start/torch_jit",
        "docs/start/speed",
        "docs/start/export",
        "docs/start/graphs",
        "docs/start/compilers",
    ),
    "Programs": (
        "docs/tutorial",
        "docs/language",
        "docs/errors",
        "docs/tracing",
        "docs/archives",
        "docs/safety",
        "docs/command_line",
        "docs/doctor",
        "docs/drop_in",
        "docs/real_modules",
        "docs/differences",
    ),
    "Speed": (
        "docs/benchmarks",
        "docs/performance",
        "docs/execution",
        "docs/kernels",
        "docs/gpu",
        "docs/freezing",
        "docs/training",
        "docs/scaling",
        "docs/torch_compile",
    ),
    "Transformations": (
        "docs/gradients",
        "docs/batching",
        "docs/editing",
        "docs/graph_surgery",
        "docs/rewriting",
        "docs/export",
        "docs/import",
        "docs/libraries",
    ),
    "Compiler": (
        "docs/architecture",
        "docs/ir",
        "docs/passes",
        "docs/seeing",
        "docs/notebook",
        "docs/adding_an_operator",
        "docs/adding_a_pass",
        "docs/adding_a_formula",
        "docs/operators",
        "docs/operator_support",
    ),
    "Reference": (
        "docs/api/index",
        "docs/versions",
        "CHANGELOG",
        "CONTRIBUTING",
        "docs/building_the_site",
        "docs/releasing",
    ),
}
"""Titles of the menu, and the pages under each, without their suffix. A page that is missing here is a warning."""


def toctrees() -> str:
    """Return the menu as MyST directives, which the front page ends with."""
    return "\n".join(
        "\n".join([f"```{{toctree}}\n:hidden:\n:caption: {title}\n", *(f"/{page}" for page in pages), "```\n"])
        for title, pages in SECTIONS.items()
    )
