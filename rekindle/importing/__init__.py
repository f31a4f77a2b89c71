"""Import captured programs: graphs of ``torch.fx``, ``torch.export`` and ``torch.compile``."""
