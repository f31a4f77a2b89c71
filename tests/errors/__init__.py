"""Wrong programs, and the whole text of their errors."""
