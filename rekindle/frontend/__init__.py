"""Emission of graphs from syntax trees, and printing of graphs as source: emitter, environment, sugared values,
resolver, SSA conversion and exits."""
