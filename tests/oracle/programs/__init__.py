"""The programs, a file for each part of the language."""
