"""``.pt`` in and out: the container, the pickles, the tensors, and what programs make of them. Nothing in an archive is
executed to load it."""

from rekindle.archive.load import load as load
from rekindle.archive.save import save as save
