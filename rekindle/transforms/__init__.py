"""Programs to programs: edited, rewritten, differentiated."""
