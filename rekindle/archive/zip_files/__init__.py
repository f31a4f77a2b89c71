"""The container: a zip file, its directory, and the names of its members."""
