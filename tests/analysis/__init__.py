"""Facts about graphs."""
