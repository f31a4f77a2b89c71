"""Rewriting: the engine that passes and rules are made of.

``changes`` announces every change before it is made. ``matching`` finds a ``pattern`` in a graph, ``legality`` decides
whether the match may be replaced, ``rule`` inserts the replacement, and ``match_diagnosis`` reports why a pattern has
no match. ``node_rules`` runs rules that look at a single node.
"""
