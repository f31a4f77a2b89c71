"""Frames: the bindings and properties of the names of one block."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from rekindle.errors import SourceRange
from rekindle.frontend.inference.type_inference import FirstAssignment
from rekindle.frontend.ssa.assignedness import Partial
from rekindle.frontend.sugared_values.base import ERROR_VALUE, SugaredValue
from rekindle.ir.graph import Block
from rekindle.ir.types import Type
from rekindle.syntax.tree import Tree


@dataclass(slots=True)
class LoopScope:
    """A loop that encloses the code that is being compiled."""

    tree: Tree
    names: set[str]
    """Names that its statement assigns."""
    frame: EnvironmentFrame
    """The enclosing frame."""
    tries: dict[str, frozenset[int]]
    """The ids of the ``try`` statements in it, by the names that their bodies assign."""
    wanted: dict[str, SourceRange] = field(default_factory=dict)
    """The names that the loop reads before it assigns them, and whose types are not known yet, with the place of the
    read."""


@dataclass(slots=True)
class EnvironmentFrame:
    """The scope of one block: the names that it binds."""

    block: Block
    parent: EnvironmentFrame | None = None
    sugared: dict[str, SugaredValue] = field(default_factory=dict)
    types: dict[str, Type] = field(default_factory=dict)
    undefined_reason: dict[str, str] = field(default_factory=dict)
    """For names that are unassigned here although some path assigns them, the reason, as part of an error message."""
    partial: dict[str, Partial] = field(default_factory=dict)
    """Variables that only some of the paths to this place have assigned."""
    is_function: bool = False
    """Whether the frame is that of a function nested in the one being compiled, or of a block that Python runs as a
    function."""
    prefix: str | None = None
    """Prefix of the names of variables that the frame hides from outer frames; None if it hides none."""
    origins: dict[str, FirstAssignment] = field(default_factory=dict)
    """First assignments in this block that do not determine the type of their variable."""
    allows_any_type: bool = False
    """Whether the block may assign values of any type to outer variables, because it could not be compiled."""
    known_none: set[str] = field(default_factory=set)
    """Variables that are None here, though their types are wider."""
    annotated: dict[str, Type] = field(default_factory=dict)
    """The declared types of the variables that the program annotates in this block."""
    loop: tuple[int, int] | None = None
    """For the body of a loop, the location of the loop in its source."""
    hidden: dict[str, str] = field(default_factory=dict)
    """Names that refer to other variables here than outside, such as targets of comprehensions, and these variables."""

    def find(self, name: str) -> EnvironmentFrame | None:
        """Return the innermost frame that binds ``name``; None if it is or may be unassigned."""
        frame: EnvironmentFrame | None = self
        while frame is not None:
            if name in frame.types or name in frame.sugared:
                return frame
            if name in frame.partial:
                return None
            frame = frame.parent
        return None

    def find_partial(self, name: str) -> Partial | None:
        """Return the type, and more, of a variable that some paths to this place assign; None for other variables."""
        frame: EnvironmentFrame | None = self
        while frame is not None:
            if name in frame.types or name in frame.sugared:
                return None
            if name in frame.partial:
                return frame.partial[name]
            if name in frame.undefined_reason:
                return None
            frame = frame.parent
        return None

    def set_partial(self, name: str, partial: Partial) -> None:
        """Mark ``name`` as possibly unassigned from here on."""
        self.types.pop(name, None)
        self.sugared.pop(name, None)
        self.undefined_reason.pop(name, None)
        self.known_none.discard(name)
        self.partial[name] = partial

    def find_type(self, name: str) -> Type | None:
        """Return the type of the variable ``name`` if it certainly holds a value of the graph; else None."""
        frame = self.find(name)
        return None if frame is None else frame.types.get(name)

    def has_given_up(self, name: str) -> bool:
        """Return whether ``name`` is unknown, because the statement that assigns it could not be compiled."""
        frame = self.find(name)
        return frame is not None and frame.sugared.get(name) is ERROR_VALUE

    def knows_none(self, name: str) -> bool:
        """Return whether the variable ``name`` is known to be None."""
        frame: EnvironmentFrame | None = self
        while frame is not None:
            if name in frame.known_none:
                return True
            if name in frame.types or name in frame.partial or frame.is_loop_body:
                return False  # it has been assigned since, or may be before the body runs again
            frame = frame.parent
        return False

    @property
    def is_loop_body(self) -> bool:
        """Whether the block is the body of a loop, so that the next iteration reads its assignments."""
        owner = self.block.owning_node
        same = self.parent is not None and self.parent.block is self.block
        return owner is not None and owner.kind == "prim::Loop" and not same

    def is_annotated(self, name: str) -> bool:
        """Return whether the program declares the type of the variable ``name``, so that its uses do not determine
        it."""
        frame: EnvironmentFrame | None = self
        while frame is not None:
            if name in frame.annotated:
                return name not in frame.origins  # otherwise its uses have shown the type
            frame = frame.parent
        return False

    def find_declared(self, name: str) -> Type | None:
        """Return the declared type of the variable ``name``; None if it has none."""
        frame: EnvironmentFrame | None = self
        while frame is not None:
            if name in frame.annotated:
                return frame.annotated[name]
            frame = frame.parent
        return None

    def variable(self, name: str) -> str:
        """Return the variable to which ``name`` refers here: one that a frame hides from outer frames, or ``name``
        itself."""
        frame: EnvironmentFrame | None = self
        while frame is not None:
            if name in frame.hidden:
                return frame.hidden[name]
            frame = frame.parent
        return name

    def find_reason(self, name: str) -> str | None:
        frame: EnvironmentFrame | None = self
        while frame is not None:
            if name in frame.undefined_reason:
                return frame.undefined_reason[name]
            frame = frame.parent
        return None


class LoopKind(Enum):
    """Kind of the loop that contains a statement."""

    NONE = 0
    LOOP = 1
    UNROLLED = 2
