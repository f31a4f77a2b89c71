"""Python objects -> program: recursive scripting."""
