"""A fuzzer of programs: random Python programs, compiled here and held against eager Python."""
