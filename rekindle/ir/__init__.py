"""The program as a graph: types, schemas, the graph itself, the registry of operators, and the text form."""

# Graphs are printed, call operators, and yield builders by way of slots that these modules fill.
from rekindle.ir import building as building, transaction as transaction
from rekindle.ir.operators import operator_nodes as operator_nodes, registry as registry
from rekindle.ir.text import printer as printer
