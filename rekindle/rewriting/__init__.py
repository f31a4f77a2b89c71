"""Rewriting: the engine that passes and rules are made of.

``changes`` announces every change before it is made. ``matching`` finds a ``pattern`` in a graph, ``legality`` decides
whether the match may give way, ``rule`` puts the replacement there, and ``match_diagnosis`` says why a pattern matches
nowhere. ``node_rules`` runs rules that look at a single node.
"""
