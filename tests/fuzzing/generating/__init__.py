"""The generator of random programs: typed, so that most of what it writes runs."""
