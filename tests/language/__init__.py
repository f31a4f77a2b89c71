"""The language: a table of its constructs, and small programs that show what each does here and in torch.jit."""
