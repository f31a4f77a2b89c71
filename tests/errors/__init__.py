"""Wrong programs, and the whole text of what their authors are told."""
