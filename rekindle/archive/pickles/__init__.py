"""Pickles: a reader that can only make plain records, a writer, and the conversion of records to values of a
program."""
