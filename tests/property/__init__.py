"""Programs that Hypothesis writes: compiled, they must do what Python does with them."""
