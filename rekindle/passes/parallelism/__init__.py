"""Passes that expose parallelism: batched matrix products, and independent subgraphs on several threads."""
