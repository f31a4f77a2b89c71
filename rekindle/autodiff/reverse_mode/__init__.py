"""Reverse mode: from a graph to the graph of its gradients.

``tape`` lists what is differentiated and with which formula, ``reverse`` builds the backward of straight-line
code, ``control_flow`` that of branches and loops, ``container_backward`` that of lists, tuples and dicts.
``gradient_regions`` adds gradients up where they are defined; ``gradient_accumulation`` batches what loops add up;
``differentiable_loops`` finds loops that are differentiated as a whole.
"""
