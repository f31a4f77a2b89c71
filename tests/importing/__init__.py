"""Programs that PyTorch captured, and what reads them."""
