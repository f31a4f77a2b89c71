"""The frontend."""
