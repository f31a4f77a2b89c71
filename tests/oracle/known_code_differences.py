"""Programs of the corpus whose source text is not torch.jit's though the graphs are equal, and why."""

KNOWN_CODE_DIFFERENCES: dict[str, str] = {
    "assignment.chained": "a = b = x: the value is called as the first variable here, and has no name there",
    "interfaces.interface_branch": "torch.jit cannot print a call of what is one class or another",
    "interfaces.interface_reassigned": "torch.jit cannot print a call of what is one class or another",
    "lists.empty_and_append": "an empty list whose type nothing determines keeps the name of its variable here",
}
