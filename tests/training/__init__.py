"""Training as users do it: compiled models beside eager ones, step by step."""
