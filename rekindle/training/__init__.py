"""Training steps: forward, loss, backward and the update of the parameters as one compiled call."""
