"""How operators are found and what is known of them: declarations beside PyTorch's dispatcher, aliasing, traits."""
