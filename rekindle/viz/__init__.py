"""Pictures of graphs: a page for browsers, and text for Graphviz and Mermaid."""

from rekindle.viz.page import Page as Page, Stage as Stage, page as page
from rekindle.viz.texts import to_dot as to_dot, to_mermaid as to_mermaid
