"""Pictures of graphs: a page for browsers, SVG, and text for Graphviz and Mermaid."""

from rekindle.viz.page import Page as Page, PageStage as PageStage, page as page
from rekindle.viz.svg import to_svg as to_svg
from rekindle.viz.text_formats import to_dot as to_dot, to_mermaid as to_mermaid
