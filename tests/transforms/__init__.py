"""Programs to programs: edited, rewritten."""
