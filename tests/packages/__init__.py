"""Packages that script, run through the drop-in: `make test-packages`."""
