"""Graphs edited by hand: code put in, parts taken out, graphs made into functions, methods and modules."""

from rekindle.transforms.editing import emission as emission
