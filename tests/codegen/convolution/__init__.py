"""Convolutions and products with constant weights."""
