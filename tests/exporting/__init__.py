"""Programs that leave for Export IR."""
