"""Rewriting: the engine of passes and rules.

``changes`` counts and limits changes. ``matching`` finds a ``pattern`` in a graph, ``legality`` decides whether the
match may be replaced, ``rule`` inserts the replacement, and ``match_diagnosis`` reports why a pattern has no match.
``node_rules`` runs rules that match a single node.
"""
