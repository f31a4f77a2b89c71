"""What a node's kind means: schema, effects and implementation of every operator, filling the registry."""
