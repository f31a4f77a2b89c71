"""Programs answer the same in every way of executing them, on every kind of argument and on every call."""
