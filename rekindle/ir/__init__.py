"""The program: types, schemas, graphs, plain records of functions and classes, and the registry of operators."""
