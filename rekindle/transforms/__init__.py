"""Programs to programs: edited, rewritten, differentiated."""

from rekindle.transforms import editing as editing, rewriting as rewriting
