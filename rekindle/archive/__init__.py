"""Save and load ``.pt`` archives: the container, the pickles, the tensors and the programs. Loading executes nothing
from an archive, except ``__setstate__`` of its classes in a sandbox."""
