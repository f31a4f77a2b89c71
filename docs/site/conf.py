"""Configuration of Sphinx, which builds the documentation site from ``build/site-source``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

SITE: Final = Path(__file__).parent
ROOT: Final = SITE.parent.parent
sys.path[:0] = [str(SITE), str(ROOT)]

from ir_lexer import IRLexer  # noqa: E402

import rekindle  # noqa: E402

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "rekindle"
version = release = rekindle.__version__
copyright = "the rekindle contributors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/index"

# Headings have the anchors that GitHub gives them, so that a link to a section is valid in both places.
myst_heading_anchors = 5

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_inherit_docstrings = False  # nn.Module's are PyTorch's to show
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
napoleon_numpy_docstring = False

# A reference to a function or method that has no page is a warning. Types in signatures are not checked: most are
# PyTorch's. Nor are modules of the package, which have no pages: a test looks for their files.
nitpicky = True
nitpick_ignore_regex = [
    ("py:mod", r"rekindle\..*"),
    ("py:(class|obj|data)", r".*"),
    ("py:.*", r"(torch|dataclasses|sys)\..*"),
]

html_theme = "furo"
html_title = f"rekindle {release}"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}


def setup(app: Sphinx) -> None:
    app.add_lexer("ir", IRLexer)
    app.connect("build-finished", _redirect_front_page)


def _redirect_front_page(app: Sphinx, exception: Any) -> None:
    """The pages keep the paths of the repository, so the front page is not at the top of the site."""
    if exception is None:
        target = f"{root_doc}.html"
        Path(app.outdir, "index.html").write_text(
            f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={target}">'
            f'<title>rekindle</title><a href="{target}">rekindle</a>\n',
            encoding="utf-8",
        )
