"""Programs to programs: edited, rewritten, batched, differentiated."""

from rekindle.transforms import editing as editing, rewriting as rewriting
