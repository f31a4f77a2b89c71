"""Programs for one example become programs for a batch."""
