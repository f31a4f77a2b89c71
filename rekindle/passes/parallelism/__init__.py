"""Passes that compute side by side: batched matrix products, and independent subgraphs on several threads."""
