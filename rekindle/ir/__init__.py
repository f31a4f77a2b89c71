"""The program as a graph: types, schemas, the graph itself, the registry of operators, and the text form."""

# Graphs are printed and call operators by way of slots that these modules fill.
from rekindle.ir import matching as matching, printer as printer, registry as registry
