"""One file a family of constructs."""
