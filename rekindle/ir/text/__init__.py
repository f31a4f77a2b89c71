"""The text form of the IR: printer and parsers of graphs, types, schemas and constants."""
