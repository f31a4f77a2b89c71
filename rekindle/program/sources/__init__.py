"""Programs from source text: compilation units, classes, and the definition of functions."""
