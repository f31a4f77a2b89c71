"""Graph -> Graph, one file a pass; the matcher and rewrite engine."""
